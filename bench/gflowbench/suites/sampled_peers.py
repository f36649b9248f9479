"""Peers that learn a mask or sample coalitions for each case: PyG's GNNExplainer and Shapley values of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch_geometric.explain import Explainer, GNNExplainer

from gflowbench.suites.cases import Case, predict_kept
from gflowbench.suites.scoring import NodeExplanation
from gflowbench.suites.task import SuiteTask

_EPOCHS = 100
_PERMUTATIONS = 8


def gnn_explainer(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Scores nodes by the mask over nodes that PyG's ``GNNExplainer`` learns for each case, with its defaults."""
    explanations = []
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        for case in cases:
            explainer = Explainer(
                model,
                GNNExplainer(epochs=_EPOCHS),
                explanation_type="model",
                node_mask_type="object",
                edge_mask_type=None,
                model_config=task.model_config,
            )
            found = explainer(case.x, case.edge_index, index=case.center)
            explanations.append(NodeExplanation(found.node_mask.detach().view(-1).double()))
    return explanations


def shapley(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    r"""Scores a node by its Shapley value: what it adds to the prediction, averaged over random orders of all nodes.

    Each order is walked forwards and backwards. The explained node is there from the start and counts as the most
    important. Values are scored by the absolute size.
    """
    rng = np.random.default_rng(seed)
    explanations = []
    for case in cases:
        players = np.array([node for node in range(case.num_nodes) if node != case.center])
        total = torch.zeros(case.num_nodes, dtype=torch.double)
        orders = [rng.permutation(players) for _ in range(_PERMUTATIONS // 2)]
        orders += [order[::-1].copy() for order in orders]
        steps = torch.tril(torch.ones(len(players) + 1, len(players)), -1).bool()
        masks = torch.zeros(len(orders), len(players) + 1, case.num_nodes, dtype=torch.bool)
        for number, order in enumerate(orders):
            masks[number][:, torch.from_numpy(order)] = steps
        found = predict_kept(model, [case], [masks.flatten(0, 1)])[0].view(len(orders), -1)
        for order, gain in zip(orders, found.diff(dim=1), strict=True):
            total[torch.from_numpy(order)] += gain / len(orders)
        scores = total if case.target is not None else total.abs()
        if case.center is not None:
            scores = scores.clone()
            scores[case.center] = scores.max() + 1e-6
        explanations.append(NodeExplanation(scores, signed=total))
    return explanations
