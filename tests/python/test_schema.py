import dataclasses
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs
from torchatlas import schema
from torchatlas.graph import Graph, Node, TensorSpec

DOCUMENTS = sorted((Path(__file__).parents[1] / "documents").glob("*.json"))
GRAPHS = {"perceptron": graphs.perceptron(), "crashed": graphs.crashed(), "stack": graphs.stack(3)}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_encoded_graph_obeys_the_schema(graph: Graph) -> None:
    jsonschema.Draft202012Validator(schema.schema()).validate(schema.encode(graph))


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_decoding_gives_the_graph_that_was_encoded(graph: Graph) -> None:
    assert schema.decode(schema.encode(graph)) == graph
    assert schema.from_json(schema.to_json(graph)) == graph


def test_equal_tensor_descriptions_are_written_once() -> None:
    # perceptron has two kinds of tensor, (1, 4) and (1, 8), in eleven places
    shapes = [spec["shape"] for spec in schema.encode(graphs.perceptron())["specs"]]
    assert sorted(shapes) == [[1, 4], [1, 8]]


@given(st.text())
def test_any_text_survives_the_trip(text: str) -> None:
    graph = graphs.perceptron(name="fc." + text, title=text)
    written = schema.to_json(graph)
    assert written.isascii()
    assert schema.from_json(written) == graph


def test_tensor_without_a_shape_survives_the_trip() -> None:
    nested = TensorSpec(None, "float32", "cpu", False, 0)
    graph = Graph("f", (Node(0, "x", "input", None, None, outputs=(nested,)),), (), (), inputs=(0,))
    assert schema.decode(schema.encode(graph)) == graph


def test_other_schema_version_is_refused_naming_both() -> None:
    document = {**schema.encode(graphs.perceptron()), "schema_version": 99}
    with pytest.raises(ValueError, match=r"schema_version 99.*version 1"):
        schema.decode(document)


def test_missing_field_is_named() -> None:
    document = schema.encode(graphs.perceptron())
    del document["edges"]
    with pytest.raises(ValueError, match="edges"):
        schema.decode(document)


def test_inconsistent_document_is_refused() -> None:
    document = schema.encode(graphs.perceptron())
    document["nodes"][0]["kind"] = "unheard of"
    with pytest.raises(ValueError, match="inconsistent"):
        schema.decode(document)


def test_a_list_is_no_document() -> None:
    with pytest.raises(TypeError, match="document"):
        schema.decode([])  # type: ignore[arg-type]


def test_no_number_that_browsers_reject_is_written() -> None:
    graph = graphs.perceptron()
    node = dataclasses.replace(graph.nodes[1], metrics={"flops": float("nan")})
    with pytest.raises(ValueError, match="JSON compliant"):
        schema.to_json(dataclasses.replace(graph, nodes=(graph.nodes[0], node, *graph.nodes[2:])))


def test_there_are_documents_for_the_other_language() -> None:
    assert len(DOCUMENTS) >= 6


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_document_in_git_obeys_the_schema_and_decodes(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema.schema()).validate(document)
    graph = schema.decode(document)
    assert {**schema.encode(graph), "generator": None} == {**document, "generator": None}
