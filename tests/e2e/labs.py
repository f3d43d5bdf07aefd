"""A real JupyterLab, which has Notebook 7 too: started in a folder of its own, and driven through a browser's page."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Page

START_S = 90
FRONT = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook"
"""The notebook that is in front."""


class Lab:
    """A running JupyterLab."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.name = ""

    def open(self, page: Page, cells: list[str], *, metadata: dict[str, Any] | None = None, app: str = "lab") -> None:
        """Open a new notebook with these cells in a workspace of its own and wait for its kernel.

        Args:
            app: `lab`, or `notebook` for Notebook 7, which the same server has.
        """
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(code) for code in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}, **(metadata or {})},
        )
        self.open_notebook(page, notebook, app=app)

    def open_notebook(self, page: Page, notebook: Any, *, app: str = "lab") -> None:
        """Open a notebook as it is and wait for its kernel."""
        self.name = f"{uuid.uuid4().hex}.ipynb"
        nbformat.write(notebook, self.folder / self.name)
        # In a used workspace JupyterLab opens earlier notebooks again.
        place = f"lab/workspaces/{uuid.uuid4().hex}/tree" if app == "lab" else "notebooks"
        page.goto(f"{self.url}/{place}/{self.name}")
        self._wait_for_kernel(page)

    def open_beside(self, page: Page, cells: list[str]) -> None:
        """Open a new notebook in a tab of the JupyterLab that the page shows, and wait for its kernel."""
        name = f"{uuid.uuid4().hex}.ipynb"
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(code) for code in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(notebook, self.folder / name)
        self.show(page, name)
        self._wait_for_kernel(page)

    def show(self, page: Page, name: str) -> None:
        """Bring the tab of a notebook to the front, opening it if it is not."""
        page.evaluate("(path) => window.jupyterapp.commands.execute('docmanager:open', { path })", name)
        page.wait_for_function("(path) => window.jupyterapp.shell.currentWidget?.context?.path === path", arg=name)
        self.name = name

    def _wait_for_kernel(self, page: Page) -> None:
        page.wait_for_function(
            "() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
        )

    def run_all(self, page: Page) -> None:
        """Run every cell, going on after one that raises, and wait until all have run."""
        cells = page.locator(f"{FRONT} .jp-CodeCell")
        for number in range(cells.count()):
            page.evaluate("(at) => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = at; }", number)
            page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")

    def save(self, page: Page) -> None:
        """Save the open notebook, which then lies in the folder under `name`."""
        page.evaluate("() => window.jupyterapp.shell.currentWidget.context.save()")

    def python(self, page: Page, code: str) -> str:
        """What the notebook's kernel prints when it runs this."""
        script = """async (code) => {
            const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
            const request = kernel.requestExecute({ code, store_history: false });
            let said = "";
            request.onIOPub = (message) => {
                if (message.header.msg_type === "stream") said += message.content.text;
                if (message.header.msg_type === "error") said += message.content.evalue;
            };
            await request.done;
            return said;
        }"""
        said: str = page.evaluate(script, code)
        return said


@contextlib.contextmanager
def running_lab(root: Path) -> Iterator[Lab]:
    """JupyterLab on a free port, with its settings and notebooks in an empty folder.

    Raises:
        RuntimeError: it did not start in time.
    """
    folder = root / "notebooks"
    folder.mkdir()
    _write_settings(root / "settings")
    port = _free_port()
    log = (root / "log.txt").open("w", encoding="utf-8")
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", "--expose-app-in-browser"),
            "--JupyterNotebookApp.expose_app_in_browser=True",
            *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
            *("--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True", f"--ServerApp.root_dir={folder}"),
        ],
        env={
            **os.environ,
            "JUPYTER_CONFIG_DIR": str(root / "config"),
            "JUPYTER_DATA_DIR": str(root / "data"),
            "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
            "JUPYTERLAB_SETTINGS_DIR": str(root / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(root / "workspaces"),
            "IPYTHONDIR": str(root / "ipython"),
        },
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/api", server, root / "log.txt")
        yield Lab(url, folder)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(20)
        log.close()


def _write_settings(folder: Path) -> None:
    settings: dict[str, dict[str, Any]] = {
        # By default cells that are off the screen are not rendered.
        "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
        # Both would ask hosts on the network.
        "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    }
    for name, values in settings.items():
        path = folder / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-4000:]}")
