"""Trace three models and write a page of each: GPT-2 small, ResNet-50, and a model that crashes midway.

usage: python demo/demo.py FOLDER

The models are built from their configurations with random weights; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, ResNetConfig, ResNetForImageClassification

import torchatlas


class Block(nn.Module):
    """Two Linears around a GELU, added to what came in."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, width) to (batch, width)."""
        return x + self.down(nn.functional.gelu(self.up(x)))


class Classifier(nn.Module):
    """Blocks and a head whose width was forgotten when the blocks were made wider: the head raises."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(64, 256), Block(64, 256))
        self.head = nn.Sequential(nn.LayerNorm(64), nn.Linear(32, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, 64) to (batch, classes), were it not for the head."""
        scores: torch.Tensor = self.head(self.blocks(x))
        return scores


def models() -> list[tuple[str, nn.Module, torch.Tensor]]:
    """Name, model and input of each example."""
    torch.manual_seed(0)
    return [
        ("gpt2", GPT2LMHeadModel(GPT2Config(use_cache=False)).eval(), torch.randint(0, 50257, (1, 128))),
        ("resnet50", ResNetForImageClassification(ResNetConfig()).eval(), torch.rand(1, 3, 224, 224)),
        ("crash", Classifier().eval(), torch.rand(8, 64)),
    ]


def main() -> None:
    """Trace, print a summary of each model, write the pages and print their paths."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, model, inputs in models():
        start = time.perf_counter()
        trace = torchatlas.trace(model, inputs, on_error="keep")
        elapsed_s = time.perf_counter() - start
        print(f"{trace.summary()}\ntraced in {elapsed_s:.2f} s\n")
        paths.append(folder / f"{name}.html")
        trace.save(paths[-1])
    print("open in a browser:")
    for path in paths:
        print(f"  {path}  ({path.stat().st_size / 1000:.0f} kB)")


if __name__ == "__main__":
    main()
