"""A process of its own that draws: the view's JavaScript in an embedded V8; SVG to PNG and PDF.

A process can be ended when it takes too long or too much memory, and a fault of V8 ends nothing but itself. It is run
as a file, by `picture`, and imports nothing of torchatlas, which would import torch. Each line it reads is a request,
each line it writes the answer to one, both JSON objects:

    {"document": "...", "options": "...", "format": "svg" | "png" | "pdf", "style": "plain" | "compact"}
    {"content": base64} or {"error": text}
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

_START_S = 30
_IDLE_S = 120
"""Without a request for so long it ends, and gives its memory back."""
_MOST_HEAP_BYTES = 2 * 2**30
_PNG_SCALE = 2
_MOST_PIXELS = 64_000_000
_SIZE = re.compile(r'<svg [^>]*?width="(\d+)" height="(\d+)"')


def main(static: Path) -> None:
    """Answer requests until there are no more.

    Args:
        static: folder of the built view.
    """
    # An interrupt is for the process that asks, which then ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    engine = _engine(static)
    while True:
        idle = threading.Timer(_IDLE_S, os._exit, [0])
        idle.daemon = True
        idle.start()
        line = sys.stdin.buffer.readline()
        idle.cancel()
        if not line:
            return
        _write(answers, _answer(engine, json.loads(line)))


def _write(answers: BinaryIO, answer: dict[str, str]) -> None:
    answers.write(json.dumps(answer).encode("ascii") + b"\n")
    answers.flush()


def _answer(engine: Any, request: dict[str, str]) -> dict[str, str]:
    try:
        content = _drawn(engine, request)
    except Exception as error:  # noqa: BLE001 # whatever it is, the process that asks must hear of it
        return {"error": f"{type(error).__name__}: {error}"}
    return {"content": base64.b64encode(content).decode("ascii")}


def _drawn(engine: Any, request: dict[str, str]) -> bytes:
    given = json.dumps([request["document"], request["options"], request["style"]])
    svg: str = engine.eval(f"torchatlas.renderSvg(...{given})")
    if request["format"] == "png":
        return _png(svg)
    if request["format"] == "pdf":
        import vl_convert

        pdf: bytes = vl_convert.svg_to_pdf(svg)
        return pdf
    return svg.encode("utf-8")


def _png(svg: str) -> bytes:
    import resvg_py

    size = _SIZE.search(svg)
    width, height = (int(size[1]), int(size[2])) if size else (1, 1)
    scale = min(_PNG_SCALE, (_MOST_PIXELS / (width * height)) ** 0.5)
    # Its own default of no dots per inch makes every length in pt zero.
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=scale, dpi=96))


def _engine(static: Path) -> Any:
    from py_mini_racer import MiniRacer

    engine: Any = MiniRacer()
    engine.set_hard_memory_limit(_MOST_HEAP_BYTES)
    engine.eval((static / "headless.js").read_text(encoding="utf-8"))
    wasm = base64.b64encode((static / "viz.wasm").read_bytes()).decode("ascii")
    engine.eval(f'torchatlas.start("{wasm}")').get(timeout=_START_S)
    return engine


if __name__ == "__main__":
    main(Path(sys.argv[1]))
