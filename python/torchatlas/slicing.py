"""Which operations of a record, and which leaves, a part of it needs. Data is followed through memory, not by names.

A tensor that is written into has different contents at different moments, so what is asked for and what is given are
moments: a value, and the number of operations that have run by then. Reading goes back from what is asked for: to what
made a tensor, and to every later write into the part of its memory that is read; and stops at what is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from torchatlas.builder import values_in
from torchatlas.chance import may_draw
from torchatlas.functions import Writes, describe, may_give_view
from torchatlas.memory import covers, overlaps
from torchatlas.record import Geometry, Op, Record, Value, Write


class Moment(NamedTuple):
    """A value when `time` operations have run."""

    value: Value
    time: int


@dataclass(slots=True)
class Slice:
    """A part of a record.

    Attributes:
        ops: positions of the operations that it runs.
        leaves: the leaves that it reads, by id: inputs, parameters, buffers, constants.
        used: positions in what is given of what it uses.
        in_place: those of them that must be written into memory, because another tensor shows a part of it.
        aliases: values that a given moment stands for too, by its position: they show just the same memory.
        queries: what Python asked about values that follow from what is given, and that can be asked again.
        unchecked: what Python asked likewise, but what would need more inputs to be asked again.
    """

    ops: set[int] = field(default_factory=set)
    leaves: dict[int, Value] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)
    in_place: set[int] = field(default_factory=set)
    aliases: dict[int, list[Value]] = field(default_factory=dict)
    queries: list[Op] = field(default_factory=list)
    unchecked: list[Op] = field(default_factory=list)

    def copy(self) -> Slice:
        """A slice that can be changed without changing this one."""
        aliases = {position: list(values) for position, values in self.aliases.items()}
        return Slice(
            set(self.ops), dict(self.leaves), set(self.used), set(self.in_place), aliases, list(self.queries),
            list(self.unchecked),
        )  # fmt: skip


def slice_record(record: Record, given: list[Moment], wanted: Iterable[Moment]) -> Slice:
    """The part of a record that makes `wanted` of `given`, and of leaves where that is not enough."""
    slicer = _Slicer(record, given)
    moments = list(wanted)
    found = slicer.close(Slice(), moments)
    while slicer.ignore_inside_gradients(found):
        found = slicer.close(Slice(), moments)
    return slicer.add_queries(found)


def needed_ops(record: Record, wanted: Iterable[Moment]) -> set[int]:
    """Positions of the operations to run for some values to be, bit for bit, what they were at some moments.

    More than data asks for: what may draw random numbers moves the generators on, and what can't be looked into may
    keep something from one call to the next. So of these, all before the last one that is needed run too. Where the
    forward accumulated gradients or exchanged the memory of tensors, everything before runs.
    """
    moments = list(wanted)
    end = max((moment.time for moment in moments), default=0)
    if any(_is_entangled(op) for op in record.ops[:end]):
        return set(range(end))
    slicer = _Slicer(record, [])
    found = slicer.close(Slice(), [*moments, *slicer.unseen_writes(moments)])
    ordered = [op for op in record.ops[:end] if op.status == "ok" and (op.level == "opaque" or may_draw(op))]
    while True:
        last = max((op.index for op in ordered if op.index in found.ops), default=-1)
        missing = [op for op in ordered if op.index < last and op.index not in found.ops]
        if not missing:
            return found.ops
        results = [Moment(value, op.index + 1) for op in missing for value in (*values_in(op.out), *op.writes)]
        found = slicer.close(found, [*results, *(Moment(read, op.index) for op in missing for read in op.reads)])
        found.ops.update(op.index for op in missing)


# Operations after which a tensor may show other memory than before.
_EXCHANGES = frozenset(("set_data", "set_", "resize_", "resize_as_", "swap_tensors"))


def _is_entangled(op: Op) -> bool:
    return op.name in _EXCHANGES or (op.level == "function" and describe(op.func).is_backward)


class Memories:
    """Where values lie in memory that the forward writes into."""

    def __init__(self, record: Record) -> None:
        self.writes = record.writes
        self._by_value: dict[int, tuple[Any, Geometry | None]] = {}
        self._bases_by_value: dict[int, frozenset[int]] = {}
        for op in record.ops:
            for position, (key, _, geometry) in (op.memory or {}).items():
                self._by_value.setdefault(id(op.reads[position]), (key, geometry))
        if record.output is not None:
            values = record.output.stand_ins()
            for position, (key, _, geometry) in (record.output_memory or {}).items():
                self._by_value.setdefault(id(values[position]), (key, geometry))
        for key, writes in record.writes.items():
            for write in writes:
                self._by_value[id(write.value)] = (key, write.geometry)

    def of(self, value: Value) -> tuple[Any, Geometry | None]:
        """The key of a value's storage and where it lies in there; None where nothing is written while it is read."""
        return self._by_value.get(id(value), (None, None))

    def is_written_by(self, value: Value, ops: set[int], start: int) -> bool:
        """Whether one of some operations, not before `start`, writes into the storage of a value."""
        key, _ = self.of(value)
        known = [write for write in self.writes.get(key, ()) if write.op.index >= start and write.op.index in ops]
        if known or key is not None:
            return bool(known)
        # Nothing has read it since: the write went through another tensor that shows its memory.
        later = (write for rows in self.writes.values() for write in rows)
        return any(w.op.index >= start and w.op.index in ops and id(value) in self._bases(w.value) for w in later)

    def _bases(self, value: Value) -> frozenset[int]:
        """Ids of the values of which a value is, or may be, a view."""
        found = self._bases_by_value.get(id(value))
        if found is None:
            bases: set[int] = set()
            todo = [value]
            while todo:
                op = todo.pop().op
                if op is not None and (op.is_passed_on or op.level != "function" or may_give_view(op.name)):
                    fresh = [read for read in op.reads if id(read) not in bases]
                    bases.update(map(id, fresh))
                    todo.extend(fresh)
            found = self._bases_by_value[id(value)] = frozenset(bases)
        return found


