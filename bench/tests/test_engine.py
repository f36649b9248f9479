"""The bench uses the library's public face and the modules that it lists, and no others."""

import ast
import importlib
from pathlib import Path

import pytest

import gflowbench
from gflowbench.engine import ENGINE

ROOT = Path(gflowbench.__file__).parent.parent
PUBLIC = {"gflowexplainer", "gflowexplainer.testing"}
FILES = sorted([*(ROOT / "gflowbench").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")])


def used(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gflowexplainer":
            found.add(node.module)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "gflowexplainer"}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_listed_modules_are_used(path):
    assert used(path) <= PUBLIC | set(ENGINE)


def test_the_list_is_no_longer_than_it_must_be():
    everything = set().union(*map(used, FILES))
    assert set(ENGINE) <= everything


@pytest.mark.parametrize("module", ENGINE)
def test_listed_modules_are_documented(module):
    assert importlib.import_module(module).__doc__
