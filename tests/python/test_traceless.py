"""After a trace everything is as before, however it ended."""

import contextlib
import copy
import gc
import random
import signal
import sys
import threading
import time
import warnings
from collections import deque

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torch.overrides
from torch import nn

import torchatlas

SPACES = (torch, torch.Tensor, F, nn.Module, nn.Linear, nn.Sequential, torch.autograd.Function, torch.overrides)


def looks(model):
    """What must be the same before and after."""
    return {
        "names": [{k: v for k, v in vars(space).items() if callable(v)} for space in SPACES],
        "classes": [vars(type(m)).get("forward") for m in model.modules()],
        "attributes": [sorted(vars(m)) for m in model.modules()],
        "hooks": [[len(v) for k, v in vars(m).items() if k.endswith("_hooks")] for m in model.modules()],
        "training": [m.training for m in model.modules()],
        "modes": (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()),
        "grad": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype()),
        "random": (torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()),
        "state": {k: v.tolist() for k, v in model.state_dict().items()},
        "tensors": [(sorted(vars(p)), p.requires_grad, p.grad is None) for p in model.parameters()],
    }


class Busy(nn.Module):
    """Draws random numbers, writes into buffers, inputs and parameters, and nests modules."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 4))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        x += random.random() + np.random.rand() * torch.rand(())
        self.count += 1
        with torch.no_grad():
            self.net[0].weight.mul_(1.01)
        y = self.net(x)
        return y, self.net(y.detach())


def make():
    torch.manual_seed(0)
    return Busy().train()


def test_a_forward_that_changes_everything_leaves_no_change():
    model, x = make(), torch.randn(3, 4)
    before, x_before = looks(model), x.clone()
    torchatlas.trace(model, x)
    assert looks(model) == before
    assert torch.equal(x, x_before)
    assert x.is_leaf
    assert not x.requires_grad


def test_state_changes_are_kept_on_request():
    model, plain = make(), make()
    x, y = torch.ones(3, 4), torch.ones(3, 4)
    state = torch.get_rng_state(), random.getstate(), np.random.get_state()
    torchatlas.trace(model, x, keep_state_changes=True)
    after = torch.get_rng_state()
    torch.set_rng_state(state[0])
    random.setstate(state[1])
    np.random.set_state(state[2])
    plain(y)
    assert torch.equal(torch.get_rng_state(), after)
    assert torch.equal(x, y)
    for key, value in plain.state_dict().items():
        assert torch.equal(model.state_dict()[key], value), key


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_no_change(error):
    class Fails(Busy):
        def forward(self, x):
            super().forward(x)
            raise error("stop")

    torch.manual_seed(0)
    model, x = Fails().train(), torch.randn(3, 4)
    before, x_before = looks(model), x.clone()
    with pytest.raises(error, match="stop") as caught:
        torchatlas.trace(model, x)
    assert looks(model) == before
    assert torch.equal(x, x_before)
    assert len(caught.value.torchatlas_trace.graph.nodes) > 10


def test_gradients_of_parameters_are_as_before():
    class Learns(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            (self.a(x) + self.b(x)).sum().backward()
            return x

    model = Learns()
    model.a(torch.ones(1, 2)).sum().backward()
    kept = model.a.weight.grad
    before = kept.clone()
    trace = torchatlas.trace(model, torch.ones(1, 2))
    assert trace.verify()
    assert model.a.weight.grad is kept
    assert torch.equal(kept, before)
    assert model.b.weight.grad is None


def test_an_input_of_the_users_graph_can_still_be_differentiated():
    model = nn.Module()
    model.forward = lambda x: x.add_(1)
    leaf = torch.ones(3, requires_grad=True)
    x = leaf * 2
    y = (x * x).sum()
    with torch.no_grad():
        torchatlas.trace(lambda v: v.add_(1), (x,))
    y.backward()
    assert leaf.grad.tolist() == [8.0, 8.0, 8.0]


def test_nothing_of_the_forward_stays_in_memory():
    seen = []

    class Watches(nn.Module):
        def forward(self, x):
            h = x * 2
            seen.append(torch._C._WeakTensorRef(h))
            return h + 1

    trace = torchatlas.trace(Watches(), torch.ones(1000))
    gc.collect()
    assert seen[0].expired()
    assert trace.verify()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_attention_takes_the_same_path_and_gives_the_same_bits(padded, grad):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=padded).eval()
    x = torch.randn(3, 5, 16)
    mask = torch.arange(5)[None] >= torch.tensor([5, 3, 2])[:, None] if padded else None
    given = []
    handle = model.register_forward_hook(lambda _m, _a, out: given.append(out))
    with torch.set_grad_enabled(grad):
        model(x, src_key_padding_mask=mask)
        trace = torchatlas.trace(model, x, {"src_key_padding_mask": mask})
        handle.remove()
        assert torch.equal(given[0], given[1])
        assert trace.verify()


def test_a_trace_inside_a_trace_gives_both_graphs():
    inner_traces = []

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.ReLU()).eval()

        def forward(self, x):
            inner_traces.append(torchatlas.trace(self.inner, x + 1))
            return self.inner(x * 2) + 3

    outer = torchatlas.trace(Outer().eval(), torch.ones(2, 4))
    alone = torchatlas.trace(nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.ReLU()).eval(), torch.ones(2, 4))
    assert inner_traces[0].hierarchy == alone.hierarchy
    assert inner_traces[0].adjacency == alone.adjacency
    assert {"inner.0.linear", "inner.0:2.linear", "add", "mul", "add_1"} <= set(outer.adjacency)
    assert outer.verify()


def interrupt_at(delay_s, run, armed):
    """Run a function and raise KeyboardInterrupt in it, at whatever instruction it is then."""
    armed.add(True)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay_s)
        run()
    except KeyboardInterrupt:
        return True
    finally:
        armed.clear()
    return False


def seconds(run):
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


# An interrupt that lands in a callback of the garbage collector (hypothesis has one) can't be raised to anybody.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
def test_two_hundred_interrupts_at_random_moments_leave_no_change():
    armed = set()

    def interrupt(_number, _frame):
        if armed:
            raise KeyboardInterrupt

    model, x = make(), torch.randn(3, 4)
    before, x_before = looks(model), x.clone()
    previous = signal.signal(signal.SIGALRM, interrupt)
    rng = random.Random(3)
    hits = 0
    try:
        usual_s = min(seconds(lambda: torchatlas.trace(model, x)) for _ in range(10))
        for _ in range(20_000):
            hits += interrupt_at(rng.uniform(1e-5, 1.2 * usual_s), lambda: torchatlas.trace(model, x), armed)
            if hits == 200:
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert hits == 200
    assert looks(model) == before
    assert torch.equal(x, x_before)
    assert torchatlas.trace(model, x).error is None


def test_threads_neither_disturb_nor_are_disturbed():
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 4)).eval() for _ in range(3)]
    inputs = [torch.randn(2, 4) for _ in range(3)]
    expected = [model(x) for model, x in zip(models, inputs, strict=True)]
    graphs = [torchatlas.trace(model, x).adjacency for model, x in zip(models, inputs, strict=True)]
    errors, rounds, end = [], [0, 0, 0], time.monotonic() + 4

    def trace_again(i):
        while time.monotonic() < end:
            try:
                assert torchatlas.trace(models[i], inputs[i]).adjacency == graphs[i]
                rounds[i] += 1
            except Exception as error:  # noqa: BLE001 # collected and asserted on below
                errors.append(error)

    def run(i):
        while time.monotonic() < end:
            try:
                assert torch.equal(models[i](inputs[i]), expected[i])
                rounds[i] += 1
            except Exception as error:  # noqa: BLE001 # collected and asserted on below
                errors.append(error)

    threads = [threading.Thread(target=task, args=(i,)) for i, task in enumerate((trace_again, trace_again, run))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert min(rounds) > 10
    assert torch._C._len_torch_function_stack() == 0


def test_a_long_chain_and_deep_modules_need_no_recursion():
    class Chain(nn.Module):
        def forward(self, x):
            for _ in range(10_000):
                x = x + 1
            return x

    class Level(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.next = Level(depth - 1) if depth else nn.Identity()

        def forward(self, x):
            return self.next(x * 2)

    trace = torchatlas.trace(Chain(), torch.zeros(1))
    assert len(trace.graph.nodes) == 10_002
    assert trace.verify()
    assert len(trace.to_json()) > 10_000
    deep = torchatlas.trace(Level(100), torch.zeros(1))
    assert len(deep.graph.calls) == 102
    limit = sys.getrecursionlimit()
    wide = torchatlas.trace(Chain(), torch.zeros(1))
    assert sys.getrecursionlimit() == limit
    assert wide.adjacency == trace.adjacency


ENTER = """
def enter(self):
    entered = original(self)
    if getattr(self.gen, "gi_code", None) is interrupted.__code__:
        raise KeyboardInterrupt
    return entered
