"""Where a forward failed: the operation or module call, its arguments by name, and how a reader calls them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any

import torch

from torchatlas.builder import values_in
from torchatlas.functions import argument_names
from torchatlas.places import line_of
from torchatlas.record import Call, Nested, Op, Record, Value

Frame = tuple[CodeType, int, Mapping[str, Any]]
"""One level of a traceback: code, line, local variables."""


@dataclass(frozen=True)
class Stub:
    """A tensor that is only described, in the place of a real one."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: Any = "cpu"
    stride: tuple[int, ...] | None = None

    @classmethod
    def like(cls, value: Value | Stub, shape: Sequence[int] | None = None, dtype: torch.dtype | None = None) -> Stub:
        """A description of a value, with another shape or dtype."""
        size = tuple(value.shape or ()) if shape is None else tuple(shape)
        return cls(size, dtype or value.dtype, value.device)


@dataclass
class Site:
    """One failure, with all that is needed to explain it.

    Attributes:
        record: what ran.
        op: the operation that failed; None where plain Python code raised.
        call: the innermost module call that failed.
        error: the exception.
        node_of_op: index of an operation to the name of its node.
        name_of_call: index of a call to its name.
        frames: the user's levels of the traceback, outermost first.
    """

    record: Record
    op: Op | None
    call: Call | None
    error: BaseException
    node_of_op: Mapping[int, str] = field(default_factory=dict)
    name_of_call: Mapping[int, str] = field(default_factory=dict)
    frames: Sequence[Frame] = ()

    @property
    def message(self) -> str:
        """Text of the exception."""
        return str(self.error)

    @property
    def name(self) -> str:
        """Plain name of the failing operation, without the underscore of in-place forms."""
        return "" if self.op is None else self.op.name.rstrip("_")

    @property
    def module(self) -> Any:
        """The innermost module that failed."""
        return None if self.call is None else self.call.module

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the operation by name, tensors as values."""
        if self.op is None:
            return {}
        names = argument_names(self.op.func, len(self.op.args))
        return {**dict(zip(names, self.op.args, strict=True)), **self.op.kwargs}

    def argument(self, *names: str, at: int | None = None, default: Any = None) -> Any:
        """The first argument that has one of these names, else the positional one."""
        for name in names:
            if name in self.arguments:
                return self.arguments[name]
        args = () if self.op is None else self.op.args
        return args[at] if at is not None and at < len(args) else default

    def tensor(self, *names: str, at: int | None = None) -> Value | None:
        """Like `argument`, for a tensor whose shape is known; None if it is something else."""
        found = self.argument(*names, at=at)
        return found if isinstance(found, Value) and found.shape is not None else None

    def with_arguments(self, changes: Mapping[int | str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The operation's arguments with some replaced: by position, or by name where it is a keyword."""
        assert self.op is not None, "no operation failed"
        args = tuple(changes.get(position, arg) for position, arg in enumerate(self.op.args))
        return args, {name: changes.get(name, arg) for name, arg in self.op.kwargs.items()}

    def key_of(self, wanted: Any) -> int | str:
        """Position or keyword of an argument, for `with_arguments`."""
        assert self.op is not None, "no operation failed"
        for position, arg in enumerate(self.op.args):
            if arg is wanted:
                return position
        return next(name for name, arg in self.op.kwargs.items() if arg is wanted)

    # How a reader calls things

    def who(self, op: Op) -> str:
        """An operation as its reader knows it: torch's own modules stand for the operations inside them."""
        call = op.call
        is_hook = op is self.op and self.is_in_hook
        if is_torch_module(call.module) and not is_hook and call.index in self.name_of_call:
            return self.call_name(call)
        return f"`{self.node_of_op.get(op.index, op.name)}`"

    @property
    def subject(self) -> str:
        """The failing operation or module call as a reader knows it."""
        if self.op is not None:
            return self.who(self.op)
        return "`forward`" if self.call is None else self.call_name(self.call)

    def call_name(self, call: Call) -> str:
        """Name of a module call, quoted; with its class where the name is a bare number."""
        name = self.name_of_call.get(call.index, call.type)
        is_number = name.rpartition(".")[2].partition(":")[0].isdigit()
        return f"`{name}` ({call.type})" if is_number else f"`{name}`"

    def outer(self, value: Value) -> Value:
        """The value that came into the failing torch module, where the module itself made the given one of it."""
        own = None if self.op is None or self.own_module is None else self.op.call
        while own is not None and value.op is not None and value.op.call is own and value.op.reads:
            value = value.op.reads[0]
        return value

    def maker(self, value: Value) -> str:
        """What a value comes from: an operation or module, an input, a parameter."""
        value = self.outer(value)
        if value.op is not None:
            return self.who(value.op)
        if value.kind == "input":
            return f"the input `{value.name}`"
        if value.name is None:
            return "a tensor from outside torch"
        return f"the {value.kind} `{value.name}`" if value.kind != "constant" else f"`{value.name}`"

    def described(self, value: Value) -> str:
        """What a value comes from, with its shape."""
        value = self.outer(value)
        return f"{self.maker(value)} {shape_text(value.shape)}"

    def called(self, call: Call) -> str:
        """Name of a module call with its class."""
        name = self.call_name(call)
        return name if name.endswith(")") or name == f"`{call.type}`" else f"{name} ({call.type})"

    def sourced(self, value: Value) -> str:
        """The shape of a value, and what it comes from."""
        return f"{shape_text(self.outer(value).shape)} from {self.maker(value)}"

    @property
    def own_module(self) -> Any:
        """The torch module that the failing operation is the work of; None where it stands in the user's code."""
        module = None if self.op is None else self.op.call.module
        return module if is_torch_module(module) and not self.is_in_hook else None

    @cached_property
    def is_in_hook(self) -> bool:
        """Whether the operation was called by a hook of the module rather than by its forward."""
        module = None if self.op is None else self.op.call.module
        if not is_torch_module(module) or self.op is None or self.op.error is None:
            return False
        code = forward_code(module)
        codes = []
        trace = self.op.error.__traceback__
        while trace is not None:
            codes.append(trace.tb_frame.f_code)
            trace = trace.tb_next
        calling = [position for position, found in enumerate(codes) if found.co_name == "_call_impl"]
        return bool(calling) and code is not None and code not in codes[calling[-1] :]

    def attribute(self, *names: str) -> str:
        """` (its `in_features`)` where the failing operation belongs to a torch module that has such an attribute."""
        module = self.own_module
        found = next((name for name in names if hasattr(module, name)), None)
        return "" if found is None else f" (its `{found}`)"

    def live(self, value: Value) -> torch.Tensor | None:
        """The tensor that a value stands for, where it still exists and has values."""
        tensor = value.tensor if value.tensor is not None else value.ref() if value.ref is not None else None
        if tensor is None or tensor.is_meta or hasattr(tensor, "fake_mode"):
            return None
        return tensor

    def reads(self) -> list[Value]:
        """Tensors among the arguments whose shape is known, each once."""
        found = () if self.op is None else self.op.reads
        return list({id(value): value for value in found if value.shape is not None}.values())

    @property
    def line(self) -> int | None:
        """Line of the user's code that called the operation."""
        place = None if self.op is None else self.op.place
        return None if place is None else line_of(*place)


