"""Keep what a forward may change, and put it back.

These are the memory of leaves, their flags and gradients, attributes of modules, and random generators.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from torchatlas.attributes import Attributes
from torchatlas.settings import set_thread_settings, thread_settings
from torchatlas.tensors import storage_key


def random_states() -> dict[str, Any]:
    """States of all generators that a forward may draw from: torch's by device, Python's and numpy's."""
    states: dict[str, Any] = {"cpu": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_initialized():
        for index in range(torch.cuda.device_count()):
            states[f"cuda:{index}"] = torch.cuda.get_rng_state(index)
    if sys.modules.get("numpy.random") is not None:
        states["numpy"] = sys.modules["numpy.random"].get_state()
    return states


def set_random_states(states: dict[str, Any]) -> None:
    """Put back what `random_states` gave."""
    for name, state in states.items():
        if name == "cpu":
            torch.set_rng_state(state)
        elif name == "python":
            random.setstate(state)
        elif name == "numpy":
            sys.modules["numpy.random"].set_state(state)
        else:
            torch.cuda.set_rng_state(state, name)


class Preserved:
    """What a forward has changed so far, as it was before; `restore()` puts it back.

    Leaves are tensors that live longer than the forward: parameters, buffers, inputs, module attributes. Their memory
    is copied just before the first write into it, so a forward that writes nothing costs nothing. `restore()` may be
    called again after an interruption.
    """

    def __init__(self) -> None:
        self.random = random_states()
        self._settings = thread_settings()
        self._leaves: list[torch.Tensor] = []
        self._keys: set[int] | None = None
        self._memory: dict[int, tuple[Any, Any, list[tuple[torch.Tensor, int]]]] = {}
        self._data: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._flags: dict[int, tuple[torch.Tensor, bool, bool]] = {}
        self._shapes: dict[int, tuple[torch.Tensor, Any]] = {}
        self._gradients: list[tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]] | None = None
        self._generators: dict[int, tuple[torch.Generator, torch.Tensor]] = {}
        self._attributes: list[Attributes] = []

    def add_leaf(self, tensor: torch.Tensor) -> None:
        """Watch over one more leaf."""
        self._leaves.append(tensor)
        if self._keys is not None:
            key = storage_key(tensor)
            if key is not None:
                self._keys.add(key)

    def add_modules(self, modules: Iterable[nn.Module], bound: Iterable[nn.Module]) -> None:
        """Watch over the attributes of modules: of the first what their containers hold, too."""
        self._attributes.append(Attributes(modules, bound))

    def add_generator(self, generator: torch.Generator) -> torch.Tensor:
        """Watch over a generator given as argument; returns its state."""
        known = self._generators.get(id(generator))
        if known is None:
            known = self._generators[id(generator)] = (generator, generator.get_state())
        return known[1]

    def before_write(self, tensor: torch.Tensor) -> None:
        """To be called before anything is written into a tensor, leaf or not."""
        key = storage_key(tensor)
        if self._keys is None:
            self._keys = {found for leaf in self._leaves if (found := storage_key(leaf)) is not None}
        if key is None or key not in self._keys or key in self._memory:
            return
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            self._keep_memory(tensor, key)

    def _keep_memory(self, tensor: torch.Tensor, key: int) -> None:
        storage = tensor.untyped_storage()
        if storage.device.type == "meta":
            return
        sharing = [(leaf, _version(leaf)) for leaf in self._leaves if storage_key(leaf) == key]
        for leaf, _ in sharing:
            self._shapes.setdefault(id(leaf), (leaf, _geometry(leaf)))
            self._flags.setdefault(id(leaf), (leaf, leaf.requires_grad, leaf.is_leaf))
        self._memory[key] = (storage, storage.clone(), sharing)

    def before_data(self, tensor: torch.Tensor) -> None:
        """To be called before `tensor.data = ...`."""
        with torch._C.DisableTorchFunction():
            self._data.setdefault(id(tensor), (tensor, tensor.data))

    def before_flag(self, tensor: torch.Tensor) -> None:
        """To be called before `requires_grad` or `.grad` of a leaf is set."""
        self._flags.setdefault(id(tensor), (tensor, tensor.requires_grad, tensor.is_leaf))
        self.before_backward((tensor,))

    def before_backward(self, leaves: Iterable[torch.Tensor] | None = None) -> None:
        """To be called before a backward pass adds to `.grad` of leaves."""
        known = self._gradients = [] if self._gradients is None else self._gradients
        seen = {id(row[0]) for row in known}
        for leaf in self._leaves if leaves is None else leaves:
            if id(leaf) not in seen and leaf.is_leaf:
                gradient = leaf.grad
                known.append((leaf, gradient, None if gradient is None else gradient.detach().clone()))

    def restore(self, *, keep_changes: bool = False) -> None:
        """Put everything back; with `keep_changes` only the thread's settings."""
        if not keep_changes:
            for kept in self._attributes:
                kept.restore()
            self._restore_tensors()
            set_random_states(self.random)
            for generator, state in self._generators.values():
                generator.set_state(state)
        set_thread_settings(self._settings)

    def _restore_tensors(self) -> None:
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), torch.no_grad():
            for tensor, data in self._data.values():
                tensor.data = data
            for storage, saved, sharing in self._memory.values():
                if storage.nbytes() != saved.nbytes():
                    storage.resize_(saved.nbytes())
                storage.copy_(saved)
                for leaf, version in sharing:
                    _set_version(leaf, version)
            for tensor, geometry in self._shapes.values():
                if geometry is not None and _geometry(tensor) != geometry:
                    tensor.set_(tensor.untyped_storage(), geometry[0], geometry[1], geometry[2])
            for leaf, gradient, saved_gradient in self._gradients or ():
                if gradient is not None and saved_gradient is not None:
                    gradient.copy_(saved_gradient)
                leaf.grad = gradient
            for tensor, requires_grad, was_leaf in self._flags.values():
                if was_leaf and not tensor.is_leaf and not tensor._is_view():  # views can't be cut off in place
                    tensor.detach_()
                if tensor.is_leaf and tensor.requires_grad != requires_grad:
                    tensor.requires_grad_(requires_grad)


def _geometry(tensor: torch.Tensor) -> tuple[Any, Any, Any] | None:
    if tensor.layout is not torch.strided or tensor.is_nested:
        return None
    return tensor.storage_offset(), tensor.size(), tensor.stride()


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _set_version(tensor: torch.Tensor, version: int) -> None:
    """Set back the version counter, so that a graph the user built before still accepts the tensor in backward."""
    if version >= 0 and tensor._version != version:
        torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))
