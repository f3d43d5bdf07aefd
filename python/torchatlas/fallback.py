"""What stands in for a live view: a picture, a map that opens and closes, an outline; small enough for a notebook.

It is shown before the widget and hidden by it, so that a notebook opened without a kernel still shows the model. The
map draws itself where scripts run, when it comes into sight. Viewers that do not trust a notebook remove scripts and
inline SVG; there the picture stays, and the outline, which folds without a script.
"""

from __future__ import annotations

import base64
import hashlib
import html
import time
from collections import deque
from collections.abc import Iterator

from torchatlas import abridged, bundle, schema
from torchatlas.graph import Graph, ModuleCall, Node
from torchatlas.options import ViewOptions

BUDGET_BYTES = 72_000
"""The most that one output may add to a notebook: with twenty views it stays below 1.5 MB."""
PICTURE_BYTES = 24_000
"""The most bytes of a picture."""
# The outline is for those who see no map; beside a picture it may be short.
_OUTLINE_BYTES = 24_000
_SHORT_OUTLINE_BYTES = 8_000
_FRAME_BYTES = 2_000
_NOT_OF_THE_MAP = ("height", "width", "notes")
# Four lines, which js/src/standin.js reads.
_DATA = '<script type="application/octet-stream">{digest}\n{code}\n{graph}\n{options}</script>'
_SCRIPT = "<script>({function})({key}, {made})</script>"

_Row = ModuleCall | Node


def render(
    graph: Graph,
    key: str,
    options: ViewOptions | None = None,
    *,
    picture: bytes | None = None,
    has_code: bool = True,
    is_alone: bool = False,
    budget_bytes: int = BUDGET_BYTES,
) -> str:
    """What stands in for a view of a graph, as HTML.

    The map comes first, then the picture, where they fit; what is left is for the outline. Where the graph is too large
    for the map, the inside of deep modules is left out. In the outline modules go in level by level, with their
    operations. Where something is left out, its number is said.

    Args:
        graph: the graph.
        key: names the output, for the live view to hide it.
        options: how the map starts.
        picture: SVG to show where scripts don't run.
        has_code: the map's code goes in; without it the map takes the code from another output on the page.
        is_alone: no live view follows, and no script is wanted.
        budget_bytes: the most bytes of the answer.

    Returns:
        HTML of a `div`, and a script that starts the map, and holds it back while a live view is on its way.
    """
    script = "" if is_alone else _script(key)
    room = budget_bytes - _FRAME_BYTES - len(script)
    data, left_out = ("", 0) if is_alone else _map_data(graph, options or ViewOptions(), has_code, room)
    room -= len(data)
    image = "" if picture is None else _image(graph, picture)
    image = image if len(image.encode()) <= room else ""
    room -= len(image.encode())
    if not is_alone:
        room = min(room, _SHORT_OUTLINE_BYTES if image else _OUTLINE_BYTES)
    head = f"<div><b>{html.escape(graph.title)}</b> <small>{_about(graph, left_out)}</small></div>"
    failure = "" if graph.error is None else f"✗ {graph.error.type}: {graph.error.message}"[:500]
    error = f"<div>{html.escape(failure)}</div>" if failure else ""
    rows = '<div style="max-height: 420px; overflow: auto">' + "".join(_outline(graph, room)) + "</div>"
    return (
        f'<div data-torchatlas-fallback="{html.escape(key)}" style="font-size: 13px; line-height: 1.6">'
        f"{head}{error}<div data-torchatlas-still>{image}{rows}</div>{data}</div>{script}"
    )


def _script(key: str) -> str:
    return _SCRIPT.format(function=bundle.stand_in(), key=_safe_json(key), made=int(time.time() * 1000))


def _map_data(graph: Graph, options: ViewOptions, has_code: bool, room: int) -> tuple[str, int]:
    """What the map is made from, and how many operations are left out of it; "" where there is no room."""
    lite = bundle.packed_lite()
    code = _base64(lite) if has_code else ""
    digest = hashlib.sha256(lite).hexdigest()[:16]
    wire = _safe_json({name: value for name, value in options.to_wire().items() if name not in _NOT_OF_THE_MAP})
    left = room - len(_DATA) - len(digest) - len(code) - len(wire.encode())
    found = abridged.pack_within(graph, left * 3 // 4)
    if found is None:
        return "", 0
    packed, left_out = found
    return _DATA.format(digest=digest, code=code, graph=_base64(packed), options=wire), left_out


def _safe_json(value: object) -> str:
    """JSON that is harmless inside a script element."""
    return schema.dumps(value).replace("<", "\\u003c")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _image(graph: Graph, svg: bytes) -> str:
    # Viewers that do not trust a notebook keep pictures in `img`, and take away inline SVG.
    data = svg.decode("utf-8").translate({ord(each): f"%{ord(each):02X}" for each in '%#<"\n'}).replace("&", "&amp;")
    alt = html.escape(f"Picture of {graph.title[:200]}; an outline follows")
    # A card of its own ground fits a dark notebook as well as a light one.
    card = "max-width: 100%; height: auto; border: 1px solid #8886; border-radius: 8px"
    return (
        '<div style="max-height: 480px; overflow: auto">'
        f'<img alt="{alt}" style="{card}" src="data:image/svg+xml,{data}"></div>'
    )


def _outline(graph: Graph, room: int) -> Iterator[str]:
    """The modules and operations as far as there is room, as nested elements that fold."""
    inside = _inside(graph)
    kept = _kept(graph, inside, room)
    # Levels of recursion are levels of modules, not operations; still, a model may nest deeper than Python's stack.
    outermost = inside.get(None, [])
    todo: list[_Row | str] = list(reversed(outermost))
    left_out = sum(_key(each) not in kept for each in outermost)
    if left_out:
        todo.insert(0, f"<div><small>… {left_out} more</small></div>")
    while todo:
        row = todo.pop()
        if isinstance(row, str):
            yield row
        elif _key(row) in kept:
            below = inside.get(row.id, []) if isinstance(row, ModuleCall) else []
            if not below:
                yield _line(graph, row, "div")
                continue
            left_out = sum(_key(each) not in kept for each in below)
            yield _opening(graph, row)
            todo.append(f"<div><small>… {left_out} more inside</small></div></details>" if left_out else "</details>")
            todo.extend(reversed([each for each in below if _key(each) in kept]))


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
        line = _opening(graph, row) + "<div><small>… 100000 more inside</small></div></details>" if below else ""
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
    return f"<{tag}{indent}>{name} <small>{html.escape(' · '.join(_facts(row)))}</small></{tag}>"


def _facts(row: _Row) -> Iterator[str]:
    if isinstance(row, ModuleCall):
        yield row.type
    for spec in row.outputs[:1]:
        if spec.shape is not None:
            yield "×".join(map(str, spec.shape)) or "scalar"
    parameters = row.metrics.get("parameters")
    if parameters:
        yield f"{int(parameters):,} parameters"


def _about(graph: Graph, left_out: int) -> str:
    operations = sum(node.kind in ("op", "opaque") for node in graph.nodes)
    about = f"{operations:,} operations in {len(graph.calls):,} module calls"
    return f"{about}; {left_out:,} operations in deep modules were too many to keep" if left_out else about