"""


def test_an_interrupt_inside_torchs_own_bookkeeping_leaves_no_mode_behind(monkeypatch):
    names = {"original": contextlib._GeneratorContextManager.__enter__}
    names["interrupted"] = torch.overrides._pop_mode_temporarily.__wrapped__
    exec(compile(ENTER, contextlib.__file__, "exec"), names)  # as if the signal had come in contextlib itself
    monkeypatch.setattr(contextlib._GeneratorContextManager, "__enter__", names["enter"])
    with pytest.raises(KeyboardInterrupt):
        torchatlas.trace(nn.Softmax(-1), torch.ones(2))
    gc.collect()
    assert torch._C._len_torch_function_stack() == 0


@pytest.mark.parametrize(
    "normalise",
    [
        lambda x, mean, var: torch.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, False),
        lambda x, mean, var: torch.instance_norm(x, None, None, mean, var, True, 0.1, 1e-5, False),
        lambda x, mean, var: torch.ops.aten.batch_norm.default(x, None, None, mean, var, True, 0.1, 1e-5, False),
        lambda x, mean, var: torch.ops.aten.native_batch_norm(x, None, None, mean, var, True, 0.1, 1e-5)[0],
        lambda x, mean, var: F.batch_norm(x, mean, var, training=True),
        lambda x, mean, var: F.instance_norm(x, mean, var),
        lambda x, mean, var: _scripted_batch_norm(x, mean, var),
    ],
    ids=[
        "torch.batch_norm",
        "torch.instance_norm",
        "overload",
        "packet",
        "F.batch_norm",
        "F.instance_norm",
        "scripted",
    ],
)
def test_running_statistics_are_put_back_though_the_schema_is_silent(normalise):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))
            self.register_buffer("var", torch.ones(3))

        def forward(self, x):
            return normalise(x, self.mean, self.var).sum() + self.mean.sum() + self.var.sum()

    x = torch.randn(4, 3, 5)
    expected = Model()(x)
    model = Model()
    trace = torchatlas.trace(model, x)
    assert torch.equal(model.mean, torch.zeros(3))
    assert torch.equal(model.var, torch.ones(3))
    assert torch.equal(trace.replay(x), expected)
    assert not torch.equal(expected, Model().mean.sum() + 3)


def _scripted_batch_norm(x, mean, var):
    def scripted(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
        return torch.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, False)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(scripted)(x, mean, var)


class Remembering(nn.Module):
    """Changes its attributes in all the ways that Python offers."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.calls = 0
        self.cache = None
        self.seen = []
        self.table = {"a": 1}
        self.recent = deque([1], maxlen=2)

    def forward(self, x):
        self.calls += 1
        self.seen.append(x)
        self.table["b"] = self.recent.append(2)
        self.attention = x.softmax(-1)
        if self.cache is None:
            self.cache = self.linear(x)
        if not hasattr(self, "head"):
            self.head = nn.Linear(4, 4)
        self.eval()
        return self.head(self.cache) + x * self.calls


