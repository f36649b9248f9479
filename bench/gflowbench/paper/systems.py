"""The systems that the paper compares: what they are called here and there, and the cells that tables share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gflowbench.explainers.registry import misfit
from gflowbench.metrics.measurement import MetricSettings
from gflowbench.paper.experiment import Scope
from gflowbench.paper.steps import Contest
from gflowbench.protocol import Contestant, ProtocolSettings
from gflowbench.protocol.plan import Part, Plan, fast, suite
from gflowbench.protocol.presentation import TITLES
from gflowbench.protocol.printed_numbers import DATASETS
from gflowbench.protocol.problems import GENERATED

PAPER, DEFAULT = "gflow-paper", "gflow"
"""GFlowExplainer in the paper's settings, and in our default ones."""
SYSTEMS = {
    "GNNExplainer": "gnnexplainer",
    "PGExplainer": "pgexplainer",
    "DEGREE": "degree-decomposition",
    "RG-Explainer, no pre-training": "rg-explainer-no-pretraining",
    "RG-Explainer": "rg-explainer",
    "SubgraphX": "subgraphx",
    "GFlowExplainer": PAPER,
}
"""Name of an explainer here by its name in :mod:`gflowbench.protocol.printed_numbers`."""
SHARED = "accuracy"
"""Folder beside the experiments' in which ``evaluate --suite paper`` keeps its cells; the same ones are taken here."""
_SLOWEST = ("subgraphx", "graphmask", PAPER, "rg-explainer", "rg-explainer-no-pretraining")
_SHORT: dict[str, dict[str, Any]] = {
    "gflow-context": {"max_updates": 50},
    "gflow-sequence": {"max_updates": 50},
    PAPER: {"epochs": 5, "max_nodes": 8},
    "rg-explainer": {"epochs": 5, "list_epochs": 3, "set_epochs": 3, "locator_updates": 20, "max_nodes": 8},
    "rg-explainer-no-pretraining": {"epochs": 5, "max_nodes": 8},
    "gnnexplainer": {"epochs": 40},
    "subgraphx": {"num_rollouts": 2, "num_samples": 5},
}
_FEWEST = 60
"""Every n-th instance SubgraphX explains in a fast run."""


def here(scope: Scope, wanted: Sequence[str] = DATASETS) -> tuple[str, ...]:
    """Names the datasets of ``wanted`` that can be had; one that is only a file is left out where that is missing."""
    return tuple(name for name in wanted if scope.gnn == "published" or name in GENERATED)


def missing(scope: Scope, wanted: Sequence[str] = DATASETS) -> list[str]:
    """Says which datasets are left out, one note each."""
    return [f"{TITLES[name]} is left out: its file is not there." for name in wanted if name not in here(scope, wanted)]


def short(explainer: str, dataset: str) -> Part:
    """Thins for a run of a minute: few instances, one seed, and short training too."""
    part = fast(explainer, dataset)
    every = _FEWEST if explainer == "subgraphx" else part.every
    return replace(part, every=every, settings={**part.settings, **_SHORT.get(explainer, {})})


def protocol(scope: Scope) -> ProtocolSettings:
    """Returns the settings of ``evaluate --contexts 10``; a fast run leaves out robust fidelity, which is not shown."""
    return ProtocolSettings(metrics=MetricSettings(num_contexts=scope.pick(10, 0)))


def shared_contests(scope: Scope, explainers: Sequence[str], datasets: Sequence[str], seeds: int) -> list[Contest]:
    """Plans one step for each explainer and dataset, thinned as ``evaluate --suite paper`` does.

    The slowest come first, so that parts of the plan take about as long as one another.
    """
    thinning: Plan = scope.pick(suite, short)
    rank = {name: place for place, name in enumerate(_SLOWEST)}
    return [
        Contest(
            contest_name(name, dataset),
            scope.problem(dataset),
            [Contestant.named(name)],
            scope.seeds(seeds),
            protocol(scope),
            thinning,
            beside=SHARED,
        )
        for name in sorted(explainers, key=lambda name: rank.get(name, len(rank)))
        for dataset in datasets
        if not left_out(scope, name, dataset)
    ]


def left_out(scope: Scope, explainer: str, dataset: str) -> str:
    """Says why an explainer is not run on a dataset; empty if it is."""
    return suite(explainer, dataset).left_out or misfit(explainer, scope.problem(dataset).architecture)


def contest_name(explainer: str, dataset: str) -> str:
    """Names the step of an explainer on a dataset."""
    return f"{explainer} on {dataset}"
