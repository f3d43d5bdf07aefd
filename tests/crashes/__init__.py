"""Broken models, each with the node and line that fail and what the explanation must say.

A case is a function that builds a model and its inputs. The line that fails carries a comment `# fails: <case>`; a case
without such a line fails where no code of the user's stands.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PARTS = ("products", "windows", "joins", "layers", "kinds", "python_errors", "larger")


@dataclass(frozen=True)
class Crash:
    """One broken model.

    Attributes:
        name: name of the building function.
        build: gives the model and its inputs.
        kind: the kind that the explanation must be of; "" where the original message must stand alone.
        node: name of the operation that fails; None where plain Python raises.
        calls: names of the open module calls, outermost first.
        says: what the sentence must contain.
        suggests: what one of the suggestions must contain; None where there must be none, "" where any may be.
        error: class of the exception.
    """

    name: str
    build: Callable[[], tuple[Any, Any]]
    kind: str
    node: str | None
    calls: tuple[str, ...]
    says: tuple[str, ...]
    suggests: str | None
    error: type[BaseException]

    @property
    def line(self) -> int | None:
        """Line number of the comment that marks the failing line."""
        lines = inspect.getsource(inspect.getmodule(self.build)).splitlines()
        marked = [number for number, line in enumerate(lines, 1) if line.endswith(f"# fails: {self.name}")]
        assert len(marked) <= 1, f"{self.name} is marked {len(marked)} times"
        return marked[0] if marked else None


CASES: dict[str, Crash] = {}


def crash(
    kind: str,
    node: str | None,
    calls: str,
    *says: str,
    suggests: str | None = "",
    error: type[BaseException] = RuntimeError,
) -> Callable[[Callable[[], tuple[Any, Any]]], Callable[[], tuple[Any, Any]]]:
    """Register a case; `calls` are the names of the open module calls, with a blank between them."""

    def register(build: Callable[[], tuple[Any, Any]]) -> Callable[[], tuple[Any, Any]]:
        name = build.__name__
        assert name not in CASES, f"two cases are called {name}"
        CASES[name] = Crash(name, build, kind, node, tuple(calls.split()), says, suggests, error)
        return build

    return register


for part in PARTS:
    importlib.import_module(f"{__name__}.{part}")
