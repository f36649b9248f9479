"""Runs the command line with the commands of research: ``python -m gflowbench``, also where nothing is installed."""

from gflowbench.cli import datasets, demo, evaluate, leaderboard, reproduce
from gflowexplainer.cli.application import app

if __name__ == "__main__":
    known = {command.callback for command in app.registered_commands}
    for command in (
        demo.demonstrate,
        evaluate.evaluate,
        reproduce.reproduce,
        datasets.datasets,
        leaderboard.leaderboard,
    ):
        if command not in known:
            app.command()(command)
    app(prog_name="gflowexplainer")
