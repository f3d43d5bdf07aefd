"""The code in docs/surgery.md runs, and prints what the comments beside it say."""

import doctest
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from torchatlas import surgery

PAGE = (Path(__file__).parents[2] / "docs" / "surgery.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
NOT_INSTALLED = ("datasketches", "sklearn", "torchmetrics")


def test_code_of_the_page_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    printed = {}
    for block in BLOCKS:
        if any(f"from {package}" in block for package in NOT_INSTALLED):
            continue
        exec(compile(block, "surgery.md", "exec"), names)
        said = re.findall(r"^print\((.*?)\) +# (.*)$", block, flags=re.M)
        printed.update({code: answer for code, answer in said if answer[0] in "[{"})
    out = capsys.readouterr().out
    assert len(printed) == 4
    for answer in printed.values():
        assert answer in out
    assert torch.equal(names["named"]["hidden"], names["model"].h[0].mlp[0](names["named"]["normed"]))
    assert names["model"].h[1].norm.weight.grad is not None
    assert names["model"].h[3].norm.weight.grad is None


def test_statistics_are_those_of_all_batches() -> None:
    for package in NOT_INSTALLED:
        pytest.importorskip(package)
    names: dict[str, Any] = {}
    for block in BLOCKS[:3]:
        exec(compile(block, "surgery.md", "exec"), names)
    block = names["model"].h[0]
    values = torch.cat([block.mlp[0](block.norm(batch)) for batch in names["loader"]])
    assert torch.allclose(torch.as_tensor(names["moments"].mean_).float(), values.mean(0), atol=1e-5)
    assert torch.allclose(names["active"].compute(), (values > 0).float().mean())


def test_examples_in_docstrings_give_what_they_say() -> None:
    found = doctest.testmod(surgery)
    assert found.attempted >= 9
    assert found.failed == 0
