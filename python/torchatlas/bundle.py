"""The built view: the JavaScript bundle, Graphviz as wasm, and the page's template."""

from __future__ import annotations

import functools
import gzip
from pathlib import Path

_PACKAGE = Path(__file__).parent


@functools.cache
def page_script() -> str:
    """The view of pages: a script that puts `torchatlas` on the window and can stand in HTML as it is.

    Raises:
        FileNotFoundError: the bundle was not built.
    """
    return _static("page.js").decode("utf-8")


@functools.cache
def loader() -> str:
    """What each view in a notebook carries: an ES module that gets the bundle from the kernel's runtime model.

    Raises:
        FileNotFoundError: the bundle was not built.
    """
    return _static("loader.js").decode("utf-8")


@functools.cache
def stand_in() -> str:
    """What each output carries that stands in for a view: a function, as an expression.

    Raises:
        FileNotFoundError: the bundle was not built.
    """
    return _static("standin.js").decode("utf-8").strip()


@functools.cache
def packed_lite() -> bytes:
    """The map that a notebook keeps, one ES module, gzip.

    Raises:
        FileNotFoundError: the bundle was not built.
    """
    return gzip.compress(_static("lite.js"), mtime=0)


@functools.cache
def packed_script() -> bytes:
    """The view in notebooks, an ES module, gzip; equal bytes for equal content."""
    return gzip.compress(_static("atlas.js"), mtime=0)


@functools.cache
def packed_wasm() -> bytes:
    """Graphviz, gzip; equal bytes for equal content."""
    return gzip.compress(_static("viz.wasm"), mtime=0)


def headless_folder() -> Path:
    """The folder that has what an embedded V8 runs: `headless.js` and `viz.wasm`.

    Raises:
        FileNotFoundError: the bundle was not built.
    """
    for name in ("headless.js", "viz.wasm"):
        _existing(name)
    return _PACKAGE / "static"


def template() -> str:
    """The markup of a page, with its placeholders."""
    packaged = _PACKAGE / "templates" / "page.html"
    # In an editable install the template stays where it is in the repository.
    found = packaged if packaged.is_file() else _PACKAGE.parents[1] / "templates" / "page.html"
    return found.read_text(encoding="utf-8")


def _static(name: str) -> bytes:
    return _existing(name).read_bytes()


def _existing(name: str) -> Path:
    file = _PACKAGE / "static" / name
    if not file.is_file():
        raise FileNotFoundError(
            f"torchatlas/static/{name} is missing: this is a source tree whose view was not built; "
            "run `pip install .`, or `npm ci && node js/build.mjs`"
        )
    return file
