"""DOT text is read by the real Graphviz, the one that the view uses."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import graphs
from torchatlas import dot
from torchatlas.graph import Graph

ROOT = Path(__file__).parents[2]
READER = """
import { instance } from "@viz-js/viz";
import { readFileSync } from "node:fs";
const viz = await instance();
const result = viz.render(readFileSync(0, "utf8"), { format: process.argv[1] });
process.stdout.write(JSON.stringify(result));
"""


def draw(text: str, form: str) -> str:
    """What Graphviz makes of a text; fails where it has anything to complain about."""
    node = shutil.which("node")
    assert node, "node is needed to read DOT"
    done = subprocess.run(
        [node, "--input-type=module", "-e", READER, form],
        input=text,
        capture_output=True,
        text=True,
        cwd=ROOT,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["status"] == "success"
    # It has the widths of ASCII letters only and says so of others.
    assert [error for error in result["errors"] if "no value for width" not in error["message"]] == []
    return str(result["output"])


def objects(graph: Graph) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """Nodes and clusters by label, and edges, as Graphviz read them."""
    found = json.loads(draw(dot.to_dot(graph), "json"))
    nodes = {o["label"]: o for o in found["objects"] if not o["name"].startswith("cluster")}
    clusters = {o["label"]: o for o in found["objects"] if o["name"].startswith("cluster")}
    return nodes, clusters, found.get("edges", [])


def test_operation_is_inside_the_cluster_of_its_module_call() -> None:
    nodes, clusters, edges = objects(graphs.perceptron())
    assert set(nodes) == {"x", "fc.linear", "relu", "output"}
    assert set(clusters) == {"fc  Linear"}
    assert clusters["fc  Linear"]["nodes"] == [nodes["fc.linear"]["_gvid"]]
    assert [edge["label"] for edge in edges] == ["1×4 float32", "1×8 float32", "1×8 float32"]


def test_clusters_nest_as_calls_do() -> None:
    _nodes, clusters, _edges = objects(graphs.stack(2))
    assert clusters["h.1  Block"]["subgraphs"] == [clusters["h.1.fc  Linear"]["_gvid"]]


def test_failure_is_red_and_nothing_else_is() -> None:
    nodes, clusters, _edges = objects(graphs.crashed())
    assert nodes["fc.linear"]["color"] == "#c4232b"
    assert clusters["fc  Linear"]["color"] == "#c4232b"
    assert "color" not in nodes["x"]


@pytest.mark.parametrize(
    "name", ['a"b', "a\\", 'a\\"b', "a\nb", "\\N\\G", "<b>x</b>", "&lt;", "名前", "a];evil[b", "{x|y}", "\ud800"]
)
def test_hostile_name_is_one_label(name: str) -> None:
    nodes, _clusters, edges = objects(graphs.perceptron(name=name, title=name))
    assert len(nodes) == 4
    assert len(edges) == 3


def test_label_shows_the_text_as_it_is() -> None:
    name = 'q"\\n&lt;\\\\'
    picture = ElementTree.fromstring(draw(dot.to_dot(graphs.perceptron(name=name)), "svg"))
    assert f"{name}.linear" in [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]


def test_deep_nesting_needs_no_deep_stack() -> None:
    assert dot.to_dot(graphs.deep(3000)).count("subgraph") == 3000
