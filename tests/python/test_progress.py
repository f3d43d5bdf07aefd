"""The progress bar appears for what lasts, and only then."""

import sys

import pytest
import torch
from torch import nn

import torchatlas
from torchatlas import progress
from torchatlas.progress import Progress


def test_nothing_is_shown_in_the_first_second(capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Linear(2, 2)
    trace = torchatlas.trace(model, torch.ones(1, 2), progress=True)
    trace.values("linear", progress=True)
    assert capsys.readouterr() == ("", "")


def test_what_lasts_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    monkeypatch.setattr(progress, "PATIENCE_S", -1)
    with Progress("operations", 8) as bar:
        for _each in range(3):
            bar.step()
        assert bar._bar.n == 3
    assert "operations" in capsys.readouterr().err


def test_without_tqdm_work_goes_on_silently(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", -1)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    trace = torchatlas.trace(nn.Linear(2, 2), torch.ones(1, 2), progress=True)
    assert trace.error is None
    assert capsys.readouterr() == ("", "")


def test_interrupt_in_a_computation_ends_it_and_the_trace_stays_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = torchatlas.trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.ones(1, 2))
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "step", lambda _self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            trace.values("1.relu", progress=True)
    assert trace.values("1.relu")["1.relu"].shape == (1, 2)
