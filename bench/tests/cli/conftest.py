"""A folder of one's own, and the command line in it."""

import pytest
from typer.testing import CliRunner

from gflowbench.datasets import reference_folder
from gflowexplainer.cli.application import app


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERMINAL_WIDTH", "400")
    monkeypatch.setenv("COLUMNS", "400")
    return tmp_path


@pytest.fixture
def invoke():
    runner = CliRunner()
    return lambda *words: runner.invoke(app, [str(word) for word in words])


@pytest.fixture
def published_data():
    """Skips where the published files are not there."""
    if reference_folder() is None:
        pytest.skip("the published files are not there")
