"""Every example of surgeon-pytorch's documentation, with the answers that it documents (but for random numbers)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import fx, nn

from torchatlas import Extract, Inspect, get_layers, get_nodes, reset_tracer, set_tracer


class Layers(nn.Module):
    """The model of the examples of `Inspect`."""

    def __init__(self) -> None:
        super().__init__()
        self.layer1 = nn.Linear(5, 3)
        self.layer2 = nn.Linear(3, 2)
        self.layer3 = nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x1 = self.layer1(x)
        x2 = self.layer2(x1)
        return self.layer3(x2)


class Functions(nn.Module):
    """The model of the examples of `Extract`."""

    def __init__(self) -> None:
        super().__init__()
        self.layer1 = nn.Linear(5, 3)
        self.layer2 = nn.Linear(3, 2)
        self.layer3 = nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x1 = torch.relu(self.layer1(x))
        x2 = torch.sigmoid(self.layer2(x1))
        return self.layer3(x2).tanh()


class Branches(nn.Module):
    """The model of the example of `summary`."""

    def __init__(self) -> None:
        super().__init__()
        self.layer1a = nn.Linear(2, 2)
        self.layer1b = nn.Linear(2, 2)
        self.layer2 = nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.layer1a(x)
        b = self.layer1b(x)
        c = torch.add(a, b)
        return self.layer2(c)


@pytest.fixture
def default_tracer() -> Iterator[None]:
    yield
    reset_tracer()


def test_get_layers_lists_the_layers() -> None:
    assert get_layers(Layers()) == ["layer1", "layer2", "layer3"]


def test_inspect_gives_a_layers_output_as_second_value() -> None:
    model, x = Layers(), torch.rand(1, 5)
    y, x2 = Inspect(model, layer="layer2")(x)
    assert torch.equal(y, model(x))
    assert torch.equal(x2, model.layer2(model.layer1(x)))
    assert type(x2.grad_fn).__name__ == "AddmmBackward0"


def test_inspect_gives_a_list_for_a_list() -> None:
    model, x = Layers(), torch.rand(1, 5)
    _, [x1, x2] = Inspect(model, layer=["layer1", "layer2"])(x)
    assert torch.equal(x1, model.layer1(x))
    assert torch.equal(x2, model.layer2(x1))


def test_inspect_gives_named_outputs_for_a_dictionary() -> None:
    model, x = Layers(), torch.rand(1, 5)
    _, layers = Inspect(model, layer={"layer1": "x1", "layer2": "x2"})(x)
    assert list(layers) == ["x1", "x2"]
    assert torch.equal(layers["x2"], model.layer2(layers["x1"]))


def test_inspect_gives_a_tuple_for_a_tuple_and_no_output_without_keep_output() -> None:
    model, x = Layers(), torch.rand(1, 5)
    found = Inspect(model, layer=("layer1", "layer2"), keep_output=False)(x)
    assert type(found) is tuple
    assert torch.equal(found[1], model.layer2(found[0]))


def test_get_nodes_lists_inputs_functions_and_layers() -> None:
    assert get_nodes(Functions()) == ["x", "layer1", "relu", "layer2", "sigmoid", "layer3", "tanh"]


def test_extract_gives_the_output_of_a_node() -> None:
    model, x = Functions(), torch.rand(1, 5)
    sigmoid = Extract(model, node_out="sigmoid")(x)
    assert torch.equal(sigmoid, torch.sigmoid(model.layer2(torch.relu(model.layer1(x)))))
    assert type(sigmoid.grad_fn).__name__ == "SigmoidBackward0"


def test_extract_takes_new_inputs() -> None:
    model, layer1 = Functions(), torch.rand(1, 3)
    sigmoid = Extract(model, node_in="layer1", node_out="sigmoid")(layer1)
    assert torch.equal(sigmoid, torch.sigmoid(model.layer2(torch.relu(layer1))))


def test_extract_names_several_inputs_and_outputs() -> None:
    model, x = Functions(), torch.rand(1, 3)
    out = Extract(model, node_in={"layer1": "x"}, node_out={"sigmoid": "y1", "relu": "y2"})(x=x)
    assert list(out) == ["y1", "y2"]
    assert torch.equal(out["y2"], torch.relu(x))
    assert torch.equal(out["y1"], torch.sigmoid(model.layer2(out["y2"])))
    assert out["y2"].grad_fn is None


def test_summary_names_the_inputs_still_needed_and_the_outputs() -> None:
    model = Branches()
    assert get_nodes(model) == ["x", "layer1a", "layer1b", "add", "layer2"]
    cut = Extract(model, node_in={"layer1a": "my_input"}, node_out={"add": "my_add"})
    assert repr(cut.summary) == "{'input': ('x', 'my_input'), 'output': {'my_add': add}}"
    x, my_input = torch.rand(1, 2), torch.rand(1, 2)
    out = cut(x=x, my_input=my_input)
    assert list(out) == ["my_add"]
    assert torch.equal(out["my_add"], my_input + model.layer1b(x))


def test_weights_are_copied_unless_they_are_to_be_shared() -> None:
    model = Functions()
    assert Extract(model, node_out="relu").layer1.weight is not model.layer1.weight
    assert Extract(model, node_out="relu", share_modules=True).layer1.weight is model.layer1.weight


def test_keep_output_gives_the_old_output_first() -> None:
    model, x = Functions(), torch.rand(1, 5)
    model.layer3 = nn.Linear(2, 1)
    y, relu = Extract(model, node_out="relu", keep_output=True)(x)
    assert torch.equal(y, model(x))
    assert torch.equal(relu, torch.relu(model.layer1(x)))
    assert torch.equal(Extract(model)(x), y)


@pytest.mark.usefixtures("default_tracer")
def test_tracer_can_be_set_and_reset() -> None:
    class Shallow(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return True

    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2)))
    assert get_nodes(model) == ["input_1", "0.0"]
    assert get_nodes(model, tracer=Shallow) == ["input_1", "0"]
    set_tracer(Shallow)
    assert get_nodes(model) == ["input_1", "0"]
    reset_tracer()
    assert get_nodes(model) == ["input_1", "0.0"]


def test_concrete_args_are_constants() -> None:
    class Switch(nn.Module):
        def forward(self, x: torch.Tensor, double: bool) -> torch.Tensor:
            return torch.mul(x, 2) if double else torch.neg(x)

    assert get_nodes(Switch(), concrete_args={"double": True})[-1] == "mul"
    assert torch.equal(Extract(Switch(), concrete_args={"double": False})(torch.ones(2), False), -torch.ones(2))
