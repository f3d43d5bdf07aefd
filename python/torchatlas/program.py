"""What a cut runs, as plain data: steps whose tensors are numbered slots. It holds no tensors, and can be pickled."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from torchatlas.record import Context
from torchatlas.structure import Template


@dataclass(frozen=True, slots=True)
class Guard:
    """Something that a cut takes from the recording.

    Attributes:
        text: what is fixed.
        is_checked: whether a run with something else is refused.
    """

    text: str
    is_checked: bool

    def __str__(self) -> str:
        return self.text if self.is_checked else f"{self.text} (not checked)"


class Name(str):
    """The name of a node, written without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Slot(NamedTuple):
    """Stands for a tensor while a cut runs."""

    number: int


class Part(NamedTuple):
    """Stands for a module that an operation is given."""

    path: str


class Device(NamedTuple):
    """Stands for a device that the recorded code asked for: it moves with the cut."""

    name: str


@dataclass(frozen=True, slots=True)
class Function:
    """What an operation calls; torch's own functions are pickled by where they are found."""

    call: Any

    def __reduce__(self) -> tuple[Any, ...]:
        call = self.call
        if isinstance(call, torch._ops.OpOverload):
            return _find_function, ("torch.ops", (*call._schema.name.split("::"), call._overloadname))
        if isinstance(call, torch._ops.OpOverloadPacket):
            return _find_function, ("torch.ops", tuple(call._qualified_op_name.split("::")))
        owner: Any = getattr(call, "__self__", None)
        if getattr(call, "__name__", "") in ("__get__", "__set__") and hasattr(owner, "__objclass__"):
            return _find_property, (owner.__objclass__, owner.__name__, call.__name__)
        return Function, (call,)


def _find_function(module: str, path: tuple[str, ...]) -> Function:
    found: Any = importlib.import_module("torch").ops if module == "torch.ops" else importlib.import_module(module)
    for step in path:
        found = getattr(found, step)
    return Function(found)


def _find_property(owner: type, name: str, accessor: str) -> Function:
    return Function(getattr(vars(owner)[name], accessor))


@dataclass(frozen=True, slots=True)
class Step:
    """One recorded operation.

    Attributes:
        position: its place in the record; -1 for none.
        function: what is called.
        args, kwargs: arguments, with stand-ins.
        out: the result, each tensor replaced by a slot or None.
        context: settings that it runs under.
        follows: whether it runs with gradients and in inference mode as the caller does, because the recorded one did.
        drops: slots that nobody reads any more.
        device: where it makes a tensor without having been told where; "" otherwise.
        answer: for a query: what Python got.
        place: where in the user's code it is, for messages.
        text: the step as a line of code.
    """

    position: int
    function: Function
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any
    context: Context
    follows: bool
    device: str
    answer: Any
    place: str
    text: str
    is_query: bool = False
    drops: tuple[int, ...] = ()


class Feed(NamedTuple):
    """Take a tensor of an input: bind it to slots, or write it into memory that is there."""

    input: int
    tensor: int
    slots: tuple[int, ...]
    is_copied: bool
    is_in_place: bool


class Swap(NamedTuple):
    """Put other tensors in the place of a value.

    Attributes:
        name: what the value is called.
        position: number of recorded operations before it.
        shape: template of the value, each tensor replaced by its slot's number.
        new: the function that makes the new value of the old one, where the module that does is held, or where the new
            tensors are.
        in_place: slots into whose memory the new tensor is written, since others may show it.
        copied: slots that get a copy, since it is written into later.
        key: names the old tensors, if a later step puts them back.
        text: the step as a line of code.
    """

    name: str
    position: int
    shape: Template
    new: Function | Part | tuple[str, ...]
    in_place: frozenset[int]
    copied: frozenset[int]
    key: int | None
    text: str


class Restore(NamedTuple):
    """Put back what a swap took away."""

    slots: tuple[int, ...]
    key: int


class Take(NamedTuple):
    """Keep a tensor for the output."""

    slot: int
    key: int
    is_copied: bool


class Leaf(NamedTuple):
    """A parameter, buffer or constant that the cut holds.

    Attributes:
        slot: what it is called while the cut runs.
        path: what it is called in the cut.
        is_copied: it is written into, and what is written is not to stay.
    """

    slot: int
    path: str
    is_copied: bool


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a cut: its name, and what its tensors must be.

    Attributes:
        shape: template of the value, each tensor replaced by its position among `tensors`.
        tensors: shape, dtype and device of each tensor.
        needed: positions of those that the cut reads; the others may be left out.
        held: where the cut itself holds each tensor, for a value that a tensor takes the place of; the caller does not
            give it then.
    """

    name: str
    shape: Template
    tensors: tuple[tuple[tuple[int, ...] | None, torch.dtype, str], ...]
    needed: frozenset[int]
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """What a cut runs. It holds no tensors and is never changed, so that copies of a cut share it."""

    title: str
    inputs: tuple[Input, ...]
    leaves: tuple[Leaf, ...]
    steps: tuple[Feed | Swap | Restore | Take | Step, ...]
    output: Template
    output_names: Template
    guards: tuple[Guard, ...]
    known_keys: frozenset[str]
    devices: tuple[tuple[str, str], ...]

    @property
    def asked(self) -> list[Input]:
        """The inputs that the caller gives."""
        return [row for row in self.inputs if not row.held]

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        return self
