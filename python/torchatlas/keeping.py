"""Keep values of a running forward as they were at one point of it."""

from __future__ import annotations

from typing import Any

import torch
from torch._C._functorch import get_unwrapped, is_functorch_wrapped_tensor

from torchatlas.bits import same_bits
from torchatlas.structure import Template, put_together, take_apart, walk
from torchatlas.tensors import PLAIN


class _Moment:
    """A tensor at one point of the forward.

    The copy is needed only if the tensor is written into later. That can't be known yet, and can't be made up for
    afterwards, so the copy is always made; it is dropped where it turns out not to be needed. torch's own copy-on-write
    (`torch._lazy_clone`) is no way out: a numpy array of the memory, made before, is cut off from the tensor by the
    next write and left without memory when the copy goes.
    """

    __slots__ = ("copy", "handle", "own", "total", "versions")

    def __init__(self, tensor: torch.Tensor, *, retain_grad: bool) -> None:
        self.own = tensor
        self.copy = tensor.clone()
        self.versions = _versions(tensor)
        self.total: torch.Tensor | None = None
        # The hook stays with what the tensor is now; `retain_grad()` would move on to what a later write makes of it.
        self.handle = tensor.register_hook(self._add) if retain_grad and tensor.requires_grad else None

    def _add(self, gradient: torch.Tensor) -> None:
        self.total = gradient.clone() if self.total is None else self.total + gradient
        self.copy.grad = self.total

    def settle(self) -> torch.Tensor:
        """The tensor itself if it still has its values, else the copy."""
        if not self._is_overwritten():
            if self.handle is not None:
                self.handle.remove()
                self.own.retain_grad()
            self.copy = self.own
        elif self.handle is not None:
            self.copy.retain_grad()
        return self.copy

    def _is_overwritten(self) -> bool:
        own = self.own
        if _versions(own) != self.versions:
            return True
        # No version counts a write through `.data` or numpy, nor any in inference mode.
        can_compare = type(own) in PLAIN and own.layout is torch.strided and not own.is_meta
        return can_compare and not is_functorch_wrapped_tensor(own) and not same_bits(own, self.copy)


def _versions(tensor: torch.Tensor) -> list[int]:
    """How often a tensor was written into; inside `vmap` and the like, the tensors that it wraps, too."""
    found = [] if tensor.is_inference() else [tensor._version]
    while is_functorch_wrapped_tensor(tensor):
        tensor = get_unwrapped(tensor)
        found.extend([] if tensor.is_inference() else [tensor._version])
    return found


class Kept:
    """A value, which may hold several tensors, at one point of the forward.

    Args:
        value: the value.
        retain_grad: whether the gradients of its tensors are wanted.
    """

    def __init__(self, value: Any, *, retain_grad: bool = False) -> None:
        self._value = value
        self._template: Template = take_apart(value, lambda tensor: _Moment(tensor, retain_grad=retain_grad))

    def settle(self) -> Any:
        """The value as it was; the user's own object where neither its tensors nor its lists have changed since."""
        moments = self._template.stand_ins()
        tensors = {id(moment): moment.settle() for moment in moments}
        before = [tensors[id(moment)] for moment in moments]
        now = [tensor for _, tensor in walk(self._value)]
        if len(now) == len(before) and all(one is other for one, other in zip(now, before, strict=True)):
            return self._value
        return put_together(self._template, lambda moment: tensors[id(moment)])
