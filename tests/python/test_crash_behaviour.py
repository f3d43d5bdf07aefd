"""What a failure does to the exception, the trace and the values that were computed before it."""

import gc
import weakref

import pytest
import torch
from torch import nn

import torchatlas as ta
from torchatlas import crash


class Broken(nn.Module):
    """Fails in `second` (8 in, 6 given), then in `third` (9 in, 4 given)."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(8, 4)
        self.third = nn.Linear(9, 2)

    def forward(self, x):
        return self.third(self.second(torch.relu(self.first(x))))


def partial(model: object, inputs: object, **options: object) -> ta.Trace:
    return ta.trace(model, inputs, on_error="keep", **options)


def test_exception_keeps_type_and_message_and_carries_the_sentence_as_a_note() -> None:
    model, x = Broken(), torch.ones(2, 4)
    with pytest.raises(RuntimeError) as plain:
        model(x)
    with pytest.raises(RuntimeError) as traced:
        ta.trace(model, x)
    assert type(traced.value) is type(plain.value)
    assert traced.value.args == plain.value.args
    (note,) = traced.value.__notes__
    explanation = traced.value.torchatlas_trace.explain()
    assert note == str(explanation)
    assert note.splitlines()[0] == f"{explanation.sentence}."
    assert note.splitlines()[1] == "  `nn.Linear(6, 4)` would pass; tried."
    assert "return self.third(self.second(" in note


def test_unknown_kind_leaves_the_message_alone() -> None:
    def forward(x):
        raise LookupError("no such thing")

    trace = partial(forward, torch.ones(2))
    assert not hasattr(trace.error, "__notes__")
    assert str(trace.explain()) == "no such thing"
    assert trace.graph.error.explanation == ""


def test_a_forward_that_ran_through_has_nothing_to_explain() -> None:
    trace = ta.trace(nn.Linear(4, 2), torch.ones(1, 4))
    assert trace.explanations == ()
    assert trace.graph.errors == ()
    with pytest.raises(RuntimeError, match="ran through"):
        trace.explain()
    assert "ran through" in trace.report()


def test_arguments_of_the_failing_operation_are_all_told() -> None:
    def forward(x, scale):
        return torch.addcmul(x, x[:1], scale, value=3)

    trace = partial(forward, (torch.ones(2, 3), torch.tensor([2.0, 5.0], dtype=torch.float64)))
    rows = {row.name: row for row in trace.explain().arguments}
    assert (rows["self"].shape, rows["self"].dtype, rows["self"].device) == ((2, 3), "float32", "cpu")
    assert rows["self"].origin == "the input `x`"
    assert (rows["tensor1"].shape, rows["tensor1"].origin) == ((1, 3), "`getitem`")
    assert rows["tensor2"].dtype == "float64"
    assert rows["value"].value == "3"


def test_scalar_tensors_among_the_arguments_are_told_with_their_value() -> None:
    trace = partial(lambda x: torch.where(x > 0, torch.tensor(2.5), torch.ones(4)), torch.ones(3))
    assert {row.value for row in trace.explain().arguments} >= {"2.5"}


def test_values_before_the_failure_can_be_read() -> None:
    model, x = Broken(), torch.randn(2, 4)
    trace = partial(model, x)
    values = trace.values(["relu", "first", "second.in"])
    assert torch.equal(values["first"], model.first(x))
    assert torch.equal(values["relu"], torch.relu(model.first(x)))
    assert torch.equal(values["second.in"], values["relu"])
    with pytest.raises(RuntimeError, match="second"):
        trace.values("second")


def test_values_past_a_failure_are_refused_and_those_beside_it_are_given() -> None:
    class Beside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bad = nn.Linear(3, 2)
            self.good = nn.Linear(4, 2)

        def forward(self, x):
            return self.bad(x) + 1, self.good(x)

    model, x = Beside(), torch.randn(2, 4)
    trace = partial(model, x, past_errors=True)
    assert torch.equal(trace.values("good")["good"], model.good(x))
    for name in ("bad", "add"):
        with pytest.raises(RuntimeError, match=r"bad|assumed"):
            trace.values(name)
    assert trace.verify().status == "not_applicable"
    with pytest.raises(RuntimeError, match="did not run through"):
        trace.replay()


def test_caught_error_stays_a_failed_operation_and_what_follows_is_right() -> None:
    class Guarded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bad = nn.Linear(9, 3)
            self.safe = nn.Linear(4, 3)

        def forward(self, x):
            try:
                h = self.bad(x)
            except RuntimeError:
                h = self.safe(x)
            return h * 2

    trace = ta.trace(Guarded(), torch.randn(2, 4))
    status = {node.name: node.status for node in trace.graph.nodes}
    assert trace.error is None
    assert trace.graph.errors == ()
    assert status["bad.linear"] == "failed"
    assert status["safe.linear"] == status["mul"] == "ok"
    assert trace.adjacency["safe.linear"] == ["mul"]
    note = next(node.note for node in trace.graph.nodes if node.name == "bad.linear")
    assert note.startswith("raised RuntimeError: mat1 and mat2")
    assert trace.verify()


def test_caught_error_keeps_no_tensor_alive() -> None:
    alive = []

    class Guarded(nn.Module):
        def forward(self, x):
            try:
                big = x + 1
                alive.append(weakref.ref(big))
                return big @ torch.ones(7, 7)
            except RuntimeError:
                return x

    trace = ta.trace(Guarded(), torch.randn(2, 4))
    gc.collect()
    assert trace.error is None
    assert alive[0]() is None


def test_error_raised_from_an_operations_error_points_to_the_operation() -> None:
    def forward(x):
        try:
            return x @ torch.ones(7, 7)
        except RuntimeError as error:
            raise ValueError("the model is unhappy") from error

    trace = partial(forward, torch.ones(2, 3))
    failure = trace.graph.error
    assert (failure.type, failure.message) == ("ValueError", "the model is unhappy")
    assert trace.graph.nodes[failure.node].name == "matmul"
    assert "(2, 3)" in failure.explanation
    assert "return x @ torch.ones(7, 7)" in trace.explain().code


def test_interrupt_is_raised_and_tells_where() -> None:
    def forward(x):
        for number in range(10):
            x = x + 1
            if number == 4:
                raise KeyboardInterrupt
        return x

    with pytest.raises(KeyboardInterrupt) as caught:
        ta.trace(forward, torch.ones(2), on_error="keep", past_errors=True)
    trace = caught.value.torchatlas_trace
    assert trace.explain().kind == "interrupt"
    assert "after 5 operations;" in str(trace.explain())
    assert torch.equal(trace.values("add_4")["add_4"], torch.full((2,), 6.0))


def test_exception_class_without_room_for_attributes_is_raised_as_it_is() -> None:
    class Closed(Exception):
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    def forward(x):
        raise Closed("shut")

    with pytest.raises(Closed, match="shut"):
        ta.trace(forward, torch.ones(2))


def test_failure_of_the_explanation_does_not_hide_the_users_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(crash, "explain_all", fail)
    with pytest.raises(RuntimeError, match="mat1 and mat2") as caught:
        ta.trace(Broken(), torch.ones(2, 4))
    assert caught.value.__notes__ == ["torchatlas could not explain this error: ZeroDivisionError('ours')"]
    assert caught.value.torchatlas_trace.graph.error.explanation == ""


def test_report_holds_sentence_line_arguments_way_and_versions() -> None:
    trace = partial(Broken(), torch.ones(2, 4), past_errors=True)
    report = trace.report()
    assert report.startswith("# Forward of `Broken` failed\n")
    for part in (
        "## Failure 1 of 2: RuntimeError",
        "`second` expects last dimension 8 (its `in_features`), got 6 from `relu` (2, 6)",
        "- `nn.Linear(6, 4)` would pass; tried",
        "In: `Broken` › `second`",
        "| `input` | (2, 6) | float32 | cpu |  | `relu` |",
        "relu  2×6 float32",
        f"torch {torch.__version__}",
        f"torchatlas {ta.__version__}",
        "test_crash_behaviour.py:",
    ):
        assert part in report
    marked = [line for line in report.splitlines() if line.startswith("> ")]
    assert all("self.third(self.second(" in line for line in marked)
    assert len(marked) == 2


def test_report_fences_code_that_holds_fences() -> None:
    def forward(x):
        raise ValueError("a fence ```\n````\nhere")

    report = partial(forward, torch.ones(1)).report()
    assert "`````\nValueError: a fence" in report


def test_past_errors_lists_all_and_raises_the_first() -> None:
    with pytest.raises(RuntimeError, match="2x6 and 8x4") as caught:
        ta.trace(Broken(), torch.ones(2, 4), past_errors=True)
    trace = caught.value.torchatlas_trace
    assert [trace.graph.nodes[f.node].name for f in trace.graph.errors] == ["second.linear", "third.linear"]
    notes = {node.name: node.note for node in trace.graph.nodes}
    assert notes["second.linear"] == "assumed (2, 4) float32"
    assert [node.outputs[0].shape for node in trace.graph.nodes if node.kind == "output"] == [(2, 2)]
    assert len(caught.value.__notes__) == 2
    assert "`third` expects last dimension 9" in caught.value.__notes__[1]


def test_past_errors_stops_where_nothing_can_be_assumed() -> None:
    class Stops(Broken):
        def forward(self, x):
            x = self.second(self.first(x))
            raise LookupError("unknown")

    trace = partial(Stops(), torch.ones(2, 4), past_errors=True)
    assert [failure.type for failure in trace.graph.errors] == ["RuntimeError", "LookupError"]
    assert trace.graph.outputs == ()


def test_past_errors_of_a_forward_that_runs_through_runs_it_once() -> None:
    runs = []

    def forward(x):
        runs.append(1)
        return x + 1

    trace = ta.trace(forward, torch.ones(2), past_errors=True)
    assert runs == [1]
    assert trace.graph.errors == ()


def test_past_errors_on_fake_tensors_and_on_the_meta_device() -> None:
    fake = partial(Broken(), torch.ones(2, 4), past_errors=True, fake=True)
    meta = partial(Broken().to("meta"), torch.ones(2, 4, device="meta"), past_errors=True)
    for trace in (fake, meta):
        assert [trace.graph.nodes[f.node].name for f in trace.graph.errors] == ["second.linear", "third.linear"]
        assert all(failure.explanation for failure in trace.graph.errors)


def test_past_errors_leaves_random_numbers_and_buffers_as_they_were() -> None:
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(), Broken())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    partial(model, torch.randn(3, 4, generator=torch.Generator().manual_seed(0)), past_errors=True)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_past_out_of_memory_goes_on_with_fake_tensors() -> None:
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(5, 2)

        def forward(self, x):
            return self.fc(x.expand(1 << 41, 4).clone())

    trace = partial(Wide(), torch.ones(1, 4), past_errors=True)
    assert [trace.graph.nodes[f.node].name for f in trace.graph.errors] == ["clone", "fc.linear"]


def test_past_a_written_leaf_the_parameter_itself_goes_on() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))

        def forward(self, x):
            self.scale.mul_(2)
            return x * self.scale + torch.ones(2)

    trace = partial(Scaled(), torch.ones(4, 3), past_errors=True)
    assert [trace.graph.nodes[f.node].name for f in trace.graph.errors] == ["mul_", "add"]
    assert [failure.type for failure in trace.graph.errors] == ["RuntimeError", "RuntimeError"]


def test_trace_model_looks_past_errors(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="2x6 and 8x4"):
        ta.trace_model(Broken(), torch.ones(2, 4), past_errors=True)
    shown = capsys.readouterr().out
    assert "✗ second.linear raised" in shown
    assert "✗ third.linear raised" in shown
    with pytest.raises(TypeError, match="past_errors must be"):
        ta.trace_model(Broken(), torch.ones(2, 4), past_errors=1)


def test_suggestions_are_offered_only_if_they_pass() -> None:
    class Twice(nn.Module):
        """Turning the right operand would fit the inner sizes, but not the batches."""

        def forward(self, x, y):
            return torch.bmm(x, y)

    trace = partial(Twice(), (torch.ones(2, 3, 4), torch.ones(5, 6, 4)))
    assert trace.explain().kind == "matmul"
    assert trace.explain().suggestions == ()


def test_sizes_are_followed_through_long_chains() -> None:
    def forward(x):
        for _ in range(6000):
            x = x + 1
        return x @ torch.ones(9, 9)

    sentence = partial(forward, torch.ones(2, 3)).explain().sentence
    assert "3 comes from dimension 1 of the input `x` (2, 3)" in sentence
