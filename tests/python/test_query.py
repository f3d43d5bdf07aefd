import json
from pathlib import Path

import pytest

from torchatlas import query, schema

TESTS = Path(__file__).parents[1]
VECTORS = json.loads((TESTS / "queries.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: f"{row['document']}-{row['query']}")
def test_query_finds_what_the_search_box_finds(row: dict) -> None:
    document = TESTS / "documents" / row["document"]
    graph = schema.from_json(document.read_text(encoding="utf-8"))
    assert query.find_names(graph, row["query"]) == row["names"]


def test_parse_query_reads_fields_quotes_and_negation() -> None:
    assert query.parse_query('op:Linear -in:"h 3" enc.layer:2 -') == [
        query.Term("op", "linear", False),
        query.Term("in", "h 3", True),
        query.Term(None, "enc.layer:2", False),
    ]


@pytest.mark.parametrize(
    ("text", "is_pattern"),
    [
        ("layer1", False),
        ("layer1:2", False),
        ("x[0]", False),
        ("h.*", True),
        ("op:relu", True),
        ("a b", True),
        ("", True),
    ],
)
def test_pattern_is_told_from_a_plain_name(text: str, is_pattern: bool) -> None:
    assert query.is_pattern(text) is is_pattern
