"""From the record of a forward to the graph that is drawn: names, nodes, edges, sources."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator
from types import CodeType, MappingProxyType
from typing import Any

from torchatlas import graph as g
from torchatlas.failures import failures_of
from torchatlas.flops import count_flops
from torchatlas.functions import argument_names
from torchatlas.members import named_modules
from torchatlas.memory import covers, overlaps
from torchatlas.names import Names
from torchatlas.places import line_of, raised_at
from torchatlas.record import Call, Failed, Memory, Nested, Op, Place, Record, Value
from torchatlas.structure import Template

_TEXT_LIMIT = 80
_SOURCE_MARGIN = 3
_SCRIPT_PLACE = re.compile(r'File "([^"]+)", line (\d+), in (\w+)')
OUTSIDE = "came from outside torch"
_NUMBER_READS = frozenset(("item", "tolist", "numpy", "array", "float", "int", "complex", "index"))
_FROM_DATA = frozenset(("tensor", "as_tensor", "asarray", "new_tensor"))


_NOTES = {"alias": "a view that torch made by itself", "dispatch": "seen below torch's Python API"}
_NO_MEMORY: Memory = {}


def build_graph(record: Record, *, is_internal: Callable[[CodeType], bool]) -> g.Graph:
    """Make the graph of a record.

    Args:
        record: what the tracer recorded.
        is_internal: whether code is torch's or ours, so that no place in it is shown as the user's.
    """
    return _Builder(record, is_internal).build()


class _Builder:
    def __init__(self, record: Record, is_internal: Callable[[CodeType], bool]) -> None:
        self.record = record
        self.is_internal = is_internal
        self.names = Names(record)
        self.nodes: list[g.Node] = []
        self.edges: list[g.Edge] = []
        self.node_of_leaf: dict[int, int] = {}
        self.node_of_op: dict[int, int] = {}
        self.results: dict[int, list[Value]] = {}
        self.specs: dict[Any, g.TensorSpec] = {}
        self.sources: dict[tuple[str, int], int] = {}
        self.source_rows: list[g.Source] = []
        self.counts: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        reads = (query.index for query in record.queries if query.name in _NUMBER_READS)
        self.first_number_read = min(reads, default=None)
        self.flops = count_flops(record)
        self.call_flops = self._summed_flops()
        self.failures = failures_of(record)
        self.failed_calls = {call.index for failed in self.failures for call in _enclosing(failed.call)}

    def build(self) -> g.Graph:
        record = self.record
        inputs = [self._add_leaf(value, path) for path, value in record.inputs]
        homes = self._homes()
        for op in record.ops:
            for value in op.reads:
                if value.kind != "op" and id(value) not in self.node_of_leaf:
                    self._add_leaf(value, value.name, homes.get(id(value)))
            self._add_op(op)
        outputs = self._add_outputs()
        calls = tuple(self._call(call) for call in record.calls)
        errors = tuple(self._failure(failed) for failed in self.failures)
        ops = [node for node in self.nodes if node.kind in ("op", "opaque")]
        hidden = sum(op.level in ("alias", "module") for op in record.ops)
        coverage = g.Coverage(
            operations=len(record.ops) - hidden,
            nodes=len(ops) - hidden,
            opaque=sum(node.kind == "opaque" for node in ops),
            outside=sum(node.note == OUTSIDE for node in self.nodes),
        )
        return g.Graph(
            title=record.title,
            nodes=tuple(self.nodes),
            edges=tuple(self.edges),
            calls=calls,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            sources=tuple(self.source_rows),
            error=errors[0] if errors else None,
            errors=errors,
            coverage=coverage,
        )

    def _summed_flops(self) -> dict[int, int]:
        """Floating point operations of everything inside each call, by call index."""
        summed: dict[int, int] = {}
        for index, flops in self.flops.items():
            call: Call | None = self.record.ops[index].call
            while call is not None:
                summed[call.index] = summed.get(call.index, 0) + flops
                call = call.parent
        return summed

    # Nodes

    def _homes(self) -> dict[int, Call]:
        """For each leaf the innermost call that encloses all operations that read it."""
        homes: dict[int, Call] = {}
        for op in self.record.ops:
            for value in op.reads:
                if value.kind in ("parameter", "buffer", "constant"):
                    known = homes.get(id(value))
                    homes[id(value)] = op.call if known is None else _common_call(known, op.call)
        return homes

    def _add_leaf(self, value: Value, path: str | None, home: Call | None = None) -> int:
        spec = self._spec(value, 0)
        count = spec.size_bytes // max(1, getattr(value.dtype, "itemsize", 1))
        note = value.note
        if value.kind == "constant" and note is None and path is not None:
            note = f"attribute {path}"
        node = g.Node(
            id=len(self.nodes),
            name=self.names.leaf(value.kind, path),
            kind=value.kind,
            op=None,
            call=home.index if home is not None and home.index >= 0 else None,
            outputs=(spec,),
            note=note,
            metrics=_metrics(size_bytes=spec.size_bytes, parameters=count if value.kind == "parameter" else None),
        )
        self.nodes.append(node)
        self.node_of_leaf[id(value)] = node.id
        return node.id

    def _add_op(self, op: Op) -> None:
        results = self.results[op.index] = _results(op)
        outputs = tuple(self._spec(value, op.index + 1) for value in results)
        slots, arguments = _arguments(op)
        note = _NOTES.get(op.level)
        if op.is_passed_on and op.level != "module":
            note = "hands its argument on unchanged"
        if self._is_from_host(op):
            note = OUTSIDE
        note = op.note or note
        node = g.Node(
            id=len(self.nodes),
            name=self.names.op(op),
            kind="opaque" if op.level == "opaque" else "op",
            op=op.name,
            call=op.call.index if op.call.index >= 0 else None,
            status="failed" if op.status == "failed" else "ok",
            outputs=outputs,
            arguments=arguments,
            source=self._source(op.place),
            note=note,
            metrics=_metrics(size_bytes=sum(spec.size_bytes for spec in outputs), flops=self.flops.get(op.index)),
        )
        self.nodes.append(node)
        self.node_of_op[op.index] = node.id
        memory = op.memory or _NO_MEMORY
        for position, value in enumerate(op.reads):
            self._add_edges(node.id, value, slots[position], memory.get(position), op.index)

    def _is_from_host(self, op: Op) -> bool:
        """Whether a tensor is made from numbers that Python may have read from other tensors before."""
        if op.name not in _FROM_DATA:
            return False
        data = next((arg for arg in (*op.args, *op.kwargs.values()) if not isinstance(arg, Value)), None)
        if hasattr(data, "__array_interface__"):
            return True
        return _holds_numbers(data) and self.first_number_read is not None and op.index >= self.first_number_read

    def _add_outputs(self) -> list[int]:
        found: list[int] = []
        if self.record.output is None:
            return found
        end = len(self.record.ops)
        for position, (path, value) in enumerate(self.record.output.paths("output")):
            if value.kind != "op" and id(value) not in self.node_of_leaf:
                self._add_leaf(value, value.name)
            spec = self._spec(value, end)
            node = g.Node(
                id=len(self.nodes), name=self.names.output(path), kind="output", op=None, call=None, outputs=(spec,),
                metrics=_metrics(size_bytes=spec.size_bytes),
            )  # fmt: skip
            self.nodes.append(node)
            found.append(node.id)
            self._add_edges(node.id, value, "0", (self.record.output_memory or {}).get(position), end)
        return found

    def _add_edges(self, head: int, value: Value, slot: str, memory: Any, time: int) -> None:
        spec = self._spec(value, time)
        for tail, tail_slot in (self._maker(value),) if memory is None else self._producers(value, memory):
            self.edges.append(g.Edge(tail, head, tail_slot, slot, spec))

    def _producers(self, value: Value, memory: Any) -> list[tuple[int, int]]:
        """Where the data of what is read from written memory comes from: the writes into it, and what made it."""
        found: list[tuple[int, int]] = []
        key, count, geometry = memory
        writes = self.record.writes[key]
        for position in range(count - 1, -1, -1):
            write = writes[position]
            if write.op.index <= value.made:
                break
            is_known = geometry is not None and write.geometry is not None
            if is_known and not overlaps(write.geometry, geometry):
                continue
            end = self.node_of_op[write.op.index], self.results[write.op.index].index(write.value)
            if end not in found:
                found.append(end)
            if write.value is value or (is_known and covers(write.geometry, geometry)):
                return found[::-1]
        return [self._maker(value), *found[::-1]]

    def _maker(self, value: Value) -> tuple[int, int]:
        if value.op is None:
            return self.node_of_leaf[id(value)], 0
        return self.node_of_op[value.op.index], self.results[value.op.index].index(value)

    def _spec(self, value: Value, time: int) -> g.TensorSpec:
        shape = value.shape if value.reshaped is None else value.shape_at(time)
        key = (shape, value.dtype, value.device, value.requires_grad)
        spec = self.specs.get(key)
        if spec is None:
            count = 1
            for size in shape or ():
                count *= int(size)
            spec = self.specs[key] = g.TensorSpec(
                shape=None if shape is None else tuple(int(size) for size in shape),
                dtype=str(value.dtype).removeprefix("torch."),
                device=str(value.device),
                requires_grad=bool(value.requires_grad),
                size_bytes=0 if shape is None else count * getattr(value.dtype, "itemsize", 1),
            )
        return spec

    # Calls

    def _call(self, call: Call) -> g.ModuleCall:
        outputs = tuple(self._spec(value, call.end) for value in values_in(call.out))
        return g.ModuleCall(
            id=call.index,
            name=self.names.call(call),
            fqn=call.fqn,
            type=call.type,
            parent=None if call.parent is None else call.parent.index,
            status="failed" if call.index in self.failed_calls else call.status,
            inputs=tuple(self._spec(value, call.start) for value in call.reads),
            outputs=outputs,
            detail=_detail(call.module),
            source=self._source(call.place),
            metrics=_metrics(
                parameters=self._parameters(call.module),
                flops=self.call_flops.get(call.index),
                size_bytes=sum(spec.size_bytes for spec in outputs),
            ),
        )

    def _parameters(self, module: Any) -> int | None:
        """Elements of the unique parameters below a module; None for a function."""
        if module is None:
            return None
        known = self.counts.get(id(module))
        if known is None:
            sizes = self.sizes
            parts = [part for _, part in named_modules(module, "")] if module._modules else [module]
            unique = {id(parameter): parameter for part in parts for parameter in part._parameters.values()}
            for key, parameter in unique.items():
                if key not in sizes:
                    sizes[key] = _elements(parameter)
            known = self.counts[id(module)] = sum(map(sizes.__getitem__, unique))
        return known

    # Places in the code

    def _source(self, place: Place | None) -> int | None:
        if place is None:
            return None
        code, instruction = place
        return self._source_row(code, line_of(code, instruction))

    def _source_row(self, code: CodeType, line: int) -> int:
        return self._source_line(code.co_filename, line, getattr(code, "co_qualname", code.co_name))

    def _source_line(self, file: str, line: int, name: str) -> int:
        known = self.sources.get((file, line))
        if known is None:
            lines = linecache.getlines(file)
            first = max(1, line - _SOURCE_MARGIN)
            text = tuple(row.rstrip("\n") for row in lines[first - 1 : line + _SOURCE_MARGIN])
            known = self.sources[file, line] = len(self.source_rows)
            self.source_rows.append(g.Source(file, line, name, text, first))
        return known

    # Failure

    def _failure(self, failed: Failed) -> g.Failure:
        error, op = failed.error, failed.op
        chain = tuple(call.index for call in _enclosing(failed.call))[::-1]
        node = None if op is None else self.node_of_op[op.index]
        return g.Failure(type(error).__name__, str(error), node, chain, self._failure_source(failed))

    def _failure_source(self, failed: Failed) -> int | None:
        """The user's innermost line: where code of theirs runs inside the operation, the line in there."""
        error, op = failed.error, failed.op
        scripted = _SCRIPT_PLACE.findall(str(error)) if "TorchScript" in str(error) else []
        if scripted:
            file, line, function = scripted[-1]
            return self._source_line(file, int(line), function)
        raised = op.error if op is not None and op.error is not None else error
        place = raised_at(raised.__traceback__, self.is_internal)
        if place is not None:
            return self._source_row(*place)
        caller = op if op is not None else failed.call
        return None if caller is None else self._source(caller.place)


