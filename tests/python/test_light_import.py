"""Importing the package, and tracing, load nothing heavy."""

import subprocess
import sys

HEAVY = ("torch._dynamo", "torchvision", "torchaudio", "transformers", "IPython", "anywidget", "matplotlib", "pandas")


def loaded_by(code):
    """Which of the heavy modules are loaded in a fresh process after some code, and were not before by torch."""
    script = f"""
import sys, torch
before = set(sys.modules)
{code}
print(*[name for name in {HEAVY!r} if name in sys.modules and name not in before])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split()


def test_the_import_loads_nothing_heavy():
    assert loaded_by("import torchatlas") == []


def test_a_trace_loads_nothing_heavy():
    code = """
import torchatlas
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Embedding(3, 2, max_norm=1.0))
torchatlas.trace(lambda x: model[2](model[1](model[0](x)).long().abs() % 3), (torch.ones(3, 2),)).verify()
"""
    assert loaded_by(code) == []
