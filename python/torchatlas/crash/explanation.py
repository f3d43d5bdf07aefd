"""Explain a failure: find the rule that knows it, try what may help, and put it in words."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, MappingProxyType
from typing import Any

from torchatlas.crash import kinds, layers, products, python, shapes, windows
from torchatlas.crash.diagnosis import Diagnosis, Remedy
from torchatlas.crash.site import Frame, Site, dtype_text, shape_text
from torchatlas.crash.trial import passes, succeeds
from torchatlas.failures import failures_of
from torchatlas.graph import Failure, Graph
from torchatlas.record import Failed, Record, Value

_RULES: tuple[Callable[[Site], Diagnosis | None], ...] = (
    *kinds.BEFORE_SHAPES, *products.RULES, *windows.RULES, *layers.RULES, *shapes.RULES, *kinds.AFTER_SHAPES,
    *python.RULES,
)  # fmt: skip
_SUGGESTIONS_MAX = 3
_VALUE_TEXT_MAX = 60


@dataclass(frozen=True)
class Argument:
    """One argument of the operation that failed.

    Attributes:
        name: the parameter it fills, with its place where it is one of several: `tensors[1]`.
        shape, dtype, device: of a tensor; None otherwise.
        value: text of what is no tensor, and of tensors with a single value.
        origin: what a tensor comes from, in words; "" otherwise.
    """

    name: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    device: str | None = None
    value: str = ""
    origin: str = ""

    def __str__(self) -> str:
        parts = [] if self.dtype is None else [shape_text(self.shape), self.dtype, str(self.device)]
        text = " ".join(
            [*parts, *([f"= {self.value}"] if self.value and parts else [self.value] if self.value else [])]
        )
        return f"{self.name}: {text}" + (f" from {self.origin}" if self.origin else "")


@dataclass(frozen=True)
class Explanation:
    """What clashed when a forward failed, and where it came from. `str()` gives it in words.

    Attributes:
        type, message: class name and text of the exception.
        kind: what kind of failure it is, for example `linear`, `broadcast`, `dtype`; "" where that isn't known.
        sentence: what clashed and where it came from; "" where the kind isn't known.
        suggestions: changes that were tried and get the forward past the operation.
        facts: the numbers and names of the sentence as data.
        node: name of the operation that failed; None where plain Python code raised.
        modules: names of the module calls that were open, outermost first.
        file, line, function, code: the user's line; None and "" where there is none.
        arguments: arguments of the operation that failed.
    """

    type: str
    message: str
    kind: str = ""
    sentence: str = ""
    suggestions: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    node: str | None = None
    modules: tuple[str, ...] = ()
    file: str | None = None
    line: int | None = None
    function: str = ""
    code: str = ""
    arguments: tuple[Argument, ...] = ()

    def __str__(self) -> str:
        """The sentence and what would help; the original message alone where the kind isn't known."""
        if not self.sentence:
            return self.message or self.type
        place = f"\n  at {self.file}:{self.line}: {self.code}" if self.file else ""
        return "\n  ".join([f"{self.sentence}.", *(f"{text}." for text in self.suggestions)]) + place


def explain_all(record: Record, graph: Graph, is_internal: Callable[[CodeType], bool]) -> tuple[Explanation, ...]:
    """Explain every failure of a trace.

    Args:
        record: what ran.
        graph: the graph of that record.
        is_internal: whether code is torch's or ours, so that no frame of it is the user's.

    Returns:
        One explanation per failure, in the order of `graph.errors`.
    """
    names = Naming.of(record, graph)
    found = []
    for failed, failure in zip(failures_of(record), graph.errors, strict=True):
        site = site_of(record, failed, names, is_internal)
        found.append(_explain(site, graph, failure))
    return tuple(found)


