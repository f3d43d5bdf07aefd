"""Numbers about tensors, and who gets them."""

import json
import math
import struct

import pytest
import torch
from torch import nn

import torchatlas
from torchatlas import statistics

NAN, INF = float("nan"), float("inf")


def test_only_finite_elements_count_for_range_and_mean_and_the_others_are_counted() -> None:
    found = statistics.describe(torch.tensor([[0.0, 2.0, 4.0, NAN], [INF, -INF, INF, 0.0]]))
    # Finite: 0 2 4 0. Mean 6 / 4, variance (2.25 + 0.25 + 6.25 + 2.25) / 4 = 2.75.
    assert {name: found[name] for name in ("min", "max", "mean", "nan", "inf", "count")} == {
        "min": 0.0,
        "max": 4.0,
        "mean": 1.5,
        "nan": 1,
        "inf": 3,
        "count": 8,
    }
    assert found["std"] == pytest.approx(math.sqrt(2.75))
    assert found["zeros"] == 0.25
    assert (found["histogram"][0], found["histogram"][-1], sum(found["histogram"])) == (2, 1, 4)
    assert (found["shape"], found["dtype"]) == ([2, 4], "float32")


@pytest.mark.parametrize(
    ("tensor", "low", "high", "mean"),
    [
        (torch.tensor([True, False]), 0, 1, 0.5),
        (torch.tensor([1, 2, 6]), 1, 6, 3),
        (torch.tensor([3 + 4j, 0]), 0, 5, 2.5),
        (torch.full((70000,), 60000.0, dtype=torch.float16), 60000, 60000, 60000),
        (torch.tensor([3 * 2.0**120, -3 * 2.0**120]), -3 * 2.0**120, 3 * 2.0**120, 0),
        (torch.tensor(2.5, requires_grad=True), 2.5, 2.5, 2.5),
        (torch.eye(2).to_sparse(), 0, 1, 0.5),
        (torch.tensor([0, 2**24 + 1]), 0, 2**24 + 1, (2**24 + 1) / 2),  # float32 ends at 2**24
        (torch.tensor([2, 6], dtype=torch.uint16), 2, 6, 4),
        (torch.tensor([1.0, 2.0]).bfloat16(), 1, 2, 1.5),
        (torch.tensor([0.5, 1.0]).to(torch.float8_e4m3fn), 0.5, 1, 0.75),
        (torch.tensor([-1e308, 1e308], dtype=torch.float64), -1e308, 1e308, 0),
        (torch.nested.nested_tensor([torch.ones(1, 3), torch.zeros(3, 3)], layout=torch.jagged), 0, 1, 0.25),
        (torch.tensor(7), 7, 7, 7),
        (torch.empty(0, 3), None, None, None),
        (torch.tensor([NAN]), None, None, None),
    ],
)
def test_any_dtype_and_layout_has_statistics(
    tensor: torch.Tensor, low: float | None, high: float | None, mean: float | None
) -> None:
    found = statistics.describe(tensor)
    assert [found["min"], found["max"], found["mean"]] == [
        None if each is None else pytest.approx(each, rel=1e-9) for each in (low, high, mean)
    ]
    assert sum(found["histogram"]) + found["nan"] == found["count"]
    json.dumps(found)  # it goes to the page


def test_picture_shows_the_slice_asked_for_and_averages_what_is_large() -> None:
    tensor = torch.arange(24.0).reshape(2, 3, 4)
    about, data = statistics.picture(tensor, [1]) or ({}, b"")
    assert list(struct.unpack("<12f", data)) == list(range(12, 24))
    assert about == {"rows": 3, "columns": 4, "low": 12.0, "high": 23.0, "at": [1], "sizes": [2], "of": [3, 4]}
    assert (statistics.picture(tensor, [9]) or ({}, b""))[0]["at"] == [1]
    wide, data = statistics.picture(torch.arange(128.0)) or ({}, b"")
    assert (wide["rows"], wide["columns"], wide["of"]) == (1, 64, [1, 128])
    assert struct.unpack("<64f", data)[:2] == (0.5, 2.5)  # pairs of neighbours
    assert statistics.picture(torch.tensor(1.0)) is None


@pytest.mark.filterwarnings("ignore:.*quantized tensor creation functions")
def test_quantised_tensors_count_as_what_they_stand_for() -> None:
    found = statistics.describe(torch.quantize_per_tensor(torch.tensor([0.5, 1.0]), 0.5, 0, torch.quint8))
    assert (found["min"], found["max"], found["dtype"]) == (0.5, 1, "quint8")


def test_nested_tensors_tell_which_axes_are_ragged() -> None:
    assert statistics.describe(torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged))[
        "shape"
    ] == [2, -1, 3]


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.empty(3, device="meta"), "no values"),
        (
            torch.sparse_coo_tensor([[1], [2]], [3.0], (10**6, 10**6), check_invariants=False),
            "1,000,000,000,000 elements is too large",
        ),
        (torch.zeros(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2), "can't turn this Tensor of float4_e2m1fn_x2"),
    ],
)
def test_what_has_no_values_is_refused(tensor: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        statistics.describe(tensor)
    with pytest.raises(ValueError, match=message):
        statistics.picture(tensor)


def test_statistics_taken_while_tracing_are_metrics_and_survive_without_the_trace() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, -1.0]]))
        model[0].bias.zero_()
    graph = torchatlas.trace(model, torch.tensor([[3.0, 2.0]]), stats=True).graph
    by_name = {row.name: row.metrics for row in (*graph.nodes, *graph.calls)}
    assert [by_name["0.linear"][f"value_{name}"] for name in ("min", "max", "mean")] == [-2.0, 3.0, 0.5]
    # ReLU leaves 3 and 0.
    for name in ("1.relu", "1", "Sequential", "output"):
        assert (by_name[name]["value_max"], by_name[name]["value_zeros"]) == (3.0, 0.5)
    assert by_name["0.weight"]["value_mean"] == 0.0
    plain = torchatlas.trace(model, torch.tensor([[3.0, 2.0]])).graph
    assert not any(name.startswith("value_") for node in plain.nodes for name in node.metrics)


def test_statistics_do_not_disturb_a_fake_trace() -> None:
    graph = torchatlas.trace(nn.Linear(2, 2), torch.ones(1, 2), fake=True, stats=True).graph
    assert [node.status for node in graph.nodes if node.kind == "op"] == ["ok"]


def test_statistics_are_kept_where_the_forward_is_run_again_past_its_failure() -> None:
    class Fails(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wrong = nn.Linear(5, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            fine = x * 3
            return self.wrong(x).relu() + fine

    failed = torchatlas.trace(Fails(), torch.ones(1, 2), on_error="keep", past_errors=True, stats=True)
    metrics = {node.name: node.metrics for node in failed.graph.nodes}
    assert metrics["mul"]["value_mean"] == 3.0
    # What follows from the assumed result was never computed from data.
    assert not any(name.startswith("value_") for node in ("wrong.linear", "relu", "add") for name in metrics[node])
