"""Rules for convolutions and pooling: channels, dimensions, inputs smaller than the kernel."""

from __future__ import annotations

import re
from typing import Any

from torchatlas.crash.diagnosis import Changes, Diagnosis, Remedy
from torchatlas.crash.origin import came_from, root_of
from torchatlas.crash.site import Site, Stub, class_text, shape_text
from torchatlas.record import Value

_CONV = re.compile(r"conv(_transpose)?([123])d")
_POOL = re.compile(r"(max|avg|lp)_pool([123])d(_with_indices)?")
_LAYOUTS = {1: "(batch, channels, length)", 2: "(batch, channels, height, width)"}
_LAYOUT_3D = "(batch, channels, depth, height, width)"


def conv(site: Site) -> Diagnosis | None:
    """Convolutions: number of dimensions, channels, size."""
    found = _CONV.fullmatch(site.name)
    data, weight = site.tensor("input", at=0), site.tensor("weight", at=1)
    if found is None or data is None or weight is None:
        return None
    rank, is_transposed = int(found[2]), bool(found[1])
    if len(data.shape) not in (rank + 1, rank + 2):
        return _dimensions(site, data, weight, rank, is_transposed)
    groups = site.argument("groups", default=1)
    expected = int(weight.shape[0]) if is_transposed else int(weight.shape[1]) * int(groups)
    axis = len(data.shape) - rank - 1
    if data.shape[axis] != expected:
        return _channels(site, data, weight, axis, expected, rank, is_transposed)
    return None if is_transposed else _too_small_for_conv(site, data, weight, rank)


def _dimensions(site: Site, data: Value, weight: Value, rank: int, is_transposed: bool) -> Diagnosis:
    layout = _LAYOUTS.get(rank, _LAYOUT_3D)
    count = len(data.shape)
    sentence = (
        f"{site.subject} expects {rank + 2} dimensions {layout}, or {rank + 1} without batch, got {count} from "
        f"{site.described(data)}"
    )
    key = site.key_of(data)
    expected = int(weight.shape[0]) if is_transposed else int(weight.shape[1]) * int(site.argument("groups", default=1))
    remedies = []
    if count == rank:
        remedies.append(Remedy("`.unsqueeze(0)` on its input", {key: Stub.like(data, (1, *data.shape))}))
    if count == rank + 3:
        remedies.append(Remedy("`.flatten(0, 1)` on its input", {key: _merged(data)}))
    sizes = [*data.shape[-rank:]] if count >= rank else [8] * rank
    plain: Changes = {key: Stub.like(data, (data.shape[0], expected, *sizes))}
    assumptions: tuple[Changes, ...] = (*(remedy.changes for remedy in remedies), plain)
    return Diagnosis("conv", sentence, {"dimensions": count, "expected": rank + 2}, tuple(remedies), assumptions)


def _merged(data: Value) -> Stub:
    return Stub.like(data, (data.shape[0] * data.shape[1], *data.shape[2:]))


def _channels(
    site: Site, data: Value, weight: Value, axis: int, expected: int, rank: int, is_transposed: bool
) -> Diagnosis:
    got = int(data.shape[axis])
    attribute = site.attribute("in_channels") or f" (its weight is {site.described(weight)})"
    channels = f"{expected} input channel{'s' * (expected != 1)}"
    sentence = f"{site.subject} expects {channels}{attribute}, got {got} {came_from(site, data, axis)}"
    key = site.key_of(data)
    remedies = []
    fixed = _moved(data, axis, expected, rank)
    if fixed is not None:
        remedies.append(Remedy(f"`{fixed[0]}` on its input", {key: fixed[1]}))
    if expected == 1 and len(data.shape) == rank + 1:
        alone = Stub.like(data, (data.shape[0], 1, *data.shape[1:]))
        remedies.append(Remedy("`.unsqueeze(1)` on its input", {key: alone}))
    module = site.own_module
    groups = site.argument("groups", default=1)
    if module is not None and groups == 1:
        out = int(weight.shape[1] if is_transposed else weight.shape[0])
        shape = (got, out, *weight.shape[2:]) if is_transposed else (out, got, *weight.shape[2:])
        text = f"`{class_text(module)}({got}, {out}, …)`"
        remedies.append(Remedy(text, {site.key_of(weight): Stub.like(weight, shape)}))
    fitting = [*data.shape[:axis], expected, *data.shape[axis + 1 :]]
    assumptions: list[Changes] = [remedy.changes for remedy in remedies if key in remedy.changes]
    assumptions.append({key: Stub.like(data, fitting)})
    facts = {"expected": expected, "got": got, "input": tuple(data.shape), "weight": tuple(weight.shape)}
    return Diagnosis("conv", sentence, facts, tuple(remedies), tuple(assumptions))


def _moved(data: Value, axis: int, expected: int, rank: int) -> tuple[str, Stub] | None:
    """The input with its last dimension as channels, where that is how many there are to be."""
    last = len(data.shape) - 1
    if data.shape[last] != expected or last == axis or looks_channels_first(data.shape):
        return None
    shape = [*data.shape[:axis], data.shape[last], *data.shape[axis:last]]
    if rank == 1:
        return f".transpose({axis}, {last})", Stub.like(data, shape)
    order = ", ".join(map(str, [*range(axis), last, *range(axis, last)]))
    return f".permute({order})", Stub.like(data, shape)


