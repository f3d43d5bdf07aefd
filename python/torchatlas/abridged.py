"""A graph in few bytes, with what a map needs to be drawn: names, types, shapes, wiring; no code, arguments or numbers.

Everything is written relative to what comes before or around it, column by column, so that equal blocks of a model
become equal bytes: packed, GPT-2 small takes 2 kB, a tenth of its document. js/src/abridged.js reads it.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torchatlas import schema
from torchatlas.graph import NODE_KINDS, Edge, Failure, Graph, ModuleCall, Node, TensorSpec


def pack(graph: Graph) -> bytes:
    """The graph abridged, as JSON, gzip."""
    return gzip.compress(schema.dumps(abridge(graph)).encode("ascii"), mtime=0)


def abridge(graph: Graph) -> dict[str, Any]:
    """What `pack` packs: lists, strings and numbers.

    Returns:
        `calls`, `nodes` and `edges` as columns of equal length; `specs` and `errors` as rows.
    """
    specs: dict[tuple[tuple[int, ...] | None, str, int], int] = {}

    def numbers(tensors: Sequence[TensorSpec]) -> list[int]:
        return [specs.setdefault((spec.shape, spec.dtype, spec.size_bytes), len(specs)) for spec in tensors]

    calls = [
        [
            _inner_name(call.name, None if call.parent is None else graph.calls[call.parent].name),
            0 if call.fqn == call.name else call.fqn,
            call.type,
            0 if call.parent is None else call.id - call.parent,
            int(call.status == "failed"),
            numbers(call.inputs),
            numbers(call.outputs),
            call.metrics.get("parameters", 0),
        ]
        for call in graph.calls
    ]
    nodes = []
    before = 0
    for node in graph.nodes:
        at = -1 if node.call is None else node.call
        name = _inner_name(node.name, graph.calls[at].name if at > 0 else None)
        plain = f".{node.op}" if at > 0 else node.op
        nodes.append(
            [
                NODE_KINDS.index(node.kind),
                0 if name == plain else name,
                node.op,
                at - before,
                int(node.status == "failed"),
                numbers(node.outputs),
            ]
        )
        before = at
    edges = []
    before = 0
    for edge in graph.edges:
        edges.append([edge.head - before, edge.head - edge.tail, edge.tail_slot, edge.slot, *numbers([edge.spec])])
        before = edge.head
    return {
        "title": graph.title,
        "calls": _columns(calls),
        "nodes": _columns(nodes),
        "edges": _columns(edges),
        "specs": [list(spec) for spec in specs],
        "errors": [[failure.type, failure.message[:500], failure.node, failure.calls] for failure in graph.errors],
    }


def pack_within(graph: Graph, budget_bytes: int) -> tuple[bytes, int] | None:
    """The graph abridged as far as it must be to fit.

    Args:
        graph: the graph.
        budget_bytes: the most bytes of the answer.

    Returns:
        What `pack` gives, and how many operations are left out: deep module calls go in with one node for all that is
        inside. None where the outermost level alone is too large.
    """
    packed = pack(graph)
    if len(packed) <= budget_bytes:
        return packed, 0
    found = None
    fits, too_deep = 0, max(_depths(graph), default=0) + 1
    while too_deep - fits > 1:
        depth = (fits + too_deep) // 2
        cut = contract(graph, depth)
        packed = pack(cut)
        if len(packed) <= budget_bytes:
            fits = depth
            found = packed, _operations(graph) - _operations(cut) + sum(map(_is_rest, cut.nodes))
        else:
            too_deep = depth
    return found


def contract(graph: Graph, depth: int) -> Graph:
    """The same graph with one node for all that is inside each call of a depth.

    Args:
        graph: the graph.
        depth: of the calls that are contracted; the outermost call has 0, and what it calls 1.

    Returns:
        A consistent graph, of the same calls down to that depth. The node that stands for several operations is opaque,
        named `<call>.…`, and comes where the last of them was.
    """
    depths = _depths(graph)
    # Per call: the call of that depth which it lies in or is.
    within: list[int | None] = []
    for call in graph.calls:
        outer = None if call.parent is None else within[call.parent]
        within.append(call.id if depths[call.id] == depth else outer)
    kept_calls = [call for call in graph.calls if depths[call.id] <= depth]
    call_ids = {call.id: position for position, call in enumerate(kept_calls)}
    groups: dict[int, list[Node]] = {}
    for node in graph.nodes:
        group = None if node.call is None else within[node.call]
        if group is not None and node.kind in ("op", "opaque"):
            groups.setdefault(group, []).append(node)
    group_of = {node.id: group for group, nodes in groups.items() if len(nodes) > 1 for node in nodes}
    last = {nodes[-1].id: group for group, nodes in groups.items()}
    # Tensors that leave a group, each a result of the node that stands for it.
    leaving: dict[int, dict[tuple[int, int], tuple[int, TensorSpec]]] = {}
    for edge in graph.edges:
        group = group_of.get(edge.tail)
        if group is not None and group_of.get(edge.head) != group:
            found = leaving.setdefault(group, {})
            found.setdefault((edge.tail, edge.tail_slot), (len(found), edge.spec))
    nodes: list[Node] = []
    node_ids: dict[int, int] = {}
    for node in graph.nodes:
        group = group_of.get(node.id)
        if group is None:
            node_ids[node.id] = len(nodes)
            enclosing = None if node.call is None else within[node.call]
            at = node.call if enclosing is None else enclosing
            nodes.append(replace(node, id=len(nodes), call=None if at is None else call_ids[at], source=None))
        elif last.get(node.id) == group:
            for each in groups[group]:
                node_ids[each.id] = len(nodes)
            nodes.append(_rest(len(nodes), graph.calls[group], call_ids[group], groups[group], leaving.get(group, {})))
    errors = tuple(_moved(failure, node_ids, call_ids) for failure in graph.errors)
    return replace(
        graph,
        nodes=tuple(nodes),
        calls=tuple(
            replace(
                call, id=call_ids[call.id], parent=None if call.parent is None else call_ids[call.parent], source=None
            )
            for call in kept_calls
        ),
        edges=tuple(_edges(graph, group_of, node_ids, leaving)),
        inputs=tuple(node_ids[each] for each in graph.inputs),
        outputs=tuple(node_ids[each] for each in graph.outputs),
        sources=(),
        error=None if graph.error is None else _moved(graph.error, node_ids, call_ids),
        errors=errors,
    )


def _edges(
    graph: Graph,
    group_of: dict[int, int],
    node_ids: dict[int, int],
    leaving: dict[int, dict[tuple[int, int], tuple[int, TensorSpec]]],
) -> list[Edge]:
    found: dict[tuple[int, int, int], Edge] = {}
    for edge in graph.edges:
        tail_group, head_group = group_of.get(edge.tail), group_of.get(edge.head)
        if tail_group is not None and tail_group == head_group:
            continue
        tail_slot = edge.tail_slot if tail_group is None else leaving[tail_group][edge.tail, edge.tail_slot][0]
        tail, head = node_ids[edge.tail], node_ids[edge.head]
        # What several operations of a group read is read once by the node that stands for them.
        key = (tail, tail_slot, head) if head_group is not None else (len(found), -1, head)
        found.setdefault(key, replace(edge, tail=tail, head=head, tail_slot=tail_slot))
    return sorted(found.values(), key=lambda edge: edge.head)


def _rest(
    place: int,
    call: ModuleCall,
    call_id: int,
    nodes: Sequence[Node],
    leaving: dict[tuple[int, int], tuple[int, TensorSpec]],
) -> Node:
    """The node that stands for several."""
    status = "failed" if any(node.status == "failed" for node in nodes) else "ok"
    outputs = tuple(spec for _, spec in leaving.values())
    return Node(place, f"{call.name}.…", "opaque", f"… {len(nodes):,} operations", call_id, status, outputs)


def _is_rest(node: Node) -> bool:
    return node.name.endswith(".…")


def _moved(failure: Failure, node_ids: dict[int, int], call_ids: dict[int, int]) -> Failure:
    node = None if failure.node is None else node_ids[failure.node]
    return replace(
        failure, node=node, calls=tuple(call_ids[each] for each in failure.calls if each in call_ids), source=None
    )


def _depths(graph: Graph) -> list[int]:
    depths: list[int] = []
    for call in graph.calls:
        depths.append(0 if call.parent is None else depths[call.parent] + 1)
    return depths


def _operations(graph: Graph) -> int:
    return sum(node.kind in ("op", "opaque") for node in graph.nodes)


def _inner_name(name: str, outer: str | None) -> str:
    """A name without that of what it lies in; the dot stays and tells that something was left out."""
    return name[len(outer) :] if outer and name.startswith(f"{outer}.") else name


def _columns(rows: list[list[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
