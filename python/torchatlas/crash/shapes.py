"""Rules for shapes that must agree: broadcasting, joining, reshaping, splitting."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from torchatlas.crash.diagnosis import Changes, Diagnosis, Given, Remedy
from torchatlas.crash.origin import came_from, size_origin
from torchatlas.crash.site import Site, Stub, shape_text
from torchatlas.crash.trial import blank, stride_of
from torchatlas.record import Value

_ELEMENTWISE = {
    *("add", "sub", "mul", "div", "pow", "remainder", "floor_divide", "true_divide", "maximum", "minimum", "where"),
    *("eq", "ne", "lt", "le", "gt", "ge", "masked_fill", "lerp", "addcmul", "addcdiv", "logical_and", "logical_or"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "atan2", "fmod", "hypot", "copysign", "logaddexp", "xlogy", "clamp"),
    *("multiply", "divide", "subtract", "rsub", "copy", "broadcast_tensors", "cosine_similarity", "mse_loss"),
    *("l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "pairwise_distance"),
}  # fmt: skip
_BROADCAST_MESSAGE = re.compile(r"size of tensor \w+ \(\d+\) must match|not broadcastable|are incompatible|broadcast")
_MASKED = {"masked_fill", "where", "masked_select", "masked_scatter"}


def origins(site: Site, axes: Iterable[tuple[Value, int]]) -> str:
    """`; 3 comes from …; 4 comes from …`, each once."""
    found = [size_origin(site, value, axis) for value, axis in axes]
    told = list(dict.fromkeys(clause for clause in found if clause))
    return f"; {'; '.join(told)}" if told else ""


def broadcast(site: Site) -> Diagnosis | None:
    """Elementwise operations on shapes that do not broadcast."""
    if site.name not in _ELEMENTWISE and not _BROADCAST_MESSAGE.search(site.message):
        return None
    if site.op is None or site.op.name in ("setitem", "expand", "scaled_dot_product_attention"):
        return None
    operands = [value for value in site.op.reads if value.shape is not None]
    for number, right in enumerate(operands):
        for left in operands[:number]:
            clashes = _clashes(left, right)
            if clashes:
                return _broadcast_clash(site, left, right, clashes)
    return None


def _clashes(left: Value, right: Value) -> list[int]:
    """Dimensions, counted from the last as 1, where two shapes do not broadcast."""
    both = min(len(left.shape), len(right.shape))
    return [
        axis
        for axis in range(1, both + 1)
        if left.shape[-axis] != right.shape[-axis] and 1 not in (left.shape[-axis], right.shape[-axis])
    ]


def _broadcast_clash(site: Site, left: Value, right: Value, clashes: list[int]) -> Diagnosis:
    rank = max(len(left.shape), len(right.shape))
    told = " and ".join(
        f"dimension {rank - axis} is {left.shape[-axis]} and {right.shape[-axis]}" for axis in reversed(clashes)
    )
    verb = {"masked_fill": "masks", "where": "chooses from"}.get(site.name, "combines")
    first, second = (left, right)
    sentence = (
        f"{site.subject} {verb} {shape_text(first.shape)} from {site.maker(first)} with {shape_text(second.shape)} "
        f"from {site.maker(second)}, but {told}"
    )
    pairs = {(left.shape[-axis], right.shape[-axis]): axis for axis in clashes}  # equal pairs are told of once
    axes = [(value, len(value.shape) - axis) for axis in reversed(pairs.values()) for value in (left, right)]
    sentence += origins(site, axes)
    target = [max(_size(left, axis), _size(right, axis)) for axis in range(rank, 0, -1)]
    remedies = _broadcast_remedies(site, left, right)
    assumptions: list[Changes | Given] = [remedy.changes for remedy in remedies]
    if site.op is not None and site.op.name.endswith("_"):
        assumptions.append(Given(site.op.args[0]))
    else:
        assumptions.extend(_fitted(site, one, other) for one, other in ((left, right), (right, left)))
    facts = {"left": tuple(left.shape), "right": tuple(right.shape), "result": tuple(target), "clashes": len(clashes)}
    kind = "mask" if site.name in _MASKED else "broadcast"
    return Diagnosis(kind, sentence, facts, tuple(remedies), tuple(assumptions))


def _size(value: Value, axis: int) -> int:
    return int(value.shape[-axis]) if axis <= len(value.shape) else 1


def _fitted(site: Site, kept: Value, changed: Value) -> Changes:
    """Arguments in which one operand has the sizes of the other wherever they clash."""
    shape = list(changed.shape)
    for axis in _clashes(kept, changed):
        shape[-axis] = kept.shape[-axis]
    assert site.op is not None, "no operation failed"
    keys: list[int | str] = [position for position, arg in enumerate(site.op.args) if arg is changed]
    keys += [name for name, arg in site.op.kwargs.items() if arg is changed]
    return dict.fromkeys(keys, Stub.like(changed, shape))


def _broadcast_remedies(site: Site, left: Value, right: Value) -> list[Remedy]:
    """Turning two dimensions, or adding dimensions to the smaller operand, so that its own land on equal ones."""
    found: list[Remedy] = []
    for small, large in ((right, left), (left, right)):
        key = site.key_of(small)
        lacking = len(large.shape) - len(small.shape)
        for end in range(lacking, 0, -1):
            shape = (*small.shape, *[1] * end)
            if not _clash_shapes(shape, large.shape) and lacking > 0:
                index = ", ".join([":"] * len(small.shape) + ["None"] * end)
                text = f"`[{index}]` on {site.maker(small)}"
                found.append(Remedy(text, {key: Stub.like(small, shape)}))
                break
        if len(small.shape) == len(large.shape) >= 2:
            turned = (*small.shape[:-2], small.shape[-1], small.shape[-2])
            if not _clash_shapes(turned, large.shape):
                text = f"`.transpose(-2, -1)` on {site.maker(small)}"
                found.append(Remedy(text, {key: Stub.like(small, turned)}))
    return found[:2]


def _clash_shapes(one: Any, other: Any) -> bool:
    return any(a != b and 1 not in (a, b) for a, b in zip(reversed(tuple(one)), reversed(tuple(other)), strict=False))


def joined(site: Site) -> Diagnosis | None:
    """`cat` and `stack` of shapes that differ where they must not."""
    if site.op is None or site.name not in ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack"):
        return None
    values = list(site.op.reads)
    if len(values) < 2 or any(value.shape is None for value in values):
        return None
    first = next((value for value in values if tuple(value.shape) != (0,)), values[0])
    rank = len(first.shape)
    other = next((value for value in values if len(value.shape) != rank and tuple(value.shape) != (0,)), None)
    if other is not None:
        sentence = (
            f"{site.subject} joins tensors with different numbers of dimensions: {site.described(first)} has {rank}, "
            f"{site.described(other)} has {len(other.shape)}"
        )
        facts = {"shapes": tuple(tuple(value.shape) for value in values)}
        return Diagnosis("cat", sentence, facts, _added_dimension(site, first, other, values))
    return _joined_clash(site, first, values)


def _joined_clash(site: Site, first: Value, values: list[Value]) -> Diagnosis | None:
    rank = len(first.shape)
    dim = site.argument("dim", "axis", at=1, default=0)
    dim = {"hstack": min(1, rank - 1), "vstack": 0, "dstack": 2}.get(site.name, dim)
    if not isinstance(dim, int) or not -rank - 1 <= dim <= rank:
        return None
    free = None if site.name == "stack" else dim % max(1, rank)
    for value in values:
        clashes = [axis for axis in range(rank) if axis != free and value.shape[axis] != first.shape[axis]]
        if not clashes:
            continue
        told = " and ".join(f"dimension {axis} is {first.shape[axis]} and {value.shape[axis]}" for axis in clashes)
        rule = "equal shapes" if free is None else f"equal sizes except in dimension {free}"
        sentence = (
            f"{site.subject} needs {rule}, got {shape_text(first.shape)} from {site.maker(first)} and "
            f"{shape_text(value.shape)} from {site.maker(value)}: {told}"
        )
        pairs = {(first.shape[axis], value.shape[axis]): axis for axis in reversed(clashes)}
        sentence += origins(site, [(row, axis) for axis in reversed(pairs.values()) for row in (first, value)])
        shapes = tuple(tuple(row.shape) for row in values)
        assumptions = [_joined_like(site, pattern, values, free) for pattern in (first, value)]
        if site.name not in ("cat", "concat", "concatenate", "stack"):
            assumptions = []
        facts = {"shapes": shapes, "dimensions": tuple(clashes)}
        return Diagnosis("cat", sentence, facts, (), tuple(assumptions))
    return None


def _joined_like(site: Site, pattern: Value, values: list[Value], free: int | None) -> Changes:
    """The list of tensors with the sizes of one of them wherever they must be equal."""
    stubs = []
    for value in values:
        shape = list(pattern.shape)
        if free is not None:
            shape[free] = value.shape[free]
        stubs.append(Stub.like(value, shape))
    assert site.op is not None, "no operation failed"
    return {0: stubs} if site.op.args else {"tensors": stubs}


def _added_dimension(site: Site, first: Value, other: Value, values: list[Value]) -> tuple[Remedy, ...]:
    small, large = sorted((first, other), key=lambda value: len(value.shape))
    found = []
    if len(large.shape) - len(small.shape) == 1 and len(values) == 2:
        for axis in range(len(large.shape)):
            shape = (*small.shape[:axis], 1, *small.shape[axis:])
            stubs = [Stub.like(value, shape) if value is small else value for value in values]
            changes: Changes = {0: stubs} if site.op is not None and site.op.args else {"tensors": stubs}
            found.append(Remedy(f"`.unsqueeze({axis})` on {site.maker(small)}", changes))
    return tuple(found)


def reshape(site: Site) -> Diagnosis | None:
    """`view` and `reshape` to another number of elements, or of memory that is not contiguous."""
    data = site.tensor("self", "input", at=0)
    if site.op is None or site.name not in ("view", "reshape") or data is None:
        return None
    wanted = _requested(site)
    if wanted is None:
        return None
    count, known = math.prod(data.shape), math.prod(size for size in wanted if size != -1)
    has_hole = -1 in wanted
    if (not has_hole and count == known) or (has_hole and known > 0 and count % known == 0):
        return _not_contiguous(site, data, wanted)
    shape = shape_text(wanted)
    elements = f"{'·'.join(map(str, data.shape)) or 1} = {count} elements"
    needed = (
        f"which is no multiple of {known}"
        if has_hole
        else f"and {'·'.join(map(str, wanted)) or 1} = {known} are needed"
    )
    sentence = f"{site.subject} can't give {shape}: {site.described(data)} has {elements}, {needed}"
    sentence += origins(site, ((data, axis) for axis in _telling_axes(data, wanted)))
    remedies = _reshape_remedies(site, data, wanted)
    facts = {"requested": tuple(wanted), "elements": count, "needed": known, "input": tuple(data.shape)}
    likely = [_filled(data, wanted), *_fitting(count, wanted, int(data.shape[0]) if data.shape else 1)]
    assumptions = tuple(Given(Stub.like(data, shape)) for shape in likely)
    return Diagnosis("reshape", sentence, facts, tuple(remedies), assumptions)


def _requested(site: Site) -> list[int] | None:
    """The shape that was asked for; None where it is a dtype or another tensor's."""
    assert site.op is not None, "no operation failed"
    given: Any = site.op.args[1:] or (site.argument("shape", "size", default=()),)
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = tuple(given[0])
    if not given or not all(isinstance(size, int) for size in given):
        return None
    return list(given)