def _held(model):
    """Everything that the attributes of a model hold, by identity where it is no plain value."""
    return [
        (name, {key: id(part) for key, part in value.items()} if isinstance(value, dict) else copy.copy(value))
        for module in model.modules()
        for name, value in vars(module).items()
    ]


def test_attributes_of_modules_are_put_back():
    model = Remembering()
    before = _held(model)
    trace = torchatlas.trace(model, torch.randn(2, 4))
    assert _held(model) == before
    assert trace.verify()
    assert _held(model) == before
    assert torchatlas.trace(model, torch.randn(2, 4)).adjacency == trace.adjacency


def test_attributes_of_modules_are_kept_where_that_is_asked_for():
    model = Remembering()
    torchatlas.trace(model, torch.randn(2, 4), keep_state_changes=True)
    assert (model.calls, len(model.seen), model.training, list(model.recent)) == (1, 1, False, [1, 2])
    assert hasattr(model, "head")


def test_what_a_hook_binds_is_put_back_and_what_a_lazy_module_became_stays():
    normed = nn.utils.spectral_norm(nn.Linear(4, 4))
    weight = normed.weight
    torchatlas.trace(normed, torch.randn(2, 4))
    assert normed.weight is weight
    lazy = nn.Sequential(nn.LazyLinear(4))
    torchatlas.trace(lazy, torch.randn(2, 4))
    assert type(lazy[0]) is nn.Linear
    assert not lazy[0]._forward_pre_hooks
