"""One step back along one axis: which axis of which argument gave an operation's result this size.

Every rule answers from the operation's own meaning. Where none applies the size is said to be made by the operation
itself; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchatlas.builder import values_in
from torchatlas.functions import argument_names
from torchatlas.record import Nested, Op, Value

Axis = tuple[Value, int]


@dataclass(frozen=True)
class Pass:
    """The size is that of another axis."""

    axis: Axis


@dataclass(frozen=True)
class Sized:
    """The size is computed from that of another axis, as by a stride."""

    axis: Axis


@dataclass(frozen=True)
class Made:
    """The operation itself sets the size; `why` says by what, for example "its `out_features`"."""

    why: str = ""


@dataclass(frozen=True)
class Product:
    """The size is the product of those of several axes."""

    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class Sum:
    """The size is the sum of those of several axes."""

    axes: tuple[Axis, ...]


Step = Pass | Sized | Made | Product | Sum


def step_back(op: Op, result: Value, axis: int) -> Step:
    """What gave the result of an operation its size along an axis.

    Args:
        op: an operation that ran.
        result: one of its results, with a known shape.
        axis: from 0.
    """
    name = op.name.rstrip("_")
    rule = _RULES.get(name)
    found = rule(_Given(op, result, axis)) if rule is not None else None
    return found or _same_shape(op, result, axis) or Made()


class _Given:
    """An operation's arguments by name, and the axis that is asked for."""

    def __init__(self, op: Op, result: Value, axis: int) -> None:
        self.op = op
        self.result = result
        self.axis = axis
        self.rank = len(result.shape)
        names = argument_names(op.func, len(op.args))
        self.arguments = {**dict(zip(names, op.args, strict=True)), **op.kwargs}
        self.reads = [value for value in op.reads if value.shape is not None]

    def first(self) -> Value | None:
        return self.reads[0] if self.reads else None

    def named(self, *names: str) -> Value | None:
        found = next((self.arguments[name] for name in names if name in self.arguments), None)
        return found if isinstance(found, Value) and found.shape is not None else None

    def number(self, name: str, at: int, default: int | None = None) -> int | None:
        found = self.arguments.get(name, self.op.args[at] if len(self.op.args) > at else default)
        return found if isinstance(found, int) and not isinstance(found, bool) else default

    def numbers(self, at: int) -> tuple[int, ...]:
        """Whole numbers given one by one or as a tuple, from a position on."""
        rest = self.op.args[at:]
        if len(rest) == 1 and isinstance(rest[0], (tuple, list)):
            rest = tuple(rest[0])
        return tuple(part for part in rest if isinstance(part, int))


def _aligned(value: Value, rank: int, axis: int) -> int | None:
    """The axis of a broadcast operand that meets an axis of the result."""
    own = axis - (rank - len(value.shape))
    return own if own >= 0 else None


def _same_shape(op: Op, result: Value, axis: int) -> Step | None:
    """Elementwise operations: the first operand that has this size there, operands made in the forward first."""
    rank = len(result.shape)
    found: list[Axis] = []
    for value in op.reads:
        own = None if value.shape is None else _aligned(value, rank, axis)
        if own is not None and value.shape[own] == result.shape[axis]:
            found.append((value, own))
    if not found or not _is_elementwise(op, result):
        return None
    return Pass(min(found, key=lambda row: (row[0].kind in ("parameter", "buffer"), len(row[0].shape) != rank)))


def _is_elementwise(op: Op, result: Value) -> bool:
    """Whether the shapes are those of an operation that works element by element on broadcast operands."""
    shapes = [tuple(value.shape) for value in op.reads if value.shape is not None]
    return tuple(result.shape) in shapes or _broadcast(shapes) == tuple(result.shape)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    rank = max(map(len, shapes), default=0)
    sizes = []
    for axis in range(1, rank + 1):
        found = {shape[-axis] for shape in shapes if len(shape) >= axis} - {1}
        if len(found) > 1:
            return None
        sizes.append(found.pop() if found else 1)
    return tuple(reversed(sizes))


# Rules by operation


