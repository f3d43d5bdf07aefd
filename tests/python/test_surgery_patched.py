"""Replacing values: in a live model with `patched`, in a record with `replay(replace=...)`."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import nn

from torchatlas import Inspect, patched, trace


class Loop(nn.Module):
    """A layer called twice, and an addition between."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lin(self.lin(x) + x)


class Ends(nn.Module):
    """Takes inputs and gives outputs of many forms; has a layer that is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.never = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(
        self, x: torch.Tensor, *rest: torch.Tensor, batch: dict[str, Any] | None = None, **more: torch.Tensor
    ) -> dict[str, Any]:
        total = self.lin(x) + sum(rest)
        for value in (*(batch or {}).values(), *more.values()):
            total = total + value
        return {"sum": total, "pair": (total + 1, total * 2)}


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


def test_inputs_and_outputs_of_the_model_are_replaced_by_their_names() -> None:
    model, ones, twos = Ends(), torch.ones(2, 3), torch.full((2, 3), 2.0)

    def run(first: torch.Tensor, second: torch.Tensor, third: torch.Tensor, fourth: torch.Tensor) -> Any:
        return model(first, ones, second, batch={"a": third, "b": ones}, extra=fourth)

    expected = run(twos, twos, twos, twos)
    replace = {"x": twos, "rest[1]": lambda old: old * 2, "batch.a": twos, "extra": lambda old: old + 1}
    recorded = trace(model, (ones, ones + 1, ones + 2), {"batch": {"a": ones + 3, "b": ones + 4}, "extra": ones + 5})
    assert set(replace) < set(recorded.hierarchy)
    with patched(model, replace):
        found = model(ones.clone(), ones, ones.clone(), batch={"a": ones, "b": ones}, extra=ones.clone())
    assert torch.equal(found["sum"], expected["sum"])
    with patched(model, {"output.pair[0]": torch.zeros_like, "output.sum": lambda old: old + 1}):
        changed = run(twos, twos, twos, twos)
    assert torch.equal(changed["pair"][0], torch.zeros(2, 3))
    assert torch.equal(changed["sum"], expected["sum"] + 1)
    assert torch.equal(changed["pair"][1], expected["pair"][1])


def test_a_tensor_that_is_given_twice_goes_by_its_first_name() -> None:
    model, ones = Ends(), torch.ones(2, 3)
    with patched(model, {"x": torch.zeros_like}):
        found = model(ones, ones)
    assert torch.equal(found["sum"], trace(model, (ones, ones)).replay(replace={"x": torch.zeros_like})["sum"])


def test_the_model_itself_goes_by_its_class() -> None:
    model, x = Loop(), torch.randn(2, 3)
    with patched(model, {"Loop.in": torch.zeros_like, "Loop": lambda y: y + 1}):
        found = model(x)
    assert torch.equal(found, model(torch.zeros(2, 3)) + 1)
    assert Inspect(model, "Loop.in")(x)[1] is x


def test_globs_of_operations_stand_for_all_that_they_match() -> None:
    model, x = Loop(), torch.randn(2, 3)
    with patched(model, {"*.linear": torch.zeros_like}):
        assert torch.equal(model(x), torch.zeros(2, 3))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("never", "'never': the module was not called"),
        ("never.in", r"'never\.in': the module was not called"),
        ("lin:3", "'lin:3': the module was called 1 times only"),
        ("batch.a", r"did you mean 'batch\.b'"),
        ("spare", "no node"),
        ("output.pair[2]", r"did you mean 'output\.pair\[1\]'"),
        ("lin.linear_1", r"did you mean 'lin\.linear'"),
        ("l*.linea", r"no node"),
        ("op:add", r"trace\.find"),
    ],
)
def test_what_no_forward_comes_by_is_an_error(name: str, message: str) -> None:
    model, ones = Ends(), torch.ones(2, 3)
    with pytest.raises(ValueError, match=message), patched(model, {name: torch.zeros_like}):
        model(ones, batch={"b": ones + 1}, more=ones + 2)


def test_without_a_forward_nothing_is_missed() -> None:
    with patched(Ends(), {"never": torch.zeros_like, "x": torch.zeros_like}):
        pass
