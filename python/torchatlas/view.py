"""A trace on show: what Python and the picture tell each other."""

from __future__ import annotations

import dataclasses
import os
import re
import tempfile
import traceback
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from torchatlas import export, fallback, media, page, picture, query, statistics, structure, text
from torchatlas.names import unknown_name
from torchatlas.options import Theme, ViewOptions
from torchatlas.trace import Trace

if TYPE_CHECKING:
    from torchatlas.widget import GraphWidget

Names = str | Iterable[str]
How = Literal["auto", "widget", "html", "static"]
# What is kept of the last tensors that were looked at, so that a slider need not compute them anew.
_KEPT_BYTES = 64 * 2**20
_code_cell: str | None = None


class View:
    """A trace on show. Not an ipywidgets Widget, which has an `open` and a `close` of its own.

    Wherever names are asked for, a query of the search box will do; see `torchatlas.query`. What Python sets before the
    view is drawn holds for its start, and for pages that are saved.

    Attributes:
        trace: what is shown.
        options: how the view starts, with what Python has asked of it since.
    """

    def __init__(self, trace: Trace, options: ViewOptions | None = None, how: How = "auto") -> None:
        require_how(how)
        self.trace = trace
        self.options = options or ViewOptions()
        self._how = how
        self._widget: GraphWidget | None = None
        self._page: Path | None = None
        self._shown_in: object = None
        self._callbacks: list[Callable[[list[str]], object]] = []
        self._last: tuple[str, list[Any]] | None = None

    # What the view tells

    @property
    def selected(self) -> list[str]:
        """Names of the selected nodes and module calls."""
        return list(self.options.selected if self._widget is None else self._widget.selected)

    @property
    def selected_values(self) -> dict[str, Any]:
        """Shape, dtype, statistics and histogram of what is selected, computed by replaying the trace.

        Name to a dict; see `torchatlas.statistics.describe`. To a tuple of them where there are several tensors.

        Raises:
            RuntimeError: something that is selected did not return, so that it has no value.
        """
        found = {name: tuple(map(statistics.describe, self._tensors(name))) for name in self.selected}
        return {name: rows[0] if len(rows) == 1 else rows for name, rows in found.items()}

    @property
    def opened(self) -> list[str]:
        """Names of the open module calls, as far as the live view has told."""
        told = None if self._widget is None else self._widget.opened
        return list(self.options.opened or ()) if told is None else list(told)

    @property
    def visible(self) -> list[str]:
        """Names of the nodes and module calls that are drawn, in drawing order; empty until the live view has told."""
        told = None if self._widget is None else self._widget.visible
        graph = self.trace.graph
        return [graph.calls[each].name if each >= 0 else graph.nodes[-1 - each].name for each in told or ()]

    def on_select(self, callback: Callable[[list[str]], object]) -> Callable[[], None]:
        """Call a function whenever something else is selected.

        Args:
            callback: gets the names. What it raises is shown in the view's panel and in the notebook's log.

        Returns:
            A function that ends this.

        Raises:
            TypeError: `callback` can't be called.
        """
        if not callable(callback):
            raise TypeError(f"callback must be a function, got {type(callback).__name__}")
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    # What Python asks of the view

    def focus(self, name: str) -> None:
        """Bring a node or call into view, opening what encloses it.

        Args:
            name: a name, or a query whose first result it is.

        Raises:
            ValueError: nothing is found.
        """
        self._command("focus", self._names(name)[:1])

    def open(self, names: Names) -> None:
        """Open module calls; of nodes, the calls around them.

        Raises:
            ValueError: nothing is found.
        """
        hierarchy, calls = self.trace.hierarchy, {call.name for call in self.trace.graph.calls}
        found = [name if name in calls else hierarchy[name] for name in self._names(names)]
        self._command("open", [name for name in found if name is not None])

    def close(self, names: Names) -> None:
        """Close module calls.

        Raises:
            ValueError: no module call is found.
        """
        calls = {call.name for call in self.trace.graph.calls}
        found = [name for name in self._names(names) if name in calls]
        if not found:
            raise ValueError(f"{names!r} finds no module call, and nodes can't be closed")
        self._command("close", found)

    def select(self, names: Names) -> None:
        """Select nodes and calls instead of what is selected; an empty list selects nothing.

        Raises:
            ValueError: nothing is found.
        """
        found = tuple(self._names(names))
        self.options = dataclasses.replace(self.options, selected=found)
        if self._widget is not None:
            self._widget.selected = list(found)

    def colour(self, numbers: Mapping[str, float], legend: str = "") -> None:
        """Colour by numbers.

        Args:
            numbers: name or query to number; an empty mapping goes back to the usual colours. What has no number, or
                none that is finite, stays uncoloured.
            legend: what the numbers are.

        Raises:
            ValueError: a name or query finds nothing.
            TypeError: something is no number.
        """
        found = {name: _number(key, value) for key, value in numbers.items() for name in self._names(key)}
        finite = {name: value for name, value in found.items() if value - value == 0}
        self._mark(numbers=finite, legend=str(legend))

    def highlight(self, names: Names) -> None:
        """Mark nodes and calls instead of those that are marked; an empty list marks nothing.

        Raises:
            ValueError: nothing is found.
        """
        self._mark(highlighted=tuple(self._names(names)))

    def note(self, name: str, text: str) -> None:
        """Show a text in the panel of a node or call; an empty text removes it.

        Raises:
            ValueError: nothing has this name.
            TypeError: `text` is no string.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        if name not in self.trace.hierarchy:
            raise unknown_name(name, self.trace.hierarchy)
        self._mark(notes={key: said for key, said in {**self.options.notes, name: text}.items() if said})

    def save(self, path: str | os.PathLike[str], *, theme: Theme | None = None) -> Path:
        """Write the trace as a page or picture that starts as the view is now, as its document, or as DOT.

        Pictures need the extra `torchatlas[export]`.

        Args:
            path: where to; ends in `.html`, `.svg`, `.png`, `.pdf`, `.json` or `.dot`.
            theme: `light`, `dark` or, for pages, `auto`; None for that of the view.

        Returns:
            The absolute path of the file.

        Raises:
            TypeError: `path` is no path.
            ValueError: `path` has another suffix, or there is no such theme.
            ImportError: it is a picture, and a package of the extra is missing.
            RuntimeError: the picture could not be drawn.
            OSError: `path` can't be written.
        """
        options = self._now()
        return export.save(
            self.trace.graph, path, options if theme is None else dataclasses.replace(options, theme=theme)
        )

    # Showing

    def show(self, page_path: Path | None = None) -> None:
        """Show the view here and now.

        Args:
            page_path: the page that a terminal names; None writes one to the folder for temporary files.
        """
        medium = media.current()
        if medium in ("widget", "html") and self._how != "auto":
            medium = self._how
        if media.is_marimo():
            return  # it shows the value of the cell, by `_mime_`
        if medium == "widget":
            self._show_widget()
        elif medium == "html":
            _display_html(self._page_frame())
        elif medium == "static":
            _display_html(self._stand_in(uuid.uuid4().hex, is_alone=True))
        else:
            self._page = page_path or self._page or self._temporary_page()
            media.write(f"{text.summary(self.trace.graph)}\n\nopen in a browser: {self._page}\n")
        self._shown_in = media.current_cell()

    def _show_widget(self) -> None:
        picture.warm_up()  # while the widgets are imported and made
        from IPython.display import display

        from torchatlas import runtime, widget  # both import anywidget, which a script does without

        graph = self.trace.graph
        if self._widget is None:
            self._widget = widget.make(graph, self.options, runtime.shared(), uuid.uuid4().hex)
            self._widget.observe(self._selection_changed, "selected")
            self._widget.on_msg(self._answer)
        # Before the widget: where that runs, it hides this.
        _display_html(self._stand_in(self._widget._fallback))
        display(self._widget)

    def _stand_in(self, key: str, *, is_alone: bool = False) -> str:
        graph, options = self.trace.graph, self._now()
        drawn = picture.for_notebook(graph, options, fallback.PICTURE_BYTES)
        return fallback.render(graph, key, options, picture=drawn, has_code=_carries_code(), is_alone=is_alone)

    def _page_frame(self) -> str:
        # A frame keeps the page's styles and ids to itself.
        return page.frame(page.render(self.trace.graph, self._now()), self.options)

    def _temporary_page(self) -> Path:
        return self.save(Path(tempfile.mkdtemp(prefix="torchatlas-"), file_name(self.trace)))

    def _ipython_display_(self) -> None:
        """Show again where the view is a cell's value, but not in the cell that has just shown it."""
        if self._shown_in is None or self._shown_in != media.current_cell():
            self.show()

    def _mime_(self) -> tuple[str, str]:
        """What marimo shows."""
        return "text/html", self._page_frame()

    def __repr__(self) -> str:
        graph = self.trace.graph
        return f"<torchatlas.View of {graph.title}: {len(graph.nodes)} nodes, {len(graph.calls)} module calls>"

    # Inside

    def _now(self) -> ViewOptions:
        """Options that start another view as this one is."""
        options = dataclasses.replace(self.options, selected=tuple(self.selected))
        if self._widget is None or self._widget.opened is None:
            return options
        later = tuple(
            command for number, command in enumerate(options.commands, 1) if number > self._widget.done
        )  # fmt: skip
        focused = tuple(command for command in options.commands if command[0] == "focus")[-1:]
        return dataclasses.replace(options, opened=tuple(self._widget.opened), commands=(*focused, *later))

    def _names(self, wanted: Names) -> list[str]:
        """What names and queries stand for, each once."""
        hierarchy = self.trace.hierarchy
        found: dict[str, None] = {}
        for each in [wanted] if isinstance(wanted, str) else wanted:
            if not isinstance(each, str):
                raise TypeError(f"names must be strings, got {type(each).__name__}")
            names = [each] if each in hierarchy else self.trace.find(each)
            if not names and query.is_pattern(each):
                raise ValueError(f"the query {each!r} finds nothing (all names: trace.hierarchy)")
            if not names:
                raise unknown_name(each, hierarchy)
            found.update(dict.fromkeys(names))
        return list(found)

    def _command(self, kind: Literal["open", "close", "focus"], names: list[str]) -> None:
        command = (kind, tuple(names))
        self.options = dataclasses.replace(self.options, commands=(*self.options.commands, command))
        if self._widget is not None:
            from torchatlas import widget

            self._widget.commands = widget.numbered(self.options)

    def _mark(self, **look: Any) -> None:
        self.options = dataclasses.replace(self.options, **look)
        if self._widget is not None:
            self._widget.look = self.options.look()

    def _tensors(self, name: str) -> list[Any]:
        if self._last is not None and self._last[0] == name:
            return self._last[1]
        found = [tensor for _, tensor in structure.walk(self.trace.values(name, progress=True)[name])]
        size = sum(tensor.numel() * tensor.element_size() for tensor in found if not tensor.is_nested)
        self._last = (name, found) if size <= _KEPT_BYTES else None
        return found

    def _selection_changed(self, change: Mapping[str, Any]) -> None:
        self.options = dataclasses.replace(self.options, selected=tuple(change["new"]))
        for callback in list(self._callbacks):
            try:
                callback(list(change["new"]))
            except Exception as error:  # noqa: BLE001 # a mistake in it must not end the view; it is shown in two places
                traceback.print_exc()
                self._send({"type": "problem", "text": f"on_select: {type(error).__name__}: {error}"})

    def _answer(self, _widget: object, asked: Mapping[str, Any], _buffers: object) -> None:
        """Answer a question of the live view; the messages are described in js/src/kernel.js."""
        if asked.get("type") != "values":
            return
        answer = {"type": "values", "id": asked.get("id")}
        try:
            tensors, pictures = self._described(str(asked.get("name")), asked.get("at"))
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 # whatever it is, the panel shows it
            traceback.print_exc()
            self._send({**answer, "error": f"{type(error).__name__}: {error}"})
        else:
            self._send({**answer, "tensors": tensors}, pictures)

    def _described(self, name: str, at: Any) -> tuple[list[dict[str, Any]], list[bytes]]:
        tensors: list[dict[str, Any]] = []
        pictures: list[bytes] = []
        for tensor in self._tensors(name):
            row = statistics.describe(tensor)
            drawn = statistics.picture(tensor, at)
            if drawn is not None:
                row["picture"] = {**drawn[0], "buffer": len(pictures)}
                pictures.append(drawn[1])
            tensors.append(row)
        return tensors, pictures

    def _send(self, content: dict[str, Any], buffers: list[bytes] | None = None) -> None:
        if self._widget is not None:
            self._widget.send(content, buffers)


def _carries_code() -> bool:
    """Whether what is shown now must bring the code of the map that a notebook keeps.

    One cell of a notebook does, whenever it is run; the outputs of others take the code from there.
    """
    global _code_cell
    cell = media.cell_id()
    if _code_cell is None:
        _code_cell = cell
    return cell is None or cell == _code_cell


def require_how(how: object) -> None:
    """Raise unless the argument called `view` is a way to show one."""
    if how not in get_args(How):
        raise ValueError(f"view must be one of {', '.join(get_args(How))}, got {how!r}")


def file_name(trace: Trace, suffix: str = ".html") -> str:
    """Name of the file of a trace's page or picture."""
    return f"torchatlas_{re.sub(r'[^A-Za-z0-9_-]+', '_', trace.graph.title)[:80]}{suffix}"


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"the number of {name!r} must be a number, got {type(value).__name__}") from error


def _display_html(markup: str) -> None:
    from IPython.display import HTML, display

    display(HTML(markup))
