"""Floating point operations of a record, as PyTorch counts them (`torch.utils.flop_counter`).

The commonest operations are counted here from their shapes. Every other one that may multiply matrices is run once per
distinct shapes on the meta device, where it costs no memory and computes nothing, and the operators it comes down to
are looked up in PyTorch's registry. A multiplication and an addition count as two. Elementwise operations count as
none, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from torchatlas.modes import DispatchMode
from torchatlas.record import Nested, Op, Record, Value

_COUNTED = frozenset((
    "addbmm", "einsum", "tensordot", "bilinear", "mv", "addmv", "convolution", "multi_head_attention_forward",
    "native_multi_head_attention", "transformer_encoder_layer_fwd", "lstm_cell", "gru_cell", "rnn_tanh_cell",
    "rnn_relu_cell", "chain_matmul", "multi_dot", "inner", "cdist",
))  # fmt: skip


def count_flops(record: Record) -> dict[int, int]:
    """Floating point operations by operation index; operations that can't be counted, and those without, are left out.

    Args:
        record: what ran.
    """
    counted: dict[Any, int | None] = {}
    found: dict[int, int] = {}
    for op in record.ops:
        if op.status != "ok" or op.level not in ("function", "dispatch"):
            continue
        if op.name in _FORMULAS and _are_known(op):
            found[op.index] = _FORMULAS[op.name](op)
            continue
        if op.name not in _COUNTED:
            continue
        key = (op.func, _key(op.args, op.index), _key(op.kwargs, op.index))
        if key not in counted:
            counted[key] = _count(op)
        flops = counted[key]
        if flops:
            found[op.index] = flops
    return found


def _count(op: Op) -> int | None:
    from torch.utils.flop_counter import flop_registry  # slow to import, and not needed for a trace

    counter = _Counter(flop_registry)
    try:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            args = [_on_meta(arg, op.index) for arg in op.args]
            kwargs = {name: _on_meta(arg, op.index) for name, arg in op.kwargs.items()}
            with counter:
                op.func(*args, **kwargs)
    except Exception:  # noqa: BLE001 # not every operator has a meta kernel; the number is then simply not there
        return None
    return counter.flops


def _are_known(op: Op) -> bool:
    return isinstance(op.out, (Value, tuple)) and all(value.shape is not None for value in op.reads)


def _count_product(op: Op) -> int:
    """Each element of the result is a sum over the last dimension of the left factor."""
    left = op.reads[_LEFT_FACTOR.get(op.name, 0)].shape_at(op.index)
    return 2 * math.prod(op.out.shape) * int(left[-1] if left else 1)


def _count_convolution(op: Op) -> int:
    """Each element of the result (of the input, for a transposed one) meets one filter."""
    data, weight = op.reads[:2]
    places = data.shape_at(op.index) if "transpose" in op.name else op.out.shape
    return 2 * math.prod(places) * math.prod(weight.shape[1:])


def _count_attention(op: Op) -> int:
    """Queries by keys, then weights by values."""
    query, key, value = (row.shape_at(op.index) for row in op.reads[:3])
    return 2 * math.prod(query[:-1]) * int(key[-2]) * (int(query[-1]) + int(value[-1]))


def _count_recurrent(op: Op) -> int:
    """Every step of every sequence goes through every weight matrix once.

    On the meta device these operators would be unrolled step by step, which takes seconds for long sequences.
    """
    steps = math.prod(op.reads[0].shape_at(op.index)[:-1])
    weights = {id(part): part for arg in op.args if isinstance(arg, (list, tuple)) for part in arg}
    matrices = [value for value in weights.values() if isinstance(value, Value) and len(value.shape or ()) == 2]
    return 2 * steps * sum(math.prod(matrix.shape) for matrix in matrices)


_LEFT_FACTOR = {"addmm": 1, "baddbmm": 1}
_FORMULAS: dict[str, Callable[[Op], int]] = {
    **dict.fromkeys(("linear", "matmul", "mm", "bmm", "addmm", "baddbmm"), _count_product),
    **dict.fromkeys(
        [f"conv{transposed}{dims}d" for transposed in ("", "_transpose") for dims in (1, 2, 3)], _count_convolution
    ),
    "scaled_dot_product_attention": _count_attention,
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _count_recurrent),
}


class _Counter(DispatchMode):
    """Adds up the formulas of the operators that run under it."""

    def __init__(self, registry: Any) -> None:
        super().__init__()
        self.registry = registry
        self.flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        formula = self.registry.get(getattr(func, "overloadpacket", func))
        if formula is not None:
            self.flops += int(formula(*args, **(kwargs or {}), out_val=out))
        return out


def _on_meta(arg: Any, time: int) -> Any:
    """An argument with tensors of the same shapes on the meta device."""
    if isinstance(arg, Value):
        return torch.empty(tuple(arg.shape_at(time)), dtype=arg.dtype, device="meta")
    if isinstance(arg, (list, tuple)) and not isinstance(arg, torch.Size):
        return type(arg)([_on_meta(part, time) for part in arg])
    if isinstance(arg, dict):
        return {key: _on_meta(part, time) for key, part in arg.items()}
    if isinstance(arg, Nested):
        raise TypeError("a container of this class has no counterpart on the meta device")
    return arg


def _key(arg: Any, time: int) -> Any:
    """What tells two arguments apart as far as the count goes."""
    if isinstance(arg, Value):
        return tuple(arg.shape_at(time) or ()), arg.dtype
    if isinstance(arg, (list, tuple)):
        return tuple(_key(part, time) for part in arg)
    if isinstance(arg, dict):
        return tuple((key, _key(part, time)) for key, part in arg.items())
    return arg if isinstance(arg, (int, float, str, bool, type(None))) else repr(arg)
