"""Masks are the marginals of the listed subgraphs, and of nothing else."""

import pytest
import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import GraphModel, LinkModel, NodeModel, random_graph


def marginals_of(explanation):
    """Sums the probabilities of the subgraphs that hold each node, and both ends of each edge."""
    node, edge = [0.0] * explanation.x.size(0), []
    for subgraph in explanation.subgraphs:
        for place in subgraph.nodes:
            node[place] += subgraph.probability
    for ends in map(set, explanation.edge_index.t().tolist()):
        # An explained link that is in the graph is left out of it.
        holds = [
            s for s in explanation.subgraphs if ends <= set(s.nodes) and ends != set(explanation.explained_link or ())
        ]
        edge.append(sum(s.probability for s in holds))
    return torch.tensor(node), torch.tensor(edge)


def explained(level, width, **settings):
    graph = random_graph(14, 0.2, seed=3)
    algorithm = GFlowExplainer(**{"max_nodes": 5, "num_samples": width, **settings})
    if level == "graph":
        return algorithm.explain(GraphModel(), [graph, random_graph(9, seed=2)], progress=False)
    if level == "edge":
        pairs = torch.tensor([[0, 3], [4, 9]])
        return algorithm.explain(LinkModel(), graph, edge_label_index=pairs, progress=False)
    # A self loop is inside where its node is.
    graph.edge_index = torch.cat([graph.edge_index, torch.tensor([[3, 5], [3, 5]])], dim=1)
    return algorithm.explain(NodeModel(), graph, [3, 8], progress=False)


TRAINED = {"preset": "context", "max_updates": 2, "num_contexts": 2, "hidden": 4, "rollouts": 2}


@pytest.mark.parametrize("level", ["node", "graph", "edge"])
@pytest.mark.parametrize(("width", "settings"), [(4, {}), (2000, {}), (16, TRAINED)])
def test_masks_are_sums_over_the_listed_subgraphs(level, width, settings):
    for explanation in explained(level, width, **settings):
        assert width != 2000 or explanation.error == 0
        node, edge = marginals_of(explanation)
        torch.testing.assert_close(explanation.node_mask[:, 0], node, atol=1e-6, rtol=0)
        torch.testing.assert_close(explanation.edge_mask, edge, atol=1e-6, rtol=0)
        assert sum(s.probability for s in explanation.subgraphs) == pytest.approx(1, abs=1e-9)
