"""Walk, take apart and rebuild nested values: arguments, outputs, anything that may hold tensors.

Lists, tuples (named ones too), mappings, dataclasses and plain objects are entered; modules, classes, callables and
everything without tensors inside are leaves. Attributes are read from the instance's own storage, so no property of a
user's object ever runs. Nothing here recurses: values may be nested as deep as they like.
"""

from __future__ import annotations

import copy
import dataclasses
import types
from collections import OrderedDict, UserDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

_LIST_ITERATORS: tuple[type[Any], ...] = (type(iter([])), type(iter(())))
_LEAVES = (
    str, bytes, int, float, complex, bool, type(None), type, nn.Module, torch.dtype, torch.device, torch.Size,
    torch.Generator, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType,
    types.GeneratorType, types.CodeType, types.FrameType, types.TracebackType,
)  # fmt: skip


@dataclasses.dataclass(slots=True)
class _Hole:
    """Where a tensor was."""

    stand_in: Any


@dataclasses.dataclass(slots=True)
class _Fixed:
    """A part without tensors, kept as it is."""

    value: Any


@dataclasses.dataclass(slots=True)
class _Container:
    """A container that has tensors inside, with what is needed to build one like it."""

    how: str
    type: type
    keys: tuple[Any, ...]
    children: list[Any]
    factory: Any = None


@dataclasses.dataclass(slots=True)
class Template:
    """A nested value without its tensors; where each tensor was there is a stand-in.

    Attributes:
        root: the outermost part.
        containers: all containers, each before those inside it.
    """

    root: Any
    containers: list[_Container]

    def stand_ins(self) -> list[Any]:
        """The stand-ins, in the order in which `walk` gives the tensors."""
        return [stand_in for _, stand_in in self.paths("")]

    def paths(self, root: str) -> list[tuple[str, Any]]:
        """Pairs of path and stand-in, in order; a container that occurs twice is entered once."""
        found: list[tuple[str, Any]] = []
        todo: list[tuple[str, Any]] = [(root, self.root)]
        seen: set[int] = set()
        while todo:
            path, part = todo.pop()
            if isinstance(part, _Hole):
                found.append((path, part.stand_in))
            elif isinstance(part, _Container) and id(part) not in seen:
                seen.add(id(part))
                steps = zip(part.keys, part.children, strict=True)
                todo.extend(reversed([(path + _step_text(part.how, key), child) for key, child in steps]))
        return found

    def mapped(self, stand_in: Callable[[Any], Any]) -> Template:
        """A copy with other stand-ins, each made of the one before."""
        copies: dict[int, Any] = {}

        def renewed(part: Any) -> Any:
            return _Hole(stand_in(part.stand_in)) if isinstance(part, _Hole) else copies.get(id(part), part)

        for row in reversed(self.containers):
            copies[id(row)] = dataclasses.replace(row, children=[])
        for row in self.containers:
            copies[id(row)].children = [renewed(child) for child in row.children]
        return Template(renewed(self.root), [copies[id(row)] for row in self.containers])

    def plain_parts(self, root: str) -> list[tuple[str, Any]]:
        """Path and value of each number, text, flag or None that the value holds, in order."""
        found: list[tuple[str, Any]] = []
        todo: list[tuple[str, Any]] = [(root, self.root)]
        while todo:
            path, part = todo.pop()
            if isinstance(part, _Container):
                steps = zip(part.keys, part.children, strict=True)
                todo.extend(reversed([(path + _step_text(part.how, key), child) for key, child in steps]))
            elif isinstance(part, _Fixed) and isinstance(part.value, (int, float, str, bool, type(None))):
                found.append((path, part.value))
            elif isinstance(part, _Fixed) and isinstance(part.value, (list, tuple, dict)):
                how, keys, children = _contents(part.value)
                inside = zip(keys, children, strict=True)
                todo.extend(reversed([(path + _step_text(how, key), _Fixed(child)) for key, child in inside]))
        return found


