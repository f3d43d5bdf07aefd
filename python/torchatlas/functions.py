"""What the tracer must know of a torch function before it runs: its plain name and what it may write into.

Torch itself is asked: operator schemas say which arguments an operator writes. Where torch does not say (Python code,
operators whose schema is silent about running statistics) the function is watched at the dispatcher while it runs.
"""

from __future__ import annotations

import functools
from enum import Enum
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

# Operators that update their running statistics although their schema does not say so (torch 2.14), with the positions
# of these arguments and of the `training` flag. To be removed when the schemas are annotated.
SILENT_WRITERS: dict[str, tuple[tuple[int, ...], int]] = {
    "aten::native_batch_norm": ((3, 4), 5),
    "aten::cudnn_batch_norm": ((3, 4), 5),
    "aten::miopen_batch_norm": ((3, 4), 5),
    "aten::batch_norm": ((3, 4), 5),
}


# Calls that hand out a tensor's memory itself, to code outside torch.
LENDERS = frozenset(("numpy", "array", "dlpack"))

# Functions of `torch.nn.functional` that write only where an argument asks for it.
_SWITCHES = {
    "batch_norm": "training",
    "instance_norm": "running_mean",
    "embedding": "max_norm",
    "embedding_bag": "max_norm",
}


class Writes(Enum):
    """What is known of the writing of a function before it runs."""

    NOTHING = "nothing"
    """It writes into no argument, unless `out=` is given."""
    FIRST = "first"
    """It writes into its first argument: `add_`, `__setitem__`."""
    WATCH = "watch"
    """It can't be told: watch it at the dispatcher."""
    DATA = "data"
    """It exchanges the memory of its first argument: the setter of `.data`."""
    FLAG = "flag"
    """It sets a property of its first argument other than its values: `requires_grad`."""


class Function:
    """A torch function as the tracer sees it.

    Attributes:
        name: plain name: no dunders, no namespace (`add`, `setitem`, `mul_`, `softmax`).
        writes: what it may write into.
        is_metadata: it reads sizes and the like; no node, and nothing to record.
        is_backward: it runs the backward pass and adds to `.grad` of leaves.
        inplace: position of its `inplace` argument, -1 if it has none.
        is_attention: it chooses among attention kernels by global flags.
        switch: position and name of the argument without which it writes nothing after all; None if it has none.
        overload: it is an operator with a schema of its own.
        is_pure: without keywords it writes into nothing, nor into `.grad`.
        is_watched: only watching it tells what it writes into.
    """

    __slots__ = (
        "inplace", "is_attention", "is_backward", "is_metadata", "is_pure", "is_watched", "name", "overload", "switch",
        "writes",
    )  # fmt: skip

    def __init__(self, func: Any) -> None:
        raw = _raw_name(func)
        self.name = plain_name(raw)
        self.overload = func if isinstance(func, OpOverload) else None
        self.is_metadata = (_is_getter(func) and self.name in _METADATA) or func in _METADATA_FUNCTIONS
        self.is_backward = raw == "backward"
        code = getattr(func, "__code__", None)
        names = code.co_varnames[: code.co_argcount] if code is not None else ()
        self.inplace = names.index("inplace") if "inplace" in names else -1
        self.is_attention = "attention" in raw
        switch = _SWITCHES.get(raw, "")
        self.switch = (names.index(switch), switch) if switch in names else None
        self.writes = _writes_of(func, raw)
        self.is_watched = self.writes is Writes.WATCH
        self.is_pure = self.writes is Writes.NOTHING and self.inplace < 0 and not self.is_backward

    def is_quiet(self, args: Any, kwargs: Any) -> bool:
        """Whether what it may write is switched off: running statistics, the renormalisation of an embedding."""
        if self.switch is None:
            return False
        position, name = self.switch
        given = args[position] if len(args) > position else kwargs.get(name)
        return given is None or given is False


known: dict[Any, Function] = {}


def describe(func: Any) -> Function:
    """The `Function` of a callable that torch handed to a mode; the answer is kept."""
    try:
        return known[func]
    except KeyError:
        made = known[func] = Function(func)
        return made


def plain_name(raw: str) -> str:
    """Name without dunders, reflected forms and overload names: `__radd__` gives `add`, `__iadd__` gives `add_`."""
    name = raw
    if len(name) > 4 and name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
        name = _DUNDERS.get(name, name)
    name = name.lstrip("_")
    for namespace in ("fft_", "linalg_", "special_", "sparse_"):
        if name.startswith(namespace) and len(name) > len(namespace):
            name = name[len(namespace) :]
    return name or "op"


# Operations that may give views although no operator's schema of that name says so.
_VIEWS = frozenset(
    ("getitem", "T", "H", "mT", "mH", "data", "grad", "meshgrid", "broadcast_tensors", "atleast_1d", "atleast_2d",
     "atleast_3d")
)  # fmt: skip


@functools.cache
def may_give_view(name: str) -> bool:
    """Whether an operation of this plain name may give a tensor that shows the memory of an argument."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    return name in _VIEWS or any(
        argument.alias_info is not None and not argument.alias_info.is_write
        for schema in schemas
        for argument in schema.arguments
    )


@functools.lru_cache(maxsize=4096)
def argument_names(func: Any, count: int) -> list[str]:
    """Names of a function's positional arguments, as far as torch tells them; else their numbers."""
    names: list[str] = []
    schema = func._schema if isinstance(func, OpOverload) else None
    code = getattr(func, "__code__", None)
    if code is not None:
        names = list(code.co_varnames[: code.co_argcount])
    elif schema is None:
        raw = _raw_name(func)
        candidates = torch._C._jit_get_schemas_for_operator(f"aten::{raw.strip('_') if raw.startswith('__') else raw}")
        schema = next((s for s in candidates if len(s.arguments) >= count), None)
    if schema is not None:
        names = [argument.name for argument in schema.arguments if not argument.kwarg_only]
    return [names[i] if i < len(names) else str(i) for i in range(count)]


