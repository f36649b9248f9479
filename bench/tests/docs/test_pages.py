"""The Python of every page runs as it is printed, block after block."""

import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
MANUAL = ("index large_graphs many molecules motifs quickstart reading trust typed_graphs what_changes_it "
          "your_model")  # fmt: skip
PAGES = {"README": ROOT / "README.md", **{name: ROOT / "docs" / f"{name}.md" for name in MANUAL.split()}}


@pytest.mark.parametrize("name", PAGES)
def test_it_runs(name, tmp_path, monkeypatch):
    if name == "molecules":
        pytest.importorskip("rdkit")
    monkeypatch.chdir(tmp_path)
    space = {"__name__": name}
    with torch.random.fork_rng():
        for code in BLOCK.findall(PAGES[name].read_text(encoding="utf-8")):
            exec(compile(code, name, "exec"), space)
