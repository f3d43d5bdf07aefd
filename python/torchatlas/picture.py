"""Pictures without a browser: the same JavaScript as the view's, run by `renderer` in a process of its own.

It needs the packages of the extra `torchatlas[export]`.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import dataclasses
import importlib.util
import json
import logging
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Literal, cast

from torchatlas import bundle, schema
from torchatlas.graph import Graph
from torchatlas.options import ViewOptions

Format = Literal["svg", "png", "pdf"]
Style = Literal["plain", "compact"]

PATIENCE_S = 120.0
"""How long a picture may take that somebody asked for."""
_NOTEBOOK_PATIENCE_S = 4.0
_log = logging.getLogger(__name__)
_too_many_nodes: float = math.inf
"""Nodes of the smallest graph whose picture took too long, or failed."""
_NEEDED: dict[str, tuple[str, ...]] = {
    "svg": ("py_mini_racer",),
    "png": ("py_mini_racer", "resvg_py"),
    "pdf": ("py_mini_racer", "vl_convert"),
}


def require(kind: str) -> None:
    """Raise unless the packages are installed that a kind of picture needs.

    Args:
        kind: `svg`, `png` or `pdf`.

    Raises:
        ImportError: one is not.
    """
    missing = [name for name in _NEEDED[kind] if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"a .{kind} file needs {' and '.join(missing)}: pip install 'torchatlas[export]'", name=missing[0]
        )


def is_possible() -> bool:
    """Whether SVG can be drawn here."""
    # In a frozen application `sys.executable` is that application.
    return bool(sys.executable) and not hasattr(sys, "frozen") and importlib.util.find_spec("py_mini_racer") is not None


def draw(
    graph: Graph,
    options: ViewOptions,
    kind: Format = "svg",
    *,
    style: Style = "plain",
    patience_s: float = PATIENCE_S,
) -> bytes:
    """Draw what a view of the graph shows at first.

    Args:
        graph: the graph.
        options: how the view starts; its theme `auto` is light.
        kind: of the picture.
        style: `compact` is the same picture in fewer bytes, without names for scripts.
        patience_s: how long it may take, in seconds.

    Returns:
        The bytes of a file.

    Raises:
        ImportError: a package is missing.
        RuntimeError: it could not be drawn, or not in that time.
    """
    require(kind)
    request = {
        "document": schema.to_json(graph),
        "options": json.dumps(options.to_wire()),
        "format": kind,
        "style": style,
    }
    answer = _shared.ask(request, patience_s)
    if "error" in answer:
        raise RuntimeError(f"the picture could not be drawn: {answer['error']}")
    return base64.b64decode(answer["content"])


def for_notebook(graph: Graph, options: ViewOptions, most_bytes: int) -> bytes | None:
    """A picture to be kept in a notebook: of what the view shows at first, or of less where that is too large.

    It must neither keep a cell waiting nor end it: what goes wrong is logged, and a graph of a size that took too long
    is not tried again.

    Args:
        graph: the graph.
        options: how the view starts.
        most_bytes: the most bytes of the picture.

    Returns:
        SVG; None where it can't be drawn here, or not in time, or not in so few bytes.
    """
    global _too_many_nodes
    if not is_possible() or len(graph.nodes) >= _too_many_nodes:
        return None
    fewer = (dataclasses.replace(options, depth=depth, opened=None, commands=(), selected=()) for depth in (1, 0))
    until = time.monotonic() + _NOTEBOOK_PATIENCE_S
    for each in (options, *fewer):
        try:
            drawn = draw(graph, each, style="compact", patience_s=max(until - time.monotonic(), 0.0))
        except (RuntimeError, OSError) as error:  # FileNotFoundError: not built; OSError: no process can be started
            _too_many_nodes = len(graph.nodes)
            _log.info("%s", error)
            return None
        if len(drawn) <= most_bytes:
            return drawn
    return None


def warm_up() -> None:
    """Start the process that draws, so that it is ready by the time a picture is needed."""
    if is_possible():
        with contextlib.suppress(OSError):  # the picture will tell
            _shared.warm_up()


class _Renderer:
    """The process that draws: started when it is first needed, and again after it has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._foreign: list[subprocess.Popen[bytes] | None] = []

    def warm_up(self) -> None:
        """Start the process unless it runs."""
        with self._lock:
            self._start()

    def _start(self) -> bool:
        """Start the process unless it runs, and say whether it had to."""
        if self._process is not None and self._process.poll() is None:
            return False
        self.end()
        self._answers = queue.SimpleQueue()
        self._process = subprocess.Popen(
            # -P: the package's own modules must not take the place of the standard library's.
            [sys.executable, "-P", str(Path(__file__).with_name("renderer.py")), str(bundle.headless_folder())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        _in_background(_pass_on, self._process.stdout, self._answers)
        return True

    def ask(self, request: dict[str, str], patience_s: float) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        line = json.dumps(request).encode("ascii") + b"\n"
        with self._lock:
            try:
                is_fresh, said = self._try(line, patience_s)
                if not said and not is_fresh:  # it had just ended for want of requests
                    _, said = self._try(line, patience_s)
            except BaseException:  # an interrupt too: what is under way would answer the next request
                self.end()
                raise
        if not said:
            raise RuntimeError("the picture could not be drawn: the process that draws has ended")
        answer: dict[str, Any] = json.loads(said)
        return answer

    def _try(self, line: bytes, patience_s: float) -> tuple[bool, bytes]:
        is_fresh = self._start()
        assert self._process is not None
        # A pipe takes a large request only as fast as it is read.
        _in_background(_send, self._process.stdin, line)
        try:
            return is_fresh, self._answers.get(timeout=patience_s)
        except queue.Empty:
            raise RuntimeError(f"the picture could not be drawn within {patience_s:g} s") from None

    def end(self) -> None:
        """End the process, if it runs."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError, ValueError):  # what was not yet sent, or is being read
                cast(IO[bytes], pipe).close()

    def disown(self) -> None:
        """Start afresh in a forked process: the other's renderer is not ours to ask, nor to end."""
        self._foreign.append(self._process)
        self._process = None
        self._lock = threading.Lock()


def _in_background(function: Callable[..., None], *args: Any) -> None:
    threading.Thread(target=function, args=args, name="torchatlas-picture", daemon=True).start()


def _send(pipe: IO[bytes], line: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):  # it has ended, which the missing answer tells
        pipe.write(line)
        pipe.flush()


def _pass_on(pipe: IO[bytes], answers: queue.SimpleQueue[bytes]) -> None:
    """Hand on each line, at last an empty one."""
    with contextlib.suppress(OSError, ValueError):  # closed from this side
        for line in pipe:
            answers.put(line)
    answers.put(b"")


_shared = _Renderer()
atexit.register(_shared.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.disown)
