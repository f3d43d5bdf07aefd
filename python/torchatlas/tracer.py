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
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import torch
import torch.autograd.forward_ad as forward_ad
from torch import nn
from torch._C._functorch import peek_interpreter_stack

from torchatlas import patches
from torchatlas.arguments import function_name, named_arguments
from torchatlas.bits import digest
from torchatlas.functions import LENDERS, Function, Writes, plain_name
from torchatlas.identities import ATOMS, Identities, same
from torchatlas.modes import Functions, Gap, Watch, close_interrupted
from torchatlas.places import place
from torchatlas.record import (
    NOTHING,
    Call,
    Context,
    Failed,
    Nested,
    Op,
    Record,
    Value,
)  # fmt: skip
from torchatlas.settings import attention_flags, current_context
from torchatlas.state import Preserved
from torchatlas.structure import take_apart, walk
from torchatlas.survey import Survey
from torchatlas.tensors import PLAIN, storage_key

_Tensor, _Parameter = torch.Tensor, nn.Parameter
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
        title = type(target).__name__ if isinstance(target, nn.Module) else function_name(target)
        self.record = Record(title)
        self.busy = 0
        self._stack: list[Call] = []
        self._raised: list[Op | Call] = []
        self._error_below: BaseException | None = None
        self._last_context: Context | None = None
        self._survey = survey = Survey(target)
        self.methods = survey.methods
        self.record.owned = survey.names
        self.record.modules = tuple(survey.paths.values())
        self._undo: list[Callable[[], None]] = []
        self._preserved: Preserved | None = None

    # The run

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the target with these arguments and record it; returns what it returned, raises what it raised."""
        try:
            self._begin(args, kwargs)
            output = self._call_target(args, kwargs)
            self._leave_modes()
            self.record.output = take_apart(output, self._known.value_of)
            if self.record.writes:
                tensors = [tensor for _, tensor in walk(output)]
                self.record.output_memory = self._known.memory_of(tensors, self.record.output.stand_ins())
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
        self._known = known = Identities(self.record, self.target, self._survey, preserved, self._begin_alias)
        self.record.rng = dict(preserved.random)
        self.record.context = self._settings()
        for tensor, *_ in self._survey.owned.values():
            preserved.add_leaf(tensor)
        if not self.keep_state_changes:
            preserved.add_modules(*self._survey.attributes)
        with torch._C.DisableTorchFunction():
            found = named_arguments(self.target, args, kwargs)
            for path, tensor in [row for name, arg in found for row in walk(arg, name)]:
                if id(tensor) not in known.values and id(tensor) not in self._survey.owned:
                    value = Value("input", None, -1)
                    value.name = path
                    known.adopt(value, tensor)
                    preserved.add_leaf(tensor)
                    self.record.inputs.append((path, value))
            self.record.arguments = take_apart((args, dict(kwargs)), known.value_of)
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
        if hasattr(self, "_known"):
            self._known.mark_written()
        if hasattr(self, "_depths"):
            self._leave_modes()
        patches.remove(self)
        while self._undo:
            self._undo[-1]()
            self._undo.pop()
        preserved.restore(keep_changes=self.keep_state_changes)
        if hasattr(self, "_known"):
            self._known.close()
        self._preserved = None
        self._stack = []
        self._forget_caught()

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
            known, reads = self._known, op.reads
            values = known.values
            packed = []
            known.met_wrapped = False
            for arg in args:  # the commonest kinds are handled here: a call of `_pack` for each would cost a tenth
                cls = type(arg)
                if cls is _Tensor or cls is _Parameter:
                    value = values.get(id(arg))
                    if value is None or value.ref() is not arg:
                        value = known.meet(arg)
                    reads.append(value)
                    tensors.append(arg)
                    packed.append(value)
                else:
                    packed.append(arg if cls in ATOMS else known.pack(arg, reads, tensors))
            op.args = tuple(packed)
            if kwargs:
                op.kwargs = {key: known.pack(arg, reads, tensors) for key, arg in kwargs.items()}
            if known.met_wrapped and level == "function":
                # Of a transform that is over: `torch.func.vjp` gives such.
                return self._below(func, args, kwargs)
            if record.writes and tensors:
                op.memory = known.memory_of(tensors, reads)
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
            value = self._known.values.get(id(out))
            if value is None or value.ref() is not out:
                value = self._known.adopt(Value("op", op, op.index), out)
                if op.memory is not None:
                    self._known.narrow_memory(op, out)
            elif id(out) not in keep and info.writes is not Writes.FLAG:
                out, value = self._pass_on(op, out)
            op.out = value
            has_result = True
        else:
            reads_before = len(op.reads)
            out, op.out, has_result = self._unpack(op, out, keep, info)
            del op.reads[reads_before:]
        if written:
            op.writes = tuple([self._known.value_of(tensor) for tensor in written])
            for tensor, value in zip(written, op.writes, strict=True):
                self._known.note_write(op, tensor, value)
                is_plain = type(tensor) in PLAIN and value.shape is not None
                if is_plain and tensor.shape != value.shape_at(op.index):
                    value.reshaped = [*(value.reshaped or ()), (op.index + 1, tensor.shape)]
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
            if info.name in LENDERS and op.reads:
                lent = op.reads[0].ref()
                op.out = None if lent is None else digest(lent)
            self.record.host_reads += 1
            self.record.queries.append(op)
        return out

    def _unpack(self, op: Op, out: Any, keep: Any, info: Function) -> tuple[Any, Any, bool]:
        """`_finish` for one result that is no plain tensor: what the caller gets, its template, any tensor in it."""
        cls = type(out)
        if cls in ATOMS:
            return out, out, False
        if cls is tuple or cls is list:
            parts = [self._unpack(op, part, keep, info) for part in out]
            is_same = all(new[0] is old for new, old in zip(parts, out, strict=True))
            given = out if is_same else cls(part[0] for part in parts)
            return given, cls(part[1] for part in parts), any(part[2] for part in parts)
        if isinstance(out, _Tensor):
            value = self._known.values.get(id(out))
            if value is None or value.ref() is not out:
                if id(out) in self._survey.owned:
                    return out, self._known.value_of(out), True
                with torch._C.DisableTorchFunctionSubclass():
                    return out, self._known.adopt(Value("op", op, op.index), out), True
            if id(out) in keep or info.writes is Writes.FLAG:
                return out, value, True
            return (*self._pass_on(op, out), True)
        if next(walk(out), None) is None:
            return out, None, False
        return out, Nested(take_apart(out, lambda tensor: self._result(op, tensor))), True

    def _result(self, op: Op, tensor: torch.Tensor) -> Value:
        value = self._known.values.get(id(tensor))
        if value is not None and value.ref() is tensor:
            return value
        return self._known.adopt(Value("op", op, op.index), tensor)

    def _pass_on(self, op: Op, tensor: torch.Tensor) -> tuple[torch.Tensor, Value]:
        """Hand out a fresh alias of a tensor that an operation returns unchanged.

        Otherwise the result could not be told from the argument, and readers of the one would count as readers of the
        other. The alias has the same memory, strides and autograd history.
        """
        op.is_passed_on = True
        cls = type(tensor)
        is_plain = cls is _Tensor or (cls is _Parameter and op.level != "module")
        if not is_plain or tensor.layout is not torch.strided or tensor.is_nested:
            return tensor, self._known.value_of(tensor)
        grad = torch.is_grad_enabled()
        try:
            torch._C._set_grad_enabled(True)
            with torch._C.DisableTorchFunction():
                alias = tensor[...]
                return alias, self._known.adopt(Value("op", op, op.index), alias)
        finally:
            torch._C._set_grad_enabled(grad)

    def _begin_alias(self, func: Any) -> Op:
        """The operation of a view that torch makes unseen."""
        call = self._stack[-1] if self._stack else _NO_CALL
        return Op(len(self.record.ops), func, "alias", "alias", call, self._settings())

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
            if self._survey.kinds[type(module)].is_script:
                out = self._opaque(call.type, run, (module, *args), kwargs)
            else:
                out = run(module, *args, **kwargs)
            if call.start == len(self.record.ops) and call.index + 1 == len(self.record.calls):
                out = self._identity(call, out)
            self.busy += 1
            call.out = self._known.value_of(out) if isinstance(out, _Tensor) else take_apart(out, self._known.value_of)
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
            op = Op(len(self.record.ops), same, "assumed", "module", call, self._settings())
            op.reads, op.args, op.place, op.note = (
                list(call.reads),
                tuple(call.reads),
                call.place,
                self.beyond.note(out),
            )
            out = self._finish(op, out, [], _IDENTITY)
            op.status = "failed"
            call.out = take_apart(out, self._known.value_of)
        finally:
            self.busy -= 1
        self.record.failures.append(Failed(error, None, call))
        return out

    def _open_call(self, module: Any, args: Any, kwargs: Any) -> Call:
        record, stack = self.record, self._stack
        kind = self._survey.kinds.get(type(module)) or self._survey.kind_of(type(module))
        name = kind.name
        if module is None:
            name = record.title
        elif kind.is_script:
            name = getattr(module, "original_name", name)
        parent = stack[-1] if stack else None
        call = Call(len(record.calls), module, self._survey.paths.get(id(module)), name, parent, len(record.ops))
        self.busy += 1
        try:
            for arg in (*args, *kwargs.values()) if kwargs else args:
                cls = type(arg)
                if cls is _Tensor:
                    call.reads.append(self._known.value_of(arg))
                elif cls not in ATOMS:
                    call.reads.extend([self._known.value_of(tensor) for _, tensor in walk(arg)])
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
            op = Op(len(self.record.ops), same, "identity", "module", call, self._settings())
            op.args = (self._known.pack(out, op.reads, tensors),)
            if not tensors:
                return out
            if self.record.writes:
                op.memory = self._known.memory_of(tensors, op.reads)
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


def _asks_inplace(info: Function, args: Any, kwargs: Any) -> bool:
    position = info.inplace
    return (args[position] if len(args) > position else kwargs.get("inplace")) is True


_IDENTITY = Function(same)
_NO_CALL = Call(-1, None, None, "", None, 0)
_CALLING = frozenset((Tracer.run.__code__, Tracer.module_call.__code__))
