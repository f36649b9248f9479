"""Every example runs from beginning to end, in small, and writes what it says."""

import runpy
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[3] / "examples"
WRITTEN = {"nodes.py": "explanation.png", "graphs.py": "report.html", "molecules.py": "report.html"}


def test_all_examples_are_known():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(WRITTEN)


@pytest.mark.parametrize("name", WRITTEN)
def test_it_runs(name, tmp_path, monkeypatch, capsys):
    if name == "molecules.py":
        pytest.importorskip("rdkit")
    monkeypatch.setattr(sys, "argv", [name, "--fast", "--out", str(tmp_path / "out")])
    threads = torch.get_num_threads()
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    torch.set_num_threads(threads)
    written = tmp_path / "out" / WRITTEN[name]
    assert written.stat().st_size > 10_000
    assert capsys.readouterr().out.rstrip().endswith(str(written))
