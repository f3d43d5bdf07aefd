"""Values on demand: only what is needed runs, and gives the very bits that were there while the forward ran."""

from typing import Any

import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import torchatlas
from test_random_programs import ARITHMETIC, VIEWS, WRITES, tensors
from torchatlas.bits import all_same
from torchatlas.inputs import Inputs
from torchatlas.slicing import Moment, needed_ops
from torchatlas.structure import walk
from torchatlas.trace import Trace
from torchatlas.tracer import Tracer


class Twice(torch.autograd.Function):
    """Opaque, and with a state of its own."""

    calls = 0

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2 + torch.rand(())

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 2


def gradient(t: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        leaf = t.detach().float().requires_grad_()
        return torch.autograd.grad((leaf * o.sum()).sum(), leaf)[0]


def exchange(t: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
    other = t.clone()
    other.data = o
    return other


CHANCE: dict[str, Any] = {
    "dropout": lambda t, o: F.dropout(t, 0.5, training=True),
    "off": lambda t, o: F.dropout(t, 0.5, training=False),
    "noise": lambda t, o: t + torch.rand_like(o).sum(),
    "noise_": lambda t, o: t.clone().normal_(),
    "own": lambda t, o: torch.rand(3, generator=torch.Generator().manual_seed(5)) * t.sum(),
    "rrelu": lambda t, o: F.rrelu(t, training=True),
    "opaque": lambda t, o: Twice.apply(t),
    "gradient": gradient,
    "exchange": exchange,
}
TABLES: dict[str, dict[str, Any]] = {"view": VIEWS, "write": WRITES, "make": ARITHMETIC, "chance": CHANCE}
STEPS = st.tuples(
    st.sampled_from([(kind, name) for kind, table in TABLES.items() for name in table]),
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.booleans(),
)


class Step(nn.Module):
    def __init__(self, kind: str, name: str) -> None:
        super().__init__()
        self.kind = kind
        self.run = TABLES[kind][name]
        self.register_buffer("count", torch.zeros(2))

    def forward(self, one: torch.Tensor, other: torch.Tensor, held: torch.Tensor) -> Any:
        self.count += 1
        if self.kind == "view":
            return self.run(one), held
        handed = held.view(-1)
        held.add_(1)  # what it hands back is written by way of another tensor
        made = self.run(one, other)
        return (one if self.kind == "write" else made), handed


class Programme(nn.Module):
    """Steps on what earlier ones gave, some inside a module and some not."""

    def __init__(self, steps: list[Any]) -> None:
        super().__init__()
        self.rows = steps
        self.steps = nn.ModuleList(Step(*step[0]) for step in steps)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        values = [x * 1.0, y, x]
        held = torch.zeros(2)
        for (_, first, second, is_inside), step in zip(self.rows, self.steps, strict=True):
            one, other = values[first % len(values)], values[second % len(values)]
            if is_inside:
                made, held = step(one, other, held)
                values.append(made)
            elif step.kind == "view":
                values.append(step.run(one))
            else:
                made = step.run(one, other)
                values.append(one if step.kind == "write" else made)
        return values[-2:], held


class Seen:
    """What a forward gave while it ran, as copies: by operation, and by module call."""

    def __init__(self, model: Any, args: tuple[Any, ...]) -> None:
        self.by_op: list[list[torch.Tensor]] = []
        self.by_call: dict[int, list[torch.Tensor]] = {}
        tracer = Tracer(model, on_result=lambda _, found: self.by_op.append(copies(found)), on_return=self._returned)
        with torch.random.fork_rng():
            tracer.run(args, {})
        self.trace = Trace(Inputs(tracer.record, model, args, {}))

    def _returned(self, call: Any, out: Any) -> None:
        self.by_call[call.index] = copies([tensor for _, tensor in walk(out)])

    def rows(self) -> list[tuple[str, list[torch.Tensor]]]:
        graph = self.trace.graph
        ops = [node.name for node in graph.nodes if node.kind in ("op", "opaque")]
        calls = [(row.name, self.by_call[row.id]) for row in graph.calls]
        return [*zip(ops, self.by_op, strict=True), *calls]


def copies(found: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.detach().clone() for tensor in found]


def found_values(trace: Trace, name: str) -> list[torch.Tensor]:
    return [tensor.detach() for _, tensor in walk(trace.values(name)[name])]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(STEPS, min_size=1, max_size=12))
def test_every_value_of_a_random_program_is_what_it_was_while_running(steps: list[Any]) -> None:
    torch.manual_seed(0)
    seen = Seen(Programme(steps), tensors(1))
    for name, expected in seen.rows():
        assert all_same(found_values(seen.trace, name), expected), name


def test_what_a_call_hands_back_is_right_though_it_was_written_by_way_of_a_tensor_that_nobody_reads_since() -> None:
    class Hands(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            held = x * 1
            alias = held.view(-1)
            held.add_(1)
            return x.sum(), alias

    class Drops(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Hands()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)[0]

    trace = torchatlas.trace(Drops(), torch.ones(2))
    assert trace.values("inner")["inner"][1].tolist() == [2, 2]
    assert trace.values("inner.mul")["inner.mul"].tolist() == [1, 1]


def test_a_gradient_that_grows_by_a_later_backward_pass_is_followed() -> None:
    def forward(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        (w * x).sum().backward()
        gradient = w.grad
        assert gradient is not None
        (w * x * 2).sum().backward()
        return gradient + 0

    weight = torch.ones(2, requires_grad=True)
    trace = torchatlas.trace(forward, (weight, torch.tensor([1.0, 3.0])))
    assert trace.values("add")["add"].tolist() == [3, 9]
    assert weight.grad is None


def test_operations_that_are_not_needed_do_not_run() -> None:
    def forward(x: torch.Tensor) -> Any:
        left = x
        for _each in range(5):
            left = left.sin()
        noise = torch.rand(2) + x.cos().sum()
        return left, noise.exp(), F.dropout(x, training=False)

    trace = torchatlas.trace(forward, torch.ones(2))
    ran = {name: [trace.record.ops[i].name for i in sorted(needed(trace, name))] for name in ("sin_4", "exp")}
    # `sin_4` needs no random number, `exp` none of the sines.
    assert ran == {"sin_4": ["sin"] * 5, "exp": ["rand", "cos", "sum", "add", "exp"]}


def needed(trace: Trace, name: str) -> set[int]:
    count, values = trace._locations.moment(name)
    return needed_ops(trace.record, [Moment(value, count) for value in values])
