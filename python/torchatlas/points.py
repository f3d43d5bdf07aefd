"""Named places in a record, what is to be cut out between them, and the values there as templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from torchatlas.builder import values_in
from torchatlas.program import Name
from torchatlas.record import Nested, Value
from torchatlas.slicing import Moment
from torchatlas.structure import Template, put_together, take_apart

_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class Point:
    """A named place in a record where it can be cut.

    Attributes:
        name: what the picture calls it.
        count: number of operations that have run by then.
        shape: the value there, each tensor replaced by its `Value`: a value, a list or tuple of them, or a template.
        end: for what a call is given: number of operations that have run when the call ends; None for all else.
        handed_on: for what a call is given or returns: ids of the values that are both, as they are.
    """

    name: str
    count: int
    shape: Any
    end: int | None = None
    handed_on: frozenset[int] = frozenset()

    def moments(self) -> list[Moment]:
        """The tensors there."""
        return [Moment(value, self.count) for value in values_in(self.shape)]


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be cut out of a record.

    Attributes:
        given: places whose values become inputs, with the names of these.
        output: what the cut gives: a nested value with a `Point` where a value of the record goes.
        share_modules: hold the model's own parameters, not copies.
        model: the model, where there is one.
        replaced: places whose values are exchanged, each with the name that the user wrote and what is put there.
    """

    given: tuple[tuple[Point, str], ...]
    output: Any
    share_modules: bool
    model: Any
    replaced: tuple[tuple[Point, str, Any], ...] = ()


def in_order(rows: Iterable[_Row], point_of: Callable[[_Row], Point]) -> list[_Row]:
    """What is replaced, in the order in which a forward comes to it: outer calls are given values first."""
    ends = [(row, point_of(row).end) for row in rows]
    return [row for row, _ in sorted(ends, key=lambda pair: (pair[1] is not None, -(pair[1] or 0)))]


def as_template(shape: Any) -> Template:
    """The value at a point as a template whose stand-ins are values."""
    if isinstance(shape, Template):
        return shape
    if isinstance(shape, Nested):
        return shape.template
    return _marked_template(shape, lambda part: (part,) if isinstance(part, Value) else None)


def numbered(shape: Any, values: list[Value]) -> Template:
    """A template in which each value is replaced by its place in a list."""
    places = {id(value): place for place, value in enumerate(values)}
    return as_template(shape).mapped(lambda value: places[id(value)])


def _marked_template(value: Any, keys_of: Callable[[Any], Any]) -> Template:
    """A template of lists, tuples and dicts.

    Args:
        value: the lists, tuples and dicts.
        keys_of: for a part: a key in a tuple, a template of keys, or None where the part is to be entered.
    """
    keys: dict[int, Any] = {}
    marks: list[torch.Tensor] = []

    def mark(key: Any) -> torch.Tensor:
        marks.append(torch.empty(0))
        keys[id(marks[-1])] = key
        return marks[-1]

    def marked(part: Any) -> Any:
        found = keys_of(part)
        if isinstance(found, Template):
            return put_together(found, mark)
        if found is not None:
            return mark(found[0])
        if isinstance(part, Mapping):
            return {key: marked(each) for key, each in part.items()}
        return type(part)(marked(each) for each in part) if type(part) in (list, tuple) else part

    return take_apart(marked(value), lambda tensor: keys[id(tensor)])


def points_in(output: Any) -> list[Point]:
    """The places in the lists, tuples and mappings of an output."""
    if isinstance(output, Point):
        return [output]
    if isinstance(output, Mapping):
        return [point for part in output.values() for point in points_in(part)]
    if isinstance(output, (list, tuple)):
        return [point for part in output for point in points_in(part)]
    return []


def output_template(output: Any, key_of: Callable[[Point, Value], int] | None) -> Template:
    """The output with a key where each tensor goes; with names, where there is no key, for reading."""

    def keys_of(part: Any) -> Any:
        if not isinstance(part, Point):
            return None
        if key_of is None:
            return (Name(part.name),)
        return as_template(part.shape).mapped(lambda value: key_of(part, value))

    return _marked_template(output, keys_of)
