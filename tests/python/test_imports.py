"""Who imports whom: the rules that keep the parts apart. Reads import statements, runs nothing."""

import ast
import functools
import re
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "python" / "torchatlas"
JS = ROOT / "js" / "src"

ENTRIES = {"widget", "page", "headless", "lite", "atlas"}
# Data and outputs: no torch in them. What each may import of our own; all others are of the tracing side.
PYTHON_RULES = {
    "graph": set(),
    "options": set(),
    "bundle": set(),
    "schema": {"graph"},
    "query": {"graph"},
    "text": {"graph"},
    "dot": {"graph", "text"},
    "media": set(),
    "progress": set(),
    "abridged": {"graph", "schema"},
    "fallback": {"graph", "options", "schema", "abridged", "bundle"},
    "renderer": set(),
    "picture": {"graph", "schema", "options", "bundle"},
    "widget": {"graph", "schema", "options", "bundle"},
    "runtime": {"bundle", "widget"},
    "page": {"graph", "schema", "options", "bundle"},
    "export": {"graph", "schema", "options", "bundle", "page", "picture", "dot"},
}
# Data moves one way, from the document to the picture: what comes later imports what comes earlier, never the reverse.
JS_STAGES = ["schema", "visible", "scopes", "engine", "layout", "svg", "view"]
DRAWING = {"paint", "svg", "interact", "panel"}


def python_imports(path: Path) -> set[str]:
    """Full names of the modules that a file imports, types included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = ["torchatlas", *path.relative_to(PYTHON).parts[:-1]]
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


@functools.cache
def python_modules() -> dict[str, set[str]]:
    """Module to what it imports; a package of ours (`crash/`) counts as one module."""
    modules: dict[str, set[str]] = {}
    for path in PYTHON.rglob("*.py"):
        modules.setdefault(path.relative_to(PYTHON).with_suffix("").parts[0], set()).update(python_imports(path))
    return modules


def own(imported: set[str]) -> set[str]:
    """Modules of ours among what is imported, by their plain names."""
    ours = set(python_modules()) - {"__init__", "_version"}
    return {name.split(".")[1] for name in imported if name.startswith("torchatlas.")} & ours


def outside(imported: set[str]) -> set[str]:
    return {name.split(".")[0] for name in imported}


def js_imports(path: Path) -> list[str]:
    """What a JavaScript file imports or re-exports; imports in JSDoc comments are types and do not count."""
    code = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
    return re.findall(
        r"""(?:^|[;\s])(?:import|export)\s[^;'"]*?from\s*["']([^"']+)["']|import\s*["']([^"']+)["']""", code
    )


def js_modules() -> dict[str, set[str]]:
    """Module path below js/src, without suffix, to what it imports: such a path, or a package's name."""
    modules = {}
    for path in JS.rglob("*.js"):
        found = {first or second for first, second in js_imports(path)}
        modules[key(path)] = {key((path.parent / name).resolve()) if name.startswith(".") else name for name in found}
    return modules


def key(path: Path) -> str:
    return path.relative_to(JS).with_suffix("").as_posix()


def part(name: str) -> str:
    """A module's part: its folder where it has one (`engine/viz` is of `engine`, `view/state` of `view`)."""
    return name.split("/")[0]


def test_data_and_outputs_import_no_torch() -> None:
    modules = python_modules()
    users = {name for name, imported in modules.items() if "torch" in outside(imported)}
    assert users & {*PYTHON_RULES, "display", "view"} == set()
    assert {"tracer", "structure"} <= users


def test_only_widget_imports_anywidget() -> None:
    users = {name for name, imported in python_modules().items() if outside(imported) & {"anywidget", "traitlets"}}
    assert users == {"widget"}


def test_graph_imports_the_standard_library_only() -> None:
    assert outside(python_imports(PYTHON / "graph.py")) <= {"__future__", "collections", "dataclasses", "types"}


def test_python_modules_import_what_they_may() -> None:
    modules = python_modules()
    wrong = {name: own(modules[name]) - allowed for name, allowed in PYTHON_RULES.items() if name in modules}
    assert {name: extra for name, extra in wrong.items() if extra} == {}


def test_python_imports_have_no_cycle() -> None:
    modules = python_modules()
    order = {name: own(imported) - {name} for name, imported in modules.items() if name != "__init__"}
    # trace.show() reaches up to display, when it is called.
    order["trace"] -= {"display"}
    list(TopologicalSorter(order).static_order())


def test_init_holds_public_names_only() -> None:
    body = ast.parse((PYTHON / "__init__.py").read_text(encoding="utf-8")).body
    kinds = {type(statement) for statement in body[1:]}
    assert kinds <= {ast.ImportFrom, ast.Assign}
    assert [t.id for s in body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)] == [
        "__all__"
    ]


def test_only_one_javascript_module_imports_graphviz() -> None:
    assert {name for name, imported in js_modules().items() if "@viz-js/viz" in imported} == {"engine/viz"}


def test_javascript_stages_import_earlier_ones_only() -> None:
    modules = js_modules()
    assert {part(name) for name in modules} >= set(JS_STAGES)
    for name in modules:
        if part(name) in JS_STAGES:
            later = JS_STAGES[JS_STAGES.index(part(name)) + 1 :]
            assert {part(i) for i in reached_from(modules, name)} & set(later) == set(), name


def reached_from(modules: dict[str, set[str]], start: str) -> set[str]:
    """Everything that a module imports, directly or not."""
    found: set[str] = set()
    pending = [start]
    while pending:
        fresh = modules.get(pending.pop(), set()) - found
        found |= fresh
        pending.extend(fresh)
    return found


def test_drawing_modules_import_neither_each_other_nor_layout() -> None:
    for name, imported in js_modules().items():
        if part(name) in DRAWING:
            assert {part(i) for i in imported} & (DRAWING - {part(name)} | {"layout"}) == set(), name


def test_only_entries_and_view_import_view() -> None:
    users = {name for name, imported in js_modules().items() if any(part(i) == "view" for i in imported)}
    assert {name for name in users if part(name) != "view"} <= ENTRIES


def test_javascript_imports_have_no_cycle() -> None:
    modules = js_modules()
    list(
        TopologicalSorter({name: {i for i in found if i in modules} for name, found in modules.items()}).static_order()
    )
