"""The trace of one forward: its graph, and what can be done with its record (replay, verify, read out values)."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from torchatlas import export, extraction, query, schema, text
from torchatlas.arguments import call_arguments, named_arguments
from torchatlas.bits import all_same, as_bytes
from torchatlas.builder import build_graph, values_in
from torchatlas.cut import Cut
from torchatlas.cutting import Point, in_order
from torchatlas.functions import Writes, describe
from torchatlas.graph import Graph, Proof
from torchatlas.measured import Measured
from torchatlas.options import ViewOptions
from torchatlas.places import is_internal_code
from torchatlas.progress import Progress
from torchatlas.record import Call, Op, Record, Value
from torchatlas.replace import replacement
from torchatlas.replay import Replacement, Replay
from torchatlas.settings import under
from torchatlas.slicing import Moment, needed_ops
from torchatlas.state import Preserved, set_random_states
from torchatlas.structure import put_together, take_apart, walk
from torchatlas.tracer import Tracer

if TYPE_CHECKING:
    from torchatlas import crash

OnError = Literal["raise", "keep"]


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
    made = Trace(tracer.record, model, args, named, measured)
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

    def __init__(
        self,
        record: Record,
        target: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        measured: Measured | None = None,
    ) -> None:
        self.record = record
        self._target = target
        self._args = args
        self._kwargs = kwargs
        self._measured = measured
        self._proof = Proof()

    @cached_property
    def _bare(self) -> Graph:
        """The graph without explanations, which are made from it."""
        graph = build_graph(self.record, is_internal=is_internal_code)
        return graph if self._measured is None else self._measured.add_to(graph, self.record, self._leaf_values())

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
        run = Replay(self.record, self._fed(args, kwargs), want, asks=is_fresh)
        run.run(replace=self._replacements(replace or {}))
        return put_together(template, run.get)

    def verify(self) -> Verification:
        """Prove the record: replay it and compare with a plain run of the model, bit by bit.

        Returns:
            Passed, failed (with the first operation that differs), or not applicable (with the reason).
        """
        found = self._verify()
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
        found = {name: self._moment(name) for name in wanted}
        stops: dict[int, list[tuple[Any, Value]]] = {}
        for name, (count, values) in found.items():
            stops.setdefault(count, []).extend(((name, position), value) for position, value in enumerate(values))
        needed = needed_ops(self.record, [Moment(value, count) for count, rows in stops.items() for _, value in rows])
        bar = Progress("operations", len(needed)) if progress else None
        run = Replay(self.record, self._fed((), {}), [], _watch(None, bar), needed)
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
        model = self._target if isinstance(self._target, torch.nn.Module) else getattr(self._target, "__self__", None)
        keys = frozenset(model.state_dict()) if isinstance(model, torch.nn.Module) else frozenset()
        keeps = node_out is None if keep_output is None else keep_output
        request = extraction.request(
            self._points, node_in, node_out, keep_output=keeps, share_modules=share_modules, model=model,
            replace=replace,
        )  # fmt: skip
        names = {op.index: name for name, op in self._ops_by_name.items()}
        return extraction.extract(self.record, request, self._fed((), {}), names, keys)

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
        selected = {point.name.removesuffix(".in") for name in wanted for point in self._points(name)}
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

    # Names

    def _moment(self, name: str) -> tuple[int, list[Value]]:
        """When a named thing has its value (number of operations run by then), and the values."""
        rows = self._named
        if name in rows:
            return rows[name]
        if name.endswith(".in") and name[:-3] in self._calls_by_name:
            call = self._calls_by_name[name[:-3]]
            return call.start, call.reads
        if name in self.hierarchy:
            raise RuntimeError(f"{name!r} did not return in this forward, so it has no value")
        raise unknown_name(name, self.hierarchy)

    def _replacements(self, replace: Mapping[str, Any]) -> dict[int, list[Replacement]]:
        found: dict[int, list[Replacement]] = {}
        rows = [(point, new) for name, new in replace.items() for point in self._points(name)]
        for point, new in in_order(rows, lambda row: row[0]):
            found.setdefault(point.count, []).append(replacement(point, new))
        return found

    def _points(self, name: str) -> list[Point]:
        """The places that a name, a glob or a query stands for."""
        is_name = name in self._named or name in self.hierarchy or not query.is_pattern(name)
        names = [name] if is_name else self.find(name)
        if not names:
            raise ValueError(f"the query {name!r} finds nothing (all names: trace.hierarchy)")
        return [self._point(each) for each in names]

    def _point(self, name: str) -> Point:
        if name == "output" and name not in self._named:
            if self.record.output is None:
                raise RuntimeError(f"the forward did not run through, so it has no output: {self.error!r}")
            return Point(name, len(self.record.ops), self.record.output)
        count, values = self._moment(name)
        call, op = self._calls_by_name.get(name), self._ops_by_name.get(name)
        if call is not None:
            return Point(name, count, call.out)
        if op is not None and next(values_in(op.out), None) is not None:
            return Point(name, count, op.out)
        given = self._calls_by_name.get(name.removesuffix(".in")) if name not in self._named else None
        shape = values[0] if len(values) == 1 else tuple(values)
        return Point(name, count, shape, None if given is None else given.end)

    @cached_property
    def _ops_by_name(self) -> dict[str, Op]:
        nodes = [node for node in self._built.nodes if node.kind in ("op", "opaque")]
        return {node.name: op for node, op in zip(nodes, self.record.ops, strict=True)}

    @cached_property
    def _calls_by_name(self) -> dict[str, Call]:
        return {row.name: self.record.calls[row.id] for row in self._built.calls}

    @cached_property
    def _named(self) -> dict[str, tuple[int, list[Value]]]:
        record, graph = self.record, self._built
        rows: dict[str, tuple[int, list[Value]]] = {}
        for name, call in self._calls_by_name.items():
            if call.status == "ok":
                rows[name] = (call.end, list(values_in(call.out)))
        leaves = self._leaf_values()
        ops = iter(record.ops)
        outputs = iter([] if record.output is None else record.output.stand_ins())
        for node in graph.nodes:
            if node.kind in ("op", "opaque"):
                op = next(ops)
                if op.status == "ok":
                    rows[node.name] = (op.index + 1, results_of(op))
            elif node.kind == "output":
                rows[node.name] = (len(record.ops), [next(outputs)])
            else:
                rows[node.name] = (0, [next(leaves)])
        return rows

    def _leaf_values(self) -> Any:
        """The leaves in the order in which the graph lists them."""
        seen: dict[int, Value] = {id(value): value for _, value in self.record.inputs}
        for op in self.record.ops:
            seen.update({id(v): v for v in op.reads if v.kind != "op" and id(v) not in seen})
        for value in self.record.output.stand_ins() if self.record.output is not None else ():
            if value.kind != "op":
                seen.setdefault(id(value), value)
        return iter(seen.values())

    # Feeding

    def _fed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, torch.Tensor]:
        """The tensor for each input value, by the value's id; the recorded ones if no arguments are given."""
        recorded = self.record.arguments
        assert recorded is not None, "the record has no arguments"
        if not args and not kwargs:
            kept = {id(value): value.tensor for _, value in self.record.inputs if value.tensor is not None}
            if kept:
                return kept
            args, kwargs = self._args, self._kwargs
        given = take_apart((args, kwargs), _itself)
        wanted = recorded.paths("")
        found = given.paths("")
        if [path for path, _ in wanted] != [path for path, _ in found]:
            raise ValueError(self._structure_message([p for p, _ in wanted], [p for p, _ in found]))
        fixed = dict(recorded.plain_parts(""))
        for path, value in given.plain_parts(""):
            if path in fixed and fixed[path] != value:
                raise ValueError(
                    f"argument {self._spoken(path)} is fixed by the record at {fixed[path]!r}, got {value!r}"
                )
        fed: dict[int, torch.Tensor] = {}
        for (path, value), (_, tensor) in zip(wanted, found, strict=True):
            if value.kind != "input":
                continue
            if tensor.dtype != value.dtype or (value.shape is not None and tensor.shape != value.shape):
                expected = f"{tuple(value.shape)} {value.dtype}"
                raise ValueError(
                    f"argument {self._spoken(path)} must be {expected}, got {tuple(tensor.shape)} {tensor.dtype}"
                )
            if fed.setdefault(id(value), tensor) is not tensor:
                raise ValueError(f"argument {self._spoken(path)} must be the same tensor as {value.name}, as recorded")
        return fed

    def _spoken(self, path: str) -> str:
        """A path inside `(args, kwargs)` as the user knows it."""
        names = [name for name, _ in named_arguments(self._target, self._args, {})]
        for index, name in enumerate(names):
            prefix = f"[0][{index}]"
            if path.startswith(prefix):
                return name + path[len(prefix) :]
        return path.removeprefix("[1].")

    def _structure_message(self, wanted: list[str], found: list[str]) -> str:
        missing = [self._spoken(path) for path in wanted if path not in found]
        extra = [self._spoken(path) for path in found if path not in wanted]
        parts = [
            f"{what} {', '.join(paths[:4])}" for what, paths in (("missing", missing), ("unknown", extra)) if paths
        ]
        return f"the arguments must hold tensors at the same places as the recorded ones: {'; '.join(parts)}"

    # Verification

    def _verify(self) -> Verification:
        reason = self._why_not_applicable()
        if reason:
            return Verification("not_applicable", reason)
        try:
            replayed = [tensor for _, tensor in walk(self.replay())]
        except Exception as error:  # noqa: BLE001 # whatever a replay raises is a failed proof, and is reported
            return Verification("failed", f"replay raised {type(error).__name__}: {error}")
        if self.record.reference:
            reference = self.record.reference
        else:
            reference = self._plain_outputs()
            if not all_same(reference, replayed) and not all_same(reference, self._plain_outputs()):
                return Verification("not_applicable", "the forward itself gives other results each time it runs")
        if all_same(reference, replayed):
            return Verification("passed")
        node = self._first_difference()
        reason = f"results differ, first at {node}" if node else "the outputs differ"
        lender = next((query.name for query in self.record.queries if query.name in _LENDERS), None)
        if lender is not None:
            reason += f"; `{lender}` lent a tensor's memory to code outside torch, whose writes are not seen"
        return Verification("failed", reason, node)

    def _why_not_applicable(self) -> str:
        record = self.record
        if record.output is None or record.error is not None:
            return f"the forward did not run through: {type(record.error).__name__}"
        if record.unrepeatable and (not record.reference or any(map(_is_fake, record.reference))):
            return record.unrepeatable
        tensors = [t for _, t in walk((self._args, self._kwargs))] + list(record.owned.values())
        if any(t.is_meta or _is_fake(t) for t in tensors):
            return "there are no values: tensors on the meta device, or fake ones"
        return ""

    def _plain_outputs(self) -> list[torch.Tensor]:
        """What the model returns without us, from the recorded random state; everything it changes is put back."""
        record = self.record
        assert record.context is not None, "the record has no context"
        preserved = Preserved()
        inputs = [tensor for _, tensor in walk((self._args, self._kwargs))]
        for leaf in (*record.owned.values(), *inputs):
            preserved.add_leaf(leaf)
        preserved.add_modules(*Tracer(self._target).attributes)
        for value in self._leaf_values():
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
                out = self._target(*self._args, **self._kwargs)
            return [tensor.detach().clone() for _, tensor in walk(out)]
        finally:
            preserved.restore()

    def _first_difference(self) -> str | None:
        """Name of the first operation whose results differ between a second trace and a replay."""
        recorded: list[tuple[str, list[Any]]] = []
        tracer = Tracer(self._target, on_result=lambda op, tensors: recorded.append((op.name, _bits(tensors))))
        tracer.run(self._args, self._kwargs)
        replayed: list[tuple[int, str, list[Any]]] = []
        run = Replay(
            self.record, self._fed((), {}), [], lambda op, tensors: replayed.append((op.index, op.name, _bits(tensors)))
        )
        run.run()
        names = [node.name for node in self._built.nodes if node.kind in ("op", "opaque")]
        for (name, bits), (index, again, bits_again) in zip(recorded, replayed, strict=False):
            if name != again or bits != bits_again:
                return names[index]
        return None


