"""Where the caller is: a notebook with widgets, one without, a terminal."""

from __future__ import annotations

import os
import sys
from typing import Any, Literal

Medium = Literal["widget", "html", "static", "text"]


def current() -> Medium:
    """What can be shown here."""
    if is_marimo():
        return "html"
    shell = _shell()
    if shell is None or not hasattr(shell, "kernel"):
        return "text"
    # Kaggle's notebooks can't load a widget that was installed in the session (Kaggle/docker-python#1487).
    return "html" if "KAGGLE_KERNEL_RUN_TYPE" in os.environ else "widget"


def is_marimo() -> bool:
    """Whether this is a marimo notebook, which shows the value of a cell and has no call to show something else."""
    marimo = sys.modules.get("marimo")
    asked = getattr(marimo, "running_in_notebook", None)  # missing in old versions, and while it is being imported
    return asked is not None and bool(asked())


def current_cell() -> object:
    """What tells this run of this cell from others: the request of a kernel, the counter of a terminal."""
    shell = _shell()
    if shell is None:
        return None
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        return kernel.get_parent("shell").get("header", {}).get("msg_id")
    return shell.execution_count


def cell_id() -> str | None:
    """Name of the cell that runs, the same when it is run again; None where the front end does not tell.

    None on Colab too, where each output is a page of its own.
    """
    kernel = getattr(_shell(), "kernel", None)
    if kernel is None or "google.colab" in sys.modules:
        return None
    # JupyterLab, Notebook 7 and VS Code send it with what they ask to be run.
    found = kernel.get_parent("shell").get("metadata", {}).get("cellId")
    return found if isinstance(found, str) else None


def write(said: str) -> None:
    """Print, with `?` for what the terminal's encoding lacks."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(said.encode(encoding, "replace").decode(encoding), end="", flush=True)


def _shell() -> Any:
    """IPython's shell, without importing IPython into a plain script."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()
