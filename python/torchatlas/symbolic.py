"""Cut a model by symbolic tracing, without running it: for static models, where no inputs are at hand.

The graph comes from torch.fx; here nodes get the names that the picture has, and its ends are moved. What torch.fx
can't trace (control flow that depends on data, most models of transformers) is cut on a recorded forward, see `cut`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import fx, nn

Names = str | Sequence[str] | Mapping[str, str]
UnknownName = Callable[[str, list[str]], ValueError]
_default: list[type[fx.Tracer]] = [fx.Tracer]


def set_default_tracer(tracer: type[fx.Tracer]) -> None:
    """Have graphs traced by another class where none is given."""
    if not (isinstance(tracer, type) and issubclass(tracer, fx.Tracer)):
        raise TypeError(f"tracer must be a subclass of torch.fx.Tracer, got {tracer!r:.80}")
    _default[0] = tracer


def reset_default_tracer() -> None:
    """Have graphs traced by `torch.fx.Tracer` again."""
    _default[0] = fx.Tracer


def trace_graph(
    model: nn.Module, tracer: type[fx.Tracer] | None, concrete_args: Mapping[str, Any] | None
) -> tuple[fx.Graph, dict[fx.Node, str]]:
    """Trace a model symbolically.

    Returns:
        The graph, and the names of its inputs, functions, methods and leaf modules, in order.
    """
    naming = _naming(tracer or _default[0])()
    graph = naming.trace(model, concrete_args=None if concrete_args is None else dict(concrete_args))
    alive = set(graph.nodes)
    return graph, {node: name for node, name in naming.node_names.items() if node in alive}


def _naming(base: type[fx.Tracer]) -> type[Any]:
    """A tracer class that names nodes as the picture does: by the module call that they are in."""

    class NamingTracer(base):  # type: ignore[valid-type,misc] # the base is chosen at run time
        def __init__(self) -> None:
            super().__init__()
            self.node_names: dict[fx.Node, str] = {}
            self._module_names: frozenset[str] = frozenset()
            self._calls = [""]
            self._times: dict[str, int] = {}
            self._taken: set[str] = set()

        def trace(self, root: Any, *args: Any, **kwargs: Any) -> fx.Graph:
            self._module_names = frozenset(name for name, _ in root.named_modules() if name)
            return super().trace(root, *args, **kwargs)

        def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
            path = self.path_of_module(m)
            self._times[path] = self._times.get(path, 0) + 1
            self._calls.append(path if self._times[path] == 1 else f"{path}:{self._times[path]}")
            try:
                return super().call_module(m, forward, args, kwargs)
            finally:
                self._calls.pop()

        def create_node(self, kind: str, *args: Any, **kwargs: Any) -> fx.Node:
            node = super().create_node(kind, *args, **kwargs)
            if kind == "placeholder":
                self.node_names[node] = node.name
            elif kind == "call_module":
                self.node_names[node] = self._calls[-1]
            elif kind in ("call_function", "call_method"):
                self.node_names[node] = self._operation_name(node)
            return node

        def _operation_name(self, node: fx.Node) -> str:
            # torch.fx has put a number behind the names it gave before; `log_softmax` ends in none.
            plain = re.sub(r"_\d+$", "", node.name)
            base = f"{self._calls[-1]}.{plain}" if self._calls[-1] else plain
            name, number = base, 0
            while name in self._taken or name in self._module_names:
                number += 1
                name = f"{base}_{number}"
            self._taken.add(name)
            return name

    return NamingTracer


class SymbolicCut(fx.GraphModule):
    """A part of a model as a `torch.fx.GraphModule`: it prints its code, and holds only the modules that it calls.

    Made by `Extract`. It runs on any inputs that the model's code, traced symbolically, accepts.
    """

    @property
    def summary(self) -> dict[str, Any]:
        """`input`: names of the inputs that are needed, in order; `output`: what is given, as it was asked for."""
        nodes = list(self.graph.nodes)
        output = next(node for node in nodes if node.op == "output")
        return {"input": tuple(node.target for node in nodes if node.op == "placeholder"), "output": output.args[0]}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, super().__reduce__()


def _rebuilt(make: Callable[..., fx.GraphModule], arguments: tuple[Any, ...]) -> SymbolicCut:
    module = make(*arguments)
    return SymbolicCut(module, module.graph)


def cut_symbolically(
    model: nn.Module,
    node_in: Names | None,
    node_out: Names | None,
    tracer: type[fx.Tracer] | None,
    concrete_args: Mapping[str, Any] | None,
    *,
    keep_output: bool,
    share_modules: bool,
    unknown: UnknownName,
) -> SymbolicCut:
    """The part of a model between some nodes; see `Extract` for the arguments.

    Args:
        unknown: makes the error for a name that no node has, from the name and those that exist.
    """
    model = model if share_modules else copy.deepcopy(model)
    graph, names = trace_graph(model, tracer, concrete_args)
    node_by_name: dict[str, fx.Node] = {}
    for node, name in names.items():
        node_by_name.setdefault(name, node)
    for node in names:
        if node.op == "placeholder":  # torch.fx calls an input `input_1` where `input` would hide a name of Python's
            node_by_name.setdefault(str(node.target), node)

    def found(name: str) -> fx.Node:
        if name not in node_by_name:
            raise unknown(name, list(node_by_name))
        return node_by_name[name]

    if node_out is not None:
        _replace_output(graph, _shaped(node_out, found), keep_output=keep_output)
    if node_in is not None:
        _replace_inputs(graph, node_in, found)
    _erase_unneeded(graph, keeps_inputs=node_in is None)
    _name_inputs(graph)
    graph.lint()
    return SymbolicCut(model, graph)


def _shaped(request: Names, found: Callable[[str], fx.Node]) -> Any:
    """The nodes of a request, in its shape."""
    if isinstance(request, str):
        return found(request)
    if isinstance(request, Mapping):
        return {new: found(old) for old, new in request.items()}
    rows = [found(name) for name in request]
    return tuple(rows) if isinstance(request, tuple) else rows


def _replace_output(graph: fx.Graph, wanted: Any, *, keep_output: bool) -> None:
    old = next(node for node in graph.nodes if node.op == "output")
    given = old.args[0]
    graph.erase_node(old)
    graph.output((given, wanted) if keep_output else wanted)


def _replace_inputs(graph: fx.Graph, request: Names, found: Callable[[str], fx.Node]) -> None:
    names = [request] if isinstance(request, str) else list(request)
    for name in names:
        node = found(name)
        with graph.inserting_before(node):
            placeholder = graph.placeholder(request[name] if isinstance(request, Mapping) else node.name)
        node.replace_all_uses_with(placeholder)
        graph.erase_node(node)


def _name_inputs(graph: fx.Graph) -> None:
    """Call the inputs in the code what the caller calls them; the nodes they replace had those names until now."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    targets = [node.target for node in inputs]
    twice = {target for target in targets if targets.count(target) > 1}
    if twice:
        raise ValueError(f"two inputs would be called {sorted(twice)[0]!r}: give one of them another name")
    for node in graph.nodes:
        if node.op not in ("placeholder", "output") and node.name in targets:
            node._rename(f"{node.name}_inside")
    for node in inputs:
        if not node.target.startswith("*"):
            node.name = node.target


def _erase_unneeded(graph: fx.Graph, *, keeps_inputs: bool) -> None:
    """Erase what no output needs.

    torch.fx's own way keeps everything random, and drops writes whose result isn't read.
    """
    kept = {"output", "placeholder"} if keeps_inputs else {"output"}
    for node in reversed(graph.nodes):
        if node.op not in kept and not node.users and not _is_write_that_matters(node):
            graph.erase_node(node)


def _is_write_that_matters(node: fx.Node) -> bool:
    """Whether a node writes into something that is still read, itself or what it is a view of."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    is_operator = getattr(node.target, "__module__", "") == "_operator" and (name in _INPLACE or name == "setitem")
    is_write = node.op == "call_method" and name.endswith("_") and not name.endswith("__")
    if node.op not in ("call_method", "call_function") or not (is_write or is_operator):
        return False
    inner, target = node, node.args[0] if node.args else None
    while isinstance(target, fx.Node):
        if any(user is not inner for user in target.users):
            return True
        inner, target = target, target.args[0] if target.args else None
    return False


_INPLACE = frozenset(
    f"i{name}" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
)
