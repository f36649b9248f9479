"""Explanations of nodes that hold together: what edges count, and when the model is asked about it."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.cohesion import COHESION, closeness, cohesion_of, find_cohesion, is_a_place, is_lacking
from gflowexplainer.rewards.effect import Effect
from gflowexplainer.rewards.fitting import Fitting
from gflowexplainer.testing import cycle, graph_of, random_graph

# A center, 0, with neighbours that are joined to each other, 1 and 2, and one apart. By evidence the first says 4 and
# the second 1, so that the first says more per node than both.
TRIANGLE = [(0, 1), (0, 2), (1, 2), (0, 3)]
MEMBERS = [[0, -1, -1], [0, 1, -1], [0, 1, 2]]
STRONGEST = 4 / 2


@pytest.mark.parametrize("hops", [1, 2])
def test_edges_count_as_in_the_normalised_laplacian_of_the_whole_graph(hops: int) -> None:
    data = random_graph(14, 0.2, seed=3)
    whole = nx.Graph(data.edge_index.t().tolist())
    laplacian = nx.normalized_laplacian_matrix(whole, sorted(whole)).toarray()
    # Loops and edges that are there twice are no neighbours.
    loops = torch.arange(14).expand(2, -1)
    edge_index = torch.cat([data.edge_index, data.edge_index[:, :9], loops], dim=1)
    instances = Instances.around_nodes(data.x, edge_index, [0, 5, 9], hops)
    found = closeness(instances).numpy()
    one, other = instances.node_id[instances.neighbor_row], instances.node_id[instances.neighbor]
    np.testing.assert_allclose(found, -2 * laplacian[one.numpy(), other.numpy()])
    part = instances.select(torch.tensor([1]))
    assert torch.equal(part.whole_degree, instances.whole_degree[instances.owner == 1])


def test_what_no_edge_leaves_counts_one_for_each_node_and_a_clique_of_hubs_hardly_anything() -> None:
    ring = Instances.of_graphs([cycle(6)])
    every = Subgraphs(torch.tensor([0]), torch.arange(6)[None])
    assert float(cohesion_of(ring, every)) == pytest.approx(6)
    # Four hubs, each with twenty nodes of its own.
    edges = [*combinations(range(4), 2), *((hub, 4 + 20 * hub + leaf) for hub in range(4) for leaf in range(20))]
    hubs = Instances.of_graphs([graph_of(edges)])
    assert float(cohesion_of(hubs, Subgraphs(torch.tensor([0]), torch.arange(4)[None]))) == pytest.approx(6 * 2 / 23)


class SumOfNeighbors(nn.Module):
    """Log-odds of class 1 of a node: four times what its neighbours add up to, less a threshold."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index
        odds = 4 * (torch.zeros(len(x)).index_add(0, target, x[source, 0]) - self.threshold)
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


def found(
    threshold: float, second: float = 1.0, third: float = 0.0, *, together: float = 5.0, level: str = "node"
) -> float:
    graph = graph_of(TRIANGLE, 4)
    graph.x = torch.tensor([[0.0], [4.0], [second], [third]])
    predictor = Predictor(SumOfNeighbors(threshold), level="node", num_hops=1)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0], 1)
    inputs = TaskInputs.of(predictor, instances)
    if level == "graph":
        object.__setattr__(instances, "level", "graph")
    subgraphs = Subgraphs(torch.zeros(3, dtype=torch.long), torch.tensor(MEMBERS))
    rating = torch.tensor([0.0, 4.0, together]).double() / subgraphs.size
    return find_cohesion(Fitting(inputs, subgraphs, torch.zeros(3, dtype=torch.long)), rating)


@pytest.mark.parametrize(
    ("neighbors", "threshold", "wanted"),
    [
        ((1.0, 0.0), 4.8, COHESION * STRONGEST),  # both together hold the class, the first alone does not
        ((1.0, 0.0), 2.5, 0.0),  # it does
        ((1.0, 0.0), 12.0, 0.0),  # the other class is predicted, which needs nothing
        ((-0.5, 0.9), 4.2, 0.0),  # the second speaks against the class, whatever the evidence says
    ],
)
def test_it_counts_where_what_says_most_is_not_enough(neighbors, threshold: float, wanted: float) -> None:
    assert found(threshold, *neighbors) == pytest.approx(wanted)


def test_it_counts_by_what_a_node_of_the_best_says_and_not_in_graphs() -> None:
    # Where the triangle says most already, it is enough.
    assert found(4.8, together=7.0) == 0
    assert found(4.8, together=-5.0) == pytest.approx(COHESION * STRONGEST)
    assert found(4.8, level="graph") == 0


@pytest.mark.parametrize(
    ("lacking", "together", "needed", "wanted"),
    [
        pytest.param(0.6, 0.6, 0.5, True, id="does more"),
        pytest.param(0.6, 0.35, 0.5, True, id="hardly less"),
        pytest.param(0.6, 0.25, 0.5, False, id="less"),
        pytest.param(0.6, 0.6, 0.2, False, id="others stand in for it"),
        pytest.param(0.2, 0.6, 0.5, False, id="little is lacking"),
    ],
)
def test_places_hold_together_where_what_says_most_lacks_much(lacking, together, needed, wanted) -> None:
    best, place = Effect(0.4, 0.0, lacking, 0.4), Effect(together, 0.0, 0.0, needed)
    assert (is_lacking(best) and is_a_place(place, best)) == wanted
