"""Put other values in the place of those that a forward works out: ablation, steering, patching."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from torchatlas.builder import values_in
from torchatlas.capture import only_tensor, split_call_number
from torchatlas.cutting import Point, as_template
from torchatlas.exchange import new_tensors, new_value
from torchatlas.names import Names
from torchatlas.record import Op
from torchatlas.replay import Replacement
from torchatlas.structure import put_together, take_apart, walk
from torchatlas.tracer import Tracer


def replacement(point: Point, new: Any) -> Replacement:
    """How the values at a point of a record are exchanged in a replay."""
    values = list({id(value): value for value in values_in(point.shape)}.values())
    template = as_template(point.shape).mapped(id)

    def make(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        by_value = {id(value): tensor for value, tensor in zip(values, tensors, strict=True)}
        found = new_tensors(point.name, template, by_value, new)
        return [found[id(value)] for value in values]

    return Replacement(values, make, point.end)


@contextlib.contextmanager
def replaced_in_modules(model: nn.Module, replacements: Mapping[str, Any], done: set[str]) -> Iterator[None]:
    """Have calls of submodules give, or get, other values; the names that took effect are added to `done`."""
    ident = threading.get_ident()
    counts: dict[str, int] = {}
    modules = dict(model.named_modules(remove_duplicate=False))
    with contextlib.ExitStack() as stack:
        # Calls are numbered anew in each forward of the model.
        stack.callback(model.register_forward_pre_hook(lambda *_: counts.clear(), prepend=True).remove)
        for name, new in replacements.items():
            base = name.removesuffix(".in")
            fqn, number = (base, None) if base in modules else split_call_number(base)
            hook = _hook(name, new, number, lambda: threading.get_ident() == ident, counts, done)
            if base == name:
                handle = modules[fqn].register_forward_hook(lambda _m, _a, out, hook=hook: hook(out))
            else:
                handle = modules[fqn].register_forward_pre_hook(_input_hook(hook), with_kwargs=True)
            stack.callback(handle.remove)
        yield


def _hook(
    name: str, new: Any, number: int | None, is_here: Callable[[], bool], counts: dict[str, int], done: set[str]
) -> Callable[[Any], Any]:
    def hook(value: Any) -> Any:
        if not is_here():
            return None
        counts[name] = counts.get(name, 0) + 1
        if number not in (None, counts[name]):
            return None
        done.add(name)
        return new_value(name, value, new)

    return hook


def _input_hook(hook: Callable[[Any], Any]) -> Callable[[nn.Module, Any, Any], Any]:
    def before(_module: nn.Module, args: Any, kwargs: Any) -> Any:
        made = hook(only_tensor((args, kwargs)))
        if made is None:
            return None
        tensors = iter([tensor for _, tensor in walk(made)])
        return put_together(take_apart((args, kwargs), lambda _: next(tensors)), lambda tensor: tensor)

    return before


@contextlib.contextmanager
def replaced_parameters(model: nn.Module, replacements: Mapping[str, Any], done: set[str]) -> Iterator[None]:
    """Have a model use other tensors as parameters and buffers, wherever it holds them."""
    owned: dict[str, torch.Tensor] = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    places: list[tuple[dict[str, Any], str, Any]] = [
        (holder, key, tensor)
        for module in model.modules()
        for holder in (module._parameters, module._buffers)
        for key, tensor in holder.items()
    ]
    try:
        for name, new in replacements.items():
            made = new_value(name, owned[name], new)
            for holder, key, tensor in places:
                if tensor is owned[name]:
                    holder[key] = made
            done.add(name)
        yield
    finally:
        for holder, key, tensor in places:
            holder[key] = tensor


@contextlib.contextmanager
def replaced_operations(model: nn.Module, replacements: Mapping[str, Any], done: set[str]) -> Iterator[None]:
    """Have operations of a model give other results; while this lasts, each forward is traced."""
    forward = model.forward
    ident = threading.get_ident()

    def traced(*args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != ident:
            return forward(*args, **kwargs)
        exchange = _Exchange(replacements, done)
        tracer = Tracer(forward, keep_state_changes=True, exchange=exchange)
        exchange.begin(tracer)
        return tracer.run(args, kwargs)

    had_own = "forward" in vars(model)
    model.forward = traced
    try:
        yield
    finally:
        if had_own:
            model.forward = forward
        else:
            del model.forward


class _Exchange:
    """Gives operations other results, by the names that they have in a trace of the model."""

    def __init__(self, replacements: Mapping[str, Any], done: set[str]) -> None:
        self.replacements = replacements
        self.done = done

    def begin(self, tracer: Tracer) -> None:
        """Learn of the tracer whose operations are to be named."""
        self.record = tracer.record
        self.names = Names(tracer.record)
        self.seen = (0, 0)

    def __call__(self, op: Op, out: Any) -> Any:
        calls, ops = self.seen
        self.seen = len(self.record.calls), len(self.record.ops)
        for call in self.record.calls[calls:]:
            self.names.add_call(call)
        name = [self.names.op(each) for each in self.record.ops[ops:]][-1]
        if name not in self.replacements:
            return out
        self.done.add(name)
        if not op.writes:
            return new_value(name, out, self.replacements[name])
        written = op.writes[0].ref()
        written.copy_(new_value(name, written, self.replacements[name]))
        return out
