"""Show a trace where the caller is: as a widget in a notebook, as a page where widgets don't run, as text elsewhere."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from torchatlas import export, page, text
from torchatlas.options import ViewOptions, require_boolean, require_integer
from torchatlas.trace import Trace, trace

if TYPE_CHECKING:
    from torchatlas.widget import GraphWidget

Medium = Literal["widget", "html", "text"]
_EXPORT_FORMATS = ("html",)
_PICTURE_FORMATS = ("png", "svg")


class View:
    """A trace on show. Not an ipywidgets Widget, which has an `open` and a `close` of its own.

    Attributes:
        trace: what is shown.
        options: how it started.
    """

    def __init__(self, trace: Trace, options: ViewOptions) -> None:
        self.trace = trace
        self.options = options
        self._widget: GraphWidget | None = None
        self._page: Path | None = None
        self._shown_in: object = None

    @property
    def selected(self) -> list[str]:
        """Names of the selected nodes and module calls; empty without a live view."""
        return [] if self._widget is None else list(self._widget.selected)

    @property
    def opened(self) -> list[str]:
        """Names of the open module calls, as far as the live view has told."""
        return [] if self._widget is None else list(self._widget.opened)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the trace as a page that starts as this view did, as its document, or as DOT.

        Args:
            path: where to; ends in `.html`, `.json` or `.dot`.

        Returns:
            The absolute path of the file.

        Raises:
            TypeError: `path` is no path.
            ValueError: `path` has another suffix.
            OSError: `path` can't be written.
        """
        return export.save(self.trace.graph, path, self.options)

    def show(self, page_path: Path | None = None) -> None:
        """Show the view here and now.

        Args:
            page_path: the page that a terminal names; None writes one to the folder for temporary files.
        """
        medium = _medium()
        if medium == "widget":
            self._show_widget()
        elif medium == "html":
            self._show_html()
        else:
            self._page = page_path or self._page or self._temporary_page()
            _write(f"{text.summary(self.trace.graph)}\n\nopen in a browser: {self._page}\n")
        self._shown_in = _current_cell()

    def _temporary_page(self) -> Path:
        return self.save(Path(tempfile.mkdtemp(prefix="torchatlas-"), _page_name(self.trace)))

    def _show_widget(self) -> None:
        from IPython.display import display

        from torchatlas import widget

        if self._widget is None:
            self._widget = widget.make(self.trace.graph, self.options)
        display(self._widget)

    def _show_html(self) -> None:
        from IPython.display import HTML, display

        # A frame keeps the page's styles and ids to itself.
        frame = page.frame(page.render(self.trace.graph, self.options), self.options)
        display(HTML(frame))

    def _ipython_display_(self) -> None:
        """Show again where the view is a cell's value, but not in the cell that has just shown it."""
        if self._shown_in is None or self._shown_in != _current_cell():
            self.show()

    def __repr__(self) -> str:
        graph = self.trace.graph
        return f"<torchatlas.View of {graph.title}: {len(graph.nodes)} nodes, {len(graph.calls)} module calls>"


def show(trace: Trace, **options: Any) -> View:
    """Show a trace.

    Args:
        trace: what to show.
        **options: fields of `ViewOptions`.

    Returns:
        The view, already shown.

    Raises:
        TypeError: there is no such option, or it has the wrong type.
        ValueError: an option is outside its range.
    """
    view = View(trace, ViewOptions(**options))
    view.show()
    return view


def trace_model(
    model: Callable[..., Any],
    inputs: Any,
    kwargs: Mapping[str, Any] | None = None,
    *,
    show_non_gradient_nodes: bool | None = None,
    collapse_modules_after_depth: int | None = None,
    forced_module_tracing_depth: int | None = None,
    height: int = 600,
    width: int | None = None,
    export_format: str | None = None,
    show_module_attr_names: bool = True,
    export_path: str | os.PathLike[str] | None = None,
    show_compressed_view: bool | None = None,
    theme: Literal["auto", "light", "dark"] = "auto",
    past_errors: bool = False,
) -> View:
    """Run a model's forward once and draw what ran.

    In a notebook the view appears in the cell; in a terminal or script a summary is printed with the path of a page.
    When the forward raises, what ran until then is shown, and the same exception goes on to the caller.

    Takes every argument of torchvista's function of this name. Everything is recorded whatever they say; they set how
    the view starts.

    Args:
        model: a module, or any function of tensors.
        inputs: a tuple is splatted; a mapping whose keys all name parameters of `forward` is passed as keywords;
            anything else, a list too, is the one positional argument.
        kwargs: keyword arguments of `forward`.
        show_non_gradient_nodes: whether constants are drawn; None leaves it to the view, which can change it later.
        collapse_modules_after_depth: levels of modules that are open at the start; None opens what fits a first look.
        forced_module_tracing_depth: the most levels that are open at the start. torchvista stops recording there;
            here nothing is lost, so deeper modules still open.
        height: height of the view in px.
        width: width of the view in px; None for that of the cell.
        export_format: `html` writes a page too; None writes one only if `export_path` is given.
        show_module_attr_names: accepted for torchvista; a module always shows both its attribute name and its type.
        export_path: file of the page (`.html`), or the folder to put it in, made if it is missing. Without it
            `export_format="html"` writes `torchatlas_<class name>.html` to the working directory.
        show_compressed_view: whether equal blocks in a row are drawn as one; None leaves it to the view.
        theme: `light`, `dark` or `auto`.
        past_errors: where the forward raises, look past the failure, so that all failures are found in one run and the
            rest of the model is drawn; see `trace`.

    Returns:
        The view. As the last value of its cell it does not show again.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument has a value that is not known, or not possible yet (`png`, `svg`).
        OSError: `export_path` can't be written.
        BaseException: what the forward raised, with the partial trace as its attribute `torchatlas_trace`.

    Example:
        >>> view = trace_model(torch.nn.Linear(4, 2), torch.ones(1, 4))  # doctest: +SKIP
    """
    _require_model(model)
    require_boolean("show_module_attr_names", show_module_attr_names)
    require_boolean("past_errors", past_errors)
    options = _view_options(
        show_non_gradient_nodes=show_non_gradient_nodes,
        collapse_modules_after_depth=collapse_modules_after_depth,
        forced_module_tracing_depth=forced_module_tracing_depth,
        height=height,
        width=width,
        show_compressed_view=show_compressed_view,
        theme=theme,
    )
    target = _export_target(export_format, export_path)
    try:
        recorded = trace(model, inputs, kwargs, past_errors=past_errors)
    except BaseException as error:
        partial = getattr(error, "torchatlas_trace", None)
        if partial is not None:
            _show_partial(partial, options, target)
        raise
    return _show_and_export(recorded, options, target)


