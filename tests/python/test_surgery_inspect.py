"""Inspect: values are the user's own, stay what they were, and come for every call."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from torchatlas import Inspect, get_layers


class Loop(nn.Module):
    """One linear layer and one ReLU, called three times each."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = self.relu(self.lin(x))
        return x


class ViewWrittenLater(nn.Module):
    """Returns a tensor into which is written, through a view, after the layer has given it."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        y[:, :2].mul_(3.0)
        return y


class Stops(nn.Module):
    """Two layers, and an error after them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(self.first(x))
        raise KeyError("late")


class InLoop(nn.Module):
    """Calls a layer as often as it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, times: int) -> torch.Tensor:
        for _ in range(times):
            x = self.lin(x)
        return x


def hooks(model: nn.Module) -> list[Any]:
    return [(dict(m._forward_hooks), dict(m._forward_pre_hooks), set(vars(m))) for m in model.modules()]


def test_value_before_an_inplace_relu_is_kept() -> None:
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)), torch.randn(8, 4)
    _, (before, after) = Inspect(model, ("0", "1"))(x)
    assert torch.equal(before, model[0](x))
    assert bool((before < 0).any())
    assert torch.equal(after, before.relu())


def test_value_of_a_layer_whose_result_is_written_through_a_view_is_kept() -> None:
    model, x = ViewWrittenLater(), torch.randn(2, 3)
    y, fc = Inspect(model, "fc")(x)
    assert torch.equal(fc, model.fc(x))
    assert torch.equal(y[:, :2], fc[:, :2] * 3)


def test_a_value_that_is_not_written_is_the_very_tensor() -> None:
    model, seen = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), []
    model[0].register_forward_hook(lambda _m, _a, out: seen.append(out))
    _, value = Inspect(model, "0")(torch.ones(1, 2))
    assert value is seen[0]


def test_a_copied_value_leads_gradients_to_where_it_was_made() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
    _, value = Inspect(model, "0")(torch.ones(1, 2))
    value.sum().backward()
    assert torch.equal(model[0].weight.grad, torch.ones(2, 2))


def test_every_call_of_a_reused_layer_is_given() -> None:
    model, x = Loop(), torch.randn(2, 4)
    _, found = Inspect(model, {"relu": "relu"})(x)
    assert len(found["relu"]) == 3
    expected = x
    for value in found["relu"]:
        expected = model.relu(model.lin(expected))
        assert torch.equal(value, expected)
    _, (first, second, given) = Inspect(model, ["relu:1", "relu:2", "relu:2.in"])(x)
    assert torch.equal(first, found["relu"][0])
    assert torch.equal(second, found["relu"][1])
    assert torch.equal(given, model.lin(first))


def test_what_a_layer_is_given_and_operations_parameters_inputs_and_outputs_are_values_too() -> None:
    model, x = Loop(), torch.randn(2, 4)
    names = ["lin:2.in", "lin:2.linear", "lin.weight", "x", "output"]
    y, (given, linear, weight, same_x, output) = Inspect(model, names)(x)
    assert torch.equal(given, model.relu(model.lin(x)))
    assert torch.equal(linear, model.lin(given))
    assert weight is model.lin.weight
    assert same_x is x
    assert output is y


def test_a_traced_inspection_changes_state_as_any_forward() -> None:
    model, x = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5)).train(), torch.randn(4, 3)
    twin = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5)).train()
    torch.manual_seed(1)
    expected = twin(x)
    torch.manual_seed(1)
    y, value = Inspect(model, "1.dropout")(x)
    assert torch.equal(y, expected)
    assert torch.equal(value, y)
    assert torch.equal(model[0].running_mean, twin[0].running_mean)


def test_globs_and_queries_give_a_dict_of_all_they_find() -> None:
    model, x = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1)), torch.ones(1, 2)
    assert list(Inspect(model, "*")(x)[1]) == ["0", "1", "2"]
    assert list(Inspect(model, "op:linear")(x)[1]) == ["0.linear", "2.linear"]
    with pytest.raises(ValueError, match="finds nothing"):
        Inspect(model, "op:conv2d")(x)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("relo", "did you mean 'relu'"),
        ("relu:4", "called 3 times only"),
        ("lin.linear_7", "did you mean"),
        ("nothing.linear", "did you mean"),
    ],
)
def test_a_name_that_does_not_exist_is_an_error_with_the_closest(name: str, message: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=message):
        Inspect(Loop(), name)(torch.ones(1, 4))


def test_a_short_name_is_an_error_with_the_candidates() -> None:
    model = nn.Sequential(nn.Sequential(nn.ModuleDict({"fc": nn.Linear(2, 2)})), nn.ModuleDict({"fc": nn.Linear(2, 2)}))
    with pytest.raises(ValueError, match=r"'0\.0\.fc' or '1\.fc'"):
        Inspect(model, "fc")


def test_a_layer_that_is_not_called_is_an_error_and_no_none() -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.aside = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    with pytest.raises(RuntimeError, match="'aside' was not called"):
        Inspect(Unused(), "aside")(torch.ones(2))
    with pytest.raises(TypeError, match="layer must be str, list, tuple, or dict"):
        Inspect(Unused(), 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["first", "first:1", "first.linear", "first.in"])
def test_forward_ends_early_when_all_is_there(name: str) -> None:
    model, calls = Stops(), []
    model.second.register_forward_hook(lambda *_: calls.append(1))
    assert Inspect(model, name, keep_output=False)(torch.ones(1, 2)).shape == (1, 2)
    assert calls == []
    with pytest.raises(KeyError, match="late"):
        Inspect(model, name)(torch.ones(1, 2))


def test_forward_does_not_end_before_a_layer_may_be_called_again() -> None:
    model, x = InLoop(), torch.ones(1, 2)
    inspect = Inspect(model, "lin", keep_output=False)
    assert len(inspect(x, 3)) == 3
    assert torch.equal(inspect(x, 1), model.lin(x))
    assert torch.equal(Inspect(model, "lin:2", keep_output=False)(x, 9), model.lin(model.lin(x)))


@pytest.mark.parametrize("name", ["0", "1.tanh"])
def test_hooks_are_removed_whatever_happens(name: str) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    model[1].register_forward_hook(lambda *_: None)
    before = hooks(model)
    for keep_output in (True, False):
        Inspect(model, name, keep_output)(torch.ones(1, 2))
        assert hooks(model) == before
    with pytest.raises(RuntimeError):
        Inspect(model, name)(torch.ones(1, 3))
    assert hooks(model) == before


def test_the_users_hooks_are_seen_in_the_value() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    model[0].register_forward_hook(lambda _m, _a, out: out + 1)
    _, value = Inspect(model, "0")(torch.ones(1, 2))
    with torch.no_grad():
        assert torch.equal(value, nn.functional.linear(torch.ones(1, 2), model[0].weight, model[0].bias) + 1)


def test_gradients_of_values_are_kept_on_request() -> None:
    model, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Linear(3, 1)), torch.randn(2, 3)
    y, (before, after) = Inspect(model, ["0", "1"], retain_grad=True)(x)
    y.sum().backward()
    # The last layer spreads its weight over the rows; the ReLU lets it through where its input is positive.
    expected = model[2].weight.expand(2, 3)
    assert torch.equal(after.grad, expected)
    assert torch.equal(before.grad, expected * (before > 0))


@pytest.mark.parametrize(
    "context", [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16)]
)
def test_inspect_works_under_the_callers_settings(context: Any) -> None:
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)), torch.randn(8, 4)
    with context():
        expected = model[0](x)
        y, value = Inspect(model, "0")(x)
        assert torch.equal(value, expected)
        assert torch.equal(y, expected.relu())
        assert value.dtype == expected.dtype


def test_inspect_works_in_and_around_data_parallel() -> None:
    model, x = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), torch.ones(2, 2)
    assert torch.equal(nn.DataParallel(Inspect(model, "0"))(x)[1], model[0](x))
    assert torch.equal(Inspect(nn.DataParallel(model), "module.0")(x)[1], model[0](x))


def test_containers_keep_their_shape_and_contents() -> None:
    class Collects(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(2, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out, (h, _) = self.lstm(x)
            h.zero_()
            return out

    model, x = Collects(), torch.randn(4, 1, 2)
    _, (_, (h, c)) = Inspect(model, "lstm")(x)
    expected = model.lstm(x)[1]
    assert torch.equal(h, expected[0])
    assert torch.equal(c, expected[1])


def test_an_inspected_model_is_a_module_with_the_models_own_parameters() -> None:
    model = Loop()
    inspect = Inspect(model, "lin")
    assert {id(p) for p in inspect.parameters()} == {id(p) for p in model.parameters()}
    assert get_layers(inspect) == ["model", "model.lin", "model.relu"]


def test_globs_leave_out_what_is_not_called() -> None:
    class Blocks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = nn.ModuleList([nn.ModuleDict({"lin": nn.Linear(2, 2), "spare": nn.Linear(2, 2)})])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.block[0]["lin"](x)

    model, x = Blocks(), torch.ones(1, 2)
    output, found = Inspect(model, "block.*")(x)
    assert list(found) == ["block.0.lin"]
    assert found["block.0.lin"] is output
    with pytest.raises(RuntimeError, match=r"none of the modules that '\*spare' stands for was called"):
        Inspect(model, "*spare")(x)
    with pytest.raises(RuntimeError, match=r"module 'block\.0\.spare' was not called"):
        Inspect(model, ["block.*", "block.0.spare"])(x)
