"""Cuts of a recorded forward: right, small, trainable, honest about what is fixed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from torchatlas import Extract, Trace, get_nodes, trace
from torchatlas.cut import Cut


class ResidualBlock(nn.Module):
    """Convolutions and batch norms around which the input is led."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 3, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(3)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(3, 3, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x
        return self.relu(y)


class Recurrent(nn.Module):
    """An LSTM and a head on its last step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, (h, _) = self.lstm(x)
        return self.head(out[:, -1] + h[-1])


class Views(nn.Module):
    """Writes through views of a layer's result, at places that overlap."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        head = y[:, :2]
        head.mul_(3.0)
        y.narrow(1, 1, 2).add_(shift)
        y[:, 5] = head.sum(1)
        return y.sum(dim=1)


class DataDependent(nn.Module):
    """Goes round as long as a sum is small, and down one of two ways."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(3, 3)
        self.up = nn.Linear(3, 1)
        self.down = nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rounds = 0
        while x.abs().sum() < 4 and rounds < 5:
            x = x + self.step(x).tanh() + 1
            rounds += 1
        return self.up(x) if x.sum() > 0 else self.down(x)


class Cube(torch.autograd.Function):
    """x to the third power, with a backward of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0] * 3 * ctx.saved_tensors[0] ** 2


class Custom(nn.Module):
    """A custom autograd function between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(Cube.apply(self.first(x)))


class Force(nn.Module):
    """The gradient of an energy, taken inside the forward."""

    def __init__(self) -> None:
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        (force,) = torch.autograd.grad(self.energy(x).sum(), x, create_graph=True)
        return force * 2


class Reused(nn.Module):
    """One layer, called three times."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = self.lin(x).relu()
        return x


