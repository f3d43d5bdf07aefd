"""The forward pass of any PyTorch model as an interactive map in a notebook."""

from torchatlas._version import __version__
from torchatlas.display import trace_model
from torchatlas.graph import Edge, Graph, ModuleCall, Node, TensorSpec
from torchatlas.surgery import Extract, Inspect, get_layers, get_nodes, patched, reset_tracer, set_tracer
from torchatlas.trace import Trace, trace
from torchatlas.verification import Verification
from torchatlas.view import View

__all__ = [
    "Edge",
    "Extract",
    "Graph",
    "Inspect",
    "ModuleCall",
    "Node",
    "TensorSpec",
    "Trace",
    "Verification",
    "View",
    "__version__",
    "get_layers",
    "get_nodes",
    "patched",
    "reset_tracer",
    "set_tracer",
    "trace",
    "trace_model",
]
