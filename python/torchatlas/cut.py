"""A part of a recorded forward as a module: only the operations, parameters and buffers that it needs.

A cut runs the recorded operations, so it does what the model's code did in that one forward: branches, sizes and
numbers that Python worked out are as they were. What of this can be checked is checked each time it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from torchatlas.exchange import new_tensors
from torchatlas.program import Device, Feed, Function, Guard, Input, Part, Program, Restore, Slot, Step, Swap
from torchatlas.record import Context, filled
from torchatlas.settings import under
from torchatlas.structure import Template, put_together, take_apart

_STAND_INS = frozenset((Slot, Part, Device))


class Cut(nn.Module):
    """A part of a model, as one recorded forward ran it. Made by `Extract(..., inputs=...)` and `trace.extract(...)`.

    It is called with its inputs in the order of `summary["input"]`, or by these names. It can be trained, copied,
    moved to another device and pickled as any module; `load_state_dict` takes the state of the whole model, too.

    Attributes:
        checks_queries: whether a run is refused in which Python would have read other numbers from the tensors than it
            did in the recorded forward (as an `if` on a tensor does). Without it, the recorded branch is taken anyway.
    """

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.checks_queries = True
        self._program = program

    @property
    def summary(self) -> dict[str, Any]:
        """`input`: names of the inputs that are needed, in order; `output`: what is given, as it was asked for."""
        program = self._program
        names = put_together(program.output_names, lambda name: name)
        return {"input": tuple(row.name for row in program.asked), "output": names}

    @property
    def guards(self) -> tuple[Guard, ...]:
        """What is fixed by the recording, and whether it is checked."""
        return self._program.guards

    @property
    def code(self) -> str:
        """The operations as lines of code, for reading."""
        program = self._program
        names = ", ".join(row.name for row in program.asked)
        lines = [
            f"    {row.name} = {', '.join(f'self.{path}' for path in row.held)}" for row in program.inputs if row.held
        ]
        for step in program.steps:
            if isinstance(step, Swap) or (isinstance(step, Step) and not step.is_query):
                lines.append(f"    {step.text}")
        output = self.summary["output"]
        return "\n".join([f"def {program.title}({names}):", *lines, f"    return {output!r}", ""])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the part.

        Raises:
            TypeError: an input is missing or unknown.
            ValueError: an input differs from the recorded one in structure, shape or dtype, or Python would have read
                another number or taken another branch.
        """
        return self.run(self._inputs(args, kwargs))

    def run(
        self, inputs: Sequence[Sequence[torch.Tensor | None]], before: Callable[[float], None] | None = None
    ) -> Any:
        """Run on checked inputs.

        Args:
            inputs: the tensors of each input; None for one that was left out.
            before: called before each operation with its place in the record, and half of one before what is put in.
        """
        program = self._program
        given = iter(inputs)
        inputs = [[self._held(path) for path in row.held] if row.held else next(given) for row in program.inputs]
        devices = self._devices(inputs)
        slots: dict[int, Any] = {}
        for leaf in program.leaves:
            tensor = self._held(leaf.path)
            slots[leaf.slot] = tensor.detach().clone() if leaf.is_copied else tensor
        taken: dict[int, torch.Tensor] = {}
        olds: dict[int, dict[int, Any]] = {}
        is_grad, is_inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        for context, steps in _grouped(program.steps):
            with under(context.settings(is_grad, is_inference)):
                for step in steps:
                    if isinstance(step, Step):
                        if before is not None:
                            before(step.position)
                        self._run(step, slots, devices)
                    elif isinstance(step, Swap):
                        if before is not None:
                            before(step.position - 0.5)
                        if step.key is not None:
                            olds[step.key] = {slot: slots[slot] for slot in step.shape.stand_ins()}
                        self._swap(step, slots)
                    elif isinstance(step, Restore):
                        slots.update(olds.pop(step.key))
                    elif isinstance(step, Feed):
                        _feed(step, inputs[step.input][step.tensor], slots)
                    else:
                        found = slots[step.slot]
                        taken[step.key] = found.clone() if step.is_copied else found
        return put_together(program.output, lambda key: taken[key])

    def _run(self, step: Step, slots: dict[int, Any], devices: Mapping[str, torch.device]) -> None:
        if step.is_query and not self.checks_queries:
            return

        def get(stand_in: Any) -> Any:
            if isinstance(stand_in, Slot):
                return slots[stand_in.number]
            if isinstance(stand_in, Part):
                return self.get_submodule(stand_in.path)
            return devices.get(stand_in.name, torch.device(stand_in.name))

        args = [filled(arg, get, _STAND_INS) for arg in step.args]
        kwargs = {name: filled(arg, get, _STAND_INS) for name, arg in step.kwargs.items()}
        if step.device in devices:
            with devices[step.device]:
                out = step.function.call(*args, **kwargs)
        else:
            out = step.function.call(*args, **kwargs)
        if step.is_query:
            if out != step.answer:
                raise ValueError(
                    f"the recorded forward read {step.answer!r} at {step.text}{step.place}, with these inputs it would "
                    f"be {out!r}, and another path might be taken: record one with such inputs, or set checks_queries "
                    "to False"
                )
        else:
            _bind(step.out, out, slots)
        for slot in step.drops:
            slots.pop(slot, None)

    def _swap(self, step: Swap, slots: dict[int, Any]) -> None:
        if isinstance(step.new, Function):
            found = new_tensors(step.name, step.shape, slots, step.new.call)
        elif isinstance(step.new, Part):
            found = new_tensors(step.name, step.shape, slots, self.get_submodule(step.new.path))
        else:
            found = dict(zip(step.shape.stand_ins(), map(self._held, step.new), strict=True))
        for slot, tensor in found.items():
            if slot in step.in_place:
                slots[slot].copy_(tensor)
            else:
                slots[slot] = tensor.clone() if slot in step.copied else tensor

    def _held(self, path: str) -> torch.Tensor:
        owner, _, key = path.rpartition(".")
        holder = self.get_submodule(owner)
        tensor = holder._parameters.get(key)
        found = holder._buffers[key] if tensor is None else tensor
        assert found is not None
        return found

    def _devices(self, inputs: Sequence[Sequence[torch.Tensor | None]]) -> dict[str, torch.device]:
        """Recorded devices that are others now, because the cut or its inputs were moved."""
        found: dict[str, torch.device] = {}
        for recorded, path in self._program.devices:
            found.setdefault(recorded, self._held(path).device)
        for row, tensors in zip(self._program.inputs, inputs, strict=True):
            for (_, _, recorded), tensor in zip(row.tensors, tensors, strict=True):
                if tensor is not None and found.setdefault(recorded, tensor.device) != tensor.device:
                    raise ValueError(f"input {row.name!r} is on {tensor.device}, the cut on {found[recorded]}")
        return {recorded: device for recorded, device in found.items() if torch.device(recorded) != device}

    # Inputs

    def _inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[list[torch.Tensor | None]]:
        rows = self._program.asked
        names = [row.name for row in rows]
        if len(args) > len(rows):
            raise TypeError(f"expected at most {len(rows)} inputs ({', '.join(names)}), got {len(args)}")
        given = dict(zip(names, args, strict=False))
        spoken = {_identifier(name): name for name in names}
        for key, value in kwargs.items():
            name = key if key in names else spoken.get(key)
            if name is None:
                raise TypeError(f"there is no input {key!r}; the inputs are {', '.join(names) or 'none'}")
            if name in given:
                raise TypeError(f"input {name!r} is given twice")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise TypeError(f"missing inputs: {', '.join(missing)}")
        return [_checked(row, given[row.name]) for row in rows]

    # State

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load a state: the cut's own, or the whole model's, of which it takes its part."""
        own = set(self.state_dict())
        kept = {key: value for key, value in state_dict.items() if key in own or key not in self._program.known_keys}
        return super().load_state_dict(kept, strict=strict, assign=assign)

    def extra_repr(self) -> str:
        """What comes in and what goes out."""
        found = self.summary
        return f"input={found['input']!r}, output={found['output']!r}"


class Holder(nn.Module):
    """Holds the parameters, buffers and parts that a cut needs of a module, under their names."""

    def _get_name(self) -> str:
        return "Part"

    def extra_repr(self) -> str:
        """Names and shapes of what it holds."""
        found = (*self._parameters.items(), *self._buffers.items())
        return ", ".join(f"{name}={tuple(tensor.shape)}" for name, tensor in found if tensor is not None)


class _Settings(NamedTuple):
    """A context, and whether it follows the caller's."""

    context: Context
    follows: bool

    def settings(self, is_grad: bool, is_inference: bool) -> Context:
        if not self.follows:
            return self.context
        return self.context._replace(grad=is_grad, inference=is_inference)


