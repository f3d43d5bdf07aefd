"""Compare how fast torchatlas and torchvista draw, in one real browser.

    python bench/view.py [--repeats N] [--browser PATH] [--only NAMES] [--json FILE]

Pages of the same models are opened in turns, each in a fresh context of one headless Chromium, medians of the repeats.
A benchmark, not a test: the exit status is 0 whether the bars are met or not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from view_pages import write_pages

SIZE = (1280, 860)
LIMIT_MS = 60_000
REST_MS = 2000
"""By then controls and outline are there and Graphviz has started, which a page does after its first picture."""

PAINTED = {
    "torchatlas": "document.querySelector('.torchatlas')?.dataset.ready === 'true'",
    "torchvista": "document.querySelector('svg [class^=node-label]') !== null",
}
COUNT = {
    "torchatlas": "document.querySelector('.torchatlas').atlas.visible().length",
    "torchvista": "document.querySelectorAll('svg [class^=node-label]').length",
}
TWO_FRAMES = "await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));"
"""What is in the document by then is on the screen."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Bar:
    """One aim: what is measured, the value, the limit and on which side of it to be."""

    name: str
    value: float | None
    limit: float
    is_least: bool
    unit: str

    def line(self) -> str:
        if self.value is None:
            return f"  -     {self.name}: not measured"
        is_met = self.value >= self.limit if self.is_least else self.value <= self.limit
        side = "at least" if self.is_least else "at most"
        verdict = "pass" if is_met else "FAIL"
        return f"  {verdict}  {self.name}: {self.value:.3g}{self.unit}, {side} {self.limit:g}{self.unit}"


def main() -> None:
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="torchatlas-bench-"))
    try:
        found = _measure_all(folder, options)
    finally:
        shutil.rmtree(folder)
    print(report(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="rounds, 5 if not given")
    parser.add_argument("--browser", default=shutil.which("chromium"), help="Chromium; else playwright's own")
    parser.add_argument("--only", default="load,click,layout,frames", help="among load, click, layout, frames")
    parser.add_argument("--json", type=Path, help="write all measurements there")
    options = parser.parse_args()
    options.only = set(options.only.split(","))
    return options


def _measure_all(folder: Path, options: argparse.Namespace) -> Row:
    needed = {
        "load": ["gpt2-12", "gpt2-48", "resnet50"],
        "click": ["gpt2-48"],
        "layout": ["gpt2-12", "gpt2-48", "5k", "10k"],
        "frames": ["10k", "30k"],
    }
    names = sorted({name for part in options.only for name in needed[part]})
    write_pages(folder, names, _log)
    found: Row = {"repeats": options.repeats, "load": os.getloadavg()[0], "cores": os.cpu_count()}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.browser, args=["--no-sandbox"])
        found["browser"] = browser.version
        parts: dict[str, Callable[[], Row]] = {
            "load": lambda: _loads(browser, folder, options.repeats),
            "click": lambda: _clicks(browser, folder, options.repeats),
            "layout": lambda: _layouts(browser, folder, options.repeats),
            "frames": lambda: _frames(browser, folder, options.repeats),
        }
        for part, measure in parts.items():
            if part in options.only:
                _log(part)
                found[f"{part}_results"] = measure()
        browser.close()
    return found


def _log(text: str) -> None:
    print(f"{text} ...", file=sys.stderr, flush=True)


def _opened(browser: Browser, path: Path, tool: str) -> tuple[Page, float]:
    """A page in a context of its own, and the ms from the start of its navigation to its picture on the screen."""
    width, height = SIZE
    # Motion would make us wait for the end of an animation that torchvista hasn't.
    context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(LIMIT_MS)
    page.goto(path.as_uri(), wait_until="commit")
    painted_ms: float = page.evaluate(
        f"""async () => {{
          while (!({PAINTED[tool]})) await new Promise((done) => setTimeout(done, 2));
          {TWO_FRAMES}
          return performance.now();
        }}"""
    )
    return page, painted_ms


def _loads(browser: Browser, folder: Path, repeats: int) -> Row:
    rounds: dict[str, list[float]] = {}
    tools = {
        "gpt2-12": ["torchvista", "torchatlas"],
        "resnet50": ["torchvista", "torchatlas"],
        "gpt2-48": ["torchatlas"],
    }
    counts: Row = {}
    for _ in range(repeats):
        for name, drawn in tools.items():
            for tool in drawn:
                page, painted_ms = _opened(browser, folder / f"{name}-open-{tool}.html", tool)
                rounds.setdefault(f"{name} {tool}", []).append(painted_ms)
                counts[f"{name} {tool}"] = page.evaluate(COUNT[tool])
                page.context.close()
    return {
        "ms": {key: statistics.median(values) for key, values in rounds.items()},
        "rounds": rounds,
        "counts": counts,
    }