def _telling_axes(data: Value, wanted: list[int]) -> list[int]:
    """Dimensions of the input that the requested shape does not repeat at the same place."""
    same = [axis for axis, size in enumerate(data.shape) if axis < len(wanted) and wanted[axis] == size]
    return [axis for axis in range(len(data.shape)) if axis not in same and data.shape[axis] != 1][:3]


def _filled(data: Value, wanted: list[int]) -> list[int]:
    """The requested shape with a size for -1: the batch where it stands first, else what nearly fits."""
    known = math.prod(size for size in wanted if size != -1)
    rest = max(1, math.prod(data.shape) // max(1, known))
    first = int(data.shape[0]) if data.shape and wanted and wanted[0] == -1 else rest
    return [first if size == -1 else size for size in wanted]


def _fitting(count: int, wanted: list[int], batch: int) -> list[list[int]]:
    """Shapes like the requested one that have the right number of elements: one size changed, or two equal ones."""
    asked = [batch if size == -1 else size for size in wanted]
    found = []
    for position in range(len(asked) - 1, -1, -1):
        rest = math.prod(asked[:position] + asked[position + 1 :])
        if rest > 0 and count % rest == 0:
            found.append([*asked[:position], count // rest, *asked[position + 1 :]])
    if len(asked) >= 2 and asked[-1] == asked[-2]:
        area = count // max(1, math.prod(asked[:-2]))
        side = math.isqrt(area)
        if side * side * math.prod(asked[:-2]) == count:
            found.insert(0, [*asked[:-2], side, side])
    return found


def _reshape_remedies(site: Site, data: Value, wanted: list[int]) -> list[Remedy]:
    shape = tuple(data.shape)
    if len(wanted) == 2 and len(shape) > 2:
        text = f"`.flatten(1)`, which gives {shape_text((shape[0], math.prod(shape[1:])))},"
        return [Remedy(text, attempt=lambda: blank(data, "meta").flatten(1))]
    for position in range(len(wanted)):
        others = math.prod(size for place, size in enumerate(wanted) if place != position)
        if -1 not in wanted and others > 0 and math.prod(shape) % others == 0 and others != 1:
            fixed = [*wanted[:position], math.prod(shape) // others, *wanted[position + 1 :]]
            changes = _reshape_changes(site, fixed)
            return [Remedy(f"`.{site.name}{tuple(fixed)}`", changes)] if changes is not None else []
    return []


def _reshape_changes(site: Site, shape: list[int]) -> Changes | None:
    assert site.op is not None, "no operation failed"
    if len(site.op.args) == 2 and isinstance(site.op.args[1], (tuple, list)):
        return {1: tuple(shape)}
    return {position + 1: size for position, size in enumerate(shape)} if len(site.op.args) == len(shape) + 1 else None


def _not_contiguous(site: Site, data: Value, wanted: list[int]) -> Diagnosis | None:
    if site.name != "view" or "stride" not in site.message:
        return None
    turned = _turning_op(data)
    by = "" if turned is None else f"; {site.who(turned)} has turned its dimensions"
    strides = stride_of(data)
    told = "" if strides is None else f" with strides {shape_text(strides)}"
    sentence = (
        f"{site.subject} can't give {shape_text(wanted)} without a copy: {site.described(data)} is not contiguous"
        f"{told}{by}"
    )
    packed = Stub(tuple(data.shape), data.dtype, data.device)
    remedy = Remedy("`.reshape(…)` instead of `.view(…)`", {site.key_of(data): packed})
    facts = {"requested": tuple(wanted), "input": tuple(data.shape)}
    return Diagnosis("view", sentence, facts, (remedy,), (remedy.changes,))


def _turning_op(value: Value) -> Any:
    """The operation that last turned dimensions on the way to a value, over what keeps the memory."""
    for _ in range(50):
        op = value.op
        if op is None or not op.reads:
            return None
        if op.name in ("transpose", "permute", "t", "mT", "T", "swapaxes", "movedim", "expand"):
            return op
        value = op.reads[0]
    return None


def unflatten(site: Site) -> Diagnosis | None:
    """`unflatten` into sizes whose product is another."""
    data, sizes = site.tensor("self", "input", at=0), site.argument("sizes", "unflattened_size", at=2)
    dim = site.argument("dim", at=1)
    if site.name != "unflatten" or data is None or not isinstance(sizes, (tuple, list)) or not isinstance(dim, int):
        return None
    if not -len(data.shape) <= dim < len(data.shape):
        return None
    axis = dim % len(data.shape)
    sentence = (
        f"{site.subject} can't split dimension {axis} into {shape_text(sizes)}, the product of which is "
        f"{math.prod(sizes)}; it is {data.shape[axis]} {came_from(site, data, axis)}"
    )
    result = Stub.like(data, (*data.shape[:axis], *map(abs, sizes), *data.shape[axis + 1 :]))
    facts = {"sizes": tuple(sizes), "got": int(data.shape[axis])}
    return Diagnosis("reshape", sentence, facts, (), (Given(result),))


def expand(site: Site) -> Diagnosis | None:
    """`expand` of a dimension that is not 1."""
    data = site.tensor("self", "input", at=0)
    if site.op is None or site.name not in ("expand", "expand_as", "broadcast_to") or data is None:
        return None
    other = site.tensor("other", at=1)
    wanted = list(other.shape) if other is not None else _requested(site)
    if wanted is None or len(wanted) < len(data.shape):
        return None
    offset = len(wanted) - len(data.shape)
    for axis, size in enumerate(data.shape):
        asked = wanted[offset + axis]
        if asked not in (-1, size) and size != 1:
            sentence = (
                f"{site.subject} can't expand {shape_text(data.shape)} to {shape_text(wanted)}: dimension {axis} "
                f"must be 1 or {asked}, got {size} {came_from(site, data, axis)}"
            )
            filled = [(data.shape[i - offset] if s == -1 else s) for i, s in enumerate(wanted)]
            facts = {"requested": tuple(wanted), "input": tuple(data.shape), "dimension": axis}
            return Diagnosis("broadcast", sentence, facts, (), (Given(Stub.like(data, filled)),))
    return None


def split(site: Site) -> Diagnosis | None:
    """`split` into sizes that do not add up."""
    data, sizes = (
        site.tensor("self", "tensor", "input", at=0),
        site.argument("split_size", "split_size_or_sections", "split_sizes", at=1),
    )
    dim = site.argument("dim", at=2, default=0)
    if not site.name.startswith("split") or data is None or not isinstance(sizes, (tuple, list)):
        return None
    if not isinstance(dim, int) or not -len(data.shape) <= dim < len(data.shape):
        return None
    axis = dim % len(data.shape)
    total = sum(sizes)
    if total == data.shape[axis]:
        return None
    sentence = (
        f"{site.subject} into {list(sizes)} needs {total} in dimension {axis}, got {data.shape[axis]} "
        f"{came_from(site, data, axis)}"
    )
    parts = tuple(Stub.like(data, (*data.shape[:axis], size, *data.shape[axis + 1 :])) for size in sizes)
    facts = {"sizes": tuple(sizes), "needed": total, "got": int(data.shape[axis])}
    return Diagnosis("split", sentence, facts, (), (Given(parts),))


def assigned(site: Site) -> Diagnosis | None:
    """`x[...] = y` where the shape of `y` does not fit."""
    if site.op is None or site.op.name != "setitem" or len(site.op.args) < 3:
        return None
    target, value = site.op.args[0], site.op.args[2]
    found = re.search(r"Target sizes: \[([\d, ]*)\]|shape mismatch", site.message)
    if not isinstance(target, Value) or not isinstance(value, Value) or found is None:
        return None
    place = f"a part of shape ({found[1]})" if found[1] is not None else "a part"
    sentence = f"{site.subject} writes {site.described(value)} into {place} of {site.described(target)}"
    facts = {"target": tuple(target.shape or ()), "value": tuple(value.shape or ())}
    return Diagnosis("broadcast", sentence, facts, (), (Given(None),))


def dimension(site: Site) -> Diagnosis | None:
    """A `dim` that the tensor does not have, or an order of dimensions of another length."""
    data = site.tensor("self", "input", at=0)
    if data is None or site.op is None:
        return None
    rank = len(data.shape)
    found = re.search(r"Dimension out of range.*but got (-?\d+)", site.message)
    if found is not None:
        sentence = (
            f"{site.subject} asks for dimension {found[1]} of {site.described(data)}, which has {rank} dimensions"
        )
        return Diagnosis("dimension", sentence, {"dimension": int(found[1]), "dimensions": rank})
    if site.name == "permute":
        order = site.argument("dims")
        dims = list(order) if isinstance(order, (tuple, list)) else [d for d in site.op.args[1:] if isinstance(d, int)]
        if len(site.op.args) == 2 and isinstance(site.op.args[1], (tuple, list)):
            dims = list(site.op.args[1])
        if dims and len(dims) != rank:
            order_text = f"{len(dims)} dimensions {shape_text(dims)}"
            sentence = f"{site.subject} orders {order_text}, but {site.described(data)} has {rank}"
            return Diagnosis("dimension", sentence, {"order": tuple(dims), "dimensions": rank})
    if site.name == "repeat" and "dims" in site.message:
        sentence = f"{site.subject} needs a number for each of the {rank} dimensions of {site.described(data)}"
        return Diagnosis("dimension", sentence, {"dimensions": rank})
    return None


RULES = (joined, reshape, unflatten, expand, split, assigned, dimension, broadcast)
