"""Floating point operations on nodes, summed on module calls."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import torchatlas


def flops(model, *inputs):
    graph = torchatlas.trace(model.eval(), inputs).graph
    return {row.name: row.metrics["flops"] for row in (*graph.calls, *graph.nodes) if "flops" in row.metrics}


def test_linear_layers_are_counted_and_summed():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Sequential(nn.Linear(16, 4)))
    # 2 per multiply-add: 3 rows · 8 · 16 and 3 rows · 16 · 4.
    first, second = 2 * 3 * 8 * 16, 2 * 3 * 16 * 4
    assert flops(model, torch.ones(3, 8)) == {
        "Sequential": first + second,
        "0": first,
        "2": second,
        "2.0": second,
        "0.linear": first,
        "2.0.linear": second,
    }


def test_a_convolution_counts_its_window_at_every_place():
    model = nn.Conv2d(3, 5, 3, padding=1)
    assert flops(model, torch.ones(1, 3, 10, 10))["conv2d"] == 2 * 5 * 10 * 10 * 3 * 3 * 3


def test_attention_counts_both_products():
    def attend(q):
        return nn.functional.scaled_dot_product_attention(q, q, q)

    graph = torchatlas.trace(attend, (torch.ones(1, 2, 5, 4),)).graph
    # Two heads; queries by keys and weights by values: 5·5·4 multiply-adds each.
    assert graph.calls[0].metrics["flops"] == 2 * 2 * (2 * 5 * 5 * 4)


def test_what_cannot_be_counted_has_no_number():
    graph = torchatlas.trace(lambda x: (x + 1).relu(), (torch.ones(3),)).graph
    assert all("flops" not in row.metrics for row in (*graph.nodes, *graph.calls))


def test_a_recurrent_layer_goes_through_its_weights_at_every_step():
    model = nn.LSTM(3, 5, num_layers=2, bidirectional=True)
    # 7 steps of 2 sequences; four gates; per direction: first layer 3 and 5 columns, second layer 10 and 5.
    per_step = 2 * (4 * 5) * (3 + 5) + 2 * (4 * 5) * (10 + 5)
    assert flops(model, torch.ones(7, 2, 3))["lstm"] == 2 * 7 * 2 * per_step


@pytest.mark.parametrize(
    "run",
    [
        lambda x: nn.functional.linear(x, torch.ones(7, 4), torch.ones(7)),
        lambda x: x @ torch.ones(2, 4, 5),
        lambda x: torch.addmm(torch.ones(5), x, torch.ones(4, 5)),
        lambda x: torch.bmm(x[None], torch.ones(1, 4, 2)),
        lambda x: torch.einsum("ij,kj->ik", x, torch.ones(6, 4)),
        lambda x: nn.functional.conv2d(x[None, None], torch.ones(2, 1, 2, 2), stride=2),
        lambda x: nn.functional.conv1d(x[None], torch.ones(6, 1, 3), groups=3),
        lambda x: nn.functional.conv_transpose2d(x[None, None], torch.ones(1, 2, 2, 2), stride=2),
        lambda x: (x * 1).t_() @ torch.ones(3, 5),
        lambda x: torch.einsum("ij,kj->ik", (x * 1).t_(), torch.ones(6, 3)),
    ],
)
def test_counts_are_those_of_pytorch(run):
    x = torch.ones(3, 4)
    counter = FlopCounterMode(display=False)
    with counter:
        run(x)
    assert torchatlas.trace(run, (x,)).graph.calls[0].metrics["flops"] == counter.get_total_flops()
