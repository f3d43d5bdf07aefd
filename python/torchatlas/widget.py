"""The anywidget class: traits and messages, no logic."""

from __future__ import annotations

import gzip
from typing import Any

import anywidget
import traitlets

from torchatlas import bundle, schema
from torchatlas.graph import Graph
from torchatlas.options import ViewOptions


class GraphWidget(anywidget.AnyWidget):
    """One view in one cell.

    Attributes:
        selected: names of the selected nodes and calls; written by both sides.
        opened: names of the open calls; written by the view.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _document = traitlets.Bytes().tag(sync=True)
    _wasm = traitlets.Bytes().tag(sync=True)
    _options: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    selected: traitlets.List[str] = traitlets.List(traitlets.Unicode()).tag(sync=True)
    opened: traitlets.List[str] = traitlets.List(traitlets.Unicode()).tag(sync=True)


def make(graph: Graph, options: ViewOptions) -> GraphWidget:
    """Make the widget of a graph.

    Args:
        graph: the graph.
        options: how the view starts.

    Raises:
        FileNotFoundError: the bundle was not built.
    """
    return GraphWidget(
        _esm=bundle.script(),
        _document=gzip.compress(schema.to_json(graph).encode("ascii"), mtime=0),
        _wasm=bundle.packed_wasm(),
        _options=options.to_wire(),
    )
