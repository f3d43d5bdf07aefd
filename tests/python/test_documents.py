import json
from pathlib import Path

import pytest

import make_documents

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("name", make_documents.MODELS)
def test_document_in_git_is_what_the_tracer_gives_today(name: str) -> None:
    kept = json.loads((TESTS / "documents" / f"{name}.json").read_text(encoding="utf-8"))
    assert make_documents.make(name) == kept, "run `make documents` and look at the difference"


def test_every_document_in_git_has_a_model() -> None:
    assert {path.stem for path in (TESTS / "documents").glob("*.json")} == set(make_documents.MODELS)
