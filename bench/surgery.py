"""What it costs to read values out of a forward: Inspect beside the plain forward, and ending early.

usage: python bench/surgery.py [--repeat N] [--size PIXELS] [--batch N]

The model is of ResNet-50's make and size (bottleneck blocks 3, 4, 6, 3; 25.6 M parameters), with torch alone. Runs
alternate, and what is printed is the median of the ratios of neighbouring runs, so that other load falls on both.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from torchatlas import Inspect, trace

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


class Bottleneck(nn.Module):
    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, width * 4, 1, bias=False), nn.BatchNorm2d(width * 4)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or inside != width * 4:
            convolution = nn.Conv2d(inside, width * 4, 1, stride, bias=False)
            self.downsample = nn.Sequential(convolution, nn.BatchNorm2d(width * 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += self.downsample(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        inside = 64
        for number, (width, count, stride) in enumerate(STAGES, 1):
            blocks = []
            for position in range(count):
                blocks.append(Bottleneck(inside, width, stride if position == 0 else 1))
                inside = width * 4
            setattr(self, f"layer{number}", nn.Sequential(*blocks))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(inside, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def ratio(plain: Callable[[], object], other: Callable[[], object], repeat: int) -> float:
    """Median of the ratios of process time of neighbouring runs, after one run of each that doesn't count."""
    times: list[float] = []
    for run in range(repeat + 1):
        spent = []
        for function in (plain, other) if run % 2 else (other, plain):
            start = time.process_time()
            function()
            spent.append(time.process_time() - start)
        first, second = spent if run % 2 else spent[::-1]
        if run:
            times.append(second / first)
    return statistics.median(times)


def held(model: nn.Module, names: list[str], x: torch.Tensor) -> list[torch.Tensor]:
    """What modules return, kept as it is: overwritten values are wrong. No way of keeping them all costs less."""
    found: list[torch.Tensor] = []
    handles = [
        model.get_submodule(name).register_forward_hook(lambda _module, _args, out: found.append(out)) for name in names
    ]
    model(x)
    for handle in handles:
        handle.remove()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=11)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, x = ResNet().eval(), torch.rand(options.batch, 3, options.size, options.size)
    stages = [f"layer{number}" for number in range(1, 5)]
    convolutions = [name for name, module in model.named_modules() if isinstance(module, nn.Conv2d)]
    rows: list[tuple[str, Callable[[], object]]] = [
        ("Inspect, layer3", lambda: Inspect(model, "layer3")(x)),
        ("Inspect, the four stages", lambda: Inspect(model, stages)(x)),
        (f"Inspect, all {len(convolutions)} convolutions", lambda: Inspect(model, convolutions)(x)),
        ("plain hooks that only hold them", lambda: held(model, convolutions, x)),
        ("Inspect, an operation (traced)", lambda: Inspect(model, "layer3.0.add_")(x)),
        ("Inspect layer1, ends early", lambda: Inspect(model, "layer1", keep_output=False)(x)),
        ("Inspect layer2, ends early", lambda: Inspect(model, "layer2", keep_output=False)(x)),
    ]
    with torch.no_grad():
        part = trace(model, x).extract("layer2", "layer3")
        middle = Inspect(model, "layer2", keep_output=False)(x)
        rows.append(("cut from layer2 to layer3", lambda: part(middle)))
        for name, function in rows:
            print(f"{name:40} {ratio(lambda: model(x), function, options.repeat):.3f} of the plain forward", flush=True)


if __name__ == "__main__":
    main()
