"""How each tool that `tracing.py` compares is asked for a trace, without drawing it.

Every tool gets its cheapest setting that still gives all operations, and its drawing is taken out: only tracing is
compared. A tool's function is loaded in the process that measures it, because some leave torch changed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

Trace = Callable[[nn.Module, tuple[Any, ...]], Any]


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        name: its package.
        load: gives the function that traces.
        finish: makes of the function's result what the other tools give at once; None where there is nothing left.
    """

    name: str
    load: Callable[[], Trace]
    finish: Callable[[Any], Any] | None = None

    @property
    def version(self) -> str | None:
        """Installed version; None where it is not installed."""
        if importlib.util.find_spec(self.name) is None:
            return None
        try:
            return importlib.metadata.version(self.name)
        except importlib.metadata.PackageNotFoundError:  # found on the path, for example in a checkout
            return str(getattr(importlib.import_module(self.name), "__version__", "unknown"))


def _torchatlas() -> Trace:
    import torchatlas

    return lambda model, args: torchatlas.trace(model, args, on_error="keep")


def _torchatlas_past_errors() -> Trace:
    import torchatlas

    return lambda model, args: torchatlas.trace(model, args, on_error="keep", past_errors=True)


def _torchvista() -> Trace:
    """Without `plot_graph`, which fills an HTML template and hands it to IPython; depth 100 reaches every operation."""
    import torchvista.tracer

    torchvista.tracer.plot_graph = lambda *args, **kwargs: None
    return lambda model, args: torchvista.tracer.trace_model(model, args, forced_module_tracing_depth=100)


def _torchlens() -> Trace:
    """Without keeping any activation, as none of the others keeps them."""
    import torchlens
    from torchlens.options import CaptureOptions

    capture = CaptureOptions(layers_to_save="none")
    return lambda model, args: torchlens.trace(model, args, capture=capture)


def _torchview() -> Trace:
    """Without `fill_visual_graph`, which writes Graphviz's language."""
    import torchview
    from torchview.computation_graph import ComputationGraph

    ComputationGraph.fill_visual_graph = lambda self: None
    return lambda model, args: torchview.draw_graph(model, input_data=args, device="cpu", depth=100, save_graph=False)


ATLAS = Tool("torchatlas", _torchatlas, lambda trace: trace.graph)
PAST_ERRORS = Tool("torchatlas", _torchatlas_past_errors)
PEERS = (Tool("torchvista", _torchvista), Tool("torchlens", _torchlens), Tool("torchview", _torchview))
