"""A part of a recorded forward as a module: only the operations, parameters and buffers that it needs.

A cut runs the recorded operations, so it does what the model's code did in that one forward: branches, sizes and
numbers that Python worked out are as they were. What of this can be checked is checked each time it runs.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from torchatlas.builder import values_in
from torchatlas.record import Context, Nested, Op, Record, Value
from torchatlas.settings import under
from torchatlas.slicing import Memories, Moment, Slice, slice_record
from torchatlas.structure import Template, put_together, take_apart


@dataclass(frozen=True, slots=True)
class Point:
    """A named place in a record where it can be cut.

    Attributes:
        name: what the picture calls it.
        count: number of operations that have run by then.
        shape: the value there, each tensor replaced by its `Value`: a value, a list or tuple of them, or a template.
    """

    name: str
    count: int
    shape: Any

    def moments(self) -> list[Moment]:
        """The tensors there."""
        return [Moment(value, self.count) for value in values_in(self.shape)]


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


class _Slot(NamedTuple):
    """Stands for a tensor while a cut runs."""

    number: int


class _Part(NamedTuple):
    """Stands for a module that an operation is given."""

    path: str


class _Device(NamedTuple):
    """Stands for a device that the recorded code asked for: it moves with the cut."""

    name: str


@dataclass(frozen=True, slots=True)
class _Function:
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
        return _Function, (call,)


def _find_function(module: str, path: tuple[str, ...]) -> _Function:
    found: Any = importlib.import_module("torch").ops if module == "torch.ops" else importlib.import_module(module)
    for step in path:
        found = getattr(found, step)
    return _Function(found)


def _find_property(owner: type, name: str, accessor: str) -> _Function:
    return _Function(getattr(vars(owner)[name], accessor))


@dataclass(frozen=True, slots=True)
class _Step:
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
    function: _Function
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


class _Feed(NamedTuple):
    """Take a tensor of an input: bind it to slots, or write it into memory that is there."""

    input: int
    tensor: int
    slots: tuple[int, ...]
    is_copied: bool
    is_in_place: bool


class _Take(NamedTuple):
    """Keep a tensor for the output."""

    slot: int
    key: int
    is_copied: bool


class _Leaf(NamedTuple):
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
class _Input:
    """One input of a cut: its name, and what its tensors must be.

    Attributes:
        shape: template of the value, each tensor replaced by its position among `tensors`.
        tensors: shape, dtype and device of each tensor.
        needed: positions of those that the cut reads; the others may be left out.
    """

    name: str
    shape: Template
    tensors: tuple[tuple[tuple[int, ...] | None, torch.dtype, str], ...]
    needed: frozenset[int]


@dataclass(frozen=True, slots=True)
class Program:
    """What a cut runs. It holds no tensors and is never changed, so that copies of a cut share it."""

    title: str
    inputs: tuple[_Input, ...]
    leaves: tuple[_Leaf, ...]
    steps: tuple[_Feed | _Take | _Step, ...]
    output: Template
    output_names: Template
    guards: tuple[Guard, ...]
    known_keys: frozenset[str]
    devices: tuple[tuple[str, str], ...]

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        return self


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
        return {"input": tuple(row.name for row in program.inputs), "output": names}

    @property
    def guards(self) -> tuple[Guard, ...]:
        """What is fixed by the recording, and whether it is checked."""
        return self._program.guards

    @property
    def code(self) -> str:
        """The operations as lines of code, for reading."""
        names = ", ".join(row.name for row in self._program.inputs)
        lines = [f"    {step.text}" for step in self._program.steps if isinstance(step, _Step) and not step.is_query]
        output = self.summary["output"]
        return "\n".join([f"def {self._program.title}({names}):", *lines, f"    return {output!r}", ""])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the part.

        Raises:
            TypeError: an input is missing or unknown.
            ValueError: an input differs from the recorded one in structure, shape or dtype, or Python would have read
                another number or taken another branch.
        """
        return self.run(self._inputs(args, kwargs))

    def run(self, inputs: Sequence[Sequence[torch.Tensor | None]], before: Callable[[int], None] | None = None) -> Any:
        """Run on checked inputs.

        Args:
            inputs: the tensors of each input; None for one that was left out.
            before: called before each operation with its place in the record.
        """
        program = self._program
        devices = self._devices(inputs)
        slots: dict[int, Any] = {}
        for leaf in program.leaves:
            tensor = self._held(leaf.path)
            slots[leaf.slot] = tensor.detach().clone() if leaf.is_copied else tensor
        taken: dict[int, torch.Tensor] = {}
        is_grad, is_inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        for context, steps in _grouped(program.steps):
            with under(context.settings(is_grad, is_inference)):
                for step in steps:
                    if isinstance(step, _Step):
                        if before is not None:
                            before(step.position)
                        self._run(step, slots, devices)
                    elif isinstance(step, _Feed):
                        _feed(step, inputs[step.input][step.tensor], slots)
                    else:
                        found = slots[step.slot]
                        taken[step.key] = found.clone() if step.is_copied else found
        return put_together(program.output, lambda key: taken[key])

    def _run(self, step: _Step, slots: dict[int, Any], devices: Mapping[str, torch.device]) -> None:
        if step.is_query and not self.checks_queries:
            return

        def get(stand_in: Any) -> Any:
            if isinstance(stand_in, _Slot):
                return slots[stand_in.number]
            if isinstance(stand_in, _Part):
                return self.get_submodule(stand_in.path)
            return devices.get(stand_in.name, torch.device(stand_in.name))

        args = [_filled(arg, get) for arg in step.args]
        kwargs = {name: _filled(arg, get) for name, arg in step.kwargs.items()}
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
        rows = self._program.inputs
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


