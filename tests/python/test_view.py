"""What Python asks of a view, and what the front end tells it, without a browser."""

import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import torchatlas
from torchatlas import export, fallback, media, runtime, widget
from torchatlas.view import View


@pytest.fixture
def view() -> View:
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 2))).eval()
    return View(torchatlas.trace(model, torch.ones(1, 4)))


@pytest.fixture
def live(view: View) -> View:
    """A view with its widget, as after it was shown."""
    view._widget = widget.make(view.trace.graph, view.options, runtime.shared(), "key")
    view._widget.observe(view._selection_changed, "selected")
    return view


def sent(view: View, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    messages: list[Any] = []
    assert view._widget is not None
    monkeypatch.setattr(type(view._widget), "send", lambda _self, content, buffers=None: messages.append(content))
    return messages


def test_what_python_asks_before_the_view_runs_is_how_it_starts(view: View) -> None:
    view.open("op:relu")
    view.focus("type:Linear")
    view.close("1")
    view.colour({"type:Linear": 3, "1.0": float("nan")}, legend="importance")
    view.highlight(["1.0.relu"])
    view.note("1", "look here")
    view.select("1.1")
    assert view.options.to_wire() == {
        "height": 600,
        "theme": "auto",
        "selected": ["1.1"],
        "commands": [["open", ["1.0"]], ["focus", ["0"]], ["close", ["1"]]],
        "highlighted": ["1.0.relu"],
        "numbers": {"0": 3.0, "1.1": 3.0},
        "legend": "importance",
        "notes": {"1": "look here"},
    }
    view.note("1", "")
    view.select([])
    assert {"notes", "selected"} & view.options.to_wire().keys() == set()


def test_methods_and_keywords_say_the_same(monkeypatch: pytest.MonkeyPatch, view: View) -> None:
    monkeypatch.setattr(View, "show", lambda _self: None)
    shown = view.trace.show(
        depth=1, open="1", focus="op:relu", select=["0"], highlight="1.1", colour={"0": 1}, legend="a", notes={"1": "b"}
    )
    view.open("1")
    view.focus("op:relu")
    view.highlight("1.1")
    view.colour({"0": 1}, "a")
    view.note("1", "b")
    view.select("0")
    assert shown.options.to_wire() == {**view.options.to_wire(), "depth": 1}


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda v: v.focus("relv"), "no node or module call is named 'relv'"),
        (lambda v: v.select(["op:conv2d"]), "finds nothing"),
        (lambda v: v.close("op:relu"), "no module call"),
        (lambda v: v.note("2", "x"), "no node or module call"),
        (lambda v: View(v.trace, how="picture"), "view must be one of auto, widget, html, static"),
    ],
)
def test_what_is_not_there_is_refused(view: View, ask: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask(view)
    assert view.options.to_wire() == {"height": 600, "theme": "auto"}


@pytest.mark.parametrize(
    "ask", [lambda v: v.colour({"0": "red"}), lambda v: v.note("0", 1), lambda v: v.on_select(3), lambda v: v.open([0])]
)
def test_wrong_types_are_refused(view: View, ask: Any) -> None:
    with pytest.raises(TypeError):
        ask(view)


def test_all_views_of_a_kernel_share_one_runtime_made_anew_after_it_was_closed(view: View) -> None:
    first = runtime.shared()
    assert runtime.shared() is first
    made = widget.make(view.trace.graph, view.options, first, "key")
    assert made._runtime == f"IPY_MODEL_{first.model_id}"
    # The view's code travels once: what a view brings itself is its loader.
    assert len(made._esm) < 2500
    first.close()
    assert runtime.shared() is not first
    assert runtime.shared().digest == first.digest


def test_live_view_gets_what_python_asks_and_tells_what_it_shows(live: View) -> None:
    assert live._widget is not None
    live.open("1")
    live.focus("0")
    assert live._widget.commands == [[1, "open", ["1"]], [2, "focus", ["0"]]]
    live.highlight("0")
    assert live._widget.look["highlighted"] == ["0"]
    graph = live.trace.graph
    names = {row.name: row.id for row in graph.calls}
    node = next(node for node in graph.nodes if node.name == "1.0.relu")
    live._widget.set_state({"opened": ["1"], "visible": [names["1"], -1 - node.id], "done": 1, "selected": ["1.1"]})
    assert (live.opened, live.visible, live.selected) == (["1"], ["1", "1.0.relu"], ["1.1"])


def test_saved_page_starts_as_the_live_view_is(live: View, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    saved: list[Any] = []
    monkeypatch.setattr(export, "save", lambda _graph, _path, options: saved.append(options.to_wire()))
    assert live._widget is not None
    live.open("1")
    live.close("1")
    live._widget.set_state({"opened": ["1"], "done": 1, "selected": ["0"]})
    live.save(tmp_path / "x.html")
    # The view has opened 1, and has not closed it yet.
    assert saved == [
        {"height": 600, "theme": "auto", "selected": ["0"], "opened": ["1"], "commands": [["close", ["1"]]]}
    ]


def test_callback_gets_the_selection_and_its_error_goes_to_panel_and_log(
    live: View, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = sent(live, monkeypatch)
    heard: list[list[str]] = []
    stop = live.on_select(lambda names: 1 / 0)
    live.on_select(heard.append)
    assert live._widget is not None
    live._widget.set_state({"selected": ["0"]})
    assert heard == [["0"]]
    assert messages == [{"type": "problem", "text": "on_select: ZeroDivisionError: division by zero"}]
    assert "ZeroDivisionError" in capsys.readouterr().err
    stop()
    live.select("1.1")
    assert heard == [["0"], ["1.1"]]
    assert len(messages) == 1


def test_questions_for_values_are_answered_with_statistics_or_the_reason(
    live: View, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = sent(live, monkeypatch)
    live._answer(None, {"type": "values", "id": 7, "name": "1.0.relu", "at": None}, [])
    live._answer(None, {"type": "values", "id": 8, "name": "gone", "at": None}, [])
    live._answer(None, {"type": "something else"}, [])
    first, second = messages
    value = live.trace.values("1.0.relu")["1.0.relu"]
    assert first["id"] == 7
    assert first["tensors"][0]["max"] == pytest.approx(value.max().item())
    assert first["tensors"][0]["picture"]["of"] == [1, 8]
    assert second["error"].startswith("ValueError: no node or module call is named 'gone'")
    assert "ValueError" in capsys.readouterr().err


def test_selected_values_describe_what_is_selected(view: View) -> None:
    view.select(["1.0.relu", "1"])
    assert {name: row["shape"] for name, row in view.selected_values.items()} == {"1.0.relu": [1, 8], "1": [1, 2]}


def test_outline_nests_modules_and_keeps_to_its_budget(view: View) -> None:
    graph = view.trace.graph
    whole = fallback.render(graph, "key", is_alone=True)
    assert whole.count("<details") == whole.count("</details>") == 4
    assert whole.index(">1 <") < whole.index(">relu <")
    assert "more inside" not in whole
    small = fallback.render(graph, "key", is_alone=True, budget_bytes=2_550)
    assert len(small.encode()) < 2_550
    assert small.count("<details") == small.count("</details>") > 0
    assert "more inside" in small


def test_names_can_be_no_markup() -> None:
    class Evil(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    Evil.__name__ = "<img src=x onerror=alert(1)>"
    outline = fallback.render(torchatlas.trace(nn.Sequential(Evil()), torch.ones(1)).graph, "key")
    assert "&lt;img" in outline
    assert "<img" not in outline


def test_marimo_gets_a_page_as_the_value_of_a_cell_and_nothing_before(
    view: View, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "marimo", types.SimpleNamespace(running_in_notebook=lambda: True))
    assert media.current() == "html"
    view.show()
    assert capsys.readouterr().out == ""
    kind, markup = view._mime_()
    assert kind == "text/html"
    assert markup.startswith("<div><iframe")


class Kernel:
    """What IPython's kernel tells of the cell that runs."""

    def get_parent(self, _channel: str) -> dict[str, Any]:
        return {"header": {"msg_id": "1"}, "metadata": {"cellId": "a"}}


def test_places_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def medium(**shell: Any) -> str:
        ipython = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(**shell))
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        return media.current()

    monkeypatch.delenv("KAGGLE_KERNEL_RUN_TYPE", raising=False)
    assert medium() == "text"  # IPython in a terminal
    # JupyterLab, Notebook 7, VS Code and Colab have a kernel.
    assert medium(kernel=Kernel()) == "widget"
    assert media.cell_id() == "a"
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    assert medium(kernel=Kernel()) == "widget"
    # An output on Colab sees no other, so each brings the map's code.
    assert media.cell_id() is None
    monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Batch")
    assert medium(kernel=Kernel()) == "html"
