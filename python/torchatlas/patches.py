"""The process-wide patches of tracing, there only while a trace runs and inert for all other threads.

Replaced are `nn.Module._call_impl`, to see module calls (`__call__` would do as well, but setting it makes Python
update every subclass); `autograd.Function.apply`, to keep a custom Function whole; and
`torch.overrides.has_torch_function`, because torch leaves its fast paths of attention, and so changes the numbers,
while any function mode is active. Two functions of `torch.jit._trace` are, to keep whole what its author marked as not
to be traced through (`script_if_tracing`) and what loops as often as the data says, such as torchvision's suppression
of boxes class by class. So is the `forward` of the traced model's classes, to see `module.forward(x)`, and the
`initialize_parameters` of lazy ones, which is no part of the forward. What is installed follows from which tracers are
active, so that an interruption at any instant is repaired by calling `sync()` again.
"""

from __future__ import annotations

import dis
import functools
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Protocol

import torch
import torch.jit._trace
import torch.overrides
from torch import nn
from torch.autograd import Function


class Listener(Protocol):
    """What the patches call."""

    methods: frozenset[tuple[type, str]]
    busy: int

    def is_open(self, module: nn.Module, forward: Any) -> bool:
        """Whether a `forward` belongs to a call that is open already."""

    def module_call(self, module: nn.Module, run: Callable[..., Any], args: Any, kwargs: Any, forward: Any) -> Any:
        """Run a module call under the listener's eyes."""

    def whole(self, name: str, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a function as one operation."""

    def function_apply(self, cls: type, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run `cls.apply` under the listener's eyes."""


_lock = threading.RLock()
_active: dict[int, tuple[Listener, ...]] = {}
_MISSING = object()
_saved: dict[tuple[Any, str], Any] = {}


def listeners() -> tuple[Listener, ...]:
    """The tracers of the calling thread, outermost first."""
    return _active.get(threading.get_ident(), ())


def add(listener: Listener) -> None:
    """Begin to call a listener in the calling thread."""
    with _lock:
        ident = threading.get_ident()
        if listener not in _active.get(ident, ()):
            _active[ident] = (*_active.get(ident, ()), listener)
        sync()


def remove(listener: Listener) -> None:
    """Stop calling a listener. May be called again after an interruption, and for one that never was added."""
    with _lock:
        ident = threading.get_ident()
        rest = tuple(other for other in _active.get(ident, ()) if other is not listener)
        if rest:
            _active[ident] = rest
        else:
            _active.pop(ident, None)
        sync()


def sync() -> None:
    """Make what is installed agree with who is active."""
    with _lock:
        wanted = dict(_wanted(listener for group in _active.values() for listener in group))
        for owner, name in [key for key in _saved if key not in wanted]:
            original = _saved[owner, name]
            if original is _MISSING:
                if name in vars(owner):
                    delattr(owner, name)
            else:
                setattr(owner, name, original)
            del _saved[owner, name]
        for (owner, name), make in wanted.items():
            if (owner, name) not in _saved:
                found = vars(owner).get(name, _MISSING)
                replacement = make(getattr(owner, name) if found is _MISSING else found)
                _saved[owner, name] = found
                setattr(owner, name, replacement)


def original_of(owner: Any, name: str) -> Any:
    """What an attribute is without our patches."""
    found = _saved.get((owner, name), _MISSING)
    return getattr(owner, name) if found is _MISSING else found


def _wanted(active: Iterable[Listener]) -> Iterable[tuple[tuple[Any, str], Callable[[Any], Any]]]:
    methods: set[tuple[type, str]] = set()
    is_any = False
    for listener in active:
        is_any = True
        methods |= listener.methods
    if is_any:
        yield (nn.Module, "_call_impl"), _watching_call
        yield (Function, "apply"), _watching_apply
        yield (torch.overrides, "has_torch_function"), _ignoring_modes
        yield (torch.jit._trace, "is_tracing"), _asked_by_a_loop
        yield (torch.jit._trace, "script"), _keeping_loops_whole
    for cls, name in methods:
        yield (cls, name), _watching_forward if name == "forward" else _out_of_sight


def _watching_call(original: Any) -> Any:
    @functools.wraps(original)
    def _call_impl(self: Any, *args: Any, **kwargs: Any) -> Any:
        active = _active.get(threading.get_ident())
        if not active:
            return original(self, *args, **kwargs)
        if len(active) == 1:
            return active[0].module_call(self, original, args, kwargs, None)
        run = original
        for listener in active[:-1]:
            run = _nested(listener, run, None)
        return active[-1].module_call(self, run, args, kwargs, None)

    return _call_impl


def _watching_forward(original: Any) -> Any:
    @functools.wraps(original)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        active = _active.get(threading.get_ident())
        if not active or (len(active) == 1 and active[0].is_open(self, original)):
            return original(self, *args, **kwargs)
        run = original
        for listener in active[:-1]:
            run = _nested(listener, run, original)
        return active[-1].module_call(self, run, args, kwargs, original)

    return forward


def _nested(listener: Listener, run: Any, forward: Any) -> Any:
    return lambda module, *args, **kwargs: listener.module_call(module, run, args, kwargs, forward)


def _watching_apply(original: Any) -> Any:
    @functools.wraps(getattr(original, "__func__", original))
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        run = original.__get__(None, cls)
        active = _active.get(threading.get_ident())
        if not active:
            return run(*args, **kwargs)
        for listener in active[:-1]:
            run = _nested_apply(listener, cls, run)
        return active[-1].function_apply(cls, run, args, kwargs)

    return classmethod(apply)


def _out_of_sight(original: Any) -> Any:
    @functools.wraps(original)
    def hidden(self: Any, *args: Any, **kwargs: Any) -> Any:
        active = _active.get(threading.get_ident(), ())
        for listener in active:
            listener.busy += 1
        try:
            return original(self, *args, **kwargs)
        finally:
            for listener in active:
                listener.busy -= 1

    return hidden


def _nested_apply(listener: Listener, cls: type, run: Any) -> Any:
    return lambda *args, **kwargs: listener.function_apply(cls, run, args, kwargs)


def _ignoring_modes(original: Any) -> Any:
    @functools.wraps(original)
    def has_torch_function(relevant_args: Any) -> bool:
        if not _active.get(threading.get_ident()):
            return bool(original(relevant_args))
        return any(_overrides(arg) for arg in relevant_args)

    return has_torch_function


def _asked_by_a_loop(original: Any) -> Any:
    @functools.wraps(original)
    def is_tracing() -> bool:
        return _marked_loop(sys._getframe(1)) is not None or bool(original())

    return is_tracing


def _keeping_loops_whole(original: Any) -> Any:
    @functools.wraps(original)
    def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
        loop = _marked_loop(sys._getframe(1))
        if loop is None:
            return original(obj, *args, **kwargs)
        run = loop
        active = _active.get(threading.get_ident(), ())
        for listener in active:
            run = _nested_whole(listener, loop.__name__, run)
        return run

    return script


def _nested_whole(listener: Listener, name: str, run: Any) -> Any:
    return lambda *args, **kwargs: listener.whole(name, run, args, kwargs)


_MARKED = torch.jit._trace._script_if_tracing(lambda: None).__code__


def _marked_loop(frame: FrameType) -> Any:
    """What a `script_if_tracing` wrapper in this frame is about to run, if that loops and a tracer is active."""
    if frame.f_code is not _MARKED or not _active.get(threading.get_ident()):
        return None
    function = frame.f_locals.get("fn")
    code = getattr(function, "__code__", None)
    loops = code is not None and any(
        step.opname in ("FOR_ITER", "JUMP_BACKWARD") for step in dis.get_instructions(code)
    )
    return function if loops else None


def _overrides(arg: Any) -> bool:
    """Whether torch would ask the argument's own class, modes left aside."""
    cls = type(arg)
    if cls is torch.Tensor or cls is nn.Parameter:
        return False
    method = getattr(cls, "__torch_function__", None)
    return method is not None and method is not torch._C._disabled_torch_function_impl
