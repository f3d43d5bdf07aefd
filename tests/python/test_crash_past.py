"""Looking past failures: all of them found in one run, and the rest of the model drawn as it is after the repairs."""

import re

import pytest
import torch

import torchatlas as ta
from crashes.several import MODELS, Several
from torchatlas import schema


def shapes(graph: ta.Graph) -> list[tuple[str, str, tuple[object, ...]]]:
    """Name, class and result shapes of each module call."""
    return [(call.name, call.type, tuple(spec.shape for spec in call.outputs)) for call in graph.calls]


@pytest.mark.parametrize("several", MODELS.values(), ids=list(MODELS))
def test_all_planted_errors_are_found_and_the_rest_is_drawn_as_repaired(several: Several) -> None:
    torch.manual_seed(0)
    broken, repaired = several.broken(), several.repaired()
    before = {name: value.clone() for name, value in broken.state_dict().items()}
    plain = ta.trace(broken, several.inputs, on_error="keep").error
    assert plain is not None
    with pytest.raises(type(plain), match=re.escape(str(plain))) as caught:
        ta.trace(broken, several.inputs, past_errors=True)
    trace = caught.value.torchatlas_trace
    graph = trace.graph
    found = [graph.calls[f.calls[-1]].name if f.node is None else graph.nodes[f.node].name for f in graph.errors]
    assert found == list(several.failing)
    assert graph.error == graph.errors[0]
    assert all(explanation.sentence for explanation in trace.explanations)
    whole = ta.trace(repaired, several.inputs).graph
    assert [(call.name, call.type) for call in graph.calls] == [(call.name, call.type) for call in whole.calls]
    first = trace.record.failures[0]
    since = first.call.start if first.op is None else first.op.index
    later = [number for number, call in enumerate(trace.record.calls) if call.end > since]
    assert [shapes(graph)[number] for number in later] == [shapes(whole)[number] for number in later]
    assert [node.outputs for node in graph.nodes if node.kind == "output"] == [
        node.outputs for node in whole.nodes if node.kind == "output"
    ]
    assert all((graph.nodes[f.node].note or "").startswith("assumed") for f in graph.errors if f.node is not None)
    assert all(torch.equal(value, before[name]) for name, value in broken.state_dict().items())
    assert schema.decode(schema.encode(graph)) == graph


def test_there_are_at_least_twenty_models() -> None:
    assert len(MODELS) >= 20
    assert all(len(several.failing) in (2, 3) for several in MODELS.values())
