"""The anywidget classes: traits and messages, no logic."""

from __future__ import annotations

import gzip
from typing import Any

import anywidget
import traitlets

from torchatlas import bundle, schema
from torchatlas.graph import Graph
from torchatlas.options import ViewOptions


class Runtime(anywidget.AnyWidget):
    """The code of the view, once per kernel; never displayed.

    Attributes:
        digest: of the code, under which a page keeps it.
    """

    _esm = "export default {};"
    _script = traitlets.Bytes().tag(sync=True)
    _wasm = traitlets.Bytes().tag(sync=True)
    digest = traitlets.Unicode()


class GraphWidget(anywidget.AnyWidget):
    """One view in one cell.

    Attributes:
        selected: names of the selected nodes and calls; written by both sides.
        opened: names of the open calls; written by the view, None until it has run.
        visible: what is drawn, in drawing order: the id of a call, or -1 minus the id of a node; written by the view.
        commands: what Python asked of the view, each a number, a kind and names; see `ViewOptions.commands`.
        done: number of the last command that the view has carried out.
        look: what Python marked: `highlighted`, `numbers`, `legend` and `notes` of `ViewOptions`.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _runtime = traitlets.Unicode().tag(sync=True)
    _bundle = traitlets.Unicode().tag(sync=True)
    _fallback = traitlets.Unicode().tag(sync=True)
    _document = traitlets.Bytes().tag(sync=True)
    _options: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    selected: traitlets.List[str] = traitlets.List().tag(sync=True)
    # What the view alone writes need not be sent back to it.
    opened: traitlets.List[str] = traitlets.List(default_value=None, allow_none=True).tag(sync=True, echo_update=False)
    visible: traitlets.List[int] = traitlets.List(default_value=None, allow_none=True).tag(sync=True, echo_update=False)
    commands: traitlets.List[Any] = traitlets.List().tag(sync=True)
    done = traitlets.Int(0).tag(sync=True, echo_update=False)
    look: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)

    def __repr__(self) -> str:
        # Viewers that know no widgets show this below what stands in for the view.
        return "torchatlas: run the cell for the live view"


def make(graph: Graph, options: ViewOptions, runtime: Runtime, fallback: str) -> GraphWidget:
    """Make the widget of a graph.

    Args:
        graph: the graph.
        options: how the view starts.
        runtime: the kernel's runtime, made before.
        fallback: key of the output that stands in for the view until it runs.

    Raises:
        FileNotFoundError: the bundle was not built.
    """
    wire = options.to_wire()
    return GraphWidget(
        _esm=bundle.loader(),
        # The form in which ipywidgets refers to another model, which tools that save widgets follow.
        _runtime=f"IPY_MODEL_{runtime.model_id}",
        _bundle=runtime.digest,
        _fallback=fallback,
        _document=gzip.compress(schema.to_json(graph).encode("ascii"), mtime=0),
        _options={name: value for name, value in wire.items() if name not in ("commands", *options.LOOK)},
        selected=list(options.selected),
        commands=numbered(options),
        look=options.look(),
        layout=runtime.layout,  # one of its own would be one more model, of a kilobyte and a half
    )


def numbered(options: ViewOptions) -> list[list[Any]]:
    """The commands as the view reads them, numbered from 1."""
    return [[number, kind, list(names)] for number, (kind, names) in enumerate(options.commands, 1)]
