"""Places in the user's code: which lines are the user's at all, and which one called an operation."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, TracebackType

import torch

from torchatlas.record import Place

_FOLDERS = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
_is_internal: dict[CodeType, bool] = {}


def is_internal_code(code: CodeType) -> bool:
    """Whether code is torch's or ours, so that no line of it is the user's."""
    found = _is_internal.get(code)
    if found is None:
        found = _is_internal[code] = code.co_filename.startswith(_FOLDERS)
    return found


def place(skipped: int, end: frozenset[CodeType]) -> Place | None:
    """The innermost line of code that is neither torch's nor ours.

    Args:
        skipped: how many frames to leave out, the caller's first.
        end: code beyond which not to look; None is returned where that is reached.
    """
    frame: FrameType | None = sys._getframe(skipped + 1)
    while frame is not None:
        code = frame.f_code
        is_internal = _is_internal.get(code)
        if not (is_internal_code(code) if is_internal is None else is_internal):
            return code, frame.f_lasti
        if code in end:
            return None
        frame = frame.f_back
    return None


@functools.lru_cache(maxsize=8192)
def line_of(code: CodeType, instruction: int) -> int:
    """Line number of an instruction of some code."""
    for start, end, line in code.co_lines():
        if line is not None and start <= instruction < end:
            return line
    return code.co_firstlineno


def raised_at(trace: TracebackType | None, is_internal: Callable[[CodeType], bool]) -> tuple[CodeType, int] | None:
    """The innermost line of the user's code that an exception passed through."""
    found = None
    while trace is not None:
        if not is_internal(trace.tb_frame.f_code):
            found = trace.tb_frame.f_code, trace.tb_lineno
        trace = trace.tb_next
    return found
