"""Real JupyterLab and real Notebook 7: both sides talk, twenty views are light, nothing is lost without a kernel."""

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
import torch
from conftest import READY_MS, colour_pixels
from labs import Lab
from playwright.sync_api import Browser, Locator, Page
from test_lab import DRAW, MODEL, cell, click, ready_view, visible, wait_for_python, wait_until_visible
from torch import nn

import torchatlas
from torchatlas.options import ViewOptions

STAND_IN = "[data-torchatlas-fallback]"
TALK = """
def complain(names):
    raise ValueError("not this one") if names == ["stem"] else None

view.on_select(complain)
"""


# Notebook 7 reads the settings of a plugin, and runs a command, that only JupyterLab has.
NOTEBOOK = pytest.param("notebook", marks=pytest.mark.console_errors("reading 'schema'|'filebrowser:open-path'"))


@pytest.mark.parametrize("app", ["lab", NOTEBOOK])
def test_both_sides_talk(lab: Lab, lab_page: Page, app: str) -> None:
    lab.open(lab_page, [MODEL, DRAW, TALK], app=app)
    lab.run_all(lab_page)
    view = ready_view(cell(lab_page, 1))
    assert cell(lab_page, 1).locator(STAND_IN).is_hidden()
    click(lab_page, view, "rect", "head")
    values = view.locator(".panel .values")
    values.get_by_text("mean ± std").wait_for()
    view.locator(".panel canvas.heat").wait_for()
    wait_for_python(lab, lab_page, "print(view.selected, view.selected_values['head']['shape'])", "['head'] [1, 2]\n")
    lab.python(lab_page, "view.focus('op:relu'); view.colour({'head': 1, 'stem': 2}, legend='importance')")
    wait_until_visible(lab_page, view, "stem.act.relu")
    wait_for_python(lab, lab_page, "print(view.opened, 'stem.act.relu' in view.visible)", "['stem', 'stem.act'] True\n")
    assert "importance" in view.locator(".legend").inner_text()
    lab.python(lab_page, "view.select('stem')")
    problem = view.locator(".panel").get_by_role("alert")
    problem.wait_for()
    assert "on_select: ValueError: not this one" in problem.inner_text()
    # The view goes on.
    lab.python(lab_page, "view.close('stem')")
    lab_page.wait_for_function("(element) => !element.atlas.visible().includes('stem.act')", arg=view.element_handle())


def test_twenty_views_are_light_and_back_after_a_reload(lab: Lab, lab_page: Page) -> None:
    received: list[int] = []
    lab_page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(len(data))))
    lab.open(lab_page, [MODEL, *[DRAW] * 20])
    lab.run_all(lab_page)
    everything = lab_page.locator(".torchatlas[data-ready='true'][data-engine='viz']")
    everything.nth(19).wait_for(timeout=READY_MS)
    assert 300_000 < sum(received) < 1_000_000
    everything.first.evaluate("(element) => element.atlas.open('stem')")
    wait_for_python(lab, lab_page, "print(view.opened)", "[]\n")
    lab.save(lab_page)
    assert (lab.folder / lab.name).stat().st_size < 200_000
    received.clear()
    lab_page.reload()
    everything.nth(19).wait_for(timeout=READY_MS)
    # What was open is open again.
    wait_until_visible(lab_page, everything.first, "stem.fc")
    assert sum(received) < 1_000_000


@pytest.mark.console_errors("model not found|Could not create a view|Error displaying widget")
def test_reopened_without_its_kernel_the_notebook_shows_a_map_that_opens_and_closes(lab: Lab, lab_page: Page) -> None:
    lab.open_notebook(lab_page, executed_notebook())
    lab_page.evaluate("() => { window.jupyterapp.commands.execute('notebook:trust'); }")
    lab_page.locator(".jp-Dialog .jp-mod-accept").click()
    open_and_close(lab_page, cell(lab_page, 1).locator(STAND_IN))


def open_and_close(page: Page, stand_in: Locator) -> None:
    """By mouse, then by keys, in the map without a kernel."""
    stem, inner = stand_in.locator("g[data-name='stem']"), stand_in.locator("g[data-name='stem.fc']")
    stem.wait_for()
    assert stand_in.locator("img").is_hidden()
    assert inner.count() == 0
    stem.click()
    inner.wait_for()
    assert "stem · Block · 1×8 float32" in stand_in.locator(".facts").inner_text()
    page.keyboard.press("Enter")
    inner.wait_for(state="detached")


