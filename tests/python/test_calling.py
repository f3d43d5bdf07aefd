"""A model is called as its user calls it, its outputs may have any form, and both have their names."""

import collections
from dataclasses import dataclass, field

import pytest
import torch
from torch import nn

import torchatlas

ONES = torch.ones(2, 3)


@dataclass
class Batch:
    images: list
    label: torch.Tensor
    note: str = "none"


@dataclass(frozen=True, slots=True)
class Slotted:
    left: torch.Tensor
    right: torch.Tensor


class Explosive:
    """An output whose properties must not run."""

    def __init__(self, value):
        self.value = value

    @property
    def derived(self):
        raise AssertionError("a property of the user's object was run")


def model_of(function):
    """A module whose forward is this function (first argument: the module)."""
    return type("Model", (nn.Module,), {"forward": function})()


def input_names(trace):
    return [trace.graph.nodes[i].name for i in trace.graph.inputs]


def output_names(trace):
    return [trace.graph.nodes[i].name for i in trace.graph.outputs]


CALLS = {
    "tensor": (lambda self, x: x + 1, ONES, None, ["x"]),
    "tuple": (lambda self, x, y: x + y, (ONES, ONES * 2), None, ["x", "y"]),
    "list is one argument": (lambda self, xs: xs[0] + xs[1], [ONES, ONES * 2], None, ["xs[0]", "xs[1]"]),
    "dict of keywords": (lambda self, x, y=None: x + y, {"y": ONES * 2, "x": ONES}, None, ["y", "x"]),
    "dict as one argument": (
        lambda self, batch: batch["a"] + 1,
        {"a": ONES, "b c": ONES * 2},
        None,
        ["batch.a", "batch['b c']"],
    ),
    "keyword only": (lambda self, *, x, scale=2: x * scale, (), {"x": ONES, "scale": 3}, ["x"]),
    "any keywords": (lambda self, **batch: batch["a"] + batch["b"], {"a": ONES, "b": ONES * 2}, None, ["a", "b"]),
    "named and any keywords": (lambda self, x, **rest: x + rest["b"], {"x": ONES, "b": ONES * 2}, None, ["x", "b"]),
    "positional list": (lambda self, *xs: sum(xs), (ONES, ONES * 2), None, ["xs[0]", "xs[1]"]),
    "both": (lambda self, x, y: x + y, ONES, {"y": ONES * 2}, ["x", "y"]),
    "dataclass": (
        lambda self, batch: batch.images[0] + batch.label,
        Batch([ONES, ONES * 2], ONES * 3),
        None,
        ["batch.images[0]", "batch.images[1]", "batch.label"],
    ),
    "slots": (lambda self, pair: pair.left + pair.right, Slotted(ONES, ONES * 2), None, ["pair.left", "pair.right"]),
    "user dict": (lambda self, batch: batch["a"] * 2, (collections.UserDict(a=ONES),), None, ["batch.a"]),
    "user dict of keywords": (lambda self, a, b: a * b, collections.UserDict(a=ONES, b=ONES * 2), None, ["a", "b"]),
    "iterator": (lambda self, xs: sum(xs), (iter([ONES, ONES * 2]),), None, ["xs[0]", "xs[1]"]),
    "same tensor twice": (lambda self, x, y: x + y, (ONES, ONES), None, ["x"]),
    "none among them": (lambda self, x, mask=None: x + 1, (ONES, None), None, ["x"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_reach_the_forward_and_have_their_names(name):
    function, inputs, kwargs, expected = CALLS[name]
    trace = torchatlas.trace(model_of(function), inputs, kwargs)
    assert input_names(trace) == expected
    assert trace.verify(), trace.verify()


def test_a_generator_is_used_up_by_the_forward_and_not_by_us():
    rows = (ONES * i for i in range(3))
    trace = torchatlas.trace(model_of(lambda self, xs: sum(xs)), (rows,))
    assert [node.op for node in trace.graph.nodes if node.op] == ["mul", "add", "mul", "add", "mul", "add"]
    assert trace.verify()


OUTPUTS = {
    "tensor": (lambda self, x: x + 1, ["output"]),
    "tuple": (lambda self, x: (x + 1, [x * 2, None]), ["output[0]", "output[1][0]"]),
    "dict": (lambda self, x: {"logits": x + 1, "b c": x * 2}, ["output.logits", "output['b c']"]),
    "dataclass": (lambda self, x: Batch([x * 2], x + 1), ["output.images[0]", "output.label"]),
    "slots": (lambda self, x: Slotted(x * 2, x + 1), ["output.left", "output.right"]),
    "distribution": (lambda self, x: torch.distributions.Normal(x, x.exp()), ["output.loc", "output.scale"]),
    "object": (lambda self, x: Explosive(x + 1), ["output.value"]),
    "named tuple": (lambda self, x: x.max(dim=1), ["output[0]", "output[1]"]),
    "the same twice": (lambda self, x: [x, x], ["output[0]", "output[1]"]),
    "input handed on": (lambda self, x: x, ["output"]),
    "parameter": (lambda self, x: nn.Linear(2, 2).weight, ["output"]),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_of_any_form_have_their_names_and_come_back_from_a_replay(name):
    function, expected = OUTPUTS[name]
    model, x = model_of(function), torch.randn(2, 3)
    trace = torchatlas.trace(model, (x,))
    assert output_names(trace) == expected
    if name != "parameter":  # made anew each time, from random numbers
        assert trace.verify()
        assert type(trace.replay(x)) is type(model(x))


def test_a_plain_function_is_traced_under_its_own_name():
    def double_and_add(x, y=None):
        return x * 2 + y

    trace = torchatlas.trace(double_and_add, (ONES,), {"y": ONES * 3})
    assert trace.graph.calls[0].name == "double_and_add"
    assert list(trace.adjacency) == ["x", "mul", "y", "add", "output"] or input_names(trace) == ["x", "y"]
    assert trace.verify()


class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)

    def forward(self, x):
        return self.net(x)

    def sample(self, x, steps=2):
        for _ in range(steps):
            x = torch.tanh(self(x))
        return x


def test_any_method_is_traced_with_the_names_of_its_module():
    trace = torchatlas.trace(Sampler().sample, (ONES,), {"steps": 2})
    assert [call.name for call in trace.graph.calls] == ["sample", "Sampler", "net", "Sampler:2", "net:2"]
    assert "net.weight" in trace.adjacency
    assert trace.verify()


def test_a_closure_over_a_model_knows_its_names():
    model = Sampler()
    trace = torchatlas.trace(lambda x: model(x) + 1, (ONES,))
    assert "model.net" in [call.name for call in trace.graph.calls]
    assert trace.verify()


def test_modules_called_in_every_way_have_their_calls():
    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x):
            return self.fc.forward(x).relu()

    class Child(Part):
        def forward(self, x):
            return super().forward(x) + 1

    class Host(nn.Module):
        def __init__(self):
            super().__init__()
            self.part, self.child = Part(), Child()
            self.again = self.part
            self.kept = field
            object.__setattr__(self, "loose", [nn.Linear(3, 3)])

        def forward(self, x):
            x = self.part.forward(self.again(x))
            return self.loose[0](self.loose[0](self.child(x)))

    trace = torchatlas.trace(Host(), (ONES,))
    names = [call.name for call in trace.graph.calls]
    assert names == ["Host", "part", "part.fc", "part:2", "part.fc:2", "child", "child.fc", "Linear_0", "Linear_0:2"]
    assert trace.hierarchy["child.relu"] == "child"
    assert trace.verify()


def test_a_module_that_calls_itself_has_a_call_for_each_level():
    class Tree(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.Linear(3, 3)

        def forward(self, x, depth=2):
            x = self.cell(x)
            return x if depth == 0 else self.forward(x, depth - 1) + self(x, depth - 1)

    trace = torchatlas.trace(Tree(), (ONES,))
    assert [call.name for call in trace.graph.calls if call.type == "Tree"] == [
        "Tree",
        *[f"Tree:{i}" for i in range(2, 8)],
    ]
    assert trace.verify()


def test_names_never_clash():
    class Clash(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu, self.output, self.features = nn.ReLU(), nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, features, relu_1):
            return self.output(torch.relu(self.relu(self.features(features)))) + relu_1

    trace = torchatlas.trace(Clash(), (ONES, ONES * 2))
    trace.graph.check()
    assert {"relu.relu", "relu_2", "features[in]", "output[out]"} <= set(trace.adjacency)


def test_hooks_of_the_user_run_and_their_operations_are_recorded():
    model, seen = nn.Sequential(nn.Linear(3, 3)), []
    model[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    model[0].register_forward_hook(lambda module, args, out: seen.append(1) or out + 1)
    trace = torchatlas.trace(model, ONES)
    sources = [trace.graph.sources[node.source] for node in trace.graph.nodes if node.op in ("mul", "add")]
    assert all("register_forward" in source.code[source.line - source.first_line] for source in sources)
    assert list(trace.hierarchy.values()).count("0") >= 3
    assert seen == [1]
    assert trace.verify()


def test_lazy_modules_are_made_and_their_making_is_no_part_of_the_forward():
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.ReLU())
    trace = torchatlas.trace(model, ONES)
    assert [node.op for node in trace.graph.nodes if node.op] == ["linear", "add_", "batch_norm", "relu"]
    assert model[0].weight.shape == (4, 3)
    assert torch.isfinite(model[0].weight).all()
    assert trace.verify()
    assert torch.equal(trace.replay(ONES), model(ONES))


def test_fake_tensors_show_shapes_without_values():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    real = torchatlas.trace(model, ONES)
    fake = torchatlas.trace(model, ONES, fake=True)
    assert fake.adjacency == real.adjacency
    assert [node.outputs[0].shape for node in fake.graph.nodes] == [node.outputs[0].shape for node in real.graph.nodes]
    assert fake.verify().status == "not_applicable"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, ONES), TypeError, "model must be"),
        ((nn.Linear, ONES), TypeError, "model must be"),
        ((nn.Linear(3, 3), ONES, [1]), TypeError, "kwargs must be a mapping"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        torchatlas.trace(*arguments)


def test_replay_says_what_does_not_fit_the_record():
    trace = torchatlas.trace(model_of(lambda self, x, scale=2: x * scale), (ONES,), {"scale": 2})
    with pytest.raises(ValueError, match=r"argument x must be \(2, 3\) torch.float32, got \(3, 3\)"):
        trace.replay(torch.ones(3, 3), scale=2)
    with pytest.raises(ValueError, match="argument scale is fixed by the record at 2, got 3"):
        trace.replay(ONES, scale=3)
    with pytest.raises(ValueError, match="missing x"):
        trace.replay(None, scale=2)


def test_a_name_that_does_not_exist_brings_the_closest():
    trace = torchatlas.trace(nn.Sequential(nn.Linear(3, 3)), ONES)
    with pytest.raises(ValueError, match=r"'0.linaer'.*'0.linear'"):
        trace.values("0.linaer")


def test_values_are_those_of_the_moment():
    def forward(self, x):
        h = x * 2
        view = h.view(-1)
        view.add_(1)
        return h

    trace = torchatlas.trace(model_of(forward), (ONES,))
    values = trace.values(["mul", "add_", "view", "output", "x"])
    assert values["mul"].tolist() == (ONES * 2).tolist()
    assert values["view"].tolist() == [2.0] * 6
    assert values["add_"].tolist() == [3.0] * 6
    assert values["output"].tolist() == (ONES * 2 + 1).tolist()
    assert values["x"] is not None
    assert ONES.tolist() == [[1.0] * 3] * 2
