"""The paper's two sentences of Graph-SST2, explained with a GNN that is trained here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from gflowbench.datasets import load
from gflowbench.models import train
from gflowexplainer import GFlowExplainer
from gflowexplainer.flow.sampling import grow_at_random, rollout_keys
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.rewards import ContextReward

SENTENCES = (69041, 69042)
"""Ids of the two sentences of the paper's figure."""
PRINTED_ACCURACY = 0.887
WORDS: dict[str, Any] = {"min_nodes": 8, "max_nodes": 10}
"""Length of an explanation, about that of the paper's."""
PARTS, CONTEXTS = 500, 64
"""Random parts of a sentence that an explanation is held against, and contexts in which they are judged."""


def sentence_cases(limit: int | None, epochs: int, others: int, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Trains a GCN on word graphs and explains the two sentences.

    Args:
        limit: Sentences of each split that are built at most; all if ``None``.
        epochs: Epochs of the GNN at most.
        others: Test sentences that the explainer is fitted on beside the two.
        ours: Settings of the explainer.

    Returns:
        ``"shown"``: of each sentence its ``"words"``, their ``"probability"``, whether they are in the most probable
        subgraph (``"chosen"``), the share of random connected parts of as many words that preserve the prediction less
        (``"better"``), the GNN's ``"negative"`` probability, and whether it is right; ``"accuracies"`` of the GNN;
        ``"provenance"`` of edges and vectors.
    """
    benchmark = load("graph-sst2", "generated", limit=limit)
    trained = train("gcn", benchmark, seed=0, progress=False, max_epochs=epochs)
    two = load("graph-sst2", "generated", sentences=list(SENTENCES)).graphs
    # What speaks for one class speaks against the other: only sentences of the same one have something in common.
    rest = (benchmark.graphs[i] for i in benchmark.index.tolist() if benchmark.graphs[i].sentence not in SENTENCES)
    alike = (graph for graph in rest if _negative(trained.model, graph) > 0.5)
    graphs = [*two, *islice(alike, others)]
    config = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
    algorithm = GFlowExplainer(**WORDS, **ours)
    algorithm.fit(trained.model, graphs, progress=False, model_config=config)
    found = algorithm.explain(trained.model, graphs, list(range(len(two))), progress=False, model_config=config)
    shown = []
    for graph, explanation in zip(two, found, strict=True):
        negative, chosen = _negative(trained.model, graph), set(explanation.subgraphs[0].nodes)
        shown.append(
            {
                "words": list(graph.tokens),
                "probability": explanation.node_mask[:, 0].tolist(),
                "chosen": [node in chosen for node in range(graph.num_nodes)],
                "share": explanation.subgraphs[0].probability,
                "better": _share_of_worse(trained.model, graph, sorted(chosen)),
                "negative": negative,
                "right": (negative > 0.5) == (int(graph.y) == 0),
            }
        )
    accuracies = {name: accuracy.share for name, accuracy in trained.accuracies.items()}
    return {"shown": shown, "accuracies": accuracies, "provenance": benchmark.provenance, "fitted": len(graphs)}


def _negative(model: nn.Module, graph: Data) -> float:
    """Returns the probability that a sentence is negative."""
    assert graph.x is not None
    assert graph.edge_index is not None
    with torch.no_grad():
        batch = torch.zeros(graph.x.size(0), dtype=torch.long)
        return float(model(graph.x, graph.edge_index, batch).softmax(dim=1)[0, 0])


def _share_of_worse(model: nn.Module, graph: Data, chosen: Sequence[int]) -> float:
    """Returns the share of random connected parts of a sentence, of as many words, that hold its class less."""
    instances = Instances.of_graphs([graph])
    reward = ContextReward(
        Predictor(model, level="graph"), instances, num_contexts=CONTEXTS, average="strength", seed=1
    )
    every = torch.zeros(PARTS, dtype=torch.long)
    parts = grow_at_random(instances, every, None, len(chosen), rollout_keys(instances, every, 1))
    ours = Subgraphs(every[:1], torch.tensor([list(chosen)]))
    return float((reward.log_score(parts) < reward.log_score(ours)).double().mean())
