"""The query language of the search box and of `Trace.find()`. js/src/query.js implements the same, on the document;
both are tested with tests/queries.json.

Grammar::

    query  := term { whitespace term }          all terms must hold
    term   := [ "-" ] ( field ":" value | value )        "-" negates
    value  := any characters but whitespace and "  |  '"' any characters but " '"'
    field  := "op" | "in" | "type" | "dtype" | "shape" | "kind" | "status" | "name"

- A word before a colon that is no field belongs to the value (`encoder.layer:2` is a name). A lone "-", a field without
  a value and an empty pair of quotes are skipped. Letters are compared without case.
- A glob is a value in which `*` stands for any number of characters and `?` for one. No other character is special;
  `[`, `]` and `.` are themselves. A glob must match the whole text.

What is found: module calls, in the order of their ids, then nodes, in the order of theirs. A query without terms finds
nothing.

- `word`: calls and nodes whose name contains the word, or whose class (calls) or operation (nodes) does; with `*` or
  `?`: whose whole name, or whole class or operation, matches.
- `name:g`: the whole name matches.
- `op:g`: nodes whose operation matches.
- `type:g`: calls whose class matches.
- `in:g`: what lies inside (at any depth, not itself) a path that matches, or a dotted end of which does; paths are the
  names of the calls around, the dotted beginnings of those names and of one's own: `in:h.3` is inside
  `transformer.h.3`, not inside `transformer.h.31`; `in:h` is inside the container `transformer.h`.
- `dtype:g`: one of its outputs has that dtype; short names too: f64 f32 f16 bf16 i64 i32 i16 i8 u8 c64 c128.
- `shape:g`: one of its outputs has that shape, written `1,128,768`; `x` and `×` may stand for the comma; `*` matches
  commas too, so `*,768` is any shape that ends with 768; a tensor without axes is `scalar`.
- `kind:g`: nodes of that kind (input, parameter, buffer, constant, op, opaque, output); calls are `module`.
- `status:g`: `ok` or `failed`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from torchatlas.graph import Graph, ModuleCall, Node, TensorSpec

FIELDS = ("op", "in", "type", "dtype", "shape", "kind", "status", "name")
_SHORT_DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "complex64": "c64", "complex128": "c128",
}  # fmt: skip
_TERM = re.compile(r'(-?)(?:([a-zA-Z]+):)?(?:"([^"]*)"|([^\s"]+))?')

_Row = ModuleCall | Node
_Test = Callable[[_Row], bool]
_Matcher = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Term:
    """One condition of a query.

    Attributes:
        field: one of `FIELDS`; None for a free word.
        value: what is looked for, in small letters.
        is_negated: it must not hold.
    """

    field: str | None
    value: str
    is_negated: bool


def parse_query(query: str) -> list[Term]:
    """The terms of a query, in order."""
    terms: list[Term] = []
    for found in _TERM.finditer(query):
        minus, word, quoted, bare = found.groups()
        is_field = word is not None and word.lower() in FIELDS
        rest = quoted if quoted is not None else bare or ""
        value = rest if word is None or is_field else f"{word}:{rest}"
        if found[0] and value:
            terms.append(Term(word.lower() if is_field else None, value.lower(), minus == "-"))
    return terms


def is_pattern(text: str) -> bool:
    """Whether a text is more than one plain word, so that it may stand for several names."""
    terms = parse_query(text)
    return len(terms) != 1 or terms[0].field is not None or terms[0].is_negated or has_wildcard(text)


def has_wildcard(text: str) -> bool:
    """Whether a text holds a sign that stands for others."""
    return "*" in text or "?" in text


def glob_matcher(pattern: str) -> _Matcher:
    """A test of whole texts against a glob; letters are compared without case."""
    escaped = re.escape(pattern.lower()).replace(r"\*", ".*").replace(r"\?", ".")
    expression = re.compile(escaped, re.DOTALL)
    return lambda text: expression.fullmatch(text.lower()) is not None


def find_names(graph: Graph, query: str) -> list[str]:
    """Names of the module calls and nodes that a query finds.

    Example:
        >>> find_names(graph, "op:softmax in:encoder")  # doctest: +SKIP
    """
    terms = parse_query(query)
    if not terms:
        return []
    tests = [(_test_of(graph, term), term.is_negated) for term in terms]
    rows: tuple[_Row, ...] = (*graph.calls, *graph.nodes)
    return [row.name for row in rows if all(test(row) != is_negated for test, is_negated in tests)]


def _test_of(graph: Graph, term: Term) -> _Test:
    matches = glob_matcher(re.sub("[x×]", ",", term.value) if term.field == "shape" else term.value)
    tests: dict[str | None, Callable[[], _Test]] = {
        "op": lambda: lambda row: isinstance(row, Node) and matches(row.op or ""),
        "type": lambda: lambda row: isinstance(row, ModuleCall) and matches(row.type),
        "name": lambda: lambda row: matches(row.name),
        "kind": lambda: lambda row: matches(row.kind if isinstance(row, Node) else "module"),
        "status": lambda: lambda row: matches(row.status),
        "dtype": lambda: lambda row: any(_is_dtype(spec, matches) for spec in row.outputs),
        "shape": lambda: lambda row: any(_is_shape(spec, matches) for spec in row.outputs),
        "in": lambda: _inside_test(graph, matches),
        None: lambda: _free_test(term.value, matches),
    }
    return tests[term.field]()


def _is_dtype(spec: TensorSpec, matches: _Matcher) -> bool:
    return matches(spec.dtype) or matches(_SHORT_DTYPES.get(spec.dtype, spec.dtype))


def _is_shape(spec: TensorSpec, matches: _Matcher) -> bool:
    return spec.shape is not None and matches(",".join(map(str, spec.shape)) if spec.shape else "scalar")


def _free_test(value: str, matches: _Matcher) -> _Test:
    def holds(text: str) -> bool:
        return matches(text) if has_wildcard(value) else value in text.lower()

    return lambda row: holds(row.name) or holds((row.op or "") if isinstance(row, Node) else row.type)


def _inside_test(graph: Graph, matches: _Matcher) -> _Test:
    @functools.cache
    def is_meant(path: str) -> bool:
        parts = path.split(".")
        return any(matches(".".join(parts[start:])) for start in range(len(parts)))

    def has_meant_beginning(name: str) -> bool:
        return any(is_meant(name[: dot.start()]) for dot in re.finditer(r"\.", name))

    # Callers come before what they call, so one pass settles it for all that is around a call.
    covers: list[bool] = []
    is_inside: list[bool] = []
    for call in graph.calls:
        is_inside.append((call.parent is not None and covers[call.parent]) or has_meant_beginning(call.name))
        covers.append(is_inside[-1] or is_meant(call.name))

    def holds(row: _Row) -> bool:
        if isinstance(row, ModuleCall):
            return is_inside[row.id]
        return (row.call is not None and covers[row.call]) or has_meant_beginning(row.name)

    return holds
