"""Prove a record: replay it and compare with a plain run of the model, bit by bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import torch

from torchatlas.bits import all_same, digest
from torchatlas.functions import LENDERS, Writes, describe
from torchatlas.inputs import Inputs
from torchatlas.replay import Replay
from torchatlas.settings import under
from torchatlas.state import Preserved, set_random_states
from torchatlas.structure import walk
from torchatlas.survey import Survey
from torchatlas.tracer import Tracer


@dataclasses.dataclass(frozen=True, slots=True)
class Verification:
    """What `Trace.verify()` found; true where it passed.

    Attributes:
        status: `passed`, `failed` or `not_applicable`.
        reason: what differs, or why it does not apply; "" where it passed.
        node: name of the first operation whose results differ, where that could be told.
    """

    status: Literal["passed", "failed", "not_applicable"]
    reason: str = ""
    node: str | None = None

    def __bool__(self) -> bool:
        return self.status == "passed"


class Verifier:
    """Proves one record.

    Args:
        inputs: the record, and what to call for a plain run.
        names: of the nodes of the operations, in order.
    """

    def __init__(self, inputs: Inputs, names: Sequence[str]) -> None:
        self._inputs = inputs
        self._record = inputs.record
        self._names = names

    def verify(self) -> Verification:
        """The proof, the first difference, or the reason why it does not apply."""
        record = self._record
        reason = self._why_not_applicable()
        if record.output is None or reason:
            return Verification("not_applicable", reason)
        wanted = record.output.stand_ins()
        try:
            run = Replay(record, self._inputs.feed(), wanted)
            run.run()
            replayed = list(map(run.get, wanted))
        except Exception as error:  # noqa: BLE001 # whatever a replay raises is a failed proof, and is reported
            return Verification("failed", f"replay raised {type(error).__name__}: {error}")
        if record.reference:
            reference = record.reference
        else:
            reference = self._plain_outputs()
            if not all_same(reference, replayed) and not all_same(reference, self._plain_outputs()):
                return Verification("not_applicable", "the forward itself gives other results each time it runs")
        if all_same(reference, replayed):
            return Verification("passed")
        node = self._first_difference()
        reason = f"results differ, first at {node}" if node else "the outputs differ"
        lender = next((query.name for query in record.queries if query.name in LENDERS), None)
        if lender is not None:
            reason += f"; `{lender}` lent a tensor's memory to code outside torch, whose writes are not seen"
        return Verification("failed", reason, node)

    def _why_not_applicable(self) -> str:
        record = self._record
        if record.output is None or record.error is not None:
            return f"the forward did not run through: {type(record.error).__name__}"
        if record.unrepeatable and (not record.reference or any(map(_is_fake, record.reference))):
            return record.unrepeatable
        tensors = [t for _, t in walk((self._inputs.args, self._inputs.kwargs))] + list(record.owned.values())
        if any(t.is_meta or _is_fake(t) for t in tensors):
            return "there are no values: tensors on the meta device, or fake ones"
        return ""

    def _plain_outputs(self) -> list[torch.Tensor]:
        """What the model returns without us, from the recorded random state; everything it changes is put back."""
        record = self._record
        assert record.context is not None, "the record has no context"
        preserved = Preserved()
        inputs = [tensor for _, tensor in walk((self._inputs.args, self._inputs.kwargs))]
        for leaf in (*record.owned.values(), *inputs):
            preserved.add_leaf(leaf)
        preserved.add_modules(*Survey(self._inputs.target).attributes)
        for value in record.leaves():
            tensor = value.tensor
            if tensor is not None and value.is_written:
                preserved.add_leaf(tensor)
                preserved.before_write(tensor)
        for tensor in inputs:
            preserved.before_write(tensor)
        infos = [describe(op.func) for op in record.ops if op.level == "function"]
        if any(info.is_backward for info in infos):
            preserved.before_backward()
        if any(info.writes is Writes.FLAG for info in infos):
            for tensor in inputs:
                preserved.before_flag(tensor)
        try:
            set_random_states(record.rng)
            for generator, state in record.generators.values():
                preserved.add_generator(generator)
                generator.set_state(state)
            with under(record.context):
                out = self._inputs.target(*self._inputs.args, **self._inputs.kwargs)
            return [tensor.detach().clone() for _, tensor in walk(out)]
        finally:
            preserved.restore()

    def _first_difference(self) -> str | None:
        """Name of the first operation whose results differ between a second trace and a replay."""
        recorded: list[tuple[str, list[Any]]] = []
        tracer = Tracer(
            self._inputs.target,
            on_result=lambda op, tensors: recorded.append((op.name, [digest(tensor) for tensor in tensors])),
        )
        tracer.run(self._inputs.args, self._inputs.kwargs)
        replayed: list[tuple[int, str, list[Any]]] = []
        run = Replay(
            self._record,
            self._inputs.feed(),
            [],
            lambda op, tensors: replayed.append((op.index, op.name, [digest(tensor) for tensor in tensors])),
        )
        run.run()
        for (name, bits), (index, again, bits_again) in zip(recorded, replayed, strict=False):
            if name != again or bits != bits_again:
                return self._names[index]
        return None


def _is_fake(tensor: torch.Tensor) -> bool:
    return hasattr(tensor, "fake_mode")
