"""A graph as text, for terminals, logs and `print(trace)`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchatlas.graph import Failure, Graph, ModuleCall, TensorSpec

_HEADINGS = ("module", "type", "output", "parameters")
_NAME_WIDTH_MAX = 48
_TENSORS_LISTED = 4
_SHAPES_IN_ROW = 2


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the table: a call, or several equal ones in a row."""

    name: str
    type: str
    output: str
    parameters: str


def shape_text(spec: TensorSpec) -> str:
    """A shape as people write it: `1×3×224×224`; `scalar` for no axes, `?` where it can't be told."""
    if spec.shape is None:
        return "?"
    return "×".join(map(str, spec.shape)) or "scalar"


def spec_text(spec: TensorSpec) -> str:
    """Shape and dtype of a tensor, for example `1×128 int64`."""
    return f"{shape_text(spec)} {spec.dtype}"


def count_text(number: float) -> str:
    """A count in three digits and a unit: `124 M`, `38.6 M`, `590 k`, `42`."""
    for factor, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        # 999,950 shows as 1.00 M, since in thousands it would round to 1000 k.
        if number >= factor * 0.9995:
            return f"{number / factor:.3g}{unit}" if number < factor * 999.5 else f"{number / factor:.0f}{unit}"
    return f"{number:.3g}" if number != int(number) else str(int(number))


def summary(graph: Graph, depth: int = 3) -> str:
    """Describe a graph in a few lines: what it is, its module calls as a tree, and why it stopped if it did.

    Args:
        graph: the graph.
        depth: levels of module calls to list, from 1; equal calls in a row are one line.

    Returns:
        Text without a newline at its end.

    Raises:
        ValueError: `depth` is below 1.
    """
    if depth < 1:
        raise ValueError(f"depth must be >= 1, got {depth}")
    rows = [_Row(*_HEADINGS), *_tree(graph, depth)]
    return "\n".join([_headline(graph), *_tensors(graph), "", *_table(rows), *_failures(graph)])


def _headline(graph: Graph) -> str:
    parameters = graph.calls[0].metrics.get("parameters") if graph.calls else None
    coverage = graph.coverage
    parts = [graph.title]
    if parameters is not None:
        parts.append(f"{count_text(parameters)} parameters")
    parts.append(_counted(len(graph.calls), "module call"))
    parts.append(f"{_counted(coverage.operations, 'operation')}, {coverage.nodes} shown")
    if graph.error is not None:
        parts.append("stopped by an exception")
    return " · ".join(parts)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _tensors(graph: Graph) -> Iterator[str]:
    for label, ids in (("input", graph.inputs), ("output", graph.outputs)):
        for node in (graph.nodes[position] for position in ids[:_TENSORS_LISTED]):
            specs = ", ".join(map(spec_text, node.outputs))
            yield f"  {label:<6}  {_plain(node.name)}  {specs}".rstrip()
        if len(ids) > _TENSORS_LISTED:
            yield f"  {label:<6}  and {len(ids) - _TENSORS_LISTED} more"


def _tree(graph: Graph, depth: int) -> Iterator[_Row]:
    children: dict[int, list[ModuleCall]] = defaultdict(list)
    for call in graph.calls[1:]:
        children[call.parent or 0].append(call)
    shapes = _structures(graph, children)
    if graph.calls:
        yield _row([graph.calls[0]], 0, graph)
    pending = [(run, 1) for run in _runs(children[0], shapes)][::-1]
    while pending:
        run, level = pending.pop()
        yield _row(run, level, graph)
        if level < depth:
            pending.extend([(inner, level + 1) for inner in _runs(children[run[0].id], shapes)][::-1])


def _structures(graph: Graph, children: dict[int, list[ModuleCall]]) -> list[int]:
    """A number per call, equal for calls that look the same all the way down (callees come after their callers)."""
    known: dict[object, int] = {}
    numbers = [0] * len(graph.calls)
    for call in reversed(graph.calls):
        inner = tuple((_attribute(child), numbers[child.id]) for child in children[call.id])
        shape = (call.type, call.status, call.detail, call.outputs, call.metrics.get("parameters"), inner)
        numbers[call.id] = known.setdefault(shape, len(known))
    return numbers


def _runs(calls: Sequence[ModuleCall], shapes: Sequence[int]) -> list[list[ModuleCall]]:
    """Calls that follow one another and are equal, as in a stack of blocks, together."""
    runs: list[list[ModuleCall]] = []
    for call in calls:
        if runs and shapes[runs[-1][0].id] == shapes[call.id]:
            runs[-1].append(call)
        else:
            runs.append([call])
    return runs


def _attribute(call: ModuleCall) -> str:
    return call.name.rpartition(".")[2]


def _short_name(call: ModuleCall, graph: Graph) -> str:
    """The name below its caller's: `attn` for `h.0.attn` in `h.0`; the whole name where that is no prefix."""
    return call.name if call.parent is None else call.name.removeprefix(graph.calls[call.parent].name + ".")


def _row(run: Sequence[ModuleCall], level: int, graph: Graph) -> _Row:
    call = run[0]
    first, last = _short_name(call, graph), _short_name(run[-1], graph)
    name = _plain(first if len(run) == 1 else f"{first} … {last} ×{len(run)}")
    parameters = call.metrics.get("parameters", 0)
    return _Row(
        "  " * level + ("✗ " if call.status == "failed" else "") + name,
        _plain(call.type),
        _shapes(call.outputs),
        count_text(parameters) if parameters else "",
    )


def _shapes(specs: Sequence[TensorSpec]) -> str:
    listed = ", ".join(map(shape_text, specs[:_SHAPES_IN_ROW]))
    return listed if len(specs) <= _SHAPES_IN_ROW else f"{listed} and {len(specs) - _SHAPES_IN_ROW} more"


def _table(rows: Sequence[_Row]) -> Iterator[str]:
    widths = [max(len(getattr(row, field)) for row in rows) for field in ("name", "type", "output")]
    widths[0] = min(widths[0], _NAME_WIDTH_MAX)
    for row in rows:
        cells = (row.name.ljust(widths[0]), row.type.ljust(widths[1]), row.output.ljust(widths[2]), row.parameters)
        yield "  ".join(cells).rstrip()


def _failures(graph: Graph) -> Iterator[str]:
    for failure in graph.errors or ([] if graph.error is None else [graph.error]):
        yield ""
        yield f"✗ {_plain(_place(graph, failure))} raised {failure.type}: {_plain(failure.message)}"
        if failure.source is not None:
            source = graph.sources[failure.source]
            yield f"  {source.file}:{source.line} in {source.function}"
        if failure.explanation:
            yield f"  {failure.explanation}"
        yield from (f"  - {suggestion}" for suggestion in failure.suggestions)


def _place(graph: Graph, failure: Failure) -> str:
    """Name of the operation that failed, or of the innermost call where plain Python raised."""
    if failure.node is not None:
        return graph.nodes[failure.node].name
    return graph.calls[failure.calls[-1]].name if failure.calls else graph.title


def _plain(text: str) -> str:
    """Text on one line: a name or message must not move the cursor of a terminal or break the table."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
