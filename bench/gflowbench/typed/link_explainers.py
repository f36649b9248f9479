"""Explainers of links: ours, those of PyG, and shortest paths by what the model says of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx
import torch
from torch_geometric.explain import Explainer, ExplainerAlgorithm, GNNExplainer

from gflowbench.explainers.gflow import GFlow
from gflowbench.explainers.masked_model import masks_alone
from gflowbench.typed.link_task import EDGE, LinkScores, LinkTask, TypedEdge
from gflowbench.typed.link_ways import edges_along, ends_of_links, flat_graph
from gflowexplainer import GFlowExplainer

PATHS = 60
"""Paths of an explanation that are ranked."""


class LinkGFlow(GFlow):
    """GFlowExplainer through its public face: fitted to training links; edges by the rank of their paths."""

    def fit(self, task: LinkTask, seed: int) -> None:  # type: ignore[override]
        """Fits the explainer to the training links of ``task``."""
        self.explainer = GFlowExplainer(**self._options, seed=seed)
        self.explainer.fit(**task.request(task.train), **self._fitting)

    def explain(self, task: LinkTask, seed: int) -> LinkScores:  # type: ignore[override]
        """Scores edges by their probability, and those on the best paths in front of them."""
        self.explanations = self.explainer.explain(**task.request(task.test), progress=False)
        scores = []
        for explanation in self.explanations:
            score: dict[TypedEdge, float] = {}
            for key in task.edge_index:
                mask = explanation.edge_mask if task.is_plain else explanation[key].edge_mask
                score |= {(key, place): float(mask[place]) for place in torch.nonzero(mask).flatten().tolist()}
            scores.append(score | by_rank(map(task.edge_name, path.edges) for path in explanation.paths(PATHS)))
        return scores


def by_rank(paths: Iterable[Iterable[TypedEdge]]) -> dict[TypedEdge, float]:
    """Scores edges by the first path that they are on, above 1, better paths higher."""
    order = list(dict.fromkeys(edge for path in paths for edge in path))
    return {edge: 1.0 + len(order) - number for number, edge in enumerate(order)}


def gnn_explainer(task: LinkTask, seed: int, epochs: int = 100) -> LinkScores:
    """PyG's GNNExplainer at edge level: a mask over edges, learned for each link."""
    return pyg_algorithm(task, seed, GNNExplainer(epochs=epochs))


def pyg_algorithm(task: LinkTask, seed: int, algorithm: ExplainerAlgorithm) -> LinkScores:
    """Runs an algorithm of PyG at edge level, one link after the other: edges by its mask."""
    torch.manual_seed(seed)
    explainer = Explainer(
        task.model,
        algorithm,
        explanation_type="model",
        edge_mask_type="object",
        node_mask_type=None,
        model_config=EDGE,
    )
    graph, scores = task.graph, []
    given = (graph.x, graph.edge_index) if task.is_plain else (graph.x_dict, graph.edge_index_dict)
    with masks_alone(task.model):  # an algorithm may leave masks behind
        for link in task.test.t():
            found = explainer(*given, edge_label_index=link[:, None])
            masks = {key: found.edge_mask if task.is_plain else found[key].edge_mask for key in task.edge_index}
            scores.append(
                {(key, at): float(value) for key, mask in masks.items() for at, value in enumerate(mask.tolist())}
            )
    return scores


def model_paths(task: LinkTask, seed: int) -> LinkScores:
    """A path baseline: shortest paths, ranked by what the model says where the path is all that there is."""
    graph = flat_graph(task)
    scores = []
    for (one, other), link in zip(ends_of_links(task), task.test.t(), strict=True):
        try:
            paths = list(networkx.all_shortest_paths(graph, one, other))[:200]
        except networkx.NetworkXNoPath:
            paths = []
        rated = sorted(((_alone(task, path, link), path) for path in paths), key=lambda pair: -pair[0])
        scores.append(by_rank([edges_along(task, graph, path) for _, path in rated]))
    return scores


@torch.no_grad()
def _alone(task: LinkTask, path: list[Any], link: torch.Tensor) -> float:
    """Evaluates the model on the nodes of a path."""
    if task.is_plain:
        nodes = torch.tensor([node for _, node in path])
        cut = task.graph.subgraph(nodes.sort().values)
        place = torch.searchsorted(nodes.sort().values, link.contiguous())
        return float(task.model(cut.x, cut.edge_index, place[:, None]))
    keep = {
        key: torch.tensor(sorted(n for t, n in path if t == key), dtype=torch.long) for key in task.graph.node_types
    }
    cut = task.graph.subgraph(keep)
    source, target = task.end_types
    places = [torch.searchsorted(keep[key], end) for key, end in zip((source, target), link, strict=True)]
    return float(task.model(cut.x_dict, cut.edge_index_dict, torch.stack(places)[:, None]))
