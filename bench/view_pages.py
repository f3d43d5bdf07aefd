"""The pages that `view.py` opens: the same models drawn by torchatlas and by torchvista, with random weights."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import torchatlas
from torchatlas import page
from torchatlas.options import ViewOptions

Built = tuple[nn.Module, tuple[Any, ...]]
FULLY_OPEN = ViewOptions(depth=50, fold_repeats=False, theme="light")
BLOCKS = ViewOptions(depth=1, fold_repeats=False, theme="light")
"""What the outermost modules hold, each block by itself."""


def gpt2(layers: int, width: int = 64) -> Built:
    import transformers

    config = transformers.GPT2Config(n_layer=layers, n_embd=width, n_head=4, vocab_size=1000)
    return transformers.GPT2LMHeadModel(config).eval(), (torch.randint(0, 1000, (1, 32)),)


def resnet50() -> Built:
    import torchvision

    return torchvision.models.resnet50(weights=None).eval(), (torch.rand(1, 3, 64, 64),)


MODELS: dict[str, Callable[[], Built]] = {
    "gpt2-12": lambda: gpt2(12),
    "gpt2-48": lambda: gpt2(48),
    "resnet50": resnet50,
    "5k": lambda: gpt2(90, 16),
    "10k": lambda: gpt2(180, 16),
    "30k": lambda: gpt2(540, 16),
}
PEERS = {("gpt2-12", "open"): 50, ("resnet50", "open"): 50, ("gpt2-48", "blocks"): 1}
"""Model and state that torchvista draws, too, with its `collapse_modules_after_depth`; it dies of gpt2-48 all open."""


def write_pages(folder: Path, names: list[str], log: Callable[[str], None]) -> None:
    """Write `MODEL-STATE-TOOL.html` for all models and states that are measured."""
    sys.setrecursionlimit(50_000)  # torchvista walks the graph recursively
    for name in names:
        log(f"pages of {name}")
        torch.manual_seed(0)
        model, args = MODELS[name]()
        with torch.no_grad():
            graph = torchatlas.trace(model, *args).graph
        (folder / f"{name}-open-torchatlas.html").write_text(page.render(graph, FULLY_OPEN))
        (folder / f"{name}-blocks-torchatlas.html").write_text(page.render(graph, BLOCKS))
        for (peer_name, state), depth in PEERS.items():
            if peer_name == name:
                _write_torchvista(folder / f"{name}-{state}-torchvista.html", *MODELS[name](), depth)


def _write_torchvista(path: Path, model: nn.Module, args: tuple[Any, ...], depth: int) -> None:
    import torchvista

    with contextlib.redirect_stdout(io.StringIO()):
        torchvista.trace_model(
            model,
            args if len(args) > 1 else args[0],
            collapse_modules_after_depth=depth,
            forced_module_tracing_depth=5,
            export_format="html",
            export_path=str(path),
        )
