"""However an operation is reached, it is in the graph, and a replay on fresh inputs equals the plain forward."""

import copy
import functools
import warnings
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, jvp, vjp, vmap
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

import torchatlas

early_relu = torch.relu
from_method = torch.Tensor.tanh


class Module(nn.Module):
    """A model made of one function of the module and its inputs."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, torch.Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, *args, **kwargs):
        return self.function(self, *args, **kwargs)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 10, None


class Counts(torch.autograd.Function):
    """Writes into one of its arguments."""

    @staticmethod
    def forward(ctx, x, counter):
        counter.add_(1)
        ctx.mark_dirty(counter)
        return x + counter, counter

    @staticmethod
    def backward(ctx, gradient, _):
        return gradient, None


class Tagged(torch.Tensor):
    """A tensor subclass with a function of its own."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


@dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor


def make_scripted(thing):
    """Script or trace with the warning that TorchScript is old kept quiet: people still have such models."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(thing, torch.ones(3, 4)) if isinstance(thing, nn.Tanh) else torch.jit.script(thing)


def relu_and_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) + y * 2


def write_through_view(self, x):
    h = x * 1
    h.view(-1).add_(1)
    return h * 2


def write_into_data(self, x):
    h = x * 2
    h.data.mul_(3)
    return h + 1


def swap_data(self, x):
    h = x * 2
    h.data = x.detach() * 5
    return h + 1


def fill_by_slices(self, x):
    canvas = torch.zeros_like(x)
    for row in range(x.shape[0]):
        canvas[row] = x[row] * row
    return canvas


def out_argument(self, x):
    buffer = torch.empty_like(x)
    torch.add(x, 1, out=buffer)
    torch.mul(buffer, 2, out=buffer)
    return buffer


def interleaved_columns(self, x):
    h = x * 1
    h[:, ::2].mul_(2)
    h[:, 1::2].add_(5)
    return h[:, ::2] + h[:, 1::2]


def loop_until(self, x):
    steps = 0
    while x.abs().max() > 1e-3 and steps < 50:
        x = x * 0.5
        steps += 1
    return x


def several_contexts(self, x):
    with torch.no_grad():
        a = x * 2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        b = x @ x.T
    with torch.inference_mode():
        c = x + 1
    return a.sum() + b.float().sum() + c.sum()


def other_default_dtype(self, x):
    torch.set_default_dtype(torch.float64)
    try:
        return x + torch.ones(4)
    finally:
        torch.set_default_dtype(torch.float32)


def energy_and_forces(self, x):
    x.requires_grad_(True)
    energy = self.net(x).sum()
    (forces,) = torch.autograd.grad(energy, x)
    return energy, forces


def own_backward(self, x):
    p = x.detach().clone().requires_grad_()
    (p * p).sum().backward()
    return p.grad + 1


def parameter_backward(self, x):
    self.net(x).sum().backward()
    return x * 2


def pass_through(self, x):
    a = F.dropout(x, 0.5, False)
    b = x.contiguous()
    c = x.to(torch.float32)
    return a + b * c.float()


def tensor_of_tensors(self, x):
    a = torch.tensor([1.0, 2.0, 3.0, 4.0])
    return x + a + torch.stack([a, a])[0] + torch.as_tensor(2.0)


def hidden_in_objects(self, pair):
    return Pair(pair.left + 1, pair.right * pair.left)


def sub_generator(self, x):
    rows = (row * 2 for row in x)
    return torch.stack(list(rows))


def iterate(self, x):
    total = 0
    for row in x:
        total = total + row
    first, *_ = x.unbind(0)
    return total + first


def many_namespaces(self, x):
    return (
        torch.fft.rfft(x).abs().sum()
        + torch.linalg.norm(x)
        + torch.special.expit(x).sum()
        + torch.ops.aten.sin(x).sum()
        + torch.einsum("ij,ij->", x, x)
    )


def properties(self, x):
    z = torch.complex(x, x)
    return z.real.T.mT + z.imag + z.conj().resolve_conj().real + x.data.H.mH


def reflected(self, x):
    return (1 - x) * (2 / (x + 3)) + 2**x + (-x) % 2 + (x > 0).float() + (3 // (x.abs() + 1))


def own_module_list(self, x):
    for layer in self.layers:
        x = layer(x)
    return x


def sparse(self, x):
    return torch.sparse.mm(x.relu().to_sparse(), x.T).relu()


def nested(self, x):
    inner = torch.nested.nested_tensor([x, x[:1]])
    return torch.nested.to_padded_tensor(inner * 2, 0.0)


def packed_names(self, x):
    values, indices = torch.max(x, dim=1)
    return torch.topk(x, 2).values + values[:, None] + indices[:, None]


def functional_parameters(self, x):
    weights = {"weight": torch.ones(4, 4), "bias": torch.zeros(4)}
    return functional_call(self.net[0], weights, (x,))


def kernel_choice(self, x):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = x[None, None].expand(1, 2, -1, -1)
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, q, q)


def net():
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))


def unregistered():
    module = Module(lambda self, x: self.layers[0](x) + self.layers[0](x) + self.layers[1](x))
    object.__setattr__(module, "layers", [nn.Linear(4, 4), nn.Linear(4, 4)])
    return module


CASES = {
    "name bound early": lambda: Module(lambda self, x: early_relu(from_method(x))),
    "default argument": lambda: Module(lambda self, x, f=torch.exp: f(x)),
    "partial": lambda: Module(lambda self, x: functools.partial(torch.add, alpha=2)(x, x)),
    "namespaces": lambda: Module(many_namespaces),
    "properties": lambda: Module(properties),
    "reflected operators": lambda: Module(reflected),
    "write through view": lambda: Module(write_through_view),
    "write into data": lambda: Module(write_into_data),
    "swap data": lambda: Module(swap_data),
    "slices": lambda: Module(fill_by_slices),
    "out": lambda: Module(out_argument),
    "interleaved": lambda: Module(interleaved_columns),
    "loop": lambda: Module(loop_until),
    "contexts": lambda: Module(several_contexts),
    "default dtype": lambda: Module(other_default_dtype),
    "forces": lambda: Module(energy_and_forces, net=net()),
    "backward": lambda: Module(own_backward),
    "parameter backward": lambda: Module(parameter_backward, net=net()),
    "pass through": lambda: Module(pass_through),
    "factories": lambda: Module(tensor_of_tensors),
    "generator": lambda: Module(sub_generator),
    "iterate": lambda: Module(iterate),
    "sparse": lambda: Module(sparse),
    "nested": lambda: Module(nested),
    "named tuples": lambda: Module(packed_names),
    "functional_call": lambda: Module(functional_parameters, net=net()),
    "sdpa kernel": lambda: Module(kernel_choice),
    "autograd Function": lambda: Module(lambda self, x: Scale.apply(x, 3.0) + 1),
    "bound apply": lambda: Module(lambda self, x, apply=Scale.apply: apply(x, 3.0) + 1),
    "copied around its storage": lambda: Module(lambda self, x: copy.copy(x * 2) + copy.deepcopy(x)),
    "vjp": lambda: Module(lambda self, x: vjp(torch.sin, x)[1](x)[0] + x),
    "module in vmap, then vjp": lambda: Module(
        lambda self, x: vjp(torch.cos, vmap(self.inner)(x))[1](x)[0], inner=nn.ReLU()
    ),
    "writing Function": lambda: Module(lambda self, x: Counts.apply(x, self.counter)[0] * 2, counter=torch.zeros(4)),
    "scripted function": lambda: Module(lambda self, x, f=make_scripted(relu_and_add): f(x, x) + 1),
    "scripted module": lambda: Module(lambda self, x: self.part(x) * 2, part=make_scripted(net())),
    "traced module": lambda: Module(lambda self, x: self.part(x) * 2, part=make_scripted(nn.Tanh())),
    "vmap": lambda: Module(lambda self, x: vmap(lambda row: row * 2 + row.sum())(x)),
    "func.grad": lambda: Module(lambda self, x: grad(lambda v: (v**2).sum())(x)),
    "jvp": lambda: Module(lambda self, x: sum(jvp(torch.sin, (x,), (torch.ones_like(x),)))),
    "checkpoint": lambda: Module(lambda self, x: checkpoint(self.net, x, use_reentrant=False), net=net()),
    "old checkpoint": lambda: Module(lambda self, x: checkpoint(self.net, x, use_reentrant=True), net=net()),
    "subclass": lambda: Module(lambda self, x: (x.as_subclass(Tagged) * 2 + 1).as_subclass(torch.Tensor)),
    "weight norm": lambda: Module(lambda self, x: self.l(x), l=parametrizations.weight_norm(nn.Linear(4, 4))),
    "spectral norm": lambda: Module(
        lambda self, x: self.l(x), l=parametrizations.spectral_norm(nn.Linear(4, 4)).train()
    ),
    "batch norm in training": lambda: Module(lambda self, x: self.n(x), n=nn.BatchNorm1d(4).train()),
    "instance norm in training": lambda: Module(
        lambda self, x: self.n(x.T[None])[0].T, n=nn.InstanceNorm1d(4, track_running_stats=True).train()
    ),
    "embedding that renormalises": lambda: Module(
        lambda self, x: self.e(x.abs().long().clamp(max=4)), e=nn.Embedding(5, 3, max_norm=0.1)
    ),
    "dropout": lambda: Module(lambda self, x: F.dropout(x, 0.5, True) + torch.rand_like(x)),
    "own generator": lambda: Module(
        lambda self, x, g=torch.Generator().manual_seed(3): x + torch.rand(x.shape, generator=g)
    ),
    "unregistered": unregistered,
    "gru": lambda: Module(lambda self, x: self.r(x[None])[0], r=nn.GRU(4, 3, 2, bidirectional=True)),
    "attention": lambda: Module(lambda self, x: self.a(x, x, x)[0], a=nn.MultiheadAttention(4, 2)),
    "input written": lambda: Module(lambda self, x: x.mul_(2).add_(1)),
    "buffer written": lambda: Module(lambda self, x: x + self.b.add_(1), b=torch.zeros(4)),
    "identity": lambda: Module(lambda self, x: self.i(x), i=nn.Identity()),
    "nothing": lambda: Module(lambda self, x: x),
    "inplace on slice of parameter": lambda: Module(
        lambda self, x: x @ self.w.data[:4].clone().mul_(2), w=nn.Parameter(torch.ones(5, 4))
    ),
    "data-dependent indexing": lambda: Module(lambda self, x: x[x > -9].reshape(x.shape) + x[[0, 1, 2]]),
    "host branch": lambda: Module(lambda self, x: x * 2 if x.sum().item() > -1e9 else x),
    "deepcopied inside": lambda: Module(lambda self, x: __import__("copy").deepcopy(self.l)(x), l=nn.Linear(4, 4)),
}


def fresh_input(seed):
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", CASES)
def test_replay_equals_the_plain_forward(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(1)
        model = CASES[name]()
        state = {key: value.clone() for key, value in model.state_dict().items()}
        torch.manual_seed(0)
        trace = torchatlas.trace(model, (fresh_input(1),))
        trace.graph.check()
        assert trace.graph.coverage.operations == trace.graph.coverage.nodes
        for key, value in model.state_dict().items():
            assert torch.equal(value, state[key]), f"{key} changed"
        assert trace.verify(), trace.verify()
        fresh = fresh_input(2)
        replayed = trace.replay(fresh.clone())
        torch.manual_seed(0)
        expected = model(fresh.clone())
    assert_equal(replayed, expected)


def assert_equal(got, expected):
    if isinstance(expected, tuple):
        for one, other in zip(got, expected, strict=True):
            assert_equal(one, other)
    else:
        torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", sorted(set(CASES) - {"factories"}))
def test_output_depends_on_the_input(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(1)
        trace = torchatlas.trace(CASES[name](), (fresh_input(1),))
    reached, todo = (
        set(),
        ["args[0]"] if "args[0]" in trace.adjacency else [trace.graph.nodes[trace.graph.inputs[0]].name],
    )
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo += trace.adjacency[name]
    assert any(trace.graph.nodes[i].name in reached for i in trace.graph.outputs)


def test_sizes_that_depend_on_the_data_follow_it():
    def keep(x):
        kept = x[x > 0]
        canvas = torch.zeros((len(kept), 2))
        canvas[:, 0] = kept
        return canvas.sum(), kept.reshape(1, kept.shape[0]).mean()

    trace = torchatlas.trace(keep, (torch.randn(50, generator=torch.Generator().manual_seed(1)),))
    fresh = torch.randn(50, generator=torch.Generator().manual_seed(2))
    assert (fresh > 0).sum() != trace.values("getitem")["getitem"].shape[0]
    assert_equal(trace.replay(fresh), keep(fresh))


def test_a_path_that_data_changes_is_an_error_and_no_wrong_number():
    def loop(x):
        total = x.sum()
        for value in torch.unique(x):
            total = total + value
        return total

    trace = torchatlas.trace(loop, (torch.tensor([1.0, 1.0, 2.0]),))
    with pytest.raises(RuntimeError, match="3 results where 2 were recorded"):
        trace.replay(torch.tensor([1.0, 2.0, 3.0]))


def by_experts(x):
    counts = torch.bincount((x > 0).long().flatten(), minlength=2)
    return torch.cat([part * scale for scale, part in zip((2, 3), x.flatten().split(counts.tolist()), strict=True)])


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: x * 2 if x.sum().item() > -1e9 else x, id="compared"),
        pytest.param(lambda x: x * 2 if max(x[0].tolist()) > -1e9 else x, id="list compared"),
        pytest.param(lambda x: x * 2 if (x > 0).sum().item() != 1000 else x, id="count compared"),
        pytest.param(lambda x: x / x.abs().max().item(), id="scale"),
        pytest.param(lambda x: torch.tensor(x.tolist()) * 2, id="list"),
        pytest.param(by_experts, id="sizes"),
    ],
)
def test_numbers_that_python_read_follow_the_data(function):
    trace = torchatlas.trace(function, (torch.randn(5, 4, generator=torch.Generator().manual_seed(1)),))
    for seed in range(2, 6):
        fresh = torch.randn(5, 4, generator=torch.Generator().manual_seed(seed))
        assert_equal(trace.replay(fresh), function(fresh))


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: x * 2 if x.sum() > 0 else x * 3, id="truth"),
        pytest.param(lambda x: x * 2 if torch.equal(x, x.abs()) else x * 3, id="equal"),
        pytest.param(lambda x: x.flatten()[: int((x > 0).sum())].sum(), id="end of a slice"),
        pytest.param(lambda x: x / (x > 0).sum().item(), id="count as a number"),
        pytest.param(lambda x: (x / (x.max().item() / 127)).round(), id="computed scale"),
    ],
)
def test_numbers_that_cannot_be_followed_are_an_error_and_no_wrong_number(function):
    trace = torchatlas.trace(function, (torch.full((3, 4), 1.7),))
    assert trace.verify()
    with pytest.raises(ValueError, match=r"the recorded forward read .* with these inputs it would be"):
        trace.replay(torch.arange(-9.0, 3.0).reshape(3, 4) / 7)


def through_numpy(x):
    return x + torch.from_numpy(x.detach().numpy() * 2)


def test_values_that_came_through_numpy_are_no_stale_constants_of_a_replay():
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    trace = torchatlas.trace(through_numpy, (x,))
    assert_equal(trace.replay(x.clone()), through_numpy(x))
    with pytest.raises(ValueError, match=r"gave a tensor to code outside torch by `numpy` in line"):
        trace.replay(x + 1)


def test_a_tensor_that_numpy_only_looked_at_is_no_obstacle():
    def shown(x):
        return x * 2 if x.detach().numpy().max() < 100 else x

    trace = torchatlas.trace(shown, (torch.ones(3),))
    assert_equal(trace.replay(torch.zeros(3)), torch.zeros(3))


@torch.jit.script_if_tracing
def sum_by_class(x: torch.Tensor, classes: torch.Tensor):
    total = torch.zeros(())
    for one in torch.unique(classes):
        total = total + x[classes == one].max()
    return total


@torch.jit.script_if_tracing
def shift(x: torch.Tensor):
    return x + 1


def test_a_loop_that_is_marked_as_not_to_be_traced_is_one_node_and_follows_the_data():
    def by_class(x):
        return sum_by_class(shift(x), (x * 2).round()) * 2

    x, fresh = torch.tensor([0.0, 0.1, 0.9]), torch.tensor([0.0, 0.5, 0.9])
    trace = torchatlas.trace(by_class, (x,))
    assert [node.op for node in trace.graph.nodes if node.op] == ["add", "mul", "round", "sum_by_class", "mul"]
    assert trace.graph.coverage.opaque == 1
    assert trace.verify()
    assert_equal(trace.replay(fresh), by_class(fresh))


def test_a_constant_from_outside_torch_is_said_to_be_one():
    def through_numpy(x):
        return x + torch.from_numpy(x.detach().numpy().copy())

    trace = torchatlas.trace(through_numpy, (torch.ones(3),))
    (constant,) = [node for node in trace.graph.nodes if node.kind == "constant"]
    assert constant.note == "came from outside torch"
    assert trace.graph.coverage.outside == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + torch.tensor(x.numpy().sum()),
        lambda x: x + torch.tensor([value * 2 for value in x.tolist()]),
        lambda x: x + x.new_tensor(x.sum().item() + 1),
        lambda x: x + torch.as_tensor(float(x[0])),
    ],
)
def test_a_tensor_made_from_numbers_that_were_read_is_said_to_come_from_outside(function):
    trace = torchatlas.trace(function, (torch.ones(3),))
    made = [node for node in trace.graph.nodes if node.note == "came from outside torch"]
    assert [node.op for node in made] in (["tensor"], ["new_tensor"], ["as_tensor"])
    assert trace.graph.coverage.outside == 1


def test_a_tensor_made_from_constants_is_not():
    trace = torchatlas.trace(lambda x: (x + torch.tensor([1.0]), bool((x > 0).all())), (torch.ones(3),))
    assert trace.graph.coverage.outside == 0


def test_an_attribute_that_is_no_buffer_is_a_constant_with_its_path():
    model = Module(lambda self, x: x + self.tables["a"][0])
    model.tables = {"a": [torch.ones(4)]}
    trace = torchatlas.trace(model, (torch.ones(3, 4),))
    (constant,) = [node for node in trace.graph.nodes if node.kind == "constant"]
    assert constant.note == "attribute tables.a[0]"


def test_writes_through_numpy_are_told_as_what_a_failed_proof_may_come_from():
    def model(x):
        copy = x.clone()
        copy.numpy()[:] += 1
        return copy * 2

    verification = torchatlas.trace(model, torch.ones(3)).verify()
    assert not verification
    assert verification.node == "mul"
    assert "`numpy` lent a tensor's memory" in verification.reason
