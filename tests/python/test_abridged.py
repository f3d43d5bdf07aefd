"""The graph in few bytes that a notebook keeps: small, and cut at deep modules where it is too large."""

import gzip
import json
from pathlib import Path

import pytest
import torch
from torch import nn

import graphs
import make_documents
import torchatlas
from torchatlas import abridged, schema
from torchatlas.graph import Graph

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("name", make_documents.MODELS)
def test_kept_form_of_a_document_is_what_is_made_today(name: str) -> None:
    document = json.loads((TESTS / "documents" / f"{name}.json").read_text(encoding="utf-8"))
    kept = json.loads((TESTS / "abridged" / f"{name}.json").read_text(encoding="utf-8"))
    assert json.loads(schema.dumps(abridged.abridge(schema.decode(document)))) == kept, "run `make documents`"


def test_equal_blocks_cost_next_to_nothing() -> None:
    few, many = (len(abridged.pack(graphs.stack(blocks))) for blocks in (10, 100))
    # The number in the name of each is all that differs.
    assert many - few < 90 * 8


class Block(nn.Module):
    """Two results that leave it, made by three operations."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.inner(x).relu()
        return hidden, hidden + x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, other = self.block(x)
        return one * other


@pytest.fixture
def net() -> Graph:
    return torchatlas.trace(Net(), torch.ones(1, 2)).graph


def test_contracted_call_has_one_node_with_what_comes_in_and_goes_out(net: Graph) -> None:
    cut = abridged.contract(net, 1)
    cut.check()
    assert [call.name for call in cut.calls] == ["Net", "block"]
    operations = [(node.name, node.op) for node in cut.nodes if node.kind in ("op", "opaque")]
    assert operations == [("block.…", "… 3 operations"), ("mul", "mul")]
    names = [node.name for node in cut.nodes]
    edges = {(names[edge.tail], edge.tail_slot, names[edge.head]) for edge in cut.edges}
    # Two different tensors leave the block; x is read by two operations inside, once from outside.
    assert {("block.…", 0, "mul"), ("block.…", 1, "mul"), ("x", 0, "block.…"), ("mul", 0, "output")} <= edges
    assert sum(edge.head == names.index("mul") for edge in cut.edges) == 2


def test_contracting_below_everything_changes_nothing_but_sources(net: Graph) -> None:
    assert abridged.abridge(abridged.contract(net, 9)) == abridged.abridge(net)


def test_failure_inside_a_contracted_call_is_its_node() -> None:
    model = nn.Sequential(nn.Sequential(nn.ReLU(), nn.Linear(3, 3)))
    graph = torchatlas.trace(model, torch.ones(1, 2), on_error="keep").graph
    cut = abridged.contract(graph, 1)
    cut.check()
    assert cut.error is not None
    assert cut.error.node is not None
    failed = cut.nodes[cut.error.node]
    assert (failed.name, failed.status) == ("0.…", "failed")
    assert [cut.calls[each].name for each in cut.error.calls] == ["Sequential", "0"]


def test_what_is_too_large_loses_the_inside_of_deep_modules_and_says_how_much(net: Graph) -> None:
    whole = abridged.pack(net)
    assert abridged.pack_within(net, len(whole)) == (whole, 0)
    assert abridged.pack_within(net, 50) is None
    # Four blocks of three operations, no two alike.
    blocks = [nn.Sequential(nn.Linear(n, n + 1), nn.Tanh(), nn.Linear(n + 1, n + 1)) for n in range(4, 8)]
    graph = torchatlas.trace(nn.Sequential(*blocks), torch.ones(1, 4)).graph
    found = abridged.pack_within(graph, len(abridged.pack(graph)) - 1)
    assert found is not None
    smaller, left_out = found
    assert left_out == 12
    operations = json.loads(gzip.decompress(smaller))["nodes"][2]
    assert operations.count("… 3 operations") == 4
    assert "linear" not in operations
