"""Read out, cut out and replace parts of a model, by the names in the picture.

`get_layers`, `Inspect`, `get_nodes` and `Extract` take the arguments of surgeon-pytorch and give its answers, in the
shape of the request; `patched` replaces.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx, nn

from torchatlas import query
from torchatlas.capture import Enough, Tap, Watch, listen, split_call_number
from torchatlas.cut import Cut
from torchatlas.functions import plain_name
from torchatlas.names import unknown_name
from torchatlas.once import is_called_once
from torchatlas.replace import Met, replaced_ends, replaced_in_modules, replaced_operations, replaced_parameters
from torchatlas.symbolic import SymbolicCut, cut_symbolically, reset_default_tracer, set_default_tracer, trace_graph
from torchatlas.trace import Trace, trace

Names = str | Sequence[str] | Mapping[str, str]
"""One name, several, or a mapping from names to what they are to be called in the answer."""


def get_layers(model: nn.Module) -> list[str]:
    """Names of all submodules, in the order in which they are registered.

    Example:
        >>> get_layers(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        ['0', '1']
    """
    return [name for name, _ in model.named_modules()][1:]


class Inspect(nn.Module):
    """A model that also gives values from its inside.

    The values are the user's own tensors, with their autograd history, as they were at that point of the forward: one
    that is written into afterwards is given as a copy.

    Args:
        model: the model; it runs as it always does, on its own parameters.
        layer: what to give: a name, a list or tuple of names, or a mapping from names to new ones. A name is that of a
            submodule (`layer1`, for what it returns; a list of values where it is called several times), of one call of
            it (`layer1:2`), of what it is given (`layer1.in`), or of anything else in `trace(model, ...).hierarchy`: an
            operation (`layer1.relu`), a parameter, an input. What is no module is found by tracing the forward, which
            costs more. Globs (`layer*`) and queries (`op:softmax in:encoder`) give a dict of all they find, without
            modules that are not called.
        keep_output: give the model's output too. Without it, the forward ends as soon as all that was asked for is
            there: for a call or an operation at once; for a module by its plain name as soon as it is sure, from the
            model's code or from an earlier forward, that it is called only once.
        retain_grad: have the backward pass leave the gradients of the values in their `.grad`.

    Raises:
        TypeError: `layer` is none of these.
        ValueError: a name does not exist; the closest ones are named.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        >>> y, x = Inspect(model, layer="0")(torch.ones(1, 2))
        >>> bool((y == x.relu()).all())
        True
    """

    def __init__(self, model: nn.Module, layer: Names, keep_output: bool = True, *, retain_grad: bool = False) -> None:
        super().__init__()
        if not isinstance(layer, (str, list, tuple, Mapping)):
            raise TypeError(f"layer must be str, list, tuple, or dict, got {type(layer).__name__}")
        self.model = model
        self.layer = layer
        self.keep_output = keep_output
        self.retain_grad = retain_grad
        self._called_once: set[str] = set()
        self._found: dict[str, list[str]] = {}
        for name in [layer] if isinstance(layer, str) else layer:
            self._found[name] = self._modules_meant(name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model.

        Returns:
            `(output, values)`, or the values alone without `keep_output`; the values in the shape of `layer`.

        Raises:
            ValueError: a name does not exist in this forward.
            RuntimeError: a module that is asked for was not called.
        """
        meant = self._resolve(args, kwargs)
        names = [name for found in meant.values() for name in found]
        taps = {name: tap for name in names if (tap := self._tap(name)) is not None}
        traced = [name for name in names if name not in taps]
        watch = Watch(traced, lambda: self._stop_if_done(taps, watch), retain_grad=self.retain_grad)
        output = None
        has_ended = True
        handles: list[Any] = []
        try:
            handles.extend(
                listen(self.model, taps.values(), lambda: self._stop_if_done(taps, watch), retain_grad=self.retain_grad)
            )
            output = watch.run(self.model, args, kwargs) if traced else self.model(*args, **kwargs)
        except Enough:
            has_ended = False
        finally:
            for handle in handles:
                handle.remove()
        if has_ended:
            self._learn(taps)
        exact = {name for asked, found in meant.items() if not query.is_pattern(asked) for name in found}
        values = {name: tap.answer() for name, tap in taps.items() if tap.values or name in exact}
        for name in traced:
            if name not in watch.values:
                raise unknown_name(name, watch.known)
            values[name] = watch.values[name].settle()
        answer = self._shaped(meant, values)
        return (output, answer) if self.keep_output else answer

    def _resolve(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, list[str]]:
        """Each requested name with the names it stands for."""
        if all(self._found.values()):
            return self._found
        recorded = trace(self.model, args, kwargs)
        found = {}
        for name, names in self._found.items():
            found[name] = names or recorded.find(name)
            if not found[name]:
                raise ValueError(f"the query {name!r} finds nothing (all names: trace.hierarchy)")
        return found

    def _modules_meant(self, name: str) -> list[str]:
        """The names that a requested name stands for; none where that takes a trace to tell."""
        if self._tap(name) is not None:
            return [name]
        if not query.is_pattern(name):
            if not _may_be_in_trace(self.model, name):
                raise unknown_layer(name, self.model)
            return [name]
        matches = query.glob_matcher(name)
        return [layer for layer in get_layers(self.model) if matches(layer)] if query.has_wildcard(name) else []

    def _tap(self, name: str) -> Tap | None:
        """Where a value can be had from a module's hook; None where it takes a trace."""
        base = name.removesuffix(".in")
        fqn, number = (base, None) if _has_module(self.model, base) else split_call_number(base)
        if fqn == "" or not _has_module(self.model, fqn):
            is_model = base == type(self.model).__name__ and base != name  # what it returns is there at the end only
            return Tap("", None, is_input=True) if is_model else None
        return Tap(fqn, number, is_input=base != name)

    def _stop_if_done(self, taps: Mapping[str, Tap], watch: Watch) -> None:
        if self.keep_output or len(watch.values) < len(watch.names):
            return
        if all(tap.is_filled(self._is_called_once) for tap in taps.values()):
            raise Enough

    def _is_called_once(self, name: str) -> bool:
        return name in self._called_once or is_called_once(self.model, name)

    def _learn(self, taps: Mapping[str, Tap]) -> None:
        for tap in taps.values():
            if tap.count == 1:
                self._called_once.add(tap.name)
            else:
                self._called_once.discard(tap.name)

    def _shaped(self, meant: Mapping[str, list[str]], values: Mapping[str, Any]) -> Any:
        """The values in the shape of the request."""
        found: dict[str, Any] = {}
        for name, names in meant.items():
            there = {each: values[each] for each in names if each in values}
            if not there:
                raise RuntimeError(f"none of the modules that {name!r} stands for was called in this forward")
            found[name] = there if query.is_pattern(name) else there[names[0]]
        layer = self.layer
        if isinstance(layer, str):
            return found[layer]
        if isinstance(layer, Mapping):
            return {new: found[old] for old, new in layer.items()}
        rows = [found[name] for name in layer]
        return tuple(rows) if isinstance(layer, tuple) else rows


def get_nodes(
    model: nn.Module,
    tracer: type[fx.Tracer] | None = None,
    concrete_args: Mapping[str, Any] | None = None,
    inputs: Any = None,
    kwargs: Mapping[str, Any] | None = None,
) -> list[str]:
    """Names of the inputs, functions and leaf modules of a model, in order; between them `Extract` can cut.

    Args:
        model: the model.
        tracer: the symbolic tracer; by default `torch.fx.Tracer`, or what `set_tracer` was given.
        concrete_args: arguments of the forward that are to be constants, see `torch.fx.Tracer.trace`.
        inputs, kwargs: arguments for one forward, as for `trace`. With them the forward is run and recorded instead of
            traced symbolically, so that any model will do.

    Example:
        >>> get_nodes(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), inputs=torch.ones(1, 2))
        ['input', '0', '1']
    """
    if inputs is None and kwargs is None:
        return list(trace_graph(model, tracer, concrete_args)[1].values())
    return _recorded_nodes(trace(model, () if inputs is None else inputs, kwargs))


def _recorded_nodes(recorded: Trace) -> list[str]:
    """Inputs, operations outside of leaf modules, and calls of leaf modules, in order of execution."""
    graph, record = recorded.graph, recorded.record
    leaf_of: dict[int, int | None] = {}
    for call in record.calls:  # callers come first
        above = None if call.parent is None else leaf_of[call.parent.index]
        leaf_of[call.index] = call.index if above is None and call.index and _is_leaf(call.module) else above
    names = [graph.nodes[index].name for index in graph.inputs]
    rows = [node for node in graph.nodes if node.kind in ("op", "opaque")]
    found = dict.fromkeys(names)
    for node in rows:
        leaf = None if node.call is None else leaf_of[node.call]
        found[node.name if leaf is None else graph.calls[leaf].name] = None
    return list(found)


def _is_leaf(module: Any) -> bool:
    """Whether a module is one whose inside `torch.fx` does not show either."""
    is_of_torch = type(module).__module__.startswith(("torch.nn.", "torch.ao.nn."))
    return is_of_torch and not isinstance(module, (nn.Sequential, nn.DataParallel))


def Extract(
    model: nn.Module,
    node_in: Names | None = None,
    node_out: Names | None = None,
    tracer: type[fx.Tracer] | None = None,
    concrete_args: Mapping[str, Any] | None = None,
    keep_output: bool | None = None,
    share_modules: bool = False,
    inputs: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    replace: Mapping[str, Any] | None = None,
) -> SymbolicCut | Cut:
    """A part of a model, as a module of its own.

    Args:
        model: the model; it stays as it is.
        node_in: nodes whose results become inputs: a name, a list or tuple of names, or a mapping from names to what
            the inputs are to be called. Inputs of the model that are still needed stay inputs.
        node_out: nodes whose results are given, in the shape of the request; by default what the model returns.
        tracer, concrete_args: see `get_nodes`.
        keep_output: give what the model returns, too, before what `node_out` asks for; by default only where `node_out`
            is not given.
        share_modules: hold the model's own parameters, so that training the part trains the model; else copies.
        inputs, kwargs: arguments for one forward, as for `trace`. Without them the model is traced symbolically: for
            static models, and inputs of any shape. With them the part is cut out of one recorded forward: of any model,
            between any names in `trace(model, inputs).hierarchy` (`layer1:2` for the second call of a module,
            `layer1.in` for what it is given), globs and queries of them; for inputs of these shapes. What is fixed by
            the recording is in `guards`.
        replace: with inputs: names, each with what takes the place of its value in the part, as for `patched`: a tensor
            (what only led to the value is left out of the part then), a function or a module. The part is checked
            against the recorded forward with the same replacements, for which the functions are called.

    Returns:
        The part: with `summary`, which names inputs and outputs, and `code`. Without inputs a `torch.fx.GraphModule`.

    Raises:
        ValueError: a name does not exist; the closest ones are named. Or a replacement has no effect on the part, or
            comes without inputs.
        RuntimeError: the part does not give the very bits that the recorded forward gave.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
        >>> Extract(model, node_in="0", inputs=torch.ones(1, 2)).summary
        {'input': ('0',), 'output': output}
    """
    keeps = node_out is None if keep_output is None else keep_output
    if inputs is not None or kwargs is not None:
        recorded = trace(model, () if inputs is None else inputs, kwargs)
        return recorded.extract(node_in, node_out, keep_output=keeps, share_modules=share_modules, replace=replace)
    if replace:
        raise ValueError("replace: values are replaced in a recorded forward, so give `inputs`, too")
    return cut_symbolically(
        model,
        node_in,
        node_out,
        tracer,
        concrete_args,
        keep_output=keeps,
        share_modules=share_modules,
        unknown=lambda name, known: unknown_name(name, known, where="get_nodes(model)"),
    )


@contextlib.contextmanager
def patched(model: nn.Module, replace: Mapping[str, Any]) -> Iterator[nn.Module]:
    """Have a model work with other values, for as long as the `with` block lasts; whatever happens, it is undone.

    Args:
        model: the model.
        replace: names, as for `Inspect`, each with what is put in the place of its value: a tensor, or a function of
            the value (what a module returns, what an operation gives, with `.in` what a module is given). A module's
            plain name stands for each of its calls, `layer1:2` for the second; inputs and outputs of the model go by
            their names in a trace (`x`, `output.logits`), the model itself by its class. Globs (`h.*.mlp`) stand for
            all submodules that they match, or, if there are none, for all operations. Where operations are named, each
            forward in the block is traced, which costs more.

    Yields:
        The model.

    Raises:
        ValueError: a name does not exist; the closest ones are named. At the end of the block, if a forward ran and did
            not come by something that is named.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
        >>> with patched(model, {"0": torch.zeros_like}):
        ...     model(torch.ones(1, 2))
        tensor([[0., 0.]])
    """
    sorted_out = _sorted_out(model, replace)
    met = Met()
    runs: list[int] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced_parameters(model, sorted_out.parameters, met))
        stack.enter_context(replaced_in_modules(model, sorted_out.modules, met))
        if sorted_out.ends:
            stack.enter_context(replaced_ends(model, sorted_out.ends, met))
        if sorted_out.operations:
            stack.enter_context(replaced_operations(model, sorted_out.operations, met))
        stack.callback(model.register_forward_hook(lambda *_: runs.append(threading.get_ident())).remove)
        yield model
    if threading.get_ident() in runs:
        for name, meant in sorted_out.meant.items():
            if met.done.isdisjoint(meant):
                raise _not_met(name, meant, sorted_out, met, model)


