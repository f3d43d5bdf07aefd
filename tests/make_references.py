"""Write the documents behind the reviewed pictures of well-known models, from stand-ins that need only torch.

usage: python tests/make_references.py [FOLDER]

Without an argument they go to tests/references/documents, packed. js/test/references.test.js draws them and compares.
The stand-ins have the shape of their models (what branches, repeats, skips and loops), with less of each.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import make_documents

FOLDER = Path(__file__).parent / "references" / "documents"


class BasicBlock(nn.Module):
    """Two convolutions and a way around them, as in ResNet-18."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, out, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(out, out, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = _downsample(width, out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, width, height, width) to the same with other channels."""
        inner = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(inner + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """Three convolutions, narrow in the middle, as in ResNet-50."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, out // 4, 1)
        self.bn1 = nn.BatchNorm2d(out // 4)
        self.conv2 = nn.Conv2d(out // 4, out // 4, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(out // 4)
        self.conv3 = nn.Conv2d(out // 4, out, 1)
        self.bn3 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU()
        self.downsample = _downsample(width, out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, width, height, width) to the same with other channels."""
        inner = self.relu(self.bn1(self.conv1(x)))
        inner = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(inner)))))
        return self.relu(inner + (x if self.downsample is None else self.downsample(x)))


def _downsample(width: int, out: int) -> nn.Module | None:
    return None if width == out else nn.Sequential(nn.Conv2d(width, out, 1), nn.BatchNorm2d(out))


class ResNet(nn.Module):
    """Stem, two layers of blocks, head."""

    def __init__(self, block: type[nn.Module], blocks: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(2)
        self.layer1 = nn.Sequential(*(block(8, 8) for _ in range(blocks)))
        self.layer2 = nn.Sequential(block(8, 16), *(block(16, 16) for _ in range(blocks - 1)))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Map (batch, 3, height, width) to (batch, 10)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(image))))
        return self.fc(torch.flatten(self.avgpool(self.layer2(self.layer1(x))), 1))


