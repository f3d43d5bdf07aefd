"""Run a record again: the same functions on the same or fresh inputs, under the same settings, without the model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from torchatlas.bits import Digest, digest
from torchatlas.builder import values_in
from torchatlas.functions import Writes, describe
from torchatlas.numbers import Numbers
from torchatlas.places import line_of
from torchatlas.record import Context, Nested, Op, Record, Value, filled
from torchatlas.settings import under
from torchatlas.slicing import is_plain
from torchatlas.state import Preserved, set_random_states
from torchatlas.structure import take_apart
from torchatlas.tensors import storage_key

# What Python asks of a tensor to go on with; asking again changes nothing.
_QUESTIONS = frozenset(
    ("item", "tolist", "bool", "int", "float", "complex", "index", "equal", "allclose", "is_nonzero")
)

_STAND_INS = frozenset((Value,))


class Replacement(NamedTuple):
    """What is exchanged at one point of a replay.

    Attributes:
        values: the values.
        make: gives the tensors to put in their place for those there are.
        end: number of operations after which the old tensors are back, as after a call that was given other arguments;
            None where they don't come back.
    """

    values: list[Value]
    make: Callable[[list[torch.Tensor]], Sequence[torch.Tensor]]
    end: int | None = None


class Replay:
    """One run of a record.

    Nothing outside is changed: memory that the record writes is copied first, random generators and gradients are put
    back. Values are dropped after their last use.

    Args:
        record: what to run.
        inputs: tensor for each input value, by the value's id.
        want: values that are to be kept, besides those the caller asks for while running.
        only: positions of the operations to run; None runs all.
        on_result: called after each operation with it and its results, for looking into the run.
        asks: whether to ask again what Python asked of tensors: with other inputs it may have gone another way.

    Attributes:
        numbers: recorded numbers that turned out to depend on the data and to be others now.
    """

    def __init__(
        self,
        record: Record,
        inputs: Mapping[int, torch.Tensor],
        want: list[Value],
        on_result: Callable[[Op, list[torch.Tensor]], None] | None = None,
        only: Collection[int] | None = None,
        asks: bool = False,
    ) -> None:
        self.record = record
        self.inputs = inputs
        self.want = want
        self.on_result = on_result
        self.values: dict[int, torch.Tensor] = {}
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._watched: dict[Any, torch.Tensor] = {}
        self._back: dict[int, list[tuple[int, torch.Tensor]]] = {}
        lost = lost_ops(record)
        self._left_out = lost if only is None else {op.index for op in record.ops if op.index not in only} | lost
        self.numbers = Numbers(record.ops)
        self.asks = asks

    def run(
        self,
        stops: Mapping[int, list[tuple[Any, Value]]] | None = None,
        until: int | None = None,
        replace: Mapping[int, list[Replacement]] | None = None,
        before_replacing: Mapping[int, list[tuple[Any, Value]]] | None = None,
    ) -> None:
        """Run the operations in order.

        Args:
            stops: number of operations to what is to be kept of the moment when that many have run, as pairs of a key
                and a value; the tensors are found in `captured(key)`, safe from later writes.
            until: number of operations after which to stop; None runs all.
            replace: number of operations to what is to be exchanged when that many have run: values, and a function
                that gives the new tensors for those there are.
            before_replacing: as `stops`, but of the moment before something is exchanged there.
        """
        record = self.record
        stops, replace, early = stops or {}, replace or {}, before_replacing or {}
        ops = record.ops if until is None else record.ops[:until]
        # What is put in the place of a leaf stays: dropping it would bring the leaf back.
        exchanged = {
            count: [(None, value) for values, _, _ in rows for value in values if value.kind == "op"]
            for count, rows in replace.items()
        }
        self._back = {}
        runs = [op for op in ops if op.status == "ok" and op.index not in self._left_out]
        asked: dict[int, list[Op]] = {}
        for query in self.record.queries if self.asks else ():
            if isinstance(query.out, Digest) or (query.name in _QUESTIONS and is_plain(query.out)):
                asked.setdefault(query.index, []).append(query)
        dead = self._last_uses([*runs, *(query for row in asked.values() for query in row)], stops, exchanged, early)
        preserved = Preserved()
        settings = contextlib.ExitStack()
        current: Context | None = None
        try:
            set_random_states(record.rng)
            for generator, state in record.generators.values():
                preserved.add_generator(generator)
                generator.set_state(state)
            self._prepare(preserved, runs)
            self._capture(early.get(0, ()))
            self._exchange(replace.get(0, ()), None)
            self._capture(stops.get(0, ()))
            for op in ops:
                for query in asked.get(op.index, ()):
                    self._ask(query)
                if op.status == "ok" and op.index not in self._left_out:
                    if op.context is not current:
                        settings.close()
                        settings.enter_context(under(op.context))
                        current = op.context
                    self._run(op)
                self.values.update(reversed(self._back.pop(op.index + 1, [])))
                if op.index + 1 in early:
                    self._capture(early[op.index + 1])
                if op.index + 1 in replace:
                    self._exchange(replace[op.index + 1], op)
                for index in dead.get(op.index, ()):
                    self.values.pop(index, None)
                if op.index + 1 in stops:
                    self._capture(stops[op.index + 1])
        finally:
            settings.close()
            preserved.restore()

    def get(self, value: Value) -> torch.Tensor:
        """The tensor that a value stands for in this run."""
        found = self.values.get(id(value))
        if found is None:
            found = self.values[id(value)] = self._leaf(value)
        return found

    def captured(self, key: Any) -> torch.Tensor:
        """What was kept under a key."""
        return self._watched[key]

    def _prepare(self, preserved: Preserved, ops: list[Op]) -> None:
        leaves = [*self.record.owned.values(), *self.inputs.values()]
        for leaf in leaves:
            preserved.add_leaf(leaf)
        infos = [describe(op.func) for op in ops if op.level == "function"]
        if any(info.is_backward for info in infos):
            preserved.before_backward()
        if any(info.writes is Writes.FLAG for info in infos):
            for leaf in leaves:
                preserved.before_flag(leaf)

    def _run(self, op: Op) -> None:
        if op.writes and self._watched:
            self._save_captured(op)
        args = [filled(arg, self.get, _STAND_INS) for arg in op.args]
        kwargs = {name: filled(arg, self.get, _STAND_INS) for name, arg in op.kwargs.items()}
        if self.numbers:
            args, kwargs = self.numbers.adapt(op, args, kwargs)
        try:
            out = op.func(*args, **kwargs)
            self._bind(op.out, out, op.index + 1)
        except Exception as error:
            if self.numbers:
                error.add_note(
                    f"in the replay of {op.name}: sizes that depend on the data differ from the recorded ones, so that "
                    "the forward may take another path for these inputs"
                )
            raise
        if self.on_result is not None:
            results = {id(v): v for v in (*values_in(op.out), *op.writes)}
            self.on_result(op, [self.get(value) for value in results.values()])

    def _ask(self, query: Op) -> None:
        """Ask again what Python asked of a tensor, and do as far as possible with another answer.

        Raises:
            ValueError: the answer is another one, so that the forward may take another path for these inputs.
        """
        line = f" in line {line_of(*query.place)} of {query.place[0].co_filename}" if query.place else ""
        if isinstance(query.out, Digest):
            if digest(self.get(query.reads[0])) != query.out and self.numbers.is_fed_from_outside(query.index):
                raise ValueError(
                    f"the recorded forward gave a tensor to code outside torch by `{query.name}`{line}, and read "
                    "tensors that came from there; with these inputs its values are others, which can't be followed"
                )
            return
        args = [filled(arg, self.get, _STAND_INS) for arg in query.args]
        answer = query.func(*args, **{name: filled(arg, self.get, _STAND_INS) for name, arg in query.kwargs.items()})
        if not self.numbers.learn_answer(query, answer):
            raise ValueError(
                f"the recorded forward read {query.out!r} by `{query.name}`{line}, with these inputs it would be "
                f"{answer!r}, and another path may be taken, or another number used: record a trace with such inputs"
            )

    def _bind(self, template: Any, out: Any, time: int) -> None:
        if isinstance(template, Value):
            self.values[id(template)] = out
            shape = template.shape if template.reshaped is None else template.shape_at(time)
            if shape is not None and not out.is_nested and out.shape != shape:
                self.numbers.learn(shape, out.shape)
        elif isinstance(template, (list, tuple)):
            if len(template) != len(out):
                raise RuntimeError(f"{len(out)} results where {len(template)} were recorded")
            for part, result in zip(template, out, strict=True):
                self._bind(part, result, time)
        elif isinstance(template, Nested):
            for value, tensor in zip(template.template.stand_ins(), take_apart(out, _same).stand_ins(), strict=True):
                self.values[id(value)] = tensor

    def _leaf(self, value: Value) -> torch.Tensor:
        source = self.inputs.get(id(value)) if value.kind == "input" else value.tensor
        if source is None:
            assumed = "; it depends on a result that was assumed" if self.record.failures else ""
            raise RuntimeError(f"the record has no tensor for {value!r}{assumed}")
        return self._own_copy(source) if value.is_written else source

    def _own_copy(self, source: torch.Tensor) -> torch.Tensor:
        """A copy to write into; leaves that share memory share the copy's."""
        key = storage_key(source)
        if key is None or (source.requires_grad and not source.is_leaf) or source.device.type == "meta":
            return source.clone()
        storage = self._storages.get(key)
        if storage is None:
            storage = self._storages[key] = source.untyped_storage().clone()
        with torch.no_grad():
            copy = torch.empty(0, dtype=source.dtype, device=source.device)
            copy.set_(storage, source.storage_offset(), source.size(), source.stride())
        return copy.requires_grad_(source.requires_grad)

    def _last_uses(self, ops: list[Op], *stops: Mapping[int, list[tuple[Any, Value]]]) -> dict[int, list[int]]:
        last: dict[int, int] = {}
        for op in ops:
            for value in (*op.reads, *values_in(op.out)):
                if value.kind == "op":
                    last[id(value)] = max(last.get(id(value), -1), op.index)
        for count, wanted in (row for rows in stops for row in rows.items()):
            for value in (value for _, value in wanted if value.kind == "op"):  # leaves are not dropped
                last[id(value)] = max(last.get(id(value), -1), count)
        for value in self.want:
            last.pop(id(value), None)
        dead: dict[int, list[int]] = {}
        for index, position in last.items():
            dead.setdefault(position, []).append(index)
        return dead

    def _exchange(self, rows: Iterable[Replacement], op: Op | None) -> None:
        """Put other tensors in the place of some values; into their memory where an operation has just written it."""
        for values, make, end in rows:
            for value, tensor in zip(values, make([self.get(value) for value in values]), strict=True):
                if end is not None:
                    self._back.setdefault(end, []).append((id(value), self.get(value)))
                    self.values[id(value)] = tensor.clone() if value.is_written else tensor
                elif op is not None and any(value is written for written in op.writes):
                    self._save_captured(op)
                    self.get(value).copy_(tensor)
                else:
                    self.values[id(value)] = tensor.clone() if value.is_written else tensor

    def _capture(self, wanted: Any) -> None:
        for key, value in wanted:
            self._watched[key] = self.get(value)

    def _save_captured(self, op: Op) -> None:
        """Copy what was captured and is about to be overwritten."""
        targets = {storage_key(self.get(value)) for value in op.writes}
        for key, tensor in self._watched.items():
            if storage_key(tensor) in targets:
                self._watched[key] = tensor.clone()


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def lost_ops(record: Record) -> frozenset[int]:
    """Operations that can't be run again, since they read what was assumed where a failure was passed over."""
    lost: set[int] = set()
    unknown: set[int] = set()
    for op in record.ops if record.failures else ():
        if op.status == "failed" or any(id(value) in unknown for value in op.reads):
            lost.add(op.index)
            unknown.update(id(value) for value in (*values_in(op.out), *op.writes))
    return frozenset(lost)
