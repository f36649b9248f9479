"""Simple peers: each explains a case by itself, from the GNN's predictions or gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.utils import k_hop_subgraph

from gflowbench.suites.cases import Case, predict_kept, whole_predictions
from gflowbench.suites.scoring import NodeExplanation
from gflowbench.suites.task import SuiteTask

_STEPS = 16
_MARGIN = 0.01


def occlusion(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Scores a node by what the prediction loses when it alone is removed from the whole graph.

    Values are scored by the absolute change. The explained node cannot be removed and counts as the most important.
    """
    whole = whole_predictions(model, cases)
    without = predict_kept(model, cases, [~torch.eye(case.num_nodes, dtype=torch.bool) for case in cases])
    explanations = []
    for case, value, found in zip(cases, whole, without, strict=True):
        change = value - found
        scores = change.clone() if case.target is not None else change.abs()
        if case.center is not None:
            scores[case.center] = scores.max() + 1e-6
        explanations.append(NodeExplanation(scores, signed=change))
    return explanations


def occlusion_near(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Does the same among the nodes whose messages reach the explained one; all others come last.

    A GCN weighs messages by degrees, so neighbours of the last nodes that it hears from change its prediction too.
    Explanations in PyG's sense leave these out.
    """
    every = occlusion(model, task, cases, seed=seed, max_nodes=max_nodes)
    return [_near(case, found, task.num_layers) for case, found in zip(cases, every, strict=True)]


def _near(case: Case, explanation: NodeExplanation, hops: int) -> NodeExplanation:
    if case.center is None:
        return explanation
    near, _, _, _ = k_hop_subgraph(case.center, hops, case.edge_index, num_nodes=case.num_nodes)
    scores = torch.full_like(explanation.scores, float(explanation.scores.min()) - 1)
    scores[near] = explanation.scores[near]
    return replace(explanation, scores=scores)


def greedy(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Grows one connected subgraph by the neighbour that raises the probability of the class most.

    Values: by the neighbour that brings the value nearest to the whole one. Graphs: growth starts at the best single
    node. Nodes score by the order in which they are taken. What is shown is the smallest stage that comes within .01
    of the best one.
    """
    whole = whole_predictions(model, cases).tolist()
    neighbors = [case.neighbors() for case in cases]
    chosen: list[list[int]] = [[] if case.center is None else [case.center] for case in cases]
    stages: list[list[float]] = [[] for _ in cases]
    for _ in range(max_nodes):
        candidates = [_frontier(near, own) for near, own in zip(neighbors, chosen, strict=True)]
        masks = []
        for case, own, nodes in zip(cases, chosen, candidates, strict=True):
            mask = case.mask(own).repeat(len(nodes), 1)
            mask[torch.arange(len(nodes)), torch.tensor(nodes, dtype=torch.long)] = True
            masks.append(mask)
        for number, found in enumerate(predict_kept(model, cases, masks)):
            if len(found) and len(chosen[number]) < max_nodes:
                quality = found if cases[number].target is not None else -(found - whole[number]).abs()
                best = int(quality.argmax())
                chosen[number].append(candidates[number][best])
                stages[number].append(float(quality[best]))
    return [_grown(case, own, values) for case, own, values in zip(cases, chosen, stages, strict=True)]


def saliency(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Scores a node by the length of the gradient of its class's logit, or of the value, by its features."""
    gradients = _gradients(model, cases, [case.x for case in cases])
    return [NodeExplanation(gradient.norm(dim=1)) for gradient in gradients]


def integrated_gradients(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Scores a node by its integrated gradients from features that are all 0; values by their absolute size."""
    total = [torch.zeros_like(case.x, dtype=torch.double) for case in cases]
    for step in range(_STEPS):
        share = (step + 0.5) / _STEPS
        found = _gradients(model, cases, [share * case.x for case in cases])
        total = [sum_ + gradient / _STEPS for sum_, gradient in zip(total, found, strict=True)]
    explanations = []
    for case, gradient in zip(cases, total, strict=True):
        signed = (gradient * case.x).sum(dim=1)
        explanations.append(NodeExplanation(signed if case.target is not None else signed.abs(), signed=signed))
    return explanations


def truth(
    model: nn.Module, task: SuiteTask, cases: Sequence[Case], *, seed: int, max_nodes: int
) -> list[NodeExplanation]:
    """Returns the truth itself: no explainer, but what the GNN says of the right answer."""
    explanations = []
    for case in cases:
        known = case.truth
        if known is None or not bool(known.union.any()):
            explanations.append(NodeExplanation(torch.zeros(case.num_nodes, dtype=torch.double)))
            continue
        parts = known.parts if known.combination.value != "any" else known.parts[:1]
        shown = parts or (tuple(known.union.nonzero().view(-1).tolist()),)
        scores = known.union.double() if known.contributions is None else known.signed.abs()
        signed = None if known.contributions is None else known.signed
        explanations.append(NodeExplanation(scores, shown, signed))
    return explanations


def _frontier(neighbors: list[list[int]], chosen: list[int]) -> list[int]:
    """Returns the nodes that can be added: all of them at the beginning, then the neighbours."""
    if not chosen:
        return list(range(len(neighbors)))
    return sorted({other for node in chosen for other in neighbors[node]} - set(chosen))


def _grown(case: Case, chosen: list[int], stages: list[float]) -> NodeExplanation:
    """Scores by order and shows the smallest stage that is nearly the best."""
    scores = torch.zeros(case.num_nodes, dtype=torch.double)
    scores[chosen] = torch.arange(len(chosen), 0, -1, dtype=torch.double)
    given = len(chosen) - len(stages)
    enough = next((n for n, value in enumerate(stages) if value >= max(stages) - _MARGIN), -1)
    return NodeExplanation(scores, (tuple(sorted(chosen[: given + enough + 1])),))


def _gradients(model: nn.Module, cases: Sequence[Case], features: Sequence[Tensor]) -> list[Tensor]:
    """Returns the gradient of each case's logit or value by the node features, shapes ``[n_i, F]``."""
    if not cases:
        return []
    gradients: list[Tensor] = []
    for begin in range(0, len(cases), 64):
        some, xs = cases[begin : begin + 64], features[begin : begin + 64]
        batch = Batch.from_data_list([Data(x=x, edge_index=case.edge_index) for case, x in zip(some, xs, strict=True)])
        x = batch.x.clone().requires_grad_(True)
        if some[0].center is None:
            output = model(x, batch.edge_index, batch.batch)
        else:
            output = model(x, batch.edge_index)[batch.ptr[:-1] + torch.tensor([case.center for case in some])]
        target = torch.tensor([case.target or 0 for case in some])
        (gradient,) = torch.autograd.grad(output.gather(1, target[:, None]).sum(), x)
        gradients += [part.double() for part in gradient.split([case.num_nodes for case in some])]
    return gradients
