"""A generated link task on a plain graph: a link is predicted where both ends lie in the same motif.

Every node has a code of its own, a random row of signs. A motif joins two ends by two middle nodes, end - middle - end,
and hangs at both ends on a random graph, so that there are other ways between them. Other pairs are three or four steps
apart. What a GNN can tell is whether the ends share neighbours: what explains a link are the four edges of its motif,
two paths of two steps.
"""

from __future__ import annotations

import networkx
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import k_hop_subgraph

from gflowbench.typed.link_task import RELATION, LinkTask, TypedEdge
from gflowexplainer.errors import DatasetError

_MOTIFS, _BASE, _DEGREE, _CODE, _NUM_HOPS = 120, 300, 3, 64, 2
_LEAST_ACCURACY = 0.95


class MotifLinkGnn(nn.Module):
    """Two layers, what both say side by side; links are scored by the cosine of both ends."""

    def __init__(self) -> None:
        super().__init__()
        self.first = SAGEConv(_CODE, _CODE, root_weight=False)
        self.second = SAGEConv(_CODE, _CODE, root_weight=False)
        for layer in (self.first, self.second):
            # Few links have to teach which codes are alike: begin with codes that stay what they are.
            nn.init.eye_(layer.lin_l.weight)
        self.scale = nn.Parameter(torch.tensor([1.0, 0.5, -0.5]))

    def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        """Returns raw scores of pairs ``[2, L]``, shape ``[L]``."""
        near = self.first(x, edge_index)
        far = self.second(near.relu(), edge_index)
        ends = (functional.normalize(hidden[edge_label_index], dim=2) for hidden in (near, far))
        alike = [(one * other).sum(dim=1) for one, other in ends]
        return 10 * (self.scale[0] * alike[0] + self.scale[1] * alike[1] + self.scale[2])


def make_motif_links(seed: int) -> tuple[Data, Tensor, Tensor]:
    """Draws a graph.

    Returns:
        The graph with features ``x``; both ends and both middle nodes of each motif, shape ``[M, 4]``; and pairs that
        lie in no common motif, shape ``[2, 2 M]``.
    """
    draw = np.random.default_rng(seed)
    base = networkx.random_regular_graph(_DEGREE, _BASE, seed=int(draw.integers(2**31)))
    pairs = {tuple(sorted(edge)) for edge in base.edges}
    motifs = _BASE + np.arange(4 * _MOTIFS).reshape(_MOTIFS, 4)
    for one, other, left, right in motifs.tolist():
        pairs |= {(one, left), (one, right), (other, left), (other, right)}
        near = int(draw.integers(_BASE))
        # A way around: both ends hang on nodes of the base that are neighbours.
        pairs |= {(near, one), (int(draw.choice(list(base[near]))), other)}
        pairs |= {(int(draw.integers(_BASE)), end) for end in (one, other, left, right)}
    edges = torch.tensor(sorted(pairs), dtype=torch.long).t()
    total = _BASE + 4 * _MOTIFS
    codes = torch.from_numpy(draw.choice([-1.0, 1.0], size=(total, _CODE))).float()
    graph = Data(x=codes, edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    whole = networkx.Graph(edges.t().tolist())
    absent = []
    for number in draw.permutation(_MOTIFS):
        one = int(motifs[number, 0])
        own = {int(node) for node in motifs[number]}
        ways = networkx.single_source_shortest_path_length(whole, one, cutoff=4)
        for distance in (3, 4):
            some = sorted(node for node, steps in ways.items() if steps == distance and node not in own)
            absent.append((one, int(draw.choice(some))))
    return graph, torch.from_numpy(motifs), torch.tensor(absent, dtype=torch.long).t()


def fit_link_gnn(graph: Data, present: Tensor, absent: Tensor, seed: int, epochs: int = 200) -> tuple[nn.Module, float]:
    """Trains the GNN on the first two thirds of both kinds of pairs; returns it with its accuracy on the others."""
    torch.manual_seed(seed)
    model = MotifLinkGnn()
    cuts = [2 * pairs.size(1) // 3 for pairs in (present, absent)]
    seen = torch.cat([present[:, : cuts[0]], absent[:, : cuts[1]]], dim=1)
    rest = torch.cat([present[:, cuts[0] :], absent[:, cuts[1] :]], dim=1)
    wanted = torch.zeros(seen.size(1)).index_fill(0, torch.arange(cuts[0]), 1.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003, weight_decay=1e-4)
    for _ in range(epochs):
        optimizer.zero_grad()
        output = model(graph.x, graph.edge_index, seen)
        functional.binary_cross_entropy_with_logits(output, wanted, pos_weight=torch.tensor(2.0)).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        said = model(graph.x, graph.edge_index, rest) > 0
    right = said == (torch.arange(rest.size(1)) < present.size(1) - cuts[0])
    return model, float(right.float().mean())


def load_motif_links(seed: int, num_train: int | None = None) -> LinkTask:
    """Draws a graph, trains a GNN on it, and returns the test links that it predicts with their two true paths.

    Args:
        seed: Seed of graph and GNN.
        num_train: Training links that explainers may be fitted to, at most; all if not given.
    """
    graph, motifs, absent = make_motif_links(seed)
    present = motifs[:, :2].t()
    model, accuracy = fit_link_gnn(graph, present, absent, seed)
    if accuracy < _LEAST_ACCURACY:
        raise DatasetError(f"The GNN learned the links with accuracy {accuracy:.2f} only (seed {seed}).")
    with torch.no_grad():
        predicted = model(graph.x, graph.edge_index, present) > 0
    cut = 2 * _MOTIFS // 3
    order = torch.arange(_MOTIFS)
    train, test = order[(order < cut) & predicted], order[(order >= cut) & predicted]
    place = {tuple(ends): number for number, ends in enumerate(graph.edge_index.t().tolist())}
    paths = [
        [[(RELATION, place[one, middle]), (RELATION, place[middle, other])] for middle in middles]
        for one, other, *middles in motifs[test].tolist()
    ]
    around = [_around(graph, ends) for ends in motifs[test, :2].tolist()]
    return LinkTask(graph, model, None, present[:, train[:num_train]], present[:, test], paths, around)


def _around(graph: Data, ends: list[int]) -> list[TypedEdge]:
    """Lists the edges that both ends of a link depend on."""
    mask = k_hop_subgraph(ends, _NUM_HOPS, graph.edge_index, num_nodes=graph.num_nodes)[3]
    return [(RELATION, int(edge)) for edge in torch.nonzero(mask).flatten()]