# Calls that hand out a tensor's memory itself.
_LENDERS = frozenset(("numpy", "array", "dlpack"))


def _watch(measured: Measured | None, bar: Progress | None) -> Callable[[Op, list[torch.Tensor]], None] | None:
    """What is called after each operation; None where nobody looks."""
    if bar is None:
        return None if measured is None else measured.note

    def watch(op: Op, tensors: list[torch.Tensor]) -> None:
        bar.step()
        if measured is not None:
            measured.note(op, tensors)

    return watch


def results_of(op: Op) -> list[Value]:
    """What an operation gives: its results; for one that only writes, what it wrote into."""
    out = list({id(value): value for value in values_in(op.out)}.values())
    return out or list(op.writes)


def unknown_name(name: str, known: Iterable[str], where: str = "trace.hierarchy") -> ValueError:
    """The error for a name that does not exist, with the candidates: names that end with it, else the closest ones."""
    names = list(dict.fromkeys(known))
    close = [found for found in names if found.endswith(f".{name}")]
    close = close[:5] or difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return ValueError(f"no node or module call is named {name!r}{hint} (all names: {where})")


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
    measured_by_record: dict[int, tuple[Record, Measured | None]] = {}

    def again(past: crash.Past) -> Record:
        measured = None if first._measured is None else Measured()
        bar = Progress("operations, past the failures") if progress else None
        tracer = Tracer(first._target, beyond=past, on_result=_watch(measured, bar))
        measured_by_record[id(tracer.record)] = tracer.record, measured
        with bar or contextlib.nullcontext(), contextlib.suppress(Exception):  # it is kept as the record's error
            run(tracer, first._args, first._kwargs)
        return tracer.record

    found = _crash().look_past(first.record, again, is_internal_code)
    if found is None:
        return first
    return Trace(found, first._target, first._args, first._kwargs, measured_by_record[id(found)][1])


def _run_fake(tracer: Tracer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode  # slow to import, and seldom needed

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        template = take_apart((args, kwargs), mode.from_tensor)
        fake_args, fake_kwargs = put_together(template, _itself)
        tracer.record.unrepeatable = "it ran under fake tensors, which have no values"
        tracer.run(fake_args, fake_kwargs)


def _is_fake(tensor: torch.Tensor) -> bool:
    return hasattr(tensor, "fake_mode")


def _itself(tensor: Any) -> Any:
    return tensor


def _bits(tensors: list[torch.Tensor]) -> list[Any]:
    """A digest of each tensor that tells different bits apart."""
    return [(tuple(t.shape), t.dtype, hash(as_bytes(t).cpu().numpy().tobytes())) for t in tensors if not t.is_nested]
