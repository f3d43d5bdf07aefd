"""Run one operation again on tensors without values, to see whether it would pass and what shape it would give."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchatlas.crash.site import Site, Stub
from torchatlas.record import Nested, Value
from torchatlas.structure import put_together

_REAL_ELEMENTS_MAX = 1 << 22
"""Elements up to which a trial may use real zeros; only their kernels check dtypes."""


class Refused(Exception):
    """The operation raised in the trial, or can't be tried."""


def result_of(site: Site, changes: Mapping[int | str, Any], *, real: bool = False) -> Any:
    """What the failing operation gives when some of its arguments are replaced.

    Args:
        site: the failure.
        changes: position or keyword of an argument to what replaces it, with `Stub` for tensors.
        real: use zeros on the CPU instead of the meta device, because only real kernels check dtypes.

    Returns:
        The result, on the meta device or of zeros.

    Raises:
        Refused: it raised, or it is no operation of torch.
    """
    op = site.op
    if op is None or op.level not in ("function", "dispatch"):
        raise Refused("only operations of torch can be tried")
    args, kwargs = site.with_arguments(changes)
    return call(op.func, args, kwargs, real=real)


def call(func: Any, args: Any, kwargs: Any, *, real: bool = False) -> Any:
    """Call a function with every `Value` and `Stub` among its packed arguments made a tensor without values.

    Raises:
        Refused: it raised.
    """
    device = "cpu" if real else "meta"
    if real and _elements((args, kwargs)) > _REAL_ELEMENTS_MAX:
        raise Refused("too large to be tried on real tensors")
    with torch.random.fork_rng(devices=[]), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = _made((args, kwargs), device)
            return func(*made[0], **made[1])
        except Exception as error:  # whatever torch raises means that this does not pass
            raise Refused(str(error)) from error


def succeeds(attempt: Callable[[], Any]) -> bool:
    """Whether an attempt runs through."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            attempt()
        except Exception:  # noqa: BLE001 # whatever torch raises means that this does not pass
            return False
    return True


def passes(site: Site, changes: Mapping[int | str, Any], *, real: bool = False) -> bool:
    """Whether the failing operation passes with some of its arguments replaced."""
    try:
        result_of(site, changes, real=real)
    except Refused:
        return False
    return True


def _elements(packed: Any) -> int:
    if isinstance(packed, (Value, Stub)):
        count = 1
        for size in packed.shape or ():
            count *= int(size)
        return count
    if isinstance(packed, (list, tuple)):
        return sum(map(_elements, packed))
    return sum(map(_elements, packed.values())) if isinstance(packed, dict) else 0


def _made(packed: Any, device: str) -> Any:
    """Packed arguments with a tensor for each value."""
    if isinstance(packed, (Value, Stub)):
        return blank(packed, device)
    if isinstance(packed, (list, tuple)):
        parts = [_made(part, device) for part in packed]
        return parts if isinstance(packed, list) else tuple(parts)
    if isinstance(packed, dict):
        return {key: _made(part, device) for key, part in packed.items()}
    if isinstance(packed, slice):
        return slice(*(_made(part, device) for part in (packed.start, packed.stop, packed.step)))
    if isinstance(packed, Nested):
        return put_together(packed.template, lambda value: blank(value, device))
    return torch.device(device) if isinstance(packed, torch.device) else packed


def blank(value: Value | Stub, device: str) -> torch.Tensor:
    """A tensor of zeros with the shape, dtype and strides of a value.

    Raises:
        Refused: the value has no shape.
    """
    if value.shape is None:
        raise Refused("a tensor without a shape")
    stride = value.stride if isinstance(value, Stub) else stride_of(value)
    if stride is not None and device == "meta":
        return torch.empty_strided(tuple(value.shape), stride, dtype=value.dtype, device="meta")
    return torch.zeros(tuple(value.shape), dtype=value.dtype, device=device)


def stride_of(value: Value) -> tuple[int, ...] | None:
    """Strides of the tensor behind a value, while it exists."""
    tensor = value.tensor if value.tensor is not None else value.ref() if value.ref is not None else None
    if tensor is None or tensor.layout is not torch.strided or tuple(tensor.shape) != tuple(value.shape):
        return None
    return tuple(tensor.stride())
