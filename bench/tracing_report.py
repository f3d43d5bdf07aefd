"""The text of `tracing.py`'s measurements: three tables and the bars. Pure: measurements in, text out."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

LARGE_MS = 50.0
"""A plain forward from here on counts as large, for the bars."""
FEW_OPERATIONS = 50
"""Models with fewer operations than this say little about the cost of one."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Bar:
    """One aim: what is measured, the limit, the median, and over how many models; None where nothing was measured."""

    name: str
    limit: float
    unit: str
    measured: float | None
    count: int

    def line(self) -> str:
        if self.measured is None:
            return f"  -     {self.name}: not measured"
        verdict = "pass" if self.measured <= self.limit else "FAIL"
        among = f" (median of {self.count} models)" if self.count > 1 else ""
        return f"  {verdict}  {self.name}: {self.measured:.3g}{self.unit}, at most {self.limit:.3g}{self.unit}{among}"


def report(found: Row) -> str:
    """All tables and bars as text, tables in Markdown."""
    machine, versions = found["machine"], found["versions"]
    head = (
        f"torch {machine['torch']}, Python {machine['python']}, {machine['cores']} cores ({machine['processor']}), "
        f"load {found['load']:.1f}; adding two tensors of 4 numbers takes {machine['add_us']:.2f} us\n"
        + ", ".join(f"{name} {version or 'not installed'}" for name, version in versions.items())
        + f"; {found['repeats']} rounds"
    )
    names = list(versions)
    rows = found["models"]
    parts = [head, _times(rows, names), _memory(rows, names), _errors(rows), _bars(rows)]
    return "\n\n".join(part for part in parts if part)


def _times(rows: list[Row], names: list[str]) -> str:
    atlas, *peers = names
    header = ["model", "operations", "plain", atlas, f"{atlas} + graph", *peers]
    fixed = _fixed_ms(rows)
    lines = []
    for row in rows:
        tools = row["tools"]
        first = tools[atlas]
        operations = first.get("operations")
        plain = f"{first['plain_ms']:.3g} ms" if "plain_ms" in first else ""
        cells = [_time_cell(first, operations, fixed), _time_cell(first, operations, fixed, with_finish=True)]
        cells += [_time_cell(tools.get(name), operations, None) for name in peers]
        lines.append([row["name"], str(operations or ""), plain, *cells])
    note = (
        "CPU time: trace in ms, ratio to the plain forward beside it, us per operation added to it"
        f" (for {atlas} less the cost of one-linear)"
    )
    return note + "\n\n" + _table(header, lines)


def _time_cell(tool: Row | None, operations: int | None, fixed: float | None, *, with_finish: bool = False) -> str:
    if tool is None:
        return "-"
    if "error" in tool:
        return str(tool["error"])
    total = tool["trace_ms"] + (tool["finish_ms"] if with_finish else 0.0)
    text = f"{total:.3g} ms, {total / tool['plain_ms']:.3g}x"
    if operations is not None and operations >= FEW_OPERATIONS:
        text += f", {_us_per_operation(total - tool['plain_ms'] - (fixed or 0.0), operations):.3g} us"
    return text


def _us_per_operation(added_ms: float, operations: int) -> float:
    return max(0.0, 1e3 * added_ms / operations)


def _memory(rows: list[Row], names: list[str]) -> str:
    lines = []
    for row in rows:
        plain = row.get("plain_mb")
        if isinstance(plain, float):
            lines.append(
                [row["name"], f"{plain:.0f} MB", *(_memory_cell(row["tools"].get(name), plain) for name in names)]
            )
    if not lines:
        return ""
    return "Peak memory of model and forward, ratio to the plain forward\n\n" + _table(
        ["model", "plain", *names], lines
    )


def _memory_cell(tool: Row | None, plain: float) -> str:
    if tool is None:
        return "-"
    found = tool.get("memory", tool)
    return f"{found / plain:.3g}x" if isinstance(found, float) else str(found.get("error", "-"))


