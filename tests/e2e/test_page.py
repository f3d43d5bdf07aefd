"""The view in a saved page, driven by a real mouse and keyboard. Console errors fail every test (conftest)."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import READY_MS, colour_pixels, watched
from playwright.sync_api import Browser, Locator, Page, expect
from torch import nn

import torchatlas
from torchatlas import bundle, export, schema
from torchatlas.options import ViewOptions

ROOT = Path(__file__).parents[2]
DOCUMENTS = ROOT / "tests" / "documents"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"

Opener = Callable[..., Locator]


class View:
    """The view of a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator(".torchatlas[data-ready='true']")
        self.root.wait_for(timeout=READY_MS)
        # The controls come after the picture.
        self.root.get_by_role("toolbar").wait_for(timeout=READY_MS)

    def atlas(self, expression: str, argument: object = None) -> Any:
        """The value of a JavaScript expression of `atlas` and `argument`."""
        return self.root.evaluate(
            f"async (element, argument) => {{ const atlas = element.atlas; return {expression}; }}", argument
        )

    @property
    def visible(self) -> list[str]:
        names: list[str] = self.atlas("atlas.visible()")
        return names

    @property
    def selection(self) -> list[str]:
        names: list[str] = self.atlas("atlas.selection")
        return names

    def rect(self, name: str, what: str = "rect") -> dict[str, float]:
        found: dict[str, float] = self.atlas(f"atlas.{what}(argument).toJSON()", name)
        return found

    def point(self, name: str, what: str = "rect") -> tuple[float, float]:
        """Where to click: in the title of a box, or on its open/close button."""
        rect = self.rect(name, what)
        return rect["x"] + rect["width"] / 2, rect["y"] + min(rect["height"] / 2, 14)

    def click(self, name: str, what: str = "rect", **options: Any) -> None:
        self.page.mouse.click(*self.point(name, what), **options)

    def wait(self, expression: str, argument: object = None) -> None:
        """Wait until a JavaScript expression of `atlas`, `root` (the shadow root) and `argument` holds."""
        self.page.wait_for_function(
            f"([{{ atlas, shadowRoot: root }}, argument]) => {expression}",
            arg=[self.root.element_handle(), argument],
        )

    def wait_visible(self, name: str) -> None:
        self.wait("atlas.visible().includes(argument)", name)

    def wait_gone(self, name: str) -> None:
        self.wait("!atlas.visible().includes(argument)", name)

    def wait_selected(self, *names: str) -> None:
        self.wait("JSON.stringify(atlas.selection) === JSON.stringify(argument)", list(names))

    def pixels(self, colour: str) -> int:
        """How many pixels of the map have a colour, `#rrggbb`, in the frame after the next."""
        return colour_pixels(self.root, colour)

    def wait_still(self) -> None:
        """Wait until nothing moves: the same place in two looks, some frames apart."""
        self.root.evaluate(
            """async (element) => {
                const name = element.atlas.visible()[0];
                const look = () => JSON.stringify(element.atlas.rect(name));
                for (let last = ""; last !== look(); ) {
                    last = look();
                    for (let i = 0; i < 8; i += 1) await new Promise(requestAnimationFrame);
                }
            }"""
        )


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., str]:
    """Makes the page of a document of tests/documents and gives its address."""

    def save(name: str, **options: Any) -> str:
        graph = schema.decode(json.loads((DOCUMENTS / f"{name}.json").read_text(encoding="utf-8")))
        return export.save(graph, tmp_path / f"{name}.html", ViewOptions(**options)).as_uri()

    return save


@pytest.fixture
def opened(offline_page: Page, saved: Callable[..., str]) -> Callable[..., View]:
    """Opens the page of a document and gives its view."""

    def open_page(name: str = "decoder", **options: Any) -> View:
        offline_page.goto(saved(name, **options))
        return View(offline_page)

    return open_page


def test_page_says_what_it_shows_only_after_the_script_ran(saved: Callable[..., str]) -> None:
    html = Path(saved("hostile").removeprefix("file://")).read_text(encoding="utf-8")
    assert "Hostile" not in html
    assert "名前" not in html
    assert not re.search(r"https?://|src=|href=", re.sub(r"(?s)<script[^>]*>.*?</script>", "", html))