class _Holder(nn.Module):
    """Holds the parameters, buffers and parts that a cut needs of a module, under their names."""

    def _get_name(self) -> str:
        return "Part"

    def extra_repr(self) -> str:
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
        settings = _Settings(step.context, step.follows) if isinstance(step, _Step) else current
        if settings is not None and settings != current:
            if current is not None:
                yield current, group
                group = []
            current = settings
        group.append(step)
    if group:
        plain = Context(True, False, (), torch.get_default_dtype())
        yield current or _Settings(plain, True), group


def _feed(step: _Feed, tensor: torch.Tensor | None, slots: dict[int, Any]) -> None:
    assert tensor is not None, "inputs are checked before they are fed"
    if step.is_in_place:
        slots[step.slots[0]].copy_(tensor)
        return
    given = tensor.clone() if step.is_copied else tensor
    for slot in step.slots:
        slots[slot] = given


def _filled(arg: Any, get: Callable[[Any], Any]) -> Any:
    """An argument, each stand-in replaced."""
    cls = type(arg)
    if cls is _Slot or cls is _Part or cls is _Device:
        return get(arg)
    if cls is tuple:
        return tuple([_filled(part, get) for part in arg])
    if cls is list:
        return [_filled(part, get) for part in arg]
    if cls is dict:
        return {key: _filled(part, get) for key, part in arg.items()}
    if cls is slice:
        return slice(_filled(arg.start, get), _filled(arg.stop, get), _filled(arg.step, get))
    if cls is Template:
        return put_together(arg, get)
    return arg


def _bind(shape: Any, out: Any, slots: dict[int, Any]) -> None:
    if isinstance(shape, _Slot):
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


def _checked(row: _Input, value: Any) -> list[torch.Tensor | None]:
    """The tensors of an input, if they are such as were recorded; a lone one may come without its structure."""
    places = dict(row.shape.paths(row.name))
    needed = [path for path, position in places.items() if position in row.needed]
    if isinstance(value, torch.Tensor) and len(row.needed) == 1:
        found = {needed[0]: value}
    else:
        found = dict(take_apart(value, _itself).paths(row.name))
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