def _linear(given: _Given) -> Step | None:
    data = given.first()
    if data is None:
        return None
    return Made("its `out_features`") if given.axis == given.rank - 1 else Pass((data, given.axis))


def _conv(given: _Given) -> Step | None:
    data, weight = given.first(), given.named("weight")
    if data is None or weight is None:
        return None
    spatial = len(weight.shape) - 2
    if given.axis >= given.rank - spatial:
        return Sized((data, given.axis))
    return Made("its `out_channels`") if given.axis == given.rank - spatial - 1 else Pass((data, given.axis))


def _pool(given: _Given) -> Step | None:
    data = given.first()
    if data is None or len(data.shape) != given.rank:
        return None
    if given.op.name.startswith("adaptive") and given.axis >= 2:
        return Made("its `output_size`")
    same = data.shape[given.axis] == given.result.shape[given.axis]
    return Pass((data, given.axis)) if same else Sized((data, given.axis))


def _matmul(given: _Given) -> Step | None:
    if len(given.reads) < 2:
        return None
    left, right = given.reads[-2:] if given.op.name.startswith(("addmm", "baddbmm", "addbmm")) else given.reads[:2]
    if given.op.name in ("rmatmul",) or getattr(given.op.func, "__name__", "") == "__rmatmul__":
        left, right = right, left
    if len(right.shape) >= 2 and given.axis == given.rank - 1:
        return Pass((right, len(right.shape) - 1))
    rows = given.rank - (2 if len(right.shape) >= 2 else 1)
    if len(left.shape) >= 2 and given.axis == rows:
        return Pass((left, len(left.shape) - 2))
    for value in (left, right):
        own = _aligned(value, given.rank, given.axis)
        if own is not None and value.shape[own] == given.result.shape[given.axis]:
            return Pass((value, own))
    return None


def _einsum(given: _Given) -> Step | None:
    equation = given.op.args[0] if given.op.args and isinstance(given.op.args[0], str) else None
    if equation is None or "." in equation or "->" not in equation:
        return None
    sources, target = equation.replace(" ", "").split("->")
    if given.axis >= len(target):
        return None
    letter = target[given.axis]
    for letters, value in zip(sources.split(","), given.reads, strict=False):
        if letter in letters and len(letters) == len(value.shape):
            return Pass((value, letters.index(letter)))
    return None


def _embedding(given: _Given) -> Step | None:
    indices = given.named("input", "indices")
    if indices is None:
        return None
    return Made("its `embedding_dim`") if given.axis == given.rank - 1 else Pass((indices, given.axis))


def _permute(given: _Given) -> Step | None:
    data = given.first()
    order = given.arguments.get("dims")
    dims = tuple(order) if isinstance(order, (tuple, list)) else given.numbers(1)
    if data is None or len(dims) != given.rank:
        return None
    return Pass((data, dims[given.axis] % given.rank))


def _transpose(given: _Given) -> Step | None:
    data = given.first()
    if data is None:
        return None
    name = given.op.name
    if name in ("t", "mT", "T", "H", "mH", "adjoint"):
        one, other = given.rank - 2, given.rank - 1
        if name == "T":
            return Pass((data, given.rank - 1 - given.axis))
    else:
        first = given.number("dim0", 1, given.number("axis0", 1))
        second = given.number("dim1", 2, given.number("axis1", 2))
        if first is None or second is None:
            return None
        one, other = first % given.rank, second % given.rank
    return Pass((data, {one: other, other: one}.get(given.axis, given.axis)))


def _reshape(given: _Given) -> Step | None:
    data = given.first()
    if data is None:
        return None
    for before, after in reshape_groups(tuple(data.shape), tuple(given.result.shape)):
        if given.axis in after:
            if len(after) == 1 and len(before) > 1:
                return Product(tuple((data, axis) for axis in before))
            if len(after) == 1 and len(before) == 1:
                return Pass((data, before[0]))
            large_before = [axis for axis in before if data.shape[axis] != 1]
            large_after = [axis for axis in after if given.result.shape[axis] != 1]
            if large_after == [given.axis] and len(large_before) == 1:
                return Pass((data, large_before[0]))
            return Made()
    return None


