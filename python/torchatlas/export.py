"""Files made from a graph: the page, pictures, the document, DOT."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from torchatlas import dot, page, picture, schema
from torchatlas.graph import Graph
from torchatlas.options import ViewOptions

_WRITERS: dict[str, Callable[[Graph, ViewOptions], str | bytes]] = {
    ".html": page.render,
    ".svg": lambda graph, options: picture.draw(graph, options, "svg"),
    ".png": lambda graph, options: picture.draw(graph, options, "png"),
    ".pdf": lambda graph, options: picture.draw(graph, options, "pdf"),
    ".json": lambda graph, _options: schema.to_json(graph) + "\n",
    ".dot": lambda graph, _options: dot.to_dot(graph),
}
_PICTURES = (".svg", ".png", ".pdf")


def save(
    graph: Graph, path: str | os.PathLike[str], options: ViewOptions | None = None, *, argument: str = "path"
) -> Path:
    """Write a graph to a file; its suffix says as what.

    The file appears whole or not at all: the text goes to a temporary file beside it, which then takes its place.

    Args:
        graph: the graph.
        path: where to; `.html` is a page that opens offline, `.svg`, `.png` and `.pdf` are pictures, `.json` the
            document, `.dot` Graphviz's language.
        options: how the page starts, which is what a picture shows.
        argument: what the caller's argument is called, for messages.

    Returns:
        The absolute path of the file.

    Raises:
        TypeError: `path` is no path.
        ValueError: `path` has another suffix.
        ImportError: it is a picture, and a package of `torchatlas[export]` is missing.
        RuntimeError: the picture could not be drawn.
        OSError: `path` can't be written.
    """
    target = writable_path(path, argument)
    content = _WRITERS[target.suffix.lower()](graph, options or ViewOptions())
    _replace(target, content, argument)
    return target.absolute()


def writable_path(path: str | os.PathLike[str], argument: str) -> Path:
    """Check what can be told of a path before anything is run.

    Args:
        path: where a file is to be written.
        argument: what the caller's argument is called, for messages.

    Returns:
        The path, `~` expanded.

    Raises:
        TypeError: `path` is no path.
        ValueError: its suffix is none that can be written.
        ImportError: it is a picture, and a package of `torchatlas[export]` is missing.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{argument} must be a string or a path, got {type(path).__name__}")
    target = Path(path).expanduser()
    suffix = target.suffix.lower()
    if suffix not in _WRITERS:
        raise ValueError(f"{argument} must end in one of {', '.join(_WRITERS)}, got {os.fspath(path)!r}")
    if suffix in _PICTURES:
        picture.require(suffix.removeprefix("."))
    return target


def _replace(target: Path, content: str | bytes, argument: str) -> None:
    data = content.encode("utf-8") if isinstance(content, str) else content
    part = target.with_name(f".{target.name[:32]}.{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
        os.replace(part, target)
    except OSError as error:
        raise unwritable(argument, target, error) from error
    finally:
        part.unlink(missing_ok=True)


def unwritable(argument: str, target: Path, error: OSError) -> OSError:
    """The same error, saying which argument of ours it is about."""
    return type(error)(error.errno, f"{argument} can't be written: {error.strerror}", str(target))
