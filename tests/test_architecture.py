"""The shape of the library: one direction of imports, no circle, and nothing of the bench."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gflowexplainer

ROOT = Path(gflowexplainer.__file__).parent
FLOORS = (
    ("errors", "steering", "version"),
    ("choices", "ops", "testing"),
    ("settings", "storage"),
    ("drawing",),
    ("graphs",),
    ("model",),
    ("flow",),
    ("evidence",),
    ("rewards",),
    ("sampler",),
    ("training", "explanation"),
    ("inference", "catalogue"),
    ("explainer",),
    ("__init__",),
    ("sources",),
    ("report",),
    ("bulk",),
    ("cli",),
    ("__main__",),
)
"""Folders and top modules, the lowest first. Each may import what stands on a lower floor, and itself."""
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}


def imports(path: Path) -> set[str]:
    """Names of the modules of the library that a file imports, at any place and also for types only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name == "gflowexplainer" and isinstance(node, ast.ImportFrom):
                found |= {f"gflowexplainer.{alias.name}" for alias in node.names}
            else:
                found.add(name)
    return found


def room(module: str) -> str:
    """The folder or top module that a dotted name of the library lies in; a name of the public face is ``__init__``."""
    first = module.removeprefix("gflowexplainer").removeprefix(".").split(".")[0]
    return first if first in FLOOR else "__init__"


FILES = sorted(ROOT.rglob("*.py"))


def own_room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_every_folder_has_its_floor_and_the_top_is_small():
    rooms = {own_room(path) for path in FILES}
    assert rooms == set(FLOOR)
    assert len(list(ROOT.glob("*.py"))) <= 11


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_imports_upwards_nor_the_bench(path):
    mine = own_room(path)
    for module in imports(path):
        assert not module.startswith(("gflowbench", "benchmarks")), module
        if not module.startswith("gflowexplainer"):
            continue
        theirs = room(module)
        if theirs != mine and not (mine == "__init__" and theirs in ("explainer", "explanation", "catalogue")):
            assert FLOOR[theirs] < FLOOR[mine], f"{mine} imports {module}"


def test_no_circle_of_files():
    names = {"gflowexplainer." + str(p.relative_to(ROOT).with_suffix("")).replace("/", "."): p for p in FILES}
    graph = {name: {m for m in imports(path) if m in names and m != name} for name, path in names.items()}
    done: set[str] = set()
    while True:
        free = {name for name, needs in graph.items() if name not in done and needs <= done}
        if not free:
            break
        done |= free
    assert set(graph) - done == set()


STEPS = (
    "import torch_geometric, torch_geometric.explain, tqdm.auto, safetensors.torch, scipy.sparse",
    "from gflowexplainer import SubgraphExplanation",
    "from gflowexplainer import GFlowExplainer",
)


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """Modules that each of the steps has imported beyond those before it, in a process of its own."""
    code = "import sys; " + "; ".join(f"{step}; print(' '.join(sys.modules))" for step in STEPS)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = [set(line.split()) for line in done.stdout.splitlines()]
    return {step: line - before for step, line, before in zip(STEPS, lines, [set(), *lines], strict=False)}


def test_opening_a_stored_explanation_imports_neither_trainer_nor_flow_network(loaded):
    found = loaded[STEPS[1]]
    assert "gflowexplainer.explanation.explanation" in found
    assert not {name for name in found if name.startswith(("gflowexplainer.training", "gflowexplainer.flow"))}


def test_the_core_needs_nothing_but_torch_pyg_numpy_and_scipy(loaded):
    extras = {"typer", "rich", "matplotlib", "rdkit", "ray", "lightning_fabric", "sklearn", "networkx", "jinja2"}
    found = loaded[STEPS[1]] | loaded[STEPS[2]]
    assert "gflowexplainer.explainer" in found
    assert found & extras == set()
