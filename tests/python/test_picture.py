"""Pictures without a browser: what is drawn, that it ends in time, and what is said where a package is missing."""

import importlib.util
import multiprocessing
import re
import struct
import zlib
from pathlib import Path

import pytest
import torch
from torch import nn

import graphs
import torchatlas
from torchatlas import export, picture
from torchatlas.options import ViewOptions
from torchatlas.view import View

DARK = "#15171c"


@pytest.fixture
def trace() -> torchatlas.Trace:
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 2))).eval()
    return torchatlas.trace(model, torch.ones(1, 4))


def drawn(path: Path) -> set[str]:
    return set(re.findall(r'data-name="([^"]+)"', path.read_text(encoding="utf-8")))


def test_svg_shows_what_the_options_open(trace: torchatlas.Trace, tmp_path: Path) -> None:
    closed = trace.save(tmp_path / "closed.svg", depth=0)
    assert {"0", "1"} <= drawn(closed)
    assert "1.1" not in drawn(closed)
    opened = trace.save(tmp_path / "opened.svg", depth=2, theme="dark")
    assert {"1.0.relu", "1.1.linear"} <= drawn(opened)
    assert DARK in opened.read_text(encoding="utf-8")
    assert DARK not in closed.read_text(encoding="utf-8")


def test_view_saves_what_it_shows(trace: torchatlas.Trace, tmp_path: Path) -> None:
    view = View(trace, ViewOptions(depth=0))
    view.open("1")
    assert "1.1" in drawn(view.save(tmp_path / "view.svg"))
    assert DARK in view.save(tmp_path / "dark.svg", theme="dark").read_text(encoding="utf-8")


def test_png_is_twice_the_size_and_not_blank(trace: torchatlas.Trace, tmp_path: Path) -> None:
    svg = trace.save(tmp_path / "x.svg").read_text(encoding="utf-8")
    size = re.search(r'width="(\d+)" height="(\d+)"', svg)
    assert size is not None
    data = trace.save(tmp_path / "x.PNG").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (2 * int(size[1]), 2 * int(size[2]))
    packed = b"".join(
        data[found.end() : found.end() + struct.unpack(">I", data[found.start() - 4 : found.start()])[0]]
        for found in re.finditer(b"IDAT", data)
    )
    # Ground, cards, lines and text: a picture without text has a few colours only.
    assert len(set(zlib.decompress(packed))) > 50


def test_pdf_has_text(trace: torchatlas.Trace, tmp_path: Path) -> None:
    data = trace.save(tmp_path / "x.pdf").read_bytes()
    assert data.startswith(b"%PDF-")
    assert b"/Font" in data


def test_compact_picture_shows_the_same_words_in_fewer_bytes() -> None:
    plain, compact = (
        picture.draw(graphs.stack(12), ViewOptions(fold_repeats=False), style=style).decode()
        for style in ("plain", "compact")
    )
    assert words(plain) == words(compact)
    assert len(compact) < len(plain) / 2


def words(svg: str) -> list[str]:
    return sorted(re.sub(r"<[^>]*>", "", text) for text in re.findall(r"<text.*?</text>", svg))


@pytest.mark.parametrize(("suffix", "package"), [("svg", "py_mini_racer"), ("png", "resvg_py"), ("pdf", "vl_convert")])
def test_missing_package_is_an_error_that_names_the_extra(
    trace: torchatlas.Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, package: str
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))
    with pytest.raises(ImportError, match=rf"a \.{suffix} file needs {package}: pip install 'torchatlas\[export\]'"):
        trace.save(tmp_path / f"x.{suffix}")
    calls: list[int] = []
    with pytest.raises(ImportError, match="torchatlas"):
        torchatlas.trace_model(lambda x: calls.append(1), torch.ones(1), export_path=tmp_path / f"x.{suffix}")
    assert calls == []
    assert list(tmp_path.iterdir()) == []


def test_picture_that_takes_too_long_is_an_error_and_the_next_one_is_drawn() -> None:
    picture._shared.end()  # so that it has to start, which takes longer than that
    with pytest.raises(RuntimeError, match=r"could not be drawn within 0\.01 s"):
        picture.draw(graphs.perceptron(), ViewOptions(), patience_s=0.01)
    assert picture.draw(graphs.perceptron(), ViewOptions()).startswith(b"<svg")


def test_renderer_that_has_ended_is_started_again() -> None:
    picture.draw(graphs.perceptron(), ViewOptions())
    assert picture._shared._process is not None
    picture._shared._process.kill()
    picture._shared._process.wait()
    assert picture.draw(graphs.perceptron(), ViewOptions()).startswith(b"<svg")


def test_what_the_script_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture.schema, "to_json", lambda _graph: '{"schema_version": 99}')
    with pytest.raises(RuntimeError, match=r"could not be drawn: .*version 99"):
        picture.draw(graphs.perceptron(), ViewOptions())


def draw_into(answers: "multiprocessing.Queue[int]") -> None:
    answers.put(len(picture.draw(graphs.perceptron(), ViewOptions())))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system can't fork")
def test_forked_process_draws_with_a_renderer_of_its_own() -> None:
    expected = len(picture.draw(graphs.perceptron(), ViewOptions()))
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=draw_into, args=(answers,))
    child.start()
    assert answers.get(timeout=60) == expected
    child.join(60)
    assert child.exitcode == 0
    assert len(picture.draw(graphs.perceptron(), ViewOptions())) == expected


def test_picture_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object, **_options: object) -> bytes:
        raise RuntimeError("broken")

    monkeypatch.setattr(picture, "draw", fail)
    with pytest.raises(RuntimeError, match="broken"):
        export.save(graphs.perceptron(), tmp_path / "x.svg")
    assert list(tmp_path.iterdir()) == []


def test_export_format_and_path_write_pictures_beside_the_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model = nn.Linear(2, 2)
    torchatlas.trace_model(model, torch.ones(1, 2), export_format="SVG")
    torchatlas.trace_model(model, torch.ones(1, 2), export_path="new/x.png")
    torchatlas.trace_model(model, torch.ones(1, 2), export_path="new", export_format="pdf")
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")} == {
        "torchatlas_Linear.svg",
        "new/x.png",
        "new/torchatlas_Linear.pdf",
    }
    assert f"saved {tmp_path / 'new' / 'x.png'}" in capsys.readouterr().out
