"""Random programs of views, writes and arithmetic: replay on fresh inputs equals the plain run, edges follow data."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import torchatlas

VIEWS = {
    "row": lambda t: t[0] if t.dim() and t.shape[0] else t,
    "tail": lambda t: t[1:] if t.dim() and t.shape[0] > 1 else t,
    "even": lambda t: t[..., ::2] if t.dim() else t,
    "flat": lambda t: t.reshape(-1),
    "swap": lambda t: t.transpose(0, -1) if t.dim() else t,
    "wide": lambda t: t.unsqueeze(0),
    "narrow": lambda t: t.narrow(-1, 0, 1) if t.dim() and t.shape[-1] else t,
    "same": lambda t: t.contiguous(),
    "detached": lambda t: t.detach(),
    "data": lambda t: t.data,
}
WRITES = {
    "add_": lambda t, o: t.add_(o.sum()),
    "mul_": lambda t, o: t.mul_(2).sub_(o.mean()),
    "fill": lambda t, o: t.fill_(3).add_(o.numel()),
    "set": lambda t, o: t.__setitem__(..., o.sum() * 2),
    "relu_": lambda t, o: torch.relu_(t.sub_(o.max())),
    "zero_": lambda t, o: t.zero_(),
    "out": lambda t, o: torch.mul(t, o.sum(), out=t),
}
ARITHMETIC = {
    "plus": lambda t, o: t + o.sum(),
    "times": lambda t, o: t * o.mean(),
    "norm": lambda t, o: t - t.mean() + o.min(),
    "cat": lambda t, o: torch.cat([t.reshape(-1), o.reshape(-1)])[:24],
    "clone": lambda t, o: t.clone(),
}
STEPS = st.tuples(
    st.sampled_from([(kind, name) for kind, table in
                     (("view", VIEWS), ("write", WRITES), ("make", ARITHMETIC)) for name in table]),
    st.integers(0, 1000),
    st.integers(0, 1000),
)  # fmt: skip


class Program:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, x, y):
        values = [x * 1.0, y, x]
        for (kind, name), first, second in self.steps:
            one, other = values[first % len(values)], values[second % len(values)]
            if kind == "view":
                values.append(VIEWS[name](one))
            elif kind == "write":
                WRITES[name](one, other)
            else:
                values.append(ARITHMETIC[name](one, other))
        return values[-3:], [v.sum() for v in values]


def tensors(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, 4, generator=generator), torch.randn(2, 3, generator=generator)


def flat(out):
    return [t for part in out for t in part]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(STEPS, min_size=1, max_size=14))
def test_replay_on_fresh_inputs_equals_the_plain_run(steps):
    program = Program(steps)
    with torch.no_grad():
        given_x, given_y = tensors(1)
        before = given_x.clone(), given_y.clone()
        trace = torchatlas.trace(program, (given_x, given_y))
        assert torch.equal(given_x, before[0])
        assert torch.equal(given_y, before[1])
        trace.graph.check()
        assert trace.verify(), trace.verify()
        fresh = tensors(2)
        replayed = flat(trace.replay(*[t.clone() for t in fresh]))
        expected = flat(program(*[t.clone() for t in fresh]))
    for got, wanted in zip(replayed, expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.lists(STEPS, min_size=1, max_size=10))
def test_an_output_that_changes_with_an_input_is_reached_from_it(steps):
    program = Program(steps)
    with torch.no_grad():
        x, y = tensors(1)
        trace = torchatlas.trace(program, (x.clone(), y.clone()))
        one = flat(program(x.clone(), y.clone()))
        other = flat(program(x + 1.5, y.clone()))
    reached, todo = set(), ["x"]
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo += trace.adjacency[name]
    outputs = [trace.graph.nodes[i].name for i in trace.graph.outputs]
    for name, before, after in zip(outputs, one, other, strict=True):
        if not torch.equal(torch.nan_to_num(before), torch.nan_to_num(after)):
            assert name in reached
