"""Bad arguments: an error that names the argument, before the model has run, and no file half-written."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import graphs
import torchatlas
from torchatlas import export, options, page


class Counting(nn.Module):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x + 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"collapse_modules_after_depth": -1}, ValueError, "collapse_modules_after_depth must be >= 0, got -1"),
        ({"collapse_modules_after_depth": "1"}, TypeError, "collapse_modules_after_depth must be an integer, got str"),
        ({"collapse_modules_after_depth": True}, TypeError, "collapse_modules_after_depth must be an integer"),
        ({"forced_module_tracing_depth": -2}, ValueError, "forced_module_tracing_depth must be >= 0, got -2"),
        ({"height": 0}, ValueError, "height must be >= 1, got 0"),
        ({"width": 2.5}, TypeError, "width must be an integer, got float"),
        ({"show_non_gradient_nodes": "no"}, TypeError, "show_non_gradient_nodes must be True or False, got str"),
        ({"show_compressed_view": 1}, TypeError, "show_compressed_view must be True or False, got int"),
        ({"show_module_attr_names": None}, TypeError, "show_module_attr_names must be True or False"),
        ({"theme": "sepia"}, ValueError, "theme must be one of auto, light, dark, got 'sepia'"),
        ({"export_format": "gif"}, ValueError, "export_format must be None or one of html, svg, png, pdf, got 'gif'"),
        ({"export_format": 3}, TypeError, "export_format must be a string, got int"),
        ({"export_path": 3}, TypeError, "export_path must be a string or a path, got int"),
        (
            {"export_path": "x.gif"},
            ValueError,
            "export_path must end in one of .html, .svg, .png, .pdf, or be a folder",
        ),
        ({"export_path": "x.json"}, ValueError, "export_path must end in one of .html, .svg, .png, .pdf, or be"),
        (
            {"export_path": "x.svg", "export_format": "html"},
            ValueError,
            "export_path ends in .svg, which is not export_format='html'",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_bad_option_of_trace_model_is_named_before_the_model_runs(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    model = Counting()
    with pytest.raises(error) as raised:
        torchatlas.trace_model(model, torch.ones(1), **arguments)
    assert message in str(raised.value)
    assert model.calls == 0


def test_export_path_in_a_place_that_is_no_folder_is_named_before_the_model_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    model = Counting()
    with pytest.raises(OSError, match="export_path can't be written"):
        torchatlas.trace_model(model, torch.ones(1), export_path=tmp_path / "file" / "x.html")
    assert model.calls == 0


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (3, "model must be a torch.nn.Module or a function, got int"),
        (None, "model must be a torch.nn.Module or a function, got NoneType"),
        (nn.Linear, "model must be a module or a function, got the class Linear"),
    ],
)
def test_what_is_no_model_is_refused(model: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        torchatlas.trace_model(model, torch.ones(1))


@pytest.mark.parametrize(("model", "named"), [(3, "model"), (nn.Linear, "model")])
def test_trace_refuses_what_is_no_model(model: Any, named: str) -> None:
    with pytest.raises(TypeError, match=named):
        torchatlas.trace(model, torch.ones(1))


def test_trace_names_a_bad_on_error_and_bad_kwargs() -> None:
    model = Counting()
    with pytest.raises(ValueError, match="on_error"):
        torchatlas.trace(model, torch.ones(1), on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="kwargs"):
        torchatlas.trace(model, torch.ones(1), kwargs=3)  # type: ignore[arg-type]
    assert model.calls == 0


def test_unknown_option_of_show_is_named() -> None:
    with pytest.raises(TypeError, match="colour"):
        options.ViewOptions(colour="red")  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["x.gif", "x", "x.html.bak", ""])
def test_suffix_that_is_not_supported_is_refused_listing_those_that_are(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"path must end in one of \.html, \.svg, \.png, \.pdf, \.json, \.dot"):
        export.save(graphs.perceptron(), f"{tmp_path}/{name}")
    assert list(tmp_path.iterdir()) == []


def test_path_must_be_a_path() -> None:
    with pytest.raises(TypeError, match="path must be a string or a path, got int"):
        export.save(graphs.perceptron(), 3)  # type: ignore[arg-type]


def test_missing_folder_is_an_os_error_that_names_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="path can't be written") as raised:
        export.save(graphs.perceptron(), tmp_path / "missing" / "x.json")
    assert raised.value.filename == str(tmp_path / "missing" / "x.json")


def test_folder_in_the_way_is_an_os_error_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "x.json").mkdir()
    with pytest.raises(OSError, match="path can't be written"):
        export.save(graphs.perceptron(), tmp_path / "x.json")
    assert list(tmp_path.iterdir()) == [tmp_path / "x.json"]


def test_failure_while_writing_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="path can't be written: No space left"):
        export.save(graphs.perceptron(), target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_page_without_the_built_view_says_how_to_build_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchatlas.bundle._PACKAGE", tmp_path)
    monkeypatch.setattr("torchatlas.bundle.page_script", page.bundle.page_script.__wrapped__)
    with pytest.raises(FileNotFoundError, match=r"page\.js is missing.*pip install"):
        page.render(graphs.perceptron())
