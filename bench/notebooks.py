"""Measure what twenty views cost in a real JupyterLab and a real Notebook 7: bytes, seconds, size of the file.

    python bench/notebooks.py [--apps lab,notebook] [--models small,gpt2] [--views N] [--browser PATH] [--shots FOLDER]

Needs what the end-to-end tests need (`torchatlas[test,export]`, Chromium). A benchmark, not a test: the exit status is
0 whether the bars are met or not.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "e2e"))
from labs import Lab, running_lab  # the folder of the tests is no package

LIMIT_MS = 120_000
SETUPS = {
    "small": """
import torch, torchatlas
from torch import nn
model = nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 2)))
inputs = torch.ones(1, 8)
trace = torchatlas.trace(model, inputs)
graph = trace.graph
""",
    "gpt2": """
import torch, torchatlas, transformers
with torch.device("meta"):  # the same graph without weights of 500 MB
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    inputs = {"input_ids": torch.zeros(1, 128, dtype=torch.long)}
trace = torchatlas.trace(model, inputs)
graph = trace.graph
""",
}
SHOW = {"small": "torchatlas.trace_model(model, inputs)", "gpt2": "trace.show()"}
READY = ".torchatlas[data-ready='true']"


def main() -> None:
    options = _options()
    rows = []
    with (
        tempfile.TemporaryDirectory(prefix="torchatlas-bench-") as root,
        running_lab(Path(root)) as lab,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=options.browser, args=["--no-sandbox"])
        for app in options.apps.split(","):
            for model in options.models.split(","):
                rows.append([app, model, *_measure(browser, lab, app, model, options.views, options.shots)])
                print(f"{app} {model}: {rows[-1][2:]}", file=sys.stderr, flush=True)
        browser.close()
    print(_table(rows, options.views))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--apps", default="lab,notebook", help="among lab, notebook")
    parser.add_argument("--models", default="small,gpt2", help="among small, gpt2")
    parser.add_argument("--views", type=int, default=20, help="cells that show a view, 20 if not given")
    parser.add_argument("--browser", default=shutil.which("chromium"), help="Chromium; else playwright's own")
    parser.add_argument("--shots", type=Path, help="folder for pictures of the pages")
    return parser.parse_args()


def _measure(browser: Browser, lab: Lab, app: str, model: str, views: int, shots: Path | None) -> list[float]:
    """Bytes and seconds of the run, bytes and seconds of a reload, how many views are back, bytes of the saved file."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(LIMIT_MS)
    received: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(len(data))))
    lab.open(page, [SETUPS[model], *[SHOW[model]] * views], app=app)
    # What torch and the model cost is not what is measured.
    page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0; }")
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
    received.clear()
    began = time.perf_counter()
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-below'); }")
    _wait_for_all(page, views)
    ready_s = time.perf_counter() - began
    page.wait_for_function(f"() => document.querySelectorAll(\"{READY}[data-engine='viz']\").length === {views}")
    run_bytes = sum(received)
    lab.save(page)
    file_bytes = (lab.folder / lab.name).stat().st_size
    if shots:
        page.screenshot(path=shots / f"{app}-{model}.png")
    received.clear()
    began = time.perf_counter()
    page.reload()
    _wait_for_all(page, views)
    reload_s = time.perf_counter() - began
    back = page.locator(READY).count()
    page.wait_for_function(f"() => document.querySelectorAll(\"{READY}[data-engine='viz']\").length === {views}")
    reload_bytes = sum(received)
    page.close()
    return [run_bytes, ready_s, reload_bytes, reload_s, back, file_bytes]


def _wait_for_all(page: Page, views: int) -> None:
    page.wait_for_function(f'() => document.querySelectorAll("{READY}").length === {views}')


def _table(rows: list[list[float | str]], views: int) -> str:
    lines = [
        f"{views} views; the bars for 20: under 1 MB over the websocket, 5 s until all are ready, "
        "all back after a reload, under 1.5 MB in the file",
        "| where | model | received | all ready | reload: received | all ready | back | file |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for app, model, run, ready, again, again_s, back, file in rows:
        lines.append(
            f"| {app} | {model} | {run / 1e6:.2f} MB | {ready:.1f} s | {again / 1e6:.2f} MB | {again_s:.1f} s"  # type: ignore[operator]
            f" | {back} | {file / 1e6:.2f} MB |"  # type: ignore[operator]
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
