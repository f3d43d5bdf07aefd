"""A real JupyterLab: a cell traces a model, a real mouse opens a module, a crash shows view and traceback."""

from typing import Any

from conftest import READY_MS
from labs import FRONT, Lab
from playwright.sync_api import Locator, Page, expect

MODEL = """
import torch
import torchatlas
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.act = nn.ReLU()

    def forward(self, x):
        return x + self.act(self.fc(x))

class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.stem = Block()
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.stem(x))
"""
DRAW = "view = torchatlas.trace_model(Net(), torch.ones(1, 8), collapse_modules_after_depth=0)\nview"
CRASH = "torchatlas.trace_model(Net(width=5), torch.ones(1, 8))"


def ready_view(cell: Locator) -> Locator:
    """The view in a cell's output, once it is drawn."""
    view = cell.locator(".torchatlas[data-ready='true']")
    view.wait_for(timeout=READY_MS)
    return view


def cell(page: Page, number: int) -> Locator:
    return page.locator(f"{FRONT} .jp-CodeCell").nth(number)


def visible(view: Locator) -> list[str]:
    names: list[str] = view.evaluate("(element) => element.atlas.visible()")
    return names


def click(page: Page, view: Locator, what: str, name: str) -> None:
    """A real mouse click in the middle of what `atlas.rect(name)` or `atlas.handle(name)` tells."""
    view.scroll_into_view_if_needed()
    rect: dict[str, Any] = view.evaluate("(element, [what, name]) => element.atlas[what](name).toJSON()", [what, name])
    page.mouse.click(rect["x"] + rect["width"] / 2, rect["y"] + rect["height"] / 2)


def wait_until_visible(page: Page, view: Locator, name: str) -> None:
    page.wait_for_function(
        "([element, name]) => element.atlas.visible().includes(name)", arg=[view.element_handle(), name]
    )


def test_cell_draws_the_model_and_a_click_opens_a_module(lab: Lab, lab_page: Page) -> None:
    lab.open(lab_page, [MODEL, DRAW])
    lab.run_all(lab_page)
    view = ready_view(cell(lab_page, 1))
    assert lab_page.locator(".torchatlas").count() == 1
    expect(view).to_have_attribute("data-engine", "viz")
    assert "stem.fc" not in visible(view)
    click(lab_page, view, "handle", "stem")
    wait_until_visible(lab_page, view, "stem.fc")


def test_click_on_a_node_selects_it_in_python(lab: Lab, lab_page: Page) -> None:
    lab.open(lab_page, [MODEL, DRAW])
    lab.run_all(lab_page)
    view = ready_view(cell(lab_page, 1))
    click(lab_page, view, "rect", "head")
    lab_page.wait_for_function("(element) => element.atlas.selection.includes('head')", arg=view.element_handle())
    wait_for_python(lab, lab_page, "print(view.selected)", "['head']\n")


def wait_for_python(lab: Lab, page: Page, code: str, wanted: str) -> None:
    """Ask the kernel until it answers as wanted; a trait travels after the click."""
    said = ""
    for _attempt in range(50):
        said = lab.python(page, code)
        if said == wanted:
            return
        page.wait_for_timeout(100)
    assert said == wanted


def test_crash_shows_view_banner_and_traceback_and_the_repaired_model_runs_in_the_next_cell(
    lab: Lab, lab_page: Page
) -> None:
    lab.open(lab_page, [MODEL, CRASH, DRAW])
    lab.run_all(lab_page)  # stops at the cell that raises
    crashed = cell(lab_page, 1)
    view = ready_view(crashed)
    assert {"stem", "head", "head.linear"} <= set(visible(view))
    banner = view.get_by_role("alert")
    assert "head expects last dimension 5 (its in_features), got 8" in banner.inner_text()
    assert "nn.Linear(8, 2) would pass; tried" in banner.inner_text()
    traceback = crashed.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']")
    traceback.wait_for()
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied" in traceback.inner_text()
    assert "`head` expects last dimension 5" in traceback.inner_text()
    cell(lab_page, 2).locator(".cm-content").click()
    lab_page.keyboard.press("Shift+Enter")
    repaired = ready_view(cell(lab_page, 2))
    assert repaired.get_by_role("alert").count() == 0
    assert "stem" in visible(repaired)


def test_page_in_a_cell_draws_where_widgets_do_not_run(lab: Lab, lab_page: Page) -> None:
    kaggle = "import os\nos.environ['KAGGLE_KERNEL_RUN_TYPE'] = 'Interactive'\n"
    lab.open(lab_page, [MODEL, kaggle + DRAW])
    lab.run_all(lab_page)
    frame = cell(lab_page, 1).frame_locator("iframe")
    view = ready_view(frame.locator("body"))
    expect(view).to_have_attribute("data-engine", "viz")
    assert "stem" in visible(view)
    assert lab_page.locator(".torchatlas").count() == 0


def test_two_views_on_a_page_are_independent(lab: Lab, lab_page: Page) -> None:
    lab.open(lab_page, [MODEL, DRAW, DRAW])
    lab.run_all(lab_page)
    first, second = ready_view(cell(lab_page, 1)), ready_view(cell(lab_page, 2))
    click(lab_page, first, "handle", "stem")
    wait_until_visible(lab_page, first, "stem.fc")
    assert "stem.fc" not in visible(second)
    click(lab_page, second, "rect", "head")
    wait_for_python(lab, lab_page, "print(view.selected)", "['head']\n")
    assert first.evaluate("(element) => element.atlas.selection") == []
