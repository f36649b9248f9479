import ast
from pathlib import Path

import pytest

import gflowbench
from gflowbench.paper import Measurement, Scope, experiment, names
from gflowexplainer.errors import ConfigError


@pytest.mark.parametrize("name", names())
def test_every_experiment_is_called_as_it_is_registered_and_says_what_it_does(name):
    found = experiment(name)
    assert found.name == name
    assert found.title


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("fast", [False, True])
def test_steps_have_names_of_their_own_and_fast_is_never_more(name, fast, tmp_path):
    steps = experiment(name).plan(Scope(fast=fast))
    assert steps
    assert len({step.name for step in steps}) == len(steps)
    paths = [step.path(tmp_path) for step in steps if isinstance(step, Measurement)]
    assert len(set(paths)) == len(paths)
    assert len(steps) <= len(experiment(name).plan(Scope()))


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'cut-vertices'"):
        experiment("cut-vertex")


def test_no_module_needs_matplotlib_to_be_imported():
    for file in Path(gflowbench.__file__).parent.rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            assert not (isinstance(node, ast.Import | ast.ImportFrom) and "matplotlib" in ast.unparse(node)), file
