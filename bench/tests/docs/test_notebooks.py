"""Every notebook runs from beginning to end, in a new folder, and shows its drawings."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
PATH = Path(__file__).parents[3] / "docs" / "_site" / "notebooks.py"
SPEC = importlib.util.spec_from_file_location("notebooks", PATH)
notebooks = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(notebooks)
FRAMES = {"citation": 2, "molecules": 1, "recommendation": 1}


def test_all_notebooks_are_known_and_kept_without_outputs():
    import nbformat

    assert set(notebooks.NAMES) == set(FRAMES)
    for name in FRAMES:
        cells = nbformat.read(notebooks.EXAMPLES / f"{name}.ipynb", as_version=4).cells
        assert not any(cell.get("outputs") for cell in cells)


@pytest.mark.parametrize("name", FRAMES)
def test_it_runs(name, tmp_path, monkeypatch):
    if name == "molecules":
        pytest.importorskip("rdkit")
    if name == "citation" and notebooks.reference_folder() is None:
        pytest.skip("Cora is not here and cannot be downloaded in a test")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    cells = notebooks.run_notebook(name, tmp_path).cells
    shown = [output for cell in cells for output in cell.get("outputs", [])]
    html = [output["data"]["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert sum("<iframe sandbox" in text for text in html) == FRAMES[name]
    printed = "".join(output["text"] for output in shown if output.get("name") == "stdout")
    assert "right about" in printed
