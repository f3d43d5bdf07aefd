"""How what the user gave becomes the call of the forward, and what its inputs are called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

_KEYWORD_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

_Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def function_name(function: Callable[..., Any]) -> str:
    """Name under which a traced callable is shown."""
    inner = getattr(function, "func", function)  # functools.partial
    name = getattr(inner, "__name__", None) or type(inner).__name__
    return "function" if name == "<lambda>" else str(name)


def call_arguments(target: Callable[..., Any], inputs: Any, kwargs: Mapping[str, Any] | None) -> _Arguments:
    """The positional and keyword arguments meant by `inputs` and `kwargs`.

    A tuple is splatted; a mapping whose keys all name keyword-passable parameters of the forward is passed as
    keywords; anything else, a list too, is one positional argument.

    Raises:
        TypeError: `kwargs` is no mapping with text keys, or names an argument that `inputs` names too.
    """
    if kwargs is not None and not (isinstance(kwargs, Mapping) and all(isinstance(key, str) for key in kwargs)):
        raise TypeError(f"kwargs must be a mapping from argument names to values, got {type(kwargs).__name__}")
    named = dict(kwargs or {})
    if isinstance(inputs, tuple) and type(inputs) is tuple:
        return inputs, named
    if isinstance(inputs, Mapping) and _are_keywords(target, inputs, named):
        both = sorted(set(inputs) & set(named))
        if both:
            raise TypeError(f"inputs and kwargs both give {', '.join(both)}")
        return (), {**dict(inputs), **named}
    return (inputs,), named


def _are_keywords(target: Callable[..., Any], inputs: Mapping[Any, Any], kwargs: Mapping[str, Any]) -> bool:
    parameters = _parameters(target)
    if not all(isinstance(key, str) for key in inputs):
        return False
    passable = {p.name for p in parameters if p.kind in _KEYWORD_KINDS}
    if set(inputs) <= passable:
        return True
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    required = {p.name for p in parameters if p.kind in _KEYWORD_KINDS and p.default is inspect.Parameter.empty}
    return takes_any and required <= {*inputs, *kwargs}


def named_arguments(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    """Pairs of name and value of each argument, named after the parameters of the forward."""
    positional = [p for p in _parameters(target) if p.kind not in (*_KEYWORD_KINDS[1:], inspect.Parameter.VAR_KEYWORD)]
    found: list[tuple[str, Any]] = []
    for index, arg in enumerate(args):
        parameter = positional[min(index, len(positional) - 1)] if positional else None
        if parameter is not None and parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            found.append((f"{parameter.name}[{index - len(positional) + 1}]", arg))
        elif parameter is not None and index < len(positional):
            found.append((parameter.name, arg))
        else:
            found.append((f"args[{index}]", arg))
    return [*found, *kwargs.items()]


def _parameters(target: Callable[..., Any]) -> list[inspect.Parameter]:
    function = target.forward if isinstance(target, nn.Module) else target
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # callables made in C may have no signature
        return []