def _errors(rows: list[Row]) -> str:
    """What handling errors costs, where none occurs and where one does."""
    ours = {row["name"]: row["tools"]["torchatlas"] for row in rows if "trace_ms" in row["tools"]["torchatlas"]}
    lines = []
    for row in rows:
        past, plain = row.get("past_errors", {}), ours.get(row["name"])
        if plain is not None and "trace_ms" in past:
            ratio = (past["trace_ms"] / past["plain_ms"]) / (plain["trace_ms"] / plain["plain_ms"])
            lines.append(f"no error, asked to look past errors: {ratio:.2f}x of the trace that is not ({row['name']})")
    if "loop" in ours and "failing-loop" in ours:
        added = [ours[name]["trace_ms"] + ours[name]["finish_ms"] for name in ("failing-loop", "loop")]
        lines.append(
            f"an error, explained: {added[0]:.3g} ms with the graph, {added[1]:.3g} ms where there is none (loop)"
        )
    return "\n".join(lines)


def _bars(rows: list[Row]) -> str:
    bars = bars_of(rows)
    return "\n".join(["Bars", *(bar.line() for bar in bars)])


def bars_of(rows: list[Row]) -> list[Bar]:
    """The aims of the tracer, each with what was measured.

    Models on the meta device, which compute nothing, and failing ones are left out.
    """
    fixed = _fixed_ms(rows)
    real = [row for row in rows if not row["is_meta"] and "plain_ms" in row["tools"].get("torchatlas", {})]
    large = [row for row in real if _plain_ms(row) >= LARGE_MS]
    small = [row for row in real if _plain_ms(row) < LARGE_MS and not row["is_failing"] and row["name"] != "one-linear"]
    many = [row for row in small if (row["tools"]["torchatlas"]["operations"] or 0) >= FEW_OPERATIONS]
    return [
        Bar("fixed cost of a trace", 1.0, " ms", fixed, 1),
        _median_bar(
            f"ratio to plain, {LARGE_MS:.0f} ms or more", 1.3, "x", [_ratio(row, "torchatlas") for row in large]
        ),
        _median_bar("us per operation, small models", 25.0, " us", [_us(row, fixed or 0.0) for row in many]),
        _median_bar("time in torchvista's, small models", 1 / 3, "x", _compared(small, "torchvista")),
        _median_bar("the same, graph included", 1 / 3, "x", _compared(small, "torchvista", with_finish=True)),
        _median_bar("peak memory to plain", 1.1, "x", _memory_ratios(real)),
    ]


def _median_bar(name: str, limit: float, unit: str, values: Iterable[float]) -> Bar:
    found = list(values)
    return Bar(name, limit, unit, statistics.median(found) if found else None, len(found))


def _fixed_ms(rows: list[Row]) -> float | None:
    """What tracing a model of one operation adds to its forward."""
    tool = next((row["tools"]["torchatlas"] for row in rows if row["name"] == "one-linear"), {})
    return tool["trace_ms"] - tool["plain_ms"] if "trace_ms" in tool else None


def _plain_ms(row: Row) -> float:
    return float(row["tools"]["torchatlas"]["plain_ms"])


def _ratio(row: Row, name: str, *, with_finish: bool = False) -> float:
    tool = row["tools"][name]
    return float((tool["trace_ms"] + (tool["finish_ms"] if with_finish else 0.0)) / tool["plain_ms"])


def _us(row: Row, fixed_ms: float) -> float:
    tool = row["tools"]["torchatlas"]
    return _us_per_operation(tool["trace_ms"] - tool["plain_ms"] - fixed_ms, tool["operations"])


def _compared(rows: list[Row], peer: str, *, with_finish: bool = False) -> list[float]:
    """Our time in a peer's; each in units of the plain forward measured beside it, so that load weighs less."""
    both = [row for row in rows if "trace_ms" in row["tools"].get(peer, {})]
    return [_ratio(row, "torchatlas", with_finish=with_finish) / _ratio(row, peer) for row in both]


def _memory_ratios(rows: list[Row]) -> list[float]:
    pairs = [(row["tools"]["torchatlas"].get("memory"), row.get("plain_mb")) for row in rows]
    return [ours / plain for ours, plain in pairs if isinstance(ours, float) and isinstance(plain, float)]


def _table(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )
