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
    count: Count,
    kills: int,
    begin: Callable[[int], tuple[Any, Callable[[], str]]],
    *,
    run: Callable[..., int] = forked,
    most: int = 8,
    earliest: float = 0.0,
) -> None:
    """Kills work until there were so many kills, each time lets it go on until the end, and looks at what came out.

    Args:
        count: Where it is counted.
        kills: How many kills.
        begin: Makes the work of a number, and what tells that its end is right: an empty text, or what is wrong. The
            work of number 0 is never killed.
        run: Does a work, killed after ``kill_after`` seconds where that is given; returns the exit code, -9 if killed.
        most: Kills of one work at most.
        earliest: Share of the usual time before which nothing is killed.
    """
    done, number, moments, began = 0, 0, random.Random(0), time.monotonic()
    if run(begin(0)[0]) != 0:
        count.add("unclear", "the work does not end even if nobody kills it")
        return
    takes = time.monotonic() - began
    while done < kills:
        number, deaths = number + 1, 0
        work, wrong = begin(number)
        while deaths < most and done + deaths < kills:
            code = run(work, kill_after=(earliest + (1 - earliest) * moments.random()) * takes)
            if code == 0:
                break
            if code != -9:
                count.add("unclear", f"going on after a kill ended with exit code {code}")
                return
            deaths += 1
        code = run(work)
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

        def subgraphs(out: Path) -> str:
            found = json.loads((out / "results.json").read_text())["instances"]
            return json.dumps([[s["nodes"] for s in entry["subgraphs"]] for entry in found])

        def begin(number: int) -> tuple[Callable[[], object], Callable[[], str]]:
            out = here / str(number)

            def work() -> object:
                result = CliRunner().invoke(app, [*words, "--out", str(out)])
                raise SystemExit(result.exit_code)

            def wrong() -> str:
                found = json.loads((out / "results.json").read_text())["instances"]
                if [entry["name"] for entry in found] != names:
                    return "instances are missing"
                return "" if subgraphs(out) == subgraphs(here / "0") else "other subgraphs"

            return work, wrong

        kill_until(count, kills, begin)
    return count