_BINARY = (
    "add",
    "sub",
    "mul",
    "matmul",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "truediv",
    "div",
    "and",
    "or",
    "xor",
)
_PLAIN = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "invert": "bitwise_not",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
_DUNDERS = {
    **_PLAIN,
    **{"r" + name: _PLAIN.get(name, name) for name in _BINARY},
    **{"i" + name: _PLAIN.get(name, name) + "_" for name in _BINARY},
}

_METADATA = frozenset((
    "shape", "dtype", "device", "requires_grad", "ndim", "is_cuda", "is_cpu", "is_xpu", "is_mps", "layout", "is_sparse",
    "is_sparse_csr", "is_quantized", "is_meta", "is_nested", "is_mkldnn", "grad_fn", "is_leaf", "version", "itemsize",
    "nbytes", "names", "base", "output_nr", "name", "retains_grad", "is_vulkan", "is_ipu", "is_xla", "is_ort",
    "is_mtia", "is_maia", "backward_hooks", "post_accumulate_grad_hooks", "has_symbolic_sizes_strides", "cdata",
    "grad_dtype",
))  # fmt: skip
_METADATA_FUNCTIONS = frozenset[Any](
    getattr(torch.Tensor, name)
    for name in (
        "size", "dim", "numel", "stride", "is_floating_point", "is_complex", "is_contiguous", "storage_offset",
        "data_ptr", "element_size", "get_device", "untyped_storage", "__len__", "__hash__", "__repr__", "ndimension",
        "nelement", "register_hook", "is_inference", "__format__", "is_signed", "is_shared", "is_pinned", "is_neg",
        "is_conj", "type", "dense_dim", "sparse_dim", "_is_view", "has_names", "__dir__",
    )
    if hasattr(torch.Tensor, name) and name != "type"
) | frozenset[Any]((
    torch.is_tensor, torch.is_floating_point, torch.is_complex, torch.numel, torch.is_storage,
))  # fmt: skip


def _raw_name(func: Any) -> str:
    if isinstance(func, OpOverload):
        return func._schema.name.rpartition("::")[2]
    name = getattr(func, "__name__", None) or type(func).__name__
    if name in ("__get__", "__set__", "__delete__"):
        owner = getattr(getattr(func, "__self__", None), "__name__", "property")
        return owner if name == "__get__" else f"set_{owner}"
    return str(name)


def _is_getter(func: Any) -> bool:
    return getattr(func, "__name__", "") == "__get__"


def _writes_of(func: Any, raw: str) -> Writes:
    if raw == "set_data":
        return Writes.DATA
    if raw in ("set_requires_grad", "requires_grad_", "set_grad", "retain_grad"):
        return Writes.FLAG
    if raw == "__setitem__" or raw in _DUNDERS_IN_PLACE or (raw.endswith("_") and not raw.endswith("__")):
        return Writes.FIRST
    if _is_getter(func):
        return Writes.NOTHING
    if isinstance(func, OpOverload):
        return Writes.WATCH if _writes_positional(func._schema) or _is_silent(raw) else Writes.NOTHING
    if isinstance(func, OpOverloadPacket):
        writes = any(_writes_positional(getattr(func, name)._schema) for name in func.overloads())
        return Writes.WATCH if writes or _is_silent(raw) else Writes.NOTHING
    if hasattr(func, "__code__"):
        is_method = getattr(torch.Tensor, raw, None) is func and raw != "backward"
        return Writes.NOTHING if is_method or func in _PURE or _is_pure_functional(func) else Writes.WATCH
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{raw}")
    writes = any(_writes_positional(schema) for schema in schemas)
    is_unknown = not schemas and not raw.startswith("__") and not hasattr(torch.Tensor, raw)
    return Writes.WATCH if writes or is_unknown or _is_silent(raw) else Writes.NOTHING


def _is_silent(raw: str) -> bool:
    """Whether an operator of this name may update running statistics although its schema does not say so."""
    return "batch_norm" in raw or "instance_norm" in raw


def _writes_positional(schema: Any) -> bool:
    """Whether an operator writes into an argument that is not `out=` (that one is seen at the call)."""
    return any(a.alias_info is not None and a.alias_info.is_write and not a.kwarg_only for a in schema.arguments)


_DUNDERS_IN_PLACE = frozenset(f"__i{name}__" for name in _BINARY)

# Python functions of torch that write into nothing. Watching them would be right too: they are listed because they are
# called most and watching costs about as much as recording.
_PURE = frozenset[Any]((torch.einsum, torch.norm, torch.stft, torch.split, torch.meshgrid, torch.broadcast_tensors))
_WRITING_PARAMETERS = frozenset(("running_mean", "max_norm", "distance_function"))


def _is_pure_functional(func: Any) -> bool:
    """Whether it is a function of `torch.nn.functional` that writes into nothing unless asked to by `inplace`.

    Those that do write show it by a parameter: running statistics, embeddings renormalised to `max_norm`; a
    `distance_function` is the user's and may do anything.
    """
    code = func.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return getattr(func, "__module__", "") == "torch.nn.functional" and _WRITING_PARAMETERS.isdisjoint(names)
