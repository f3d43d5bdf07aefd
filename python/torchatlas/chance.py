"""Which operations may draw random numbers: where one is left out, the later ones draw others.

Torch tags the operators that draw. A Python function of torch's own is looked into: it draws where it names such
an operator, or another function that does. Of what can't be looked into (other Python code, operators of other
libraries, autograd Functions) it is supposed.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

from torchatlas.functions import argument_names
from torchatlas.record import Op

_FUNCTIONALS = frozenset(("torch.nn.functional", "torch.functional", "torch._tensor"))
_USERS = "distance_function"
"""The parameter of a loss that is a function of the user's."""
# Operations that draw only where an argument says so, with the names of the argument.
_SWITCHES = {
    **dict.fromkeys(
        ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout",
         "rrelu"),
        ("training", "train"),
    ),
    "scaled_dot_product_attention": ("dropout_p",),
}  # fmt: skip


def may_draw(op: Op) -> bool:
    """Whether an operation may have moved a random generator on."""
    if op.level in ("alias", "module"):
        return False
    return op.level == "opaque" or (_function_may_draw(op.func) and not _is_switched_off(op))


def _is_switched_off(op: Op) -> bool:
    switches = _SWITCHES.get(op.name)
    if switches is None:
        return False
    given = {**dict(zip(argument_names(op.func, len(op.args)), op.args, strict=False)), **op.kwargs}
    found = [given[name] for name in switches if name in given]
    return found[0] in (False, 0.0) if found else op.name == "scaled_dot_product_attention"


@functools.lru_cache(maxsize=4096)
def _name_draws(name: str) -> bool:
    """Whether torch has an operator of this name that draws."""
    packet = getattr(torch.ops.aten, name, None) if name.isidentifier() and not name.startswith("__") else None
    return isinstance(packet, OpOverloadPacket) and _packet_draws(packet)


def _packet_draws(packet: Any) -> bool:
    return any(_overload_draws(getattr(packet, name)) for name in packet.overloads())


def _overload_draws(overload: OpOverload) -> bool:
    return torch.Tag.nondeterministic_seeded in overload.tags or not overload.name().startswith(("aten::", "prims::"))


@functools.lru_cache(maxsize=4096)
def _function_may_draw(func: Any) -> bool:
    if isinstance(func, OpOverload):
        return _overload_draws(func)
    if isinstance(func, OpOverloadPacket):
        return _packet_draws(func)
    if isinstance(func, FunctionType):
        return _code_may_draw(func)
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__"):
        return False
    # A method of Python's data model is the operator of the plain name; none of those draws.
    is_known = name.startswith("__") or hasattr(torch.Tensor, name) or _has_schema(name)
    return _name_draws(name) or not is_known


def _has_schema(name: str) -> bool:
    return bool(torch._C._jit_get_schemas_for_operator(f"aten::{name}"))


def _code_may_draw(func: FunctionType) -> bool:
    """Whether a Python function names something that draws; true of code that is not torch's own."""
    if getattr(torch.Tensor, func.__name__, None) is func:
        return _name_draws(func.__name__)
    todo, seen = [func], {func}
    while todo:
        found = todo.pop()
        code = found.__code__
        if found.__module__ not in _FUNCTIONALS or any(map(_name_draws, code.co_names)) or _USERS in code.co_varnames:
            return True
        named = [found.__globals__.get(name) for name in code.co_names]
        held = [cell.cell_contents for cell in found.__closure__ or ()]
        inner = [each for each in (*named, *held) if isinstance(each, FunctionType) and each not in seen]
        inner = [each for each in inner if each.__module__ in _FUNCTIONALS]
        seen.update(inner)
        todo += inner
    return False