def _grouped(steps: Sequence[Any]) -> Iterator[tuple[_Settings, list[Any]]]:
    """Runs of steps that share their settings; feeding and taking goes with what comes before."""
    current: _Settings | None = None
    group: list[Any] = []
    for step in steps:
        settings = _Settings(step.context, step.follows) if isinstance(step, Step) else current
        if settings is not None and settings != current:
            if current is not None:
                yield current, group
                group = []
            current = settings
        group.append(step)
    if group:
        plain = Context(True, False, (), torch.get_default_dtype())
        yield current or _Settings(plain, True), group


def _feed(step: Feed, tensor: torch.Tensor | None, slots: dict[int, Any]) -> None:
    assert tensor is not None, "inputs are checked before they are fed"
    if step.is_in_place:
        slots[step.slots[0]].copy_(tensor)
        return
    given = tensor.clone() if step.is_copied else tensor
    for slot in step.slots:
        slots[slot] = given


def _bind(shape: Any, out: Any, slots: dict[int, Any]) -> None:
    if isinstance(shape, Slot):
        slots[shape.number] = out
    elif isinstance(shape, (list, tuple)):
        for part, result in zip(shape, out, strict=True):
            _bind(part, result, slots)
    elif isinstance(shape, Template):
        for slot, tensor in zip(shape.stand_ins(), take_apart(out, _itself).stand_ins(), strict=True):
            _bind(slot, tensor, slots)


