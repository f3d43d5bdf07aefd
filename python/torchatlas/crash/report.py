"""A failure as a Markdown report, to be pasted into an issue."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import torch

from torchatlas import text
from torchatlas._version import __version__
from torchatlas.crash.explanation import Argument, Explanation
from torchatlas.crash.site import shape_text
from torchatlas.graph import Graph, Source

_PATH_NODES_MAX = 12


def report(graph: Graph, explanations: Sequence[Explanation]) -> str:
    """Describe a trace and its failures for somebody who was not there.

    Args:
        graph: the trace's graph, partial where it failed.
        explanations: one per failure; empty where the forward ran through.

    Returns:
        Markdown: each failure with its sentence, line and arguments, the way to it, a summary of the graph, versions.
    """
    parts = [f"# Forward of `{graph.title}`" + (" failed" if explanations else " ran through")]
    for number, (failure, explanation) in enumerate(zip(graph.errors, explanations, strict=True), 1):
        heading = f"## Failure {number} of {len(explanations)}: {explanation.type}" if len(explanations) > 1 else ""
        source = None if failure.source is None else graph.sources[failure.source]
        parts += [heading, *_failure(explanation, source), *_way(graph, failure.node)]
    parts += ["### Summary", _fenced(text.summary(graph)), "### Versions", *_versions()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _failure(explanation: Explanation, source: Source | None) -> list[str]:
    parts = [_fenced(f"{explanation.type}: {explanation.message}")]
    if explanation.sentence:
        parts.append(f"**{explanation.sentence}.**")
        parts.extend(f"- {suggestion}" for suggestion in explanation.suggestions)
    if explanation.modules:
        parts.append("In: " + " › ".join(f"`{name}`" for name in explanation.modules))
    if explanation.node:
        parts.append(f"Operation: `{explanation.node}`")
    if source is not None:
        parts.append(f"Line: `{source.file}:{source.line}` in `{source.function}`")
        parts.append(_fenced("\n".join(_marked(source)), "python"))
    if explanation.arguments:
        parts.append("\n".join(_table(explanation.arguments)))
    return parts


def _marked(source: Source) -> list[str]:
    """The lines of code around a place, numbered, the line itself marked."""
    rows = []
    for number, line in enumerate(source.code, source.first_line):
        mark = ">" if number == source.line else " "
        rows.append(f"{mark} {number:>4} {line}".rstrip())
    return rows


def _table(arguments: Sequence[Argument]) -> list[str]:
    rows = ["| argument | shape | dtype | device | value | from |", "| --- | --- | --- | --- | --- | --- |"]
    for row in arguments:
        shape = "" if row.dtype is None else shape_text(row.shape)
        cells = (f"`{row.name}`", shape, row.dtype or "", row.device or "", _cell(row.value), row.origin)
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _cell(value: str) -> str:
    return f"`{value}`".replace("|", "\\|") if value else ""


def _way(graph: Graph, node: int | None) -> list[str]:
    """The last operations on the way from the inputs to the one that failed."""
    if node is None:
        return []
    tails: dict[int, list[int]] = {}
    for edge in graph.edges:
        tails.setdefault(edge.head, []).append(edge.tail)
    above, pending = {node}, [node]
    while pending:
        for tail in tails.get(pending.pop(), ()):
            if tail not in above:
                above.add(tail)
                pending.append(tail)
    way = [graph.nodes[index] for index in sorted(above) if graph.nodes[index].kind not in ("parameter", "buffer")]
    rows = [f"{row.name}  {', '.join(map(text.spec_text, row.outputs))}".rstrip() for row in way]
    cut = [f"… {len(rows) - _PATH_NODES_MAX} more", *rows[-_PATH_NODES_MAX:]] if len(rows) > _PATH_NODES_MAX else rows
    return ["### The way to it", _fenced("\n".join(cut))]


def _fenced(content: str, language: str = "") -> str:
    """A code block, with a fence that the content does not hold."""
    fence = "```"
    while fence in content:
        fence += "`"
    return f"{fence}{language}\n{content}\n{fence}"


def _versions() -> list[str]:
    python = f"Python {platform.python_version()}, {platform.platform()}"
    return [f"torchatlas {__version__}, torch {torch.__version__}, {python}"]
