"""Keep the Python attributes of modules as they are, and put them back.

A forward may count its calls, cache a mask, or leave its attention maps in an attribute. What an attribute is bound to
is kept, and what lists, dictionaries and sets held; objects further inside are the user's own affair.
"""

from __future__ import annotations

import operator
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

_CONTAINERS = frozenset[type]((dict, list, set, deque, OrderedDict, defaultdict))


def are_restorable(cls: type) -> bool:
    """Whether attributes of modules of a class can be put back.

    Lazy modules become what they are for good, by a change of their class; scripted ones keep theirs outside Python.
    """
    return not issubclass(cls, (LazyModuleMixin, torch.jit.ScriptModule))


class Attributes:
    """The attributes of some modules, as they are now.

    Args:
        modules: modules whose containers are looked into, too.
        bound: modules of which only the bindings are kept, parameters and buffers among them.
    """

    def __init__(self, modules: Iterable[nn.Module], bound: Iterable[nn.Module]) -> None:
        self._kept: list[tuple[dict[str, Any], dict[str, Any], list[tuple[Any, Any]]]] = []
        for module in modules:
            own = vars(module)
            parts = [(part, part.copy() if part else None) for part in own.values() if type(part) in _CONTAINERS]
            self._kept.append((own, own.copy(), parts))
        for module in bound:
            own = vars(module)
            parts = [(part, part.copy()) for part in (module._parameters, module._buffers) if part]
            self._kept.append((own, own.copy(), parts))

    def restore(self) -> None:
        """Put back what has changed since. May be called again."""
        for own, attributes, containers in self._kept:
            if not _is_same(own, attributes):
                for name in [name for name in own if name not in attributes]:
                    del own[name]
                own.update(attributes)
            for container, contents in containers:
                if contents is None:
                    if container:
                        container.clear()
                elif not _is_same(container, contents):
                    _refill(container, contents)


def _is_same(now: Any, before: Any) -> bool:
    """Whether a container holds the very objects that it held, in the same order."""
    if len(now) != len(before) or not all(map(operator.is_, now, before)):
        return False
    return not isinstance(now, dict) or all(map(operator.is_, now.values(), before.values()))


def _refill(container: Any, contents: Any) -> None:
    container.clear()
    if isinstance(container, (list, deque)):
        container.extend(contents)
    else:
        container.update(contents)