class Attention(nn.Module):
    """Attention by its parts; with a mask when causal."""

    def __init__(self, width: int, heads: int, *, is_causal: bool) -> None:
        super().__init__()
        self.heads = heads
        self.is_causal = is_causal
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, time, width) to the same."""
        batch, time, width = x.shape
        parts = (part.view(batch, time, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        query, key, value = parts
        scores = query @ key.transpose(-1, -2) / 2.0
        if self.is_causal:
            scores = scores.masked_fill(~torch.ones(time, time, dtype=torch.bool).tril(), float("-inf"))
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.proj(mixed.transpose(1, 2).reshape(batch, time, width))


class TransformerBlock(nn.Module):
    """Attention and a small network, each with a way around it."""

    def __init__(self, width: int, *, is_causal: bool) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, 2, is_causal=is_causal)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, time, width) to the same."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class ViT(nn.Module):
    """Patches, a token in front of them, blocks, head."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.positions = nn.Parameter(torch.zeros(1, 5, 8))
        self.encoder = nn.Sequential(*(TransformerBlock(8, is_causal=False) for _ in range(2)))
        self.ln = nn.LayerNorm(8)
        self.head = nn.Linear(8, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Map (batch, 3, 8, 8) to (batch, 10)."""
        patches = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(image.shape[0], -1, -1), patches], dim=1) + self.positions
        return self.head(self.ln(self.encoder(x))[:, 0])


class GPT2(nn.Module):
    """Two embeddings, blocks, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(32, 8)
        self.wpe = nn.Embedding(16, 8)
        self.h = nn.ModuleList(TransformerBlock(8, is_causal=True) for _ in range(3))
        self.ln_f = nn.LayerNorm(8)
        self.lm_head = nn.Linear(8, 32, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Map (batch, time) to (batch, time, 32)."""
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class FasterRCNN(nn.Module):
    """A pyramid of features, a head called at each of its levels, boxes refined where they were found."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.ModuleList(nn.Conv2d(width, 8, 3, stride=2, padding=1) for width in (3, 8, 8))
        self.lateral = nn.ModuleList(nn.Conv2d(8, 4, 1) for _ in range(3))
        self.rpn = nn.ModuleDict({"objectness": nn.Conv2d(4, 1, 1), "deltas": nn.Conv2d(4, 4, 1)})
        self.box_head = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.box_predictor = nn.ModuleDict({"scores": nn.Linear(8, 3), "boxes": nn.Linear(8, 12)})

    def forward(self, image: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map (batch, 3, 16, 16) to scores and boxes of four proposals for each image."""
        levels = []
        x = image
        for stage in self.body:
            x = torch.relu(stage(x))
            levels.append(x)
        pyramid = [self.lateral[2](levels[2])]
        for at in (1, 0):
            above = functional.interpolate(pyramid[0], scale_factor=2.0)
            pyramid.insert(0, self.lateral[at](levels[at]) + above)
        objectness = torch.cat([self.rpn["objectness"](level).flatten(1) for level in pyramid], dim=1)
        deltas = torch.cat([self.rpn["deltas"](level).flatten(2) for level in pyramid], dim=2)
        best = objectness.topk(4, dim=1).indices
        proposals = deltas.gather(2, best.unsqueeze(1).expand(-1, 4, -1)).transpose(1, 2)
        features = self.box_head(proposals)
        boxes = proposals.repeat(1, 1, 3) + self.box_predictor["boxes"](features)
        return {"scores": torch.softmax(self.box_predictor["scores"](features), dim=-1), "boxes": boxes}


class UNet(nn.Module):
    """Down, up again, and a skip at each level."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(_double(a, b) for a, b in ((1, 4), (4, 8)))
        self.pool = nn.MaxPool2d(2)
        self.middle = _double(8, 16)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in ((16, 8), (8, 4)))
        self.up = nn.ModuleList(_double(a, b) for a, b in ((16, 8), (8, 4)))
        self.head = nn.Conv2d(4, 2, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Map (batch, 1, 16, 16) to (batch, 2, 16, 16)."""
        skips = []
        x = image
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = self.pool(x)
        x = self.middle(x)
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat([skips.pop(), grow(x)], dim=1))
        return self.head(x)


def _double(width: int, out: int) -> nn.Sequential:
    first, second = nn.Conv2d(width, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU())


class Tagger(nn.Module):
    """An LSTM by its cells, unrolled by a Python loop, read out at each step."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(16, 4)
        self.cell = nn.LSTMCell(4, 8)
        self.dropout = nn.Dropout(0.1)
        self.tag = nn.Linear(8, 5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Map (batch, time) to (batch, time, 5)."""
        hidden, cell = torch.zeros(ids.shape[0], 8), torch.zeros(ids.shape[0], 8)
        steps = []
        for step in self.embed(ids).unbind(1):
            hidden, cell = self.cell(step, (hidden, cell))
            steps.append(self.tag(self.dropout(hidden)))
        return torch.stack(steps, dim=1)


MODELS: dict[str, Callable[[], tuple[nn.Module, Any]]] = {
    "resnet18": lambda: (ResNet(BasicBlock, 2), torch.rand(1, 3, 16, 16)),
    "resnet50": lambda: (ResNet(Bottleneck, 3), torch.rand(1, 3, 16, 16)),
    "vit": lambda: (ViT(), torch.rand(1, 3, 8, 8)),
    "gpt2": lambda: (GPT2(), torch.tensor([[1, 2, 3, 4]])),
    "fasterrcnn": lambda: (FasterRCNN(), torch.rand(1, 3, 16, 16)),
    "unet": lambda: (UNet(), torch.rand(1, 1, 16, 16)),
    "lstm": lambda: (Tagger(), torch.tensor([[1, 2, 3, 4]])),
}


def write(folder: Path) -> list[Path]:
    """Write every document, packed, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, build in MODELS.items():
        torch.manual_seed(0)
        path = folder / f"{name}.json.gz"
        document = make_documents.document_of(*build())
        path.write_bytes(gzip.compress(json.dumps(document, separators=(",", ":")).encode("ascii"), mtime=0))
        paths.append(path)
    return paths


if __name__ == "__main__":
    for written in write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        print(written)
