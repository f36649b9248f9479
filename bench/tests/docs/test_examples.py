"""Every example runs from beginning to end, in small, and writes what it says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
WRITTEN = {"nodes.py": "explanation.png", "graphs.py": "report.html", "molecules.py": "report.html"}


def test_all_examples_are_known():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(WRITTEN)


@pytest.mark.parametrize("name", WRITTEN)
def test_it_runs(name, tmp_path):
    if name == "molecules.py":
        pytest.importorskip("rdkit")
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, "--fast", "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    written = tmp_path / "out" / WRITTEN[name]
    assert written.stat().st_size > 10_000
    assert done.stdout.rstrip().endswith(str(written))
