"""The forward pass of any PyTorch model as an interactive map in a notebook."""

from torchatlas._version import __version__
from torchatlas.display import View, trace_model
from torchatlas.graph import Edge, Graph, ModuleCall, Node, TensorSpec
from torchatlas.trace import Trace, Verification, trace

__all__ = [
    "Edge",
    "Graph",
    "ModuleCall",
    "Node",
    "TensorSpec",
    "Trace",
    "Verification",
    "View",
    "__version__",
    "trace",
    "trace_model",
]
