"""A live view and its kernel in JupyterLab: busy, restarted, failing, one of two; pictures and attention by mouse."""

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


FAILING = """
def fail(name):
    raise ValueError("no such luck")

view._tensors = fail
"""


def test_error_while_values_are_computed_is_told_in_the_panel_and_the_view_goes_on(lab: Lab, lab_page: Page) -> None:
    lab.open(lab_page, [MODEL, DRAW, FAILING])
    lab.run_all(lab_page)
    view = ready_view(cell(lab_page, 1))
    said = """() => {
        const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
        window.said = "";
        kernel.iopubMessage.connect((_, { header, content }) => {
            if (header.msg_type === "stream") window.said += content.text;
        });
    }"""
    lab_page.evaluate(said)
    click(lab_page, view, "rect", "head")
    expect(values(view)).to_have_text("no values: ValueError: no such luck")
    assert "ValueError: no such luck" in lab_page.evaluate("() => window.said")
    lab.python(lab_page, "del view._tensors")
    click(lab_page, view, "rect", "stem")
    values(view).get_by_text("mean ± std").wait_for()


OTHER_VERSION = """
import gzip
from torchatlas import bundle

script = gzip.decompress(bundle.packed_script())
assert script.count(b"Search: name") == 1
bundle.packed_script = lambda: gzip.compress(script.replace(b"Search: name", b"Other version"))
"""


def test_two_notebooks_with_two_versions_and_two_kernels_do_not_meet(lab: Lab, lab_page: Page) -> None:
    lab.open(lab_page, [MODEL, DRAW])
    first_name = lab.name
    lab.run_all(lab_page)
    assert searches(ready_view(cell(lab_page, 1))).startswith("Search: name")
    lab.open_beside(lab_page, [OTHER_VERSION + MODEL, DRAW])
    lab.run_all(lab_page)
    second = ready_view(cell(lab_page, 1))
    assert searches(second).startswith("Other version")
    click(lab_page, second, "rect", "head")
    wait_for_python(lab, lab_page, "print(view.selected)", "['head']\n")
    values(second).get_by_text("mean ± std").wait_for()
    lab.show(lab_page, first_name)
    assert lab.python(lab_page, "print(view.selected)") == "[]\n"
    first = ready_view(cell(lab_page, 1))
    click(lab_page, first, "rect", "stem")
    wait_for_python(lab, lab_page, "print(view.selected)", "['stem']\n")
    values(first).get_by_text("mean ± std").wait_for()


def searches(view: Locator) -> str:
    """What the search box says of itself."""
    return view.locator("input").first.get_attribute("placeholder") or ""


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