@dataclass(frozen=True)
class Naming:
    """Names of nodes and calls by the index of operation and call."""

    ops: Mapping[int, str] = field(default_factory=dict)
    calls: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Record, graph: Graph) -> Naming:
        """The names that a graph gives to what its record holds."""
        nodes = (node.name for node in graph.nodes if node.kind in ("op", "opaque"))
        return cls(
            {op.index: name for op, name in zip(record.ops, nodes, strict=True)},
            {call.id: call.name for call in graph.calls},
        )


def site_of(record: Record, failed: Failed, names: Naming, is_internal: Callable[[CodeType], bool]) -> Site:
    """Where a failure happened."""
    frames = _frames(failed.error, is_internal)
    return Site(record, failed.op, failed.call, failed.error, names.ops, names.calls, frames)


def _frames(error: BaseException, is_internal: Callable[[CodeType], bool]) -> Sequence[Frame]:
    found: list[Frame] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_internal(code):
            found.append((code, trace.tb_lineno, trace.tb_frame.f_locals))
        trace = trace.tb_next
    return found


def diagnose(site: Site) -> Diagnosis | None:
    """What the first rule that knows the failure says of it; None where none does."""
    return next((found for rule in _RULES if (found := rule(site)) is not None), None)


def _explain(site: Site, graph: Graph, failure: Failure) -> Explanation:
    diagnosis = diagnose(site)
    source = None if failure.source is None else graph.sources[failure.source]
    code = ""
    if source is not None and 0 <= source.line - source.first_line < len(source.code):
        code = source.code[source.line - source.first_line].strip()
    return Explanation(
        type=failure.type,
        message=failure.message,
        kind="" if diagnosis is None else diagnosis.kind,
        sentence="" if diagnosis is None else diagnosis.sentence,
        suggestions=() if diagnosis is None else suggestions(site, diagnosis),
        facts=MappingProxyType({} if diagnosis is None else dict(diagnosis.facts)),
        node=None if failure.node is None else graph.nodes[failure.node].name,
        modules=tuple(graph.calls[index].name for index in failure.calls),
        file=None if source is None else source.file,
        line=None if source is None else source.line,
        function="" if source is None else source.function,
        code=code,
        arguments=tuple(_arguments(site)),
    )


def suggestions(site: Site, diagnosis: Diagnosis) -> tuple[str, ...]:
    """The remedies that were tried and passed, in words."""
    helpful = [remedy.text for remedy in diagnosis.remedies if _helps(site, remedy)]
    return tuple(f"{text} would pass; tried" for text in helpful[:_SUGGESTIONS_MAX])


def _helps(site: Site, remedy: Remedy) -> bool:
    if remedy.attempt is not None:
        return succeeds(remedy.attempt)
    return passes(site, remedy.changes, real=remedy.is_real)


def _arguments(site: Site) -> list[Argument]:
    rows: list[Argument] = []
    for name, given in site.arguments.items():
        rows.extend(_argument_rows(site, name, given))
    return rows


def _argument_rows(site: Site, name: str, given: Any) -> list[Argument]:
    if isinstance(given, Value):
        return [_tensor_argument(site, name, given)]
    if isinstance(given, (list, tuple)) and any(isinstance(part, Value) for part in given):
        return [row for number, part in enumerate(given) for row in _argument_rows(site, f"{name}[{number}]", part)]
    if given is None:
        return []
    text = repr(given)
    return [Argument(name, value=text if len(text) <= _VALUE_TEXT_MAX else text[: _VALUE_TEXT_MAX - 1] + "…")]


def _tensor_argument(site: Site, name: str, value: Value) -> Argument:
    shape = None if value.shape is None else tuple(int(size) for size in value.shape)
    tensor = site.live(value)
    text = ""
    if tensor is not None and shape is not None and math.prod(shape) == 1 and not tensor.is_sparse:
        with contextlib.suppress(RuntimeError):  # an accelerator that has failed gives no values
            text = str(tensor.detach().reshape(()).item())
    return Argument(name, shape, dtype_text(value.dtype), str(value.device), text, site.maker(value))
