"""A real Chromium, and a real JupyterLab, each started once for all tests."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest
from labs import Lab, running_lab
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect, sync_playwright

READY_MS = 60_000
# Without these, Chromium looks for Google's hosts at every start.
_QUIET = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.fail("no Chromium on PATH: run tests/e2e/ensure_chromium.sh, or install the package 'chromium'")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=READY_MS)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=_QUIET)
        yield running
        running.close()


def watched(context: BrowserContext) -> tuple[Page, list[str]]:
    """A page, and the list that its console errors and uncaught exceptions go to."""
    page = context.new_page()
    page.set_default_timeout(READY_MS)
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(f"{message.text} ({message.location.get('url', '')})")

    page.on("console", note)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return page, errors


def colour_pixels(view: Locator, colour: str) -> int:
    """How many pixels of a view's map have a colour, `#rrggbb`, in the frame after the next."""
    found: int = view.evaluate(
        """async (element, colour) => {
            for (let i = 0; i < 2; i += 1) await new Promise(requestAnimationFrame);
            const canvas = element.shadowRoot.querySelector(".stage canvas");
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
            let found = 0;
            for (let i = 0; i < data.length; i += 4) {
                found += data[i] === r && data[i + 1] === g && data[i + 2] === b;
            }
            return found;
        }""",
        colour,
    )
    return found


def unexpected(errors: list[str], request: pytest.FixtureRequest) -> list[str]:
    """The errors that the test's mark `console_errors(pattern)` does not foresee."""
    mark = request.node.get_closest_marker("console_errors")
    return [error for error in errors if mark is None or not re.search(mark.args[0], error)]


@pytest.fixture
def offline_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page in a browser without network; console errors fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    page, errors = watched(context)
    yield page
    context.close()
    assert unexpected(errors, request) == []


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("lab")) as started:
        yield started


@pytest.fixture
def lab_page(browser: Browser, lab: Lab, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page for JupyterLab; console errors fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    page, errors = watched(context)
    yield page
    context.close()
    assert unexpected(errors, request) == []
