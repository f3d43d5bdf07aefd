"""A saved page, opened from disk in a browser without network."""

from pathlib import Path

import pytest
from conftest import READY_MS
from playwright.sync_api import Page
from test_lab import click, visible, wait_until_visible

import make_documents
from torchatlas import export, schema
from torchatlas.options import ViewOptions


@pytest.mark.parametrize("name", make_documents.MODELS)
def test_page_of_each_document_opens_from_disk(offline_page: Page, tmp_path: Path, name: str) -> None:
    graph = schema.decode(make_documents.make(name))
    path = export.save(graph, tmp_path / "page.html")
    offline_page.goto(path.as_uri())
    view = offline_page.locator(".torchatlas[data-ready='true']")
    view.wait_for(timeout=READY_MS)
    assert view.get_attribute("data-engine") == "viz"
    assert len(visible(view)) > 0
    assert graph.title in offline_page.title()
    view.evaluate("(element) => element.atlas.openAll()")
    shown = set(visible(view))
    assert {node.name for node in graph.nodes if node.kind in ("op", "opaque")} <= shown


def test_module_opens_and_closes_by_mouse(offline_page: Page, tmp_path: Path) -> None:
    graph = schema.decode(make_documents.make("residual"))
    offline_page.goto(export.save(graph, tmp_path / "page.html", ViewOptions(depth=0)).as_uri())
    view = offline_page.locator(".torchatlas[data-ready='true']")
    view.wait_for(timeout=READY_MS)
    before = visible(view)
    click(offline_page, view, "handle", "conv1")
    wait_until_visible(offline_page, view, "conv1.conv2d")
    click(offline_page, view, "handle", "conv1")
    offline_page.wait_for_function(
        "([element, names]) => element.atlas.visible().join() === names.join()",
        arg=[view.element_handle(), before],
    )
