"""Which tensors lie on each other in one storage: plain arithmetic on offsets, shapes and strides."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from torchatlas.record import Geometry

_ENUMERATE_UP_TO = 1 << 16
"""Elements up to which interleaved views are compared one by one; larger ones count as overlapping."""


def _span(geometry: Geometry) -> tuple[int, int]:
    """First byte and the byte after the last."""
    last = sum((size - 1) * stride for size, stride in zip(geometry.shape, geometry.stride, strict=True))
    return geometry.offset * geometry.itemsize, (geometry.offset + last + 1) * geometry.itemsize


def _count(geometry: Geometry) -> int:
    count = 1
    for size in geometry.shape:
        count *= size
    return count


def _is_dense(geometry: Geometry) -> bool:
    """Whether it fills its span without gaps and without standing on itself."""
    first, end = _span(geometry)
    pairs = sorted((stride, size) for size, stride in zip(geometry.shape, geometry.stride, strict=True) if size > 1)
    expected = 1
    for stride, size in pairs:
        if stride != expected:
            return False
        expected *= size
    return end - first == _count(geometry) * geometry.itemsize


def _offsets(geometry: Geometry) -> Iterator[int]:
    """Byte offset of every element."""
    offsets = [geometry.offset]
    for size, stride in zip(geometry.shape, geometry.stride, strict=True):
        offsets = [offset + step * stride for offset in offsets for step in range(size)]
    return (offset * geometry.itemsize for offset in offsets)


@functools.lru_cache(maxsize=4096)
def overlaps(one: Geometry, other: Geometry) -> bool:
    """Whether two tensors in one storage share an element. Where telling would take too long, they count as sharing."""
    if _count(one) == 0 or _count(other) == 0:
        return False
    (first, end), (other_first, other_end) = _span(one), _span(other)
    if end <= other_first or other_end <= first:
        return False
    if _is_dense(one) and _is_dense(other):
        return True
    if one.itemsize != other.itemsize or max(_count(one), _count(other)) > _ENUMERATE_UP_TO:
        return True
    taken = set(_offsets(one))
    return any(offset in taken for offset in _offsets(other))


@functools.lru_cache(maxsize=4096)
def covers(one: Geometry, other: Geometry) -> bool:
    """Whether every element of `other` is one of `one`, as far as that is seen at once; else False."""
    if one == other:
        return True
    (first, end), (other_first, other_end) = _span(one), _span(other)
    return _is_dense(one) and first <= other_first and other_end <= end
