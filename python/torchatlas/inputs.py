"""The arguments of a recorded forward, and other ones in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchatlas.arguments import named_arguments
from torchatlas.record import Record
from torchatlas.structure import take_apart


class Inputs:
    """What a forward was called with.

    Args:
        record: what it did.
        target: the model, or what else was called.
        args: its positional arguments.
        kwargs: its keyword arguments.
    """

    def __init__(
        self, record: Record, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.record = record
        self.target = target
        self.args = args
        self.kwargs = kwargs

    def feed(self, *args: Any, **kwargs: Any) -> dict[int, torch.Tensor]:
        """The tensor for each input value, by the value's id; the recorded ones if no arguments are given.

        Raises:
            ValueError: the arguments differ from the recorded ones in structure, shape, dtype or a fixed value.
        """
        recorded = self.record.arguments
        assert recorded is not None, "the record has no arguments"
        if not args and not kwargs:
            kept = {id(value): value.tensor for _, value in self.record.inputs if value.tensor is not None}
            if kept:
                return kept
            args, kwargs = self.args, self.kwargs
        given = take_apart((args, kwargs), _itself)
        wanted = recorded.paths("")
        found = given.paths("")
        if [path for path, _ in wanted] != [path for path, _ in found]:
            raise ValueError(self._structure_message([p for p, _ in wanted], [p for p, _ in found]))
        fixed = dict(recorded.plain_parts(""))
        for path, value in given.plain_parts(""):
            if path in fixed and fixed[path] != value:
                raise ValueError(
                    f"argument {self._spoken(path)} is fixed by the record at {fixed[path]!r}, got {value!r}"
                )
        fed: dict[int, torch.Tensor] = {}
        for (path, value), (_, tensor) in zip(wanted, found, strict=True):
            if value.kind != "input":
                continue
            if tensor.dtype != value.dtype or (value.shape is not None and tensor.shape != value.shape):
                expected = f"{tuple(value.shape)} {value.dtype}"
                raise ValueError(
                    f"argument {self._spoken(path)} must be {expected}, got {tuple(tensor.shape)} {tensor.dtype}"
                )
            if fed.setdefault(id(value), tensor) is not tensor:
                raise ValueError(f"argument {self._spoken(path)} must be the same tensor as {value.name}, as recorded")
        return fed

    def _spoken(self, path: str) -> str:
        """A path inside `(args, kwargs)` as the user knows it."""
        names = [name for name, _ in named_arguments(self.target, self.args, {})]
        for index, name in enumerate(names):
            prefix = f"[0][{index}]"
            if path.startswith(prefix):
                return name + path[len(prefix) :]
        return path.removeprefix("[1].")

    def _structure_message(self, wanted: list[str], found: list[str]) -> str:
        missing = [self._spoken(path) for path in wanted if path not in found]
        extra = [self._spoken(path) for path in found if path not in wanted]
        parts = [
            f"{what} {', '.join(paths[:4])}" for what, paths in (("missing", missing), ("unknown", extra)) if paths
        ]
        return f"the arguments must hold tensors at the same places as the recorded ones: {'; '.join(parts)}"


def _itself(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
