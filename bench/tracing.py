"""Compare what tracing costs: torchatlas, torchvista, torchlens, torchview against the plain forward.

    python bench/tracing.py [--models NAMES] [--peers NAMES] [--repeats N] [--timeout S] [--json FILE]

Each (model, tool) is measured in a forked process of its own, because some tools leave torch, the model or its tensors
changed. In it plain forwards and traces alternate; times are CPU time of the process on one thread, medians, without
autograd. Small models run five times as often. Peak memory is the high-water mark of another such process for each
forward. A benchmark, not a test: the exit status is 0 whether the bars are met or not.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import platform
import re
import resource
import select
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import nn
from tracing_cases import CASES, Case
from tracing_report import report
from tracing_tools import ATLAS, PAST_ERRORS, PEERS, Tool

SMALL_MS = 5.0
"""Plain forwards shorter than this are repeated five times as often."""
BUDGET_S = 8.0
"""No further round begins when a process has used this much CPU time."""

Row = dict[str, Any]


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with contextlib.suppress(ImportError):  # once, before the forks; without it the cases that need it are left out
        import transformers  # noqa: F401
    import torchatlas  # noqa: F401

    cases = [case for case in CASES if case.name in options.models]
    peers = [tool for tool in PEERS if tool.name in options.peers]
    found: Row = {
        "machine": _machine(),
        "versions": {tool.name: tool.version for tool in (ATLAS, *PEERS)},
        "repeats": options.repeats,
        "load": os.getloadavg()[0],
        "models": [],
    }
    gc.freeze()  # else each collection in a child would walk through all that is imported
    for case in cases:
        if case.is_available:
            print(f"{case.name} ...", file=sys.stderr, flush=True)
            found["models"].append(_measure(case, peers, options))
    print(report(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    models, peers = [case.name for case in CASES], [tool.name for tool in PEERS]
    parser.add_argument("--models", type=_names(models), default=models, help=f"among {', '.join(models)}")
    parser.add_argument("--peers", type=_names(peers), default=peers, help=f"among {', '.join(peers)}, or ''")
    parser.add_argument("--repeats", type=int, default=7, help="rounds of plain forward and trace, 7 if not given")
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds a process may take, 180 if not given")
    parser.add_argument("--json", type=Path, help="write all measurements there")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats must be >= 1, got {options.repeats}")
    return options


def _names(known: list[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        given = [name for name in text.split(",") if name]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
        return given

    return parse


def _measure(case: Case, peers: list[Tool], options: argparse.Namespace) -> Row:
    """All that is measured of one model: by tool the times and the peak memory, or why there are none."""
    tools = [ATLAS] if case.is_meta else [ATLAS, *peers]
    row: Row = {
        "name": case.name,
        "is_meta": case.is_meta,
        "is_failing": case.raises is not None,
        "tools": {tool.name: _one_tool(case, tool, options) for tool in tools},
    }
    if case.has_memory:
        row["plain_mb"] = _in_child(lambda: _peak_memory(case, None), options.timeout)
    if case.name == "loop":
        row["past_errors"] = _in_child(lambda: _times(case, PAST_ERRORS, options.repeats), options.timeout)
    return row


def _one_tool(case: Case, tool: Tool, options: argparse.Namespace) -> Row:
    if tool.version is None:
        return {"error": "not installed"}
    found = _in_child(lambda: _times(case, tool, options.repeats), options.timeout)
    if case.has_memory and "error" not in found:
        found["memory"] = _in_child(lambda: _peak_memory(case, tool), options.timeout)
    return found


def _times(case: Case, tool: Tool, repeats: int) -> Row:
    """Medians, in ms, of the plain forward, the trace, and what is left to do after it; runs alternate."""
    trace, finish = tool.load(), tool.finish
    model, args = _built(case)
    run = trace if case.raises is None else _expecting(trace, case.raises)
    forward = _forward if case.raises is None else _expecting(_forward, case.raises)
    forward(model, args)
    first_ms = _cpu_ms(lambda: forward(model, args))[0]
    result = run(model, args)
    graph = finish(result) if finish is not None else None
    rows: list[tuple[float, float, float]] = []
    rounds = repeats * 5 if first_ms < SMALL_MS else repeats
    gc.collect()
    gc.freeze()
    while len(rows) < rounds and (not rows or time.process_time() < BUDGET_S):
        gc.collect()
        plain_ms, _ = _cpu_ms(lambda: forward(model, args))
        result = None
        gc.collect()
        trace_ms, result = _cpu_ms(lambda: run(model, args))
        finish_ms = _finish_ms(finish, result)
        rows.append((plain_ms, trace_ms, finish_ms))
    plain_ms, trace_ms, finish_ms = (statistics.median(column) for column in zip(*rows, strict=True))
    return {
        "plain_ms": plain_ms,
        "trace_ms": trace_ms,
        "finish_ms": finish_ms,
        "rounds": len(rows),
        "operations": None if graph is None else graph.coverage.operations,
    }


def _finish_ms(finish: Callable[[Any], Any] | None, result: Any) -> float:
    return 0.0 if finish is None else _cpu_ms(lambda: finish(result))[0]


def _peak_memory(case: Case, tool: Tool | None) -> float:
    """MB that model and forward add to the process at their peak; both the plain output and a trace are kept.

    What the process holds before is taken off: the interpreter, torch, the model's code and the tool. The tool has
    traced a small model by then, so that nothing that is loaded late counts.
    """
    run = _forward if tool is None else tool.load()
    first = run(nn.Linear(4, 4).eval(), (torch.rand(2, 4),))
    if tool is not None and tool.finish is not None:
        tool.finish(first)
    with torch.device("meta"):
        case.build()  # takes no memory, but imports what the model's code imports, which some tools have done by now
    gc.collect()
    base = _resident_mb()
    model, args = _built(case)
    gc.collect()
    _reset_peak()
    kept = run(model, args)
    if tool is not None and tool.finish is not None:
        kept = kept, tool.finish(kept)
    peak = _peak_mb()
    del kept
    return peak - base


def _built(case: Case) -> tuple[nn.Module, tuple[Any, ...]]:
    torch.manual_seed(0)
    model, args = case.build()
    return model.eval(), args


def _forward(model: nn.Module, args: tuple[Any, ...]) -> Any:
    return model(*args)


def _expecting(run: Callable[..., Any], message: str) -> Callable[..., Any]:
    """Like `run`, without the one exception that the model is to raise; any other is a failure of the tool."""

    def expecting(*args: Any) -> Any:
        try:
            return run(*args)
        except RuntimeError as error:
            if message not in str(_innermost(error)):
                raise
            return None

    return expecting


def _cpu_ms(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = run()
    return 1e3 * (time.process_time() - start), result


def _resident_mb() -> float:
    return _status_mb("VmRSS")


def _peak_mb() -> float:
    return _status_mb("VmHWM")


def _status_mb(field: str) -> float:
    """A size from Linux's `/proc/self/status`; elsewhere the peak since the process began, which is coarser."""
    with contextlib.suppress(FileNotFoundError):
        found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if found is not None:
            return int(found[1]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _reset_peak() -> None:
    """Let the high-water mark begin anew at the present size (proc(5), `clear_refs`)."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        Path("/proc/self/clear_refs").write_text("5")


def _in_child(measure: Callable[[], Any], timeout_s: float) -> Any:
    """What `measure` gives, run in a forked process with autograd off and no output; else a row with the error.

    By `os.fork()`, since torchlens refuses to trace in processes of `multiprocessing`.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _answer(measure, writer)
    os.close(writer)
    text = b""
    deadline = time.monotonic() + timeout_s
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(reader, 1 << 16)
        if not part:
            break
        text += part
    else:
        os.kill(child, signal.SIGKILL)
        text = json.dumps({"error": f"over {timeout_s:.0f} s"}).encode()
    os.close(reader)
    os.waitpid(child, 0)
    return json.loads(text or b'{"error": "process died"}')


def _answer(measure: Callable[[], Any], writer: int) -> NoReturn:
    """Write what `measure` gives to a pipe and end the process, without anything that is run at Python's exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        with torch.no_grad():
            found = measure()
    except Exception as error:  # noqa: BLE001 - any failure of a tool is a result to be shown
        found = {"error": type(_innermost(error)).__name__}
    os.write(writer, json.dumps(found).encode())
    os._exit(0)


def _innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _machine() -> Row:
    """What the numbers depend on, with the time of a small addition as a measure of the core's present speed."""
    x, y = torch.rand(4), torch.rand(4)
    add_ms = statistics.median(_cpu_ms(lambda: [x + y for _ in range(1000)])[0] for _ in range(9))
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "add_us": add_ms,
    }


if __name__ == "__main__":
    main()
