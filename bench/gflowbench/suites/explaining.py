"""The explainers of the bench on the cases of a suite: what each says of a prediction, as nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gflowbench.datasets import Benchmark
from gflowbench.explainers.gflow import GFlow
from gflowbench.explainers.interface import DEFAULT_MAX_NODES, Explainer, Scores, Subject
from gflowbench.explainers.registry import create
from gflowbench.suites.cases import Case
from gflowbench.suites.scoring import NodeExplanation
from gflowexplainer import SubgraphExplanation


def explain_cases(
    model: nn.Module,
    task: Benchmark,
    cases: Sequence[Case],
    *,
    explainer: str,
    seed: int,
    max_nodes: int | None = None,
    **settings: Any,
) -> list[NodeExplanation]:
    """Fits an explainer to the cases and explains them with it.

    Args:
        model: The GNN.
        task: The task of the cases.
        cases: What to explain; all of them are fitted together, whatever their class.
        explainer: Name in :mod:`gflowbench.explainers.registry`.
        seed: Seed of the explainer.
        max_nodes: Bound on the size of subgraphs; the explainer's default if not given.
        **settings: Further settings of the explainer.
    """
    if not cases:
        return []
    bound: dict[str, Any] = {} if max_nodes is None else {"max_nodes": max_nodes}
    subject = subject_of(model, task, cases, max_nodes)
    made = create(explainer, **bound, **settings)
    made.fit(subject, seed)
    return explanations_of(made, made.explain(subject, seed), subject, cases)


def explanations_of(
    explainer: Explainer, scores: Scores, subject: Subject, cases: Sequence[Case]
) -> list[NodeExplanation]:
    """Says of each case what an explainer has just said of a subject: of ours all that it shows, of others scores."""
    if isinstance(explainer, GFlow):
        return [read_explanation(case, one) for case, one in zip(cases, explainer.explanations, strict=True)]
    return read_scores(scores, subject, cases)


def subject_of(model: nn.Module, task: Benchmark, cases: Sequence[Case], max_nodes: int | None = None) -> Subject:
    """Cuts the instances of some cases out, as every explainer of the bench is given them."""
    chosen = task.select([case.instance for case in cases])
    return Subject.of(model, chosen, max_nodes=max_nodes or DEFAULT_MAX_NODES)


def read_scores(scores: Scores, subject: Subject, cases: Sequence[Case]) -> list[NodeExplanation]:
    """Reads the scores of each case off; a node that is not in its instance has the lowest score of all."""
    instances = subject.instances
    counts = instances.node_counts.tolist()
    rows = zip(cases, instances.node_id.split(counts), scores.node.double().split(counts), strict=True)
    signed = None if scores.signed is None else scores.signed.double().split(counts)
    selected = None if scores.selected is None else scores.selected.split(counts)
    found = []
    for number, (case, nodes, values) in enumerate(rows):
        place = torch.searchsorted(case.nodes, nodes)
        part = None if selected is None else tuple(sorted(place[selected[number]].tolist()))
        found.append(
            NodeExplanation(
                scores=_placed(values, place, case.num_nodes, float(values.min()) - 1),
                parts=None if part is None else (part,),
                signed=None if signed is None else _placed(signed[number], place, case.num_nodes, 0.0),
            )
        )
    return found


def read_explanation(case: Case, explanation: SubgraphExplanation) -> NodeExplanation:
    """Takes masks, parts (or the first subgraph) and the verdict from an explanation of ours."""
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


def _placed(values: Tensor, place: Tensor, count: int, elsewhere: float) -> Tensor:
    """Puts values of an instance to the places of a case of ``count`` nodes."""
    return torch.full((count,), elsewhere, dtype=values.dtype).index_copy_(0, place.cpu(), values.cpu())
