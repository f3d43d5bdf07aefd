"""What a notebook keeps of a view: a picture, a map and an outline within a budget."""

import base64
import gzip
import html.parser
import importlib.util
import json
import re
import urllib.parse
from pathlib import Path
from xml.etree import ElementTree

import nbclient
import nbformat
import pytest
import torch
import transformers
from torch import nn

import graphs
import torchatlas
from torchatlas import bundle, fallback, picture
from torchatlas.graph import Graph
from torchatlas.options import ViewOptions
from torchatlas.view import View


@pytest.fixture(scope="module")
def gpt2() -> torchatlas.Trace:
    # Shapes alone need no weights of 500 MB.
    config = transformers.GPT2Config()
    with torch.device("meta"):
        model = transformers.GPT2LMHeadModel(config).eval()
        return torchatlas.trace(model, {"input_ids": torch.zeros(1, 128, dtype=torch.long)})


class Parts(html.parser.HTMLParser):
    """Elements of a stand-in, in order, and the text of its scripts."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data

    def image(self) -> str:
        """The picture as SVG text."""
        (source,) = (attributes["src"] for tag, attributes in self.tags if tag == "img")
        assert source is not None
        kind, _, data = source.partition(",")
        assert kind == "data:image/svg+xml"
        return urllib.parse.unquote(data)

    def data(self) -> list[str]:
        """The four lines that the map is made from."""
        return self.scripts[0].strip("\n").split("\n")


def drawn(graph: Graph, options: ViewOptions | None = None) -> bytes:
    found = picture.for_notebook(graph, options or ViewOptions(), fallback.PICTURE_BYTES)
    assert found is not None
    return found


def test_map_has_its_code_the_graph_and_the_options() -> None:
    parts = Parts(fallback.render(graphs.perceptron(), "key", ViewOptions(depth=1, theme="dark", height=300)))
    digest, code, graph, options = parts.data()
    assert re.fullmatch("[0-9a-f]{16}", digest)
    assert gzip.decompress(base64.b64decode(code)) == gzip.decompress(bundle.packed_lite())
    assert json.loads(gzip.decompress(base64.b64decode(graph)))["title"] == "Net"
    assert json.loads(options) == {"depth": 1, "theme": "dark"}
    assert parts.scripts[1].startswith(f'({bundle.stand_in()})("key", ')
    again = Parts(fallback.render(graphs.perceptron(), "key", has_code=False)).data()
    assert again[:2] == [digest, ""]


def test_picture_is_a_whole_svg_in_an_image() -> None:
    svg = drawn(graphs.perceptron(title="it's & <b>"))
    image = Parts(fallback.render(graphs.perceptron(), "key", picture=svg)).image()
    assert image == svg.decode()
    assert ElementTree.fromstring(image).get("aria-label") == "it's & <b>"


def test_output_without_a_live_view_has_picture_and_outline_but_no_script() -> None:
    parts = Parts(fallback.render(graphs.perceptron(), "key", picture=drawn(graphs.perceptron()), is_alone=True))
    tags = [tag for tag, _ in parts.tags]
    assert "script" not in tags
    assert {"img", "details"} <= set(tags)


def test_text_of_a_model_is_harmless_in_every_part() -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'%22"
    graph = graphs.perceptron(name=evil, title=evil)
    options = ViewOptions(highlighted=(evil,))
    parts = Parts(fallback.render(graph, "key", options, picture=drawn(graph)))
    kinds = [tag for tag, _ in parts.tags]
    assert kinds.count("img") == 1
    assert kinds.count("script") == len(parts.scripts) == 2
    assert not any(name.startswith("on") for _, attributes in parts.tags for name in attributes)
    assert json.loads(parts.data()[3])["highlighted"] == [evil]
    ElementTree.fromstring(parts.image())


def test_picture_without_room_is_left_out_and_the_map_stays() -> None:
    parts = Parts(fallback.render(graphs.perceptron(), "key", picture=b"<svg>" + b"x" * fallback.BUDGET_BYTES))
    assert "img" not in [tag for tag, _ in parts.tags]
    assert len(parts.scripts) == 2


def test_too_large_a_graph_keeps_its_outer_levels_and_says_what_is_left_out() -> None:
    # Blocks of which no two are alike can't be packed.
    blocks = [nn.Sequential(nn.Linear(n, n + 1), nn.Tanh(), nn.Linear(n + 1, n + 1)) for n in range(3, 99)]
    graph = torchatlas.trace(nn.Sequential(*blocks), torch.ones(1, 3)).graph
    whole = fallback.render(graph, "key")
    assert "too many to keep" not in whole
    # Too little by 800 bytes for the whole graph beside the code.
    budget = fallback._FRAME_BYTES + len(whole[whole.index("<script type=") :]) - 800
    cut = fallback.render(graph, "key", budget_bytes=budget)
    assert len(cut.encode()) <= budget
    assert "288 operations in deep modules were too many to keep" in cut
    assert "… 3 operations" in gzip.decompress(base64.b64decode(Parts(cut).data()[2])).decode("unicode_escape")


def test_stand_in_of_gpt2_keeps_to_its_budget_with_picture_and_map(gpt2: torchatlas.Trace) -> None:
    markup = fallback.render(gpt2.graph, "key", picture=drawn(gpt2.graph))
    parts = Parts(markup)
    assert len(markup.encode()) <= fallback.BUDGET_BYTES < 100_000
    assert "transformer" in parts.image()
    assert "too many to keep" not in markup
    # Without the code, which one cell of a notebook brings.
    assert len(fallback.render(gpt2.graph, "key", picture=drawn(gpt2.graph), has_code=False).encode()) < 40_000


def test_without_v8_there_are_a_map_and_a_longer_outline(
    gpt2: torchatlas.Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "py_mini_racer" else find(name))
    markup = View(gpt2)._stand_in("key")
    assert "<img" not in markup
    assert len(Parts(markup).scripts) == 2
    assert markup.count("<details") > 20
    assert len(markup.encode()) <= fallback.BUDGET_BYTES


def test_picture_that_fails_is_left_out_and_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def fail(graph: Graph, *_arguments: object, **_options: object) -> bytes:
        tried.append(len(graph.nodes))
        raise RuntimeError("not in time")

    monkeypatch.setattr(picture, "_too_many_nodes", float("inf"))
    monkeypatch.setattr(picture, "draw", fail)
    for graph in (graphs.stack(9), graphs.stack(9), graphs.stack(20), graphs.stack(2)):
        assert picture.for_notebook(graph, ViewOptions(), 10_000) is None
    assert tried == [10, 3]


def test_large_picture_gives_way_to_one_of_fewer_levels(gpt2: torchatlas.Trace) -> None:
    whole = picture.for_notebook(gpt2.graph, ViewOptions(), 10**6)
    assert whole is not None
    smaller = picture.for_notebook(gpt2.graph, ViewOptions(), len(whole) - 1)
    assert smaller is not None
    assert len(smaller) < len(whole)
    assert picture.for_notebook(gpt2.graph, ViewOptions(), 100) is None


SETUP = """
import torch, torchatlas, transformers
with torch.device("meta"):
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    trace = torchatlas.trace(model, {"input_ids": torch.zeros(1, 128, dtype=torch.long)})
"""


def test_notebook_with_twenty_views_of_gpt2_is_small(tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell(code) for code in (SETUP, *["trace.show()"] * 20)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [output for cell in notebook.cells for output in cell.outputs]
    assert sum("<img" in output.get("data", {}).get("text/html", "") for output in shown) == 20
    # As front ends save it: without the state of widgets.
    notebook.metadata.pop("widgets")
    nbformat.write(notebook, tmp_path / "x.ipynb")
    assert (tmp_path / "x.ipynb").stat().st_size < 1_500_000
