"""What a person sees: in a real kernel, in a script, in a terminal."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

WIDGET = "application/vnd.jupyter.widget-view+json"
SETUP = """
import os
import torch
import torchatlas
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
broken = nn.Sequential(nn.Linear(4, 8), nn.Linear(7, 2)).eval()
"""
CELLS = {
    "last": "torchatlas.trace_model(model, torch.ones(1, 4))",
    "assigned": "view = torchatlas.trace_model(model, torch.ones(1, 4))",
    "assigned and last": "view = torchatlas.trace_model(model, torch.ones(1, 4))\nview",
    "later": "view",
    "later again": "view",
    "two": "torchatlas.trace_model(model, torch.ones(1, 4))\ntorchatlas.trace_model(model, torch.ones(2, 4))",
    "of a trace": "torchatlas.trace(model, torch.ones(1, 4)).show(depth=2)",
    "crash": "torchatlas.trace_model(broken, torch.ones(1, 4))",
    "kept": "torchatlas.trace(broken, torch.ones(1, 4), on_error='keep').show()",
    "same class": "print(type(view).__mro__)",
    "page": "torchatlas.trace_model(model, torch.ones(1, 4), view='html')",
    "outline": "torchatlas.trace_model(model, torch.ones(1, 4), view='static')",
    "selection": "view._widget.set_state({'selected': ['1.relu']})\nprint(view.selected)",
    "kaggle": "os.environ['KAGGLE_KERNEL_RUN_TYPE'] = 'Interactive'\ntorchatlas.trace_model(model, torch.ones(1, 4))",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The outputs of each cell, run one after the other in one kernel."""
    cells = [nbformat.v4.new_code_cell(code) for code in (SETUP, *CELLS.values())]
    notebook = nbformat.v4.new_notebook(cells=cells)
    folder = tmp_path_factory.mktemp("kernel")
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(folder)}}
    ).execute()
    assert notebook.cells[0].outputs == []
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells[1:], strict=True)}


def widgets(found: list[Any]) -> int:
    return sum(WIDGET in output.get("data", {}) for output in found)


def is_outline(output: Any) -> bool:
    return output.get("data", {}).get("text/html", "").startswith("<div data-torchatlas-fallback=")


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("last", 1),
        ("assigned", 1),
        ("assigned and last", 1),
        ("later", 1),
        ("later again", 1),
        ("two", 2),
        ("of a trace", 1),
        ("kept", 1),
    ],
)
def test_view_shows_as_often_as_it_is_asked_for(outputs: dict[str, list[Any]], cell: str, shown: int) -> None:
    assert widgets(outputs[cell]) == shown
    assert sum(is_outline(output) for output in outputs[cell]) == shown
    assert len(outputs[cell]) == 2 * shown
    # What stands in comes before what hides it.
    assert is_outline(outputs[cell][0])


def test_crash_shows_the_partial_view_and_then_the_exception_itself(outputs: dict[str, list[Any]]) -> None:
    outline, view, error = outputs["crash"]
    assert "✗ linear" in outline["data"]["text/html"]
    assert WIDGET in view["data"]
    assert error["output_type"] == "error"
    assert error["ename"] == "RuntimeError"
    assert "mat1 and mat2 shapes cannot be multiplied" in error["evalue"]


def test_view_is_no_widget(outputs: dict[str, list[Any]]) -> None:
    (said,) = outputs["same class"]
    assert "View" in said["text"]
    assert "ipywidgets" not in said["text"]


def test_selection_in_the_front_end_is_seen_in_python(outputs: dict[str, list[Any]]) -> None:
    (said,) = outputs["selection"]
    assert said["text"] == "['1.relu']\n"


def test_kaggle_gets_a_page_instead_of_a_widget(outputs: dict[str, list[Any]]) -> None:
    (shown,) = outputs["kaggle"]
    assert shown["data"]["text/html"].startswith("<div><iframe")
    assert widgets([shown]) == 0


def test_caller_chooses_page_or_outline(outputs: dict[str, list[Any]]) -> None:
    (page,) = outputs["page"]
    assert page["data"]["text/html"].startswith("<div><iframe")
    (outline,) = outputs["outline"]
    assert is_outline(outline)
    assert "<script" not in outline["data"]["text/html"]


def run(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(SETUP + code, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-W", "error", script.name],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def test_script_prints_a_summary_and_the_path_of_a_page(tmp_path: Path) -> None:
    done = run("torchatlas.trace_model(model, torch.ones(1, 4))", tmp_path)
    assert done.stderr == ""
    assert "Sequential · 58 parameters" in done.stdout  # 4 * 8 + 8 + 8 * 2 + 2
    path = Path(done.stdout.rpartition("open in a browser: ")[2].strip())
    assert path.name == "torchatlas_Sequential.html"
    assert path.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_script_that_crashes_prints_the_summary_first_and_ends_with_the_exception(tmp_path: Path) -> None:
    done = run("torchatlas.trace_model(broken, torch.ones(1, 4))", tmp_path)
    assert done.returncode == 1
    assert "✗ 1.linear raised RuntimeError: mat1 and mat2 shapes cannot be multiplied" in done.stdout
    error, explained, *_ = done.stderr[done.stderr.index("\nRuntimeError: ") + 1 :].splitlines()
    assert error.startswith("RuntimeError: mat1 and mat2 shapes cannot be multiplied")
    assert explained.startswith("`1` (Linear) expects last dimension")


def test_terminal_without_unicode_is_no_reason_to_fail(tmp_path: Path) -> None:
    done = run("torchatlas.trace_model(model, torch.ones(1, 4))", tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "Sequential ? 58 parameters" in done.stdout


def test_terminal_of_ipython_shows_once_per_cell_and_names_one_page(tmp_path: Path) -> None:
    lines = [*SETUP.strip().splitlines(), "view = torchatlas.trace_model(model, torch.ones(1, 4)); view", "view"]
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--no-confirm-exit"],
        input="\n".join(lines) + "\n",
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "IPYTHONDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    pages = [line.partition(": ")[2] for line in done.stdout.splitlines() if line.startswith("open in a browser")]
    assert len(pages) == 2
    assert len(set(pages)) == 1


def test_export_path_is_the_page_that_the_script_names(tmp_path: Path) -> None:
    code = """
torchatlas.trace_model(model, torch.ones(1, 4), export_path="new/folder/page.html")
torchatlas.trace_model(model, torch.ones(1, 4), export_path="new/other")
torchatlas.trace_model(model, torch.ones(1, 4), export_format="HTML")
"""
    done = run(code, tmp_path)
    assert done.stderr == ""
    wanted = ["new/folder/page.html", "new/other/torchatlas_Sequential.html", "torchatlas_Sequential.html"]
    said = [line.rpartition(": ")[2] for line in done.stdout.splitlines() if line.startswith("open in")]
    assert said == [str(tmp_path / name) for name in wanted]
    assert {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.html")} == set(wanted)


@pytest.mark.parametrize(
    "call",
    [
        "torchatlas.trace_model(model, (torch.ones(1, 4),))",
        "torchatlas.trace_model(model, {'input': torch.ones(1, 4)})",
        "torchatlas.trace_model(model, (), kwargs={'input': torch.ones(1, 4)})",
        "torchatlas.trace_model(lambda x: model(x), torch.ones(1, 4))",
    ],
)
def test_inputs_may_be_a_tuple_a_mapping_or_keywords(tmp_path: Path, call: str) -> None:
    done = run(f"print(repr({call}))", tmp_path)
    assert done.stderr == ""
    assert "<torchatlas.View of" in done.stdout
