"""The paper's two sentences of Graph-SST2, explained with a GNN that is trained here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gflowexplainer.datasets import load
from gflowexplainer.explainer import GFlowExplainer
from gflowexplainer.models import train

SENTENCES = (69041, 69042)
"""Ids of the two sentences of the paper's figure."""
PRINTED_ACCURACY = 0.887
WORDS: dict[str, Any] = {"min_nodes": 8, "max_nodes": 10}
"""Length of an explanation, about that of the paper's."""


def sentence_cases(limit: int | None, epochs: int, others: int, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Trains a GCN on word graphs and explains the two sentences.

    Args:
        limit: Sentences of each split that are built at most; all if ``None``.
        epochs: Epochs of the GNN at most.
        others: Test sentences that the explainer is fitted on beside the two.
        ours: Settings of the explainer.

    Returns:
        ``"shown"``: of each sentence its ``"words"``, their ``"probability"``, whether they are in the most probable
        subgraph (``"chosen"``), the GNN's ``"negative"`` probability, and whether it is right; ``"accuracies"`` of the
        GNN; ``"provenance"`` of edges and vectors.
    """
    benchmark = load("graph-sst2", "generated", limit=limit)
    trained = train("gcn", benchmark, seed=0, progress=False, max_epochs=epochs)
    two = load("graph-sst2", "generated", sentences=list(SENTENCES)).graphs
    rest = [benchmark.graphs[i] for i in benchmark.index.tolist() if benchmark.graphs[i].sentence not in SENTENCES]
    graphs = [*two, *rest[:others]]
    config = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
    algorithm = GFlowExplainer(**WORDS, **ours)
    algorithm.fit(trained.model, graphs, progress=False, model_config=config)
    found = algorithm.explain(trained.model, graphs, list(range(len(two))), progress=False, model_config=config)
    shown = []
    for graph, explanation in zip(two, found, strict=True):
        with torch.no_grad():
            batch = torch.zeros(graph.num_nodes, dtype=torch.long)
            negative = float(trained.model(graph.x, graph.edge_index, batch).softmax(dim=1)[0, 0])
        chosen = set(explanation.subgraphs[0].nodes)
        shown.append(
            {
                "words": list(graph.tokens),
                "probability": explanation.node_mask[:, 0].tolist(),
                "chosen": [node in chosen for node in range(graph.num_nodes)],
                "share": explanation.subgraphs[0].probability,
                "negative": negative,
                "right": (negative > 0.5) == (int(graph.y) == 0),
            }
        )
    accuracies = {name: accuracy.share for name, accuracy in trained.accuracies.items()}
    return {"shown": shown, "accuracies": accuracies, "provenance": benchmark.provenance, "fitted": len(graphs)}
