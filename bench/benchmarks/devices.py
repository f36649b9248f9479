"""Whether a GPU answers as the CPU does: what was learned on one explains on both, and each learns by itself.

Noise is a function of names, not of a device's generator, so the same seed samples the same subgraphs. What is left is
the order in which numbers are added: it can only turn a choice between two that are as good as equal.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

import torch

from benchmarks.measuring import environment, results_folder, write_json
from benchmarks.peers import DATASETS, SEED, explain_ours, fit_ours, load
from gflowbench.explainers.gflow import scores_of
from gflowbench.explainers.interface import Subject
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.measurement import agreement
from gflowbench.protocol.problems import Loaded
from gflowexplainer import GFlowExplainer
from gflowexplainer.report.tables import Table, join, number
from gflowexplainer.storage.files import write_text

HERE, THERE = "cpu", "cuda"


def answer(loaded: Loaded, explainer: GFlowExplainer) -> dict[str, Any]:
    """Explains all instances: the subgraphs with their probabilities, and the scores of nodes and edges, on the CPU."""
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    explanations = explain_ours(explainer, loaded)
    scores = scores_of(explanations, subject, explainer.settings.max_nodes)
    truth = GroundTruth.of(loaded.benchmark, subject)
    assert truth is not None
    return {
        "subgraphs": [{frozenset(s.nodes): s.probability for s in one.subgraphs} for one in explanations],
        "node": scores.node.cpu(),
        "edge": scores.edge.cpu(),
        "auc": agreement(subject, scores, truth)["auc_own"],
    }


def measure(dataset: str) -> dict[str, Any]:
    """Compares both devices on one dataset.

    Returns:
        ``"same_samples"``: probability that both give to the same subgraphs by the same fit; ``"node"`` and
        ``"edge"``: largest and mean difference of the scores by the same fit; ``"auc"`` by device, by the same fit and
        each by its own.
    """
    loaded = {device: load(dataset, device) for device in (HERE, THERE)}
    fitted = {device: fit_ours(loaded[device]) for device in loaded}
    same = {device: answer(loaded[device], fitted[HERE]) for device in loaded}
    own = answer(loaded[THERE], fitted[THERE])
    here, there = same[HERE], same[THERE]
    gaps = {name: (here[name] - there[name]).abs() for name in ("node", "edge")}
    return {
        "instances": len(here["subgraphs"]),
        "same_samples": fmean(
            sum(min(share, other.get(nodes, 0.0)) for nodes, share in one.items())
            for one, other in zip(here["subgraphs"], there["subgraphs"], strict=True)
        ),
        **{name: {"largest": float(gap.max()), "mean": float(gap.mean())} for name, gap in gaps.items()},
        "auc": {"same fit": {HERE: here["auc"], THERE: there["auc"]}, "own fit": own["auc"]},
    }


def table(found: dict[str, Any]) -> Table:
    """Makes the table."""
    rows = [
        (
            dataset,
            f"{value['same_samples']:.5f}",
            *(f"{value[name][kind]:.1e}" for name in ("node", "edge") for kind in ("largest", "mean")),
            *(number(value["auc"]["same fit"][device]) for device in (HERE, THERE)),
            number(value["auc"]["own fit"]),
        )
        for dataset, value in found.items()
    ]
    heads = (
        "",
        "probability in common",
        *(f"{name} scores, {kind} difference" for name in ("node", "edge") for kind in ("largest", "mean")),
        "AUC on the CPU",
        "on the GPU, same fit",
        "fitted on the GPU",
    )
    return Table("The same seed on a CPU and on a GPU", heads, tuple(rows))


def main(fast: bool = False) -> None:
    """Compares, stores and prints; says so where there is no GPU."""
    if not torch.cuda.is_available():
        print("There is no GPU here to compare with.")
        return
    found = {dataset: measure(dataset) for dataset in DATASETS[: 1 if fast else None]}
    folder, surroundings = results_folder("devices", fast), environment()
    device = torch.cuda.get_device_name()
    write_json(folder / "results.json", {"datasets": found, "seed": SEED, **surroundings, "device": device})
    note = f"`{surroundings['command']}`, {device}, {surroundings['date']}, torch {surroundings['versions']['torch']}."
    text = join([table(found)], "markdown", [note])
    write_text(folder / "summary.md", text)
    print(text)
