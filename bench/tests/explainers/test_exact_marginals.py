from itertools import combinations

import networkx as nx
import pytest
import torch

from gflowbench.explainers import create
from gflowexplainer.errors import EnumerationError
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.rewards.factory import prepare_reward
from gflowexplainer.settings import Settings

SMALL = {"max_nodes": 4, "num_contexts": 4, "beta": 3.0}


def by_hand(subject, number, settings):
    """Node and edge probabilities of one instance, from networkx and the reward of each subgraph alone."""
    instances = subject.instances
    reward = prepare_reward(settings, subject)
    begin, end = instances.ptr[number : number + 2].tolist()
    graph = nx.Graph(instances.edge_index.t().tolist())
    graph.add_nodes_from(range(begin, end))
    center = int(instances.center[number])
    weights = {}
    for size in range(1, settings.max_nodes + 1):
        for nodes in combinations(range(begin, end), size):
            if (center >= 0 and center not in nodes) or not nx.is_connected(graph.subgraph(nodes)):
                continue
            members = torch.tensor([list(nodes) + [-1] * (settings.max_nodes - size)])
            weights[nodes] = float(reward.log_reward(Subgraphs(torch.tensor([number]), members)).exp())
    total = sum(weights.values())
    node = {n: sum(w for nodes, w in weights.items() if n in nodes) / total for n in range(begin, end)}
    edge = {
        (u, v): sum(w for nodes, w in weights.items() if u in nodes and v in nodes) / total
        for u, v in graph.subgraph(range(begin, end)).edges
        if u != v
    }
    return node, edge


@pytest.mark.parametrize("changes", [{}, {"reward": "context", "relative_beta": False}])
def test_probabilities_are_those_of_all_connected_subgraphs(changes, either_subject):
    changes = {**changes, "measure": "uniform"}
    scores = create("exact", **SMALL, **changes).explain(either_subject, 7)
    scores.check(either_subject.instances, "exact")
    node, edge = by_hand(either_subject, 1, Settings(seed=7, **SMALL, **changes))
    for position, probability in node.items():
        assert float(scores.node[position]) == pytest.approx(probability, abs=1e-5)
    found = dict(zip(map(tuple, either_subject.instances.edge_index.t().tolist()), scores.edge.tolist(), strict=True))
    for (u, v), probability in edge.items():
        assert found.get((u, v), found.get((v, u))) == pytest.approx(probability, abs=1e-5)


def test_unseen_instances_are_seen_by_the_reward_of_the_others(node_subject):
    """With the default reward, which learns from the instances it is fitted on."""
    fitted = create("exact", **SMALL)
    fitted.fit(node_subject.select(torch.tensor([0, 1])), 0)
    unseen = node_subject.select(torch.tensor([2]))
    again = create("exact", **SMALL)
    again.fit(node_subject.select(torch.tensor([0, 1])), 0)
    assert torch.equal(fitted.explain(unseen, 0).edge, again.explain(unseen, 0).edge)
    alone = create("exact", **SMALL)
    alone.fit(unseen, 0)
    assert not torch.allclose(fitted.explain(unseen, 0).edge, alone.explain(unseen, 0).edge)


def test_the_order_is_connected_and_begins_with_the_explained_node(node_subject):
    order = create("exact", **SMALL).explain(node_subject, 0).order
    assert order[:, 0].tolist() == node_subject.instances.center.tolist()
    graph = nx.Graph(node_subject.instances.edge_index.t().tolist())
    for row in order.tolist():
        assert nx.is_connected(graph.subgraph([node for node in row if node >= 0]))


def test_an_instance_that_is_too_large_is_named(node_subject):
    with pytest.raises(EnumerationError, match=r"Instance 0 is too large: .*more than 5 connected subgraphs"):
        create("exact", limit=5, **SMALL).explain(node_subject, 0)
