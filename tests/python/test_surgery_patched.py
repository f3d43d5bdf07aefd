"""Replacing values: in a live model with `patched`, in a record with `replay(replace=...)`."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import nn

from torchatlas import patched, trace


class Loop(nn.Module):
    """A layer called twice, and an addition between."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lin(self.lin(x) + x)


class Pair(nn.Module):
    """Gives its inner module a keyword argument and a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, (h, _) = self.lstm(input=x)
        return out.sum() + h.sum()


def state(model: nn.Module) -> list[Any]:
    return [
        (dict(m._forward_hooks), dict(m._forward_pre_hooks), dict(vars(m)), [id(p) for p in m._parameters.values()])
        for m in model.modules()
    ]


def inplace() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Linear(3, 2))


@pytest.mark.parametrize("name", ["0", "0.linear", "1", "1.relu", "2.in"])
def test_ablation_leaves_the_last_bias(name: str) -> None:
    model, x = inplace(), torch.randn(4, 3)
    expected = model[2].bias.expand(4, 2)
    with patched(model, {name: torch.zeros_like}):
        assert torch.equal(model(x), expected)
    assert torch.equal(trace(model, x).replay(replace={name: torch.zeros_like}), expected)


def test_a_tensor_or_a_function_takes_the_place_of_every_call_or_of_one() -> None:
    model, x = Loop(), torch.randn(2, 3)
    steer = torch.tensor([1.0, 0.0, -1.0])
    with patched(model, {"lin": lambda y: y + steer}):
        both = model(x)
    with patched(model, {"lin:2": lambda y: y + steer}):
        second = model(x)
        assert torch.equal(model(x), second)  # calls are numbered anew in each forward
    assert torch.equal(second, model(x) + steer)
    assert torch.equal(both, model.lin(model.lin(x) + steer + x) + steer)
    with patched(model, {"add": torch.zeros(2, 3)}):
        assert torch.equal(model(x), model.lin.bias.expand(2, 3))


def test_parameters_are_replaced_wherever_they_are_held() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    x = torch.randn(1, 2)
    with patched(model, {"0.weight": torch.zeros(2, 2)}):
        assert torch.equal(model(x), model[1].bias.expand(1, 2))
    assert model[1].weight is model[0].weight
    assert isinstance(model[0].weight, nn.Parameter)


def test_gradients_pass_through_what_is_put_in() -> None:
    model, x = Loop(), torch.randn(2, 3)
    scale = torch.ones((), requires_grad=True)
    for name in ("lin:2", "lin:2.linear"):
        scale.grad = None
        with patched(model, {name: lambda y: y * scale}):
            model(x).sum().backward()
        assert scale.grad is not None
        assert torch.allclose(scale.grad, model(x).sum())


def test_arguments_by_keyword_and_tuples_are_replaced_in_their_structure() -> None:
    model, x = Pair(), torch.randn(4, 1, 2)
    with patched(model, {"lstm.in": torch.zeros_like, "lstm": lambda out: (out[0] * 0, (out[1][0], out[1][1]))}):
        assert torch.equal(model(x), model.lstm(torch.zeros_like(x))[1][0].sum())
    with pytest.raises(ValueError, match=r"what replaces 'lstm' must hold tensors at"), patched(model, {"lstm": x}):
        model(x)


def test_everything_is_undone_whatever_happens() -> None:
    model, x = inplace(), torch.randn(4, 3)
    before, plain = state(model), model(x)
    replace = {"0": torch.zeros_like, "1.relu": torch.zeros_like, "2.bias": torch.zeros(2), "2.in": torch.zeros_like}
    with patched(model, replace):
        model(x)
    assert state(model) == before
    with pytest.raises(KeyError, match="mine"), patched(model, replace):
        raise KeyError("mine")
    assert state(model) == before
    assert torch.equal(model(x), plain)


def test_other_threads_see_the_model_as_it_is() -> None:
    model, x = inplace(), torch.randn(4, 3)
    expected, found = model(x), []
    for name in ("0", "0.linear"):
        with patched(model, {name: torch.zeros_like}):
            thread = threading.Thread(target=lambda: found.append(model(x)))
            thread.start()
            thread.join()
    assert [torch.equal(one, expected) for one in found] == [True, True]


def test_globs_stand_for_all_the_modules_that_they_match() -> None:
    model, x = inplace(), torch.randn(4, 3)
    with patched(model, {"?": torch.zeros_like}):
        assert torch.equal(model(x), torch.zeros(4, 2))
    assert torch.equal(trace(model, x).replay(replace={"op:linear": torch.zeros_like}), torch.zeros(4, 2))


@pytest.mark.parametrize(
    ("name", "message"), [("lim", "did you mean 'lin'"), ("lin.linear_5", "no node"), ("z*", "no node")]
)
def test_a_name_that_does_not_exist_is_an_error(name: str, message: str) -> None:
    model = Loop()
    with pytest.raises(ValueError, match=message), patched(model, {name: torch.zeros_like}):
        model(torch.ones(1, 3))


def test_a_replay_with_replacements_leaves_record_and_model_as_they_are() -> None:
    model, x = inplace(), torch.randn(4, 3)
    recorded, plain = trace(model, x), model(x)
    assert torch.equal(recorded.replay(replace={"2.weight": torch.zeros(2, 3)}), model[2].bias.expand(4, 2))
    assert torch.equal(recorded.replay(replace={"input": x * 2}), model(x * 2))
    assert torch.equal(recorded.replay(x, replace={"0": lambda _: None}), plain)
    assert recorded.verify()
    with pytest.raises(ValueError, match=r"did you mean '0\.linear'"):
        recorded.replay(replace={"0.liner": x})