class Branch(nn.Module):
    """A static model."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x).log_softmax(-1)


def encoder() -> nn.Module:
    return nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True), 3, enable_nested_tensor=False
    )


CORPUS: dict[str, Callable[[], tuple[nn.Module, tuple[Any, ...]]]] = {
    "residual_eval": lambda: (ResidualBlock().eval(), (torch.randn(2, 3, 4, 4),)),
    "residual_train": lambda: (ResidualBlock().train(), (torch.randn(2, 3, 4, 4),)),
    "recurrent": lambda: (Recurrent(), (torch.randn(2, 5, 3),)),
    "views": lambda: (Views(), (torch.randn(3, 6), torch.randn(3, 2))),
    "data_dependent": lambda: (DataDependent(), (torch.full((1, 3), 0.1),)),
    "custom": lambda: (Custom(), (torch.randn(2, 3),)),
    "force": lambda: (Force(), (torch.randn(2, 3),)),
    "reused": lambda: (Reused(), (torch.randn(2, 4),)),
    "encoder_eval": lambda: (encoder().eval(), (torch.randn(2, 3, 8),)),
    "encoder_train": lambda: (encoder().train(), (torch.randn(2, 3, 8),)),
    "dropout": lambda: (nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 4), nn.Dropout(0.5)), (torch.randn(3, 4),)),
    "transformer": lambda: (nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval(), (torch.randn(1, 3, 8),) * 2),
}


def made(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
    torch.manual_seed(0)
    return CORPUS[name]()


def crossing(recorded: Trace, count: int) -> list[str]:
    """Names of the first `count` operations whose results are read later."""
    graph = recorded.graph
    first = {node.id for node in [n for n in graph.nodes if n.kind in ("op", "opaque")][:count]}
    tails = {edge.tail for edge in graph.edges if edge.tail in first and edge.head not in first}
    return [graph.nodes[tail].name for tail in sorted(tails)]


def read_by(recorded: Trace, first: int) -> set[str]:
    """Names of the parameters that operations from the `first` on read."""
    graph = recorded.graph
    later = {node.id for node in [n for n in graph.nodes if n.kind in ("op", "opaque")][first:]}
    tails = (graph.nodes[edge.tail] for edge in graph.edges if edge.head in later)
    return {node.name for node in tails if node.kind == "parameter"}


@pytest.mark.parametrize("quarter", [1, 2, 3])
@pytest.mark.parametrize("name", CORPUS)
def test_every_model_can_be_cut_in_two_with_no_unneeded_parameters(name: str, quarter: int) -> None:
    model, args = made(name)
    recorded = trace(model, args)
    count = len(recorded.record.ops) * quarter // 4
    names = crossing(recorded, count)
    # Making a cut compares its output on the recorded boundary values bit by bit, and refuses what is not equal.
    tail = recorded.extract(names or None, share_modules=True)
    head = recorded.extract(node_out=names, share_modules=True)
    if name != "force":  # what a gradient is taken through can't be cut in two
        assert {key for key, _ in tail.named_parameters()} == read_by(recorded, count)
    whole = dict(model.named_parameters())
    for part in (head, tail):
        for key, parameter in part.named_parameters():
            assert parameter is whole[key]


@pytest.mark.parametrize("name", CORPUS)
def test_a_step_on_the_cut_trains_the_shared_weights(name: str) -> None:
    model, args = made(name)
    recorded = trace(model, args)
    cut = recorded.extract(share_modules=True)
    before = copy.deepcopy(model.state_dict())
    # Squared, because a layer norm at the end has the same sum whatever the weights before it are.
    out = cut(*(args if name != "transformer" else args[:1]))
    (out**2).sum().backward()
    torch.optim.SGD(cut.parameters(), lr=0.1).step()
    moved = [key for key, parameter in cut.named_parameters() if not torch.equal(parameter, before[key])]
    assert moved
    assert all(
        torch.equal(model.state_dict()[key], value) == (key not in moved)
        for key, value in before.items()
        if "weight" in key
    )


def test_a_cut_gives_what_the_model_gives_on_other_inputs() -> None:
    model, args = made("residual_eval")
    cut = Extract(model, node_in="bn1", inputs=args)
    assert cut.summary == {"input": ("x", "bn1"), "output": "output"}
    x = torch.randn(2, 3, 4, 4)
    bn1 = model.bn1(model.conv1(x))
    kept = bn1.clone()
    assert torch.equal(cut(x, bn1), model(x))
    assert torch.equal(bn1, kept)  # the ReLU in the cut writes into a copy
    assert torch.equal(cut(bn1=bn1, x=x), model(x))


def test_resnets_stem_keeps_its_own_parameters_only() -> None:
    stem = nn.Sequential()
    stem.add_module("conv1", nn.Conv2d(3, 64, 7, 2, 3, bias=False))
    stem.add_module("bn1", nn.BatchNorm2d(64))
    stem.add_module("rest", nn.Sequential(nn.ReLU(), nn.Conv2d(64, 64, 3)))
    cut = Extract(stem.eval(), node_out="bn1", inputs=torch.randn(1, 3, 16, 16))
    assert sum(p.numel() for p in cut.parameters()) == 9408 + 128
    assert sorted(cut.state_dict()) == ["bn1.bias", "bn1.running_mean", "bn1.running_var", "bn1.weight", "conv1.weight"]


def test_parts_can_be_calls_operations_parameters_and_inputs_of_modules() -> None:
    model, (x,) = made("reused")
    cut = Extract(model, {"lin:2.in": "h"}, ["lin:2", "relu_1"], inputs=x)
    assert cut.summary["input"] == ("h",)
    second, after = cut(h=x)
    assert torch.equal(second, model.lin(x))
    assert torch.equal(after, second.relu())
    cut = Extract(model, ["lin.weight", "x"], "lin", inputs=x)
    assert cut.summary["input"] == ("x", "lin.weight")
    assert [name for name, _ in cut.named_parameters()] == ["lin.bias"]
    assert torch.equal(cut(x, torch.zeros(4, 4)), model.lin.bias.expand(2, 4))


def test_structured_values_are_inputs_and_outputs_in_their_structure() -> None:
    model, (x,) = made("recurrent")
    out, (h, c) = Extract(model, node_out="lstm", inputs=x)(x)
    expected = model.lstm(x)
    assert torch.equal(out, expected[0])
    assert torch.equal(c, expected[1][1])
    head = Extract(model, node_in="lstm", inputs=x)
    assert torch.equal(head((out, (h, c))), model(x))
    with pytest.raises(ValueError, match=r"input 'lstm' must hold tensors at lstm\[0\], lstm\[1\]\[0\], got"):
        head((out, h))


def test_values_of_a_trace_are_inputs_of_a_part_whatever_their_structure() -> None:
    class Pyramid(nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"0": x * 2, "pool": x[:, :1]}

    class Detector(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = Pyramid()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            features = self.backbone(x)
            return features["0"] - features["pool"]

    model, x = Detector(), torch.randn(2, 3)
    recorded = trace(model, x)
    part = recorded.extract("backbone")
    assert torch.equal(part(recorded.values("backbone")["backbone"]), model(x))
    assert torch.equal(part(model.backbone(x)), model(x))
    with pytest.raises(ValueError, match="must hold tensors at"):
        part((x,))


def test_a_tensor_that_gets_another_shape_in_place_is_cut_and_replayed_with_that_shape() -> None:
    class Turns(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.lin(x) * 1
            y.t_()
            y.unsqueeze_(0)
            return y.expand(5, 3, 2) + torch.zeros(3, 2)

    model, x = Turns(), torch.randn(2, 4)
    recorded = trace(model, x)
    assert recorded.verify()
    assert torch.equal(recorded.replay(x + 1), model(x + 1))
    shapes = {node.name: node.outputs[0].shape for node in recorded.graph.nodes}
    assert [shapes[name] for name in ("mul", "t_", "unsqueeze_", "expand")] == [(2, 3), (3, 2), (1, 3, 2), (5, 3, 2)]
    assert [edge.spec.shape for edge in recorded.graph.edges if edge.head in (5, 6)] == [(2, 3), (3, 2)]
    for name in ("mul", "t_", "unsqueeze_"):
        assert torch.equal(recorded.extract(name)(recorded.values(name)[name]), model(x))


def test_tensors_that_the_part_does_not_read_may_be_left_out() -> None:
    class First(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lstm(x)[0].tanh()

    model, x = First(), torch.randn(2, 5, 3)
    cut, value = Extract(model, node_in="lstm", inputs=x), model.lstm(x)
    expected = model(x)
    for given in (value, value[0], (value[0], None)):
        assert torch.equal(cut(given), expected)
    with pytest.raises(ValueError, match=r"must hold tensors at lstm\[0\], got them at lstm\[1\]\[0\]"):
        cut((None, (value[1][0], None)))


def test_blocks_of_a_language_model_are_cut_out_by_what_the_first_is_given_and_fine_tuned() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        n_layer=5, n_embd=16, n_head=2, vocab_size=50, n_positions=16, bos_token_id=0, eos_token_id=0
    )
    model, ids = transformers.GPT2LMHeadModel(config).eval(), torch.randint(0, 50, (2, 7))
    cut = trace(model, {"input_ids": ids}).extract("transformer.h.1.in", "transformer.h.2", share_modules=True)
    blocks = {".".join(name.split(".")[:3]) for name, _ in cut.named_parameters()}
    assert blocks == {"transformer.h.1", "transformer.h.2"}
    outputs = model(input_ids=ids, output_hidden_states=True).hidden_states
    hidden = outputs[1].detach()
    found = cut(hidden)
    assert torch.equal(found if isinstance(found, torch.Tensor) else found[0], outputs[3])
    optimizer = torch.optim.Adam(cut.parameters(), 1e-2)
    losses = []
    for _ in range(5):
        found = cut(hidden)
        loss = ((found if isinstance(found, torch.Tensor) else found[0]) - 1).pow(2).mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0]
    assert not torch.equal(model(input_ids=ids, output_hidden_states=True).hidden_states[3], outputs[3])


def test_output_is_kept_first_and_shaped_as_asked() -> None:
    model, (x,) = made("reused")
    y, (first, third) = Extract(model, None, ("lin", "lin:3"), keep_output=True, inputs=x)(x)
    assert torch.equal(y, model(x))
    assert torch.equal(third.relu(), y)
    named = Extract(model, node_out={"lin": "a", "lin:2": "b"}, inputs=x)
    assert repr(named.summary) == "{'input': ('x',), 'output': {'a': lin, 'b': lin:2}}"
    assert torch.equal(named(x)["a"], first)
    assert list(Extract(model, node_out="op:linear", inputs=x)(x)) == ["lin.linear", "lin:2.linear", "lin:3.linear"]


def test_values_at_different_moments_of_one_tensor_are_told_apart() -> None:
    model, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True)), torch.randn(4, 3)
    before, after = Extract(model, node_out=["0", "1"], inputs=x)(x)
    assert torch.equal(before, model[0](x))
    assert torch.equal(after, before.relu())


def test_a_write_into_a_part_of_a_tensor_is_an_input_of_that_part() -> None:
    model, (x, shift) = made("views")
    cut = Extract(model, node_in="mul_", inputs=(x, shift))
    head = torch.randn(3, 2)
    y = model.fc(x)
    y = torch.cat([head, y[:, 2:]], 1)
    y[:, 1:3] += shift
    y[:, 5] = y[:, :2].sum(1)
    assert torch.allclose(cut(x, shift, head), y.sum(1))


def test_copies_are_independent_and_take_the_state_of_the_whole() -> None:
    model, (x,) = made("recurrent")
    cut = Extract(model, node_in="lstm", inputs=x)
    assert cut.head.weight is not model.head.weight
    value = model.lstm(x)
    with torch.no_grad():
        model.head.bias.add_(1)
    assert not torch.equal(cut(value), model(x))
    cut.load_state_dict(model.state_dict())
    assert torch.equal(cut(value), model(x))
    with pytest.raises(RuntimeError, match="Unexpected key"):
        cut.load_state_dict({**model.state_dict(), "hed.bias": torch.zeros(2)})
    twin = copy.deepcopy(cut)
    with torch.no_grad():
        cut.head.bias.zero_()
    assert torch.equal(twin(value), model(x))


@pytest.mark.parametrize("name", [name for name in CORPUS if name != "custom"])
def test_cuts_can_be_pickled(name: str) -> None:
    model, args = made(name)
    cut = Extract(model, inputs=args)
    again = pickle.loads(pickle.dumps(cut))
    args = args if name != "transformer" else args[:1]
    torch.manual_seed(3)
    expected = cut(*args)
    torch.manual_seed(3)
    assert torch.equal(again(*args), expected)
    assert again.summary == cut.summary


def test_a_moved_cut_makes_its_tensors_where_it_is() -> None:
    class Adds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x) + torch.ones(2) + torch.arange(2, device=x.device) + torch.zeros(2, device="cpu")

    cut = Extract(Adds(), inputs=torch.ones(1, 2)).to("meta")
    assert cut(torch.ones(1, 2, device="meta")).device.type == "meta"
    with pytest.raises(ValueError, match="input 'x' is on cpu, the cut on meta"):
        cut(torch.ones(1, 2))


def test_guards_refuse_other_shapes_dtypes_and_branches() -> None:
    model, (x,) = made("data_dependent")
    cut = Extract(model, inputs=x)
    texts = [str(guard) for guard in cut.guards]
    assert texts[0] == "x is (1, 3) float32"
    assert any(text.startswith("bool gave Python True") for text in texts)
    with pytest.raises(ValueError, match=r"input 'x' must be \(1, 3\) torch.float32, got \(2, 3\)"):
        cut(x.expand(2, 3))
    with pytest.raises(ValueError, match=r"got .* torch\.float64"):
        cut(x.double())
    with pytest.raises(ValueError, match="another path might be taken"):
        cut(x + 9)
    cut.checks_queries = False
    assert cut(x + 9).shape == (1, 1)


def test_inputs_are_checked_by_number_and_name() -> None:
    model, args = made("views")
    cut = Extract(model, inputs=args)
    with pytest.raises(TypeError, match="expected at most 2 inputs"):
        cut(*args, args[0])
    with pytest.raises(TypeError, match="no input 'y'; the inputs are x, shift"):
        cut(args[0], y=args[1])
    with pytest.raises(TypeError, match="missing inputs: shift"):
        cut(args[0])
    with pytest.raises(TypeError, match="'x' is given twice"):
        cut(args[0], x=args[0])


def test_unknown_names_are_errors_with_the_closest() -> None:
    model, args = made("views")
    recorded = trace(model, args)
    with pytest.raises(ValueError, match="did you mean 'narrow'"):
        recorded.extract("narow")
    with pytest.raises(ValueError, match="finds nothing"):
        recorded.extract(node_out="op:conv*")
    with pytest.raises(ValueError, match="did you mean 'head'"):
        Extract(Branch(), node_out="heat")


def test_the_random_state_goes_on_as_it_would() -> None:
    model, (x,) = made("dropout")
    cut = Extract(model, node_in="0", inputs=x)
    torch.manual_seed(5)
    first, second = cut(x), cut(x)
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(cut(x), first)


def test_running_statistics_of_a_shared_batch_norm_are_updated_by_runs_only() -> None:
    model, (x,) = made("residual_train")
    before = model.bn1.running_mean.clone()
    cut = Extract(model, node_out="bn1", inputs=x, share_modules=True)
    assert torch.equal(model.bn1.running_mean, before)
    cut(x)
    assert not torch.equal(model.bn1.running_mean, before)


@pytest.mark.parametrize("name", ["residual_eval", "recurrent", "dropout"])
def test_recorded_nodes_are_those_of_symbolic_tracing(name: str) -> None:
    model, args = made(name)
    recorded = get_nodes(model, inputs=args)
    if name == "recurrent":  # torch.fx can't trace it: it tells how many results it gives only when it runs
        assert recorded == ["x", "lstm", "getitem", "getitem_1", "add", "head"]
    else:
        # torch.fx takes `y += x` for an addition, and calls no input `input`.
        symbolic = [found.replace("input_1", "input").replace("add", "add_") for found in get_nodes(model)]
        assert recorded == symbolic


def test_cut_prints_its_parts_and_its_code() -> None:
    model, x = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), torch.ones(1, 2)
    cut = Extract(model, node_in="0", inputs=x)
    assert isinstance(cut, Cut)
    assert cut.code == "def Sequential(0):\n    1.tanh = tanh(0)\n    return output\n"
    assert "input=('0',), output=output" in str(cut)
    assert "weight=(3, 2)" in str(Extract(model, node_out="0", inputs=x))


def test_a_crashed_forward_can_be_cut_up_to_the_crash() -> None:
    class Crashes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(2, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x) @ torch.ones(2, 2)

    model, x = Crashes(), torch.ones(1, 2)
    recorded = trace(model, x, on_error="keep")
    assert torch.equal(recorded.extract(node_out="fc")(x), model.fc(x))
    with pytest.raises(RuntimeError, match="did not run through"):
        recorded.extract()


def test_symbolic_names_are_whole() -> None:
    assert get_nodes(Branch()) == ["x", "head", "log_softmax"]
    assert torch.equal(Extract(Branch(), node_in="head")(torch.zeros(1, 2)), torch.zeros(1, 2).log_softmax(-1))


def test_a_region_is_cut_out_by_what_it_reads_and_what_is_read_of_it() -> None:
    model, (x,) = made("residual_eval")
    recorded = trace(model, x)
    cut = recorded.extract_region(["conv1", "bn1", "relu"])
    assert cut.summary == {"input": ("x",), "output": "relu.relu"}
    assert torch.equal(cut(x), model.relu(model.bn1(model.conv1(x))))
    cut = recorded.extract_region("bn*")
    assert cut.summary["input"] == ("conv1.conv2d", "conv2.conv2d")
    assert list(cut.summary["output"]) == ["bn1.batch_norm", "bn2.batch_norm"]
    with pytest.raises(ValueError, match="nothing to cut out"):
        recorded.extract_region("x")


class WrittenThroughItsView(nn.Module):
    """Writes into a layer's result by way of a view or an alias, and never reads the result itself again."""

    def __init__(self, alias: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.alias = alias
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.alias(self.norm(x))) + 1


@pytest.mark.parametrize(
    "alias",
    [nn.Identity(), lambda y: y[:, :2], lambda y: y.unflatten(1, (2, 2)).mT],
    ids=["identity", "slice", "views"],
)
def test_input_and_output_that_are_written_through_a_view_stay_what_they_are(alias: Any) -> None:
    model, x = WrittenThroughItsView(alias), torch.randn(3, 4)
    recorded = trace(model, x)
    given = torch.randn(3, 4)
    before = given.clone()
    assert torch.equal(recorded.extract("norm")(given), alias(given).relu() + 1)
    assert torch.equal(given, before)
    norm, output = recorded.extract(node_out=("norm", "output"))(x)
    assert torch.equal(output, alias(norm).relu() + 1)
    assert bool((norm < 0).any())
