"""Whether a submodule is called only once in a forward, as far as the code of the model proves it.

The proof is by reading: from the model down to the submodule, each module's `forward` must use `self` for nothing but
plain attributes and calls, and must call the next module on the path in just one place, outside of any loop. What
can't be read or is written in another way proves nothing.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from torch import nn

_REPEATING = (
    ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda,
    ast.FunctionDef, ast.AsyncFunctionDef,
)  # fmt: skip


def is_called_once(model: nn.Module, name: str) -> bool:
    """Whether one forward of `model` calls the submodule `name` at most once. False where that is not sure."""
    target = model.get_submodule(name)
    holders = [module for module in model.modules() for child in module._modules.values() if child is target]
    if len(holders) != 1:
        return False
    parent = model
    for step in name.split("."):
        if not _calls_once(parent, step):
            return False
        parent = parent._modules[step]  # type: ignore[assignment]
    return True


def _calls_once(module: nn.Module, child: str) -> bool:
    cls = type(module)
    if isinstance(vars(module).get("forward"), FunctionType) or module._forward_hooks or module._forward_pre_hooks:
        return False
    if cls.forward is nn.Sequential.forward:
        return True
    uses = _uses(cls, "forward", frozenset())  # type: ignore[arg-type] # mypy takes `Module.__hash__` for the class's own
    return uses is not None and [use for use in uses if use[0] == child] == [(child, True)]


@functools.cache
def _uses(cls: type, method: str, callers: frozenset[str]) -> tuple[tuple[str, bool], ...] | None:
    """The attributes of `self` that a method uses, each with whether that is one call of it, outside of loops.

    Methods that it calls are read too. None where `self` is used in another way, or the code can't be read.
    """
    found: list[tuple[str, bool]] = []
    tree = _source(getattr(cls, method, None))
    if tree is None or method in callers or not tree.args.args:
        return None
    me = tree.args.args[0].arg
    for node, parents in _nodes(tree):
        if not (isinstance(node, ast.Name) and node.id == me):
            continue
        holder = parents[-1]
        if not isinstance(holder, ast.Attribute):
            return None
        is_call = len(parents) > 1 and isinstance(parents[-2], ast.Call) and parents[-2].func is holder
        is_single = is_call and not any(isinstance(parent, _REPEATING) for parent in parents[1:])
        if callable(getattr(cls, holder.attr, None)):
            inner = _uses(cls, holder.attr, callers | {method}) if is_call else None
            if inner is None:
                return None
            found.extend((name, once and is_single) for name, once in inner)
        else:
            found.append((holder.attr, is_single))
    return tuple(found)


def _source(function: Any) -> ast.FunctionDef | None:
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):  # no source, or one that is no statement by itself
        return None
    return tree if isinstance(tree, ast.FunctionDef) and not tree.decorator_list else None


def _nodes(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """All nodes of a tree, each with those around it, outermost first."""
    todo: list[tuple[ast.AST, list[ast.AST]]] = [(tree, [])]
    while todo:
        node, parents = todo.pop()
        yield node, parents
        todo.extend((child, [*parents, node]) for child in ast.iter_child_nodes(node))
