r"""Scores of an explanation: against the truth where it is known, and on the GNN itself.

With :math:`p(S)` the probability of the explained class on the induced subgraph of the nodes :math:`S` of :math:`V`
(the explained node always stays), the sufficiency of :math:`S` is :math:`p(S)` and its necessity
:math:`p(V) - p(V \setminus S)`. For values, what counts is how far the value moves, in units of the spread of the
predictions: with only the explanation it should not, without it it should.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.explain.metric import characterization_score

from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowbench.metrics.auc import pooled_auc
from gflowbench.suites.cases import Case, predict_cases, whole_predictions
from gflowexplainer.errors import InstanceError

Part = tuple[int, ...]
TOP = (2, 4, 8)
"""Sizes at which the best nodes of an explanation are measured where there is no truth."""


@dataclass(frozen=True, eq=False)
class NodeExplanation:
    """What any explainer says of one case.

    Attributes:
        scores: Importance of each node, shape ``[n]``; larger is more important.
        parts: What a person is shown: one node set, or several that belong together. ``None`` where the explainer only
            ranks nodes.
        signed: Signed importance of each node, shape ``[n]``; ``None`` where the explainer knows no sign.
        holds: Whether the explainer stands by its explanation; ``None`` where it does not say.
        first: The most probable connected subgraph; ``None`` where the explainer has no distribution of them.
    """

    scores: Tensor
    parts: tuple[Part, ...] | None = None
    signed: Tensor | None = None
    holds: bool | None = None
    first: Part | None = None


def f1(chosen: Sequence[int], wanted: Sequence[int]) -> float:
    """Returns the F1 of two node sets."""
    common = len(set(chosen) & set(wanted))
    return 2 * common / max(len(set(chosen)) + len(set(wanted)), 1)


def match(parts: Sequence[Part], truth: TaskTruth) -> dict[str, float]:
    """Compares what is shown with the truth.

    Where any part of the truth is enough, the best of them counts; otherwise all of them together do.

    Returns:
        ``exact`` (same nodes), ``f1``, and for several required parts ``exact_parts`` (the same parts, one by one).
    """
    chosen = {node for part in parts for node in part}
    if not truth.parts:
        return {}
    union = {node for part in truth.parts for node in part}
    if truth.combination is Combination.ANY:
        return {
            "exact": float(any(chosen == set(part) for part in truth.parts)),
            "f1": max(f1(tuple(chosen), part) for part in truth.parts),
        }
    found = {"exact": float(chosen == union), "f1": f1(tuple(chosen), tuple(union))}
    if truth.combination is Combination.ALL and len(truth.parts) > 1:
        found["exact_parts"] = float({frozenset(part) for part in parts} == {frozenset(p) for p in truth.parts})
    return found


def contribution_agreement(explanation: NodeExplanation, truth: TaskTruth) -> dict[str, float]:
    """Compares node scores with signed contributions.

    Returns:
        ``concordance``: of pairs of nodes with different absolute contributions, the share that the scores put in the
        right order, ties counting half (it is the AUC where there are only two sizes). ``sign``: the share of the
        nodes of the union whose sign is right, where the explainer knows signs.
    """
    values = truth.signed
    size, scores = values.abs(), explanation.scores.double()
    larger = size[:, None] > size[None, :] + 1e-9
    if not bool(larger.any()):
        return {}
    order = (scores[:, None] > scores[None, :]).double() + 0.5 * (scores[:, None] == scores[None, :]).double()
    found = {"concordance": float(order[larger].mean())}
    if explanation.signed is not None and bool(truth.union.any()):
        same = explanation.signed.sign() == values.sign()
        found["sign"] = float(same[truth.union].double().mean())
    return found


def connected_top(case: Case, scores: Tensor, size: int) -> Part:
    """Returns the best connected set of ``size`` nodes that growth by score finds, from every start.

    At node level it contains the explained node. Larger scores first, smaller ids among equals.
    """
    neighbors, value = case.neighbors(), scores.tolist()
    starts = range(case.num_nodes) if case.center is None else [case.center]
    best: tuple[float, Part] = (-math.inf, ())
    for start in starts:
        chosen, frontier = {start}, set(neighbors[start])
        while len(chosen) < size and frontier:
            node = max(frontier, key=lambda n: (value[n], -n))
            chosen.add(node)
            frontier = (frontier | set(neighbors[node])) - chosen
        total = sum(value[node] for node in chosen)
        if total > best[0]:
            best = (total, tuple(sorted(chosen)))
    return best[1]


def shown_parts(case: Case, explanation: NodeExplanation) -> tuple[Part, ...] | None:
    """Returns what is shown; an explainer that only ranks gets the size of the truth, in its favour.

    One required part: the best connected nodes. Several: simply the best ones. The explained node comes on top where it
    is not part of the truth. Without a truth: ``None``.
    """
    if explanation.parts is not None:
        return explanation.parts
    truth = case.truth
    if truth is None or not bool(truth.union.any()):
        return None
    more = int(case.center is not None and not bool(truth.union[case.center]))
    if truth.combination is Combination.ANY or len(truth.parts) == 1:
        size = round(sum(map(len, truth.parts)) / len(truth.parts))
        return (connected_top(case, explanation.scores, size + more),)
    return (top_nodes(_center_first(case, explanation.scores), int(truth.union.sum()) + more),)


def top_nodes(scores: Tensor, size: int) -> Part:
    """Returns the ``size`` nodes of the largest scores, smaller ids among equals."""
    order = torch.argsort(scores, descending=True, stable=True)
    return tuple(sorted(order[:size].tolist()))


def node_sets(
    case: Case, explanation: NodeExplanation, top: Sequence[int] = (), own: int | None = None
) -> dict[str, Part]:
    """Returns the node sets of an explanation that are measured on the GNN.

    Args:
        case: The case.
        explanation: Its explanation.
        top: Sizes ``k`` at which the best nodes are measured; the explained node is one of them.
        own: Nodes that our explainer shows of this case, the size at which others are compared with it.

    Returns:
        ``""``: all nodes that are shown, where something is. ``"@k"``: the best ``k`` nodes, among equals those of the
        larger signed importance. ``"@own"``: as many of the best nodes as ours shows.
    """
    parts = shown_parts(case, explanation)
    sets = {} if parts is None else {"": tuple(sorted({node for part in parts for node in part}))}
    ranks = _center_first(case, _ranks(explanation))
    for size in top:
        sets[f"@{size}"] = top_nodes(ranks, size)
    if own is not None:
        sets["@own"] = top_nodes(ranks, own)
    return sets


def score_cases(
    model: nn.Module, cases: Sequence[Case], explanations: Sequence[NodeExplanation], sets: Sequence[dict[str, Part]]
) -> list[dict[str, float]]:
    """Scores explanations one by one.

    Args:
        model: The explained GNN, in eval mode.
        cases: ``I`` cases of one task.
        explanations: One for each.
        sets: The node sets of each that are measured on the GNN (:func:`node_sets`).

    Returns:
        For each case its scores by name; a score that makes no sense there is left out. Scores against the truth leave
        out the explained node, which everybody's explanation contains.
    """
    if len(cases) != len(explanations):
        raise InstanceError(f"{len(cases)} cases need as many explanations (got {len(explanations)}).")
    whole = whole_predictions(model, cases)
    spread = float(whole.std(correction=0)) or 1.0
    rows = [_against_truth(case, explanation) for case, explanation in zip(cases, explanations, strict=True)]
    masks = [
        torch.stack([m for nodes in chosen.values() for m in (case.mask(nodes), ~case.mask(nodes))])
        if chosen
        else torch.zeros(0, case.num_nodes, dtype=torch.bool)
        for case, chosen in zip(cases, sets, strict=True)
    ]
    for case, row, chosen, value, found in zip(
        cases, rows, sets, whole.tolist(), predict_cases(model, cases, masks), strict=True
    ):
        row["whole"] = value
        for (key, _), (only, without) in zip(chosen.items(), found.view(-1, 2).tolist(), strict=True):
            if case.target is None:
                row[f"only_error{key}"] = abs(value - only) / spread
                row[f"without_shift{key}"] = abs(value - without) / spread
            else:
                row[f"sufficiency{key}"], row[f"necessity{key}"] = only, value - without
    return rows


def summarize(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Averages the scores of many cases, each over the cases that have it, and adds PyG's characterization score."""
    names = sorted({name for row in rows for name in row})
    summary: dict[str, float] = {}
    for name in names:
        values = [row[name] for row in rows if name in row and not math.isnan(row[name])]
        if values:
            summary[name] = sum(values) / len(values)
    for name in [name for name in names if name.startswith("sufficiency")]:
        key = name.removeprefix("sufficiency")
        plus = torch.tensor(summary[f"necessity{key}"]).clamp(1e-6, 1)
        minus = torch.tensor(summary["whole"] - summary[name]).clamp(0, 1)
        summary[f"characterization{key}"] = float(characterization_score(plus, minus))
    return summary


