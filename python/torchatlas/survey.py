"""What a model is made of: the names of its modules, parameters and buffers, and the methods that call modules."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from torchatlas.attributes import are_restorable
from torchatlas.members import named_modules, roots


class Kind(NamedTuple):
    """What a call of a module has from the module's class."""

    name: str
    is_script: bool
    is_torch: bool
    is_restorable: bool


class Survey:
    """The parts of what is traced.

    Args:
        target: a module, a bound method of one, or any callable.

    Attributes:
        model: the module that is called; None for a plain function.
        paths: qualified name of each module, by the module's id.
        owned: each parameter and buffer with its kind and name, by the tensor's id.
        names: the same tensors by name.
        attributes: the modules whose attributes are to be kept: first those whose own forward may change them, then
            torch's own without hooks, which do not change theirs, but others may.
        kinds: what calls of modules have from their classes, as far as it was asked.
        methods: classes and names of their methods by which modules may be called, or made, without `__call__`.
    """

    def __init__(self, target: Any) -> None:
        self.model = target if isinstance(target, nn.Module) else getattr(target, "__self__", None)
        self.paths: dict[int, str] = {}
        self.owned: dict[int, tuple[torch.Tensor, str, str]] = {}
        self.names: dict[str, torch.Tensor] = {}
        self.attributes: tuple[list[nn.Module], list[nn.Module]] = [], []
        self.kinds: dict[type, Kind] = {}
        self.methods = self._look(target)

    def _look(self, target: Any) -> frozenset[tuple[type, str]]:
        """Learn the names of modules, parameters and buffers; returns the methods that are to be watched."""
        methods: set[tuple[type, str]] = set()
        paths = self.paths
        changing, bound = self.attributes
        for prefix, root in roots(self.model, target):
            for name, module in named_modules(root, prefix):
                paths.setdefault(id(module), name)
                cls = type(module)
                kind = self.kinds.get(cls)
                if kind is None:
                    kind = self.kind_of(cls)
                    methods.update(_watched_methods(cls))
                if kind.is_restorable:
                    rebinds = not kind.is_torch or module._forward_pre_hooks or module._forward_hooks
                    (changing if rebinds else bound).append(module)
                if module._parameters:
                    self._own("parameter", name, module._parameters)
                if module._buffers:
                    self._own("buffer", name, module._buffers)
        return frozenset(methods)

    def kind_of(self, cls: type) -> Kind:
        """The `Kind` of a class; the answer is kept for this run."""
        is_torch = issubclass(cls, nn.Module) and cls.__module__.startswith("torch.nn.")
        is_script = issubclass(cls, torch.jit.ScriptModule)
        made = self.kinds[cls] = Kind(cls.__name__, is_script, is_torch, are_restorable(cls))
        return made

    def _own(self, kind: str, module: str, found: Mapping[str, torch.Tensor | None]) -> None:
        """Learn the names of a module's parameters or buffers; the first name of a tensor is the one it keeps."""
        owned, names = self.owned, self.names
        for key, tensor in found.items():
            if tensor is not None and id(tensor) not in owned:
                path = f"{module}.{key}" if module else key
                owned[id(tensor)] = (tensor, kind, path)
                names[path] = tensor


def _watched_methods(cls: type) -> tuple[tuple[type, str], ...]:
    """The classes' methods by which modules of a class may be called, or made, without `__call__`."""
    found: list[tuple[type, str]] = []
    for method in ("forward", "initialize_parameters") if issubclass(cls, LazyModuleMixin) else ("forward",):
        owner = next((c for c in cls.__mro__ if method in vars(c)), nn.Module)
        if owner is not nn.Module and isinstance(vars(owner)[method], FunctionType):
            found.append((owner, method))
    return tuple(found)