class _Slicer:
    def __init__(self, record: Record, given: list[Moment]) -> None:
        self.record = record
        self.given = given
        self.memories = Memories(record)
        self.by_value: dict[int, list[int]] = {}
        for position, moment in enumerate(given):
            self.by_value.setdefault(id(moment.value), []).append(position)
        self.by_key: dict[Any, list[int]] = {}
        for position, moment in enumerate(given):
            self.by_key.setdefault(self.memories.of(moment.value)[0], []).append(position)
        self.ignored: set[int] = set()
        self.flags: dict[int, list[Op]] = {}
        self.backwards: list[Op] = []
        for op in record.ops:
            info = describe(op.func) if op.level == "function" else None
            if info is not None and op.status == "ok":
                if info.writes is Writes.FLAG and op.reads:
                    self.flags.setdefault(id(op.reads[0]), []).append(op)
                if info.is_backward:
                    self.backwards.append(op)

    def unseen_writes(self, wanted: list[Moment]) -> Iterator[Moment]:
        """Writes that may have gone into the memory of a value that nobody has read since, so that it is not known."""
        for value, count in wanted:
            if self.memories.of(value)[0] is None:
                start = max(value.made, 0)
                later = (write for rows in self.memories.writes.values() for write in rows)
                yield from (Moment(w.value, w.op.index + 1) for w in later if start <= w.op.index < count)

    def close(self, found: Slice, wanted: list[Moment]) -> Slice:
        """Add to a slice all that some moments need."""
        todo: list[tuple[Value, int, Geometry | None, int | None]] = [(v, count, None, None) for v, count in wanted]
        seen: set[tuple[int, int, int | None]] = set()
        while todo:
            value, count, geometry, skipped = todo.pop()
            if (id(value), count, skipped) in seen:
                continue
            seen.add((id(value), count, skipped))
            for op in self._needs(found, value, count, geometry, skipped, todo):
                if op.index not in found.ops:
                    found.ops.add(op.index)
                    todo.extend(self._reads(op))
                    if op.name == "grad":
                        before = [other for other in self.backwards if other.index < op.index]
                        todo.extend((read, other.index, None, None) for other in before for read in other.reads)
                        found.ops.update(other.index for other in before)
        return found

    def _reads(self, op: Op) -> Iterator[tuple[Value, int, Geometry | None, int | None]]:
        for position, value in enumerate(op.reads):
            memory = (op.memory or {}).get(position)
            yield value, op.index, None if memory is None else memory[2], None

    def _needs(
        self, found: Slice, value: Value, count: int, geometry: Geometry | None, skipped: int | None, todo: list[Any]
    ) -> Iterator[Op]:
        """Operations that must run for a value to be right at a moment; notes leaves and what is given.

        Args:
            skipped: what is given that does not count: what it is to be written into is asked for.
        """
        key, place = self.memories.of(value)
        geometry = geometry or place
        position, start = self._source(value, count, key, geometry, skipped)
        if position is not None:
            found.used.add(position)
            if self.given[position].value is not value and value not in found.aliases.get(position, ()):
                found.aliases.setdefault(position, []).append(value)
        elif value.op is not None:
            yield value.op
        else:
            found.leaves[id(value)] = value
        if skipped is not None:
            return  # all of it is going to be overwritten
        injected = list(self._injected(value, start, count, key, geometry))
        origin = self._origin(value, count)
        for write in self.memories.writes.get(key, ()):
            is_in_time = start <= write.op.index < count and write.op is not value.op
            if not is_in_time or not _may_touch(write.geometry, geometry) or self._is_replaced(write, injected):
                continue
            yield write.op
            other = self._origin(write.value, write.op.index)
            if other != origin:  # what is written is read by way of another tensor, so both must share memory
                ends = [each for each in (origin, other) if each is not None]
                injected.append(max(ends, key=lambda each: self.given[each].time))
        yield from (op for op in self.flags.get(id(value), ()) if start <= op.index < count)
        for other in injected:
            found.used.add(other)
            found.in_place.add(other)
            todo.append((self.given[other].value, self.given[other].time, None, other))

    def _origin(self, value: Value, count: int) -> int | None:
        """The given moment whose memory a value shows; None where that is memory made before."""
        while True:
            for position in self.by_value.get(id(value), ()):
                if self.given[position].time <= count and position not in self.ignored:
                    return position
            key, _ = self.memories.of(value)
            maker = value.op
            if maker is None or key is None:
                return None
            shown = (read for read in maker.reads if self.memories.of(read)[0] == key and read is not value)
            source = next(shown, None)
            if source is None:
                return None
            value, count = source, maker.index

    def _is_replaced(self, write: Write, injected: list[int]) -> bool:
        """Whether nothing is left of a write, because what is given covers it."""
        for position in injected:
            moment = self.given[position]
            _, place = self.memories.of(moment.value)
            is_known = place is not None and write.geometry is not None
            if write.op.index < moment.time and is_known and covers(place, write.geometry):
                return True
        return False

    def _source(
        self, value: Value, count: int, key: Any, geometry: Geometry | None, skipped: int | None
    ) -> tuple[int | None, int]:
        """The latest given moment that stands for a value, and from when on its contents follow from there."""
        best: tuple[int | None, int] = (None, max(value.made, 0))
        for position in self.by_value.get(id(value), ()):
            is_usable = position != skipped and position not in self.ignored
            if is_usable and best[1] <= self.given[position].time <= count:
                best = position, self.given[position].time
        if best[0] is None and key is not None:
            for position in self.by_key.get(key, ()):
                moment = self.given[position]
                is_usable = position != skipped and position not in self.ignored
                if not is_usable or not value.made < moment.time <= count:
                    continue
                _, other = self.memories.of(moment.value)
                is_same = other == geometry and other is not None
                if is_same and moment.value.dtype == value.dtype and self._is_write(moment, key, geometry, value.made):
                    best = position, moment.time
        return best

    def _injected(self, value: Value, start: int, count: int, key: Any, geometry: Geometry | None) -> Iterator[int]:
        """What is given that is the result of a write into memory which a value shows, too."""
        for position in self.by_key.get(key, ()) if key is not None else ():
            moment = self.given[position]
            is_usable = position not in self.ignored and moment.value is not value
            if not is_usable or not start < moment.time <= count:
                continue
            _, other = self.memories.of(moment.value)
            if _may_touch(other, geometry) and self._is_write(moment, key, geometry, start):
                yield position

    def _is_write(self, moment: Moment, key: Any, geometry: Geometry | None, start: int) -> bool:
        """Whether a given moment takes the place of something written into memory that is read."""
        _, other = self.memories.of(moment.value)
        return any(
            start <= write.op.index < moment.time
            and _may_touch(write.geometry, geometry)
            and _may_touch(write.geometry, other)
            for write in self.memories.writes.get(key, ())
        )

    # Gradients taken by the forward itself

    def ignore_inside_gradients(self, found: Slice) -> bool:
        """Ignore what is given between the two ends of a gradient that the slice computes: it would have no history.

        Returns:
            Whether there was something to ignore.
        """
        before = len(self.ignored)
        read = {
            id(value)
            for index in found.ops
            for op in (self.record.ops[index],)
            if op.name == "grad"
            for value in op.reads
        }
        for index in found.ops:
            op = self.record.ops[index]
            if op.func is torch.autograd.grad:
                ends = {id(value) for value in values_in((op.args[1:], op.kwargs.get("inputs")))}
            elif op in self.backwards:
                ends = read
            else:
                continue
            between = _between(op.reads, ends)
            self.ignored.update(p for p in found.used if id(self.given[p].value) in between)
        return len(self.ignored) > before

    # What Python asked

    def add_queries(self, found: Slice) -> Slice:
        """Add the queries whose answers may differ for other inputs, as far as they need no more inputs."""
        last = max(found.ops, default=-1)
        tainted = self._tainted(found)
        for query in self.record.queries:
            if query.index > last or not self._is_tainted(query, tainted):
                continue
            tried = self.close(found.copy(), [Moment(value, query.index) for value in query.reads])
            if tried.used == found.used and tried.leaves.keys() == found.leaves.keys() and is_plain(query.out):
                tried.queries.append(query)
                found = tried
            else:
                found.unchecked.append(query)
        return found

    def _tainted(self, found: Slice) -> tuple[set[int], dict[int, int]]:
        """Operations that follow from what is given or from the model's inputs, and since when values do."""
        values = {id(value): 0 for value in found.leaves.values() if value.kind == "input"}
        for position in found.used:
            moment = self.given[position]
            for value in (moment.value, *found.aliases.get(position, ())):
                values[id(value)] = min(moment.time, values.get(id(value), moment.time))
        ops: set[int] = set()
        for op in self.record.ops:
            if self._is_tainted(op, (ops, values)):
                ops.add(op.index)
                for value in (*values_in(op.out), *op.writes):
                    values.setdefault(id(value), op.index)
        return ops, values

    def _is_tainted(self, op: Op, tainted: tuple[set[int], dict[int, int]]) -> bool:
        ops, values = tainted
        if any(values.get(id(value), op.index + 1) <= op.index for value in op.reads):
            return True
        return any(
            write.op.index in ops and _may_touch(write.geometry, geometry)
            for key, count, geometry in (op.memory or {}).values()
            for write in self.memories.writes[key][:count]
        )


def _between(values: list[Value], ends: set[int]) -> set[int]:
    """Ids of the values that are made of some ends, as far as `values` are made of them; without the ends."""
    reaches: dict[int, bool] = {}
    todo = [(value, False) for value in values]
    while todo:
        value, is_done = todo.pop()
        reads = [] if value.op is None or id(value) in ends else value.op.reads
        if is_done:
            reaches[id(value)] = id(value) in ends or any(reaches.get(id(read), False) for read in reads)
        elif id(value) not in reaches:
            reaches[id(value)] = False
            todo.append((value, True))
            todo.extend((read, False) for read in reads)
    return {found for found, does_reach in reaches.items() if does_reach} - ends


def _may_touch(one: Geometry | None, other: Geometry | None) -> bool:
    return one is None or other is None or overlaps(one, other)


def is_plain(answer: Any) -> bool:
    """Whether what Python got can be compared with what it gets another time."""
    if isinstance(answer, (list, tuple)):
        return all(map(is_plain, answer))
    return isinstance(answer, (bool, int, float, complex, str))
