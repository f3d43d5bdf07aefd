"""The graph of one forward pass as plain data: frozen dataclasses, no torch objects.

A `Graph` is what the picture, the exports and the query language read. Ids are positions in `Graph.nodes` and
`Graph.calls`; names are what people see and type (unique across nodes and calls together).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

NODE_KINDS = ("input", "parameter", "buffer", "constant", "op", "opaque", "output")
STATUSES = ("ok", "failed")
_NO_METRICS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """What is known of a tensor without its values.

    Attributes:
        shape: sizes of the axes; None where a tensor has none that can be told (nested tensors).
        dtype: name of the dtype without `torch.`, for example `float32`.
        device: device string, for example `cpu` or `cuda:0`.
        requires_grad: whether autograd follows the tensor.
        size_bytes: number of elements times bytes of one element.
    """

    shape: tuple[int, ...] | None
    dtype: str
    device: str
    requires_grad: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Source:
    """A place in the user's code.

    Attributes:
        file: path as Python knows it.
        line: line number, from 1.
        function: name of the function the line is in.
        code: the line and its neighbours, as text lines; empty where the file can't be read.
        first_line: line number of `code[0]`.
    """

    file: str
    line: int
    function: str
    code: tuple[str, ...] = ()
    first_line: int = 1


@dataclass(frozen=True, slots=True)
class Node:
    """An input, parameter, buffer, constant, operation or output.

    Attributes:
        id: position in `Graph.nodes`; operations come in order of execution.
        name: unique name.
        kind: one of `NODE_KINDS`.
        op: plain name of the operation (`linear`, `add`, `setitem`), None for the other kinds.
        call: id of the enclosing module call; None for what lies outside the outermost call.
        status: one of `STATUSES`.
        outputs: one spec per tensor that the node gives; for an output node the tensor itself.
        arguments: the arguments that are no tensors, as (name, text).
        source: index in `Graph.sources`, or None.
        note: what a reader must know about this node, for example that a constant came from outside torch.
        metrics: numbers by name (`parameters`, `flops`, `size_bytes`, `time_ms`).
    """

    id: int
    name: str
    kind: str
    op: str | None
    call: int | None
    status: str = "ok"
    outputs: tuple[TensorSpec, ...] = ()
    arguments: tuple[tuple[str, str], ...] = ()
    source: int | None = None
    note: str | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: _NO_METRICS)


@dataclass(frozen=True, slots=True)
class Edge:
    """A tensor on its way from the node that made it to a node that reads it.

    Attributes:
        tail: id of the node that gives the tensor.
        head: id of the node that reads it.
        tail_slot: which result of the tail it is; with `tail` the identity of the tensor.
        slot: the argument of the head that it fills, for example `input`, `1`, `tensors[0]`.
        spec: the tensor.
    """

    tail: int
    head: int
    tail_slot: int
    slot: str
    spec: TensorSpec

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Sizes of the tensor's axes."""
        return self.spec.shape

    @property
    def dtype(self) -> str:
        """Name of the tensor's dtype."""
        return self.spec.dtype


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One call of a module, or of the traced function itself (the outermost call).

    Attributes:
        id: position in `Graph.calls`; calls come in order of execution, a caller before what it calls.
        name: unique name: the fully qualified name, `:2` appended for the second call and so on.
        fqn: fully qualified name of the module; "" for the root; None where the model does not register it.
        type: name of the module's class (of the function, where a function was traced).
        parent: id of the calling module call; None for the outermost.
        status: one of `STATUSES`.
        inputs: tensors that the call was given.
        outputs: tensors that it returned; empty where it did not return.
        detail: the module's own `extra_repr()`, for example `in_features=4, out_features=8, bias=True`.
        source: index in `Graph.sources` of the line that called it, or None.
        metrics: numbers by name; `parameters` counts the elements of unique parameters below the module.
    """

    id: int
    name: str
    fqn: str | None
    type: str
    parent: int | None
    status: str = "ok"
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    detail: str = ""
    source: int | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: _NO_METRICS)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the forward stopped.

    Attributes:
        type: class name of the exception.
        message: its text.
        node: id of the operation that failed; None where plain Python code raised.
        calls: ids of the module calls that were open, outermost first.
        source: index in `Graph.sources` of the user's line, or None.
        explanation: what clashed and where it came from, in a sentence; "" where the kind isn't known.
        suggestions: changes that were tried and get the forward past this operation, each a sentence.
    """

    type: str
    message: str
    node: int | None
    calls: tuple[int, ...]
    source: int | None = None
    explanation: str = ""
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what ran is shown.

    Attributes:
        operations: operations that ran, as far as they passed torch's Python API or its dispatcher.
        nodes: how many of them are nodes.
        opaque: how many of the nodes can't be opened (scripted code, autograd Functions).
        outside: tensors whose making could not be followed (numpy round trips, worker threads).
    """

    operations: int = 0
    nodes: int = 0
    opaque: int = 0
    outside: int = 0


@dataclass(frozen=True, slots=True)
class Proof:
    """What replaying the record has shown.

    Attributes:
        status: `passed`, `failed`, `not_applicable` or `not_run`.
        reason: why it does not apply, or what differs first.
    """

    status: str = "not_run"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """One forward pass.

    Attributes:
        title: name of the model's class, or of the traced function.
        nodes: all nodes; `nodes[i].id == i`.
        edges: tensors between nodes, ordered by head and then by argument.
        calls: all module calls; `calls[i].id == i`; `calls[0]` is the outermost.
        inputs: ids of the input nodes, in the order of the arguments.
        outputs: ids of the output nodes.
        sources: places in the user's code, referred to by index.
        error: why the forward stopped, None if it ran through.
        errors: all failures; more than `error` alone where the trace looked past it.
        coverage: how much of what ran is shown.
        proof: what replay has shown.
        report: the failures as a Markdown report, to be copied; "" where there are none.
    """

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    calls: tuple[ModuleCall, ...]
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    sources: tuple[Source, ...] = ()
    error: Failure | None = None
    errors: tuple[Failure, ...] = ()
    coverage: Coverage = Coverage()
    proof: Proof = Proof()
    report: str = ""

    def adjacency(self) -> dict[str, list[str]]:
        """Node name to the names of the nodes that read its results, in order of execution, each once."""
        names = [node.name for node in self.nodes]
        readers: dict[str, dict[str, None]] = {name: {} for name in names}
        for edge in self.edges:
            readers[names[edge.tail]][names[edge.head]] = None
        return {name: list(found) for name, found in readers.items()}

    def hierarchy(self) -> dict[str, str | None]:
        """Name of each node and call to the name of its enclosing call; None for the outermost."""
        enclosing = {call.name: None if call.parent is None else self.calls[call.parent].name for call in self.calls}
        enclosing.update({n.name: None if n.call is None else self.calls[n.call].name for n in self.nodes})
        return enclosing

    def check(self) -> None:
        """Raise ValueError unless ids, names, order and references are consistent."""
        _check_rows(self.nodes, self.calls)
        node_ids, call_ids, source_ids = range(len(self.nodes)), range(len(self.calls)), range(len(self.sources))
        for node in self.nodes:
            _require(node.kind in NODE_KINDS, f"node {node.name}: unknown kind {node.kind!r}")
            _require(node.call is None or node.call in call_ids, f"node {node.name}: unknown call {node.call}")
            _require((node.op is not None) == (node.kind in ("op", "opaque")), f"node {node.name}: op is {node.op!r}")
        for call in self.calls:
            is_root = call.id == 0
            _require((call.parent is None) == is_root, f"call {call.name}: parent is {call.parent}")
            _require(is_root or call.parent in range(call.id), f"call {call.name}: its caller must come before it")
        rows: tuple[Node | ModuleCall, ...] = (*self.nodes, *self.calls)
        for row in rows:
            _require(row.status in STATUSES, f"{row.name}: unknown status {row.status!r}")
            _require(row.source is None or row.source in source_ids, f"{row.name}: unknown source {row.source}")
        for edge in self.edges:
            _require(edge.tail in node_ids and edge.head in node_ids, f"unknown end of {edge}")
            results = max(1, len(self.nodes[edge.tail].outputs))
            _require(edge.tail_slot in range(results), f"unknown tail_slot of {edge}")
        for label, ids, kind in (("inputs", self.inputs, "input"), ("outputs", self.outputs, "output")):
            found = tuple(node.id for node in self.nodes if node.kind == kind)
            _require(sorted(ids) == sorted(found), f"{label} are {ids}, expected {found}")
        for failure in (*self.errors, *(() if self.error is None else (self.error,))):
            _require(failure.node is None or failure.node in node_ids, "error: unknown node")
            _require(set(failure.calls) <= set(call_ids), "error: unknown call")
        _require(not self.errors or self.errors[0] == self.error, "error is not the first of errors")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(f"inconsistent graph: {message}")


def _check_rows(nodes: tuple[Node, ...], calls: tuple[ModuleCall, ...]) -> None:
    kinds: tuple[tuple[Node | ModuleCall, ...], ...] = (nodes, calls)
    for rows in kinds:
        for position, row in enumerate(rows):
            _require(row.id == position, f"{row.name}: id {row.id} at position {position}")
    names = [row.name for rows in kinds for row in rows]
    _require(len(set(names)) == len(names), "names of nodes and calls are not unique")
