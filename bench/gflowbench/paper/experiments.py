"""Experiments by name, imported when they are asked for."""

from __future__ import annotations

from importlib import import_module

from gflowbench.paper.experiment import Experiment
from gflowexplainer.errors import one_of

EXPERIMENTS = {
    "table-auc": "table_auc:EXPERIMENT",
    "inductive": "inductive:EXPERIMENT",
    "ablation-parents": "ablation_parents:EXPERIMENT",
    "convergence": "convergence:EXPERIMENT",
    "objectives": "objectives_compared:EXPERIMENT",
    "inference-time": "times:INFERENCE",
    "training-time": "times:TRAINING",
    "cut-vertices": "growing_cut_vertices:EXPERIMENT",
    "accuracy-table": "table_accuracy:EXPERIMENT",
    "sparsity-fidelity": "sparsity_fidelity:EXPERIMENT",
    "qualitative": "qualitative:EXPERIMENT",
    "dataset-table": "table_datasets:EXPERIMENT",
}
"""Module of this package and name in it, of every experiment, in the order of the paper."""


def names() -> tuple[str, ...]:
    """Names of all experiments, in the order of the paper."""
    return tuple(EXPERIMENTS)


def experiment(name: str) -> Experiment:
    """Imports the experiment ``name``; an unknown name is answered with the nearest right one."""
    module, _, attribute = EXPERIMENTS[one_of("name", name, names())].partition(":")
    return getattr(import_module(f"gflowbench.paper.{module}"), attribute)