def test_click_selects_and_the_panel_tells_about_it(opened: Callable[..., View]) -> None:
    view = opened(depth=1)
    panel = view.root.locator(".panel")
    assert not panel.is_visible()
    view.click("embed")
    view.wait_selected("embed")
    assert panel.locator("h2").inner_text() == "embed Embedding"
    assert panel.locator(".panel-path").inner_text().strip() == "embed"
    assert 'trace.extract(node_out="embed")' in panel.inner_text()
    panel.get_by_label("Close the panel").click()
    assert not panel.is_visible()
    assert view.selection == ["embed"]


def test_click_on_the_ground_clears_the_selection(opened: Callable[..., View]) -> None:
    view = opened(depth=1)
    view.click("embed")
    view.wait_selected("embed")
    view.page.mouse.click(200, 500)
    view.wait_selected()


def test_shift_click_selects_several(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    view.click("ids")
    view.page.keyboard.down("Shift")
    view.click("embed")
    view.wait_selected("ids", "embed")
    view.click("ids")
    view.wait_selected("embed")


def test_button_opens_and_closes_and_stays_under_the_mouse(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    view.wait_still()
    before = view.visible
    at = view.rect("embed", "handle")
    view.click("embed", "handle")
    view.wait_visible("embed.embedding")
    view.wait_still()
    now = view.rect("embed", "handle")
    assert abs(now["x"] - at["x"]) <= 1
    assert abs(now["y"] - at["y"]) <= 1
    view.page.mouse.click(at["x"] + at["width"] / 2, at["y"] + 14)
    view.wait("JSON.stringify(atlas.visible()) === JSON.stringify(argument)", before)


def test_double_click_opens(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    view.page.mouse.dblclick(*view.point("embed"))
    view.wait_visible("embed.embedding")


def test_repeat_shows_one_all_or_a_range(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    assert "layers.0" in view.visible
    assert "layers.1" not in view.visible
    folded = view.visible
    view.click("layers.0", "handle")
    view.wait_visible("layers.0.attn")
    assert "layers.1" in view.visible, "the rest stays folded behind the one that is shown"
    assert "layers.2" not in view.visible
    view.wait_still()
    view.click("layers.0", "handle")
    view.wait("JSON.stringify(atlas.visible()) === JSON.stringify(argument)", folded)
    view.wait_still()
    view.click("layers.0")
    panel = view.root.locator(".panel")
    panel.get_by_label("First block to show").fill("2")
    panel.get_by_label("Last block to show").fill("3")
    panel.get_by_role("button", name="Show", exact=True).click()
    view.wait_visible("layers.2")
    assert [name for name in view.visible if re.fullmatch(r"layers\.\d", name)] == [f"layers.{i}" for i in range(4)]
    view.click("layers.1")
    panel.get_by_role("button", name="Fold").click()
    view.wait("JSON.stringify(atlas.visible()) === JSON.stringify(argument)", folded)


def test_repeat_shows_all_by_a_button_and_by_shift_click(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    folded = view.visible
    blocks = {f"layers.{number}" for number in range(4)}
    view.click("layers.0")
    panel = view.root.locator(".panel")
    panel.get_by_role("button", name="Show all").click()
    view.wait_visible("layers.3")
    assert blocks <= set(view.visible)
    view.wait_still()
    view.click("layers.2")
    panel.get_by_role("button", name="Fold").click()
    view.wait("JSON.stringify(atlas.visible()) === JSON.stringify(argument)", folded)
    view.wait_still()
    view.page.keyboard.down("Shift")
    view.click("layers.0", "handle")
    view.page.keyboard.up("Shift")
    view.wait_visible("layers.3")
    assert blocks <= set(view.visible)


class Scan(nn.Module):
    """Goes through a sequence step by step, without a module for the step."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (time, width) to (width,)."""
        state = torch.zeros(x.shape[1])
        for step in x:
            state = torch.tanh(state * 0.5 + step)
        return state


def test_rounds_of_a_loop_over_operations_fold_and_open(offline_page: Page, tmp_path: Path) -> None:
    graph = torchatlas.trace(Scan(), torch.rand(20, 4)).graph
    offline_page.goto(export.save(graph, tmp_path / "scan.html", ViewOptions()).as_uri())
    view = View(offline_page)
    assert [name for name in view.visible if name.startswith("loop")] == ["loop.0"]
    assert not any(name.startswith("tanh") for name in view.visible)
    view.click("loop.0", "handle")
    view.wait_visible("tanh")
    view.wait_still()
    # Python knows the operations of a round, not the round.
    view.click("loop.0")
    view.wait_selected("mul", "add", "tanh")
    assert "3 operations" in view.root.locator(".panel").inner_text()


def test_wheel_zooms_around_the_mouse_and_drag_moves(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    view.wait_still()
    before = view.rect("embed")
    x, y = view.point("embed")
    view.page.mouse.move(x, y)
    view.page.mouse.wheel(0, -200)
    view.wait("atlas.rect('embed').width > argument * 1.2", before["width"])
    zoomed = view.rect("embed")
    assert zoomed["x"] < x < zoomed["x"] + zoomed["width"]
    view.page.mouse.move(300, 600)
    view.page.mouse.down()
    view.page.mouse.move(340, 630, steps=4)
    view.page.mouse.up()
    moved = view.rect("embed")
    assert (round(moved["x"] - zoomed["x"]), round(moved["y"] - zoomed["y"])) == (40, 30)
    assert view.selection == [], "a drag is no click"


def test_from_afar_a_small_module_is_one_thing_to_the_mouse(opened: Callable[..., View]) -> None:
    view = opened(depth=3, fold_repeats=False)
    view.wait_still()
    view.page.keyboard.press("f")
    view.wait_still()
    name = "layers.2.norm1"
    inside = view.rect(f"{name}.layer_norm")
    x, y = inside["x"] + inside["width"] / 2, inside["y"] + inside["height"] / 2
    view.page.mouse.click(x, y)
    view.wait_selected(name)
    view.page.keyboard.press("z")
    view.wait("atlas.rect(argument).width > 80", name)
    view.wait_still()
    view.click(f"{name}.layer_norm")
    view.wait_selected(f"{name}.layer_norm")


def test_hover_marks_the_edges_of_a_node(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    view.wait_still()
    assert view.pixels("#1259be") == 0
    view.page.mouse.move(*view.point("embed"))
    assert view.pixels("#1259be") > 100


def test_selection_marks_the_way_to_it_and_from_it(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    view.wait_still()
    # Lines that end at the selection, lines on the way to it, lines that start at it, lines on the way from it.
    colours = ["#1259be", "#84aae4", "#a34b06", "#d9a273"]
    assert [view.pixels(colour) for colour in colours] == [0, 0, 0, 0]
    view.click("norm")
    view.wait_selected("norm")
    view.page.mouse.move(200, 500)
    assert all(view.pixels(colour) > 20 for colour in colours)
    view.page.keyboard.press("Escape")
    view.wait_selected()
    assert [view.pixels(colour) for colour in colours] == [0, 0, 0, 0]


def test_pointing_at_an_edge_tells_about_its_tensor(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    view.wait_still()
    above, below = view.rect("ids"), view.rect("embed")
    x = above["x"] + above["width"] / 2
    view.page.mouse.move(x, (above["y"] + above["height"] + below["y"]) / 2)
    view.wait("root.querySelector('.stage').title === argument", "1×5 int64 · 40 B\nfrom ids\nto embed (input)")
    view.page.mouse.move(*view.point("embed"))
    view.wait("root.querySelector('.stage').title.startsWith('embed\\n')")


def test_search_lists_marks_and_goes_to_what_it_finds(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    view.page.keyboard.press("/")
    view.page.keyboard.type("op:softmax in:layers.2")
    options = view.root.locator(".results").get_by_role("option")
    assert options.count() == 1
    assert options.first.inner_text().split("\n")[0] == "softmax operation"
    assert view.root.locator(".search .count").inner_text() == "1 found"
    view.page.keyboard.press("Enter")
    view.wait_selected("layers.2.attn.softmax")
    view.wait_still()
    rect = view.rect("layers.2.attn.softmax")
    assert 0 < rect["x"] < 900
    assert 56 < rect["y"] < 760
    view.page.keyboard.press("Escape")
    assert view.root.get_by_label("Search nodes and modules").input_value() == ""


def test_search_result_can_be_clicked(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    view.root.get_by_label("Search nodes and modules").click()
    view.page.keyboard.type("layers.3 kind:module")
    view.root.locator(".results").get_by_role("option").nth(2).click()
    view.wait_selected("layers.3.attn")
    assert "layers.3.attn" in view.visible


def test_every_action_has_a_key(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    keys = view.page.keyboard
    keys.press("ArrowDown")
    view.wait_selected("ids")
    keys.press("ArrowDown")
    view.wait_selected("embed")
    keys.press("ArrowUp")
    view.wait_selected("ids")
    keys.press("ArrowDown")
    keys.press("Enter")
    view.wait_visible("embed.embedding")
    keys.press("ArrowRight")
    view.wait_selected("embed.embedding")
    keys.press("ArrowLeft")
    view.wait_selected("embed")
    keys.press("Enter")
    view.wait_gone("embed.embedding")
    keys.press("ArrowRight")
    view.wait_visible("embed.embedding")
    keys.press("e")
    view.wait_visible("layers.3.attn.softmax")
    keys.press("c")
    view.wait_gone("embed.embedding")
    view.wait_still()
    width = view.rect("embed")["width"]
    keys.press("+")
    view.wait("atlas.rect('embed').width > argument", width)
    view.wait_still()
    keys.press("-")
    view.wait_still()
    keys.press("f")
    view.wait_still()
    keys.press("z")
    view.wait("atlas.rect('embed').width > argument", width)
    keys.press("Escape")
    view.wait_selected()


def test_help_names_the_keys(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    view.page.keyboard.press("?")
    dialog = view.root.get_by_role("dialog")
    assert "open or close the selected module" in dialog.inner_text()
    view.page.keyboard.press("Escape")
    assert not dialog.is_visible()


def test_depth_buttons_open_and_close_level_by_level(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    view.root.get_by_label("One level more").click()
    view.wait_visible("layers.0.attn")
    assert "layers.0.attn.softmax" not in view.visible
    view.root.get_by_label("One level more").click()
    view.wait_visible("layers.0.attn.softmax")
    view.root.get_by_label("One level less").click()
    view.wait_gone("layers.0.attn.softmax")
    view.root.get_by_label("Open all modules").click()
    view.wait_visible("layers.3.attn.softmax")
    view.root.get_by_label("Close all modules").click()
    view.wait_gone("layers.0.attn")


def test_filters_hide_and_count(opened: Callable[..., View]) -> None:
    view = opened(depth=1)
    assert "embed.weight" not in view.visible
    view.root.get_by_role("button", name="Hidden").click()
    row = view.root.get_by_text("hide parameters").locator("..")
    parameters = sum(node["kind"] in ("parameter", "buffer") for node in document("decoder")["nodes"])
    assert str(parameters) in row.inner_text()
    button = view.root.locator(".menu-box > button").first
    assert button.inner_text().split() == ["Hidden", str(parameters), "parameters"]
    view.root.get_by_label("hide parameters").uncheck()
    view.wait_visible("embed.weight")
    assert button.inner_text().split() == ["Hidden", "nothing"]
    view.root.get_by_label("hide shape-only operations").check()
    view.wait("!atlas.visible().some((name) => /\\.(view|transpose|reshape)(_\\d+)?$/.test(name))")


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCUMENTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_colour_by_a_number_shows_a_legend(opened: Callable[..., View]) -> None:
    view = opened(depth=1)
    legend = view.root.locator(".legend")
    assert not legend.is_visible()
    view.root.get_by_label("Colour by").select_option(label="parameters")
    assert legend.is_visible()
    assert legend.locator("i").count() == 6
    view.root.get_by_label("Colour by").select_option(label="dtype")
    assert "float32" in legend.inner_text()
    view.root.get_by_label("Colour by").select_option(label="depth")
    assert legend.locator("i").count() > 1
    view.root.get_by_label("Colour by").select_option(label="module type")
    assert not legend.is_visible()


def test_minimap_leads_to_the_end(opened: Callable[..., View]) -> None:
    view = opened(depth=3, fold_repeats=False)
    view.wait_still()
    assert view.rect("output.logits")["y"] > 800
    box = view.root.locator(".map").bounding_box()
    assert box is not None
    view.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 8)
    view.wait("atlas.rect('output.logits').y < 800")
    # Dragging the window follows the mouse.
    view.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 8)
    view.page.mouse.down()
    view.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10, steps=6)
    view.page.mouse.up()
    view.wait("atlas.rect('ids').y > 0 && atlas.rect('output.logits').y > 800")


def test_breadcrumb_names_the_module_in_view(opened: Callable[..., View]) -> None:
    view = opened(depth=3)
    view.wait_still()
    crumbs = view.root.get_by_role("navigation", name="Enclosing modules")
    assert not crumbs.is_visible()
    view.atlas("atlas.focus('layers.0.attn.softmax')")
    view.page.mouse.move(640, 400)
    for _ in range(12):
        view.page.mouse.wheel(0, -60)
    crumbs.get_by_role("button", name="attn").wait_for()
    assert view.selection == []


def test_breadcrumb_leads_out(opened: Callable[..., View]) -> None:
    view = opened(depth=2)
    view.click("layers.0.norm1")
    crumbs = view.root.get_by_role("navigation", name="Enclosing modules")
    crumbs.wait_for()
    assert crumbs.get_by_role("button").all_inner_texts() == ["Decoder", "layers.0", "norm1"]
    crumbs.get_by_role("button", name="layers.0").click()
    view.wait_selected("layers.0")


def test_outline_mirrors_the_map_and_works_by_keyboard(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    tree = view.root.get_by_role("tree")
    expect(tree.get_by_role("treeitem")).to_have_count(len(view.visible))
    view.page.keyboard.press("o")
    view.page.keyboard.press("ArrowDown")
    view.page.keyboard.press("ArrowRight")
    view.wait_visible("embed.embedding")
    expect(tree.get_by_role("treeitem")).to_have_count(len(view.visible))
    view.page.keyboard.press("Enter")
    view.wait_selected("embed")
    view.page.keyboard.press("ArrowLeft")
    view.wait_gone("embed.embedding")


def test_crash_starts_at_the_failure_and_says_why(opened: Callable[..., View]) -> None:
    view = opened("crash", depth=0)
    banner = view.root.get_by_role("alert")
    assert "mat1 and mat2 shapes cannot be multiplied" in banner.inner_text()
    assert "body.1.1.linear" in view.visible
    rect = view.rect("body.1.1.linear")
    assert 0 < rect["y"] < 800
    banner.get_by_role("button", name="Go to failure").click()
    view.wait_selected("body.1.1.linear")
    assert "mat1 and mat2" in view.root.locator(".panel .failure").inner_text()


def test_theme_follows_the_system_and_the_option(opened: Callable[..., View]) -> None:
    view = opened(depth=0)
    assert view.root.get_attribute("data-theme") == "light"
    view.page.emulate_media(color_scheme="dark")
    view.wait("root.host.dataset.theme === 'dark'")
    fixed = opened(depth=0, theme="light")
    assert fixed.root.get_attribute("data-theme") == "light"


def test_map_and_minimap_follow_the_theme_of_a_notebook(opened: Callable[..., View]) -> None:
    view = opened(depth=3, fold_repeats=False)
    view.wait_still()
    # Of what is opaque: the grounds of open modules, and what lies on them.
    brightest = """(element) => {
        const canvas = element.shadowRoot.querySelector(".map canvas");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let most = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) most = Math.max(most, data[i]);
        return most;
    }"""
    assert view.root.evaluate(brightest) > 220
    view.page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    view.wait("root.host.dataset.theme === 'dark'")
    assert view.pixels("#15171c") > 10_000
    assert 0 < view.root.evaluate(brightest) < 200
    view.page.evaluate("document.body.dataset.jpThemeLight = 'true'")
    view.wait("root.host.dataset.theme === 'light'")
    assert view.pixels("#fafaf8") > 10_000


@pytest.mark.parametrize("format_name", ["SVG picture", "PNG picture", "JSON document"])
def test_saving_from_the_browser(opened: Callable[..., View], tmp_path: Path, format_name: str) -> None:
    view = opened("residual", depth=0)
    view.root.get_by_role("button", name="Save").click()
    with view.page.expect_download() as started:
        view.root.get_by_role("button", name=format_name).click()
    path = tmp_path / started.value.suggested_filename
    started.value.save_as(path)
    content = path.read_bytes()
    if path.suffix == ".svg":
        assert b'data-name="conv1"' in content
    elif path.suffix == ".png":
        assert content.startswith(b"\x89PNG")
        assert len(content) > 5000
    else:
        assert {**json.loads(content), "generator": ""} == {**document("residual"), "generator": ""}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["decoder", "crash"])
def test_axe_finds_no_serious_violation(browser: Browser, saved: Callable[..., str], name: str, scheme: Any) -> None:
    context = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": 1280, "height": 800})
    page, errors = watched(context)
    page.goto(saved(name, depth=1))
    view = View(page)
    view.atlas("atlas.select(atlas.visible()[1])")
    page.keyboard.press("o")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run(document)).violations")
    serious = [(v["id"], [n["html"] for n in v["nodes"]][:3]) for v in found if v["impact"] in ("serious", "critical")]
    assert serious == []
    context.close()
    assert errors == []


def test_small_screen_has_a_bottom_sheet_and_nothing_sticks_out(browser: Browser, saved: Callable[..., str]) -> None:
    context = browser.new_context(offline=True, viewport={"width": 600, "height": 800}, has_touch=True)
    page, errors = watched(context)
    page.goto(saved("decoder", depth=1))
    view = View(page)
    page.touchscreen.tap(*view.point("embed"))
    view.wait_selected("embed")
    view.wait_still()
    sheet = view.root.locator(".panel").bounding_box()
    assert sheet is not None
    assert sheet["width"] > 560
    assert sheet["y"] > 400
    rect = view.rect("embed")
    assert rect["y"] + rect["height"] < sheet["y"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 600
    more = view.root.get_by_label("More controls")
    for width in (900, 600, 420):
        page.set_viewport_size({"width": width, "height": 800})
        for _ in range(2):
            for box in view.root.locator(".bar > *").all():
                size = box.bounding_box()
                assert size is None or size["x"] + size["width"] <= width
            more.click()
    assert not view.root.get_by_label("Colour by").is_visible()
    more.click()
    assert view.root.get_by_label("Colour by").is_visible()
    assert view.root.get_by_role("button", name="Help").is_visible()
    context.close()
    assert errors == []


def test_two_fingers_zoom(browser: Browser, saved: Callable[..., str]) -> None:
    context = browser.new_context(offline=True, viewport={"width": 600, "height": 800}, has_touch=True)
    page, errors = watched(context)
    page.goto(saved("decoder", depth=0))
    view = View(page)
    view.wait_still()
    before = view.rect("embed")["width"]
    client = context.new_cdp_session(page)

    def touch(kind: str, *points: tuple[int, int]) -> None:
        at = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})

    touch("touchStart", (250, 400), (350, 400))
    for spread in (20, 40, 60, 80, 100):
        touch("touchMove", (250 - spread, 400), (350 + spread, 400))
    touch("touchEnd")
    view.wait("atlas.rect('embed').width > argument * 2", before)
    context.close()
    assert errors == []


def test_reduced_motion_is_respected(browser: Browser, saved: Callable[..., str]) -> None:
    context = browser.new_context(offline=True, reduced_motion="reduce", viewport={"width": 1280, "height": 800})
    page, errors = watched(context)
    page.goto(saved("decoder", depth=0))
    view = View(page)
    frames = view.root.evaluate(
        """async (element) => {
            let frames = 0;
            let isRunning = true;
            const count = () => { frames += 1; if (isRunning) requestAnimationFrame(count); };
            requestAnimationFrame(count);
            await element.atlas.open("embed");
            isRunning = false;
            return frames;
        }"""
    )
    # A move takes about 280 ms, 17 frames; a jump the time of a layout.
    assert frames < 12
    context.close()
    assert errors == []


# Gives `make`, which puts the view of a notebook cell at the end of the page, with a model that no kernel shares.
NOTEBOOK = """
    const bytesFrom = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const bytesOf = (name) => bytesFrom(document.querySelector(`[data-torchatlas="${name}"]`).textContent.trim());
    const unpack = async (bytes) => {
        const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
        return new Uint8Array(await new Response(stream).arrayBuffer());
    };
    const script = new Blob([await unpack(bytesFrom("BUNDLE"))], { type: "text/javascript" });
    const wasm = await unpack(bytesOf("wasm"));
    const { render } = (await import(URL.createObjectURL(script))).default;
    const make = async () => {
        const values = {
            _document: new DataView(bytesOf("document").buffer),
            _options: { depth: 0, height: 300 },
            look: {},
            commands: [],
            done: 0,
            selected: [],
            opened: null,
            visible: null,
        };
        const model = {
            get: (name) => values[name],
            set: (name, value) => { values[name] = value; },
            save_changes: () => {},
            send: () => {},
            on: () => {},
            off: () => {},
        };
        const place = document.body.appendChild(document.createElement("div"));
        const destroy = await render({ model, el: place, wasm });
        const host = place.querySelector(".torchatlas");
        await host.atlas.ready;
        return { values, host, destroy, place };
    };
""".replace("BUNDLE", base64.b64encode(bundle.packed_script()).decode())
TWO_VIEWS = f"""async () => {{
    {NOTEBOOK}
    const views = [await make(), await make()];
    await views[0].host.atlas.open("conv1");
    await views[1].host.atlas.select("bn1");
    const seen = {{
        ids: document.querySelectorAll("[id]").length,
        opened: views.map((view) => view.values.opened),
        selected: views.map((view) => view.values.selected),
        heights: views.map((view) => view.host.getBoundingClientRect().height),
    }};
    for (const view of views) view.destroy();
    seen.left = views.map((view) => view.place.childElementCount);
    for (const view of views) view.place.remove();
    return seen;
}}"""
LONG_PAGE = f"""async () => {{
    {NOTEBOOK}
    document.querySelector("main").remove();
    const space = () => {{
        const made = document.createElement("div");
        made.style.height = "900px";
        document.body.append(made);
    }};
    space();
    await make();
    space();
}}"""


def test_scrolling_past_a_view_goes_on_and_a_wheel_over_it_zooms(opened: Callable[..., View]) -> None:
    page = opened("residual", depth=0).page
    page.evaluate(LONG_PAGE)
    view = View(page)

    def scrolled() -> float:
        position: float = page.evaluate("scrollY")
        return position

    page.mouse.move(640, 400)
    for _ in range(12):
        before = scrolled()
        page.mouse.wheel(0, 60)
        page.wait_for_function("(before) => scrollY > before", arg=before)
    stage = view.root.locator(".stage").bounding_box()
    assert stage is not None
    assert stage["y"] < 400 < stage["y"] + stage["height"], "the view has come under the mouse"
    width = view.rect("conv1")["width"]
    # The wheel has rested for longer than a gesture.
    page.evaluate("() => new Promise((done) => setTimeout(done, 400))")
    before = scrolled()
    page.mouse.wheel(0, -100)
    view.wait("atlas.rect('conv1').width > argument", width)
    assert scrolled() == before


def test_views_on_one_page_do_not_interfere_and_leave_nothing(opened: Callable[..., View]) -> None:
    view = opened("residual", depth=0)
    assert view.page.evaluate(TWO_VIEWS) == {
        "ids": 0,
        "opened": [["conv1"], []],
        "selected": [[], ["bn1"]],
        "heights": [300, 300],
        "left": [0, 0],
    }
    view.click("conv2", "handle")
    view.wait_visible("conv2.conv2d")


def test_document_of_another_version_is_refused_in_words(
    offline_page: Page, saved: Callable[..., str], tmp_path: Path
) -> None:
    html = Path(saved("mlp").removeprefix("file://")).read_text(encoding="utf-8")
    other = {**document("mlp"), "schema_version": 99}
    packed = base64.b64encode(gzip.compress(json.dumps(other).encode())).decode()
    changed = re.sub(r'(data-torchatlas="document">)[^<]*', lambda found: found[1] + packed, html)
    path = tmp_path / "other.html"
    path.write_text(changed, encoding="utf-8")
    offline_page.goto(path.as_uri())
    broken = offline_page.locator(".torchatlas").get_by_role("alert")
    broken.wait_for()
    assert "version 99" in broken.inner_text()
    assert "version 1" in broken.inner_text()
