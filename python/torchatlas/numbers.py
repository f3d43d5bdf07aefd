"""Numbers that depend on data: what to do with recorded ones when a replay meets others.

Python reads numbers off tensors and hands them on, so a record has them as constants. Three kinds are followed:

- Sizes. For most tensors fresh inputs have the recorded shapes, but the number of boxes that survive suppression, or of
  tokens that go to an expert, depends on the data. `Numbers` notes which recorded sizes turn out to be others; where an
  operation was given such a number as a size, it is given the new one. A recorded number that stands for two different
  new sizes can't be followed: that is an error. The ends of slices are left alone: most are limits, such as the number
  of boxes to keep at most.
- Lists of sizes that Python read, where they are handed on as they are: tokens are sent to experts so.
- Fractions that Python read (`x.abs().max().item()`), where they are handed on as they are.

Where a number that was read is another now and can't be followed into the operations it may have gone into, that is an
error; where it went into none, it was compared at most, and the replay goes on.

Limits: a number is known by its value, so a constant that equals a recorded size of the data by chance follows it too,
and a whole number that Python computed from one that it read is not known to come from it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from torchatlas.record import Op

# Positional arguments that are sizes, by operation; None means all of them.
_SIZE_ARGUMENTS: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("zeros", "ones", "empty", "rand", "randn", "arange"), None),
    **dict.fromkeys(("full", "randperm"), (0,)),
    **dict.fromkeys(("new_zeros", "new_ones", "new_empty", "view", "reshape", "expand", "repeat", "tile"), None),
    **dict.fromkeys(("new_full", "split", "split_with_sizes", "broadcast_to", "interpolate"), (1,)),
    "narrow": (2, 3),
    "unflatten": (2,),
}
_SIZE_KEYWORDS = frozenset((
    "size", "shape", "sizes", "output_size", "repeats", "split_size", "split_size_or_sections", "length", "end",
))  # fmt: skip


class Numbers:
    """Recorded numbers that are others in this replay.

    Args:
        ops: the recorded operations.
    """

    def __init__(self, ops: Sequence[Op]) -> None:
        self._ops = ops
        self._new: dict[int, set[int]] = {}
        self._lists: dict[tuple[int, ...], list[int]] = {}
        self._fractions: dict[float, float] = {}

    def __bool__(self) -> bool:
        return bool(self._new or self._lists or self._fractions)

    def learn_answer(self, query: Op, found: Any) -> bool:
        """Note what Python reads from a tensor; returns whether it is what was recorded, or can be followed."""
        if repr(query.out) == repr(found):
            return True
        if _are_sizes(query.out) and _are_sizes(found) and len(query.out) == len(found) > 1:
            self._lists[tuple(query.out)] = found
            return True
        first, last = self._places
        pairs = list(_pairs(query.out, found))
        for old, new in pairs:
            if type(old) is not type(new) or type(old) not in (int, float):
                return False
            if last.get(old, -1) >= query.index and not _is_telling(old):
                return False
        self._fractions |= {old: new for old, new in pairs if _is_telling(old)}
        if any(type(old) is float for old, _ in pairs):
            # A scale of quantisation, say, may have been computed from what was read.
            news = (number for number, index in first.items() if index >= query.index and _is_telling(number))
            return all(number in self._fractions for number in news)
        return True

    @functools.cached_property
    def _places(self) -> tuple[dict[float, int], dict[float, int]]:
        """Which operation was the first, and which the last, to be given each number."""
        first: dict[float, int] = {}
        last: dict[float, int] = {}
        for op in self._ops:
            for number in _numbers_in((op.args, op.kwargs)):
                first.setdefault(number, op.index)
                last[number] = op.index
        return first, last

    def is_fed_from_outside(self, index: int) -> bool:
        """Whether tensors that came from outside torch are read for the first time after so many operations."""
        return self._last_outside >= index

    @functools.cached_property
    def _last_outside(self) -> int:
        """The last operation that is the first to read a tensor from outside torch; -1 if there is none."""
        first: dict[int, int] = {}
        for op in self._ops:
            for value in op.reads:
                if value.kind == "constant" and value.note:
                    first.setdefault(id(value), op.index)
        return max(first.values(), default=-1)

    def learn(self, recorded: Any, found: torch.Size) -> None:
        """Note where a result's shape differs from the recorded one."""
        if recorded is None or len(recorded) != len(found):
            return
        for old, new in zip(recorded, found, strict=True):
            if old != new:
                self._new.setdefault(int(old), set()).add(int(new))

    def adapt(self, op: Op, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments with every recorded size that is another now replaced.

        Raises:
            RuntimeError: a recorded size stands for several new ones.
        """
        if self._fractions:
            args = [self._exchanged(arg) for arg in args]
            kwargs = {name: self._exchanged(arg) for name, arg in kwargs.items()}
        if op.name in _SIZE_ARGUMENTS:
            positions = _SIZE_ARGUMENTS[op.name]
            args = [
                self._adapted(op, arg) if positions is None or index in positions else arg
                for index, arg in enumerate(args)
            ]
        return args, {k: self._adapted(op, v) if k in _SIZE_KEYWORDS else v for k, v in kwargs.items()}

    def _adapted(self, op: Op, arg: Any) -> Any:
        if type(arg) is int:
            return self._size(op, arg)
        if isinstance(arg, (tuple, list)):
            known = self._lists.get(tuple(arg)) if self._lists and _are_sizes(arg) else None
            return type(arg)(known) if known is not None else type(arg)([self._adapted(op, part) for part in arg])
        return arg

    def _exchanged(self, arg: Any) -> Any:
        """An argument with every fraction that is another now replaced."""
        if type(arg) is float:
            return self._fractions.get(arg, arg)
        return type(arg)(map(self._exchanged, arg)) if type(arg) in (list, tuple) else arg

    def _size(self, op: Op, recorded: int) -> int:
        new = self._new.get(recorded)
        if new is None:
            return recorded
        if len(new) > 1:
            raise RuntimeError(
                f"{op.name} was recorded with size {recorded}, which depends on the data and is {sorted(new)} for "
                "these inputs: the record can't tell which is meant"
            )
        return next(iter(new))


def _are_sizes(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(type(part) is int for part in value)


def _is_telling(number: float) -> bool:
    """Whether a number has so many digits that it is hardly met twice by chance."""
    return type(number) is float and len(repr(number).strip("-").replace(".", "").lstrip("0")) > 8


def _pairs(recorded: Any, found: Any) -> Iterator[tuple[Any, Any]]:
    """Numbers of two nested lists that differ, side by side; the lists themselves where their lengths do."""
    if isinstance(recorded, (list, tuple)) and isinstance(found, (list, tuple)) and len(recorded) == len(found):
        for old, new in zip(recorded, found, strict=True):
            yield from _pairs(old, new)
    elif repr(recorded) != repr(found):
        yield recorded, found


def _numbers_in(arg: Any) -> Iterator[float]:
    if isinstance(arg, (list, tuple)):
        for part in arg:
            yield from _numbers_in(part)
    elif isinstance(arg, dict):
        yield from _numbers_in(list(arg.values()))
    elif isinstance(arg, slice):
        yield from _numbers_in([arg.start, arg.stop, arg.step])
    elif type(arg) in (int, float):
        yield arg
