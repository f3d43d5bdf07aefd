"""The JSON document: a `Graph` as one JSON object and back.

The contract is `schema.json`, which the Python and the JavaScript tests both read. Tensor descriptions repeat along a
model, so the document holds each once, in `specs`, and refers to it by its index.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from types import MappingProxyType
from typing import Any

from torchatlas._version import __version__
from torchatlas.graph import Coverage, Edge, Failure, Graph, ModuleCall, Node, Proof, Source, TensorSpec

SCHEMA_VERSION = 1


def schema() -> dict[str, Any]:
    """The JSON Schema that every document obeys."""
    text = resources.files("torchatlas").joinpath("schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def encode(graph: Graph) -> dict[str, Any]:
    """Turn a graph into the document, made of dicts, lists, strings and numbers only.

    Args:
        graph: the graph.

    Returns:
        An object that obeys `schema.json`.
    """
    specs: dict[TensorSpec, int] = {}

    def index_of(spec: TensorSpec) -> int:
        return specs.setdefault(spec, len(specs))

    calls = [_call_row(call, index_of) for call in graph.calls]
    nodes = [_node_row(node, index_of) for node in graph.nodes]
    edges = [[edge.tail, edge.head, edge.tail_slot, edge.slot, index_of(edge.spec)] for edge in graph.edges]
    return {
        "schema_version": SCHEMA_VERSION,
        "generator": f"torchatlas {__version__}",
        "title": graph.title,
        "specs": [_spec_row(spec) for spec in specs],
        "sources": [_source_row(source) for source in graph.sources],
        "calls": calls,
        "nodes": nodes,
        "edges": edges,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "error": None if graph.error is None else _failure_row(graph.error),
        "errors": [_failure_row(failure) for failure in graph.errors],
        "coverage": _fields(graph.coverage, "operations", "nodes", "opaque", "outside"),
        "proof": _fields(graph.proof, "status", "reason"),
        **({"report": graph.report} if graph.report else {}),
    }


def decode(document: Mapping[str, Any]) -> Graph:
    """Turn a document back into the graph it was made from.

    Args:
        document: what `encode` gave, or the same after a trip through JSON.

    Returns:
        A consistent graph, equal to the one that was encoded.

    Raises:
        ValueError: `document` has another schema version, lacks a field, or describes an inconsistent graph.
        TypeError: `document` is not a mapping.
    """
    if not isinstance(document, Mapping):
        raise TypeError(f"document must be a mapping, got {type(document).__name__}")
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        raise ValueError(
            f"document has schema_version {version!r}; this torchatlas ({__version__}) reads version {SCHEMA_VERSION}"
        )
    try:
        graph = _graph_of(document)
    except (KeyError, IndexError) as error:
        raise ValueError(f"document lacks {error}") from error
    graph.check()
    return graph


def to_json(graph: Graph) -> str:
    """The document as JSON text: one line, ASCII only, no NaN or infinities."""
    return dumps(encode(graph))


def from_json(text: str) -> Graph:
    """The graph that `to_json` wrote.

    Raises:
        ValueError: `text` is not JSON, or not a document that this version reads.
    """
    return decode(json.loads(text))


def dumps(value: object) -> str:
    """JSON text as every browser reads it; escapes keep it ASCII, so that lone surrogates in names survive."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _fields(row: object, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _spec_row(spec: TensorSpec) -> dict[str, Any]:
    shape = None if spec.shape is None else list(spec.shape)
    return {"shape": shape, **_fields(spec, "dtype", "device", "requires_grad", "size_bytes")}


def _source_row(source: Source) -> dict[str, Any]:
    return {**_fields(source, "file", "line", "function", "first_line"), "code": list(source.code)}


def _call_row(call: ModuleCall, index_of: Any) -> dict[str, Any]:
    return {
        **_fields(call, "name", "fqn", "type", "parent", "status", "detail", "source"),
        "inputs": [index_of(spec) for spec in call.inputs],
        "outputs": [index_of(spec) for spec in call.outputs],
        "metrics": dict(call.metrics),
    }


def _node_row(node: Node, index_of: Any) -> dict[str, Any]:
    return {
        **_fields(node, "name", "kind", "op", "call", "status", "source", "note"),
        "outputs": [index_of(spec) for spec in node.outputs],
        "arguments": [list(pair) for pair in node.arguments],
        "metrics": dict(node.metrics),
    }


def _failure_row(failure: Failure) -> dict[str, Any]:
    return {
        **_fields(failure, "type", "message", "node", "source", "explanation"),
        "calls": list(failure.calls),
        "suggestions": list(failure.suggestions),
    }


def _graph_of(document: Mapping[str, Any]) -> Graph:
    specs = [_spec_of(row) for row in document["specs"]]
    error = document["error"]
    return Graph(
        title=document["title"],
        nodes=tuple(_node_of(position, row, specs) for position, row in enumerate(document["nodes"])),
        edges=tuple(Edge(tail, head, nth, slot, specs[spec]) for tail, head, nth, slot, spec in document["edges"]),
        calls=tuple(_call_of(position, row, specs) for position, row in enumerate(document["calls"])),
        inputs=tuple(document["inputs"]),
        outputs=tuple(document["outputs"]),
        sources=tuple(Source(**{**row, "code": tuple(row["code"])}) for row in document["sources"]),
        error=None if error is None else _failure_of(error),
        errors=tuple(_failure_of(row) for row in document.get("errors", ())),
        coverage=Coverage(**document["coverage"]),
        proof=Proof(**document["proof"]),
        report=document.get("report", ""),
    )


def _failure_of(row: Mapping[str, Any]) -> Failure:
    return Failure(**{**row, "calls": tuple(row["calls"]), "suggestions": tuple(row.get("suggestions", ()))})


def _spec_of(row: Mapping[str, Any]) -> TensorSpec:
    return TensorSpec(**{**row, "shape": None if row["shape"] is None else tuple(row["shape"])})


def _call_of(position: int, row: Mapping[str, Any], specs: Sequence[TensorSpec]) -> ModuleCall:
    return ModuleCall(
        **{
            **row,
            "id": position,
            "inputs": tuple(specs[index] for index in row["inputs"]),
            "outputs": tuple(specs[index] for index in row["outputs"]),
            "metrics": MappingProxyType(dict(row["metrics"])),
        }
    )


def _node_of(position: int, row: Mapping[str, Any], specs: Sequence[TensorSpec]) -> Node:
    return Node(
        **{
            **row,
            "id": position,
            "outputs": tuple(specs[index] for index in row["outputs"]),
            "arguments": tuple((name, text) for name, text in row["arguments"]),
            "metrics": MappingProxyType(dict(row["metrics"])),
        }
    )