def values_in(out: Any) -> Iterator[Value]:
    """Values in a packed result, in order."""
    if isinstance(out, Value):
        yield out
    elif isinstance(out, Template):
        yield from out.stand_ins()
    elif isinstance(out, Nested):
        yield from out.template.stand_ins()
    elif isinstance(out, (list, tuple)):
        for part in out:
            yield from values_in(part)
    elif isinstance(out, dict):
        for part in out.values():
            yield from values_in(part)


_NUMBERS = frozenset((int, float, bool, type(None)))


def _holds_numbers(data: Any) -> bool:
    todo = [data]
    while todo:
        part = todo.pop()
        if isinstance(part, (int, float, complex)):
            return True
        if isinstance(part, (list, tuple)):
            todo.extend(part)
    return False


def _results(op: Op) -> list[Value]:
    """What an operation gives: its results, then what it wrote into; each once."""
    if type(op.out) is Value and not op.writes:
        return [op.out]
    return list({id(value): value for value in (*values_in(op.out), *op.writes)}.values())


def _arguments(op: Op) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """Names of the slots that the reads fill, in their order, and the arguments that are no tensors as text."""
    names = argument_names(op.func, len(op.args))
    slots: list[str] = []
    texts: list[tuple[str, str]] = []
    for name, arg in (*zip(names, op.args, strict=True), *op.kwargs.items()):
        cls = type(arg)
        if cls is Value:
            slots.append(name)
            continue
        if cls in _NUMBERS:
            if arg is not None:
                texts.append((name, repr(arg)))
            continue
        before = len(slots)
        slots.extend(_slots(name, arg))
        if (len(slots) == before or isinstance(arg, (tuple, list, slice))) and arg is not None:
            if not (isinstance(arg, (tuple, list)) and all(isinstance(part, Value) for part in arg)):
                texts.append((name, _text(arg)))
    return slots, tuple(texts)