def _clicks(browser: Browser, folder: Path, repeats: int) -> Row:
    """One click that opens one block of gpt2-48, from the event to the new picture on the screen."""
    rounds: dict[str, list[float]] = {"torchvista": [], "torchatlas": []}
    for _ in range(repeats):
        for tool, click in (("torchvista", _click_torchvista), ("torchatlas", _click_torchatlas)):
            page, _ = _opened(browser, folder / f"gpt2-48-blocks-{tool}.html", tool)
            page.wait_for_timeout(REST_MS)
            rounds[tool].append(click(page))
            page.context.close()
    return {"ms": {tool: statistics.median(values) for tool, values in rounds.items()}, "rounds": rounds}


def _watch_click(tool: str) -> str:
    """Start to watch: `window.clicked` resolves to the ms from the click until the changed picture is on the screen."""
    return f"""() => {{
      const before = {COUNT[tool]};
      window.clicked = new Promise((resolve) => addEventListener("click", async () => {{
        const start = performance.now();
        while ({COUNT[tool]} === before || {COUNT[tool]} === 0) await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);
        resolve(performance.now() - start);
      }}, {{ capture: true, once: true }}));
    }}"""


def _click_torchatlas(page: Page) -> float:
    page.evaluate(_watch_click("torchatlas"))
    x, y = page.evaluate(
        """() => {
          const { atlas } = document.querySelector(".torchatlas");
          const rects = atlas.visible().filter((name) => /[.]h[.]\\d+$/.test(name)).map((name) => atlas.handle(name));
          const inside = rects.find((rect) => rect && rect.top > 80 && rect.bottom < innerHeight - 80);
          return [inside.x + inside.width / 2, inside.y + inside.height / 2];
        }"""
    )
    page.mouse.click(x, y)
    taken_ms: float = page.evaluate("window.clicked")
    return taken_ms


def _click_torchvista(page: Page) -> float:
    page.evaluate(_watch_click("torchvista"))
    # Its buttons may lie outside the window, where no mouse reaches them.
    page.evaluate(
        """() => {
          const buttons = document.querySelectorAll("svg circle[class^=collapse-button_]");
          buttons[Math.floor(buttons.length / 2)].dispatchEvent(new MouseEvent("click", { bubbles: true }));
        }"""
    )
    taken_ms: float = page.evaluate("window.clicked")
    return taken_ms


def _layouts(browser: Browser, folder: Path, repeats: int) -> Row:
    rounds: dict[str, list[float]] = {}
    stats: Row = {}
    for _ in range(repeats):
        for name in ("gpt2-12", "gpt2-48", "5k", "10k"):
            page, _ = _opened(browser, folder / f"{name}-open-torchatlas.html", "torchatlas")
            stats[name] = page.evaluate("document.querySelector('.torchatlas').atlas.stats()")
            rounds.setdefault(name, []).append(stats[name]["layout_ms"])
            page.context.close()
    return {
        "ms": {name: statistics.median(values) for name, values in rounds.items()},
        "calls": {name: row["engine_calls"] for name, row in stats.items()},
        "nodes": {name: row["nodes"] for name, row in stats.items()},
        "rounds": rounds,
    }


def _frames(browser: Browser, folder: Path, repeats: int) -> Row:
    """Times between frames while mouse and wheel move the map: 10,000 nodes all in sight, 30,000 in readable size."""
    found: Row = {}
    for name, is_whole in (("10k", True), ("30k", False)):
        rows = []
        for _ in range(repeats):
            page, _ = _opened(browser, folder / f"{name}-open-torchatlas.html", "torchatlas")
            if is_whole:
                page.locator(".torchatlas").click(position={"x": SIZE[0] / 2, "y": SIZE[1] - 30})
                page.keyboard.press("f")
            page.wait_for_timeout(REST_MS)
            rows.append(_frames_of(page))
            page.context.close()
        found[name] = {key: statistics.median(row[key] for row in rows) for key in ("p50", "p95")}
        found[name]["nodes"] = rows[0]["nodes"]
    return found


