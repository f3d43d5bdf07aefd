"""What stands in for a live view: an outline of the modules that folds without a script, small enough for a notebook.

It is shown before the widget and hidden by it, so that a notebook opened without a kernel still shows the model. It
folds without a script as well, since viewers that do not trust a notebook remove scripts.
"""

from __future__ import annotations

import html
import time
from collections import deque
from collections.abc import Iterator

from torchatlas.graph import Graph, ModuleCall, Node

BUDGET_BYTES = 70_000
"""The most that one outline may add to a notebook: with twenty views it stays below 1.5 MB."""
_FRAME_BYTES = 2_000
_MUTED = 'style="opacity: .65"'
# A view that has just been asked for comes within this time; until then nothing flashes up.
_PATIENCE_MS = 6_000
_SCRIPT = """<script>(() => {{
  if (Date.now() - {made} > 30000) return;
  for (const part of document.querySelectorAll('[data-torchatlas-fallback="{key}"]')) {{
    part.style.display = "none";
    setTimeout(() => {{ part.style.display = ""; }}, {patience});
  }}
}})();</script>"""

_Row = ModuleCall | Node


def render(graph: Graph, key: str, *, is_alone: bool = False, budget_bytes: int = BUDGET_BYTES) -> str:
    """The outline of a graph as HTML.

    Modules go in level by level, with their operations, as far as the budget allows; where something is left out, its
    number is said.

    Args:
        graph: the graph.
        key: names the output, for the live view to hide it.
        is_alone: no live view follows.
        budget_bytes: the most bytes of the answer.

    Returns:
        HTML of a `div`, and a script that holds it back while a live view is on its way.
    """
    inside = _inside(graph)
    kept = _kept(graph, inside, budget_bytes - _FRAME_BYTES)
    # Levels of recursion are levels of modules, not operations; still, a model may nest deeper than Python's stack.
    body: list[str] = []
    todo: list[_Row | str] = list(reversed(inside.get(None, ())))
    while todo:
        row = todo.pop()
        if isinstance(row, str):
            body.append(row)
        elif _key(row) in kept:
            below = inside.get(row.id, []) if isinstance(row, ModuleCall) else []
            if not below:
                body.append(_line(graph, row, "div"))
                continue
            left_out = sum(_key(each) not in kept for each in below)
            body.append(_opening(graph, row))
            todo.append(f"<div {_MUTED}>… {left_out} more inside</div></details>" if left_out else "</details>")
            todo.extend(reversed([each for each in below if _key(each) in kept]))
    head = f"<div><b>{html.escape(graph.title)}</b> <span {_MUTED}>{_about(graph)}</span></div>"
    failure = "" if graph.error is None else f"✗ {graph.error.type}: {graph.error.message}"[:500]
    error = f"<div>{html.escape(failure)}</div>" if failure else ""
    outer = (
        f'<div data-torchatlas-fallback="{html.escape(key)}" '
        'style="font-size: 13px; line-height: 1.6; max-height: 420px; overflow: auto">'
    )
    outline = f"{outer}{head}{error}{''.join(body)}</div>"
    if is_alone:
        return outline
    return outline + _SCRIPT.format(made=int(time.time() * 1000), key=html.escape(key), patience=_PATIENCE_MS)


def _inside(graph: Graph) -> dict[int | None, list[_Row]]:
    """What lies directly inside each call, in the order in which it ran; under None what lies in the outermost."""
    start: dict[int, int] = {}
    inside: dict[int | None, list[_Row]] = {}
    for node in graph.nodes:
        if node.kind not in ("op", "opaque"):
            continue
        call = node.call
        while call is not None:
            start.setdefault(call, node.id)
            call = graph.calls[call].parent
        inside.setdefault(node.call, []).append(node)
    for row in graph.calls:
        if row.parent is not None:
            inside.setdefault(row.parent, []).append(row)
    for rows in inside.values():
        rows.sort(key=lambda row: row.id if isinstance(row, Node) else start.get(row.id, len(graph.nodes)))
    roots: list[_Row] = [row for row in graph.calls if row.parent is None]
    if len(roots) == 1 and None not in inside:
        return {**inside, None: inside.get(roots[0].id, [])}
    return {**inside, None: [*roots, *inside.get(None, [])]}


def _kept(graph: Graph, inside: dict[int | None, list[_Row]], budget: int) -> set[tuple[str, int]]:
    """What the budget allows, outer levels first."""
    kept: set[tuple[str, int]] = set()
    todo: deque[_Row] = deque(inside.get(None, ()))
    while todo:
        row = todo.popleft()
        below = inside.get(row.id, []) if isinstance(row, ModuleCall) else []
        line = _opening(graph, row) + f"<div {_MUTED}>… 100000 more inside</div></details>" if below else ""
        budget -= len((line or _line(graph, row, "div")).encode())
        if budget < 0:
            break
        kept.add(_key(row))
        todo.extend(below)
    return kept


def _key(row: _Row) -> tuple[str, int]:
    return type(row).__name__, row.id


def _opening(graph: Graph, row: _Row) -> str:
    return f'<details style="margin-left: 1.2em">{_line(graph, row, "summary")}'


def _line(graph: Graph, row: _Row, tag: str) -> str:
    indent = ' style="margin-left: 2.2em"' if tag == "div" else ""
    around = row.call if isinstance(row, Node) else row.parent
    prefix = "" if around is None else f"{graph.calls[around].name}."
    mark = "✗ " if row.status == "failed" else ""
    name = html.escape(mark + row.name.removeprefix(prefix))
    return f"<{tag}{indent}>{name} <span {_MUTED}>{html.escape(' · '.join(_facts(row)))}</span></{tag}>"


def _facts(row: _Row) -> Iterator[str]:
    if isinstance(row, ModuleCall):
        yield row.type
    for spec in row.outputs[:1]:
        if spec.shape is not None:
            yield "×".join(map(str, spec.shape)) or "scalar"
    parameters = row.metrics.get("parameters")
    if parameters:
        yield f"{int(parameters):,} parameters"


def _about(graph: Graph) -> str:
    operations = sum(node.kind in ("op", "opaque") for node in graph.nodes)
    return f"{operations:,} operations in {len(graph.calls):,} module calls"
