"""Numbers about tensors: range, mean, what is not finite, a histogram, and a slice small enough to be drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

HISTOGRAM_STEPS = 32
PICTURE_SIDE = 64
"""The most rows and columns of a picture; neighbours of larger slices are averaged."""


def numbers(tensor: torch.Tensor) -> dict[str, float | None]:
    """Statistics of a tensor's elements, of complex ones of their absolute values.

    Args:
        tensor: of any dtype and size.

    Returns:
        `min`, `max`, `mean` and `std` (population) of the finite elements, None where there are none; `zeros`, the
        share of all elements; `nan` and `inf`, counts.

    Raises:
        ValueError: the tensor has no values, being on the meta device or fake.
    """
    return _numbers(_flat(tensor))


def describe(tensor: torch.Tensor) -> dict[str, Any]:
    """Shape, dtype, the statistics of `numbers()`, and a histogram.

    Returns:
        `shape`, `dtype` (without `torch.`), `count` of elements, those of `numbers()`, and `histogram`: counts of
        finite elements in equal steps from `min` to `max`; empty where there are none.

    Raises:
        ValueError: the tensor has no values, being on the meta device or fake.
    """
    flat = _flat(tensor)
    finite = _finite(flat)
    counts = [] if finite.numel() == 0 else torch.histc(finite.float().cpu(), HISTOGRAM_STEPS).int().tolist()
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "count": tensor.numel(),
        **_numbers(flat),
        "histogram": counts,
    }


def picture(tensor: torch.Tensor, at: Sequence[int] | None = None) -> tuple[dict[str, Any], bytes] | None:
    """A slice over the last two axes, small enough to be drawn.

    Args:
        tensor: of any dtype and size.
        at: index on each axis before the last two; None for the middle of each. Indices beyond an axis mean its end.

    Returns:
        What the view must know (`rows`, `columns`, `low` and `high` of the finite numbers in it, `at`, `sizes`
        of the axes before the last two, `of`: size of the slice) and float32 numbers, row by row,
        little-endian. None for a tensor of fewer than two elements.

    Raises:
        ValueError: the tensor has no values, being on the meta device or fake.
    """
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
    known = _numbers(small.reshape(-1))
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
    values = tensor.detach()
    if values.is_nested:
        values = torch.cat([part.reshape(-1) for part in values.unbind()])
    if values.layout is not torch.strided:
        values = values.to_dense()
    if values.is_quantized:
        values = values.dequantize()
    values = values.resolve_conj().abs() if values.is_complex() else values
    # Half precision would overflow in sums; whole numbers have no mean.
    return values.reshape(-1).to(values.dtype if values.dtype is torch.float64 else torch.float32)


def _finite(flat: torch.Tensor) -> torch.Tensor:
    """The finite elements; the tensor itself where all are, as in almost every model."""
    if flat.numel() == 0 or torch.isfinite(torch.stack(torch.aminmax(flat))).all():
        return flat
    return flat[torch.isfinite(flat)]


def _numbers(flat: torch.Tensor) -> dict[str, float | None]:
    finite = _finite(flat)
    known: dict[str, float | None] = {"min": None, "max": None, "mean": None, "std": None}
    if finite.numel() > 0:
        low, high = torch.aminmax(finite)
        std, mean = torch.std_mean(finite, correction=0)
        if not torch.isfinite(std):  # squares of large float32 overflow
            std, mean = torch.std_mean(finite.double(), correction=0)
        known = {"min": low.item(), "max": high.item(), "mean": mean.item(), "std": std.item()}
    known = {name: value if value is None or math.isfinite(value) else None for name, value in known.items()}
    strange = flat.numel() - finite.numel()
    nan = int(torch.isnan(flat).sum()) if strange else 0
    zeros = (flat.numel() - int(torch.count_nonzero(flat))) / max(flat.numel(), 1)
    return {**known, "zeros": zeros, "nan": nan, "inf": strange - nan}
