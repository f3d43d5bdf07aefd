"""The example of docs/crash.md gives what the page says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "crash.md"


def test_example_prints_what_the_page_shows(tmp_path: Path, capsys) -> None:
    text = PAGE.read_text(encoding="utf-8")
    code, shown = re.search(r"```python\n(import torch\n.*?)```\n\n```\n(.*?)```", text, re.DOTALL).groups()
    file = tmp_path / "net.py"
    file.write_text(code, encoding="utf-8")
    exec(compile(code, str(file), "exec"), {"__name__": "net"})
    printed = capsys.readouterr().out
    assert printed.replace(f"{tmp_path}/", "") == shown
