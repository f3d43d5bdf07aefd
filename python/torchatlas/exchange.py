"""What is put in the place of a value: a tensor, or what a function makes of the value, in the value's structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from torchatlas.structure import Template, put_together, walk


def is_function(new: Any) -> bool:
    """Whether what takes the place of a value is worked out from the value."""
    return callable(new) and not isinstance(new, torch.Tensor)


def new_value(name: str, old: Any, new: Any) -> Any:
    """What is put in the place of a value.

    Args:
        name: what the value is called, for messages.
        old: the value.
        new: what is to be there: a tensor, or a function of the value; it gives None where it leaves the value.

    Raises:
        ValueError: the new value does not hold tensors where the old one does.
    """
    made = new(old) if is_function(new) else new
    made = old if made is None else made
    wanted, found = [path for path, _ in walk(old, name)], [path for path, _ in walk(made, name)]
    if wanted != found:
        raise ValueError(
            f"what replaces {name!r} must hold tensors at {', '.join(wanted)}, got {', '.join(found) or 'none'}"
        )
    return made


def new_tensors(
    name: str, template: Template, tensors: Mapping[int, torch.Tensor], new: Any
) -> dict[int, torch.Tensor]:
    """The tensors of what is put in the place of a value.

    Args:
        name: what the value is called, for messages.
        template: the value, each tensor replaced by a number.
        tensors: the tensors by these numbers.
        new: what is to be there, see `new_value`.

    Returns:
        The new tensors by the same numbers.
    """
    made = new_value(name, put_together(template, lambda number: tensors[number]), new)
    return {number: tensor for number, (_, tensor) in zip(template.stand_ins(), walk(made), strict=True)}
