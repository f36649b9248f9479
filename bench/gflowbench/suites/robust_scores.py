r"""Sufficiency and necessity near the whole graph, where the GNN knows what it sees.

A few nodes alone, or a graph with a hole, are far from any graph of the training. So only a random part is removed
(after Zheng et al., "Towards Robust Fidelity for Evaluating Explainability of Graph Neural Networks", 2024): each node
of the explanation with probability .1 for necessity, each other node with probability .1 for sufficiency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from gflowbench.suites.cases import Case, predict_kept, whole_predictions
from gflowbench.suites.scoring import Part

CONTEXTS = 20
REMOVED = 0.1
"""Chance that a node of the explanation is removed for necessity."""
KEPT = 0.9
"""Chance that another node is kept for sufficiency."""


def robust_scores(
    model: nn.Module, cases: Sequence[Case], sets: Sequence[Mapping[str, Part]], seed: int
) -> list[dict[str, float]]:
    """Measures sets of nodes in random contexts, the same for every explainer.

    Args:
        model: The explained GNN.
        cases: ``I`` cases.
        sets: For each case some node sets by name, such as ``""`` (what is shown) or ``"@4"`` (the best four nodes).
        seed: Names the contexts.

    Returns:
        For each case ``robust_sufficiency`` (mean probability with the set and most others) and ``robust_necessity``
        (mean fall when few nodes of the set are removed), with the name of the set behind.
    """
    masks = []
    for case, chosen in zip(cases, sets, strict=True):
        draw = _draws(case, seed)
        rows = [torch.zeros(0, case.num_nodes, dtype=torch.bool)]
        for nodes in chosen.values():
            inside = case.mask(nodes)
            rows += [inside | (draw < KEPT), ~inside | (draw >= REMOVED)]
        masks.append(torch.cat(rows))
    found = predict_kept(model, cases, masks)
    scores = []
    for value, chosen, values in zip(whole_predictions(model, cases).tolist(), sets, found, strict=True):
        means = values.view(-1, 2, CONTEXTS).mean(dim=2).tolist()
        row: dict[str, float] = {}
        for key, (with_few, without_few) in zip(chosen, means, strict=True):
            row[f"robust_sufficiency{key}"], row[f"robust_necessity{key}"] = with_few, value - without_few
        scores.append(row)
    return scores


def _draws(case: Case, seed: int) -> Tensor:
    """Returns uniform numbers of a case, shape ``[CONTEXTS, n]``."""
    generator = torch.Generator().manual_seed(1_000_003 * seed + case.instance)
    return torch.rand(CONTEXTS, case.num_nodes, generator=generator)
