"""A live view and its kernel in JupyterLab: busy, restarted, shut down; values of pictures and attention by mouse."""

import pytest
from labs import Lab
from playwright.sync_api import Locator, Page, expect
from test_lab import DRAW, MODEL, cell, click, ready_view, wait_for_python, wait_until_visible

WAIT = "import pathlib, time\nwhile not pathlib.Path('go-on').exists(): time.sleep(0.05)"


def values(view: Locator) -> Locator:
    return view.locator(".panel .values")


def kernel(page: Page, what: str) -> None:
    page.evaluate(f"() => window.jupyterapp.shell.currentWidget.sessionContext.{what}")


def test_panel_says_that_the_kernel_is_busy_and_then_shows_the_values(lab: Lab, lab_page: Page) -> None:
    lab.open(lab_page, [MODEL, DRAW, WAIT])
    lab_page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    view = ready_view(cell(lab_page, 1))
    click(lab_page, view, "rect", "head")
    expect(values(view)).to_have_text("the kernel is busy; values come when it is free")
    (lab.folder / "go-on").touch()
    values(view).get_by_text("mean ± std").wait_for()


def test_view_says_that_its_kernel_was_restarted_and_the_cell_run_again_has_values(lab: Lab, lab_page: Page) -> None:
    lab.open(lab_page, [MODEL, DRAW])
    lab.run_all(lab_page)
    view = ready_view(cell(lab_page, 1))
    click(lab_page, view, "rect", "head")
    values(view).get_by_text("mean ± std").wait_for()
    kernel(lab_page, "session.kernel.restart()")
    click(lab_page, view, "rect", "stem")
    expect(values(view)).to_have_text("no kernel: run the cell again to get values")
    lab.run_all(lab_page)
    again = ready_view(cell(lab_page, 1))
    click(lab_page, again, "rect", "stem")
    values(again).get_by_text("mean ± std").wait_for()


# ipywidgets tries to send the selection.
@pytest.mark.console_errors("Cannot send")
def test_view_whose_kernel_was_shut_down_says_so_and_goes_on(lab: Lab, lab_page: Page) -> None:
    lab.open(lab_page, [MODEL, DRAW])
    lab.run_all(lab_page)
    view = ready_view(cell(lab_page, 1))
    kernel(lab_page, "shutdown()")
    click(lab_page, view, "rect", "stem")
    expect(values(view)).to_have_text("no kernel: run the cell again to get values")
    click(lab_page, view, "handle", "stem")
    wait_until_visible(lab_page, view, "stem.fc")


PICTURES = """
class Seeing(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 5)

    def forward(self, image, tokens):
        maps = self.conv(image).relu()
        attention = (tokens @ tokens.transpose(-1, -2)).softmax(-1)
        return maps, attention

torch.manual_seed(0)
rows = torch.linspace(-1, 1, 68)
image = torch.stack([torch.sin(8 * (rows[:, None] ** 2 + rows ** 2) + phase) for phase in range(3)])[None]
model = Seeing().eval()
view = torchatlas.trace_model(model, (image, torch.randn(2, 4, 12, 8).cumsum(-2)), height=700)
"""


def slide(page: Page, view: Locator, axis: int, share: float) -> None:
    """Drag a slider to a place by mouse."""
    slider = values(view).get_by_label(f"Index on axis {axis}")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()


def pixels(view: Locator) -> list[int]:
    """Width, height and the colours of the heat map."""
    found: list[int] = (
        values(view)
        .locator("canvas.heat")
        .evaluate("(c) => [c.width, c.height, ...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]")
    )
    return found


def test_feature_maps_and_attention_are_drawn_and_a_slider_goes_through_them(lab: Lab, lab_page: Page) -> None:
    lab.open(lab_page, [MODEL, PICTURES])
    lab.run_all(lab_page)
    view = ready_view(cell(lab_page, 1))
    click(lab_page, view, "rect", "softmax")
    values(view).get_by_text("axis 1: 2").wait_for()
    before = pixels(view)
    assert before[:2] == [12, 12]
    slide(lab_page, view, 1, 0.01)
    values(view).get_by_text("axis 1: 0").wait_for()
    # The label moves with the slider, the picture comes from the kernel.
    attempts = (lab_page.wait_for_timeout(100) for _ in range(100))
    assert any(pixels(view) != before for _ in attempts)
    click(lab_page, view, "rect", "relu")
    values(view).get_by_text("64 × 64").wait_for()
    values(view).get_by_text("axis 1: 3").wait_for()
    assert len(set(pixels(view)[2:])) > 20
    lab.python(lab_page, "view.select(['relu', 'softmax', 'conv'])")
    code = "print({name: row['shape'] for name, row in view.selected_values.items()})"
    wait_for_python(
        lab, lab_page, code, "{'relu': [1, 6, 64, 64], 'softmax': [2, 4, 12, 12], 'conv': [1, 6, 64, 64]}\n"
    )
