"""The trace of one forward: its graph, and what can be done with its record (replay, verify, read out values)."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from torchatlas import export, extraction, query, schema, text
from torchatlas.arguments import call_arguments
from torchatlas.builder import build_graph
from torchatlas.cut import Cut
from torchatlas.graph import Graph, Proof
from torchatlas.inputs import Inputs
from torchatlas.locations import Locations
from torchatlas.measured import Measured
from torchatlas.options import ViewOptions
from torchatlas.places import is_internal_code
from torchatlas.progress import Progress
from torchatlas.record import Op, Record, Value
from torchatlas.replay import Replay
from torchatlas.slicing import Moment, needed_ops
from torchatlas.structure import put_together, take_apart
from torchatlas.tracer import Tracer
from torchatlas.verification import Verification, Verifier

if TYPE_CHECKING:
    from torchatlas import crash

OnError = Literal["raise", "keep"]


def trace(
    model: Callable[..., Any],
    inputs: Any,
    kwargs: Mapping[str, Any] | None = None,
    *,
    on_error: OnError = "raise",
    fake: bool = False,
    past_errors: bool = False,
    keep_state_changes: bool = False,
    stats: bool = False,
    progress: bool = False,
) -> Trace:
    """Run a forward once and record it.

    Args:
        model: a module, a method of one (`model.generate`), or any function of tensors.
        inputs: a tuple is splatted; a mapping whose keys all name keyword-passable parameters of the forward is passed
            as keywords; anything else, a list too, is the one positional argument.
        kwargs: keyword arguments of the forward.
        on_error: `raise` lets the forward's exception go on, with the partial trace as its attribute
            `torchatlas_trace`; `keep` returns the partial trace, with the exception as `trace.error`. What is no
            `Exception` (KeyboardInterrupt) is raised in any case.
        fake: run under fake tensors: shapes only, no values, no memory.
        past_errors: where the forward raises, run it again past the failure, with a result of the shape that the
            operation would have given, until all failures are found: `trace.graph.errors`. The first one is raised or
            kept.
        keep_state_changes: leave parameters, buffers, attributes of modules, inputs and random generators as the
            forward left them. By default they are put back, so that a trace changes nothing.
        stats: measure results while they are there: their statistics are then metrics of nodes and calls (`value_min`,
            `value_max`, `value_mean`, `value_std`, `value_zeros`, `value_nan`, `value_inf`), of the first where there
            are several.
        progress: show a progress bar where it lasts.

    Returns:
        The trace.

    Raises:
        TypeError: `model` can't be called, or `kwargs` is no mapping with text keys.
        ValueError: `on_error` is neither `raise` nor `keep`.
        BaseException: what the forward raised.

    Example:
        >>> trace(torch.nn.Linear(4, 2), torch.ones(1, 4)).adjacency["x"]  # doctest: +SKIP
    """
    if not callable(model) or isinstance(model, type):
        raise TypeError(f"model must be a torch.nn.Module or a function, got {model!r:.80}")
    if on_error not in ("raise", "keep"):
        raise ValueError(f"on_error must be 'raise' or 'keep', got {on_error!r}")
    args, named = call_arguments(model, inputs, kwargs)
    measured = Measured() if stats else None
    bar = Progress("operations") if progress else None
    tracer = Tracer(model, keep_state_changes=keep_state_changes, on_result=_watch(measured, bar))
    made = Trace(Inputs(tracer.record, model, args, named), measured)
    run = _run_fake if fake else Tracer.run
    try:
        with bar or contextlib.nullcontext():
            run(tracer, args, named)
    except BaseException as error:
        if past_errors and isinstance(error, Exception):
            made = _look_past(made, run, progress=progress)
        _attach(error, made)
        if on_error == "raise" or not isinstance(error, Exception):
            raise
    return made


class Trace:
    """One recorded forward. Made by `trace()`.

    Attributes:
        record: what ran, as it can be replayed.
    """

    def __init__(self, inputs: Inputs, measured: Measured | None = None) -> None:
        self.record = inputs.record
        self._inputs = inputs
        self._measured = measured
        self._proof = Proof()

    @cached_property
    def _locations(self) -> Locations:
        return Locations(self.record, self._built)

    @cached_property
    def _bare(self) -> Graph:
        """The graph without explanations, which are made from it."""
        graph = build_graph(self.record, is_internal=is_internal_code)
        return graph if self._measured is None else self._measured.add_to(graph, self.record, self.record.leaves())

    @cached_property
    def _built(self) -> Graph:
        explained = tuple(
            dataclasses.replace(failure, explanation=found.sentence, suggestions=found.suggestions)
            for failure, found in zip(self._bare.errors, self.explanations, strict=True)
        )
        if not explained:
            return self._bare
        graph = dataclasses.replace(self._bare, error=explained[0], errors=explained)
        return dataclasses.replace(graph, report=_crash().report(graph, self.explanations))

    @cached_property
    def explanations(self) -> tuple[crash.Explanation, ...]:
        """What is known of each failure, in order; empty where the forward ran through."""
        if self.record.error is None:
            return ()
        return _crash().explain_all(self.record, self._bare, is_internal_code)

    @property
    def graph(self) -> Graph:
        """The forward as plain data: nodes, edges, module calls, error, coverage."""
        return self._built if self._built.proof == self._proof else dataclasses.replace(self._built, proof=self._proof)

    @cached_property
    def adjacency(self) -> dict[str, list[str]]:
        """Node name to the names of the nodes that read its results, in order of execution."""
        return self._built.adjacency()

    @cached_property
    def hierarchy(self) -> dict[str, str | None]:
        """Name of each node and module call to the name of the call that encloses it; None for the outermost."""
        return self._built.hierarchy()

    @property
    def error(self) -> BaseException | None:
        """The exception that ended the forward; None if it ran through."""
        return self.record.error

    def explain(self) -> crash.Explanation:
        """Explain why the forward stopped: what clashed and where it came from, which `str()` gives in words.

        Where the trace looked past the first failure, `explanations` has those of all.

        Raises:
            RuntimeError: the forward ran through.
        """
        if not self.explanations:
            raise RuntimeError("the forward ran through, so there is no failure to explain")
        return self.explanations[0]

    def report(self) -> str:
        """The trace and its failures as Markdown, to be pasted into an issue."""
        return self._built.report or _crash().report(self._built, self.explanations)

    def replay(self, *args: Any, replace: Mapping[str, Any] | None = None, **kwargs: Any) -> Any:
        """Run the record again, without the model's code.

        Python's control flow and sizes are as they were recorded, so fresh inputs must have the same structure, shapes
        and dtypes, and would have taken the same path. What Python read off tensors is read again: truth values must
        be the same, sizes and fractions that it handed on follow, numbers that it only compared may differ.

        Args:
            *args, **kwargs: arguments as for the forward; without any, the recorded ones.
            replace: names of nodes and module calls (`name.in` for what a call is given), globs or queries, each with
                what is put in the place of its value: a tensor, or a function of the value.

        Returns:
            What the forward returned, in the same structure, bit for bit the same for the same inputs.

        Raises:
            RuntimeError: the recorded forward did not run through.
            ValueError: the arguments differ from the recorded ones in structure, shape, dtype or a fixed value, or
                Python would read something else off tensors on the way that can't be followed.
        """
        template = self.record.output
        if template is None or self.record.error is not None:
            raise RuntimeError(f"a forward that did not run through can't be replayed: {self.record.error!r}")
        want = template.stand_ins()
        is_fresh = bool(args or kwargs) and not replace and not self.record.failures
        run = Replay(self.record, self._inputs.feed(*args, **kwargs), want, asks=is_fresh)
        run.run(replace=self._locations.replacements(replace or {}))
        return put_together(template, run.get)

    def verify(self) -> Verification:
        """Prove the record: replay it and compare with a plain run of the model, bit by bit.

        Returns:
            Passed, failed (with the first operation that differs), or not applicable (with the reason).
        """
        found = Verifier(self._inputs, list(self._locations.ops)).verify()
        status: Any = found.status
        self._proof = Proof(status, found.reason)
        return found

    def values(self, names: str | Iterable[str], *, progress: bool = False) -> dict[str, Any]:
        """Compute values of nodes and module calls, by replaying only the operations that they are made by.

        Args:
            names: names of nodes or module calls; a call stands for what it returned, `name.in` for what it was given.
            progress: show a progress bar where it lasts.

        Returns:
            Name to tensor, as it was at that point of the forward; a tuple where there are several.

        Raises:
            ValueError: a name does not exist; the closest ones are named.
            RuntimeError: the operation or call did not return.
        """
        wanted = [names] if isinstance(names, str) else list(names)
        found = {name: self._locations.moment(name) for name in wanted}
        stops: dict[int, list[tuple[Any, Value]]] = {}
        for name, (count, values) in found.items():
            stops.setdefault(count, []).extend(((name, position), value) for position, value in enumerate(values))
        needed = needed_ops(self.record, [Moment(value, count) for count, rows in stops.items() for _, value in rows])
        bar = Progress("operations", len(needed)) if progress else None
        run = Replay(self.record, self._inputs.feed(), [], _watch(None, bar), needed)
        with bar or contextlib.nullcontext():
            run.run(stops, until=max(stops, default=0))
        answers = {name: tuple(run.captured((name, i)) for i in range(len(rows))) for name, (_, rows) in found.items()}
        return {name: tensors[0] if len(tensors) == 1 else tensors for name, tensors in answers.items()}

    def extract(
        self,
        node_in: extraction.Names | None = None,
        node_out: extraction.Names | None = None,
        *,
        keep_output: bool | None = None,
        share_modules: bool = False,
        replace: Mapping[str, Any] | None = None,
    ) -> Cut:
        """Cut a part out of the recorded forward, as a module of its own; see `Extract` for what can be asked.

        Raises:
            ValueError: a name does not exist; the closest ones are named.
            RuntimeError: the forward did not get that far, or the cut does not give what the recorded forward gave.
        """
        target = self._inputs.target
        model = target if isinstance(target, torch.nn.Module) else getattr(target, "__self__", None)
        keys = frozenset(model.state_dict()) if isinstance(model, torch.nn.Module) else frozenset()
        keeps = node_out is None if keep_output is None else keep_output
        request = extraction.request(
            self._locations.points, node_in, node_out, keep_output=keeps, share_modules=share_modules, model=model,
            replace=replace,
        )  # fmt: skip
        names = {op.index: name for name, op in self._locations.ops.items()}
        return extraction.extract(self.record, request, self._inputs.feed(), names, keys)

    def extract_region(self, names: str | Iterable[str], *, share_modules: bool = False) -> Cut:
        """Cut out what was selected in the picture: some nodes, and all that lies inside some module calls.

        Args:
            names: names of nodes and module calls, globs or queries.
            share_modules: hold the model's own parameters, not copies.

        Returns:
            The part: its inputs are what the region reads from outside of it, its outputs what is read from the region
            there: one value, or a dict by name.

        Raises:
            ValueError: a name does not exist, or there is nothing to run in the region.
        """
        wanted = [names] if isinstance(names, str) else list(names)
        selected = {point.name.removesuffix(".in") for name in wanted for point in self._locations.points(name)}
        node_in, node_out = extraction.region_ends(self._built, selected)
        if not node_out:
            raise ValueError(f"nothing outside reads what {', '.join(wanted)} gives, so there is nothing to cut out")
        return self.extract(
            node_in or None, node_out[0] if len(node_out) == 1 else {name: name for name in node_out},
            share_modules=share_modules,
        )  # fmt: skip

    def find(self, query_text: str) -> list[str]:
        """Names of the module calls and nodes that a query finds; the language is the search box's, see `query`."""
        return query.find_names(self._built, query_text)

    def show(self, **options: Any) -> Any:
        """Show the trace where you are: in the notebook's cell, or as text in a terminal.

        Args:
            **options: how the view starts; see `ViewOptions`.

        Returns:
            The view.
        """
        from torchatlas.display import show  # display reads traces; a method can only reach it late

        return show(self, **options)

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write a page (`.html`), a picture (`.svg`, `.png`, `.pdf`), the document (`.json`) or Graphviz's `.dot`.

        Pictures need the extra `torchatlas[export]`.

        Args:
            path: where to.
            **options: how the page starts, which is what a picture shows: fields of `ViewOptions`, `depth` and `theme`
                among them.

        Returns:
            The absolute path of the file.

        Raises:
            TypeError: `path` is no path, or there is no such option.
            ValueError: `path` has another suffix, or an option has a value outside its range.
            ImportError: it is a picture, and a package of the extra is missing.
            RuntimeError: the picture could not be drawn.
            OSError: `path` can't be written; nothing is left half-written.
        """
        return export.save(self.graph, path, ViewOptions(**options))

    def to_json(self) -> str:
        """The graph as a JSON document; its schema is `schema.json` in the package."""
        return schema.to_json(self.graph)

    def summary(self) -> str:
        """The graph as text: a tree of the module calls, and why it stopped if it did."""
        return text.summary(self.graph)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        state = "" if self.error is None else f", stopped by {type(self.error).__name__}"
        return f"<torchatlas.Trace of {self.record.title}: {len(self.record.ops)} operations{state}>"


def _watch(measured: Measured | None, bar: Progress | None) -> Callable[[Op, list[torch.Tensor]], None] | None:
    """What is called after each operation; None where nobody looks."""
    if bar is None:
        return None if measured is None else measured.note

    def watch(op: Op, tensors: list[torch.Tensor]) -> None:
        bar.step()
        if measured is not None:
            measured.note(op, tensors)

    return watch


def _crash() -> Any:
    """The package that explains failures. It takes longer to import than the rest of torchatlas."""
    from torchatlas import crash  # only a failure needs it

    return crash


def _attach(error: BaseException, partial: Trace) -> None:
    try:
        error.torchatlas_trace = partial  # type: ignore[attr-defined]
    except AttributeError:  # an exception class with slots has no room for it
        return
    if hasattr(error, "add_note"):  # from Python 3.11 on
        for text_found in _notes(partial):
            if text_found not in getattr(error, "__notes__", ()):
                error.add_note(text_found)


def _notes(partial: Trace) -> list[str]:
    """What the traceback says of each failure that has an explanation."""
    try:
        found = partial.explanations
    except Exception as problem:  # noqa: BLE001 # our own mistake must not replace the user's error
        partial.explanations = (_crash().Explanation(type(partial.error).__name__, str(partial.error)),) * len(
            partial._bare.errors
        )
        return [f"torchatlas could not explain this error: {problem!r}"]
    notes = [str(explanation) for explanation in found[:1] if explanation.sentence]
    notes += [f"further on, {row.type}: {row}" for row in found[1:]]
    for failed in partial.record.failures:  # their tracebacks keep the tensors of the runs alive
        if failed.error is not partial.error:
            failed.error.__traceback__ = None
    return notes


def _look_past(first: Trace, run: Callable[[Tracer, Any, Any], Any], *, progress: bool) -> Trace:
    """The trace of a run that went on past every failure that can be passed over; the first one if there is none."""
    if first.record.unrepeatable and run is Tracer.run:
        return first
    given = first._inputs
    measured_by_record: dict[int, tuple[Record, Measured | None]] = {}

    def again(past: crash.Past) -> Record:
        measured = None if first._measured is None else Measured()
        bar = Progress("operations, past the failures") if progress else None
        tracer = Tracer(given.target, beyond=past, on_result=_watch(measured, bar))
        measured_by_record[id(tracer.record)] = tracer.record, measured
        with bar or contextlib.nullcontext(), contextlib.suppress(Exception):  # it is kept as the record's error
            run(tracer, given.args, given.kwargs)
        return tracer.record

    found = _crash().look_past(first.record, again, is_internal_code)
    if found is None:
        return first
    return Trace(Inputs(found, given.target, given.args, given.kwargs), measured_by_record[id(found)][1])


def _run_fake(tracer: Tracer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode  # slow to import, and seldom needed

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        template = take_apart((args, kwargs), mode.from_tensor)
        fake_args, fake_kwargs = put_together(template, lambda tensor: tensor)
        tracer.record.unrepeatable = "it ran under fake tensors, which have no values"
        tracer.run(fake_args, fake_kwargs)
