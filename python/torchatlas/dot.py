"""A graph as DOT text, for people who go on with Graphviz.

Module calls are nested clusters, tensors are edges labelled with their shapes. Ids in the text are numbers; names are
quoted labels, so that no name can end the string it is in.
Source: the grammar of quoted strings, graphviz.org/doc/info/lang.html, and the escapes of labels,
graphviz.org/docs/attr-types/escString.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from torchatlas.graph import Edge, Graph, ModuleCall, Node
from torchatlas.text import spec_text

_SHAPE_OF_KIND = {
    "input": "oval",
    "output": "oval",
    "parameter": "cylinder",
    "buffer": "cylinder",
    "constant": "note",
    "op": "box",
    "opaque": "box3d",
}
_RED = '"#c4232b"'
_GREY = '"#5b6270"'
# Labels read backslash sequences and HTML entities; NUL ends the text for every DOT reader.
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;", "\n": "\\n", "\r": "", "\0": "\ufffd"})


def to_dot(graph: Graph) -> str:
    """Write the whole graph, every module open, as one `digraph`.

    Args:
        graph: the graph.

    Returns:
        DOT text: a `subgraph cluster_<id>` per module call inside the outermost, a node `n<id>` per node, an edge per
        tensor and reader. Failed nodes and calls are drawn red.
    """
    lines = [
        f"digraph {_quoted(graph.title)} {{",
        '  graph [rankdir=TB, fontname="Helvetica", labeljust=l, style=rounded];',
        '  node [fontname="Helvetica"];',
        '  edge [fontname="Helvetica", fontsize=10];',
        *_nested_lines(graph),
        *(f"  {_edge_line(edge)}" for edge in graph.edges),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _nested_lines(graph: Graph) -> Iterator[str]:
    """Nodes in the clusters of their calls. Without recursion: modules may nest deeper than Python's stack."""
    nodes_of: dict[int, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        nodes_of[node.call or 0].append(node)
    calls_of: dict[int, list[ModuleCall]] = defaultdict(list)
    for child in graph.calls[1:]:
        calls_of[child.parent or 0].append(child)

    def inside(caller: int, indent: str) -> list[tuple[str, ModuleCall | None]]:
        rows: list[tuple[str, ModuleCall | None]] = [(indent + _node_line(node), None) for node in nodes_of[caller]]
        return rows + [(indent, call) for call in calls_of[caller]]

    pending = inside(0, "  ")[::-1]
    while pending:
        text, call = pending.pop()
        if call is None:
            yield text
            continue
        yield f"{text}subgraph cluster_{call.id} {{"
        yield f"{text}  {_cluster_attributes(call)}"
        pending.append((text + "}", None))
        pending.extend(inside(call.id, text + "  ")[::-1])


def _cluster_attributes(call: ModuleCall) -> str:
    # Clusters inherit what their surroundings set, so each says its colour.
    colour = "color={0}; fontcolor={0}".format(_RED if call.status == "failed" else _GREY)
    return f"label={_quoted(f'{call.name}  {call.type}')}; {colour};"


def _node_line(node: Node) -> str:
    failed = f", color={_RED}, fontcolor={_RED}, penwidth=2" if node.status == "failed" else ""
    return f"n{node.id} [label={_quoted(node.name)}, shape={_SHAPE_OF_KIND[node.kind]}{failed}];"


def _edge_line(edge: Edge) -> str:
    return f"n{edge.tail} -> n{edge.head} [label={_quoted(spec_text(edge.spec))}, tooltip={_quoted(edge.slot)}];"


def _quoted(text: str) -> str:
    """A DOT string that shows exactly this text."""
    # Lone surrogates have no UTF-8.
    return '"' + text.translate(_ESCAPES).encode("utf-8", "replace").decode("utf-8") + '"'