def walk(value: Any, root: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Give `(path, tensor)` for every tensor in a nested value, in order.

    A container that occurs twice is entered once; a tensor that occurs twice is given twice. The iterator of a list
    is looked into without being advanced.

    Args:
        value: anything.
        root: how paths begin, for example the name of the argument.
    """
    todo: list[tuple[str, Any]] = [(root, value)]
    seen: dict[int, Any] = {}
    while todo:
        path, part = todo.pop()
        if isinstance(part, torch.Tensor):
            yield path, part
        elif not isinstance(part, _LEAVES) and id(part) not in seen:
            seen[id(part)] = part
            how, keys, children = _contents(part)
            steps = zip(keys, children, strict=True)
            found = [(key, c) for key, c in steps if isinstance(c, torch.Tensor) or not isinstance(c, _LEAVES)]
            todo.extend((path + _step_text(how, key), child) for key, child in reversed(found))


def take_apart(value: Any, stand_in: Callable[[torch.Tensor], Any]) -> Template:
    """Replace every tensor of a nested value by `stand_in(tensor)`; the result holds no tensor.

    Containers without tensors inside are kept by reference. `put_together` is the inverse.
    """
    containers: list[_Container] = []
    known: dict[int, Any] = {}
    holder: list[Any] = [None]
    todo: list[tuple[Any, list[Any], int]] = [(value, holder, 0)]
    while todo:
        part, place, position = todo.pop()
        if isinstance(part, torch.Tensor):
            place[position] = _Hole(stand_in(part))
        elif isinstance(part, _LEAVES):
            place[position] = _Fixed(part)
        elif id(part) in known:
            place[position] = known[id(part)]
        else:
            how, keys, children = _contents(part)
            if next(walk(part), None) is None:
                place[position] = known[id(part)] = _Fixed(part)
                continue
            row = _Container(how, type(part), keys, [None] * len(children), getattr(part, "default_factory", None))
            known[id(part)] = place[position] = row
            containers.append(row)
            todo.extend((child, row.children, index) for index, child in reversed(list(enumerate(children))))
    return Template(holder[0], containers)


def storage_template(stand_in: Any, cls: type) -> Template:
    """The template of a storage: what `put_together` gives is the storage of the tensor that stands in."""
    row = _Container("storage", cls, ("storage",), [_Hole(stand_in)])
    return Template(row, [row])


def put_together(template: Template, value_of: Callable[[Any], Any]) -> Any:
    """Rebuild the nested value of a template, each stand-in replaced by `value_of(stand_in)`."""
    built: dict[int, Any] = {id(row): _shell(row) for row in template.containers}

    def resolve(part: Any) -> Any:
        if isinstance(part, _Hole):
            return value_of(part.stand_in)
        return built[id(part)] if isinstance(part, _Container) else part.value

    for row in reversed(template.containers):
        values = [resolve(child) for child in row.children]
        if row.how in ("tuple", "namedtuple"):
            built[id(row)] = _make_tuple(row.type, values)
        elif row.how == "storage":
            built[id(row)] = _storage_of(values[0], row.type)
        else:
            _fill(built[id(row)], row, values)
    return resolve(template.root)


def _step_text(how: str, key: Any) -> str:
    """How one step into a container is written in a path: `.logits`, `[0]`, `['a b']`."""
    is_name = isinstance(key, str) and key.isidentifier()
    return f".{key}" if is_name and how != "list" else f"[{key!r}]"


def _contents(part: Any) -> tuple[str, tuple[Any, ...], list[Any]]:
    """How a container is built, its keys and its children; no keys for a leaf."""
    if isinstance(part, list):
        return "list", tuple(range(len(part))), list(part)
    if isinstance(part, tuple):
        names = getattr(type(part), "_fields", None)
        if isinstance(names, tuple) and len(names) == len(part):
            return "namedtuple", names, list(part)
        return "tuple", tuple(range(len(part))), list(part)
    if isinstance(part, dict):
        return "dict", tuple(dict.keys(part)), list(dict.values(part))
    if isinstance(part, UserDict):
        return "userdict", tuple(part.data), list(part.data.values())
    if isinstance(part, _LIST_ITERATORS):
        rest = list(copy.copy(part))
        return "list", tuple(range(len(rest))), rest
    own = getattr(part, "__dict__", None)
    if isinstance(own, dict):
        return "object", tuple(own), list(own.values())
    if dataclasses.is_dataclass(part):
        names = tuple(f.name for f in dataclasses.fields(part) if hasattr(part, f.name))
        return "object", names, [getattr(part, name) for name in names]
    return "", (), []


def _shell(row: _Container) -> Any:
    """An empty container of the row's class, made without running its `__init__`."""
    if row.how in ("tuple", "namedtuple", "storage"):
        return None
    if row.how == "list":
        return row.type.__new__(row.type) if issubclass(row.type, list) else []
    if issubclass(row.type, defaultdict):
        return row.type(row.factory)
    shell: Any = row.type.__new__(row.type)
    if row.how == "userdict":
        shell.data = {}
    return shell


def _fill(shell: Any, row: _Container, values: list[Any]) -> None:
    if row.how == "list":
        list.extend(shell, values)
        return
    pairs = list(zip(row.keys, values, strict=True))
    if row.how == "userdict":
        shell.data.update(pairs)
    elif row.how == "object":
        for name, value in pairs:
            object.__setattr__(shell, name, value)
    else:
        set_item = OrderedDict.__setitem__ if isinstance(shell, OrderedDict) else dict.__setitem__
        for key, value in pairs:
            set_item(shell, key, value)
        if dataclasses.is_dataclass(row.type):  # transformers' ModelOutput keeps its items as attributes too
            fields = {f.name: f.default for f in dataclasses.fields(row.type) if f.default is not dataclasses.MISSING}
            vars(shell).update({**fields, **{key: value for key, value in pairs if isinstance(key, str)}})


def _storage_of(tensor: torch.Tensor, cls: type) -> Any:
    storage = tensor.untyped_storage()
    return (
        storage
        if isinstance(storage, cls)
        else torch.TypedStorage(wrap_storage=storage, dtype=tensor.dtype, _internal=True)
    )


def _make_tuple(cls: type, values: list[Any]) -> Any:
    if cls is tuple:
        return tuple(values)
    if hasattr(cls, "_make"):
        return cls._make(values)
    try:
        return cls(values)
    except TypeError:  # a tuple subclass with an __init__ of its own, such as PackedSequence
        return tuple.__new__(cls, values)
