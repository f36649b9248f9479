"""Tables in the documents are copies of result files."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[3] / "docs" / "fill_tables.py"
SPEC = importlib.util.spec_from_file_location("fill_tables", PATH)
fill_tables = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fill_tables)


@pytest.mark.parametrize("path", fill_tables.documents(), ids=lambda path: path.name)
def test_every_table_says_what_its_result_file_says(path):
    assert fill_tables.filled(path.read_text()) == path.read_text(), "run python docs/fill_tables.py"


def test_a_marked_table_is_replaced_and_the_rest_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(fill_tables, "ROOT", tmp_path)
    (tmp_path / "r.md").write_text("one\n\n| a |\n|---|\n| 1 |\n\ntwo\n\n| b |\n|---|\n| 2 |\n")
    text = "before\n<!-- table 2 of r.md -->\nold\n<!-- end of table -->\nafter\n"
    assert fill_tables.filled(text) == (
        "before\n<!-- table 2 of r.md -->\n| b |\n|---|\n| 2 |\n<!-- end of table -->\nafter\n"
    )
