"""Sizes that depend on data: what to do with recorded ones when a replay meets others.

Python reads sizes off tensors and hands them on as plain numbers, so a record has them as constants. For most tensors
that is right: fresh inputs have the recorded shapes. But the number of boxes that survive suppression, or of tokens
that go to an expert, depends on the data. While a record is replayed, `Sizes` notes which recorded sizes turn out to
be others; where an operation was given such a number as a size, it is given the new one. A recorded number that stands
for two different new sizes can't be followed: that is an error.

The ends of slices are left alone: most are limits, such as the number of boxes to keep at most.

Limits: a size is known by its number, so a constant that equals a recorded size of the data by chance follows it too.
"""

from __future__ import annotations

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


class Sizes:
    """Recorded sizes that are others in this replay."""

    def __init__(self) -> None:
        self._new: dict[int, set[int]] = {}
        self._lists: dict[tuple[int, ...], list[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._new or self._lists)

    def learn_list(self, recorded: Any, found: Any) -> bool:
        """Note a list of sizes that Python read from a tensor; returns whether it is one that can be followed.

        Tokens are sent to experts so: a list as a whole is hardly mistaken for another, where a single number is.
        """
        if not (_are_numbers(recorded) and _are_numbers(found) and len(recorded) == len(found) > 1):
            return False
        self._lists[tuple(recorded)] = found
        return True

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
            known = self._lists.get(tuple(arg)) if self._lists and _are_numbers(arg) else None
            return type(arg)(known) if known is not None else type(arg)([self._adapted(op, part) for part in arg])
        return arg

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


def _are_numbers(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(type(part) is int for part in value)
