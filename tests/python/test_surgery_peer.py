"""The same calls on surgeon-pytorch itself, on models that it can do: the same names, the same values.

Runs where surgeon-pytorch is installed (`pip install --no-deps surgeon-pytorch`), which no other test needs.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import torchatlas
from test_surgery_surgeon import Branches, Functions, Layers

surgeon = pytest.importorskip("surgeon_pytorch")


class Wide(nn.Module):
    """Nested modules, functions inside them, and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.body = nn.ModuleList([Functions() for _ in range(2)])
        for block in self.body:
            block.layer1, block.layer2, block.layer3 = nn.Linear(4, 3), nn.Linear(3, 2), nn.Linear(2, 4)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.body:
            x = torch.add(x, block(x))
        return x * scale


CASES = {
    "layers": (Layers, (torch.rand(2, 5),)),
    "functions": (lambda: _two(Functions()), (torch.rand(2, 5),)),
    "branches": (Branches, (torch.rand(2, 2),)),
    "sequential": (
        lambda: nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Sequential(nn.Linear(3, 1))),
        (torch.rand(2, 3),),
    ),
    "wide": (Wide, (torch.rand(2, 4), torch.rand(1))),
}


def _two(model: Any) -> nn.Module:
    model.layer3 = nn.Linear(2, 1)
    return model


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))


@pytest.mark.parametrize("name", CASES)
def test_layers_and_nodes_have_the_same_names(name: str) -> None:
    model = CASES[name][0]()
    assert torchatlas.get_layers(model) == surgeon.get_layers(model)
    assert torchatlas.get_nodes(model) == surgeon.get_nodes(model)


@pytest.mark.parametrize("keep_output", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_inspect_gives_the_same(name: str, keep_output: bool) -> None:
    make, args = CASES[name]
    model = make()
    called = [layer for layer in surgeon.get_layers(model) if not isinstance(model.get_submodule(layer), nn.ModuleList)]
    for layer in (called[0], called, tuple(called), {old: f"new {old}" for old in called}):
        ours = torchatlas.Inspect(model, layer, keep_output)(*args)
        assert same(ours, surgeon.Inspect(model, layer, keep_output)(*args))


@pytest.mark.parametrize("name", CASES)
def test_extract_gives_the_same(name: str) -> None:
    make, args = CASES[name]
    model = make()
    nodes = surgeon.get_nodes(model)
    inner = nodes[len(args) :]
    for node_out in (inner[0], inner[-1], inner[:3], tuple(inner), {inner[0]: "a", inner[-1]: "b"}):
        for keep_output in (None, True, False):
            ours = torchatlas.Extract(model, node_out=node_out, keep_output=keep_output)
            theirs = surgeon.Extract(model, node_out=node_out, keep_output=keep_output)
            assert same(ours(*args), theirs(*args))
            # An input called `input` is `input_1` in its summary, but not in its forward; ours says how it is called.
            assert repr(ours.summary) == repr(theirs.summary).replace("input_1", "input")


@pytest.mark.parametrize("name", CASES)
def test_extract_takes_the_same_inputs(name: str) -> None:
    make, args = CASES[name]
    model = make()
    nodes = surgeon.get_nodes(model)
    for node in nodes[len(args) : -1]:
        ours = torchatlas.Extract(model, {node: "new"}, share_modules=True)
        theirs = surgeon.Extract(model, {node: "new"}, share_modules=True)
        assert ours.summary["input"] == theirs.summary["input"]
        value = torchatlas.Extract(model, node_out=node)(*args)
        given = dict(zip(nodes[: len(args)], args, strict=True)) | {"new": value}
        used = {key: given[key] for key in ours.summary["input"]}
        positional = list(used.values())
        assert same(ours(*positional), theirs(*positional))
        assert same(ours(*positional), model(*args))
