"""The paper's own variants of the method, by name: presets of the engine behind the common interface."""

from __future__ import annotations

from typing import Any

from gflowbench.explainers.gflow import GFlow


def context(**settings: Any) -> GFlow:
    """The context reward, which is each instance's own, and a flow network that is trained for it."""
    return GFlow(preset="context", **settings)


def sequence(**settings: Any) -> GFlow:
    """GFlow-Sequence: the only parent of a state is the one it was grown from."""
    return GFlow(preset="sequence", **settings)


def graph(**settings: Any) -> GFlow:
    """GFlow-Graph: every node but the start may have come last, also one whose removal disconnects the rest."""
    return GFlow(preset="graph", **settings)


def paper(**settings: Any) -> GFlow:
    """The paper's table of hyper-parameters, its network, its reward and its loss in raw form."""
    return GFlow(preset="paper", **settings)


def trajectory_balance(**settings: Any) -> GFlow:
    """Trajectory balance with one partition function for all instances, for the context reward."""
    return _named("gflow-tb", objective="trajectory_balance", **settings)


def conditional_trajectory_balance(**settings: Any) -> GFlow:
    """Trajectory balance with a partition function of the start node, for the context reward."""
    return _named("gflow-ctb", objective="conditional_trajectory_balance", **settings)


def _named(name: str, **settings: Any) -> GFlow:
    explainer = GFlow(preset="context", **settings)
    explainer.name = name
    return explainer
