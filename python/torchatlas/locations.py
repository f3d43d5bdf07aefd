"""Where named things have their values: how many operations have run by then, and which values they are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from torchatlas import query
from torchatlas.builder import values_in
from torchatlas.graph import Graph
from torchatlas.names import unknown_name
from torchatlas.points import Point, in_order
from torchatlas.record import Call, Op, Record, Value
from torchatlas.replace import replacement
from torchatlas.replay import Replacement


class Locations:
    """The places of a record's names.

    Args:
        record: what the forward did.
        graph: the graph of it.
    """

    def __init__(self, record: Record, graph: Graph) -> None:
        self._record = record
        self._graph = graph

    def moment(self, name: str) -> tuple[int, list[Value]]:
        """When a named thing has its value (number of operations run by then), and the values."""
        rows, plain = self._named, self._plain(name)
        if plain in rows:
            return rows[plain]
        if plain.endswith(".in") and plain[:-3] in self._calls:
            call = self._calls[plain[:-3]]
            return call.start, call.reads
        if name in self._hierarchy:
            raise RuntimeError(f"{name!r} did not return in this forward, so it has no value")
        raise unknown_name(name, self._hierarchy)

    def replacements(self, replace: Mapping[str, Any]) -> dict[int, list[Replacement]]:
        """What a replay is to exchange, by the number of operations run by then, for what the user asks by name."""
        found: dict[int, list[Replacement]] = {}
        rows = [(point, new) for name, new in replace.items() for point in self.points(name)]
        for point, new in in_order(rows, lambda row: row[0]):
            found.setdefault(point.count, []).append(replacement(point, new))
        return found

    def points(self, name: str) -> list[Point]:
        """The places that a name, a glob or a query stands for."""
        is_name = self._plain(name) in self._named or name in self._hierarchy or not query.is_pattern(name)
        names = [name] if is_name else query.find_names(self._graph, name)
        if not names:
            raise ValueError(f"the query {name!r} finds nothing (all names: trace.hierarchy)")
        return [self._point(each) for each in names]

    def _point(self, name: str) -> Point:
        if name == "output" and name not in self._named:
            if self._record.output is None:
                raise RuntimeError(f"the forward did not run through, so it has no output: {self._record.error!r}")
            return Point(name, len(self._record.ops), self._record.output)
        count, values = self.moment(name)
        plain = self._plain(name)
        call, op = self._calls.get(plain), self.ops.get(plain)
        if call is not None:
            return Point(name, count, call.out, handed_on=self._handed_on(call))
        if op is not None and next(values_in(op.out), None) is not None:
            return Point(name, count, op.out)
        given = self._calls.get(plain.removesuffix(".in")) if plain not in self._named else None
        shape = values[0] if len(values) == 1 else tuple(values)
        return (
            Point(name, count, shape) if given is None else Point(name, count, shape, given.end, self._handed_on(given))
        )

    def _plain(self, name: str) -> str:
        """A name without the number of the first call, which the others count from: `lin:1` is `lin`."""
        base = name.removesuffix(".in")
        is_first = base.endswith(":1") and base not in self._calls and base[:-2] in self._calls
        return base[:-2] + name[len(base) :] if is_first else name

    def _handed_on(self, call: Call) -> frozenset[int]:
        """Ids of the values that a call is given and returns as they are."""
        inside = self._record.ops[call.start : call.end]
        kept = {id(value) for value in call.reads} - {id(value) for op in inside for value in op.writes}
        return frozenset(id(value) for value in values_in(call.out) if id(value) in kept)

    @cached_property
    def ops(self) -> dict[str, Op]:
        """The operations by the names of their nodes, in order."""
        nodes = [node for node in self._graph.nodes if node.kind in ("op", "opaque")]
        return {node.name: op for node, op in zip(nodes, self._record.ops, strict=True)}

    @cached_property
    def _calls(self) -> dict[str, Call]:
        return {row.name: self._record.calls[row.id] for row in self._graph.calls}

    @cached_property
    def _named(self) -> dict[str, tuple[int, list[Value]]]:
        record, graph = self._record, self._graph
        rows: dict[str, tuple[int, list[Value]]] = {}
        for name, call in self._calls.items():
            if call.status == "ok":
                rows[name] = (call.end, list(values_in(call.out)))
        leaves = iter(record.leaves())
        ops = iter(record.ops)
        outputs = iter([] if record.output is None else record.output.stand_ins())
        for node in graph.nodes:
            if node.kind in ("op", "opaque"):
                op = next(ops)
                if op.status == "ok":
                    rows[node.name] = (op.index + 1, results_of(op))
            elif node.kind == "output":
                rows[node.name] = (len(record.ops), [next(outputs)])
            else:
                rows[node.name] = (0, [next(leaves)])
        return rows

    @cached_property
    def _hierarchy(self) -> dict[str, str | None]:
        return self._graph.hierarchy()


def results_of(op: Op) -> list[Value]:
    """What an operation gives: its results; for one that only writes, what it wrote into."""
    out = list({id(value): value for value in values_in(op.out)}.values())
    return out or list(op.writes)