def _not_met(name: str, meant: Sequence[str], sorted_out: _SortedOut, met: Met, model: nn.Module) -> ValueError:
    """The error for a replacement that no forward came by."""
    if meant[0] not in sorted_out.modules:
        return unknown_name(name, [*get_layers(model), *met.known], where="trace(model, inputs).hierarchy")
    count = met.calls.get(name, 0)
    times = f"was called {count} times only" if count else "was not called"
    return ValueError(
        f"nothing took the place of {name!r}: the module {times}; a module that is called in another way than "
        "`module(...)`, or in another thread, is not seen"
    )


class _SortedOut(NamedTuple):
    """Replacements by how they are made.

    Attributes:
        ends: of inputs and outputs of the model.
        meant: each name as the user wrote it with those that it stands for, of which one at least must be met.
    """

    modules: dict[str, Any]
    parameters: dict[str, Any]
    ends: dict[str, Any]
    operations: dict[str, Any]
    meant: dict[str, list[str]]


def _sorted_out(model: nn.Module, replace: Mapping[str, Any]) -> _SortedOut:
    found = _SortedOut({}, {}, {}, {}, {})
    layers = {type(model).__name__, *dict(model.named_modules(remove_duplicate=False))}
    owned = {name for name, _ in (*model.named_parameters(), *model.named_buffers())}
    arguments = _arguments(model)
    for name, new in replace.items():
        base, first = name.removesuffix(".in"), name.split(".")[0].split("[")[0]
        names = [name]
        if base and (base in layers or split_call_number(base)[0] in layers):
            found.modules[name] = new
        elif name in owned:
            found.parameters[name] = new
        elif query.has_wildcard(name):
            matches = query.glob_matcher(base)
            names = [f"{layer}{name[len(base) :]}" for layer in get_layers(model) if matches(layer)] or [name]
            kind = found.operations if names == [name] else found.modules
            kind.update(dict.fromkeys(names, new))
        elif query.is_pattern(name):
            raise ValueError(
                f"{name!r} is a query, and those take a trace: give the names that trace.find({name!r}) gives"
            )
        elif first in ("output", "args", *(parameter.name for parameter in arguments)):
            found.ends[name] = new
        elif _may_be_in_trace(model, name):
            found.operations[name] = new
        elif any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in arguments):
            found.ends[name] = new
        else:
            raise unknown_layer(name, model)
        found.meant[name] = names
    return found


