"""The record of one forward pass: what ran, on which values, in which order. It can be replayed and drawn.

A `Value` stands for one tensor object, an `Op` for one call of a torch function, a `Call` for one call of a module.
Values hold no tensor, except leaves (parameters, buffers, constants) which the model holds anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple

from torchatlas.structure import Template, put_together


class Geometry(NamedTuple):
    """Where in its storage a strided tensor lies: offset and strides in elements of `itemsize` bytes."""

    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    itemsize: int


Place = tuple[CodeType, int]
"""A line of code, kept cheaply: code object and instruction offset; the line is worked out when it is asked for."""


Memory = dict[int, tuple[Any, int, Geometry | None]]
"""Position of a read to (storage key, number of writes into that storage by then, geometry of the read tensor)."""


class Value:
    """One tensor object seen in the forward.

    Attributes:
        kind: `op` for what an operation made; else a leaf: `input`, `parameter`, `buffer`, `constant`.
        op: the operation that made it, None for leaves.
        name: path of a leaf; for a constant what is known of where it comes from.
        made: number of operations recorded before it; orders it among the writes.
        shape, dtype, device, requires_grad: as they were when the tensor was first seen.
        reshaped: shapes that it was given in place later (`squeeze_`, `t_`), each with the number of operations that
            had run by then; None if there were none.
        is_written: for a leaf, whether the forward writes into its memory.
        tensor: the tensor itself, of a parameter, buffer or constant, and of an input where the forward consumes an
            iterator; None otherwise.
        ref: weak reference to the tensor, valid while tracing.
        note: what a reader must know about it, for example that it came from outside torch.
    """

    __slots__ = (
        "device", "dtype", "is_written", "kind", "made", "name", "note", "op", "ref", "requires_grad", "reshaped",
        "shape", "tensor",
    )  # fmt: skip

    def __init__(self, kind: str, op: Op | None, made: int) -> None:
        self.kind = kind
        self.op = op
        self.made = made
        self.name: str | None = None
        self.note: str | None = None
        self.tensor: Any = None
        self.ref: Any = None
        self.shape: Any = None
        self.reshaped: list[tuple[int, Any]] | None = None
        self.dtype: Any = None
        self.device: Any = None
        self.requires_grad = False
        self.is_written = False

    def shape_at(self, time: int) -> Any:
        """The shape when `time` operations have run."""
        known = [shape for since, shape in self.reshaped or () if since <= time]
        return known[-1] if known else self.shape

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name or (self.op and self.op.name)} {self.shape}>"


class Context(NamedTuple):
    """Thread-local settings that an operation ran under."""

    grad: bool
    inference: bool
    autocast: tuple[tuple[str, Any, bool], ...]
    dtype: Any
    attention: tuple[bool, ...] = ()


class Op:
    """One call of a torch function.

    Attributes:
        index: position in `Record.ops`.
        func: what was called.
        name: plain name of the operation.
        level: `function` (torch's Python API), `dispatch` (below it), `opaque` (autograd Function, TorchScript),
            `alias` (a view that torch made without a call that could be seen).
        args, kwargs: the arguments, each tensor replaced by its `Value`; a `Nested` for containers of other classes.
        reads: the values among the arguments, in order, with repetition.
        memory: what of `reads` lay in memory that had been written by then.
        out: the result, each tensor replaced by its `Value`; None while it has not returned.
        writes: values among the arguments that it wrote into.
        call: the module call that it ran in.
        context: settings it ran under.
        place: the line of the user's code that called it.
        status: `ok` or `failed`; `query` for a call that gave no tensor and wrote none (`item`, `numpy`).
        is_passed_on: its result is the very tensor it was given.
        error: the exception that it raised, while that is needed.
        note: what a reader must know of it, for example that its result was assumed.
    """

    __slots__ = (
        "args", "call", "context", "error", "func", "index", "is_passed_on", "kwargs", "level", "memory", "name",
        "note", "out", "place", "reads", "status", "writes",
    )  # fmt: skip

    def __init__(self, index: int, func: Any, name: str, level: str, call: Call, context: Context) -> None:
        self.index = index
        self.func = func
        self.name = name
        self.level = level
        self.call = call
        self.context = context
        self.args: tuple[Any, ...] = ()
        self.kwargs: dict[str, Any] = {}
        self.reads: list[Value] = []
        self.memory: Memory | None = None
        self.out: Any = None
        self.writes: tuple[Value, ...] = ()
        self.place: Place | None = None
        self.status = "failed"
        self.is_passed_on = False
        self.error: BaseException | None = None
        self.note: str | None = None


class _Nothing:
    """What stands for the lack of a result, where None may be one."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()


class Nested:
    """An argument or result that is a container of another class than list, tuple or dict, with tensors inside."""

    __slots__ = ("template",)

    def __init__(self, template: Template) -> None:
        self.template = template


class Call:
    """One call of a module, or of the traced function (the outermost call).

    Attributes:
        index: position in `Record.calls`.
        module: the module, None for a traced function that is no module's.
        fqn: fully qualified name; None where the model does not register the module.
        type: class name of the module, or name of the function.
        parent: the calling module call.
        reads: tensors among its arguments.
        out: what it returned, tensors replaced by their values; None while it has not returned.
        place: the line of the user's code that called it.
        is_torch: the module's class is torch's own and it has no hooks, so that no line in its call is the user's.
        start, end: numbers of operations recorded when it began and when it ended.
    """

    __slots__ = (
        "end", "error", "forwards", "fqn", "index", "is_torch", "module", "out", "parent", "place", "reads", "start",
        "status", "type",
    )  # fmt: skip

    def __init__(
        self, index: int, module: Any, fqn: str | None, type_name: str, parent: Call | None, start: int
    ) -> None:
        self.index = index
        self.module = module
        self.fqn = fqn
        self.type = type_name
        self.parent = parent
        self.start = start
        self.end = start
        self.reads: list[Value] = []
        self.out: Any = None
        self.place: Place | None = None
        self.status = "failed"
        self.error: BaseException | None = None
        self.forwards: list[Any] = []
        self.is_torch = False


class Failed(NamedTuple):
    """One failure that ended the forward, or would have.

    Attributes:
        error: the exception.
        op: the operation that raised it; None where plain Python code did.
        call: the innermost module call that it came from; None before the first.
    """

    error: Any
    op: Op | None
    call: Call | None


class Write(NamedTuple):
    """One writing of an operation into a storage."""

    op: Op
    value: Value
    geometry: Geometry | None


@dataclass(slots=True)
class Record:
    """Everything that ran in one forward.

    Attributes:
        title: class name of the model, or name of the function.
        ops: all operations in order of execution, failed ones included.
        calls: all module calls in order of execution; `calls[0]` is the outermost.
        inputs: path and value of each input tensor, in order.
        arguments: template of `(args, kwargs)`.
        output: template of what the forward returned; None if it did not return.
        output_memory: which of the outputs lie in memory that was written.
        writes: storage key to the writes into it, in order.
        host_reads: how often Python read a value (`item`, `numpy`, `bool`).
        queries: the operations that did so; `op.index` says how many operations had run by then, `op.out` holds what
            Python got where that is plain data.
        error: the exception that ended the forward; of a run that looked past failures the first.
        failures: all failures, in order, where the run was to go past them; else empty.
        unrepeatable: why the forward can't be run again on the same arguments; "" where it can.
        reference: what the forward returned, as copies, kept only where it can't be run again.
        context: settings under which the forward began.
        rng: state of torch's generators when the forward began, by device (`cpu`, `cuda:0`).
        generators: generators given as arguments, with the state they had.
        owned: parameters and buffers, by name, as `named_modules()` gives them first.
        modules: fully qualified names of the model's modules.
    """

    title: str
    ops: list[Op] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    inputs: list[tuple[str, Value]] = field(default_factory=list)
    arguments: Template | None = None
    output: Template | None = None
    output_memory: Memory | None = None
    writes: dict[Any, list[Write]] = field(default_factory=dict)
    host_reads: int = 0
    queries: list[Op] = field(default_factory=list)
    error: BaseException | None = None
    failures: list[Failed] = field(default_factory=list)
    unrepeatable: str = ""
    reference: list[Any] = field(default_factory=list)
    context: Context | None = None
    rng: dict[str, Any] = field(default_factory=dict)
    generators: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    owned: dict[str, Any] = field(default_factory=dict)
    modules: tuple[str, ...] = ()

    def leaves(self) -> list[Value]:
        """Every value that no operation made and that is read: inputs first, then by first use."""
        seen: dict[int, Value] = {id(value): value for _, value in self.inputs}
        for op in self.ops:
            seen.update({id(v): v for v in op.reads if v.kind != "op" and id(v) not in seen})
        for value in self.output.stand_ins() if self.output is not None else ():
            if value.kind != "op":
                seen.setdefault(id(value), value)
        return list(seen.values())


def filled(arg: Any, get: Callable[[Any], Any], stand_ins: Collection[type]) -> Any:
    """An argument with what belongs in the place of each stand-in.

    Args:
        arg: the argument: lists, tuples, dicts, slices and templates are entered.
        get: gives what belongs in the place of a stand-in.
        stand_ins: classes of stand-ins.
    """
    cls = type(arg)
    if cls in stand_ins:
        return get(arg)
    if cls is tuple:
        return tuple([filled(part, get, stand_ins) for part in arg])
    if cls is list:
        return [filled(part, get, stand_ins) for part in arg]
    if cls is dict:
        return {key: filled(part, get, stand_ins) for key, part in arg.items()}
    if cls is slice:
        return slice(*(filled(part, get, stand_ins) for part in (arg.start, arg.stop, arg.step)))
    if cls is Nested:
        return put_together(arg.template, get)
    return put_together(arg, get) if cls is Template else arg