def _against_truth(case: Case, explanation: NodeExplanation) -> dict[str, float]:
    """Returns AUC, size and what else can be said without the GNN."""
    if explanation.scores.shape != (case.num_nodes,):
        raise InstanceError(
            f"Scores of case {case.instance} must have the shape [{case.num_nodes}] "
            f"(got {list(explanation.scores.shape)})."
        )
    parts = shown_parts(case, explanation)
    row: dict[str, float] = {}
    if parts is not None:
        row["size"] = float(len({node for part in parts for node in part}))
        row["parts"] = float(len(parts))
    if explanation.holds is not None:
        row["holds"] = float(explanation.holds)
    if case.truth is not None:
        truth, scores, signed, first = case.truth, explanation.scores, explanation.signed, explanation.first
        if case.center is not None:
            # It is in everybody's explanation, whether the truth names it or not.
            others = (torch.arange(case.num_nodes) != case.center).nonzero().view(-1)
            truth, scores = truth.within(others), scores[others]
            signed = None if signed is None else signed[others]
            parts = None if parts is None else _without(parts, case.center)
            first = None if first is None else _without([first], case.center)[0]
        row["auc"] = pooled_auc(scores, truth.union)
        if parts is not None:
            row |= match(parts, truth)
        if first is not None and (truth.combination is Combination.ANY or len(truth.parts) == 1):
            row |= {f"{name}_first": value for name, value in match([first], truth).items()}
        if explanation.parts is None:
            row.pop("exact_parts", None)  # a ranking says nothing of parts
        if truth.contributions is not None:
            row |= contribution_agreement(NodeExplanation(scores, signed=signed), truth)
    return row


def _without(parts: Sequence[Part], center: int) -> tuple[Part, ...]:
    """Takes the explained node out of node sets and closes the gap in the ids."""
    return tuple(tuple(node - (node > center) for node in part if node != center) for part in parts)


def _ranks(explanation: NodeExplanation) -> Tensor:
    """Returns the scores as ranks, ``[n]``; signed importance tells equal ones apart, where it is known."""
    if explanation.signed is None:
        return explanation.scores
    first = torch.argsort(explanation.signed, stable=True, descending=True)
    order = first[torch.argsort(explanation.scores[first], stable=True, descending=True)]
    return torch.empty_like(explanation.scores).index_copy_(0, order, -torch.arange(len(order)).to(explanation.scores))


def _center_first(case: Case, scores: Tensor) -> Tensor:
    """Puts the explained node before all others."""
    if case.center is None:
        return scores
    scores = scores.clone()
    scores[case.center] = math.inf
    return scores
