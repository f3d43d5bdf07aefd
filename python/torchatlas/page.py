"""A graph as one HTML page that opens from disk, offline.

Every text of the model is inside data elements, packed, so that no name, message or source line can be markup.
"""

from __future__ import annotations

import base64
import gzip
import html
import re

from torchatlas import bundle, schema
from torchatlas.graph import Graph
from torchatlas.options import ViewOptions

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def render(graph: Graph, options: ViewOptions | None = None) -> str:
    """Put a graph, the view and Graphviz into the page's template.

    Args:
        graph: the graph.
        options: how the view starts.

    Returns:
        HTML that needs nothing from the network.

    Raises:
        FileNotFoundError: the bundle was not built.
    """
    values = {
        "document": _base64(gzip.compress(schema.to_json(graph).encode("ascii"), mtime=0)),
        "bundle": bundle.page_script(),
        "wasm": _base64(bundle.packed_wasm()),
        "options": schema.dumps((options or ViewOptions()).to_wire()).replace("<", "\\u003c"),
    }
    # One pass: what is put in is not looked at again.
    return _PLACEHOLDER.sub(lambda found: values[found[1]], bundle.template())


def frame(page: str, options: ViewOptions) -> str:
    """Put a page into a frame for a cell's output, where it keeps its styles and ids to itself.

    Args:
        page: the page.
        options: give the frame's size.

    Returns:
        HTML of one element. IPython warns of text that begins with a frame, so the frame is inside a `div`.
    """
    width = "100%" if options.width is None else f"{options.width}px"
    style = f"width: {width}; height: {options.height}px; border: 0"
    return f'<div><iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(page)}"></iframe></div>'


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
