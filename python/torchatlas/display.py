"""Show a trace where the caller is: as a widget in a notebook, as a page where widgets don't run, as text elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from torchatlas import export, media, picture
from torchatlas.options import ViewOptions, require_boolean, require_integer
from torchatlas.trace import Trace, trace
from torchatlas.view import How, Names, View, file_name, require_how

_EXPORT_SUFFIXES = (".html", ".svg", ".png", ".pdf")


@dataclass(frozen=True, slots=True)
class _Target:
    """A file that is asked for beside the view.

    Attributes:
        place: the file, or an existing folder to put it in.
        suffix: says what kind of file.
    """

    place: Path
    suffix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What a view starts with, in the words of the methods of `View`.

    Attributes:
        open, close, focus, select, highlight: what is given to the method of that name; None leaves it out.
        colour: numbers to colour by.
        legend: what the numbers are.
        notes: name to a text for the panel.
    """

    open: Names | None = None
    close: Names | None = None
    focus: str | None = None
    select: Names | None = None
    highlight: Names | None = None
    colour: Mapping[str, float] | None = None
    legend: str = ""
    notes: Mapping[str, str] | None = None

    def put_on(self, view: View) -> None:
        """Call the methods."""
        for name in ("open", "close", "focus", "select", "highlight"):
            if getattr(self, name) is not None:
                getattr(view, name)(getattr(self, name))
        if self.colour is not None:
            view.colour(self.colour, self.legend)
        for name, text in (self.notes or {}).items():
            view.note(name, text)


_MARKS = {each.name for each in fields(Marks)}


def show(trace: Trace, *, view: How = "auto", **options: Any) -> View:
    """Show a trace.

    Args:
        trace: what to show.
        view: as what, in a notebook; see `trace_model`.
        **options: fields of `ViewOptions`, or of `Marks`: `focus`, `open`, `close`, `select`, `highlight`, `colour`
            with `legend`, and `notes`.

    Returns:
        The view, already shown.

    Raises:
        TypeError: there is no such option, or it has the wrong type.
        ValueError: an option is outside its range, or a name or query finds nothing.
    """
    marks = Marks(**{name: value for name, value in options.items() if name in _MARKS})
    made = View(trace, ViewOptions(**{name: value for name, value in options.items() if name not in _MARKS}), view)
    marks.put_on(made)
    made.show()
    return made


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
    stats: bool = False,
    view: How = "auto",
    focus: str | None = None,
    open: Names | None = None,
    close: Names | None = None,
    select: Names | None = None,
    highlight: Names | None = None,
    colour: Mapping[str, float] | None = None,
    legend: str = "",
    notes: Mapping[str, str] | None = None,
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
        export_format: `html` writes a page too, `svg`, `png` or `pdf` a picture (they need `torchatlas[export]`); None
            writes a file only if `export_path` is given.
        show_module_attr_names: accepted for torchvista; a module always shows both its attribute name and its type.
        export_path: the file, or the folder to put it in, made if it is missing. Without it `export_format="html"`
            writes `torchatlas_<class name>.html` to the working directory.
        show_compressed_view: whether equal blocks in a row are drawn as one; None leaves it to the view.
        theme: `light`, `dark` or `auto`.
        past_errors: where the forward raises, look past the failure, so that all failures are found in one run and the
            rest of the model is drawn; see `trace`.
        stats: measure the results while they are there, so that their statistics are known without a kernel too.
        view: `widget`, `html` (a page in a frame, of about 700 kB) or `static` (an outline, no script); `auto` takes
            the widget, and the page on Kaggle, which can't load it. A terminal shows text in any case.
        focus, open, close, select, highlight, colour, legend, notes: what the view starts with; see the methods of
            `View` (`notes`: name to text).

    Returns:
        The view. As the last value of its cell it does not show again.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument has a value that is not known.
        ImportError: a picture is asked for, and a package of `torchatlas[export]` is missing.
        OSError: `export_path` can't be written.
        BaseException: what the forward raised, with the partial trace as its attribute `torchatlas_trace`.

    Example:
        >>> view = trace_model(torch.nn.Linear(4, 2), torch.ones(1, 4))  # doctest: +SKIP
    """
    _require_model(model)
    require_how(view)
    require_boolean("stats", stats)
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
    marks = Marks(
        open=open,
        close=close,
        focus=focus,
        select=select,
        highlight=highlight,
        colour=colour,
        legend=legend,
        notes=notes,
    )
    if media.current() in ("widget", "static"):
        picture.warm_up()
    try:
        recorded = trace(model, inputs, kwargs, past_errors=past_errors, stats=stats, progress=True)
    except BaseException as error:
        partial = getattr(error, "torchatlas_trace", None)
        if partial is not None:
            _show_partial(View(partial, options, view), target)
        raise
    shown = View(recorded, options, view)
    marks.put_on(shown)
    return _show_and_export(shown, target)


def _show_and_export(view: View, target: _Target | None) -> View:
    if target is None:
        view.show()
    elif target.suffix == ".html":
        path = _export(view, target)
        view.show(path)
        if media.current() != "text":  # which has just named it
            media.write(f"saved {path}\n")
    else:
        view.show()
        media.write(f"saved {_export(view, target)}\n")
    return view


def _export(view: View, target: _Target) -> Path:
    file = target.place / file_name(view.trace, target.suffix) if target.place.is_dir() else target.place
    return export.save(view.trace.graph, file, view.options, argument="export_path")


def _show_partial(partial: View, target: _Target | None) -> None:
    try:
        _show_and_export(partial, target)
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


def _export_target(export_format: str | None, export_path: str | os.PathLike[str] | None) -> _Target | None:
    """What file is asked for; None where none is."""
    wanted = _export_suffix(export_format)
    if export_path is None:
        return None if wanted is None else _Target(Path.cwd(), wanted)
    if not isinstance(export_path, (str, os.PathLike)):
        raise TypeError(f"export_path must be a string or a path, got {type(export_path).__name__}")
    target = Path(export_path).expanduser()
    if target.is_dir() or not target.suffix:
        _make_folder(target)
        return _Target(target, wanted or ".html")
    suffix = target.suffix.lower()
    if suffix not in _EXPORT_SUFFIXES:
        known = ", ".join(_EXPORT_SUFFIXES)
        raise ValueError(f"export_path must end in one of {known}, or be a folder, got {os.fspath(export_path)!r}")
    if wanted not in (None, suffix):
        raise ValueError(f"export_path ends in {suffix}, which is not export_format={export_format!r}")
    export.writable_path(target, "export_path")
    _make_folder(target.parent)
    return _Target(target, suffix)


def _export_suffix(export_format: str | None) -> str | None:
    if export_format is None:
        return None
    if not isinstance(export_format, str):
        raise TypeError(f"export_format must be a string, got {type(export_format).__name__}")
    suffix = f".{export_format.lower()}"
    if suffix not in _EXPORT_SUFFIXES:
        known = ", ".join(each.removeprefix(".") for each in _EXPORT_SUFFIXES)
        raise ValueError(f"export_format must be None or one of {known}, got {export_format!r}")
    export.writable_path(f"x{suffix}", "export_format")
    return suffix


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise export.unwritable("export_path", folder, error) from error
