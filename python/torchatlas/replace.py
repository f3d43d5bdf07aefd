"""Put other values in the place of those that a forward works out: ablation, steering, patching."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from torchatlas.arguments import named_arguments
from torchatlas.builder import values_in
from torchatlas.capture import only_tensor, split_call_number
from torchatlas.exchange import new_tensors, new_value
from torchatlas.names import Names
from torchatlas.points import Point, as_template
from torchatlas.query import glob_matcher, has_wildcard
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
        if any(found[key] is not by_value[key] for key in point.handed_on & found.keys()):
            raise ValueError(
                f"{point.name!r} can't be replaced in a recorded forward: the module hands on the very tensor that it "
                "is given, so whoever reads the one later can't be told from who reads the other; use patched, or "
                "replace what makes the tensor"
            )
        return [found[id(value)] for value in values]

    return Replacement(values, make, point.end)


class Met:
    """What a forward came by.

    Attributes:
        done: names whose values were replaced.
        known: names of inputs, operations and outputs that were there.
        calls: number of calls of each module that has a replacement, in the forward that runs or ran last.
    """

    def __init__(self) -> None:
        self.done: set[str] = set()
        self.known: dict[str, None] = {}
        self.calls: dict[str, int] = {}


@contextlib.contextmanager
def replaced_in_modules(model: nn.Module, replacements: Mapping[str, Any], met: Met) -> Iterator[None]:
    """Have calls of modules give, or get, other values. The model itself goes by its class."""
    ident = threading.get_ident()
    modules = dict(model.named_modules(remove_duplicate=False))
    modules.setdefault(type(model).__name__, model)
    with contextlib.ExitStack() as stack:
        # Calls are numbered anew in each forward of the model.
        stack.callback(model.register_forward_pre_hook(lambda *_: met.calls.clear(), prepend=True).remove)
        for name, new in replacements.items():
            base = name.removesuffix(".in")
            fqn, number = (base, None) if base in modules else split_call_number(base)
            hook = _hook(name, new, number, lambda: threading.get_ident() == ident, met)
            if base == name:
                handle = modules[fqn].register_forward_hook(lambda _m, _a, out, hook=hook: hook(out))
            else:
                handle = modules[fqn].register_forward_pre_hook(_input_hook(hook), with_kwargs=True)
            stack.callback(handle.remove)
        yield


def _hook(name: str, new: Any, number: int | None, is_here: Callable[[], bool], met: Met) -> Callable[[Any], Any]:
    def hook(value: Any) -> Any:
        if not is_here():
            return None
        met.calls[name] = met.calls.get(name, 0) + 1
        if number not in (None, met.calls[name]):
            return None
        met.done.add(name)
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
def replaced_ends(model: nn.Module, replacements: Mapping[str, Any], met: Met) -> Iterator[None]:
    """Have a model get other inputs, or give other outputs, by the names that they have in a trace of the model."""
    ident = threading.get_ident()
    forward = model.forward

    def renewed(name: str, value: Any, first_names: dict[int, str]) -> Any:
        made: dict[int, torch.Tensor] = {}
        rows = list(walk(value, name))
        for position, (path, tensor) in enumerate(rows):
            first = first_names.setdefault(id(tensor), path)
            asked = path if path in replacements else first
            met.known[first] = None
            if asked in replacements:
                made[position] = new_value(asked, tensor, replacements[asked])
                met.done.add(asked)
        tensors = iter([made.get(position, tensor) for position, (_, tensor) in enumerate(rows)])
        return put_together(take_apart(value, lambda _: next(tensors)), lambda tensor: tensor) if made else value

    def before(_module: nn.Module, args: Any, kwargs: Any) -> Any:
        if threading.get_ident() != ident:
            return None
        first_names: dict[int, str] = {}  # in a trace, a tensor that is given twice goes by its first place
        values = [renewed(name, value, first_names) for name, value in named_arguments(forward, args, kwargs)]
        return tuple(values[: len(args)]), dict(zip(kwargs, values[len(args) :], strict=True))

    def after(_module: nn.Module, _args: Any, out: Any) -> Any:
        return renewed("output", out, {}) if threading.get_ident() == ident else None

    with contextlib.ExitStack() as stack:
        stack.callback(model.register_forward_pre_hook(before, with_kwargs=True, prepend=True).remove)
        stack.callback(model.register_forward_hook(after).remove)
        yield


@contextlib.contextmanager
def replaced_parameters(model: nn.Module, replacements: Mapping[str, Any], met: Met) -> Iterator[None]:
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
            met.done.add(name)
        yield
    finally:
        for holder, key, tensor in places:
            holder[key] = tensor


@contextlib.contextmanager
def replaced_operations(model: nn.Module, replacements: Mapping[str, Any], met: Met) -> Iterator[None]:
    """Have operations of a model give other results, by names and globs; while this lasts, each forward is traced."""
    forward = model.forward
    ident = threading.get_ident()

    def traced(*args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != ident:
            return forward(*args, **kwargs)
        exchange = _Exchange(replacements, met)
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

    def __init__(self, replacements: Mapping[str, Any], met: Met) -> None:
        self.replacements = replacements
        self.met = met
        self.globs = [(glob_matcher(name), name) for name in replacements if has_wildcard(name)]

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
        self.met.known[name] = None
        asked = name if name in self.replacements else next((glob for fits, glob in self.globs if fits(name)), None)
        if asked is None:
            return out
        self.met.done.add(asked)
        if not op.writes:
            return new_value(name, out, self.replacements[asked])
        written = op.writes[0].ref()
        written.copy_(new_value(name, written, self.replacements[asked]))
        return out
