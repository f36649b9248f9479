"""Explainers of links that know nothing of the model: what they reach needs no explainer."""

from __future__ import annotations

import time

import networkx
import numpy as np

from gflowbench.typed.link_explainers import LinkAnswers, ends_of_links, flat_graph
from gflowbench.typed.link_truth import LinkTruth


def random_edges(task: LinkTruth, seed: int) -> LinkAnswers:
    """Scores the edges around each link by chance."""
    begin = time.perf_counter()
    draw = np.random.default_rng(seed)
    scores = [dict(zip(around, draw.random(len(around)).tolist(), strict=True)) for around in task.around]
    return LinkAnswers(scores, 0.0, (time.perf_counter() - begin) / len(task.around))


def edges_near_ends(task: LinkTruth, seed: int) -> LinkAnswers:
    """Scores the edges around each link by how few steps they are from both ends together, in either direction."""
    graph = flat_graph(task)
    begin, scores = time.perf_counter(), []
    for (one, other), around in zip(ends_of_links(task), task.around, strict=True):
        near, far = (networkx.single_source_shortest_path_length(graph, end) for end in (one, other))
        most = graph.number_of_nodes()
        scores.append(
            {
                edge: 1 / (1 + sum(min(steps.get(end, most) for end in task.ends_of(edge)) for steps in (near, far)))
                for edge in around
            }
        )
    return LinkAnswers(scores, 0.0, (time.perf_counter() - begin) / len(task.around))
