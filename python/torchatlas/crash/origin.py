"""Where a size comes from: followed back through the record until something sets it, and told in words."""

from __future__ import annotations

from dataclasses import dataclass

from torchatlas.crash.site import Site, is_torch_module, shape_text
from torchatlas.crash.steps import Axis, Made, Pass, Product, Sized, step_back
from torchatlas.record import Op, Value

_DEPTH_MAX = 3
_SUMMANDS_MAX = 4


@dataclass(frozen=True)
class Root:
    """Where the way back along one axis ends.

    Attributes:
        size: the size that was asked for.
        value, axis: the value there and its axis.
        op: the operation that sets the size; None for an input, parameter or other leaf.
        why: what sets it, for example "its `out_channels`".
        parts: the axes it is combined of, where it is a product or a sum.
        sign: `·` or `+`, how they are combined.
        is_resized: whether the size changed on the way, as by a stride.
    """

    size: int
    value: Value
    axis: int
    op: Op | None
    why: str = ""
    parts: tuple[Axis, ...] = ()
    sign: str = ""
    is_resized: bool = False


def root_of(value: Value, axis: int) -> Root:
    """Follow one axis of a value back to what sets its size."""
    size = int(value.shape[axis])
    is_resized = False
    while (op := value.op) is not None:
        step = step_back(op, value, axis)
        if isinstance(step, (Pass, Sized)):
            is_resized = is_resized or step.axis[0].shape[step.axis[1]] != value.shape[axis]
            value, axis = step.axis
        elif isinstance(step, Made):
            return Root(size, value, axis, op, step.why, is_resized=is_resized)
        else:
            sign = "·" if isinstance(step, Product) else "+"
            return Root(size, value, axis, op, "", step.axes, sign, is_resized)
    return Root(size, value, axis, value.op, is_resized=is_resized)


def came_from(site: Site, value: Value, axis: int) -> str:
    """Tell in words where a value and its size along an axis come from.

    Returns:
        A phrase to follow "got 192", for example "from `pool.flatten` (1, 192) = (1, 64, 3, 1) flattened; 64 channels
        come from `conv3` (its `out_channels`), 3×1 from the input's 96×32".
    """
    value, axis = _outer_axis(site, value, axis)
    if value.op is None:
        return f"from {site.described(value)}"
    root = root_of(value, axis)
    text = f"from {site.described(value)}"
    if root.op is value.op and root.sign == "·":
        source = root.parts[0][0]
        clauses = _parts(site, root, 0)
        return f"{text} = {shape_text(source.shape)} flattened{_join(clauses)}"
    if root.op is value.op and not root.parts:
        return f"{text}{_why(site, root)}"
    return f"{text}; {_clause(site, root, 0)}"


def _outer_axis(site: Site, value: Value, axis: int) -> Axis:
    """The axis of what came into the failing torch module that an axis of the given value is."""
    outer = site.outer(value)
    while value is not outer and value.op is not None:
        step = step_back(value.op, value, axis)
        if not isinstance(step, Pass):
            break
        value, axis = step.axis
    return value, axis


def _join(clauses: list[str]) -> str:
    return "; " + ", ".join(clauses) if clauses else ""


def size_origin(site: Site, value: Value, axis: int) -> str:
    """Tell in words where the size of one axis comes from; "" where the value itself is all that can be named."""
    root = root_of(value, axis)
    if root.op is None and value.op is None:
        return ""
    return _clause(site, root, 0)


def _clause(site: Site, root: Root, depth: int) -> str:
    """`64 channels come from `conv3` (its `out_channels`)`."""
    if root.parts and depth < _DEPTH_MAX:
        return _combined(site, root, depth)
    is_channel = root.op is not None and root.op.name.startswith("conv") and bool(root.why)
    subject = f"{root.size} channels come" if is_channel and root.size > 1 else f"{root.size} comes"
    return f"{subject} from {_place(site, root)}"


def _place(site: Site, root: Root) -> str:
    """The end of the way back, in words."""
    if root.op is None:
        if root.value.kind == "input":
            return _input_place(site, root.value, (root.axis,), root.is_resized)
        return site.described(root.value)
    return site.who(root.op) + _why(site, root)


def _input_place(site: Site, value: Value, axes: tuple[int, ...], is_resized: bool) -> str:
    sizes = "×".join(str(int(value.shape[axis])) for axis in axes)
    if is_resized:
        return f"the input's {sizes}" if len(site.record.inputs) == 1 else f"the {sizes} of the input `{value.name}`"
    where = f"dimension {axes[0]}" if len(axes) == 1 else f"dimensions {', '.join(map(str, axes))}"
    return f"{where} of the input `{value.name}` {shape_text(value.shape)}"


def _why(site: Site, root: Root) -> str:
    """` (its `out_channels`)`, where that is an attribute of a torch module; else the weight that sets the size."""
    if root.op is None or not root.why:
        return ""
    if is_torch_module(root.op.call.module):
        return f" ({root.why})"
    weight = next((value for value in root.op.reads if value.kind == "parameter"), None)
    return "" if weight is None else f" (its weight `{weight.name}` is {shape_text(weight.shape)})"


def _combined(site: Site, root: Root, depth: int) -> str:
    assert root.op is not None, "only an operation combines sizes"
    sizes = root.sign.join(str(int(value.shape[axis])) for value, axis in root.parts)
    clauses = _parts(site, root, depth)
    if root.sign == "·":
        source = root.parts[0][0]
        text = f"{root.size} = {sizes}, {shape_text(source.shape)} flattened by {site.who(root.op)}"
    else:
        text = f"{root.size} = {sizes}, put together by {site.who(root.op)}"
    return text + (f": {', '.join(clauses)}" if clauses else "")


def _parts(site: Site, root: Root, depth: int) -> list[str]:
    """A clause for each part of a product or sum; sizes of one tensor that come from one input are told together."""
    roots = [root_of(value, axis) for value, axis in root.parts]
    clauses: list[str] = []
    position = 0
    while position < len(roots) and len(clauses) < _SUMMANDS_MAX:
        first = roots[position]
        run = [first]
        if root.sign == "·" and first.op is None and first.value.kind == "input":
            while position + len(run) < len(roots) and _same_input(first, roots[position + len(run)]):
                run.append(roots[position + len(run)])
        position += len(run)
        if len(run) > 1:
            sizes = "×".join(str(row.size) for row in run)
            is_resized = any(row.is_resized for row in run)
            place = _input_place(site, first.value, tuple(row.axis for row in run), is_resized)
            clauses.append(f"{sizes} from {place}")
        elif root.sign == "+" or first.size != 1:
            clauses.append(_clause(site, first, depth + 1))
    return list(dict.fromkeys(clauses))


def _same_input(one: Root, other: Root) -> bool:
    return other.op is None and other.value is one.value
