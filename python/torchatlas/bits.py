"""Compare tensors bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch


class Digest(NamedTuple):
    """What tells the bits of a tensor from those of another."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    bits: int


def all_same(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    """Whether two lists of tensors are equal bit by bit."""
    return len(some) == len(others) and all(same_bits(a, b) for a, b in zip(some, others, strict=True))


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are equal bit by bit, NaN included."""
    if one.dtype != other.dtype or one.layout != other.layout or one.is_nested != other.is_nested:
        return False
    if one.is_nested:
        return all_same(list(one.unbind()), list(other.unbind()))
    if one.shape != other.shape or one.device != other.device:
        return False
    with torch.no_grad():
        some, others = as_bytes(one), as_bytes(other)
        if all(each.numel() % 8 == 0 and each.storage_offset() % 8 == 0 for each in (some, others)):
            some, others = some.view(torch.int64), others.view(torch.int64)  # several times as fast
        return torch.equal(some, others)


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The values of a tensor as bytes, in one dimension."""
    plain = tensor.detach()
    plain = plain.int_repr() if plain.is_quantized else plain
    plain = plain.to_dense() if plain.layout is not torch.strided else plain
    flat = plain.resolve_conj().resolve_neg().contiguous()
    # A tensor of one element is contiguous with any strides, and `reshape` would keep them.
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8)


def digest(tensor: torch.Tensor) -> Digest | None:
    """The digest of a tensor; None where it has no plain values to read."""
    is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    if not is_plain or tensor.is_nested or tensor.is_meta:
        return None
    with torch.no_grad():
        return Digest(tuple(tensor.shape), tensor.dtype, hash(as_bytes(tensor).cpu().numpy().tobytes()))
