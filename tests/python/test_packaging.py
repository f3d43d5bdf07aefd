"""A clone becomes a wheel with Python and pip alone, and the wheel has all that is needed at run time."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import torchatlas
from torchatlas import _version, schema

ROOT = Path(__file__).parents[2]
WHEEL_LIMIT_BYTES = 1_100_000


def tracked_files() -> Iterator[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    yield from (name for name in listed.stdout.decode("utf-8").split("\0") if name and (ROOT / name).is_file())


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a fresh clone has: no bundle, no node_modules."""
    folder = tmp_path_factory.mktemp("clone")
    for name in tracked_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    assert not (folder / "python" / "torchatlas" / "static").exists()
    assert not (folder / "node_modules").exists()
    return folder


def path_without_node(folder: Path) -> str:
    """A search path with everything on the present one but Node and npm."""
    links = folder / "bin"
    links.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        if Path(place).is_dir():
            for tool in Path(place).iterdir():
                link = links / tool.name
                if tool.name not in ("node", "nodejs", "npm", "npx", "corepack"):
                    link.unlink(missing_ok=True)
                    link.symlink_to(tool)
    return str(links)


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip builds from the clone on a machine without Node."""
    folder = tmp_path_factory.mktemp("wheel")
    path = path_without_node(folder)
    assert shutil.which("node", path=path) is None
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(clone)],
        env={**os.environ, "PATH": path},
        check=True,
        timeout=600,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_version_is_the_same_everywhere(wheel: Path) -> None:
    version = _version.__version__
    assert torchatlas.__version__ == version
    assert wheel.name == f"torchatlas-{version}-py3-none-any.whl"
    assert schema.encode(schema.decode(_empty()))["generator"] == f"torchatlas {version}"
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for path in (ROOT / "python").rglob("*.py"):
        assert path.name == "_version.py" or f'"{version}"' not in path.read_text(encoding="utf-8"), path


def _empty() -> dict[str, object]:
    coverage = {"operations": 0, "nodes": 0, "opaque": 0, "outside": 0}
    lists: dict[str, object] = {
        name: [] for name in ("specs", "sources", "calls", "nodes", "edges", "inputs", "outputs")
    }
    proof = {"status": "not_run", "reason": ""}
    return {**lists, "schema_version": 1, "title": "", "error": None, "coverage": coverage, "proof": proof}


def test_wheel_holds_the_view_and_the_licences(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in (
        "static/atlas.js",
        "static/page.js",
        "static/viz.wasm",
        "static/THIRD_PARTY_NOTICES.txt",
        "templates/page.html",
        "schema.json",
        "py.typed",
    ):
        assert f"torchatlas/{name}" in names
    licences = {name.rpartition("/")[2] for name in names if "/licenses/" in name}
    assert licences == {"LICENSE"}
    assert not [name for name in names if "node_modules" in name or name.startswith(("tests", "js"))]


def test_notices_name_every_bundled_package(wheel: Path) -> None:
    notices = zipfile.ZipFile(wheel).read("torchatlas/static/THIRD_PARTY_NOTICES.txt").decode("utf-8")
    for name in ("@viz-js/viz", "d3-selection", "d3-zoom"):
        assert re.search(rf"^{re.escape(name)} \d", notices, re.M), name
    assert "Eclipse Public License" in notices  # Graphviz, compiled into viz.wasm


def test_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < WHEEL_LIMIT_BYTES


def test_installed_wheel_traces_and_saves_without_the_repository(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    # The dependencies are those of this environment, seen by a new one.
    (site,) = environment.glob("lib/python*/site-packages")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)], check=True
    )
    code = (
        "import sys; sys.path.extend(sys.argv[1:]); import torch, torchatlas; print(torchatlas.__file__); "
        "torchatlas.trace(torch.nn.Linear(2, 2), torch.ones(1, 2)).save('x.html')"
    )
    others = [path for path in sys.path if path.endswith("site-packages")]
    done = subprocess.run(
        [environment / "bin" / "python", "-c", code, *others], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(environment))
    assert (tmp_path / "x.html").stat().st_size > 100_000


def test_build_takes_the_node_versions_that_the_packages_ask_for() -> None:
    hook = (ROOT / "hatch_build.py").read_text(encoding="utf-8")
    engines = re.search(r'"node": ">=(\d+)\.(\d+)"', (ROOT / "package.json").read_text(encoding="utf-8"))
    assert engines
    assert f"NODE_MIN = ({engines[1]}, {engines[2]})" in hook


def test_git_holds_nothing_that_is_built() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in listed if "/static/" in name or name.endswith((".whl", ".wasm"))]


def test_core_needs_only_what_the_design_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[<>=]", requirement)[0] for requirement in project["dependencies"]}
    assert names == {"torch", "ipython", "anywidget", "traitlets"}
    assert {"export", "test", "dev"} <= set(project["optional-dependencies"])
