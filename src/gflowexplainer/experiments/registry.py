"""Experiments by name, imported when they are asked for. A new one is one line at the end of this file."""

from __future__ import annotations

from importlib import import_module

from gflowexplainer.errors import one_of
from gflowexplainer.experiments.experiment import Experiment

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


register("table-auc", "gflowexplainer.experiments.table_auc")
register("inductive", "gflowexplainer.experiments.inductive")
register("ablation-parents", "gflowexplainer.experiments.ablation_parents")
register("convergence", "gflowexplainer.experiments.convergence")
register("objectives", "gflowexplainer.experiments.objectives")
register("inference-time", "gflowexplainer.experiments.inference_time")
register("training-time", "gflowexplainer.experiments.training_time")
register("cut-vertices", "gflowexplainer.experiments.cut_vertices")
register("accuracy-table", "gflowexplainer.experiments.accuracy_table")
register("sparsity-fidelity", "gflowexplainer.experiments.sparsity_fidelity")
register("qualitative", "gflowexplainer.experiments.qualitative")
register("dataset-table", "gflowexplainer.experiments.dataset_table")