def forward_code(module: Any) -> CodeType | None:
    """Code of a module's forward; None where it is not written in Python."""
    owner = next((cls for cls in type(module).__mro__ if "forward" in vars(cls)), None)
    return None if owner is None else getattr(inspect.unwrap(vars(owner)["forward"]), "__code__", None)


def is_torch_module(module: Any) -> bool:
    """Whether a module's class is one of torch's leaf classes or made from one; no container."""
    if module is None or isinstance(module, _CONTAINERS):
        return False
    bases = (cls for cls in type(module).__mro__ if cls is not torch.nn.Module)
    return any(cls.__module__.startswith(("torch.nn.", "torch.ao.nn.")) for cls in bases)


def class_text(module: Any) -> str:
    """Name of a module's class as code has it: `nn.Linear`, `MyLinear`."""
    name = type(module).__name__
    return f"nn.{name}" if type(module).__module__.startswith("torch.nn.") else name


_CONTAINERS = (
    torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Transformer,
    torch.nn.TransformerEncoder, torch.nn.TransformerDecoder, torch.nn.TransformerEncoderLayer,
    torch.nn.TransformerDecoderLayer, torch.jit.ScriptModule,
)  # fmt: skip


def shape_text(shape: Any) -> str:
    """A shape as Python writes it: `(1, 192)`."""
    return "(unknown shape)" if shape is None else str(tuple(int(size) for size in shape))


def dtype_text(dtype: Any) -> str:
    """A dtype without `torch.`."""
    return str(dtype).removeprefix("torch.")


def inner_values(packed: Any) -> Iterator[Value]:
    """Values in a packed argument, in order."""
    if isinstance(packed, slice):
        for part in (packed.start, packed.stop, packed.step):
            yield from inner_values(part)
    elif isinstance(packed, (Value, Nested, list, tuple, dict)):
        yield from values_in(packed)


def code_place(op: Op) -> str:
    """` (line 12)` of an operation, or ""."""
    return "" if op.place is None else f" (line {line_of(*op.place)})"