def looks_channels_first(shape: Any) -> bool:
    """Whether (batch, a, b, b) speaks for channels in front, as square images have them."""
    return len(shape) == 4 and shape[2] == shape[3] and shape[1] != shape[2]


def _per_axis(given: Any, rank: int, default: int) -> list[int] | None:
    """An argument such as `kernel_size` as one number per spatial dimension; None where it is text."""
    if given is None or given == [] or given == ():
        return [default] * rank
    if isinstance(given, int):
        return [given] * rank
    if isinstance(given, (tuple, list)) and all(isinstance(part, int) for part in given):
        return list(given) * rank if len(given) == 1 else list(given)
    return None


def _too_small_for_conv(site: Site, data: Value, weight: Value, rank: int) -> Diagnosis | None:
    padding = _per_axis(site.argument("padding", at=4), rank, 0)
    dilation = _per_axis(site.argument("dilation", at=5), rank, 1)
    if padding is None or dilation is None:
        return None
    kernel = [int(size) for size in weight.shape[2:]]
    return _too_small(site, data, rank, kernel, padding, dilation)


def pool(site: Site) -> Diagnosis | None:
    """Pooling: number of dimensions, inputs smaller than the window."""
    found = _POOL.fullmatch(site.name)
    data = site.tensor("input", "self", at=0)
    if found is None or data is None:
        return None
    rank = int(found[2])
    if len(data.shape) not in (rank + 1, rank + 2):
        layout = _LAYOUTS.get(rank, _LAYOUT_3D)
        sentence = (
            f"{site.subject} expects {rank + 2} dimensions {layout}, or {rank + 1} without batch, got "
            f"{len(data.shape)} from {site.described(data)}"
        )
        return Diagnosis("pool", sentence, {"dimensions": len(data.shape), "expected": rank + 2})
    kernel = _per_axis(site.argument("kernel_size", at=1), rank, 1)
    padding = _per_axis(site.argument("padding", at=3), rank, 0)
    dilation = _per_axis(site.argument("dilation", at=4) if found[1] == "max" else None, rank, 1)
    if kernel is None or padding is None or dilation is None:
        return None
    return _too_small(site, data, rank, kernel, padding, dilation)


def _too_small(
    site: Site, data: Value, rank: int, kernel: list[int], padding: list[int], dilation: list[int]
) -> Diagnosis | None:
    needed = [d * (k - 1) + 1 - 2 * p for k, p, d in zip(kernel, padding, dilation, strict=True)]
    sizes = [int(size) for size in data.shape[-rank:]]
    if all(size >= least for size, least in zip(sizes, needed, strict=True)):
        return None
    first = len(data.shape) - rank
    roots = [root_of(data, first + axis) for axis in range(rank)]
    origin = ""
    if all(root.op is None and root.value.kind == "input" and root.is_resized for root in roots):
        start = "×".join(str(int(root.value.shape[root.axis])) for root in roots)
        owner = "the input's" if len(site.record.inputs) == 1 else f"the input `{roots[0].value.name}`'s"
        origin = f"; the steps before it have made this of {owner} {start}"
    window = "×".join(map(str, kernel))
    what = "kernel" if site.name.startswith("conv") else "window"
    least = "×".join(str(max(1, size)) for size in needed)
    sentence = (
        f"{site.subject} needs an input of at least {least} (its {what} is {window}"
        f"{', padding ' + '×'.join(map(str, padding)) if any(padding) else ''}), got {'×'.join(map(str, sizes))} from "
        f"{site.described(data)}{origin}"
    )
    enough = [max(size, least_size) for size, least_size in zip(sizes, needed, strict=True)]
    fitting: Changes = {site.key_of(data): Stub.like(data, (*data.shape[:first], *enough))}
    facts = {"needed": tuple(needed), "got": tuple(sizes), "input": tuple(data.shape), "kernel": tuple(kernel)}
    return Diagnosis("too small", sentence, facts, (), (fitting,))


def pixel_shuffle(site: Site) -> Diagnosis | None:
    """`pixel_shuffle` with channels that are no multiple of the squared factor."""
    data, factor = site.tensor("input", "self", at=0), site.argument("upscale_factor", at=1)
    if site.name != "pixel_shuffle" or data is None or not isinstance(factor, int) or len(data.shape) < 3:
        return None
    channels = int(data.shape[-3])
    if channels % factor**2 == 0:
        return None
    sentence = (
        f"{site.subject} needs a multiple of {factor**2} channels (upscale factor {factor}, squared), got {channels} "
        f"{came_from(site, data, len(data.shape) - 3)}"
    )
    more = -(-channels // factor**2) * factor**2
    fitting: Changes = {site.key_of(data): Stub.like(data, (*data.shape[:-3], more, *data.shape[-2:]))}
    return Diagnosis(
        "conv", sentence, {"channels": channels, "factor": factor, "input": shape_text(data.shape)}, (), (fitting,)
    )


RULES = (conv, pool, pixel_shuffle)
