"""Turn the operations of a part of a record into the steps of a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from torchatlas.builder import values_in
from torchatlas.program import Device, Feed, Function, Part, Restore, Slot, Step, Swap, Take
from torchatlas.record import Nested, Op, Record, Value
from torchatlas.slicing import Slice
from torchatlas.structure import Template


class Stepper:
    """Makes the steps of one program.

    Args:
        record: the record.
        model: the model, where there is one.
        describe_place: says where in the user's code an operation is.

    Attributes:
        names: what the code of the program calls each value, by the value's id.
    """

    def __init__(self, record: Record, model: Any, describe_place: Callable[[Op], str]) -> None:
        self.record = record
        self.model = model
        self.describe_place = describe_place
        self.names: dict[int, str] = {}
        self._slots: dict[int, int] = {}

    def slot(self, value: Value) -> int:
        """The number of the slot that a value has while the program runs."""
        return self._slots.setdefault(id(value), len(self._slots))

    def steps(self, part: Slice, names: Mapping[int, str]) -> Iterator[tuple[int, int, Step]]:
        """The steps of a part of the record, each with the number of operations before it and its rank there.

        Args:
            part: what is run, and what is asked again.
            names: what the picture calls each operation, by its position in the record.
        """
        for op in self.record.ops:
            if op.index in part.ops:
                yield op.index, 3, self._step(op, names.get(op.index, op.name), is_query=False)
        for query in part.queries:
            yield query.index, 2, self._step(query, query.name, is_query=True)

    def _step(self, op: Op, name: str, *, is_query: bool) -> Step:
        base = self.record.context
        follows = base is not None and op.context.grad == base.grad and op.context.inference == base.inference
        args = tuple(self._packed(arg) for arg in op.args)
        kwargs = {key: self._packed(arg, key) for key, arg in op.kwargs.items()}
        results = [] if is_query else list(values_in(op.out))
        makes = bool(results) and not op.reads and not _has_device((args, kwargs))
        texts = [*map(self._text, op.args), *(f"{key}={self._text(arg)}" for key, arg in op.kwargs.items())]
        call = f"{op.name}({', '.join(texts)})"
        return Step(
            position=op.index,
            function=Function(op.func),
            args=args,
            kwargs=kwargs,
            out=None if is_query else self._packed(op.out),
            context=op.context,
            follows=follows,
            device=str(results[0].device) if makes else "",
            answer=op.out if is_query else None,
            place=self.describe_place(op) if is_query else "",
            text=call if is_query else f"{name} = {call}",
            is_query=is_query,
        )

    def _packed(self, arg: Any, key: str = "") -> Any:
        """An argument or result with stand-ins that hold no tensors."""
        cls = type(arg)
        if cls is Value:
            return Slot(self.slot(arg))
        if cls is torch.device:
            return Device(str(arg))
        if cls is str and key == "device":
            return Device(str(torch.device(arg)))
        if cls is tuple or cls is list:
            return cls(self._packed(part) for part in arg)
        if cls is dict:
            return {name: self._packed(part, name) for name, part in arg.items()}
        if cls is slice:
            return slice(self._packed(arg.start), self._packed(arg.stop), self._packed(arg.step))
        if cls is Nested:
            return arg.template.mapped(lambda value: Slot(self.slot(value)))
        if isinstance(arg, nn.Module):
            paths = {id(module): name for name, module in modules_of(self.model)}
            return Part(paths.get(id(arg), nameless(arg)))
        return arg

    def _text(self, arg: Any) -> str:
        if isinstance(arg, Value):
            return self.names.get(id(arg), arg.name or "constant")
        if isinstance(arg, (list, tuple)):
            inner = ", ".join(map(self._text, arg))
            return f"[{inner}]" if isinstance(arg, list) else f"({inner},)" if len(arg) == 1 else f"({inner})"
        if isinstance(arg, (Nested, nn.Module)):
            return "…"
        return repr(arg)


def with_drops(steps: list[Any]) -> list[Any]:
    """The steps, each with the slots that nobody reads after it."""
    last: dict[int, int] = {}
    for position, step in enumerate(steps):
        for slot in _slots_of(step):
            last[slot] = position
    drops: dict[int, list[int]] = {}
    for slot, position in last.items():
        while position < len(steps) and not isinstance(steps[position], Step):
            position += 1
        drops.setdefault(position, []).append(slot)
    return [
        dataclasses.replace(step, drops=tuple(drops.get(position, ()))) if isinstance(step, Step) else step
        for position, step in enumerate(steps)
    ]


def modules_of(model: Any) -> list[tuple[str, nn.Module]]:
    """The modules of a model, or of the one that a method belongs to, by name."""
    root = model if isinstance(model, nn.Module) else getattr(model, "__self__", None)
    return list(root.named_modules()) if isinstance(root, nn.Module) else []


def nameless(module: nn.Module) -> str:
    """What a module is called that the model does not register."""
    return f"{type(module).__name__}_{id(module)}"


def part_paths(step: Step) -> list[str]:
    """Where the modules are held that a step is given."""
    return [arg.path for arg in (*step.args, *step.kwargs.values()) if isinstance(arg, Part)]


def _has_device(arg: Any) -> bool:
    if isinstance(arg, Device):
        return True
    if isinstance(arg, (list, tuple)) and type(arg) in (list, tuple):
        return any(map(_has_device, arg))
    return isinstance(arg, dict) and any(map(_has_device, arg.values()))


def _slots_of(step: Any) -> Iterator[int]:
    """Slots that a step reads or fills."""
    if isinstance(step, Feed):
        yield from step.slots
    elif isinstance(step, Take):
        yield step.slot
    elif isinstance(step, Swap):
        yield from step.shape.stand_ins()
    elif isinstance(step, Restore):
        yield from step.slots
    else:
        todo: list[Any] = [step.args, step.kwargs, step.out]
        while todo:
            part = todo.pop()
            if isinstance(part, Slot):
                yield part.number
            elif type(part) in (list, tuple):
                todo.extend(part)
            elif isinstance(part, dict):
                todo.extend(part.values())
            elif isinstance(part, slice):
                todo.extend((part.start, part.stop, part.step))
            elif isinstance(part, Template):
                todo.extend(part.stand_ins())
