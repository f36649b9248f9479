"""GFlowExplainer as the suites see it: only its public class, as a user calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from gflowbench.suites.cases import Case
from gflowbench.suites.scoring import NodeExplanation
from gflowbench.suites.task import SuiteTask
from gflowexplainer import GFlowExplainer


def gflowexplainer(
    model: nn.Module,
    task: SuiteTask,
    cases: Sequence[Case],
    *,
    seed: int,
    max_nodes: int | None = None,
    fit: bool = True,
    **settings: Any,
) -> list[NodeExplanation]:
    """Fits one explainer on the cases and explains them with it.

    Args:
        model: The GNN.
        task: The task of the cases.
        cases: What to explain; all of them are fitted together, whatever their class.
        seed: Seed of the explainer.
        max_nodes: Largest subgraph; the class's default if not given.
        fit: Whether to fit on all cases first; otherwise each is explained by itself.
        **settings: Further arguments of :class:`gflowexplainer.GFlowExplainer`.
    """
    if not cases:
        return []
    if max_nodes is not None:
        settings["max_nodes"] = max_nodes
    return explain_cases(GFlowExplainer(seed=seed, **settings), model, task, cases, fit=fit)


def explain_cases(
    explainer: GFlowExplainer, model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, fit: bool = True
) -> list[NodeExplanation]:
    """Explains the cases of a task with one explainer, which may be fitted on them first and stays fitted."""
    index = [case.instance for case in cases]
    inputs: dict[str, Any]
    if task.level == "node":
        inputs = {"data": task.graphs[0], "index": index}
    else:
        inputs = {"data": [task.graphs[i] for i in index]}
    if fit:
        explainer.fit(model, **inputs, model_config=task.model_config, progress=False)
    explanations = explainer.explain(model, **inputs, model_config=task.model_config, progress=False)
    return [read_explanation(case, explanation) for case, explanation in zip(cases, explanations, strict=True)]


def read_explanation(case: Case, explanation: Any) -> NodeExplanation:
    """Takes masks, parts (or the first subgraph) and the verdict from an explanation."""
    place = {node: number for number, node in enumerate(case.nodes.tolist())}
    parts = getattr(explanation, "parts", None) or explanation.subgraphs[:1]
    signed = getattr(explanation, "node_contributions", None)
    shown, (first,) = (
        tuple(tuple(sorted(place[node] for node in part.nodes if node in place)) for part in some)
        for some in (parts, explanation.subgraphs[:1])
    )
    return NodeExplanation(
        scores=explanation.node_mask.view(-1)[case.nodes].double(),
        parts=shown,
        first=first,
        signed=None if signed is None else torch.as_tensor(signed).view(-1)[case.nodes].double(),
        holds=getattr(explanation, "holds", None),
    )