def _arguments(model: nn.Module) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):  # callables made in C may have no signature
        return []


def set_tracer(tracer: type[fx.Tracer]) -> None:
    """Have models traced symbolically by another class, where `get_nodes` and `Extract` are given none.

    Raises:
        TypeError: `tracer` is no subclass of `torch.fx.Tracer`.
    """
    set_default_tracer(tracer)


def reset_tracer() -> None:
    """Have models traced symbolically by `torch.fx.Tracer` again."""
    reset_default_tracer()


def unknown_layer(name: str, model: nn.Module) -> ValueError:
    """The error for a name that no part of a model has."""
    return unknown_name(name, get_layers(model), where="get_layers(model)")


def _has_module(model: nn.Module, name: str) -> bool:
    """Whether a model has a submodule of a name; "" is the model itself."""
    module = model
    for step in name.split(".") if name else ():
        child = module._modules.get(step)
        if child is None:
            return False
        module = child
    return True


def _may_be_in_trace(model: nn.Module, name: str) -> bool:
    """Whether a name may be that of something in a trace: of an operation, an input, a parameter, an output."""
    last = name.rpartition(".")[2].split("[")[0]
    plain, _, number = last.rpartition("_")
    words = {last, plain} if number.isdigit() else {last}
    owned = {key for key, _ in (*model.named_parameters(), *model.named_buffers())}
    classes = {type(module).__name__ for module in model.modules()}
    first = name.split(".")[0].split("[")[0]
    return bool(
        name in owned
        or first in ("output", "args", "kwargs")
        or first in _argument_names(model)
        or words & classes
        or words & _operation_names()
    )


def _argument_names(model: nn.Module) -> set[str]:
    code = getattr(type(model).forward, "__code__", None)
    return set(code.co_varnames) if code is not None else set()


def _operation_names() -> frozenset[str]:
    """Plain names that operations may have."""
    return _torch_names() | {cls.__name__ for cls in _subclasses(torch.autograd.Function)}


def _subclasses(cls: type) -> list[type]:
    children: list[type] = cls.__subclasses__()
    return [each for child in children for each in (child, *_subclasses(child))]


@functools.cache
def _torch_names() -> frozenset[str]:
    spaces = (torch, torch.Tensor, nn.functional, torch.fft, torch.linalg, torch.special)
    names = {plain_name(name) for space in spaces for name in dir(space)}
    registered = torch._C._dispatch_get_all_op_names()
    return frozenset(names | {plain_name(name.rpartition("::")[2].split(".")[0]) for name in registered} | {"identity"})
