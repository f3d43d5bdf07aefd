"""What can be told of a tensor without reading its values. Subclasses are looked at from below, not asked."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined] # missing in torch's stub

from torchatlas.record import Geometry, Value

PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
"""Classes that have no `__torch_function__` of their own to keep out of the way."""


def storage_key(tensor: torch.Tensor) -> int | None:
    """Address of the tensor's storage object; None for tensors without one (sparse, nested)."""
    try:
        if type(tensor) in PLAIN:
            return tensor.untyped_storage()._cdata
        with torch._C.DisableTorchFunctionSubclass():
            return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return None


def describe_tensor(value: Value, tensor: torch.Tensor) -> None:
    """Note what a tensor looks like on the value that stands for it."""
    value.dtype = tensor.dtype
    value.device = tensor.device
    value.requires_grad = tensor.requires_grad
    try:
        value.shape = tensor.shape
    except RuntimeError:  # nested tensors have no shape, uninitialised parameters neither
        value.shape = None


def geometry_of(tensor: torch.Tensor) -> Geometry | None:
    """Where in its storage a tensor lies, in elements; None for tensors that are not strided."""
    if type(tensor) not in PLAIN:
        with torch._C.DisableTorchFunctionSubclass():
            return _geometry(tensor)
    return _geometry(tensor)


def _geometry(tensor: torch.Tensor) -> Geometry | None:
    if tensor.layout is not torch.strided or tensor.is_nested or isinstance(tensor, UninitializedTensorMixin):
        return None
    offset: Any = tensor.storage_offset()  # torch says that it may be symbolic
    return Geometry(offset, tuple(tensor.shape), tensor.stride(), tensor.element_size())
