"""Write the documents that the tests of both languages read, from small models made for it.

usage: python tests/make_documents.py [FOLDER]

Without an argument they go to tests/documents and tests/abridged, where git keeps them. Tests compare with new ones.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torchatlas import abridged, schema, trace
from torchatlas.graph import Graph

FOLDER = Path(__file__).parent / "documents"
ROOT = Path(__file__).parents[1]
# What depends on the machine and the moment.
_UNSTABLE_METRICS = {"time_ms"}


class Residual(nn.Module):
    """A branch around two convolutions; the sum reads one tensor that skips both."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 3, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(3)
        self.conv2 = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Map (batch, 3, height, width) to the same."""
        inner = torch.relu(self.bn1(self.conv1(image)))
        return torch.relu(self.conv2(inner) + image)


class Attention(nn.Module):
    """Causal attention: three tensors leave one chunk, a mask comes from no module."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, time, width) to the same."""
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        scores = (query @ key.transpose(-1, -2)).masked_fill(~mask, float("-inf"))
        return self.proj(torch.softmax(scores, dim=-1) @ value)


class Block(nn.Module):
    """Attention and a perceptron, each added to its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, time, width) to the same."""
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    """A small language model: equal blocks in a row, positions as a buffer, tied embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.register_buffer("position", torch.zeros(1, 5, 8))
        self.layers = nn.ModuleList(Block(8) for _ in range(4))
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 16, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map (batch, time) token ids to (batch, time, vocabulary) scores."""
        x = self.embed(ids) + self.position
        for layer in self.layers:
            x = layer(x)
        return {"logits": self.head(self.norm(x)), "hidden": x}


class Reused(nn.Module):
    """One module called twice, and one that hands its input on."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.skip = nn.Identity()

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Map (batch, 4) to twice (batch, 4)."""
        first = self.fc(x)
        return self.fc(torch.tanh(first)), self.skip(first) * scale


class Mutating(nn.Module):
    """In-place operations: a write through a view, an assignment to a slice, `out=`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (3, 4) to (4,)."""
        canvas = torch.zeros(3, 4)
        canvas[0] = x[0]
        row = canvas[1]
        row.add_(x[1])
        total = torch.empty(4)
        torch.sum(canvas, 0, out=total)
        return total.relu_()


class Crashing(nn.Module):
    """The second Linear of the inner module does not fit what the first one gives."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 6)
        self.body = nn.Sequential(nn.Linear(6, 6), nn.Sequential(nn.ReLU(), nn.Linear(5, 2)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Raise, for (batch, 4)."""
        return self.body(torch.relu(self.stem(x)))


class Squared(torch.autograd.Function):
    """A function whose inside torch's Python API does not show."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Square."""
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        """Gradient of the square."""
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Opaque(nn.Module):
    """An autograd Function between two ordinary operations."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map any shape to the same."""
        return torch.sigmoid(Squared.apply(x + 1))


class Hostile(nn.Module):
    """Names that try to leave the place where text belongs."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("</script><script>alert(1)</script>", 'a"b', "back\\slash", "名前", "{x|y}", "__proto__", "&lt;"):
            self.add_module(name, nn.Linear(2, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, 2) to the same."""
        for module in self.children():
            x = module(x)
        return x


class Nested(nn.Module):
    """A module inside a module inside a module."""

    def __init__(self, levels: int) -> None:
        super().__init__()
        self.inner = Nested(levels - 1) if levels else nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, 2) to the same."""
        return self.inner(x)


MODELS: dict[str, Callable[[], tuple[nn.Module, Any]]] = {
    "mlp": lambda: (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.rand(1, 4)),
    "residual": lambda: (Residual(), torch.rand(1, 3, 8, 8)),
    "decoder": lambda: (Decoder(), torch.tensor([[1, 2, 3, 4, 5]])),
    "reused": lambda: (Reused(), (torch.rand(2, 4), torch.rand(4))),
    "mutating": lambda: (Mutating(), torch.rand(3, 4)),
    "crash": lambda: (Crashing(), torch.rand(2, 4)),
    "opaque": lambda: (Opaque(), torch.rand(2, 2)),
    "hostile": lambda: (Hostile(), torch.rand(1, 2)),
    "nested": lambda: (Nested(20), torch.rand(1, 2)),
}


def make(name: str) -> dict[str, Any]:
    """The document of one model, the same on every machine."""
    torch.manual_seed(0)
    return document_of(*MODELS[name]())


def document_of(model: nn.Module, inputs: Any) -> dict[str, Any]:
    """The document of a model without what depends on the machine and the moment."""
    with torch.no_grad():
        recorded = trace(model.eval(), inputs, on_error="keep")
    return {**schema.encode(_stable(recorded.graph)), "generator": "torchatlas"}


def _stable(graph: Graph) -> Graph:
    def stripped(rows: Any) -> Any:
        return tuple(
            dataclasses.replace(row, metrics={k: v for k, v in row.metrics.items() if k not in _UNSTABLE_METRICS})
            for row in rows
        )

    sources = tuple(dataclasses.replace(source, file=_stable_path(source.file)) for source in graph.sources)
    rows = {"nodes": stripped(graph.nodes), "calls": stripped(graph.calls)}
    return dataclasses.replace(graph, **rows, sources=sources, report="")  # the report names versions and paths


def _stable_path(file: str) -> str:
    path = Path(file)
    if "site-packages" in path.parts:
        return Path(*path.parts[path.parts.index("site-packages") + 1 :]).as_posix()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def write(folder: Path) -> list[Path]:
    """Write every document, one row of the lists per line, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in MODELS:
        path = folder / f"{name}.json"
        path.write_text(_lines(make(name)), encoding="utf-8", newline="\n")
        paths.append(path)
    return paths


def write_abridged(folder: Path = ROOT / "tests" / "abridged") -> list[Path]:
    """Write every document as a notebook's map reads it, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in MODELS:
        path = folder / f"{name}.json"
        path.write_text(_lines(abridged.abridge(schema.decode(make(name)))), encoding="utf-8", newline="\n")
        paths.append(path)
    return paths


def _lines(document: dict[str, Any]) -> str:
    """JSON that a reviewer can read and git can compare."""
    fields = []
    for name, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], (dict, list)):
            rows = ",\n".join(f"  {json.dumps(row)}" for row in value)
            fields.append(f' "{name}": [\n{rows}\n ]')
        else:
            fields.append(f' "{name}": {json.dumps(value)}')
    return "{\n" + ",\n".join(fields) + "\n}\n"


if __name__ == "__main__":
    written = write(Path(sys.argv[1])) if len(sys.argv) > 1 else [*write(FOLDER), *write_abridged()]
    print(*written, sep="\n")
