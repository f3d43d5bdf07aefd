"""Models with two or three planted errors, each beside its repaired version.

Every model takes its sizes as arguments, so that the broken and the repaired one differ in numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from crashes.larger import Gpt, ResNet, UNet, Vit


@dataclass(frozen=True)
class Several:
    """A broken model, its repaired version, and the nodes or calls that fail in the broken one, in order."""

    broken: Callable[[], Any]
    repaired: Callable[[], Any]
    inputs: Any
    failing: tuple[str, ...]


MODELS: dict[str, Several] = {}


def several(model: Callable[..., Any], inputs: Any, failing: str, broken: dict[str, Any], name: str = "") -> None:
    """Register a model by the arguments that break it; without them it is whole."""
    title = name or model.__name__
    MODELS[title] = Several(lambda: model(**broken), model, inputs, tuple(failing.split()))


class Mlp(nn.Module):
    def __init__(self, one: int = 16, two: int = 8, three: int = 8) -> None:
        super().__init__()
        self.fc1 = nn.Linear(4, 16)
        self.fc2 = nn.Linear(one, 8)
        self.fc3 = nn.Linear(two, 8)
        self.fc4 = nn.Linear(three, 2)

    def forward(self, x):
        for layer in (self.fc1, self.fc2, self.fc3):
            x = torch.relu(layer(x))
        return self.fc4(x)


several(Mlp, torch.randn(3, 4), "fc2.linear fc4.linear", {"one": 12, "three": 6})
several(Mlp, torch.randn(3, 4), "fc2.linear fc3.linear fc4.linear", {"one": 12, "two": 9, "three": 7}, "three linears")


class Cnn(nn.Module):
    def __init__(self, second: int = 8, features: int = 64, norm: int = 16) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(second, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(norm)
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.fc = nn.Linear(features, 5)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = self.pool(self.norm(self.conv2(x)))
        return self.fc(x.flatten(1))


several(Cnn, torch.randn(2, 3, 8, 8), "conv2.conv2d fc.linear", {"second": 12, "features": 60})
several(Cnn, torch.randn(2, 3, 8, 8), "conv2.conv2d norm.batch_norm", {"second": 4, "norm": 8}, "convolution and norm")
several(
    Cnn,
    torch.randn(2, 3, 8, 8),
    "conv2.conv2d norm.batch_norm fc.linear",
    {"second": 4, "norm": 8, "features": 63},
    "three layers",
)


class Reader(nn.Module):
    def __init__(self, words: int = 50, size: int = 12, hidden: int = 10) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, 12)
        self.rnn = nn.LSTM(size, 10, batch_first=True)
        self.head = nn.Linear(hidden, 4)

    def forward(self, tokens):
        found, _ = self.rnn(self.embed(tokens))
        return self.head(found[:, -1])


TOKENS = torch.tensor([[1, 20, 44], [3, 4, 5]])
several(Reader, TOKENS, "embed.embedding rnn", {"words": 40, "size": 16})
several(Reader, TOKENS, "embed.embedding rnn head.linear", {"words": 40, "size": 16, "hidden": 20}, "three in a reader")


class Gated(nn.Module):
    def __init__(self, gate: int = 6, out: int = 6) -> None:
        super().__init__()
        self.body = nn.Linear(4, 6)
        self.gate = nn.Linear(4, gate)
        self.out = nn.Linear(out, 3)

    def forward(self, x):
        return self.out(self.body(x) * torch.sigmoid(self.gate(x)))


several(Gated, torch.randn(2, 4), "mul out.linear", {"gate": 5, "out": 7})


class Encoder(nn.Module):
    def __init__(self, width: int = 16, norm: int = 16, head: int = 16) -> None:
        super().__init__()
        self.embed = nn.Linear(5, 16)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm = nn.LayerNorm(norm)
        self.head = nn.Linear(head, 2)

    def forward(self, x):
        x = self.embed(x)
        mixed, _ = self.attention(x, x, x, need_weights=False)
        return self.head(self.norm(mixed))


several(Encoder, torch.randn(2, 7, 5), "norm.layer_norm head.linear", {"norm": 12, "head": 14})


class Skipping(nn.Module):
    def __init__(self, merged: int = 12, last: int = 6, wide: int = 6) -> None:
        super().__init__()
        self.left = nn.Linear(4, 6)
        self.right = nn.Linear(4, 6)
        self.merge = nn.Linear(merged, 6)
        self.norm = nn.LayerNorm(wide)
        self.last = nn.Linear(last, 3)

    def forward(self, x):
        x = self.merge(torch.cat((self.left(x), self.right(x)), -1))
        return self.last(self.norm(x))


several(Skipping, torch.randn(2, 4), "merge.linear last.linear", {"merged": 10, "last": 5})
several(Skipping, torch.randn(2, 4), "merge.linear norm.layer_norm", {"merged": 10, "wide": 9}, "merge and norm")


class Labelled(nn.Module):
    def __init__(self, features: int = 8, classes: int = 5) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.head = nn.Linear(features, 5)
        self.register_buffer("weight", torch.ones(classes))

    def forward(self, x, labels):
        logits = self.head(torch.tanh(self.fc(x)))
        return logits, F.cross_entropy(logits, labels, self.weight)


several(
    Labelled,
    (torch.randn(3, 8), torch.tensor([0, 4, 2])),
    "head.linear cross_entropy",
    {"features": 6, "classes": 3},
    "head and loss",
)


class Reshaped(nn.Module):
    def __init__(self, side: int = 4, last: int = 5) -> None:
        super().__init__()
        self.side = side
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.fc = nn.Linear(64, 5)
        self.last = nn.Linear(last, 2)

    def forward(self, x):
        x = self.conv(x.view(x.shape[0], 4, self.side, self.side))
        return self.last(self.fc(x.flatten(1)))


several(Reshaped, torch.randn(2, 64), "view last.linear", {"side": 5, "last": 6})


class Typed(nn.Module):
    def __init__(self, dtype: torch.dtype = torch.float32, features: int = 6, bias: int = 3) -> None:
        super().__init__()
        self.dtype = dtype
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(features, 3)
        self.offset = nn.Parameter(torch.zeros(bias))

    def forward(self, x):
        return self.second(self.first(x.to(self.dtype))) + self.offset


several(Typed, torch.randn(2, 4), "first.linear second.linear", {"dtype": torch.float64, "features": 5})
several(Typed, torch.randn(2, 4), "first.linear add", {"dtype": torch.float16, "bias": 4}, "dtype and broadcast")


class Upsampled(nn.Module):
    def __init__(self, up: int = 16, last: int = 4) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1))
        self.up = nn.ModuleList([nn.ConvTranspose2d(up, 8, 2, 2), nn.ConvTranspose2d(8, 4, 2, 2)])
        self.last = nn.Conv2d(last, 1, 1)

    def forward(self, x):
        x = self.down(x)
        for layer in self.up:
            x = torch.relu(layer(x))
        return self.last(x)


several(Upsampled, torch.randn(1, 3, 16, 16), "up.0.conv_transpose2d last.conv2d", {"up": 12, "last": 6})


class Choosing(nn.Module):
    """Catches the error of its first try, so that this one is none of those to be found."""

    def __init__(self, second: int = 4, third: int = 6) -> None:
        super().__init__()
        self.try_first = nn.Linear(99, 6)
        self.then = nn.Linear(second, 6)
        self.last = nn.Linear(third, 2)

    def forward(self, x):
        try:
            x = self.try_first(x)
        except RuntimeError:
            x = self.then(x)
        return self.last(x)


several(Choosing, torch.randn(3, 4), "then.linear last.linear", {"second": 5, "third": 7})


class Branching(nn.Module):
    def __init__(self, one: int = 8, two: int = 8, last: int = 8) -> None:
        super().__init__()
        self.trunk = nn.Linear(4, 8)
        self.branches = nn.ModuleDict({"one": nn.Linear(one, 4), "two": nn.Linear(two, 4)})
        self.last = nn.Linear(last, 1)

    def forward(self, x):
        x = self.trunk(x)
        return self.last(torch.cat([branch(x) for branch in self.branches.values()], dim=1))


several(Branching, torch.randn(2, 4), "branches.one.linear branches.two.linear", {"one": 7, "two": 9})
several(
    Branching,
    torch.randn(2, 4),
    "branches.one.linear branches.two.linear last.linear",
    {"one": 7, "two": 9, "last": 4},
    "three branches",
)


class Deep(nn.Module):
    """A stack of equal blocks, two of which are broken inside."""

    def __init__(self, broken: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([DeepBlock(12 if number in broken else 16) for number in range(6)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class DeepBlock(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(hidden, 8)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


several(Deep, torch.randn(2, 8), "blocks.1.down.linear blocks.4.down.linear", {"broken": (1, 4)})
several(
    Deep,
    torch.randn(2, 8),
    "blocks.0.down.linear blocks.3.down.linear blocks.5.down.linear",
    {"broken": (0, 3, 5)},
    "three blocks",
)


def resnet(features: int = 32, inner: int = 16) -> nn.Module:
    model = ResNet(classes_from=features).eval()
    model.layer1[1].bn1 = nn.BatchNorm2d(inner).eval()
    return model


several(resnet, torch.randn(1, 3, 32, 32), "layer1.1.bn1.batch_norm fc.linear", {"features": 48, "inner": 24})


def vit(hidden: int | None = None, patches: int = 16) -> nn.Module:
    return Vit(patches, hidden).eval()


several(vit, torch.randn(1, 3, 16, 16), "add blocks.1.mlp.2.linear", {"hidden": 64, "patches": 9})


def gpt(longest: int = 16, tied: int = 12) -> nn.Module:
    return Gpt(longest, tied=tied).eval()


several(gpt, torch.randint(0, 50, (1, 10)), "wpe.embedding ln_f.layer_norm", {"longest": 8, "tied": 20})


def unet(merged: int = 8, last: int = 4) -> nn.Module:
    model = UNet()
    model.merge = nn.Sequential(nn.Conv2d(merged, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(last, 2, 1))
    return model


several(unet, torch.randn(1, 1, 16, 16), "merge.0.conv2d merge.2.conv2d", {"merged": 12, "last": 3})
