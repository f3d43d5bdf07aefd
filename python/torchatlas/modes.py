"""The modes by which torch lets us see what runs: one for its Python API, two at its dispatcher."""

from __future__ import annotations

import contextlib
from typing import Any, Protocol

import torch
import torch.overrides
import torch.utils._python_dispatch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from torchatlas.functions import SILENT_WRITERS, Function, describe, known
from torchatlas.state import Preserved
from torchatlas.structure import walk
from torchatlas.tensors import storage_key


class Recorder(Protocol):
    """What the modes call."""

    busy: int

    def operation(self, info: Function, func: Any, args: Any, kwargs: Any, level: str) -> Any:
        """Run one operation and record it."""


class Functions(TorchFunctionMode):
    """Sees every call through torch's Python API."""

    def __init__(self, tracer: Recorder) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tracer = self.tracer
        info = known.get(func) or describe(func)
        if info.is_metadata or tracer.busy:
            return func(*args, **kwargs) if kwargs else func(*args)
        return tracer.operation(info, func, args, kwargs or {}, "function")


class DispatchMode(TorchDispatchMode):
    """A dispatch mode that torch leaves as it is: by default it would import its compiler, which takes seconds."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]


class Gap(DispatchMode):
    """Sees what runs at the dispatcher outside any recorded function."""

    def __init__(self, tracer: Recorder) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tracer = self.tracer
        if tracer.busy:
            return func(*args, **(kwargs or {}))
        return tracer.operation(describe(func), func, args, kwargs or {}, "dispatch")


class Watch(DispatchMode):
    """Notes what operators write into, and has it kept before."""

    def __init__(self, preserved: Preserved) -> None:
        super().__init__()
        self.preserved = preserved
        self.written: set[int | None] = set()
        self.error: BaseException | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        schema = getattr(func, "_schema", None)
        if schema is not None:
            for tensor in written_by(schema, args, kwargs):
                self.preserved.before_write(tensor)
                self.written.add(storage_key(tensor))
        try:
            return func(*args, **kwargs)
        except BaseException as error:
            self.error = error
            raise


def written_by(schema: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Tensors among an operator's arguments that it writes into."""
    silent = SILENT_WRITERS.get(schema.name)
    if silent is not None:
        positions, training = silent
        if len(args) > training and args[training]:
            return [args[position] for position in positions if isinstance(args[position], torch.Tensor)]
        return []
    if not schema.is_mutable:
        return []
    found: list[torch.Tensor] = []
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[position] if position < len(args) else kwargs.get(argument.name)
            found.extend(tensor for _, tensor in walk(given))
    return found


def close_interrupted(error: BaseException) -> None:
    """Let torch's interrupted `with` blocks end now.

    Torch takes a function mode off its stack in a generator that puts it back when it is closed. An asynchronous
    KeyboardInterrupt on the way into such a block leaves the generator open until the exception's frames are freed,
    and the mode would come back long after the trace. Frames of torch's own bookkeeping are freed here; the user's
    frames are left for a debugger.
    """
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        part = todo.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        todo += [part.__cause__, part.__context__]
        trace = part.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename in _BOOKKEEPING:
                with contextlib.suppress(RuntimeError):  # a frame that still runs ends by itself
                    trace.tb_frame.clear()
            trace = trace.tb_next


_BOOKKEEPING = frozenset((torch.overrides.__file__, contextlib.__file__, torch.utils._python_dispatch.__file__))
