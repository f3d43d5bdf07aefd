"""Record one forward pass of a model while it runs exactly as it would without us.

A function mode sees every call that goes through torch's Python API and records it. A dispatch mode fills the gaps:
it records what runs outside any recorded function (scripted functions, the inside of vmap). Module calls are seen by
patching `nn.Module._call_impl` and the `forward` of the model's classes, for the calling thread only. Everything is
removed when the forward ends, however it ends, and what the forward changed is put back.

Limits: what a forward computes in numpy, in Python numbers or in other threads is not seen; the tensors that come back
are constants marked "came from outside torch". Compiled callables are run eagerly.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple, Protocol

import torch
import torch.autograd.forward_ad as forward_ad
from torch import nn
from torch._C._functorch import is_functorch_wrapped_tensor, peek_interpreter_stack
from torch.nn.modules.lazy import LazyModuleMixin

from torchatlas import patches
from torchatlas.arguments import function_name, named_arguments
from torchatlas.attributes import are_restorable
from torchatlas.functions import Function, Writes, plain_name
from torchatlas.members import attribute_paths, named_modules, roots
from torchatlas.modes import Functions, Gap, Watch, close_interrupted
from torchatlas.places import place
from torchatlas.record import (
    NOTHING,
    Call,
    Context,
    Failed,
    Geometry,
    Memory,
    Nested,
    Op,
    Record,
    Value,
    Write,
)  # fmt: skip
from torchatlas.settings import attention_flags, current_context
from torchatlas.state import Preserved
from torchatlas.structure import storage_template, take_apart, walk
from torchatlas.tensors import describe_tensor, geometry_of, storage_key

_Tensor, _Parameter = torch.Tensor, nn.Parameter
_ref = weakref.ref
_ATOMS = frozenset((
    int, float, bool, str, type(None), torch.dtype, torch.device, torch.Size, type(...), complex, bytes,
    torch.memory_format, torch.layout, BuiltinFunctionType, FunctionType, type,
))  # fmt: skip
_STORAGES = frozenset((torch.UntypedStorage, torch.TypedStorage))
_functions_len, _functions_push, _functions_pop = (
    torch._C._len_torch_function_stack, torch._C._push_on_torch_function_stack, torch._C._pop_torch_function_stack,
)  # fmt: skip
_dispatch_len, _dispatch_at, _dispatch_push, _dispatch_pop = (
    torch._C._len_torch_dispatch_stack, torch._C._get_dispatch_stack_at, torch._C._push_on_torch_dispatch_stack,
    torch._C._pop_torch_dispatch_stack,
)  # fmt: skip


class Beyond(Protocol):
    """Tells what a run goes on with where something raises."""

    def op_result(self, record: Record, op: Op) -> Any:
        """The result of an operation that raised; `NOTHING` to let it raise."""

    def call_result(self, record: Record, call: Call) -> Any:
        """The result of a module call that raised in plain Python; `NOTHING` to let it raise."""

    def note(self, result: Any) -> str:
        """What the node says whose result was assumed."""


class Tracer:
    """Records one call of a module or function.

    Args:
        target: a module, a bound method of one, or any callable.
        keep_state_changes: leave parameters, buffers, attributes of modules, inputs and random generators as the
            forward left them, instead of putting them back.
        on_result: called after each operation with it and the tensors it gave, for looking into the run.
        on_return: called after each module call with it and what it returned.
        beyond: what to go on with where something raises; None lets everything raise.
        exchange: called after each operation with it and its result; gives what the caller is to get instead.

    Attributes:
        attributes: the modules whose attributes are to be kept: first those whose own forward may change them, then
            torch's own without hooks, which do not change theirs, but others may.
    """

    def __init__(
        self,
        target: Callable[..., Any],
        *,
        keep_state_changes: bool = False,
        on_result: Callable[[Op, list[torch.Tensor]], None] | None = None,
        on_return: Callable[[Call, Any], None] | None = None,
        beyond: Beyond | None = None,
        exchange: Callable[[Op, Any], Any] | None = None,
    ) -> None:
        self.target = target
        self.on_result = on_result
        self.on_return = on_return
        self.beyond = beyond
        self.exchange = exchange
        self.keep_state_changes = keep_state_changes
        self.model = target if isinstance(target, nn.Module) else getattr(target, "__self__", None)
        title = type(target).__name__ if isinstance(target, nn.Module) else function_name(target)
        self.record = Record(title)
        self.busy = 0
        self._values: dict[int, Value] = {}
        self._stack: list[Call] = []
        self._raised: list[Op | Call] = []
        self._error_below: BaseException | None = None
        self._owned: dict[int, tuple[torch.Tensor, str, str]] = {}
        self._paths: dict[int, str] = {}
        self._attributes: dict[int, tuple[torch.Tensor, str]] | None = None
        self._kinds: dict[type, _Kind] = {}
        self._by_storage: dict[int, list[tuple[Value, Geometry | None]]] | None = None
        self._held: list[Any] = []
        self._met_wrapped = False
        self._last_context: Context | None = None
        self.attributes: tuple[list[nn.Module], list[nn.Module]] = [], []
        self.methods = self._survey()
        self._undo: list[Callable[[], None]] = []
        self._preserved: Preserved | None = None

    # What the model is made of

    def _survey(self) -> frozenset[tuple[type, str]]:
        """Learn the names of modules, parameters and buffers; returns the methods that are to be watched."""
        methods: set[tuple[type, str]] = set()
        paths = self._paths
        changing, bound = self.attributes
        for prefix, root in roots(self.model, self.target):
            for name, module in named_modules(root, prefix):
                paths.setdefault(id(module), name)
                cls = type(module)
                kind = self._kinds.get(cls)
                if kind is None:
                    kind = self._kind_of(cls)
                    methods.update(_watched_methods(cls))
                if kind.is_restorable:
                    rebinds = not kind.is_torch or module._forward_pre_hooks or module._forward_hooks
                    (changing if rebinds else bound).append(module)
                if module._parameters:
                    self._own("parameter", name, module._parameters)
                if module._buffers:
                    self._own("buffer", name, module._buffers)
        self.record.modules = tuple(paths.values())
        return frozenset(methods)

    def _kind_of(self, cls: type) -> _Kind:
        """The `_Kind` of a class; the answer is kept for this run."""
        is_torch = issubclass(cls, nn.Module) and cls.__module__.startswith("torch.nn.")
        is_script = issubclass(cls, torch.jit.ScriptModule)
        made = self._kinds[cls] = _Kind(cls.__name__, is_script, is_torch, are_restorable(cls))
        return made

    def _own(self, kind: str, module: str, found: Mapping[str, torch.Tensor | None]) -> None:
        """Learn the names of a module's parameters or buffers; the first name of a tensor is the one it keeps."""
        owned, names = self._owned, self.record.owned
        for key, tensor in found.items():
            if tensor is not None and id(tensor) not in owned:
                path = f"{module}.{key}" if module else key
                owned[id(tensor)] = (tensor, kind, path)
                names[path] = tensor

    @staticmethod
    def _leaf(kind: str, name: str | None, tensor: torch.Tensor) -> Value:
        value = Value(kind, None, -1)
        value.name = name
        value.tensor = tensor
        return value

    # The run

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the target with these arguments and record it; returns what it returned, raises what it raised."""
        try:
            self._begin(args, kwargs)
            output = self._call_target(args, kwargs)
            self._leave_modes()
            self.record.output = take_apart(output, self._value_of)
            if self.record.writes:
                tensors = [tensor for _, tensor in walk(output)]
                self.record.output_memory = self._memory_of(tensors, self.record.output.stand_ins())
            if self.record.unrepeatable:
                self.record.reference = [tensor.detach().clone() for _, tensor in walk(output)]
            return output
        except BaseException as error:
            close_interrupted(error)
            self._complete_message(error)
            self.record.error = error
            raise
        finally:  # twice: an asynchronous KeyboardInterrupt may end the first
            try:
                self._end()
            finally:
                self._end()

    def _begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._depths = _functions_len(), _dispatch_len()
        self._preserved = preserved = Preserved()
        self.record.rng = dict(preserved.random)
        self.record.context = self._settings()
        for tensor, *_ in self._owned.values():
            preserved.add_leaf(tensor)
        if not self.keep_state_changes:
            preserved.add_modules(*self.attributes)
        with torch._C.DisableTorchFunction():
            found = named_arguments(self.target, args, kwargs)
            for path, tensor in [row for name, arg in found for row in walk(arg, name)]:
                if id(tensor) not in self._values and id(tensor) not in self._owned:
                    value = Value("input", None, -1)
                    value.name = path
                    self._adopt(value, tensor)
                    preserved.add_leaf(tensor)
                    self.record.inputs.append((path, value))
            self.record.arguments = take_apart((args, dict(kwargs)), self._value_of)
        iterators = [name for name, arg in found if isinstance(arg, Iterator)]
        if iterators:
            self.record.unrepeatable = f"the forward consumes {', '.join(iterators)}, an iterator"
            for _, value in self.record.inputs:
                value.tensor = value.ref()
        if "torch._dynamo" in sys.modules:  # else nothing compiled can be there, and importing it takes seconds
            stance = torch.compiler.set_stance("force_eager")
            self._undo.append(lambda: stance.__exit__(None, None, None))
        patches.add(self)
        self._gap = Gap(self)
        self._mode = Functions(self)
        _functions_push(self._mode)
        _dispatch_push(self._gap)

    def _call_target(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if isinstance(self.target, nn.Module):
            return self.target(*args, **kwargs)
        return self.module_call(None, lambda _, *a, **k: self.target(*a, **k), args, kwargs, None)

    def _leave_modes(self) -> None:
        functions, dispatch = self._depths
        while _dispatch_len() > dispatch:
            _dispatch_pop(None)
        while _functions_len() > functions:
            _functions_pop()

    def _end(self) -> None:
        """Remove everything that was installed and put back what the forward changed. Idempotent."""
        self.busy = 1
        preserved = self._preserved
        if preserved is None:
            return
        self._mark_written()
        if hasattr(self, "_depths"):
            self._leave_modes()
        patches.remove(self)
        while self._undo:
            self._undo[-1]()
            self._undo.pop()
        preserved.restore(keep_changes=self.keep_state_changes)
        while self._held:
            torch.UntypedStorage._free_weak_ref(self._held.pop())
        self._preserved = None
        self._values = {}
        self._by_storage = None
        self._attributes = None
        self._stack = []
        self._forget_caught()

    def _mark_written(self) -> None:
        """Mark the leaves whose memory the forward writes into; a replay must work on copies of them."""
        writes = self.record.writes
        if not writes:
            return
        for value in list(self._values.values()):
            tensor = value.ref() if value.kind != "op" else None
            if tensor is not None and storage_key(tensor) in writes:
                value.is_written = True
        for found in writes.values():
            for write in found:
                write.value.is_written = True

    # Values

    def _adopt(self, value: Value, tensor: torch.Tensor) -> Value:
        """Make a value stand for a tensor object."""
        value.ref = _ref(tensor)
        cls = type(tensor)
        if cls is _Tensor or cls is _Parameter:
            describe_tensor(value, tensor)
        else:
            with torch._C.DisableTorchFunctionSubclass():
                describe_tensor(value, tensor)
                if tensor.is_nested:  # jagged ones have a size that is no number
                    value.shape = None
        self._values[id(tensor)] = value
        if self._by_storage is not None:
            self._index(value, tensor)
        return value

    def _value_of(self, tensor: torch.Tensor) -> Value:
        """The value that stands for a tensor; one that was never seen is made out to be a leaf or a hidden view."""
        value = self._values.get(id(tensor))
        if value is not None and value.ref() is tensor:
            return value
        with torch._C.DisableTorchFunction():
            return self._meet(tensor)

    def _meet(self, tensor: torch.Tensor) -> Value:
        owned = self._owned.get(id(tensor))
        if owned is not None:
            return self._adopt(self._leaf(owned[1], owned[2], tensor), tensor)
        self._met_wrapped = self._met_wrapped or is_functorch_wrapped_tensor(tensor)
        key = storage_key(tensor)
        if self._by_storage is None:
            self._index_all()
        assert self._by_storage is not None
        for value, geometry in reversed(self._by_storage.get(key, ()) if key is not None else ()):
            if value.dtype == tensor.dtype:
                return self._hidden_view(tensor, value, geometry)
        path = self._attribute_path(tensor)
        value = self._leaf("constant", path, tensor)
        if path is None:
            value.note = "came from outside torch"
        assert self._preserved is not None
        self._preserved.add_leaf(tensor)
        return self._adopt(value, tensor)

    def _attribute_path(self, tensor: torch.Tensor) -> str | None:
        """Where in the model's modules a tensor is kept as a plain attribute; None if nowhere when first asked."""
        if self._attributes is None:
            self._attributes = attribute_paths(self.model, self.target)
        kept, path = self._attributes.get(id(tensor), (None, None))
        return path if kept is tensor else None

    def _index_all(self) -> None:
        """Find values by storage from now on: needed as soon as one unknown tensor turns up."""
        self._by_storage = {}
        for value in list(self._values.values()):
            tensor = value.ref()
            if tensor is not None:
                self._index(value, tensor)
        for tensor, kind, name in self._owned.values():
            if id(tensor) not in self._values:
                self._adopt(self._leaf(kind, name, tensor), tensor)

    def _index(self, value: Value, tensor: torch.Tensor) -> None:
        key = storage_key(tensor)
        if key is not None and self._by_storage is not None:
            self._by_storage.setdefault(key, []).append((value, geometry_of(tensor)))
            self._hold(tensor)

    def _hold(self, tensor: torch.Tensor) -> None:
        """Keep the address of a tensor's storage from being used again, without keeping its memory."""
        if type(tensor) in (_Tensor, _Parameter):
            self._held.append(tensor.untyped_storage()._weak_ref())
        else:
            with torch._C.DisableTorchFunctionSubclass():
                self._held.append(tensor.untyped_storage()._weak_ref())

    def _hidden_view(self, tensor: torch.Tensor, base: Value, geometry: Geometry | None) -> Value:
        """Record a view that torch made without a call that we could see."""
        here = geometry_of(tensor)
        source = base.ref() if base.ref is not None else base.tensor
        func: Callable[..., Any]
        rest: tuple[Any, ...]
        if source is None or here is None:
            func, rest = _same, ()
        elif here == geometry:
            func, rest = (_Tensor.detach if source.requires_grad and not tensor.requires_grad else _same), ()
        else:
            func, rest = torch.as_strided, (here.shape, here.stride, here.offset)
        if base.ref is None and source is not None:
            self._adopt(base, source)
        op = Op(
            len(self.record.ops), func, "alias", "alias", self._stack[-1] if self._stack else _NO_CALL, self._settings()
        )
        op.args, op.reads, op.status = (base, *rest), [base], "ok"
        if self.record.writes and source is not None:
            op.memory = self._memory_of([source], [base])
        value = Value("op", op, op.index)
        op.out = value
        self.record.ops.append(op)
        return self._adopt(value, tensor)

    # Operations

    def operation(self, info: Function, func: Any, args: Any, kwargs: Any, level: str) -> Any:
        """Run one operation and record it."""
        if peek_interpreter_stack() is not None or forward_ad._current_level >= 0:
            if level == "function":
                return func(*args, **kwargs)  # wrapped tensors: the dispatch level sees plain ones
        record = self.record
        self.busy += 1
        popped = None
        try:
            stack = self._stack
            call = stack[-1] if stack else _NO_CALL
            op = Op(len(record.ops), func, info.name, level, call, self._settings())
            tensors: list[Any] = []
            reads, values = op.reads, self._values
            packed = []
            self._met_wrapped = False
            for arg in args:  # the commonest kinds are handled here: a call of `_pack` for each would cost a tenth
                cls = type(arg)
                if cls is _Tensor or cls is _Parameter:
                    value = values.get(id(arg))
                    if value is None or value.ref() is not arg:
                        value = self._meet(arg)
                    reads.append(value)
                    tensors.append(arg)
                    packed.append(value)
                else:
                    packed.append(arg if cls in _ATOMS else self._pack(arg, reads, tensors))
            op.args = tuple(packed)
            if kwargs:
                op.kwargs = {key: self._pack(arg, reads, tensors) for key, arg in kwargs.items()}
            if self._met_wrapped and level == "function":  # of a transform that is over: `torch.func.vjp` gives such
                return self._below(func, args, kwargs)
            if record.writes and tensors:
                op.memory = self._memory_of(tensors, reads)
            op.place = call.place if call.is_torch else place(1, _CALLING) or call.place
            if info.is_attention:
                op.context = op.context._replace(attention=attention_flags())
            depth = _dispatch_len()
            if depth and _dispatch_at(depth - 1) is self._gap:
                popped = _dispatch_pop(None)
            written = [] if info.is_pure and not kwargs else self._expect(info, args, kwargs, tensors)
            try:
                if (info.is_watched or level == "opaque") and not info.is_quiet(args, kwargs):
                    out, keys = self._watched(func, args, kwargs)
                    if keys:
                        written = [t for t in tensors if storage_key(t) in keys or any(t is other for other in written)]
                else:
                    out = func(*args, **kwargs)
            except BaseException as error:
                out = self._failed(op, error)
                if out is NOTHING:
                    raise
                return out
            out = self._finish(op, out, written, info)
        finally:
            if popped is not None:
                _dispatch_push(popped)
            self.busy -= 1
        return out

    def _below(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run a function on wrapped tensors, for the dispatch level to record, which sees plain ones."""
        busy, self.busy = self.busy, 0
        try:
            return func(*args, **kwargs)
        finally:
            self.busy = busy

    def _failed(self, op: Op, error: BaseException) -> Any:
        """Note an operation that raised; returns what to go on with, `NOTHING` to let it raise."""
        ops = self.record.ops
        op.error = error
        op.index = len(ops)
        self._raised.append(op)
        out = NOTHING if self.beyond is None else self.beyond.op_result(self.record, op)
        if out is not NOTHING and self.beyond is not None:
            op.note = self.beyond.note(out)
            out = self._finish(op, out, [], _IDENTITY)
            self.record.failures.append(Failed(error, op, op.call))
        op.status = "failed"
        if not ops or ops[-1] is not op:
            ops.append(op)
        return out

    def _complete_message(self, error: BaseException) -> None:
        """Give a scripted function's exception the text that it has without us.

        TorchScript's interpreter repeats the message of the operator that failed, but loses it on its way through a
        dispatch mode, as of torch 2.14: `RuntimeError: ` stands there alone.
        """
        text = str(error)
        ops = [row for row in self._raised if isinstance(row, Op)]
        inner = self._error_below or (ops[-1].error if ops else None)
        if inner is not None and inner is not error and "TorchScript" in text and text.endswith("RuntimeError: \n"):
            error.args = (f"{text[:-1]}{inner}\n",)

    def _forget_caught(self) -> None:
        """Drop exceptions that the model caught itself: their tracebacks would keep its tensors alive."""
        kept = {id(failed.error) for failed in self.record.failures}
        error = self.record.error
        last = self.record.ops[-1] if self.record.ops and error is not None else None
        while error is not None and id(error) not in kept:
            kept.add(id(error))
            error = error.__cause__ or error.__context__
        for row in self._raised:
            if row is not last and id(row.error) not in kept:
                if isinstance(row, Op):
                    row.note = f"raised {type(row.error).__name__}: {row.error}; the model caught it"
                row.error = None
        self._raised = []

    def _pack(self, arg: Any, reads: list[Value], tensors: list[Any]) -> Any:
        """An argument with every tensor replaced by its value; the tensors are appended to the two lists."""
        cls = type(arg)
        if cls is _Tensor or cls is _Parameter:
            value = self._values.get(id(arg))
            if value is None or value.ref() is not arg:
                with torch._C.DisableTorchFunction():
                    value = self._meet(arg)
            reads.append(value)
            tensors.append(arg)
            return value
        if cls in _ATOMS:
            return arg
        if cls is tuple:
            return tuple([self._pack(part, reads, tensors) for part in arg])
        if cls is list:
            return [self._pack(part, reads, tensors) for part in arg]
        if isinstance(arg, _Tensor):
            value = self._value_of(arg)
            reads.append(value)
            tensors.append(arg)
            return value
        if cls is slice:
            return slice(*[self._pack(part, reads, tensors) for part in (arg.start, arg.stop, arg.step)])
        if cls is dict:
            return {key: self._pack(part, reads, tensors) for key, part in arg.items()}
        if cls is torch.Generator:
            assert self._preserved is not None
            self.record.generators[id(arg)] = (arg, self._preserved.add_generator(arg))
            return arg
        if cls in _STORAGES:
            return self._pack_storage(arg, reads, tensors)
        inside = [tensor for _, tensor in walk(arg)]
        if not inside:
            return arg
        template = take_apart(arg, self._value_of)
        reads.extend(template.stand_ins())
        tensors.extend(inside)
        return Nested(template)

    def _pack_storage(self, storage: Any, reads: list[Value], tensors: list[Any]) -> Any:
        """A storage among the arguments is that of a tensor, as where `copy.copy` rebuilds one around it."""
        if self._by_storage is None:
            self._index_all()
        assert self._by_storage is not None
        untyped = storage if isinstance(storage, torch.UntypedStorage) else storage._untyped_storage
        for value, _ in reversed(self._by_storage.get(untyped._cdata, ())):
            tensor = value.ref() if value.ref is not None else value.tensor
            if tensor is not None:
                reads.append(value)
                tensors.append(tensor)
                return Nested(storage_template(value, type(storage)))
        return storage

    def _expect(self, info: Function, args: Any, kwargs: Any, tensors: list[Any]) -> list[Any]:
        """Tensors that the operation will write into, as far as that is known before; their memory is kept."""
        writes = info.writes
        written: list[Any] = []
        if writes is Writes.FIRST or (info.inplace >= 0 and _asks_inplace(info, args, kwargs)):
            written = tensors[:1]
        if kwargs and kwargs.get("out") is not None:
            written = [tensor for _, tensor in walk(kwargs["out"])]
        preserved = self._preserved
        assert preserved is not None
        for tensor in written:
            preserved.before_write(tensor)
        if tensors and writes is Writes.FLAG:
            preserved.before_flag(tensors[0])
        elif tensors and writes is Writes.DATA:
            preserved.before_data(tensors[0])
            written = tensors[:1]
        elif info.is_backward:
            preserved.before_backward()
        return written

    def _watched(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, set[int | None]]:
        """Run a function under the eyes of a dispatch mode that notes what is written."""
        assert self._preserved is not None
        watch = Watch(self._preserved)
        depth = _dispatch_len()
        try:
            _dispatch_push(watch)
            out = func(*args, **kwargs)
            return out, watch.written
        except BaseException:
            self._error_below = watch.error
            raise
        finally:
            while _dispatch_len() > depth:
                _dispatch_pop(None)

    def _finish(self, op: Op, out: Any, written: list[Any], info: Function) -> Any:
        """Note the results and the writes of an operation; returns what the caller is to get."""
        ops = self.record.ops
        op.index = len(ops)
        keep = {id(tensor) for tensor in written} if written else ()
        if type(out) is _Tensor:
            value = self._values.get(id(out))
            if value is None or value.ref() is not out:
                value = self._adopt(Value("op", op, op.index), out)
                if op.memory is not None:
                    self._narrow_memory(op, out)
            elif id(out) not in keep and info.writes is not Writes.FLAG:
                out, value = self._pass_on(op, out)
            op.out = value
            has_result = True
        else:
            reads_before = len(op.reads)
            out, op.out, has_result = self._unpack(op, out, keep, info)
            del op.reads[reads_before:]
        if written:
            op.writes = tuple([self._value_of(tensor) for tensor in written])
            for tensor, value in zip(written, op.writes, strict=True):
                self._note_write(op, tensor, value)
        if has_result or written or info.is_backward or info.writes is Writes.FLAG:
            op.status = "ok"
            ops.append(op)
            if self.on_result is not None:
                given = {id(tensor): tensor for _, tensor in walk((out, written))}
                self.on_result(op, list(given.values()))
            if self.exchange is not None:
                out = self.exchange(op, out)
        else:
            op.status = "query"
            self.record.host_reads += 1
            self.record.queries.append(op)
        return out

    def _unpack(self, op: Op, out: Any, keep: Any, info: Function) -> tuple[Any, Any, bool]:
        """`_finish` for one result that is no plain tensor: what the caller gets, its template, any tensor in it."""
        cls = type(out)
        if cls in _ATOMS:
            return out, out, False
        if cls is tuple or cls is list:
            parts = [self._unpack(op, part, keep, info) for part in out]
            is_same = all(new[0] is old for new, old in zip(parts, out, strict=True))
            given = out if is_same else cls(part[0] for part in parts)
            return given, cls(part[1] for part in parts), any(part[2] for part in parts)
        if isinstance(out, _Tensor):
            value = self._values.get(id(out))
            if value is None or value.ref() is not out:
                if id(out) in self._owned:
                    return out, self._value_of(out), True
                with torch._C.DisableTorchFunctionSubclass():
                    return out, self._adopt(Value("op", op, op.index), out), True
            if id(out) in keep or info.writes is Writes.FLAG:
                return out, value, True
            return (*self._pass_on(op, out), True)
        if next(walk(out), None) is None:
            return out, None, False
        return out, Nested(take_apart(out, lambda tensor: self._result(op, tensor))), True

    def _result(self, op: Op, tensor: torch.Tensor) -> Value:
        value = self._values.get(id(tensor))
        if value is not None and value.ref() is tensor:
            return value
        return self._adopt(Value("op", op, op.index), tensor)

    def _pass_on(self, op: Op, tensor: torch.Tensor) -> tuple[torch.Tensor, Value]:
        """Hand out a fresh alias of a tensor that an operation returns unchanged.

        Otherwise the result could not be told from the argument, and readers of the one would count as readers of the
        other. The alias has the same memory, strides and autograd history.
        """
        op.is_passed_on = True
        cls = type(tensor)
        is_plain = cls is _Tensor or (cls is _Parameter and op.level != "module")
        if not is_plain or tensor.layout is not torch.strided or tensor.is_nested:
            return tensor, self._value_of(tensor)
        grad = torch.is_grad_enabled()
        try:
            torch._C._set_grad_enabled(True)
            with torch._C.DisableTorchFunction():
                alias = tensor[...]
                return alias, self._adopt(Value("op", op, op.index), alias)
        finally:
            torch._C._set_grad_enabled(grad)

    def _note_write(self, op: Op, tensor: torch.Tensor, value: Value) -> None:
        key: Any = storage_key(tensor)
        if key is None:
            key = value
        elif key not in self.record.writes:
            self._hold(tensor)
        self.record.writes.setdefault(key, []).append(Write(op, value, geometry_of(tensor)))

    def _memory_of(self, tensors: list[Any], values: list[Value]) -> Memory | None:
        """Which of some tensors lie in memory that was written, and how often by now."""
        writes = self.record.writes
        memory: Memory | None = None
        for position, tensor in enumerate(tensors):
            key: Any = storage_key(tensor)
            found = writes.get(values[position] if key is None else key)
            if found is not None:
                memory = {} if memory is None else memory
                memory[position] = (values[position] if key is None else key, len(found), geometry_of(tensor))
        return memory

    def _narrow_memory(self, op: Op, result: torch.Tensor) -> None:
        """A view reads no more of written memory than what it shows."""
        assert op.memory is not None
        key = storage_key(result)
        for position, (found, count, _) in op.memory.items():
            if found == key:
                op.memory[position] = (found, count, geometry_of(result))

    def _settings(self) -> Context:
        self._last_context = current_context(self._last_context)
        return self._last_context

    # Module calls and autograd Functions

    def is_open(self, module: Any, forward: Any) -> bool:
        """Whether a `forward` is that of the call that is open already, or its parent class's; noted if it is."""
        if self.busy:
            return True
        stack = self._stack
        if stack and stack[-1].module is module and forward not in stack[-1].forwards:
            stack[-1].forwards.append(forward)
            return True
        return False

    def module_call(self, module: Any, run: Callable[..., Any], args: Any, kwargs: Any, forward: Any) -> Any:
        """Run a module call and record it.

        Args:
            module: the module; None for a traced function.
            run: called as `run(module, *args, **kwargs)`.
            args, kwargs: the arguments.
            forward: the class's `forward` where that was called directly; None for `module(...)`.
        """
        stack = self._stack
        if self.busy or (forward is not None and self.is_open(module, forward)):
            return run(module, *args, **kwargs)
        call = self._open_call(module, args, kwargs)
        if forward is not None:
            call.forwards.append(forward)
        stack.append(call)
        try:
            if self._kinds[type(module)].is_script:
                out = self._opaque(call.type, run, (module, *args), kwargs)
            else:
                out = run(module, *args, **kwargs)
            if call.start == len(self.record.ops) and call.index + 1 == len(self.record.calls):
                out = self._identity(call, out)
            self.busy += 1
            call.out = self._value_of(out) if isinstance(out, _Tensor) else take_apart(out, self._value_of)
            if self.on_return is not None:
                self.on_return(call, out)
            self.busy -= 1
            call.status = "ok"
            return out
        except BaseException as error:
            call.error = error
            out = self._call_failed(call, error)
            if out is NOTHING:
                raise
            return out
        finally:
            call.end = len(self.record.ops)
            call.forwards = []
            if stack and stack[-1] is call:
                stack.pop()
            elif call in stack:  # an interruption left inner calls open
                del stack[stack.index(call) :]

    def _call_failed(self, call: Call, error: BaseException) -> Any:
        """Note a module call that raised; returns what to go on with, `NOTHING` to let it raise."""
        self._raised.append(call)
        out = NOTHING if self.beyond is None else self.beyond.call_result(self.record, call)
        if out is NOTHING or self.beyond is None:
            return out
        self.busy += 1
        try:
            op = Op(len(self.record.ops), _same, "assumed", "module", call, self._settings())
            op.reads, op.args, op.place, op.note = (
                list(call.reads),
                tuple(call.reads),
                call.place,
                self.beyond.note(out),
            )
            out = self._finish(op, out, [], _IDENTITY)
            op.status = "failed"
            call.out = take_apart(out, self._value_of)
        finally:
            self.busy -= 1
        self.record.failures.append(Failed(error, None, call))
        return out

    def _open_call(self, module: Any, args: Any, kwargs: Any) -> Call:
        record, stack = self.record, self._stack
        kind = self._kinds.get(type(module)) or self._kind_of(type(module))
        name = kind.name
        if module is None:
            name = record.title
        elif kind.is_script:
            name = getattr(module, "original_name", name)
        parent = stack[-1] if stack else None
        call = Call(len(record.calls), module, self._paths.get(id(module)), name, parent, len(record.ops))
        self.busy += 1
        try:
            for arg in (*args, *kwargs.values()) if kwargs else args:
                cls = type(arg)
                if cls is _Tensor:
                    call.reads.append(self._value_of(arg))
                elif cls not in _ATOMS:
                    call.reads.extend([self._value_of(tensor) for _, tensor in walk(arg)])
        finally:
            self.busy -= 1
        if parent is None:
            call.place = place(2, _CALLING)
        else:  # up to the frame of the parent's call: what lies beyond was looked at there
            call.place = parent.place if parent.is_torch else place(2, _CALLING) or parent.place
        call.is_torch = kind.is_torch and not module._forward_hooks and not module._forward_pre_hooks
        record.calls.append(call)
        return call

    def _identity(self, call: Call, out: Any) -> Any:
        """A module call that ran nothing and hands something on is a node all the same."""
        self.busy += 1
        try:
            tensors: list[Any] = []
            op = Op(len(self.record.ops), _same, "identity", "module", call, self._settings())
            op.args = (self._pack(out, op.reads, tensors),)
            if not tensors:
                return out
            if self.record.writes:
                op.memory = self._memory_of(tensors, op.reads)
            op.place = call.place
            return self._finish(op, out, [], _IDENTITY)
        finally:
            self.busy -= 1

    def function_apply(self, cls: type, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run `cls.apply` of an autograd Function as one operation that keeps its custom backward."""
        if self.busy or cls.__module__.startswith("torch.utils.checkpoint"):
            return run(*args, **kwargs)
        return self._opaque(cls.__name__, run, args, kwargs)

    def whole(self, name: str, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a function that is not to be looked into as one operation."""
        return run(*args, **kwargs) if self.busy else self._opaque(plain_name(name), run, args, kwargs)

    def _opaque(self, name: str, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        info = Function(run)
        info.name = name
        return self.operation(info, run, args, kwargs, "opaque")


class _Kind(NamedTuple):
    """What a call of a module has from the module's class."""

    name: str
    is_script: bool
    is_torch: bool
    is_restorable: bool


def _asks_inplace(info: Function, args: Any, kwargs: Any) -> bool:
    position = info.inplace
    return (args[position] if len(args) > position else kwargs.get("inplace")) is True


def _same(value: Any) -> Any:
    return value


def _watched_methods(cls: type) -> tuple[tuple[type, str], ...]:
    """The classes' methods by which modules of a class may be called, or made, without `__call__`."""
    found: list[tuple[type, str]] = []
    for method in ("forward", "initialize_parameters") if issubclass(cls, LazyModuleMixin) else ("forward",):
        owner = next((c for c in cls.__mro__ if method in vars(c)), nn.Module)
        if owner is not nn.Module and isinstance(vars(owner)[method], FunctionType):
            found.append((owner, method))
    return tuple(found)


_IDENTITY = Function(_same)
_NO_CALL = Call(-1, None, None, "", None, 0)
_CALLING = frozenset((Tracer.run.__code__, Tracer.module_call.__code__))