def reshape_groups(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Split the axes of two shapes with equally many elements into the smallest groups that hold equally many."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) and j < len(after):
        one, other = [i], [j]
        left, right = before[i], after[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right and i < len(before):
                one.append(i)
                left *= before[i]
                i += 1
            elif j < len(after):
                other.append(j)
                right *= after[j]
                j += 1
            else:
                return groups
        groups.append((one, other))
    if groups and i < len(before):
        groups[-1][0].extend(range(i, len(before)))
    if groups and j < len(after):
        groups[-1][1].extend(range(j, len(after)))
    return groups


def _squeeze(given: _Given) -> Step | None:
    data = given.first()
    if data is None:
        return None
    kept = [axis for axis, size in enumerate(data.shape) if size != 1]
    dim = given.number("dim", 1)
    if dim is not None:
        kept = [axis for axis in range(len(data.shape)) if axis != dim % len(data.shape) or data.shape[axis] != 1]
    return Pass((data, kept[given.axis])) if len(kept) == given.rank else None


def _unsqueeze(given: _Given) -> Step | None:
    data, dim = given.first(), given.number("dim", 1)
    if data is None or dim is None:
        return None
    added = dim % given.rank
    return Made() if given.axis == added else Pass((data, given.axis - (given.axis > added)))


def _cat(given: _Given) -> Step | None:
    dim = (given.number("dim", 1, given.number("axis", 1, 0)) or 0) % given.rank
    parts = [value for value in given.reads if len(value.shape) == given.rank]
    if not parts:
        return None
    return Sum(tuple((value, dim) for value in parts)) if given.axis == dim else Pass((parts[0], given.axis))


def _stack(given: _Given) -> Step | None:
    dim = (given.number("dim", 1, 0) or 0) % given.rank
    if not given.reads:
        return None
    return Made() if given.axis == dim else Pass((given.reads[0], given.axis - (given.axis > dim)))


def _split(given: _Given) -> Step | None:
    data = given.first()
    dim = given.number("dim", 2, 0) or 0
    if data is None or len(data.shape) != given.rank:
        return None
    return Sized((data, given.axis)) if given.axis == dim % given.rank else Pass((data, given.axis))


def _unbind(given: _Given) -> Step | None:
    data, dim = given.first(), given.number("dim", 1, 0) or 0
    if data is None or len(data.shape) != given.rank + 1:
        return None
    dim %= len(data.shape)
    return Pass((data, given.axis + (given.axis >= dim)))


def _getitem(given: _Given) -> Step | None:
    data = given.first()
    if data is None or len(given.op.args) < 2:
        return None
    index = given.op.args[1]
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(part, (Value, Nested, list)) for part in parts):
        return None
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if Ellipsis not in parts:
        parts.append(Ellipsis)
    spot = parts.index(Ellipsis)
    parts[spot : spot + 1] = [slice(None)] * (len(data.shape) - used)
    source, target = 0, 0
    for part in parts:
        if part is None:
            if target == given.axis:
                return Made()
            target += 1
            continue
        if isinstance(part, slice):
            if target == given.axis:
                same = data.shape[source] == given.result.shape[given.axis]
                return Pass((data, source)) if same else Sized((data, source))
            target += 1
        source += 1
    return None


def _select(given: _Given) -> Step | None:
    data, dim = given.first(), given.number("dim", 1)
    if data is None or dim is None:
        return None
    dim %= len(data.shape)
    if len(data.shape) == given.rank:
        return Sized((data, given.axis)) if given.axis == dim else Pass((data, given.axis))
    return Pass((data, given.axis + (given.axis >= dim)))


def _reduce(given: _Given) -> Step | None:
    data = given.first()
    if data is None:
        return None
    dim = given.arguments.get("dim", given.arguments.get("axis", given.op.args[1] if len(given.op.args) > 1 else None))
    dims = [dim] if isinstance(dim, int) else list(dim) if isinstance(dim, (tuple, list)) else []
    gone = {d % len(data.shape) for d in dims if isinstance(d, int)}
    if len(data.shape) == given.rank:
        return Made() if given.axis in gone else Pass((data, given.axis))
    kept = [axis for axis in range(len(data.shape)) if axis not in gone]
    return Pass((data, kept[given.axis])) if len(kept) == given.rank else None


def _attention(given: _Given) -> Step | None:
    data = given.named("query")
    if data is None or len(data.shape) != given.rank:
        return None
    is_last = given.axis == given.rank - 1
    if given.op.name == "multi_head_attention_forward":
        return Made("its `embed_dim`") if is_last else Pass((data, given.axis))
    values = given.named("value")
    return Pass((values, given.axis)) if is_last and values is not None else Pass((data, given.axis))


def _recurrent(given: _Given) -> Step | None:
    data = given.first()
    if data is None or len(data.shape) != given.rank or given.result is not next(values_in(given.op.out), None):
        return None
    return Made("its `hidden_size`") if given.axis == given.rank - 1 else Pass((data, given.axis))


def _expand(given: _Given) -> Step | None:
    data = given.first()
    if data is None:
        return None
    own = _aligned(data, given.rank, given.axis)
    same = own is not None and data.shape[own] == given.result.shape[given.axis]
    return Pass((data, own)) if same and own is not None else Made()


def _repeat(given: _Given) -> Step | None:
    data = given.first()
    own = None if data is None else _aligned(data, given.rank, given.axis)
    if data is None or own is None:
        return Made()
    return Pass((data, own)) if data.shape[own] == given.result.shape[given.axis] else Sized((data, own))


def _resize(given: _Given) -> Step | None:
    data = given.first()
    if data is None or len(data.shape) != given.rank:
        return None
    same = data.shape[given.axis] == given.result.shape[given.axis]
    return Pass((data, given.axis)) if same else Sized((data, given.axis))


def _made(given: _Given) -> Step:
    return Made()


def _like(given: _Given) -> Step | None:
    data = given.first()
    return Pass((data, given.axis)) if data is not None and len(data.shape) == given.rank else None


def _group(rule: Callable[[_Given], Step | None], names: str) -> dict[str, Callable[[_Given], Step | None]]:
    return dict.fromkeys(names.split(), rule)


_RULES: dict[str, Callable[[_Given], Step | None]] = {
    "linear": _linear,
    "bilinear": _linear,
    "einsum": _einsum,
    "embedding": _embedding,
    "permute": _permute,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "stack": _stack,
    "unbind": _unbind,
    "getitem": _getitem,
    "one_hot": lambda given: Made("its `num_classes`") if given.axis == given.rank - 1 else _like(given),
    **_group(_conv, "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution"),
    **_group(_pool, " ".join(
        f"{kind}_pool{rank}d" for kind in ("max", "avg", "adaptive_avg", "adaptive_max", "lp", "fractional_max")
        for rank in (1, 2, 3)
    )),
    **_group(_pool, "max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices"),
    **_group(_matmul, "matmul mm bmm mv addmm baddbmm addbmm"),
    **_group(_transpose, "transpose swapaxes swapdims t mT T H mH adjoint"),
    **_group(_reshape, "view reshape flatten unflatten reshape_as view_as ravel"),
    **_group(_cat, "cat concat concatenate"),
    **_group(_split, "split chunk split_with_sizes tensor_split unsafe_split unsafe_chunk"),
    **_group(_select, "select narrow index_select"),
    **_group(_reduce, "mean sum amax amin max min std var logsumexp argmax argmin prod norm median any all nanmean"),
    **_group(_attention, "multi_head_attention_forward scaled_dot_product_attention"),
    **_group(_recurrent, "lstm gru rnn_tanh rnn_relu"),
    **_group(_expand, "expand expand_as broadcast_to"),
    **_group(_repeat, "repeat tile repeat_interleave"),
    **_group(_resize, "interpolate upsample pad"),
    **_group(_made, "zeros ones randn rand empty full arange eye tensor as_tensor randint linspace new_zeros new_ones"),
    **_group(_made, "new_empty new_full new_tensor from_numpy randperm tril_indices meshgrid"),
}  # fmt: skip
