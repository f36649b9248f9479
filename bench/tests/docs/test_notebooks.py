"""Every notebook runs from beginning to end, in a new folder, and shows its drawings."""

import ast
import importlib.util
from pathlib import Path

import pytest
import torch

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


def run_here(name):
    """Runs the cells without a kernel, which would have to import everything again; returns what they show as HTML."""
    import nbformat

    space, shown = {"__name__": name}, []
    for cell in nbformat.read(notebooks.EXAMPLES / f"{name}.ipynb", as_version=4).cells:
        if cell.cell_type != "code":
            continue
        body = ast.parse(cell.source.replace("[:6]", "[:2]")).body  # fewer papers
        last = body.pop().value if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), name, "exec"), space)
        value = None if last is None else eval(compile(ast.Expression(last), name, "eval"), space)
        if hasattr(value, "_repr_html_"):
            shown.append(value._repr_html_())
    return shown


@pytest.mark.parametrize("name", FRAMES)
def test_it_runs(name, tmp_path, monkeypatch, capsys):
    if name == "molecules":
        pytest.importorskip("rdkit")
    if name == "citation" and notebooks.reference_folder() is None:
        pytest.skip("Cora is not here and cannot be downloaded in a test")
    monkeypatch.chdir(tmp_path)
    if name == "citation":
        notebooks.place_cora(tmp_path / "data")
    threads = torch.get_num_threads()
    shown = run_here(name)
    torch.set_num_threads(threads)
    assert sum("<iframe sandbox" in text for text in shown) == FRAMES[name]
    assert "right about" in capsys.readouterr().out
