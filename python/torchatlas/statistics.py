"""Numbers about tensors: range, mean, what is not finite, a histogram, and a slice small enough to be drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

HISTOGRAM_STEPS = 32
PICTURE_SIDE = 64
"""The most rows and columns of a picture; neighbours of larger slices are averaged."""
_DENSE_MAX = 1 << 28
"""The most elements that a sparse tensor may have to be looked at as a dense one."""
_STEEP = 1e30
"""Numbers beyond this are scaled before they are counted: the distance of the ends would overflow."""
# Whole numbers that float32 can't tell apart.
_WIDE = frozenset((torch.float64, torch.int32, torch.int64, torch.uint32, torch.uint64))


def numbers(tensor: torch.Tensor) -> dict[str, float | None]:
    """Statistics of a tensor's elements, of complex ones of their absolute values.

    Args:
        tensor: of any dtype and size.

    Returns:
        `min`, `max`, `mean` and `std` (population) of the finite elements, None where there are none; `zeros`, the
        share of all elements; `nan` and `inf`, counts.

    Raises:
        ValueError: the tensor has no values, being on the meta device or fake, or torch can't make them out.
    """
    flat = _flat(tensor)
    return _numbers(flat, _finite(flat))


def describe(tensor: torch.Tensor) -> dict[str, Any]:
    """Shape, dtype, the statistics of `numbers()`, and a histogram.

    Returns:
        `shape` (-1 for the ragged axes of a nested tensor), `dtype` (without `torch.`), `count` of elements, those of
        `numbers()`, and `histogram`: counts of finite elements in equal steps from `min` to `max`; empty where there
        are none.

    Raises:
        ValueError: the tensor has no values, being on the meta device or fake, or torch can't make them out.
    """
    flat = _flat(tensor)
    finite = _finite(flat)
    known = _numbers(flat, finite)
    return {
        "shape": _ragged_shape(tensor) if tensor.is_nested else list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "count": flat.numel(),
        **known,
        "histogram": _histogram(finite, known),
    }


def picture(tensor: torch.Tensor, at: Sequence[int] | None = None) -> tuple[dict[str, Any], bytes] | None:
    """A slice over the last two axes, small enough to be drawn.

    Args:
        tensor: of any dtype and size.
        at: index on each axis before the last two; None for the middle of each. Indices beyond an axis mean its end.

    Returns:
        What the view must know (`rows`, `columns`, `low` and `high` of the finite numbers in it, `at`, `sizes`
        of the axes before the last two, `of`: size of the slice) and float32 numbers, row by row,
        little-endian. None for a tensor of fewer than two elements, and for a nested one.

    Raises:
        ValueError: the tensor has no values, being on the meta device or fake, or torch can't make them out.
    """
    if tensor.is_nested:
        return None
    flat = _flat(tensor)
    if flat.numel() < 2:
        return None
    grid = flat.reshape(tensor.shape if tensor.dim() > 1 else (1, -1))
    sizes = list(grid.shape[:-2])
    indices = [size // 2 for size in sizes] if at is None or len(at) != len(sizes) else list(at)
    indices = [min(max(int(index), 0), size - 1) for index, size in zip(indices, sizes, strict=True)]
    shown = grid[tuple(indices)].float().cpu()
    rows, columns = (min(size, PICTURE_SIDE) for size in shown.shape)
    is_small = (rows, columns) == tuple(shown.shape)
    small = shown if is_small else torch.nn.functional.adaptive_avg_pool2d(shown[None], (rows, columns))[0]
    row = small.reshape(-1)
    known = _numbers(row, _finite(row))
    low, high = known["min"], known["max"]
    about = {
        "rows": rows,
        "columns": columns,
        "low": 0.0 if low is None else low,
        "high": 0.0 if high is None else high,
        "at": indices,
        "sizes": sizes,
        "of": list(shown.shape),
    }
    return about, small.contiguous().numpy().astype("<f4").tobytes()


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """All elements in one row, as real numbers."""
    if tensor.is_meta or hasattr(tensor, "fake_mode"):
        raise ValueError("there are no values: the tensor is on the meta device, or fake")
    if tensor.layout is not torch.strided and not tensor.is_nested and tensor.numel() > _DENSE_MAX:
        raise ValueError(f"a sparse tensor of {tensor.numel():,} elements is too large to be looked at as a dense one")
    try:
        return _converted(tensor.detach())
    except (NotImplementedError, TypeError) as error:  # dtypes and subclasses that torch itself can't convert
        dtype = str(tensor.dtype).removeprefix("torch.")
        raise ValueError(f"torch can't turn this {type(tensor).__name__} of {dtype} into numbers: {error}") from error


def _converted(values: torch.Tensor) -> torch.Tensor:
    if values.is_nested:
        parts = [part.reshape(-1) for part in values.unbind()]
        values = torch.cat(parts) if parts else torch.empty(0, dtype=values.dtype, device=values.device)
    if values.layout is not torch.strided:
        values = values.to_dense()
    if values.is_quantized:
        values = values.dequantize()
    values = values.resolve_conj().abs() if values.is_complex() else values
    # Half precision would overflow in sums; whole numbers have no mean. Apple's GPUs have no float64.
    is_wide = values.dtype in _WIDE and values.device.type != "mps"
    return values.reshape(-1).to(torch.float64 if is_wide else torch.float32)


def _ragged_shape(tensor: torch.Tensor) -> list[int]:
    """Shape of a nested tensor: axes on which its parts differ are -1."""
    parts = [part.shape for part in tensor.unbind()]
    return [len(parts), *(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*parts, strict=True))]


def _histogram(finite: torch.Tensor, known: dict[str, float | None]) -> list[int]:
    low, high = known["min"], known["max"]
    if low is None or high is None:
        return []
    largest = max(abs(low), abs(high))
    return torch.histc((finite / largest if largest > _STEEP else finite).cpu(), HISTOGRAM_STEPS).int().tolist()


def _finite(flat: torch.Tensor) -> torch.Tensor:
    """The finite elements; the tensor itself where all are, as in almost every model."""
    if flat.numel() == 0 or torch.isfinite(torch.stack(torch.aminmax(flat))).all():
        return flat
    return flat[torch.isfinite(flat)]


def _numbers(flat: torch.Tensor, finite: torch.Tensor) -> dict[str, float | None]:
    known: dict[str, float | None] = {"min": None, "max": None, "mean": None, "std": None}
    if finite.numel() > 0:
        low, high = torch.aminmax(finite)
        std, mean = torch.std_mean(finite, correction=0)
        if not torch.isfinite(std):  # squares of large float32 overflow
            wide = finite.double()
            std, mean = wide.std(correction=0), wide.mean()
        known = {"min": low.item(), "max": high.item(), "mean": mean.item(), "std": std.item()}
    known = {name: value if value is None or math.isfinite(value) else None for name, value in known.items()}
    strange = flat.numel() - finite.numel()
    nan = int(torch.isnan(flat).sum()) if strange else 0
    zeros = (flat.numel() - int(torch.count_nonzero(flat))) / max(flat.numel(), 1)
    return {**known, "zeros": zeros, "nan": nan, "inf": strange - nan}
