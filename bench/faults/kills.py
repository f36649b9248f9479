"""Processes killed at random moments: what they wrote is whole, and the same call comes to the same end."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from typer.testing import CliRunner

from faults.counting import Count, forked
from gflowexplainer import GFlowExplainer
from gflowexplainer.cli.application import app
from gflowexplainer.errors import GFlowExplainerError
from gflowexplainer.sources import save_graphs
from gflowexplainer.testing import NodeModel, random_graph
from gflowexplainer.training.trainer import Trainer

SETTINGS: dict[str, Any] = {"preset": "context", "max_nodes": 4, "epochs": 12, "batch_size": 4}


def kill_until(
    count: Count, kills: int, begin: Callable[[int], tuple[Callable[[], object], Callable[[], str]]]
) -> None:
    """Kills processes until there were so many, each time goes on until the end, and looks at what came out.

    Args:
        count: Where it is counted.
        kills: How many to kill.
        begin: Makes the work of a number, and what tells that its end is right: an empty text, or what is wrong.
    """
    done, number, moments = 0, 0, random.Random(0)
    while done < kills:
        work, wrong = begin(number)
        number += 1
        began = time.monotonic()
        if forked(work) != 0:
            count.add("unclear", "the work does not end even if nobody kills it")
            return
        takes = time.monotonic() - began
        work, wrong = begin(number)
        number += 1
        deaths = 0
        while deaths < 8 and done + deaths < kills:
            code = forked(work, kill_after=moments.random() * takes)
            if code == 0:
                break
            if code != -9:
                count.add("unclear", f"going on after a kill ended with exit code {code}")
                return
            deaths += 1
        code = forked(work)
        said = wrong() if code == 0 else f"going on ended with exit code {code}"
        for _ in range(deaths):
            count.add("survived" if not said else "wrong", said)
        done += deaths


def fits(kills: int) -> Count:
    """Kills trainings that store a checkpoint after every update."""
    count = Count("kill -9: fit")
    data, model, index = random_graph(16, 0.1), NodeModel(), list(range(8))
    truth = GFlowExplainer(**SETTINGS).fit(model, data, index, progress=False)._fitted.sampler.network
    Trainer.run.__kwdefaults__["checkpoint_seconds"] = 0.0
    with tempfile.TemporaryDirectory() as home:

        def begin(number: int) -> tuple[Callable[[], object], Callable[[], str]]:
            folder = Path(home) / str(number)

            def wrong() -> str:
                try:
                    found = GFlowExplainer.load(folder)._fitted.sampler.network
                except GFlowExplainerError as error:
                    return str(error)
                lines = [json.loads(line)["iteration"] for line in (folder / "metrics.jsonl").open()]
                if lines != list(range(len(lines))):
                    return f"the curves have gaps: {lines}"
                return "" if all(torch.equal(v, found[k]) for k, v in truth.items()) else "other weights"

            return lambda: GFlowExplainer(**SETTINGS).fit(model, data, index, folder=folder, progress=False), wrong

        kill_until(count, kills, begin)
    Trainer.run.__kwdefaults__["checkpoint_seconds"] = 5.0
    return count


def explains(kills: int) -> Count:
    """Kills ``explain --out``."""
    count = Count("kill -9: explain --out")
    with tempfile.TemporaryDirectory() as home:
        here = Path(home)
        save_graphs(here / "graph.safetensors", random_graph(16, 0.1))
        words = ["explain", "--model", "gflowexplainer.testing:NodeModel", "--data", str(here / "graph.safetensors")]
        words += ["--index", "0-5", "--max-nodes", "3", "--quiet"]
        names = [f"node {node}" for node in range(6)]
        truth: list[str] = []

        def begin(number: int) -> tuple[Callable[[], object], Callable[[], str]]:
            out = here / str(number)

            def work() -> object:
                result = CliRunner().invoke(app, [*words, "--out", str(out)])
                raise SystemExit(result.exit_code)

            def wrong() -> str:
                found = json.loads((out / "results.json").read_text())["instances"]
                if [entry["name"] for entry in found] != names:
                    return "instances are missing"
                text = json.dumps([[s["nodes"] for s in entry["subgraphs"]] for entry in found])
                truth.append(text)
                return "" if text == truth[0] else "other subgraphs"

            if number == 0:
                forked(work)
                wrong()
            return work, wrong

        kill_until(count, kills, begin)
    return count