def _itself(tensor: Any) -> Any:
    return tensor


def _identifier(name: str) -> str:
    """A name as a keyword: signs that are none are underscores."""
    return "".join(sign if sign.isalnum() else "_" for sign in name)


def _checked(row: Input, value: Any) -> list[torch.Tensor | None]:
    """The tensors of an input, if they are such as were recorded; they may come without their structure, in order."""
    places = dict(row.shape.paths(row.name))
    needed = [path for path, position in places.items() if position in row.needed]
    if isinstance(value, torch.Tensor) and len(row.needed) == 1:
        found = {needed[0]: value}
    else:
        found = dict(take_apart(value, _itself).paths(row.name))
        if found.keys() != places.keys() and len(found) == len(places) and type(value) in (tuple, list):
            found = dict(zip(places, found.values(), strict=True))  # as `trace.values` gives them
    if not set(needed) <= set(found) <= set(places):
        others = ", ".join(found) or "none"
        raise ValueError(f"input {row.name!r} must hold tensors at {', '.join(needed)}, got them at {others}")
    tensors: list[torch.Tensor | None] = [None] * len(row.tensors)
    for path, tensor in found.items():
        position = places[path]
        shape, dtype, _ = row.tensors[position]
        if tensor.dtype != dtype or (shape is not None and tuple(tensor.shape) != shape):
            raise ValueError(f"input {path!r} must be {shape} {dtype}, got {tuple(tensor.shape)} {tensor.dtype}")
        if tensors[position] is not None and tensors[position] is not tensor:
            raise ValueError(f"input {path!r} must be the very tensor that stands before it, as it was recorded")
        tensors[position] = tensor
    return tensors
