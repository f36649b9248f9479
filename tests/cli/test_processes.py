"""What only a real process shows: streams, signals, colours, what is imported."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from gflowexplainer.training.checkpoint import CHECKPOINT, METRICS
from gflowexplainer.version import __version__

PROGRAM = (sys.executable, "-m", "gflowexplainer")
NODE = ("--model", "my_models:build", "--weights", "node.pt", "--data", "graph.safetensors")


def run(*words, **environment):
    settings = os.environ | {"OMP_NUM_THREADS": "1"} | environment
    return subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False, env=settings)


def test_help_is_there_before_torch_is():
    code = (
        "import sys; from gflowexplainer.cli.application import app; "
        "app(['explain', '--help'], standalone_mode=False); "
        "print([m for m in ('torch', 'torch_geometric', 'numpy', 'sklearn', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.rstrip().endswith("[]"), done.stderr


def test_the_version_the_help_and_no_words():
    assert run("--version").stdout.strip() == __version__
    done = run()
    assert "Usage" in done.stdout + done.stderr
    text = run("--help").stdout
    for command in ("demo", "fit", "explain", "bulk", "report", "doctor"):
        assert f" {command} " in text


def test_a_shell_completes_commands_options_and_values():
    code = {"_GFLOWEXPLAINER_COMPLETE": "complete_bash"}
    for words, place, offered in (
        ("expl", 1, "explain"),
        ("explain --ind", 2, "--index"),
        ("explain --mode m", 3, "multiclass"),
        ("explain --set ep", 3, "epochs="),
    ):
        done = run(**code, COMP_WORDS=f"gflowexplainer {words}", COMP_CWORD=str(place))
        assert offered in done.stdout.split(), done.stderr


def test_results_on_stdout_progress_on_stderr_and_no_colour(workspace):
    words = ("explain", *NODE, "--index", "3", "--max-nodes", "2", "--set", "epochs=2", "--no-report")
    done = run(*words, "--json", NO_COLOR="1", FORCE_COLOR="1")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["instances"][0]["name"] == "node 3"
    assert "Explaining 1 node of a graph with 12 nodes" in done.stderr
    assert "\x1b[" not in done.stdout + done.stderr


SLOWLY = """
import sys
import time
from gflowexplainer.cli import main
from gflowexplainer.training.trainer import Trainer

Trainer.run.__kwdefaults__["checkpoint_seconds"] = 0.5
step = Trainer.step
Trainer.step = lambda trainer: (time.sleep(0.1), step(trainer))[1]
sys.argv[0] = "gflowexplainer"
main()
"""
"""The program with a training that lasts at least eight seconds and stores a checkpoint twice a second."""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_leaves_a_run_that_goes_on(workspace):
    words = ("fit", *NODE, "--index", "0-3", "--out", "run", "--preset", "context", "--max-nodes", "3")
    words += ("--set", "max_updates=80")
    settings = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", SLOWLY, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings
    )
    stored = [workspace / "run" / CHECKPOINT, workspace / "run" / METRICS]
    give_up = time.monotonic() + 300
    while process.poll() is None and not all(path.is_file() for path in stored) and time.monotonic() < give_up:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert out == ""
    command = err.strip().splitlines()[-1].strip()
    assert command == "gflowexplainer " + " ".join(words)
    lines = (workspace / "run" / METRICS).read_text().splitlines()
    assert 0 < len(lines) < 80
    done = run(*command.split()[1:])
    assert done.returncode == 0, done.stderr
    first = int(re.search(r"update (\d+) of 80", done.stderr).group(1))
    assert first > len(lines)  # what was done is not done again
    curves = [json.loads(line)["iteration"] for line in (workspace / "run" / METRICS).read_text().splitlines()]
    assert curves == list(range(80))
