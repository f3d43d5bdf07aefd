"""Parts with values replaced: right beside `patched`, small, trainable, movable, refused where it means nothing."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import nn

from torchatlas import Extract, Inspect, patched, trace


class Residual(nn.Module):
    """Blocks around which the input is led, with an in-place ReLU inside."""

    def __init__(self) -> None:
        super().__init__()
        self.h = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4)) for _ in range(3))
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.h:
            x = x + block(x)
        return self.head(x)


class Recurrent(nn.Module):
    """An LSTM whose last state is read."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, (h, _) = self.lstm(x)
        return self.head(out[-1] + h[0])


class Written(nn.Module):
    """Writes into a part of a layer's result, and reads the whole."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        self.act(y[:, :2])
        return y * 2


class Chooses(nn.Module):
    """Goes one of two ways."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        return y + 1 if bool(y.sum() > 0) else y - 1


def double(value: torch.Tensor) -> torch.Tensor:
    return value * 2


@pytest.fixture
def residual() -> tuple[Residual, torch.Tensor]:
    torch.manual_seed(0)
    return Residual(), torch.randn(5, 4)


REPLACEMENTS: list[dict[str, Any]] = [
    {"h.1": torch.zeros_like},
    {"h.1": torch.zeros(5, 4)},
    {"h.1.1": double},
    {"h.1.1.relu": double},
    {"h.1.1": torch.ones(5, 4)},
    {"h.1.in": double, "h.2.0.linear": torch.ones(5, 4), "add_1": double},
    {"h.*.2": double},
    {"h.2.0.weight": torch.ones(4, 4)},
    {"h.2.0.weight": double, "head.bias": torch.zeros(2)},
    {"head": double},
]


@pytest.mark.parametrize("replace", REPLACEMENTS, ids=lambda replace: ",".join(replace))
def test_whole_model_with_replacements_gives_what_patched_gives(
    residual: tuple[Residual, torch.Tensor], replace: dict[str, Any]
) -> None:
    model, x = residual
    part = Extract(model, inputs=x, replace=replace)
    for inputs in (x, torch.randn(5, 4)):
        with patched(model, replace):
            expected = model(inputs)
        found = part(inputs) if part.summary["input"] else part()
        assert torch.equal(found, expected)
        assert not torch.equal(found, model(inputs))


def test_input_of_the_model_is_replaced(residual: tuple[Residual, torch.Tensor]) -> None:
    model, x = residual
    assert torch.equal(Extract(model, inputs=x, replace={"x": double})(x), model(x * 2))
    assert torch.equal(Extract(model, inputs=x, replace={"x": x * 2})(), model(x * 2))


@pytest.mark.parametrize("new", [double, torch.ones(5, 4)], ids=["function", "tensor"])
def test_what_a_call_is_given_is_replaced_for_it_alone(residual: tuple[Residual, torch.Tensor], new: Any) -> None:
    model, x = residual
    replace = {"h.1.0.in": double, "h.1.in": new}
    with patched(model, {"h.1.in": new, "h.1.0.in": double}):
        expected = model(x)
    assert torch.equal(trace(model, x).replay(replace=replace), expected)
    assert torch.equal(Extract(model, inputs=x, replace=replace)(x), expected)


def test_part_between_two_names_with_a_replacement(residual: tuple[Residual, torch.Tensor]) -> None:
    model, x = residual
    part = Extract(model, "add", "add_2", inputs=x, replace={"h.1": double})
    with torch.no_grad():
        hidden = torch.randn(5, 4)
        middle = hidden + 2 * model.h[1](hidden)
        assert torch.equal(part(hidden), middle + model.h[2](middle))
    assert "h.1 = double(h.1)" in part.code


def test_function_may_work_on_the_very_input(residual: tuple[Residual, torch.Tensor]) -> None:
    model, x = residual
    part = Extract(model, "add_1", "h.2", inputs=x, replace={"h.2.in": double})
    hidden = torch.randn(5, 4)
    before = hidden.clone()
    assert torch.equal(part(hidden), model.h[2](hidden * 2))
    assert torch.equal(hidden, before)


def test_what_only_led_to_a_replaced_value_is_left_out(residual: tuple[Residual, torch.Tensor]) -> None:
    model, x = residual
    part = Extract(model, inputs=x, replace={"add_1": torch.ones(5, 4)})
    assert part.summary["input"] == ()
    names = {name for name, _ in part.named_parameters()}
    assert names == {"h.2.0.weight", "h.2.0.bias", "h.2.2.weight", "h.2.2.bias", "head.weight", "head.bias"}
    ones = torch.ones(5, 4)
    assert torch.equal(part(), model.head(ones + model.h[2](ones)))
    assert "add_1 = self.replaced." in part.code
    assert any("add_1 is the tensor" in str(guard) for guard in part.guards)


def test_module_put_in_is_held_and_trained_and_copied(residual: tuple[Residual, torch.Tensor]) -> None:
    model, x = residual
    adapter = nn.Linear(4, 4)
    part = Extract(model, "add", "add_2", inputs=x, replace={"h.1": adapter}, share_modules=True)
    part(torch.randn(5, 4)).sum().backward()
    assert adapter.weight.grad is not None
    assert model.h[1][0].weight.grad is not None
    twin = copy.deepcopy(part)
    hidden = torch.randn(5, 4)
    expected = part(hidden)
    assert torch.equal(twin(hidden), expected)
    with torch.no_grad():
        adapter.weight.zero_()
    assert torch.equal(twin(hidden), expected)
    assert not torch.equal(part(hidden), expected)


