"""A generated typed graph whose labels are decided by meta-paths of known truth, and GNNs trained on it.

Papers have authors, authors belong to institutes, and papers appear in venues. An institute may be *marked*, and so may
a venue; both say so in a feature. A paper is of class 1 if the way paper - author - institute leads to a marked
institute, of class 2 if the way paper - venue leads to a marked venue, and of class 0 if neither does. What explains a
paper of class 1 is that paper, author and institute; of class 2, the paper and its venue. Everything else is noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import HeteroData
from torch_geometric.nn import HANConv, HeteroConv, HGTConv, SAGEConv

from gflowbench.models.descent import Descent, descend
from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import DatasetError, one_of

GNNS = ("heteroconv", "hgt", "han")
_PAPERS, _AUTHORS, _INSTITUTES, _VENUES = 600, 900, 120, 60
_LEAST_ACCURACY = 0.95


@dataclass(frozen=True, eq=False)
class MetaPathTruth:
    """The graph and what decides the class of each paper.

    Attributes:
        graph: The graph, with ``y``, ``train_mask`` and ``test_mask`` of papers.
        nodes: For each paper the nodes that decide its class, itself first; empty for class 0.
    """

    graph: HeteroData
    nodes: list[set[tuple[str, int]]]


def make_meta_paths(seed: int) -> MetaPathTruth:
    """Draws a graph."""
    draw = np.random.default_rng(seed)
    marked = {"institute": draw.random(_INSTITUTES) < 0.12, "venue": draw.random(_VENUES) < 0.3}
    institute = draw.integers(_INSTITUTES, size=_AUTHORS)
    venue = draw.integers(_VENUES, size=_PAPERS)
    writes = {(int(a), p) for p in range(_PAPERS) for a in draw.choice(_AUTHORS, size=3, replace=False)}
    graph, nodes = HeteroData(), []
    labels = np.zeros(_PAPERS, dtype=np.int64)
    authors_of: list[list[int]] = [[] for _ in range(_PAPERS)]
    for author, paper in sorted(writes):
        authors_of[paper].append(author)
    for paper in range(_PAPERS):
        good = [a for a in authors_of[paper] if marked["institute"][institute[a]]]
        if marked["venue"][venue[paper]]:
            # One thing decides: papers in marked venues have no author of a marked institute.
            writes -= {(a, paper) for a in good}
            labels[paper] = 2
            nodes.append({("paper", paper), ("venue", int(venue[paper]))})
        elif good:
            writes -= {(a, paper) for a in good[1:]}
            labels[paper] = 1
            nodes.append({("paper", paper), ("author", good[0]), ("institute", int(institute[good[0]]))})
        else:
            nodes.append(set())
    for key, count in (("paper", _PAPERS), ("author", _AUTHORS), ("institute", _INSTITUTES), ("venue", _VENUES)):
        noise = torch.from_numpy(draw.normal(size=(count, 3))).float()
        mark = torch.from_numpy(marked.get(key, np.zeros(count))).float()[:, None]
        graph[key].x = torch.cat([3 * mark, 0.3 * noise], dim=1)
    edges = {
        ("author", "writes", "paper"): sorted(writes),
        ("author", "at", "institute"): list(enumerate(institute.tolist())),
        ("paper", "in", "venue"): list(enumerate(venue.tolist())),
    }
    for (source, relation, target), pairs in edges.items():
        ends = torch.tensor(pairs, dtype=torch.long).t().contiguous()
        graph[source, relation, target].edge_index = ends
        graph[target, f"rev_{relation}", source].edge_index = ends.flip(0)
    graph["paper"].y = torch.from_numpy(labels)
    order = torch.from_numpy(draw.permutation(_PAPERS))
    graph["paper"].train_mask = torch.zeros(_PAPERS, dtype=torch.bool).index_fill(0, order[:400], True)
    graph["paper"].test_mask = ~graph["paper"].train_mask
    return MetaPathTruth(graph, nodes)


class MetaPathGnn(nn.Module):
    """Two heterogeneous layers with what a node holds itself beside what arrives, and a linear readout at papers."""

    def __init__(self, name: str, graph: HeteroData, width: int = 32) -> None:
        super().__init__()
        one_of("gnn", name, GNNS)
        self.into = nn.ModuleDict({key: nn.Linear(graph[key].num_features, width) for key in graph.node_types})
        self.own = nn.ModuleList(
            nn.ModuleDict({key: nn.Linear(width, width) for key in graph.node_types}) for _ in range(2)
        )
        self.layers = nn.ModuleList(self._layer(name, graph, width) for _ in range(2))
        self.out = nn.Linear(width, 3)

    @staticmethod
    def _layer(name: str, graph: HeteroData, width: int) -> nn.Module:
        if name == "hgt":
            return HGTConv(width, width, graph.metadata(), heads=2)
        if name == "han":
            return HANConv(width, width, graph.metadata(), heads=2)
        return HeteroConv({key: SAGEConv((width, width), width, aggr="max") for key in graph.edge_types})

    def forward(self, x_dict: dict[str, Tensor], edge_index_dict: dict[tuple[str, str, str], Tensor]) -> Tensor:
        """Returns raw scores of papers, shape ``[num_papers, 3]``."""
        hidden = {key: self.into[key](x).relu() for key, x in x_dict.items()}
        for own, layer in zip(self.own, self.layers, strict=True):
            arrived = layer(hidden, edge_index_dict)
            hidden = {key: (own.get_submodule(key)(x) + arrived[key]).relu() for key, x in hidden.items()}
        return self.out(hidden["paper"])


def fit_meta_path_gnn(name: str, graph: HeteroData, seed: int, epochs: int = 300) -> tuple[nn.Module, float]:
    """Trains a GNN; returns it with its accuracy on test papers."""
    torch.manual_seed(seed)
    model = MetaPathGnn(name, graph)
    papers = graph["paper"]

    def loss_on(mask: Tensor) -> tuple[Tensor, int]:
        return functional.cross_entropy(model(graph.x_dict, graph.edge_index_dict)[mask], papers.y[mask]), int(
            mask.sum()
        )

    def validate() -> tuple[float, float]:
        return 0.0, float(loss_on(papers.train_mask)[0])

    descend(model, Descent(epochs, 0.01, 1e-4), lambda _epoch: [loss_on(papers.train_mask)], validate)
    with torch.no_grad():
        right = model(graph.x_dict, graph.edge_index_dict).argmax(dim=1) == papers.y
    return model, float(right[papers.test_mask].float().mean())


def measure_meta_paths(name: str, seed: int, instances: int = 60, **settings: Any) -> dict[str, float]:
    """Fits a GNN and our explainer, and scores explanations of test papers of classes 1 and 2 that it gets right."""
    truth = make_meta_paths(seed)
    graph = truth.graph
    model, accuracy = fit_meta_path_gnn(name, graph, seed)
    if accuracy < _LEAST_ACCURACY:
        raise DatasetError(f"The GNN {name} learned the task with accuracy {accuracy:.2f} only (seed {seed}).")
    with torch.no_grad():
        predicted = model(graph.x_dict, graph.edge_index_dict).argmax(dim=1)
    papers = graph["paper"]
    fitting = torch.nonzero(papers.train_mask & (papers.y > 0) & (predicted == papers.y)).flatten()[:100]
    asked = torch.nonzero(papers.test_mask & (papers.y > 0) & (predicted == papers.y)).flatten()[:instances]
    algorithm = GFlowExplainer(seed=seed, **settings).fit(model, graph, fitting, node_type="paper", progress=False)
    aucs, exact, held = [], [], []
    for paper, explanation in zip(asked.tolist(), algorithm.explain(model, graph, asked), strict=True):
        wanted = truth.nodes[paper]
        value = {
            (key, node): float(explanation[key].node_mask[node])
            for key in graph.node_types
            for node in nodes_within(graph, paper)[key]
            if (key, node) != ("paper", paper)
        }
        aucs.append(roc_auc_score([node in wanted for node in value], list(value.values())))
        exact.append(set(explanation.subgraphs[0].nodes) == wanted)
        held.append(wanted <= set(explanation.subgraphs[0].nodes))
    return {
        "gnn accuracy": accuracy,
        "node auc": float(np.mean(aucs)),
        "first exact": float(np.mean(exact)),
        "first holds the truth": float(np.mean(held)),
    }


def nodes_within(graph: HeteroData, paper: int, num_hops: int = 2) -> dict[str, set[int]]:
    """Finds the nodes within some hops of a paper, along incoming edges, by type."""
    found: dict[str, set[int]] = {key: set() for key in graph.node_types}
    found["paper"].add(paper)
    for _ in range(num_hops):
        before = {key: torch.tensor(sorted(nodes), dtype=torch.long) for key, nodes in found.items()}
        for key in graph.edge_types:
            source, target = graph[key].edge_index
            found[key[0]].update(source[torch.isin(target, before[key[2]])].tolist())
    return found


def main(seeds: Sequence[int] = range(5)) -> None:
    """Prints the means over seeds for each GNN: ``python -m gflowbench.typed.meta_paths``."""
    torch.set_num_threads(1)
    for name in GNNS:
        found = [measure_meta_paths(name, seed) for seed in seeds]
        print(name, {key: round(float(np.mean([row[key] for row in found])), 4) for key in found[0]}, flush=True)


if __name__ == "__main__":
    main()
