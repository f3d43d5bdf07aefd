"""Which operation and which module call a forward failed in."""

from __future__ import annotations

from torchatlas.record import Call, Failed, Op, Record


def failures_of(record: Record) -> list[Failed]:
    """What ended the forward; with what the run went past before, where it was to do so."""
    last = None if record.failures else last_failure(record)
    return list(record.failures) if last is None else [last]


def last_failure(record: Record) -> Failed | None:
    """What ended the forward; None if it ran through."""
    if record.error is None:
        return None
    op = _failed_op(record)
    return Failed(record.error, op, op.call if op is not None else _innermost_call(record))


def _failed_op(record: Record) -> Op | None:
    """The operation whose exception ended the forward, or was the cause of the one that did."""
    failed = {id(op.error): op for op in record.ops if op.error is not None}
    error = record.error
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if id(error) in failed:
            return failed[id(error)]
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    last = record.ops[-1] if record.ops else None
    if record.error is not None and last is not None and last.error is not None and _tells_of(record.error, last.error):
        return last
    return None


def _tells_of(error: BaseException, inner: BaseException) -> bool:
    """Whether an exception repeats another's message: TorchScript raises a new one with the old one's text."""
    text = str(inner).strip()
    return bool(text) and text.splitlines()[0] in str(error)


def _innermost_call(record: Record) -> Call | None:
    """The innermost call that the final exception passed through."""
    return next((call for call in reversed(record.calls) if call.error is record.error), None)
