"""Cut a record and prove on the spot that the cut gives what the recorded forward gave."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from torchatlas.bits import all_same
from torchatlas.cut import Cut
from torchatlas.cutting import CutMaker
from torchatlas.graph import Graph
from torchatlas.places import line_of
from torchatlas.points import Point, Request, in_order
from torchatlas.query import is_pattern
from torchatlas.record import Op, Record, Value
from torchatlas.replace import replacement
from torchatlas.replay import Replacement, Replay
from torchatlas.settings import under
from torchatlas.slicing import Moment
from torchatlas.state import Preserved
from torchatlas.structure import put_together, walk

Names = str | Sequence[str] | Mapping[str, str]
"""One name, several, or a mapping from names to what they are to be called."""


def request(
    points_of: Callable[[str], list[Point]],
    node_in: Names | None,
    node_out: Names | None,
    *,
    keep_output: bool,
    share_modules: bool,
    model: Any,
    replace: Mapping[str, Any] | None = None,
) -> Request:
    """What is to be cut out, from what the user wrote.

    Args:
        points_of: gives the places that a name, a glob or a query stands for.
        node_in, node_out: the user's names.
        keep_output: give the model's output, too; first, where `node_out` is given.
        share_modules: hold the model's own parameters.
        model: the model, if there is one.
        replace: the user's names of what is replaced, each with what is put there.
    """
    given: list[tuple[Point, str]] = []
    names = () if node_in is None else (node_in,) if isinstance(node_in, str) else tuple(node_in)
    for name in names:
        points = points_of(name)
        if isinstance(node_in, Mapping) and len(points) > 1:
            raise ValueError(f"node_in: {name!r} stands for {len(points)} nodes, which can't all be {node_in[name]!r}")
        given.extend((point, node_in[name] if isinstance(node_in, Mapping) else point.name) for point in points)
    wanted = None if node_out is None else _shaped(points_of, node_out)
    output = points_of("output")[0] if keep_output or node_out is None else None
    shape = wanted if output is None else output if node_out is None else (output, wanted)
    replaced = tuple((point, name, new) for name, new in (replace or {}).items() for point in points_of(name))
    return Request(tuple(given), shape, share_modules, model, tuple(in_order(replaced, lambda row: row[0])))


def _shaped(points_of: Callable[[str], list[Point]], names: Names) -> Any:
    """The places in the shape of the request; a dict by name where one stands for several."""

    def found(name: str) -> Any:
        points = points_of(name)
        return points[0] if not is_pattern(name) or points[0].name == name else {point.name: point for point in points}

    if isinstance(names, str):
        return found(names)
    if isinstance(names, Mapping):
        return {new: found(old) for old, new in names.items()}
    rows = [found(name) for name in names]
    return tuple(rows) if isinstance(names, tuple) else rows


def region_ends(graph: Graph, selected: set[str]) -> tuple[list[str], list[str]]:
    """What a region of the graph reads from outside, parameters and constants left aside, and what is read of it there.

    Args:
        graph: the graph.
        selected: names of nodes, and of module calls with all that lies inside them.
    """
    calls: set[int] = set()
    for call in graph.calls:  # callers come first
        if call.name in selected or call.parent in calls:
            calls.add(call.id)
    inside = {
        node.id
        for node in graph.nodes
        if node.kind in ("op", "opaque") and (node.call in calls or node.name in selected)
    }
    held = ("parameter", "buffer", "constant")
    reads = {edge.tail for edge in graph.edges if edge.head in inside and edge.tail not in inside}
    gives = {edge.tail for edge in graph.edges if edge.tail in inside and edge.head not in inside}
    return (
        [graph.nodes[tail].name for tail in sorted(reads) if graph.nodes[tail].kind not in held],
        [graph.nodes[tail].name for tail in sorted(gives)],
    )


def extract(
    record: Record,
    request: Request,
    inputs: Mapping[int, torch.Tensor],
    names: Mapping[int, str],
    known_keys: frozenset[str],
) -> Cut:
    """Make a cut and check it.

    Args:
        record: the record.
        request: what is to be cut out.
        inputs: the recorded inputs by the id of their value.
        names: what the picture calls each operation, by its position in the record.
        known_keys: keys in the state of the whole model.

    Raises:
        RuntimeError: the cut does not give the very bits that the recorded forward gave.
    """
    maker = CutMaker(record, request, _spoken_place)
    cut = maker.make(names, known_keys)
    tensors = [*inputs.values(), *record.owned.values()]
    if not any(tensor.is_meta or hasattr(tensor, "fake_mode") for tensor in tensors):
        _check(cut, maker, inputs)
    return cut


def _check(cut: Cut, maker: CutMaker, inputs: Mapping[int, torch.Tensor]) -> None:
    record = maker.record
    rows = [[Moment(value, row.time) for value in row.values] for row in maker.rows() if not row.tensors]
    given_stops: dict[int, list[tuple[Any, Value]]] = {}
    for at, row in enumerate(rows):
        for place, (value, count) in enumerate(row):
            given_stops.setdefault(count, []).append(((at, place), value))
    stops: dict[int, list[tuple[Any, Value]]] = {}
    for key, (value, count) in enumerate(maker.taken_moments()):
        stops.setdefault(count, []).append((("out", key), value))
    random = _RandomStates(record.rng)
    run = Replay(record, inputs, [], lambda op, _: random.after(op.index))
    replace: dict[int, list[Replacement]] = {}
    for point, new in maker.replaced():
        exchange = replacement(point, new)
        noted = exchange._replace(make=random.noting(point.count - 0.5, exchange.make))
        replace.setdefault(point.count, []).append(noted)
    run.run(stops, until=max((*stops, *given_stops), default=0), replace=replace, before_replacing=given_stops)
    given = [[_fresh(run.captured((at, i)), m.value) for i, m in enumerate(row)] for at, row in enumerate(rows)]
    expected = [tensor for _, tensor in walk(put_together(maker.output, lambda key: run.captured(("out", key))))]
    is_replaced = bool(replace)
    preserved = Preserved()
    for tensor in (*cut.parameters(), *cut.buffers()):
        preserved.add_leaf(tensor)
        preserved.before_write(tensor)
    preserved.before_backward()
    assert record.context is not None, "the record has no context"
    try:
        # What is put in may make Python read other numbers than were recorded; that is for the runs to come to refuse.
        cut.checks_queries = not is_replaced
        with under(record.context):
            found = [tensor.detach() for _, tensor in walk(cut.run(given, random.before))]
    finally:
        cut.checks_queries = True
        preserved.restore()
    if not all_same(found, expected):
        raise RuntimeError(
            "the cut does not give, bit by bit, what the recorded forward gave, so it is refused; cut at other places, "
            "or trace the model again if it has changed since"
            + (
                "; functions that replace values must give the same for the same, random numbers of torch aside"
                if is_replaced
                else ""
            )
        )


def _fresh(tensor: torch.Tensor, value: Value) -> torch.Tensor:
    """A captured tensor as an input of its own."""
    can_require = value.dtype.is_floating_point or value.dtype.is_complex
    return tensor.detach().requires_grad_(value.requires_grad and can_require)


class _RandomStates:
    """The random state before each operation; a cut leaves out operations that drew numbers before."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        cuda = [start[name] for name in sorted(start, key=len) if name.startswith("cuda:")]
        self._positions: list[float] = [-1]
        self._states = [[start["cpu"], *cuda]]

    def after(self, position: float) -> None:
        """Note what an operation left."""
        self._positions.append(position)
        self._states.append(_kept_state(self._states[-1]))

    def noting(self, position: float, make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function that also notes the state it leaves."""

        def noted(tensors: Any) -> Any:
            made = make(tensors)
            self.after(position)
            return made

        return noted

    def before(self, position: float) -> None:
        """Set what the operation before left."""
        _set_state(self._states[bisect.bisect_left(self._positions, position) - 1])


def _kept_state(latest: list[torch.Tensor]) -> list[torch.Tensor]:
    """The random states as they are now; the same list where nothing was drawn."""
    state = torch.get_rng_state()
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    cuda = [torch.cuda.get_rng_state(device) for device in devices]
    now = [state, *cuda]
    return latest if len(now) == len(latest) and all(map(torch.equal, now, latest)) else now


def _set_state(states: list[torch.Tensor]) -> None:
    torch.set_rng_state(states[0])
    for device, state in enumerate(states[1:]):
        torch.cuda.set_rng_state(state, device)


def _spoken_place(op: Op) -> str:
    if op.place is None:
        return ""
    code, instruction = op.place
    return f" ({code.co_filename}:{line_of(code, instruction)})"
