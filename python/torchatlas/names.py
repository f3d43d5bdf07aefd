"""Names of nodes and module calls: unique, the same from trace to trace, as people write them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from torchatlas.record import Call, Op, Record


class Names:
    """Gives out names: unique among nodes and calls together, and stable from trace to trace."""

    def __init__(self, record: Record) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        self._calls: dict[int, str] = {}
        self._module_names = frozenset(name for name in record.modules if name)
        self._title_numbers: dict[tuple[str, str], dict[int, int]] = {}
        self._times: dict[str, int] = {}
        self._owned = frozenset(record.owned)
        for call in record.calls:
            self.add_call(call)

    def add_call(self, call: Call) -> None:
        """Give the next module call its name."""
        base = self._call_base(call)
        self._times[base] = self._times.get(base, 0) + 1
        name = base if self._times[base] == 1 else f"{base}:{self._times[base]}"
        self._calls[call.index] = name
        self._taken.add(name)

    def _call_base(self, call: Call) -> str:
        if call.fqn == "" or call.parent is None:
            return call.type
        if call.fqn is not None:
            return call.fqn
        prefix = self._prefix(call.parent)
        known = self._title_numbers.setdefault((prefix, call.type), {})
        return f"{prefix}{call.type}_{known.setdefault(id(call.module), len(known))}"

    def _prefix(self, call: Call) -> str:
        return "" if call.index <= 0 else self._calls[call.index] + "."

    def call(self, call: Call) -> str:
        """Name of a module call."""
        return self._calls[call.index]

    def op(self, op: Op) -> str:
        """Name of an operation: its call's name, a dot, its plain name, a number from the second on."""
        base = self._prefix(op.call) + op.name
        number = self._next.get(base, 0)
        name = base if number == 0 else f"{base}_{number}"
        while name in self._taken or name in self._module_names or name in self._owned:
            number += 1
            name = f"{base}_{number}"
        self._next[base] = number + 1
        self._taken.add(name)
        return name

    def leaf(self, kind: str, path: str | None) -> str:
        """Name of an input, parameter, buffer or constant."""
        if kind == "constant" or path is None:
            number = self._next.get("constant", 0)
            name = "constant" if number == 0 else f"constant_{number}"
            while name in self._taken or name in self._module_names or name in self._owned:
                number += 1
                name = f"constant_{number}"
            self._next["constant"] = number + 1
            self._taken.add(name)
            return name
        return self._claim(path, "[in]" if kind == "input" else "", reserved=kind == "input")

    def output(self, path: str) -> str:
        """Name of an output."""
        return self._claim(path, "[out]", reserved=True)

    def _claim(self, path: str, mark: str, *, reserved: bool) -> str:
        """The path itself; with a mark where a module, parameter or other node is called the same."""
        name = path
        while name in self._taken or (reserved and (name in self._module_names or name in self._owned)):
            name += mark or "[leaf]"
        self._taken.add(name)
        return name


def unknown_name(name: str, known: Iterable[str], where: str = "trace.hierarchy") -> ValueError:
    """The error for a name that does not exist, with the candidates: names that end with it, else the closest ones."""
    names = list(dict.fromkeys(known))
    close = [found for found in names if found.endswith(f".{name}")]
    close = close[:5] or difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return ValueError(f"no node or module call is named {name!r}{hint} (all names: {where})")
