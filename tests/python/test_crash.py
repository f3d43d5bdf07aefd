"""What is known of a failure: node, line, sentence, suggestions."""

import warnings

import pytest
import torch

import torchatlas as ta
from crashes import CASES, Crash


def failed(case: Crash) -> tuple[BaseException, ta.Trace]:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch.jit is on its way out, and still in use
        model, inputs = case.build()
    with pytest.raises(case.error) as caught:
        ta.trace(model, inputs)
    return caught.value, caught.value.torchatlas_trace


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_broken_model_is_located_and_explained(case: Crash) -> None:
    error, trace = failed(case)
    graph = trace.graph
    failure = graph.error
    assert failure is not None
    assert graph.errors == (failure,)
    assert (failure.type, failure.message) == (type(error).__name__, str(error))
    assert (None if failure.node is None else graph.nodes[failure.node].name) == case.node
    assert tuple(graph.calls[call].name for call in failure.calls) == case.calls
    assert all(graph.calls[call].status == "failed" for call in failure.calls)
    source = None if failure.source is None else graph.sources[failure.source]
    assert (None if source is None else source.line) == case.line
    assert source is None or source.file == case.build.__code__.co_filename
    explanation = trace.explain()
    assert explanation.kind == case.kind
    for text in case.says:
        assert text in explanation.sentence
    if case.suggests is None:
        assert explanation.suggestions == ()
    else:
        assert not case.suggests or any(case.suggests in text for text in explanation.suggestions), explanation


def test_corpus_has_at_least_sixty_models() -> None:
    assert len(CASES) >= 60