def _show_and_export(trace: Trace, options: ViewOptions, target: Path | None) -> View:
    view = View(trace, options)
    path = None
    if target is not None:
        file = target / _page_name(trace) if target.is_dir() else target
        path = export.save(trace.graph, file, options, argument="export_path")
    view.show(path)
    if path is not None and _medium() != "text":
        _write(f"saved {path}\n")
    return view


def _show_partial(partial: Trace, options: ViewOptions, target: Path | None) -> None:
    try:
        _show_and_export(partial, options, target)
    except Exception as error:  # noqa: BLE001 # the user's own exception must not be replaced by ours
        print(f"torchatlas: the partial graph could not be shown: {error!r}", file=sys.stderr)


def _require_model(model: object) -> None:
    if isinstance(model, type):
        raise TypeError(f"model must be a module or a function, got the class {model.__name__}; make an instance of it")
    if not callable(model):
        raise TypeError(f"model must be a torch.nn.Module or a function, got {type(model).__name__}")


def _view_options(
    *,
    show_non_gradient_nodes: bool | None,
    collapse_modules_after_depth: int | None,
    forced_module_tracing_depth: int | None,
    height: int,
    width: int | None,
    show_compressed_view: bool | None,
    theme: Literal["auto", "light", "dark"],
) -> ViewOptions:
    """The view's options, checked under the names that the caller used."""
    depths = {
        "collapse_modules_after_depth": collapse_modules_after_depth,
        "forced_module_tracing_depth": forced_module_tracing_depth,
    }
    given = {name: depth for name, depth in depths.items() if depth is not None}
    for name, depth in given.items():
        require_integer(name, depth, at_least=0)
    switches = {"show_non_gradient_nodes": show_non_gradient_nodes, "show_compressed_view": show_compressed_view}
    for name, switch in switches.items():
        if switch is not None:
            require_boolean(name, switch)
    return ViewOptions(
        depth=min(given.values(), default=None),
        height=height,
        width=width,
        theme=theme,
        show_constants=show_non_gradient_nodes,
        fold_repeats=show_compressed_view,
    )


def _export_target(export_format: str | None, export_path: str | os.PathLike[str] | None) -> Path | None:
    """The file of the page, or an existing folder to put it in; None where no page is asked for."""
    if export_format is not None:
        if not isinstance(export_format, str):
            raise TypeError(f"export_format must be a string, got {type(export_format).__name__}")
        if export_format.lower() in _PICTURE_FORMATS:
            raise ValueError(f"export_format={export_format!r}: pictures can't be exported yet; use 'html'")
        if export_format.lower() not in _EXPORT_FORMATS:
            raise ValueError(f"export_format must be None or 'html', got {export_format!r}")
    if export_path is None:
        return None if export_format is None else Path.cwd()
    if not isinstance(export_path, (str, os.PathLike)):
        raise TypeError(f"export_path must be a string or a path, got {type(export_path).__name__}")
    target = Path(export_path).expanduser()
    is_folder = target.is_dir() or not target.suffix
    if not is_folder:
        export.writable_path(target, "export_path")
        if target.suffix.lower() != ".html":
            raise ValueError(f"export_path must end in .html or be a folder, got {os.fspath(export_path)!r}")
    _make_folder(target if is_folder else target.parent)
    return target


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise export.unwritable("export_path", folder, error) from error


def _page_name(trace: Trace) -> str:
    return f"torchatlas_{re.sub(r'[^A-Za-z0-9_-]+', '_', trace.graph.title)[:80]}.html"


def _medium() -> Medium:
    """What can be shown here."""
    shell = _shell()
    if shell is None or not hasattr(shell, "kernel"):
        return "text"
    # Kaggle's notebooks can't load a widget that was installed in the session (Kaggle/docker-python#1487).
    return "html" if "KAGGLE_KERNEL_RUN_TYPE" in os.environ else "widget"


def _shell() -> Any:
    """IPython's shell, without importing IPython into a plain script."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _current_cell() -> object:
    """What tells this run of this cell from others: the request of a kernel, the counter of a terminal."""
    shell = _shell()
    if shell is None:
        return None
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        return kernel.get_parent("shell").get("header", {}).get("msg_id")
    return shell.execution_count


def _write(said: str) -> None:
    """Print, with `?` for what the terminal's encoding lacks."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(said.encode(encoding, "replace").decode(encoding), end="", flush=True)
