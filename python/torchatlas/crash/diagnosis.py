"""What a rule finds out about a failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Changes = Mapping[int | str, Any]
"""Position or keyword of an argument to what replaces it."""


@dataclass(frozen=True)
class Remedy:
    """A change that may get the forward past the operation. It is offered only after it was tried.

    Attributes:
        text: what to change, in words that end before "would pass".
        changes: the operation's arguments as they then would be.
        is_real: whether it must be tried on real zeros, because only real kernels check what it mends.
        attempt: what to run instead of the operation, where the change is to something else; it raises if it fails.
    """

    text: str
    changes: Changes = field(default_factory=dict)
    is_real: bool = False
    attempt: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Given:
    """A result that is assumed as it stands, instead of being worked out by a trial.

    Attributes:
        packed: the result, with a `Stub` for each new tensor and a `Value` for an argument that is handed on.
    """

    packed: Any


@dataclass(frozen=True)
class Diagnosis:
    """Why an operation or module call failed.

    Attributes:
        kind: what kind of failure it is, for example `linear`, `broadcast`, `dtype`.
        sentence: what clashed and where it came from.
        facts: the numbers and names of the sentence as data.
        remedies: changes that may help, best first; not tried yet.
        assumptions: arguments that the operation would have passed with, likeliest first, or results as they stand;
            what looking past the failure goes on with.
    """

    kind: str
    sentence: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    remedies: tuple[Remedy, ...] = ()
    assumptions: tuple[Changes | Given, ...] = ()
