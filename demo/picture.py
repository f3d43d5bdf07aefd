"""Take the README's picture from the page that `make demo` wrote.

usage: python demo/picture.py build/demo/gpt2.html docs/gpt2.png

Needs playwright and a Chromium on PATH.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH_PX, HEIGHT_PX = 1280, 800
ON_SHOW = "transformer.h.0.attn"


def main(page_path: Path, picture_path: Path) -> None:
    """Open the page, select the attention of the first block, and write what is seen."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH_PX, "height": HEIGHT_PX}, reduced_motion="reduce")
        page.goto(page_path.resolve().as_uri())
        view = page.wait_for_selector(".torchatlas[data-ready='true']")
        assert view is not None
        view.evaluate(
            """async (element, name) => {
                await element.atlas.select(name);
                await element.atlas.focus(name);
            }""",
            ON_SHOW,
        )
        page.wait_for_function("(element) => element.atlas.selection.length > 0", arg=view)
        page.screenshot(path=picture_path)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
