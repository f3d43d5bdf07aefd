"""Every code block of the README is run: Python here, one after the other; commands as said beside each."""

import re
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.M | re.S)
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Commands, and the test that runs them.
COMMANDS = {"pip install ."}  # test_packaging: wheel


def test_python_blocks_run_one_after_the_other(tmp_path: Path) -> None:
    code = "\n".join(body for language, body in BLOCKS if language == "python")
    assert "trace_model" in code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_other_blocks_hold_commands_that_are_run_elsewhere() -> None:
    commands = {line for language, body in BLOCKS if language != "python" for line in body.strip().splitlines()}
    assert commands <= COMMANDS


def test_make_targets_that_the_readme_names_exist() -> None:
    targets = set(re.findall(r"`make (\w+)`", README))
    assert {"demo", "test"} <= targets
    for target in targets:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True)


def test_links_and_pictures_of_the_readme_exist() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_its_outputs_are_stripped(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert "widgets" not in notebook.metadata
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    assert any(cell.outputs for cell in code)


def test_there_is_a_quickstart() -> None:
    assert "quickstart" in {path.stem for path in NOTEBOOKS}