def _slots(path: str, arg: Any) -> Iterator[str]:
    """Paths of the values in a packed argument, in the order in which the tracer packs them."""
    if isinstance(arg, Value):
        yield path
    elif isinstance(arg, (list, tuple)):
        for index, part in enumerate(arg):
            yield from _slots(f"{path}[{index}]", part)
    elif isinstance(arg, dict):
        for key, part in arg.items():
            yield from _slots(f"{path}.{key}", part)
    elif isinstance(arg, slice):
        for name in ("start", "stop", "step"):
            yield from _slots(f"{path}.{name}", getattr(arg, name))
    elif isinstance(arg, Nested):
        yield from (found for found, _ in arg.template.paths(path))


def _text(arg: Any) -> str:
    """An argument as a reader would write it, cut to a line; tensors are dots."""
    if isinstance(arg, (Value, Nested)):
        return "…"
    if isinstance(arg, slice):
        ends = ["" if end is None else _text(end) for end in (arg.start, arg.stop)]
        return ":".join(ends) + ("" if arg.step is None else f":{_text(arg.step)}")
    if isinstance(arg, (tuple, list)):
        inner = ", ".join(_text(part) for part in arg[:12]) + (", …" if len(arg) > 12 else "")
        text = f"({inner})" if isinstance(arg, tuple) else f"[{inner}]"
    elif arg is Ellipsis:
        text = "..."
    elif isinstance(arg, (int, float, bool, str, complex, bytes, type(None))) or type(arg).__module__ == "torch":
        text = repr(arg).removeprefix("torch.")
    else:
        text = type(arg).__name__
    return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + "…"


def _elements(parameter: Any) -> int:
    """Elements of a parameter; none where there is no parameter, or one that a lazy module has not made yet."""
    return 0 if parameter is None or hasattr(parameter, "materialize") else int(parameter.numel())


def _detail(module: Any) -> str:
    """The module's own `extra_repr()`."""
    if module is None:
        return ""
    try:
        return str(module.extra_repr())
    except Exception as error:  # noqa: BLE001 # the user's code; a picture must not fail because of it
        return f"extra_repr() raised {type(error).__name__}"


def _metrics(**numbers: float | None) -> MappingProxyType[str, float]:
    if None not in numbers.values():
        return MappingProxyType(numbers)  # type: ignore[arg-type] # no None among the values
    return MappingProxyType({name: number for name, number in numbers.items() if number is not None})


def _common_call(one: Call, other: Call) -> Call:
    """The innermost call that encloses both."""
    above = set()
    call: Call | None = one
    while call is not None:
        above.add(call.index)
        call = call.parent
    call = other
    while call is not None and call.index not in above:
        call = call.parent
    return one if call is None else call


def _enclosing(call: Call | None) -> Iterator[Call]:
    """A module call and those that enclose it, innermost first."""
    while call is not None and call.index >= 0:
        yield call
        call = call.parent
