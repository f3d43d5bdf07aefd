"""How a view starts: what is open, what is hidden, how large it is. None of it changes what was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, get_args

Theme = Literal["auto", "light", "dark"]
Command = tuple[Literal["open", "close", "focus"], tuple[str, ...]]
"""Open or close calls, or show one node or call: what to do, and names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """Options of one view.

    Attributes:
        depth: levels of module calls that are open at the start, 0 for the outermost call's own content only; None
            opens what fits a first look.
        height: height of the view in px; a saved page fills its window whatever this says.
        width: width of the view in px; None for the width of the cell.
        theme: `light`, `dark`, or `auto` to follow the notebook or the system.
        show_constants: whether tensors that come from elsewhere are drawn; None leaves it to the view.
        fold_repeats: whether equal blocks in a row are drawn as one; None leaves it to the view.
        selected: names of nodes and calls that are selected.
        opened: names of the calls that are open at the start; None goes by `depth`.
        commands: what is then opened, closed and brought into view, in order.
        highlighted: names of nodes and calls that are marked.
        numbers: name to a number to colour by; empty for the usual colours.
        legend: what the numbers are.
        notes: name to a text that the panel shows.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an option has a value outside its range.
    """

    depth: int | None = None
    height: int = 600
    width: int | None = None
    theme: Theme = "auto"
    show_constants: bool | None = None
    fold_repeats: bool | None = None
    selected: tuple[str, ...] = ()
    opened: tuple[str, ...] | None = None
    commands: tuple[Command, ...] = ()
    highlighted: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
    legend: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)

    LOOK: ClassVar = ("highlighted", "numbers", "legend", "notes")
    """What is marked on the map; can be changed while a view runs."""

    def __post_init__(self) -> None:
        require_integer("height", self.height, at_least=1)
        for name, least in (("depth", 0), ("width", 1)):
            if getattr(self, name) is not None:
                require_integer(name, getattr(self, name), at_least=least)
        if self.theme not in get_args(Theme):
            raise ValueError(f"theme must be one of {', '.join(get_args(Theme))}, got {self.theme!r}")
        for name in ("show_constants", "fold_repeats"):
            if getattr(self, name) is not None:
                require_boolean(name, getattr(self, name))

    def to_wire(self) -> dict[str, Any]:
        """The options as the view reads them: JSON values, nothing for what is left to the view."""
        values = {each.name: _plain(getattr(self, each.name)) for each in fields(self)}
        return {name: value for name, value in values.items() if not _is_nothing(name, value)}

    def look(self) -> dict[str, Any]:
        """The options of `LOOK` as the view reads them, also those that say nothing."""
        return {name: _plain(getattr(self, name)) for name in self.LOOK}


def _is_nothing(name: str, value: Any) -> bool:
    # That no call is open says something.
    return value is None or (value in ([], {}, "") and name != "opened")


def _plain(value: Any) -> Any:
    """The same in the types of JSON."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return dict(value) if isinstance(value, Mapping) else value


def require_integer(name: str, value: object, at_least: int) -> None:
    """Raise unless the argument called `name` is an integer of at least `at_least`; a bool is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    if value < at_least:
        raise ValueError(f"{name} must be >= {at_least}, got {value}")


def require_boolean(name: str, value: object) -> None:
    """Raise unless the argument called `name` is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}")
