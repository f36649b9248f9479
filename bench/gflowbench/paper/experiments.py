"""Experiments by name, imported when they are asked for. A new one is one line at the end of this file."""

from __future__ import annotations

from importlib import import_module

from gflowbench.paper.experiment import Experiment
from gflowexplainer.errors import one_of

_MODULES: dict[str, str] = {}


def register(name: str, module: str) -> None:
    """Makes an experiment known: its name, and the module whose ``EXPERIMENT`` it is."""
    _MODULES[name] = module


def names() -> tuple[str, ...]:
    """Names of all experiments, in the order of the paper."""
    return tuple(_MODULES)


def experiment(name: str) -> Experiment:
    """Imports the experiment ``name``; an unknown name is answered with the nearest right one."""
    return import_module(_MODULES[one_of("name", name, names())]).EXPERIMENT


register("table-auc", "gflowbench.paper.table_auc")
register("inductive", "gflowbench.paper.inductive")
register("ablation-parents", "gflowbench.paper.ablation_parents")
register("convergence", "gflowbench.paper.convergence")
register("objectives", "gflowbench.paper.objectives_compared")
register("inference-time", "gflowbench.paper.inference_time")
register("training-time", "gflowbench.paper.training_time")
register("cut-vertices", "gflowbench.paper.growing_cut_vertices")
register("accuracy-table", "gflowbench.paper.table_accuracy")
register("sparsity-fidelity", "gflowbench.paper.sparsity_fidelity")
register("qualitative", "gflowbench.paper.qualitative")
register("dataset-table", "gflowbench.paper.table_datasets")
