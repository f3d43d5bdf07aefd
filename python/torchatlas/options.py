"""How a view starts: what is open, what is hidden, how large it is. None of it changes what was recorded."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Theme = Literal["auto", "light", "dark"]


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
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


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