def test_tensor_put_in_can_be_trained(residual: tuple[Residual, torch.Tensor]) -> None:
    model, x = residual
    steering = nn.Parameter(torch.zeros(5, 4))
    part = Extract(model, inputs=x, replace={"h.1": steering}, share_modules=True)
    part(x).sum().backward()
    assert steering.grad is not None
    assert any(parameter is steering for parameter in part.parameters())
    own = Extract(model, inputs=x, replace={"h.1": steering})
    assert any(torch.equal(p, steering) and p is not steering for p in own.parameters())


def test_part_with_replacements_is_pickled(residual: tuple[Residual, torch.Tensor]) -> None:
    model, x = residual
    part = Extract(model, inputs=x, replace={"h.0": double, "h.1": torch.ones(5, 4)})
    assert torch.equal(pickle.loads(pickle.dumps(part))(x), part(x))


def test_structures_are_replaced_as_they_are() -> None:
    model, x = Recurrent(), torch.randn(6, 1, 3)
    zeros = torch.zeros(6, 1, 4), (torch.ones(1, 1, 4), torch.zeros(1, 1, 4))
    for new in (zeros, lambda out: (out[0] * 2, out[1])):
        with patched(model, {"lstm": new}):
            expected = model(x)
        part = Extract(model, inputs=x, replace={"lstm": new})
        assert torch.equal(part(x) if part.summary["input"] else part(), expected)
    with pytest.raises(ValueError, match="must hold tensors at"):
        Extract(model, inputs=x, replace={"lstm": torch.zeros(1)})


@pytest.mark.parametrize("new", [double, torch.ones(3, 2)], ids=["function", "tensor"])
def test_what_is_written_through_a_view_is_replaced_in_its_memory(new: Any) -> None:
    model, x = Written(), torch.randn(3, 4)
    with patched(model, {"act.relu": new}):
        expected = model(x)
    part = Extract(model, inputs=x, replace={"act.relu": new})
    assert torch.equal(part(x), expected)
    given = Inspect(model, "fc", keep_output=False)(x)
    before = given.clone()
    after_fc = Extract(model, "fc", inputs=x, replace={"act.relu": new})
    assert torch.equal(after_fc(given), expected)
    assert torch.equal(given, before)


def test_random_numbers_that_are_drawn_for_a_replacement_do_not_spoil_the_check() -> None:
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4), nn.Dropout(0.5)), torch.randn(3, 4)
    part = Extract(model, "1", inputs=x, replace={"2": lambda y: y + torch.randn_like(y)})
    assert part(x).shape == (3, 4)


def test_replacement_that_leads_another_way_is_refused_when_run() -> None:
    model, x = Chooses(), torch.ones(1, 2)
    with torch.no_grad():
        model.fc.weight.fill_(1.0)
        model.fc.bias.zero_()
    part = Extract(model, inputs=x, replace={"fc": torch.neg})
    with pytest.raises(ValueError, match="another path might be taken"):
        part(x)
    part.checks_queries = False
    assert torch.equal(part(x), -model.fc(x) + 1)


def test_what_means_nothing_is_refused(residual: tuple[Residual, torch.Tensor]) -> None:
    model, x = residual
    recorded = trace(model, x)
    with pytest.raises(ValueError, match=r"replacing 'h\.0' has no effect"):
        recorded.extract("add", "add_1", replace={"h.0": double})
    with pytest.raises(ValueError, match=r"replacing 'h\.0' has no effect"):
        recorded.extract("add", "add_1", replace={"h.0": torch.ones(5, 4)})
    with pytest.raises(ValueError, match="is an input of the part"):
        recorded.extract("add", "add_1", replace={"add": torch.ones(5, 4)})
    with pytest.raises(ValueError, match=r"did you mean 'h\.1'"):
        recorded.extract(replace={"h.1x": double})
    with pytest.raises(ValueError, match="give `inputs`"):
        Extract(model, "h.1", replace={"h.2": double})


class HandsOn(nn.Module):
    """Returns what it is given beside something new."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, x * 2


class Reads(nn.Module):
    """Reads what it gave to a module, and what that handed on."""

    def __init__(self) -> None:
        super().__init__()
        self.hands = HandsOn()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x + 1
        same, double = self.hands(h)
        return same + 10 * double + 100 * h


@pytest.mark.parametrize(
    ("replace", "expected"),
    [
        ({"hands.in": torch.zeros(1)}, 200),  # h is 2, the module's own results are 0
        ({"hands": (torch.zeros(1), torch.ones(1))}, 210),
    ],
)
def test_what_a_module_hands_on_is_replaced_in_the_model_and_refused_in_a_record(replace: Any, expected: float) -> None:
    model, x = Reads(), torch.ones(1)
    with patched(model, replace):
        assert model(x).item() == expected
    recorded = trace(model, x)
    for run in (lambda: recorded.replay(replace=replace), lambda: recorded.extract(replace=replace)):
        with pytest.raises(ValueError, match="hands on the very tensor that it is given"):
            run()


def test_what_stands_beside_a_tensor_that_is_handed_on_can_be_replaced() -> None:
    replace = {"hands": lambda out: (out[0], out[1] * 0)}
    assert trace(Reads(), torch.ones(1)).replay(replace=replace).item() == 202
    assert Extract(Reads(), inputs=torch.ones(1), replace=replace)(torch.ones(1)).item() == 202


def test_the_first_call_may_be_given_its_number() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model.append(model[0])
    recorded = trace(model, torch.ones(1, 2))
    values = recorded.values(["0:1", "0", "0:1.in"])
    assert torch.equal(values["0:1"], values["0"])
    assert torch.equal(values["0:1.in"], torch.ones(1, 2))
    assert recorded.extract("0:1").summary["input"] == ("0:1",)
    assert torch.equal(recorded.replay(replace={"0:1": torch.zeros(1, 2)}), model[0].bias[None])
