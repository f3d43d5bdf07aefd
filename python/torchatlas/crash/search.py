"""Find every failure of a forward: run it again for each one found, past those that are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import CodeType

from torchatlas.crash.past import Key, Past, key_of
from torchatlas.failures import last_failure
from torchatlas.record import Record

_FAILURES_MAX = 24
_CHOICES_MAX = 3


def look_past(first: Record, run: Callable[[Past], Record], is_internal: Callable[[CodeType], bool]) -> Record | None:
    """Run a forward again and again until it gets through, or to a failure that can't be passed over.

    Where an operation could have given one of several results, each is tried, and the one that lets the forward get
    furthest is taken.

    Args:
        first: record of the run that failed as it is.
        run: runs the forward once more, past what it is told; returns the record.
        is_internal: whether code is torch's or ours.

    Returns:
        The record of the last run, all failures in `failures` and the first one as `error`; None if not even the first
        failure can be passed over.
    """
    plan: dict[Key, int] = {}
    current = first
    while len(plan) < _FAILURES_MAX:
        failed = last_failure(current)
        key = None if failed is None else key_of(failed)
        if key is None or key in plan:
            break
        found = _furthest(plan, key, run, is_internal)
        if found is None:
            break
        plan[key], current = found
    if not plan:
        return None
    rest = last_failure(current)
    if rest is not None:
        current.failures.append(rest)
    current.error = first.error
    return current


def _furthest(
    plan: dict[Key, int], key: Key, run: Callable[[Past], Record], is_internal: Callable[[CodeType], bool]
) -> tuple[int, Record] | None:
    """The choice at one failure that lets the forward get furthest, and the record of that run."""
    best: tuple[int, Record] | None = None
    count = 1
    choice = 0
    while choice < min(count, _CHOICES_MAX) and (best is None or best[1].error is not None):
        past = Past({**plan, key: choice}, is_internal)
        record = run(past)
        if past.problem is not None:
            raise past.problem
        count = past.choices.get(key, 0)
        if count == 0:
            return None
        if best is None or _progress(record) > _progress(best[1]):
            best = choice, record
        choice += 1
    return best


def _progress(record: Record) -> float:
    return math.inf if record.error is None else len(record.ops)
