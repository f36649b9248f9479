"""Every example under "To copy" in the help of a command runs, in a new folder, with nothing but the library."""

import re
import shlex

import pytest
import typer

from gflowexplainer.cli.application import app

COMMANDS = typer.main.get_command(app).commands
OURS = ("demo", "fit", "explain", "report", "doctor")
"""Commands of a bare installation."""


def examples(name):
    """The lines of the help that call the program, up to the next paragraph that does not."""
    text = COMMANDS[name].help.replace("\b", "").replace("\\\n", " ")
    block = text.split("To copy:")[1].strip("\n").split("\n\n")[0]
    return [shlex.split(line)[1:] for line in re.findall(r"^\s*(gflowexplainer .*)$", block, re.MULTILINE)]


@pytest.mark.parametrize(
    ("name", "said"), [("bulk", 'pip install "gflowexplainer[ray]"'), ("report", "[RUN]..."), ("fit", "its training: ")]
)
def test_help_is_shown_as_it_is_written(name, said, invoke, monkeypatch):
    monkeypatch.setenv("TERMINAL_WIDTH", "400")
    assert said in invoke(name, "--help").output


@pytest.mark.parametrize("name", [*OURS, "bulk"])
def test_they_run(name, tmp_path, monkeypatch, invoke):
    if name == "bulk":
        pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    found = examples(name)
    assert found
    for words in found:
        # The same commands with a short training: what they say is tested elsewhere.
        short = ["--set", "epochs=1"] if words[0] in ("demo", "fit", "explain") and "--explainer" not in words else []
        result = invoke(*words, *short)
        assert result.exit_code == 0, (words, result.output)