# Making a cut


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be cut out of a record.

    Attributes:
        given: places whose values become inputs, with the names of these.
        output: what the cut gives: a nested value with a `Point` where a value of the record goes.
        share_modules: hold the model's own parameters, not copies.
        model: the model, where there is one.
    """

    given: tuple[tuple[Point, str], ...]
    output: Any
    share_modules: bool
    model: Any


class CutMaker:
    """Turns a part of a record into a cut."""

    def __init__(self, record: Record, request: Request, describe_place: Callable[[Op], str]) -> None:
        self.record = record
        self.request = request
        self.describe_place = describe_place
        self.memories = Memories(record)
        self.moments: list[Moment] = []
        self.owners: list[int] = []
        for position, (point, _) in enumerate(request.given):
            for value in {id(v): v for v in values_in(point.shape)}.values():
                self.moments.append(Moment(value, point.count))
                self.owners.append(position)
        self.points = _points_in(request.output)
        wanted = [moment for point in self.points for moment in point.moments()]
        self.slice: Slice = slice_record(record, self.moments, wanted)
        keys = {(moment.time, id(moment.value)): key for key, moment in enumerate(self.taken_moments())}
        self.output = _output_template(request.output, lambda point, value: keys[point.count, id(value)])
        self._slots: dict[int, int] = {}
        self._names: dict[int, str] = {}

    def make(self, names: Mapping[int, str], known_keys: frozenset[str]) -> Cut:
        """The cut.

        Args:
            names: what the picture calls each operation, by its position in the record.
            known_keys: keys in the state of the whole model.
        """
        for op in self.record.ops:
            for value in values_in(op.out):
                self._names.setdefault(id(value), names.get(op.index, op.name))
        inputs, feeds = self._inputs()
        leaves, tensors = self._leaves()
        timed = [*feeds, *self._takes(), *self._steps(names)]
        steps = self._with_drops([step for _, _, step in sorted(timed, key=lambda row: row[:2])])
        devices: dict[str, str] = {}
        for leaf, (value, _) in zip(leaves, tensors, strict=True):
            devices.setdefault(str(value.device), leaf.path)
        program = Program(
            title=self.record.title,
            inputs=tuple(inputs),
            leaves=tuple(leaves),
            steps=tuple(steps),
            output=self.output,
            output_names=_output_template(self.request.output, None),
            guards=tuple(self._guards(inputs)),
            known_keys=known_keys,
            devices=tuple(devices.items()),
        )
        cut = Cut(program)
        self._fill(cut, leaves, tensors, steps)
        return cut

    def _slot(self, value: Value) -> int:
        return self._slots.setdefault(id(value), len(self._slots))

    # Inputs

    def _inputs(self) -> tuple[list[_Input], list[tuple[int, int, _Feed]]]:
        rows: list[_Input] = []
        feeds: list[tuple[int, int, _Feed]] = []
        positions = {(id(moment.value), moment.time): position for position, moment in enumerate(self.moments)}
        for name, shape, values, count in self.rows():
            needed: set[int] = set()
            for place, value in enumerate(values):
                position = positions.get((id(value), count))
                if position is None or position in self.slice.used:
                    needed.add(place)
                    feeds.append((count, 0, self._feed(len(rows), place, Moment(value, count), position)))
                    self._names[id(value)] = name
            rows.append(_Input(name, _numbered(shape, values), tuple(map(_spec, values)), frozenset(needed)))
        names = [row.name for row in rows]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two inputs would be called {twice!r}: give one of them another name")
        return rows, feeds

    def _feed(self, row: int, place: int, moment: Moment, position: int | None) -> _Feed:
        aliases = [] if position is None else self.slice.aliases.get(position, [])
        is_written = self.memories.is_written_by(moment.value, self.slice.ops, moment.time)
        return _Feed(
            input=row,
            tensor=place,
            slots=tuple(map(self._slot, (moment.value, *aliases))),
            is_copied=is_written or (position is None and moment.value.is_written),
            is_in_place=position in self.slice.in_place,
        )

    # Leaves

    def _leaves(self) -> tuple[list[_Leaf], list[tuple[Value, torch.Tensor]]]:
        rows: list[_Leaf] = []
        tensors: list[tuple[Value, torch.Tensor]] = []
        constants = 0
        order = {name: position for position, name in enumerate(self.record.owned)}
        found = [value for value in self.slice.leaves.values() if value.kind != "input"]
        for value in sorted(found, key=lambda value: order.get(value.name or "", len(order))):
            path = value.name
            if value.kind == "constant" or path is None:
                path = f"constants.{constants}"
                constants += 1
            assert value.tensor is not None
            rows.append(_Leaf(self._slot(value), path, value.kind == "constant" and value.is_written))
            tensors.append((value, value.tensor))
        return rows, tensors

    def _fill(
        self, cut: Cut, leaves: list[_Leaf], tensors: list[tuple[Value, torch.Tensor]], steps: Sequence[Any]
    ) -> None:
        """Put parameters, buffers, constants and modules into a cut."""
        is_shared = self.request.share_modules
        for leaf, (value, tensor) in zip(leaves, tensors, strict=True):
            owner, _, key = leaf.path.rpartition(".")
            holder = _holder(cut, owner)
            if value.kind == "parameter":
                holder._parameters[key] = tensor if is_shared else _copied_parameter(tensor)  # type: ignore[assignment]
            else:
                holder._buffers[key] = tensor if is_shared else tensor.detach().clone()
                if value.kind == "constant" or self._is_temporary(leaf.path):
                    holder._non_persistent_buffers_set.add(key)
        paths = {id(module): name for name, module in _modules_of(self.request.model)}
        for step in steps:
            for path in _part_paths(step) if isinstance(step, _Step) else ():
                found = next(m for m in self._modules_in_ops() if paths.get(id(m), _nameless(m)) == path)
                owner, _, key = path.rpartition(".")
                if key not in _holder(cut, owner)._modules:
                    _holder(cut, owner)._modules[key] = found if is_shared else copy.deepcopy(found)

    def _modules_in_ops(self) -> list[nn.Module]:
        ops = (op for op in self.record.ops if op.index in self.slice.ops)
        return [arg for op in ops for arg in (*op.args, *op.kwargs.values()) if isinstance(arg, nn.Module)]

    def _is_temporary(self, path: str) -> bool:
        owner, _, key = path.rpartition(".")
        modules = dict(_modules_of(self.request.model))
        return owner in modules and key in modules[owner]._non_persistent_buffers_set

    # Steps

    def _steps(self, names: Mapping[int, str]) -> Iterator[tuple[int, int, _Step]]:
        for op in self.record.ops:
            if op.index in self.slice.ops:
                yield op.index, 2, self._step(op, names.get(op.index, op.name), is_query=False)
        for query in self.slice.queries:
            yield query.index, 1, self._step(query, query.name, is_query=True)

    def _step(self, op: Op, name: str, *, is_query: bool) -> _Step:
        base = self.record.context
        follows = base is not None and op.context.grad == base.grad and op.context.inference == base.inference
        args = tuple(self._packed(arg) for arg in op.args)
        kwargs = {key: self._packed(arg, key) for key, arg in op.kwargs.items()}
        results = [] if is_query else list(values_in(op.out))
        makes = bool(results) and not op.reads and not _has_device((args, kwargs))
        texts = [*map(self._text, op.args), *(f"{key}={self._text(arg)}" for key, arg in op.kwargs.items())]
        call = f"{op.name}({', '.join(texts)})"
        return _Step(
            position=op.index,
            function=_Function(op.func),
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
            return _Slot(self._slot(arg))
        if cls is torch.device:
            return _Device(str(arg))
        if cls is str and key == "device":
            return _Device(str(torch.device(arg)))
        if cls is tuple or cls is list:
            return cls(self._packed(part) for part in arg)
        if cls is dict:
            return {name: self._packed(part, name) for name, part in arg.items()}
        if cls is slice:
            return slice(self._packed(arg.start), self._packed(arg.stop), self._packed(arg.step))
        if cls is Nested:
            return arg.template.mapped(lambda value: _Slot(self._slot(value)))
        if isinstance(arg, nn.Module):
            paths = {id(module): name for name, module in _modules_of(self.request.model)}
            return _Part(paths.get(id(arg), _nameless(arg)))
        return arg

    def _text(self, arg: Any) -> str:
        if isinstance(arg, Value):
            return self._names.get(id(arg), arg.name or "constant")
        if isinstance(arg, (list, tuple)):
            inner = ", ".join(map(self._text, arg))
            return f"[{inner}]" if isinstance(arg, list) else f"({inner},)" if len(arg) == 1 else f"({inner})"
        if isinstance(arg, (Nested, nn.Module)):
            return "…"
        return repr(arg)

    def taken_moments(self) -> list[Moment]:
        """Everything that goes into the output, each once."""
        return list({(m.time, id(m.value)): m for point in self.points for m in point.moments()}.values())

    def rows(self) -> list[tuple[str, Any, list[Value], int]]:
        """The inputs in order, those of the model first: name, shape, tensors, and when each is taken."""
        order = {id(value): position for position, (_, value) in enumerate(self.record.inputs)}
        found: list[tuple[tuple[int, int], tuple[str, Any, list[Value], int]]] = [
            ((0, order[id(value)]), (path, value, [value], 0))
            for path, value in self.record.inputs
            if id(value) in self.slice.leaves
        ]
        used = {self.owners[position] for position in self.slice.used}
        for given in sorted(used, key=lambda index: self.request.given[index][0].count):
            point, name = self.request.given[given]
            values = [moment.value for moment, owner in zip(self.moments, self.owners, strict=True) if owner == given]
            is_input = len(values) == 1 and id(values[0]) in order
            rank = (0, order[id(values[0])]) if is_input else (1, len(found))
            found.append((rank, (name, point.shape, values, point.count)))
        return [row for _, row in sorted(found, key=lambda pair: pair[0])]

    def _takes(self) -> Iterator[tuple[int, int, _Take]]:
        for key, (value, count) in enumerate(self.taken_moments()):
            is_copied = self.memories.is_written_by(value, self.slice.ops, count)
            yield count, 1, _Take(self._slot(value), key, is_copied)

    def _with_drops(self, steps: list[Any]) -> list[Any]:
        """The steps, each with the slots that nobody reads after it."""
        last: dict[int, int] = {}
        for position, step in enumerate(steps):
            for slot in _slots_of(step):
                last[slot] = position
        drops: dict[int, list[int]] = {}
        for slot, position in last.items():
            while position < len(steps) and not isinstance(steps[position], _Step):
                position += 1
            drops.setdefault(position, []).append(slot)
        return [
            dataclasses.replace(step, drops=tuple(drops.get(position, ()))) if isinstance(step, _Step) else step
            for position, step in enumerate(steps)
        ]

    # Guards

    def _guards(self, inputs: list[_Input]) -> Iterator[Guard]:
        for row in inputs:
            for path, position in row.shape.paths(row.name):
                if position not in row.needed:
                    continue
                shape, dtype, _ = row.tensors[position]
                yield Guard(f"{path} is {shape} {str(dtype).removeprefix('torch.')}", True)
            for path, value in row.shape.plain_parts(row.name):
                yield Guard(f"{path} is {value!r}", False)
        for query in self.slice.queries:
            yield Guard(f"{query.name} gave Python {query.out!r}{self.describe_place(query)}", True)
        for query in self.slice.unchecked:
            yield Guard(f"{query.name} gave Python a value{self.describe_place(query)}", False)
        for value in self.slice.leaves.values():
            if value.kind == "constant":
                text = f"a constant {tuple(value.shape or ())} {value.note or f'is the attribute {value.name}'}"
                yield Guard(text, False)
        yield Guard("sizes and numbers that the code worked out in Python are as recorded", False)


def _spec(value: Value) -> tuple[tuple[int, ...] | None, torch.dtype, str]:
    return None if value.shape is None else tuple(value.shape), value.dtype, str(value.device)


def as_template(shape: Any) -> Template:
    """The value at a point as a template whose stand-ins are values."""
    if isinstance(shape, Template):
        return shape
    if isinstance(shape, Nested):
        return shape.template
    return _marked_template(shape, lambda part: (part,) if isinstance(part, Value) else None)


def _numbered(shape: Any, values: list[Value]) -> Template:
    """A template in which each value is replaced by its place in a list."""
    places = {id(value): place for place, value in enumerate(values)}
    return as_template(shape).mapped(lambda value: places[id(value)])


def _marked_template(value: Any, keys_of: Callable[[Any], Any]) -> Template:
    """A template of lists, tuples and dicts.

    Args:
        value: the lists, tuples and dicts.
        keys_of: for a part: a key in a tuple, a template of keys, or None where the part is to be entered.
    """
    keys: dict[int, Any] = {}
    marks: list[torch.Tensor] = []

    def mark(key: Any) -> torch.Tensor:
        marks.append(torch.empty(0))
        keys[id(marks[-1])] = key
        return marks[-1]

    def marked(part: Any) -> Any:
        found = keys_of(part)
        if isinstance(found, Template):
            return put_together(found, mark)
        if found is not None:
            return mark(found[0])
        if isinstance(part, Mapping):
            return {key: marked(each) for key, each in part.items()}
        return type(part)(marked(each) for each in part) if type(part) in (list, tuple) else part

    return take_apart(marked(value), lambda tensor: keys[id(tensor)])


def _points_in(output: Any) -> list[Point]:
    if isinstance(output, Point):
        return [output]
    if isinstance(output, Mapping):
        return [point for part in output.values() for point in _points_in(part)]
    if isinstance(output, (list, tuple)):
        return [point for part in output for point in _points_in(part)]
    return []


def _output_template(output: Any, key_of: Callable[[Point, Value], int] | None) -> Template:
    """The output with a key where each tensor goes; with names, where there is no key, for reading."""

    def keys_of(part: Any) -> Any:
        if not isinstance(part, Point):
            return None
        if key_of is None:
            return (Name(part.name),)
        return as_template(part.shape).mapped(lambda value: key_of(part, value))

    return _marked_template(output, keys_of)


def _holder(cut: nn.Module, path: str) -> nn.Module:
    """The module at a path, made where it is not there yet."""
    holder = cut
    for step in path.split(".") if path else ():
        if holder._modules.get(step) is None:
            holder._modules[step] = _Holder()
        holder = holder._modules[step]  # type: ignore[assignment]
    return holder


def _copied_parameter(tensor: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(tensor.detach().clone(), requires_grad=tensor.requires_grad)


def _modules_of(model: Any) -> list[tuple[str, nn.Module]]:
    root = model if isinstance(model, nn.Module) else getattr(model, "__self__", None)
    return list(root.named_modules()) if isinstance(root, nn.Module) else []


def _nameless(module: nn.Module) -> str:
    return f"{type(module).__name__}_{id(module)}"


def _part_paths(step: _Step) -> list[str]:
    return [arg.path for arg in (*step.args, *step.kwargs.values()) if isinstance(arg, _Part)]


def _has_device(arg: Any) -> bool:
    if isinstance(arg, _Device):
        return True
    if isinstance(arg, (list, tuple)) and type(arg) in (list, tuple):
        return any(map(_has_device, arg))
    return isinstance(arg, dict) and any(map(_has_device, arg.values()))


def _slots_of(step: Any) -> Iterator[int]:
    """Slots that a step reads or fills."""
    if isinstance(step, _Feed):
        yield from step.slots
    elif isinstance(step, _Take):
        yield step.slot
    else:
        todo: list[Any] = [step.args, step.kwargs, step.out]
        while todo:
            part = todo.pop()
            if isinstance(part, _Slot):
                yield part.number
            elif type(part) in (list, tuple):
                todo.extend(part)
            elif isinstance(part, dict):
                todo.extend(part.values())
            elif isinstance(part, slice):
                todo.extend((part.start, part.stop, part.step))
            elif isinstance(part, Template):
                todo.extend(part.stand_ins())
