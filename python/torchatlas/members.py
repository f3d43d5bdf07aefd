"""What a model is made of: its modules under their names, and tensors that it keeps as plain attributes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchatlas.structure import walk

_MODULE_INTERNALS = frozenset(vars(nn.Module()))


def _modules(model: Any, target: Any) -> list[tuple[str, nn.Module]]:
    return [row for prefix, root in roots(model, target) for row in named_modules(root, prefix)]


def named_modules(root: nn.Module, prefix: str) -> list[tuple[str, nn.Module]]:
    """What `root.named_modules()` gives, in its order, without its recursion."""
    found: list[tuple[str, nn.Module]] = []
    seen: set[int] = set()
    todo: list[tuple[str, nn.Module]] = [(prefix, root)]
    while todo:
        name, module = todo.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        found.append((name, module))
        if module._modules:
            dot = name + "." if name else ""
            todo.extend([(dot + key, child) for key, child in reversed(module._modules.items()) if child is not None])
    return found


def roots(model: Any, target: Any) -> list[tuple[str, nn.Module]]:
    """Modules whose parts are to have names: the model, or what a traced function closes over."""
    if isinstance(model, nn.Module):
        return [("", model)]
    names = getattr(getattr(target, "__code__", None), "co_freevars", ())
    cells = zip(names, getattr(target, "__closure__", None) or (), strict=True)
    return [(name, cell.cell_contents) for name, cell in cells if isinstance(_contents_of(cell), nn.Module)]


def _contents_of(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a cell that is still empty
        return None


def attribute_paths(model: Any, target: Any) -> dict[int, tuple[torch.Tensor, str]]:
    """Tensors that the model's modules keep as plain attributes, or in containers there, by identity, with the path."""
    found: dict[int, tuple[torch.Tensor, str]] = {}
    for name, module in _modules(model, target):
        for attribute, kept in vars(module).items():
            path = f"{name}.{attribute}" if name else attribute
            if isinstance(kept, torch.Tensor):
                found.setdefault(id(kept), (kept, path))
            elif attribute in _MODULE_INTERNALS and attribute.startswith("_"):
                continue
            elif isinstance(kept, (list, tuple, dict)) or (
                hasattr(kept, "__dict__") and not isinstance(kept, nn.Module)
            ):
                for inner, tensor in walk(kept, path):
                    found.setdefault(id(tensor), (tensor, inner))
    return found
