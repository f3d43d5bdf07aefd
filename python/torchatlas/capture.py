"""Read values out of a running forward: forward hooks see what modules are given and return, a tracing run the rest."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from torchatlas.arguments import named_arguments
from torchatlas.builder import values_in
from torchatlas.keeping import Kept
from torchatlas.names import Names
from torchatlas.record import Call, Op, Record
from torchatlas.structure import walk
from torchatlas.tracer import Tracer

_CALL_NUMBER = re.compile(r"(.*):([1-9]\d*)")


class Enough(BaseException):
    """Ends a forward early: all that was asked for is there. No `Exception`, so that no model catches it."""


def split_call_number(name: str) -> tuple[str, int | None]:
    """The name of a module call without its number, and the number: `layer1:2` gives `layer1` and 2."""
    found = _CALL_NUMBER.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, None)


class Tap:
    """Collects what the calls of one module are given (`is_input`) or return.

    Attributes:
        name: fully qualified name of the module.
        number: which call, from 1; None for every call.
        values: what was kept, call by call.
    """

    def __init__(self, name: str, number: int | None, *, is_input: bool) -> None:
        self.name = name
        self.number = number
        self.is_input = is_input
        self.count = 0
        self.values: list[Kept] = []

    def add(self, value: Any, *, retain_grad: bool) -> None:
        """Note one more call."""
        self.count += 1
        if self.number in (None, self.count):
            self.values.append(Kept(value, retain_grad=retain_grad))

    def is_filled(self, is_called_once: Callable[[str], bool]) -> bool:
        """Whether no later call can add to it."""
        return bool(self.values) and (self.number is not None or is_called_once(self.name))

    def answer(self) -> Any:
        """The one value, or a list of them where the module was called several times.

        Raises:
            RuntimeError: the module was not called, or not often enough.
        """
        if not self.values:
            times = "not called" if self.count == 0 else f"called {self.count} times only"
            raise RuntimeError(
                f"module {self.name!r} was {times} in this forward, so there is no value to give; a module that is "
                "called in another way than `module(...)`, or in another thread, is not seen"
            )
        settled = [kept.settle() for kept in self.values]
        return settled[0] if len(settled) == 1 else settled


def listen(model: nn.Module, taps: Iterable[Tap], on_value: Callable[[], None], *, retain_grad: bool) -> list[Any]:
    """Put hooks on the modules of some taps; returns the handles that remove them.

    The hooks ignore other threads, and the replicas that `nn.DataParallel` makes of a module: those share its hooks.
    """
    ident = threading.get_ident()
    handles: list[Any] = []

    def add(tap: Tap, called: nn.Module, module: nn.Module, value: Any) -> None:
        if called is module and threading.get_ident() == ident:
            tap.add(value, retain_grad=retain_grad)
            on_value()

    def attach(tap: Tap, module: nn.Module) -> Any:
        if tap.is_input:
            return module.register_forward_pre_hook(
                lambda called, args, kwargs: add(tap, called, module, only_tensor((args, kwargs))), with_kwargs=True
            )
        return module.register_forward_hook(lambda called, _args, out: add(tap, called, module, out))

    for tap in taps:
        handles.append(attach(tap, model.get_submodule(tap.name)))
    return handles


class Watch:
    """Runs a forward under the tracer and keeps the values of operations and unregistered module calls by name.

    Args:
        names: names of operations, module calls, inputs, parameters, buffers, outputs.
        on_value: called whenever a value was added.
        retain_grad: whether the gradients of the values are wanted.
    """

    def __init__(self, names: Iterable[str], on_value: Callable[[], None], *, retain_grad: bool) -> None:
        self.names = frozenset(names)
        self.values: dict[str, Kept] = {}
        self.known: list[str] = []
        self._on_value = on_value
        self._retain_grad = retain_grad
        self._namer: Names | None = None
        self._record: Record | None = None
        self._named = (0, 0)

    def run(self, model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the forward; what it changes stays changed, as in any forward."""
        leaves = [row for name, arg in named_arguments(model, args, kwargs) for row in walk(arg, name)]
        leaves += [*model.named_parameters(), *model.named_buffers()]
        for name, tensor in leaves:
            self.known.append(name)
            self._add(name, tensor)
        tracer = Tracer(model, keep_state_changes=True, on_result=self._result, on_return=self._returned)
        self._record = tracer.record
        self._namer = Names(tracer.record)
        output = tracer.run(args, kwargs)
        for name, tensor in walk(output, "output"):
            self.known.append(name)
            self._add(name, tensor)
        return output

    def _add(self, name: str, value: Any) -> None:
        if name in self.names and name not in self.values:
            self.values[name] = Kept(value, retain_grad=self._retain_grad)
            self._on_value()

    def _result(self, op: Op, _tensors: list[torch.Tensor]) -> None:
        name = self._name_all()
        results = list({id(v): v for v in values_in(op.out)}.values()) or list(op.writes)
        tensors = tuple(value.ref() for value in results)
        self._add(name, tensors[0] if len(tensors) == 1 else tensors)

    def _returned(self, call: Call, out: Any) -> None:
        self._name_all()
        assert self._namer is not None
        self._add(self._namer.call(call), out)

    def _name_all(self) -> str:
        """Name what has come since the last time; returns the name of the latest operation."""
        record, namer = self._record, self._namer
        assert record is not None
        assert namer is not None
        calls, ops = self._named
        for call in record.calls[calls:]:
            namer.add_call(call)
            self.known.append(namer.call(call))
        for op in record.ops[ops:]:
            self.known.append(namer.op(op))
        self._named = len(record.calls), len(record.ops)
        return self.known[-1] if record.ops else ""


def only_tensor(arguments: tuple[tuple[Any, ...], Mapping[str, Any]]) -> Any:
    """The tensor among some arguments; a tuple where there are several."""
    tensors = tuple(tensor for _, tensor in walk(arguments))
    return tensors[0] if len(tensors) == 1 else tensors
