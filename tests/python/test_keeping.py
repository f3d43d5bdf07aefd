"""What is kept of a forward stays what it was, whatever writes into it later."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from torchatlas import Inspect

WRITES: dict[str, Callable[[torch.Tensor], Any]] = {
    "functional relu": lambda y: functional.relu(y, inplace=True),
    "dropout": lambda y: functional.dropout(y, 0.5, training=True, inplace=True),
    "augmented": lambda y: y.__iadd__(1),
    "item": lambda y: y.__setitem__(0, 1.0),
    "view": lambda y: y.t()[1:].mul_(2),
    "out": lambda y: torch.add(y, 1, out=y),
    "foreach": lambda y: torch._foreach_add_([y], 1.0),
    "fill by index": lambda y: y.index_fill_(0, torch.tensor([0]), 3.0),
    "operator": lambda y: torch.ops.aten.mul_(y, 2.0),
    "resize": lambda y: (y.detach() if y.requires_grad else y).resize_(2, 2).zero_(),
    "transposed": lambda y: y.t_(),
}
HIDDEN: dict[str, Callable[[torch.Tensor], Any]] = {  # torch counts no version for these
    "data": lambda y: y.data.mul_(2),
    "numpy": lambda y: y.detach().view(torch.uint8).numpy().fill(1),
    "exchanged": lambda y: setattr(y, "data", torch.zeros(4, 4)),
}
READS: dict[str, Callable[[torch.Tensor], Any]] = {
    "arithmetic": lambda y: y + 1,
    "matmul": lambda y: y @ y,
    "address": lambda y: y.data_ptr(),
    "numpy": lambda y: y.detach().view(torch.uint8).numpy().sum(),
    "list": lambda y: y.tolist(),
}
CONTEXTS: dict[str, Callable[[], Any]] = {
    "grad": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


class Then(nn.Module):
    """Gives a layer's result to a function."""

    def __init__(self, then: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.then = then
        self.seen: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        self.seen.append(y)
        with torch.no_grad() if y.requires_grad else contextlib.nullcontext():
            self.then(y)
        return y


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", [*WRITES, *HIDDEN])
def test_a_value_is_what_it_was_before_any_write(name: str, context: str) -> None:
    model, x = Then((WRITES | HIDDEN)[name]), torch.randn(4, 4)
    with CONTEXTS[context]():
        expected = model.layer(x)
        output, value = Inspect(model, "layer")(x)
    assert torch.equal(value, expected)
    assert output is model.seen[0]
    assert output.shape != value.shape or not torch.equal(output, value)
    assert value.requires_grad == expected.requires_grad


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", READS)
def test_a_value_that_is_only_read_is_the_models_own_tensor(name: str, context: str) -> None:
    model = Then(READS[name])
    with CONTEXTS[context]():
        _, value = Inspect(model, "layer")(torch.randn(4, 4))
    assert value is model.seen[0]


@pytest.mark.parametrize("name", ["functional relu", "item", "view", "data", "exchanged"])
def test_gradients_flow_through_a_value_that_was_written_later(name: str) -> None:
    model = Then((WRITES | HIDDEN)[name])
    _, value = Inspect(model, "layer")(torch.ones(4, 4))
    value.sum().backward()
    assert torch.equal(model.layer.weight.grad, torch.full((4, 4), 4.0))


def test_an_array_made_before_a_value_is_read_out_stays_bound_to_its_memory() -> None:
    class Fills(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = Arrays()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.layer(x)
            y.mul_(2)
            self.layer.array += 1
            return y

    class Arrays(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x + 1
            self.array = y.numpy()
            return y

    output, value = Inspect(Fills(), "layer")(torch.ones(3))
    assert output.tolist() == [5, 5, 5]
    assert value.tolist() == [2, 2, 2]


def test_gradients_of_a_value_are_those_of_what_it_was() -> None:
    class Doubles(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.layer(x)
            read = y * 5
            y *= 2
            return read + y

    model = Doubles()
    output, value = Inspect(model, "layer", retain_grad=True)(torch.ones(1, 3))
    output.sum().backward()
    assert torch.equal(value.grad, torch.full((1, 3), 7.0))  # 5 by way of `read`, 2 by way of the product


@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # by torch itself, at its first forward derivative
def test_a_value_has_its_forward_derivative() -> None:
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.ReLU(inplace=True))
    x, direction = torch.ones(1, 3), torch.ones(1, 3)
    _, tangent = torch.func.jvp(lambda x: Inspect(model, "0", keep_output=False)(x), (x,), (direction,))
    assert torch.allclose(tangent, model[0](direction))


def test_values_inside_vmap_are_kept() -> None:
    model, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True)), torch.randn(5, 3)
    with torch.no_grad():
        value = torch.func.vmap(lambda x: Inspect(model, "0")(x)[1])(x)
        assert torch.allclose(value, model[0](x))


def test_values_without_memory_are_kept() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True)).to("meta")
    output, value = Inspect(model, "0")(torch.ones(1, 3, device="meta"))
    assert value is not output
    assert value.shape == (1, 3)
