"""Which value of the record stands for which tensor of a running forward, and which memory was written.

A tensor is known by its identity. One that turns up without having been made by an operation that was seen is a
parameter or buffer, an attribute of a module, a view that torch made unseen, or comes from outside torch.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
from torch import nn
from torch._C._functorch import is_functorch_wrapped_tensor

from torchatlas.members import attribute_paths
from torchatlas.record import Geometry, Memory, Nested, Op, Record, Value, Write
from torchatlas.state import Preserved
from torchatlas.structure import storage_template, take_apart, walk
from torchatlas.survey import Survey
from torchatlas.tensors import describe_tensor, geometry_of, storage_key

_Tensor, _Parameter = torch.Tensor, nn.Parameter
_ref = weakref.ref
ATOMS = frozenset((
    int, float, bool, str, type(None), torch.dtype, torch.device, torch.Size, type(...), complex, bytes,
    torch.memory_format, torch.layout, BuiltinFunctionType, FunctionType, type,
))  # fmt: skip
_STORAGES = frozenset((torch.UntypedStorage, torch.TypedStorage))


class Identities:
    """The values of one run.

    Args:
        record: the record of the run.
        target: what is traced.
        survey: what it is made of.
        preserved: is told of tensors that the forward did not make, for it to put them back.
        begin_alias: makes the operation of a view that torch made unseen, from the function that makes it.

    Attributes:
        values: the value for each tensor, by the tensor's id; the tensor may be gone, see `Value.ref`.
        met_wrapped: whether a tensor of a transform of `torch.func` was met since this was last set to false.
    """

    def __init__(
        self, record: Record, target: Any, survey: Survey, preserved: Preserved, begin_alias: Callable[[Any], Op]
    ) -> None:
        self._record = record
        self._target = target
        self._survey = survey
        self._preserved = preserved
        self._begin_alias = begin_alias
        self._attributes: dict[int, tuple[torch.Tensor, str]] | None = None
        self._by_storage: dict[int, list[tuple[Value, Geometry | None]]] | None = None
        self._held: list[Any] = []
        self.values: dict[int, Value] = {}
        self.met_wrapped = False

    def close(self) -> None:
        """Forget the tensors. May be called again."""
        while self._held:
            torch.UntypedStorage._free_weak_ref(self._held.pop())
        self.values = {}
        self._by_storage = None
        self._attributes = None

    def adopt(self, value: Value, tensor: torch.Tensor) -> Value:
        """Make a value stand for a tensor object."""
        value.ref = _ref(tensor)
        cls = type(tensor)
        if cls is _Tensor or cls is _Parameter:
            describe_tensor(value, tensor)
        else:
            with torch._C.DisableTorchFunctionSubclass():
                describe_tensor(value, tensor)
                if tensor.is_nested:  # jagged ones have a size that is no number
                    value.shape = None
        self.values[id(tensor)] = value
        if self._by_storage is not None:
            self._index(value, tensor)
        return value

    def value_of(self, tensor: torch.Tensor) -> Value:
        """The value that stands for a tensor; one that was never seen is made out to be a leaf or a hidden view."""
        value = self.values.get(id(tensor))
        if value is not None and value.ref() is tensor:
            return value
        with torch._C.DisableTorchFunction():
            return self.meet(tensor)

    def meet(self, tensor: torch.Tensor) -> Value:
        """The value of a tensor that was never seen; to be called with torch functions disabled."""
        owned = self._survey.owned.get(id(tensor))
        if owned is not None:
            return self.adopt(self._leaf(owned[1], owned[2], tensor), tensor)
        self.met_wrapped = self.met_wrapped or is_functorch_wrapped_tensor(tensor)
        key = storage_key(tensor)
        if self._by_storage is None:
            self._index_all()
        assert self._by_storage is not None
        for value, geometry in reversed(self._by_storage.get(key, ()) if key is not None else ()):
            if value.dtype == tensor.dtype:
                return self._hidden_view(tensor, value, geometry)
        path = self._attribute_path(tensor)
        value = self._leaf("constant", path, tensor)
        if path is None:
            value.note = "came from outside torch"
        self._preserved.add_leaf(tensor)
        return self.adopt(value, tensor)

    def _attribute_path(self, tensor: torch.Tensor) -> str | None:
        """Where in the model's modules a tensor is kept as a plain attribute; None if nowhere when first asked."""
        if self._attributes is None:
            self._attributes = attribute_paths(self._survey.model, self._target)
        kept, path = self._attributes.get(id(tensor), (None, None))
        return path if kept is tensor else None

    def _index_all(self) -> None:
        """Find values by storage from now on: needed as soon as one unknown tensor turns up."""
        self._by_storage = {}
        for value in list(self.values.values()):
            tensor = value.ref()
            if tensor is not None:
                self._index(value, tensor)
        for tensor, kind, name in self._survey.owned.values():
            if id(tensor) not in self.values:
                self.adopt(self._leaf(kind, name, tensor), tensor)

    def _index(self, value: Value, tensor: torch.Tensor) -> None:
        key = storage_key(tensor)
        if key is not None and self._by_storage is not None:
            self._by_storage.setdefault(key, []).append((value, geometry_of(tensor)))
            self._hold(tensor)

    def _hold(self, tensor: torch.Tensor) -> None:
        """Keep the address of a tensor's storage from being used again, without keeping its memory."""
        if type(tensor) in (_Tensor, _Parameter):
            self._held.append(tensor.untyped_storage()._weak_ref())
        else:
            with torch._C.DisableTorchFunctionSubclass():
                self._held.append(tensor.untyped_storage()._weak_ref())

    def _hidden_view(self, tensor: torch.Tensor, base: Value, geometry: Geometry | None) -> Value:
        """Record a view that torch made without a call that we could see."""
        here = geometry_of(tensor)
        source = base.ref() if base.ref is not None else base.tensor
        func: Callable[..., Any]
        rest: tuple[Any, ...]
        if source is None or here is None:
            func, rest = same, ()
        elif here == geometry:
            func, rest = (_Tensor.detach if source.requires_grad and not tensor.requires_grad else same), ()
        else:
            func, rest = torch.as_strided, (here.shape, here.stride, here.offset)
        if base.ref is None and source is not None:
            self.adopt(base, source)
        op = self._begin_alias(func)
        op.args, op.reads, op.status = (base, *rest), [base], "ok"
        if self._record.writes and source is not None:
            op.memory = self.memory_of([source], [base])
        value = Value("op", op, op.index)
        op.out = value
        self._record.ops.append(op)
        return self.adopt(value, tensor)

    @staticmethod
    def _leaf(kind: str, name: str | None, tensor: torch.Tensor) -> Value:
        value = Value(kind, None, -1)
        value.name = name
        value.tensor = tensor
        return value

    def pack(self, arg: Any, reads: list[Value], tensors: list[Any]) -> Any:
        """An argument with every tensor replaced by its value; the tensors are appended to the two lists."""
        cls = type(arg)
        if cls is _Tensor or cls is _Parameter:
            value = self.values.get(id(arg))
            if value is None or value.ref() is not arg:
                with torch._C.DisableTorchFunction():
                    value = self.meet(arg)
            reads.append(value)
            tensors.append(arg)
            return value
        if cls in ATOMS:
            return arg
        if cls is tuple:
            return tuple([self.pack(part, reads, tensors) for part in arg])
        if cls is list:
            return [self.pack(part, reads, tensors) for part in arg]
        if isinstance(arg, _Tensor):
            value = self.value_of(arg)
            reads.append(value)
            tensors.append(arg)
            return value
        if cls is slice:
            return slice(*[self.pack(part, reads, tensors) for part in (arg.start, arg.stop, arg.step)])
        if cls is dict:
            return {key: self.pack(part, reads, tensors) for key, part in arg.items()}
        if cls is torch.Generator:
            self._record.generators[id(arg)] = (arg, self._preserved.add_generator(arg))
            return arg
        if cls in _STORAGES:
            return self._pack_storage(arg, reads, tensors)
        inside = [tensor for _, tensor in walk(arg)]
        if not inside:
            return arg
        template = take_apart(arg, self.value_of)
        reads.extend(template.stand_ins())
        tensors.extend(inside)
        return Nested(template)

    def _pack_storage(self, storage: Any, reads: list[Value], tensors: list[Any]) -> Any:
        """A storage among the arguments is that of a tensor, as where `copy.copy` rebuilds one around it."""
        if self._by_storage is None:
            self._index_all()
        assert self._by_storage is not None
        untyped = storage if isinstance(storage, torch.UntypedStorage) else storage._untyped_storage
        for value, _ in reversed(self._by_storage.get(untyped._cdata, ())):
            tensor = value.ref() if value.ref is not None else value.tensor
            if tensor is not None:
                reads.append(value)
                tensors.append(tensor)
                return Nested(storage_template(value, type(storage)))
        return storage

    def mark_written(self) -> None:
        """Mark the leaves whose memory the forward writes into; a replay must work on copies of them."""
        writes = self._record.writes
        if not writes:
            return
        for value in list(self.values.values()):
            tensor = value.ref() if value.kind != "op" else None
            if tensor is not None and storage_key(tensor) in writes:
                value.is_written = True
        for found in writes.values():
            for write in found:
                write.value.is_written = True

    def note_write(self, op: Op, tensor: torch.Tensor, value: Value) -> None:
        """Note that an operation wrote into a tensor's memory."""
        key: Any = storage_key(tensor)
        if key is None:
            key = value
        elif key not in self._record.writes:
            self._hold(tensor)
        self._record.writes.setdefault(key, []).append(Write(op, value, geometry_of(tensor)))

    def memory_of(self, tensors: list[Any], values: list[Value]) -> Memory | None:
        """Which of some tensors lie in memory that was written, and how often by now."""
        writes = self._record.writes
        memory: Memory | None = None
        for position, tensor in enumerate(tensors):
            key: Any = storage_key(tensor)
            found = writes.get(values[position] if key is None else key)
            if found is not None:
                memory = {} if memory is None else memory
                memory[position] = (values[position] if key is None else key, len(found), geometry_of(tensor))
        return memory

    def narrow_memory(self, op: Op, result: torch.Tensor) -> None:
        """A view reads no more of written memory than what it shows."""
        assert op.memory is not None
        key = storage_key(result)
        for position, (found, count, _) in op.memory.items():
            if found == key:
                op.memory[position] = (found, count, geometry_of(result))


def same(value: Any) -> Any:
    """What an operation that hands on its argument runs."""
    return value
