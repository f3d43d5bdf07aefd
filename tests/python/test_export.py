import base64
import gzip
import html.parser
import json
import re
from pathlib import Path

import pytest

import graphs
from torchatlas import bundle, dot, export, page, schema
from torchatlas.options import ViewOptions

EVIL = "</script><script>alert(1)</script><!-- {{document}} {{bundle}}"
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Skeleton(html.parser.HTMLParser):
    """Tags, attributes and text of a page outside its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[object] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attributes), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif data.strip():
            self.found.append(data)


def embedded(text: str) -> list[bytes]:
    """What the page carries packed, unpacked."""
    data = [body.strip() for _attributes, body in Skeleton(text).scripts]
    packed = [body for body in data if re.fullmatch(r"[A-Za-z0-9+/=\s]{40,}", body)]
    return [gzip.decompress(base64.b64decode(body)) for body in packed]


def test_page_carries_the_document_the_bundle_and_graphviz() -> None:
    text = page.render(graphs.perceptron())
    parts = embedded(text)
    documents = [json.loads(part) for part in parts if part.startswith(b'{"schema_version"')]
    assert documents == [schema.encode(graphs.perceptron())]
    assert any(part.startswith(b"\0asm") for part in parts)
    assert ({}, bundle.page_script()) in Skeleton(text).scripts


def test_page_of_a_small_graph_is_below_a_megabyte() -> None:
    assert len(page.render(graphs.perceptron()).encode("utf-8")) < 1_000_000


def test_text_of_the_model_changes_nothing_outside_the_data() -> None:
    harmless = Skeleton(page.render(graphs.perceptron()))
    evil = Skeleton(page.render(graphs.perceptron(name=EVIL, title=EVIL)))
    assert evil.found == harmless.found
    assert len(evil.scripts) == len(harmless.scripts)
    assert evil.open == harmless.open == []


def test_page_fetches_nothing() -> None:
    text = page.render(graphs.perceptron())
    for tag in Skeleton(text).found:
        if isinstance(tag, tuple):
            assert not {name for name, _value in tag[1]} & {"src", "href", "srcset"}, tag
    assert not re.search(r"@import|url\((?!data:)", text)


def test_no_placeholder_is_left() -> None:
    text = page.render(graphs.perceptron())
    assert not re.search(r"\{\{\w+\}\}", text)


def test_options_reach_the_page() -> None:
    text = page.render(graphs.perceptron(), ViewOptions(depth=3, theme="dark", fold_repeats=False))
    options = [json.loads(body) for _attributes, body in Skeleton(text).scripts if body.strip().startswith("{")]
    assert {"depth": 3, "height": 600, "theme": "dark", "fold_repeats": False} in options


def test_page_is_the_same_each_time() -> None:
    assert page.render(graphs.perceptron()) == page.render(graphs.perceptron())


def test_frame_keeps_any_page_inside_its_attribute() -> None:
    framed = Skeleton(page.frame(page.render(graphs.perceptron(name=EVIL)), ViewOptions(height=321)))
    (_div, (tag, attributes)) = framed.found
    assert tag == "iframe"
    assert dict(attributes)["srcdoc"] == page.render(graphs.perceptron(name=EVIL))
    assert "height: 321px" in str(dict(attributes)["style"])


@pytest.mark.parametrize("name", ["x.json", "x.dot", "x.html", "X.HTML"])
def test_suffix_says_what_is_written(tmp_path: Path, name: str) -> None:
    graph = graphs.crashed()
    path = export.save(graph, tmp_path / name)
    text = path.read_text(encoding="utf-8")
    wanted = {".json": schema.to_json(graph) + "\n", ".dot": dot.to_dot(graph), ".html": page.render(graph)}
    assert text == wanted[path.suffix.lower()]
    assert list(tmp_path.iterdir()) == [path]


def test_saving_again_takes_the_place_of_the_old_file(tmp_path: Path) -> None:
    for title in ("First", "Second"):
        export.save(graphs.perceptron(title=title), tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text())["title"] == "Second"
    assert (tmp_path / "x.json").stat().st_mode & 0o444 == 0o444
