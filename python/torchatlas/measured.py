"""Statistics that are taken while a forward runs, and put among the metrics of its graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

import torch

from torchatlas import statistics
from torchatlas.builder import values_in
from torchatlas.graph import Graph
from torchatlas.record import Op, Record, Value
from torchatlas.replay import lost_ops

PREFIX = "value_"


class Measured:
    """Statistics by value, of the first result of each operation."""

    def __init__(self) -> None:
        self._by_op: dict[int, dict[str, float]] = {}

    def note(self, op: Op, tensors: list[torch.Tensor]) -> None:
        """Measure what an operation has given."""
        if tensors:
            self._by_op[op.index] = _measure(tensors[0])

    def add_to(self, graph: Graph, record: Record, leaves: Iterable[Value]) -> Graph:
        """The graph with the statistics of nodes and module calls; what follows from an assumed result has none.

        Args:
            graph: the graph of the record.
            record: what ran.
            leaves: inputs, parameters, buffers and constants, in the order of their nodes; measured now.
        """
        for index in lost_ops(record):
            self._by_op.pop(index, None)
        ops, rest = iter(record.ops), iter(leaves)
        outputs = iter([] if record.output is None else record.output.stand_ins())
        nodes = []
        for node in graph.nodes:
            if node.kind in ("op", "opaque"):
                found = self._by_op.get(next(ops).index, {})
            else:
                found = self._of(next(outputs if node.kind == "output" else rest))
            nodes.append(dataclasses.replace(node, metrics=MappingProxyType({**node.metrics, **found})))
        calls = []
        for row in graph.calls:
            first = next(values_in(record.calls[row.id].out), None)
            found = {} if first is None else self._of(first)
            calls.append(dataclasses.replace(row, metrics=MappingProxyType({**row.metrics, **found})))
        return dataclasses.replace(graph, nodes=tuple(nodes), calls=tuple(calls))

    def _of(self, value: Value) -> dict[str, float]:
        if value.op is None:
            return {} if value.tensor is None else _measure(value.tensor)
        is_first = next(values_in(value.op.out), None) is value
        return self._by_op.get(value.op.index, {}) if is_first else {}


def _measure(tensor: Any) -> dict[str, float]:
    try:
        found = statistics.numbers(tensor)
    except Exception:  # noqa: BLE001 # what can't be measured (fake, exotic layouts) must not end the user's forward
        return {}
    return {PREFIX + name: value for name, value in found.items() if value is not None}
