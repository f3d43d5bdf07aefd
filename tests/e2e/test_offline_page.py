"""A saved page, opened from disk in a browser without network."""

from pathlib import Path
from typing import Any

import pytest
from conftest import READY_MS
from playwright.sync_api import Locator, Page, expect
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
    expect(view).to_have_attribute("data-engine", "viz")
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


def rect(view: Locator, name: str) -> dict[str, Any]:
    found: dict[str, Any] = view.evaluate("(element, name) => element.atlas.rect(name).toJSON()", name)
    return found


def test_wheel_zooms_drag_pans_and_a_key_fits(offline_page: Page, tmp_path: Path) -> None:
    graph = schema.decode(make_documents.make("residual"))
    offline_page.goto(export.save(graph, tmp_path / "page.html", ViewOptions(depth=0)).as_uri())
    view = offline_page.locator(".torchatlas[data-ready='true']")
    view.wait_for(timeout=READY_MS)
    first = rect(view, "conv1")
    changed = "([element, old]) => Math.abs(element.atlas.rect('conv1').{0} - old) > 5"
    empty = {"x": 300, "y": 600}

    offline_page.mouse.move(**empty)
    offline_page.mouse.wheel(0, -400)
    offline_page.wait_for_function(changed.format("width"), arg=[view.element_handle(), first["width"]])
    zoomed = rect(view, "conv1")
    assert zoomed["width"] > first["width"]

    offline_page.mouse.down()
    offline_page.mouse.move(empty["x"] + 80, empty["y"] + 40, steps=4)
    offline_page.mouse.up()
    offline_page.wait_for_function(changed.format("x"), arg=[view.element_handle(), zoomed["x"]])
    panned = rect(view, "conv1")
    assert abs(panned["x"] - zoomed["x"] - 80) < 2
    assert abs(panned["y"] - zoomed["y"] - 40) < 2
    assert abs(panned["width"] - zoomed["width"]) < 0.5

    offline_page.keyboard.press("f")
    offline_page.wait_for_function(changed.format("width"), arg=[view.element_handle(), panned["width"]])


def test_failure_is_announced_in_words(offline_page: Page, tmp_path: Path) -> None:
    graph = schema.decode(make_documents.make("crash"))
    offline_page.goto(export.save(graph, tmp_path / "page.html").as_uri())
    offline_page.locator(".torchatlas[data-ready='true']").wait_for(timeout=READY_MS)
    alert = offline_page.get_by_role("alert")
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x6 and 5x2)" in alert.inner_text()


@pytest.mark.console_errors("WebAssembly is not defined")
def test_page_without_webassembly_still_draws(offline_page: Page, tmp_path: Path) -> None:
    offline_page.add_init_script("delete globalThis.WebAssembly; delete globalThis.Worker;")
    graph = schema.decode(make_documents.make("residual"))
    offline_page.goto(export.save(graph, tmp_path / "page.html").as_uri())
    view = offline_page.locator(".torchatlas[data-ready='true']")
    view.wait_for(timeout=READY_MS)
    expect(view).to_have_attribute("data-engine", "simple")
    assert "conv1" in visible(view)
