"""Turn a part of a record into a cut: what comes in, what it holds, what it runs, what it guards."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from torchatlas.builder import values_in
from torchatlas.cut import Cut, Holder
from torchatlas.exchange import is_function, new_tensors
from torchatlas.points import Point, Request, as_template, numbered, output_template, points_in
from torchatlas.program import Feed, Function, Guard, Input, Leaf, Part, Program, Restore, Step, Swap, Take
from torchatlas.record import Op, Record, Value
from torchatlas.slicing import Memories, Moment, Slice, slice_record
from torchatlas.steps import Stepper, modules_of, nameless, part_paths, with_drops


class Row(NamedTuple):
    """An input of a cut.

    Attributes:
        name: what it is called.
        shape: the value, each tensor replaced by its `Value`.
        values: the tensors in it.
        time: number of operations that have run when it is taken.
        tensors: what takes the place of the tensors; empty where the caller gives them.
    """

    name: str
    shape: Any
    values: list[Value]
    time: int
    tensors: tuple[torch.Tensor, ...] = ()


class CutMaker:
    """Turns a part of a record into a cut."""

    def __init__(self, record: Record, request: Request, describe_place: Callable[[Op], str]) -> None:
        self.record = record
        self.request = request
        self.describe_place = describe_place
        self.memories = Memories(record)
        self.moments: list[Moment] = []
        self.owners: list[int] = []
        fixed = [(point, point.name, new) for point, _, new in request.replaced if not _is_swapped(point, new)]
        self.given = [*((point, name, None) for point, name in request.given), *fixed]
        for position, (point, _, _) in enumerate(self.given):
            for value in {id(v): v for v in values_in(point.shape)}.values():
                self.moments.append(Moment(value, point.count))
                self.owners.append(position)
        self.points = points_in(request.output)
        wanted = [moment for point in self.points for moment in point.moments()]
        self.swapped: list[tuple[Point, str, Any]] = []
        self.slice: Slice = self._slice(wanted)
        self._check_replaced()
        keys = {(moment.time, id(moment.value)): key for key, moment in enumerate(self.taken_moments())}
        self.output = output_template(request.output, lambda point, value: keys[point.count, id(value)])
        self._steps = Stepper(record, request.model, describe_place)

    def _slice(self, wanted: list[Moment]) -> Slice:
        """The operations that are needed, for what functions are put in, too."""
        left = [row for row in self.request.replaced if _is_swapped(row[0], row[2])]
        while True:
            asked = [*wanted, *(moment for point, _, _ in self.swapped for moment in point.moments())]
            found = slice_record(self.record, self.moments, asked)
            more = [row for row in left if self._is_read(row[0], found, asked)]
            if not more:
                order = {id(row[0]): position for position, row in enumerate(self.request.replaced)}
                self.swapped.sort(key=lambda row: order[id(row[0])])
                return found
            self.swapped.extend(more)
            left = [row for row in left if all(row is not other for other in more)]

    def _is_read(self, point: Point, found: Slice, asked: list[Moment]) -> bool:
        """Whether a slice reads the value at a point from then on."""
        reads = [Moment(read, op.index) for op in self.record.ops if op.index in found.ops for read in op.reads]
        end = len(self.record.ops) + 1 if point.end is None else point.end
        later = [moment.value for moment in (*reads, *asked) if point.count <= moment.time < end]
        keys = {self.memories.of(value)[0] for value in later} - {None}
        return any(
            any(value is other for other in later)
            or (self._is_just_written(value, point.count) and self.memories.of(value)[0] in keys)
            for value in values_in(point.shape)
        )

    def _is_just_written(self, value: Value, count: int) -> bool:
        return count > 0 and any(value is written for written in self.record.ops[count - 1].writes)

    def _check_replaced(self) -> None:
        """Refuse what has no effect, and a tensor where the caller gives one."""
        taken = {(id(m.value), m.time) for m, owner in zip(self.moments, self.owners, strict=True)
                 if owner < len(self.request.given)}  # fmt: skip
        done = {id(point) for point, _ in self.replaced()}
        effective = {asked for point, asked, _ in self.request.replaced if id(point) in done}
        for point, asked, new in self.request.replaced:
            if not _is_swapped(point, new) and any((id(m.value), m.time) in taken for m in point.moments()):
                raise ValueError(f"{asked!r} is an input of the part, so it can't be replaced by a tensor, too")
            if asked not in effective:
                raise ValueError(f"replacing {asked!r} has no effect: nothing in the part reads it")

    def make(self, names: Mapping[int, str], known_keys: frozenset[str]) -> Cut:
        """The cut.

        Args:
            names: what the picture calls each operation, by its position in the record.
            known_keys: keys in the state of the whole model.
        """
        for op in self.record.ops:
            for value in values_in(op.out):
                self._steps.names.setdefault(id(value), names.get(op.index, op.name))
        inputs, feeds = self._inputs()
        leaves, tensors = self._leaves()
        timed = [*feeds, *self._swaps(), *self._restores(), *self._takes(), *self._steps.steps(self.slice, names)]
        steps = with_drops([step for _, _, step in sorted(timed, key=lambda row: row[:2])])
        devices: dict[str, str] = {}
        for leaf, (value, _) in zip(leaves, tensors, strict=True):
            devices.setdefault(str(value.device), leaf.path)
        program = Program(
            title=self.record.title,
            inputs=tuple(inputs),
            leaves=tuple(leaves),
            steps=tuple(steps),
            output=self.output,
            output_names=output_template(self.request.output, None),
            guards=tuple(self._guards(inputs)),
            known_keys=known_keys,
            devices=tuple(devices.items()),
        )
        cut = Cut(program)
        self._fill(cut, leaves, tensors, steps)
        self._fill_replaced(cut)
        return cut

    # Inputs

    def _inputs(self) -> tuple[list[Input], list[tuple[int, int, Feed]]]:
        rows: list[Input] = []
        feeds: list[tuple[int, int, Feed]] = []
        positions = {(id(moment.value), moment.time): position for position, moment in enumerate(self.moments)}
        for name, shape, values, count, tensors in self.rows():
            needed: set[int] = set()
            for place, value in enumerate(values):
                position = positions.get((id(value), count))
                if position is None or position in self.slice.used:
                    needed.add(place)
                    feeds.append((count, 0, self._feed(len(rows), place, Moment(value, count), position)))
                    self._steps.names[id(value)] = name
            held = tuple(f"replaced.given_{len(rows)}_{place}" for place in range(len(tensors)))
            rows.append(
                Input(
                    name,
                    numbered(shape, values),
                    tuple(_spec(value, count) for value in values),
                    frozenset(needed),
                    held,
                )
            )
        names = [row.name for row in rows if not row.held]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two inputs would be called {twice!r}: give one of them another name")
        return rows, feeds

    def _feed(self, row: int, place: int, moment: Moment, position: int | None) -> Feed:
        aliases = [] if position is None else self.slice.aliases.get(position, [])
        is_written = self._is_written_after(moment.value, moment.time)
        return Feed(
            input=row,
            tensor=place,
            slots=tuple(map(self._steps.slot, (moment.value, *aliases))),
            is_copied=is_written or (position is None and moment.value.is_written),
            is_in_place=position in self.slice.in_place,
        )

    def _is_written_after(self, value: Value, time: int) -> bool:
        """Whether what runs or is fed later writes into a value's memory."""
        if self.memories.is_written_by(value, self.slice.ops, time):
            return True
        fed = [self.moments[position] for position in self.slice.in_place]
        key, _ = self.memories.of(value)
        return any(
            moment.time >= time and moment.value is not value and self.memories.of(moment.value)[0] == key
            for moment in fed
            if key is not None
        )

    # Leaves

    def _leaves(self) -> tuple[list[Leaf], list[tuple[Value, torch.Tensor]]]:
        rows: list[Leaf] = []
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
            rows.append(Leaf(self._steps.slot(value), path, value.kind == "constant" and value.is_written))
            tensors.append((value, value.tensor))
        return rows, tensors

    def _fill(
        self, cut: Cut, leaves: list[Leaf], tensors: list[tuple[Value, torch.Tensor]], steps: Sequence[Any]
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
        paths = {id(module): name for name, module in modules_of(self.request.model)}
        for step in steps:
            for path in part_paths(step) if isinstance(step, Step) else ():
                found = next(m for m in self._modules_in_ops() if paths.get(id(m), nameless(m)) == path)
                owner, _, key = path.rpartition(".")
                if key not in _holder(cut, owner)._modules:
                    _holder(cut, owner)._modules[key] = found if is_shared else copy.deepcopy(found)

    def _fill_replaced(self, cut: Cut) -> None:
        """Put in the tensors and modules that take the place of values."""
        is_shared = self.request.share_modules
        rows = {f"given_{at}_{place}": t for at, row in enumerate(self.rows()) for place, t in enumerate(row.tensors)}
        for position, (point, _, new) in enumerate(self.swapped):
            if isinstance(new, nn.Module):
                _holder(cut, "replaced")._modules[str(position)] = new if is_shared else copy.deepcopy(new)
            elif not is_function(new):
                rows |= {f"{position}_{place}": t for place, t in enumerate(_tensors_of(point, new))}
        for key, tensor in rows.items():
            holder = _holder(cut, "replaced")
            kept = tensor if is_shared else _copied_parameter(tensor) if isinstance(tensor, nn.Parameter) else None
            if isinstance(kept, nn.Parameter):
                holder._parameters[key] = kept
            else:
                holder._buffers[key] = tensor if is_shared else tensor.detach().clone()
                holder._non_persistent_buffers_set.add(key)

    def _modules_in_ops(self) -> list[nn.Module]:
        ops = (op for op in self.record.ops if op.index in self.slice.ops)
        return [arg for op in ops for arg in (*op.args, *op.kwargs.values()) if isinstance(arg, nn.Module)]

    def _is_temporary(self, path: str) -> bool:
        owner, _, key = path.rpartition(".")
        modules = dict(modules_of(self.request.model))
        return owner in modules and key in modules[owner]._non_persistent_buffers_set

    def replaced(self) -> list[tuple[Point, Any]]:
        """What is put in, where it has an effect, in the user's order."""
        used = {self.owners[position] for position in self.slice.used}
        done = {id(point) for point, _, _ in self.swapped} | {id(self.given[owner][0]) for owner in used}
        return [(point, new) for point, _, new in self.request.replaced if id(point) in done]

    def taken_moments(self) -> list[Moment]:
        """Everything that goes into the output, each once."""
        return list({(m.time, id(m.value)): m for point in self.points for m in point.moments()}.values())

    def rows(self) -> list[Row]:
        """The inputs in order, those of the model first."""
        order = {id(value): position for position, (_, value) in enumerate(self.record.inputs)}
        found: list[tuple[tuple[int, int], Row]] = [
            ((0, order[id(value)]), Row(path, value, [value], 0))
            for path, value in self.record.inputs
            if id(value) in self.slice.leaves
        ]
        used = {self.owners[position] for position in self.slice.used}
        for given in sorted(used, key=lambda index: self.given[index][0].count):
            point, name, new = self.given[given]
            values = [moment.value for moment, owner in zip(self.moments, self.owners, strict=True) if owner == given]
            is_input = len(values) == 1 and id(values[0]) in order
            rank = (0, order[id(values[0])]) if is_input else (1, len(found))
            tensors = () if new is None else _tensors_of(point, new)
            found.append((rank, Row(name, point.shape, values, point.count, tensors)))
        return [row for _, row in sorted(found, key=lambda pair: pair[0])]

    def _swaps(self) -> Iterator[tuple[int, int, Swap]]:
        for position, (point, _, new) in enumerate(self.swapped):
            values = {self._steps.slot(value): value for value in values_in(point.shape)}
            is_run = point.end is None and point.count - 1 in self.slice.ops
            written = {slot for slot, value in values.items() if is_run and self._is_just_written(value, point.count)}
            made: Function | Part | tuple[str, ...] = Function(new)
            text = f"{getattr(new, '__name__', type(new).__name__)}({point.name})"
            if isinstance(new, nn.Module):
                made = Part(f"replaced.{position}")
            elif not is_function(new):
                made = tuple(f"replaced.{position}_{place}" for place in range(len(values)))
                text = ", ".join(f"self.{path}" for path in made)
            swap = Swap(
                name=point.name,
                position=point.count,
                shape=as_template(point.shape).mapped(self._steps.slot),
                new=made,
                in_place=frozenset(written),
                copied=frozenset(slot for slot, value in values.items() if value.is_written),
                key=None if point.end is None else position,
                text=f"{point.name} = {text}",
            )
            yield point.count, 1, swap

    def _restores(self) -> Iterator[tuple[int, int, Restore]]:
        for position, (point, _, _) in reversed(list(enumerate(self.swapped))):  # the call inside ends first
            if point.end is not None:
                slots = dict.fromkeys(self._steps.slot(value) for value in values_in(point.shape))
                yield point.end, -1, Restore(tuple(slots), position)

    def _takes(self) -> Iterator[tuple[int, int, Take]]:
        for key, (value, count) in enumerate(self.taken_moments()):
            is_copied = self._is_written_after(value, count)
            yield count, 2, Take(self._steps.slot(value), key, is_copied)

    # Guards

    def _guards(self, inputs: list[Input]) -> Iterator[Guard]:
        for row in inputs:
            if row.held:
                yield Guard(f"{row.name} is the tensor that takes its place", True)
                continue
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


def _spec(value: Value, time: int) -> tuple[tuple[int, ...] | None, torch.dtype, str]:
    shape = value.shape_at(time)
    return None if shape is None else tuple(shape), value.dtype, str(value.device)


def _is_swapped(point: Point, new: Any) -> bool:
    """Whether a replacement needs the old value: to work on, or to go on with after the call that gets another."""
    return point.end is not None or is_function(new)


def _tensors_of(point: Point, new: Any) -> tuple[torch.Tensor, ...]:
    """The tensors that take the place of a value, one for each of its tensors."""
    template = as_template(point.shape).mapped(id)
    olds = {number: torch.empty(0) for number in template.stand_ins()}  # they only show where tensors are
    return tuple(new_tensors(point.name, template, olds, new).values())


def _holder(cut: nn.Module, path: str) -> nn.Module:
    """The module at a path, made where it is not there yet."""
    holder = cut
    for step in path.split(".") if path else ():
        if holder._modules.get(step) is None:
            holder._modules[step] = Holder()
        holder = holder._modules[step]  # type: ignore[assignment]
    return holder


def _copied_parameter(tensor: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(tensor.detach().clone(), requires_grad=tensor.requires_grad)