@pytest.mark.console_errors("model not found|Could not create a view|Error displaying widget")
def test_map_without_a_kernel_follows_the_theme(lab: Lab, lab_page: Page) -> None:
    lab.open_notebook(lab_page, executed_notebook())
    lab_page.evaluate("() => { window.jupyterapp.commands.execute('notebook:trust'); }")
    lab_page.locator(".jp-Dialog .jp-mod-accept").click()
    stand_in = cell(lab_page, 1).locator(STAND_IN)
    stand_in.locator(".map[data-theme='light']").wait_for()
    change = "(theme) => { window.jupyterapp.commands.execute('apputils:change-theme', { theme }); }"
    lab_page.evaluate(change, "JupyterLab Dark")
    stand_in.locator(".map[data-theme='dark']").wait_for()
    lab_page.evaluate(change, "JupyterLab Light")
    stand_in.locator(".map[data-theme='light']").wait_for()


@pytest.mark.console_errors("model not found|Could not create a view|Error displaying widget")
def test_notebook_that_is_not_trusted_shows_the_picture_and_an_outline(lab: Lab, lab_page: Page) -> None:
    lab.open_notebook(lab_page, executed_notebook())
    kept = cell(lab_page, 1).locator(".jp-RenderedHTML")
    wait_for_picture(lab_page, kept.locator("img"))
    assert kept.locator("script, svg").count() == 0
    inner = kept.get_by_text("relu", exact=False).first
    assert inner.is_hidden()
    kept.get_by_text("stem", exact=False).first.click()
    kept.get_by_text("act ", exact=False).first.click()
    inner.wait_for()


def wait_for_picture(page: Page, image: Locator) -> None:
    image.wait_for()
    page.wait_for_function("(image) => image.complete && image.naturalWidth > 0", arg=image.element_handle())


# nbconvert's page asks for libraries on the network.
@pytest.mark.console_errors("ERR_INTERNET_DISCONNECTED")
def test_notebook_as_a_web_page_shows_the_map_offline(offline_page: Page, tmp_path: Path) -> None:
    offline_page.goto(web_page(tmp_path).as_uri())
    open_and_close(offline_page, offline_page.locator(STAND_IN))


def test_notebook_as_a_web_page_without_scripts_shows_the_picture(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(web_page(tmp_path).as_uri())
    image = page.locator(f"{STAND_IN} img")
    image.wait_for()
    # Without scripts only its size tells that the picture was read: it is not that of the text for those who can't see.
    size = image.bounding_box()
    assert size is not None
    assert size["width"] > 100 < size["height"]
    context.close()


def web_page(folder: Path) -> Path:
    import nbconvert

    html, _resources = nbconvert.HTMLExporter().from_notebook_node(executed_notebook())
    path = folder / "notebook.html"
    path.write_text(html, encoding="utf-8")
    return path


@functools.cache
def executed_notebook() -> Any:
    """Run as nbconvert runs it; without the state of widgets, as front ends save a notebook."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(code) for code in (MODEL, DRAW)],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3")
    # Playwright keeps an event loop in this thread, and nbclient waits in one of its own.
    with ThreadPoolExecutor(1) as pool:
        executed = pool.submit(asyncio.run, client.async_execute()).result(READY_MS / 1000)
    executed.metadata.pop("widgets", None)
    return executed


def test_saved_page_starts_as_python_asked(offline_page: Page, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 2)))
    view = torchatlas.View(torchatlas.trace(model, torch.ones(1, 2), stats=True), ViewOptions(depth=0))
    view.open(["0", "1"])
    view.close("0")
    view.highlight("0")
    view.focus("op:relu")
    view.select("1.1")
    view.colour({"0": 1, "1.1": 5}, legend="importance")
    view.note("1.1", "look here")
    offline_page.goto(view.save(tmp_path / "page.html").as_uri())
    shown = offline_page.locator(".torchatlas[data-ready='true']")
    shown.wait_for()
    assert {"0", "1.0.relu", "1.1"} <= set(visible(shown))
    assert "0.linear" not in visible(shown)
    assert colour_pixels(shown, "#fff3d6") > 500  # the ground of what is highlighted
    assert shown.evaluate("(element) => element.atlas.selection") == ["1.1"]
    assert "importance" in shown.locator(".legend").inner_text()
    panel = shown.locator(".panel").inner_text()
    assert "look here" in panel
    # Statistics that were measured while tracing need no kernel.
    assert "mean ± std" in panel


class Branches(nn.Module):
    def forward(self, image: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return image.relu(), (tokens @ tokens.transpose(-1, -2)).softmax(-1)


def test_first_picture_makes_room_for_the_panel_of_what_is_selected(offline_page: Page, tmp_path: Path) -> None:
    view = torchatlas.View(torchatlas.trace(Branches(), (torch.ones(1, 3), torch.ones(2, 4, 12, 8))))
    view.select("relu")
    offline_page.set_viewport_size({"width": 800, "height": 700})
    offline_page.goto(view.save(tmp_path / "page.html").as_uri())
    shown = offline_page.locator(".torchatlas[data-ready='true']")
    panel = shown.locator(".panel")
    panel.wait_for()
    right = "(element) => Math.max(...element.atlas.visible().map((name) => element.atlas.rect(name).right))"
    box = panel.bounding_box()
    assert box is not None
    assert shown.evaluate(right) <= box["x"]