def _frames_of(page: Page) -> Row:
    page.evaluate(
        """() => {
          window.frames_ms = [];
          let last = null;
          const tick = (now) => {
            if (last !== null) window.frames_ms.push(now - last);
            last = now;
            window.ticking = requestAnimationFrame(tick);
          };
          window.ticking = requestAnimationFrame(tick);
        }"""
    )
    centre_x, centre_y = SIZE[0] / 2, SIZE[1] / 2
    page.mouse.move(centre_x, centre_y)
    page.mouse.down()
    for step in range(60):
        page.mouse.move(centre_x + 3 * (step % 30), centre_y - 2 * step)
    page.mouse.up()
    for step in range(40):
        page.mouse.wheel(0, -60 if step < 20 else 60)
    frames: list[float] = page.evaluate("() => { cancelAnimationFrame(window.ticking); return window.frames_ms; }")
    nodes = page.evaluate("document.querySelector('.torchatlas').atlas.stats().nodes")
    cuts = statistics.quantiles(frames, n=20)
    return {"p50": statistics.median(frames), "p95": cuts[18], "nodes": nodes}


def report(found: Row) -> str:
    """All measurements and bars as text."""
    head = (
        f"Chromium {found['browser']}, {found['cores']} cores, load {found['load']:.1f}, {found['repeats']} rounds; "
        "medians"
    )
    lines = [head, ""]
    load, click = found.get("load_results"), found.get("click_results")
    layout, frames = found.get("layout_results"), found.get("frames_results")
    if load:
        lines += [f"load, {key}: {ms:.0f} ms ({load['counts'][key]} boxes)" for key, ms in load["ms"].items()]
    if click:
        lines += [f"one click, gpt2-48, {tool}: {ms:.0f} ms" for tool, ms in click["ms"].items()]
    if layout:
        lines += [
            f"layout, {name}: {ms:.0f} ms, {layout['calls'][name]} engine calls, {layout['nodes'][name]} boxes"
            for name, ms in layout["ms"].items()
        ]
    if frames:
        lines += [
            f"frames, {name}: p50 {row['p50']:.1f} ms, p95 {row['p95']:.1f} ms, {row['nodes']} boxes"
            for name, row in frames.items()
        ]
    return "\n".join([*lines, "", *(bar.line() for bar in _bars(load, click, layout, frames))])


def _bars(load: Row | None, click: Row | None, layout: Row | None, frames: Row | None) -> list[Bar]:
    ms: Row = load["ms"] if load else {}
    taken: Row = click["ms"] if click else {}
    laid: Row = layout["ms"] if layout else {}
    calls: Row = layout["calls"] if layout else {}
    large, larger = (frames or {}).get("10k", {}), (frames or {}).get("30k", {})
    return [
        Bar(
            "gpt2-12 fully open, times faster",
            _ratio(ms, "gpt2-12 torchvista", "gpt2-12 torchatlas"),
            8,
            is_least=True,
            unit="x",
        ),
        Bar(
            "resnet50 fully open, times faster",
            _ratio(ms, "resnet50 torchvista", "resnet50 torchatlas"),
            4,
            is_least=True,
            unit="x",
        ),
        Bar(
            "gpt2-48 fully open, of torchvista's time for gpt2-12",
            _ratio(ms, "gpt2-48 torchatlas", "gpt2-12 torchvista"),
            0.2,
            is_least=False,
            unit="x",
        ),
        Bar("one click, times faster", _ratio(taken, "torchvista", "torchatlas"), 20, is_least=True, unit="x"),
        Bar("one click, on an idle machine", taken.get("torchatlas"), 50, is_least=False, unit=" ms"),
        Bar("engine calls, gpt2-48 to gpt2-12", _ratio(calls, "gpt2-48", "gpt2-12"), 1, is_least=False, unit="x"),
        Bar("layout, 10k to 5k", _ratio(laid, "10k", "5k"), 2, is_least=False, unit="x"),
        Bar("10k in sight, frame p50", large.get("p50"), 17, is_least=False, unit=" ms"),
        Bar("10k in sight, frame p95", large.get("p95"), 34, is_least=False, unit=" ms"),
        Bar("30k at reading zoom, frame p95", larger.get("p95"), 50, is_least=False, unit=" ms"),
    ]


def _ratio(values: Row, over: str, under: str) -> float | None:
    return values[over] / values[under] if over in values and under in values else None


if __name__ == "__main__":
    main()
