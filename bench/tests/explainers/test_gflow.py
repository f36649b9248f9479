import networkx as nx
import pytest
import torch

from gflowbench.datasets.benchmark import Benchmark
from gflowbench.explainers.gflow import GFlow
from gflowbench.explainers.interface import Subject
from gflowbench.explainers.registry import create
from gflowexplainer.errors import ConfigError
from gflowexplainer.testing import GraphModel, NodeModel, random_graph

SMALL = {"max_nodes": 4, "epochs": 3, "rollouts": 4, "num_contexts": 4, "hidden": 16, "num_samples": 16}


def subject(task):
    if task == "node":
        graph = random_graph(14, 0.15, seed=2)
        graph.y = torch.zeros(14, dtype=torch.long)
        return Subject.of(NodeModel(), Benchmark.from_graphs([graph], task="node", index=[0, 4, 9], num_classes=3))
    graphs = [random_graph(8, 0.2, seed=seed) for seed in range(4)]
    for graph in graphs:
        graph.y = torch.zeros(1, dtype=torch.long)
    return Subject.of(GraphModel(), Benchmark.from_graphs(graphs, task="graph", num_classes=2))


@pytest.mark.parametrize("weighting", ["policy", "reward"])
@pytest.mark.parametrize("task", ["node", "graph"])
def test_scores_are_probabilities_and_the_order_is_connected(task, weighting):
    about = subject(task)
    explainer = create("gflow", weighting=weighting, **SMALL)
    explainer.fit(about, seed=0)
    scores = explainer.explain(about, seed=0)
    scores.check(about.instances, explainer.name)
    assert float(scores.node.min()) >= 0
    assert float(scores.node.max()) <= 1 + 1e-9
    if task == "node":
        assert scores.node[about.instances.center].tolist() == pytest.approx([1, 1, 1])
    graph = nx.Graph(about.instances.edge_index.t().tolist())
    for row in scores.order.tolist():
        members = [node for node in row if node >= 0]
        assert 1 <= len(members) <= 4
        assert all(nx.is_connected(graph.subgraph(members[: k + 1])) for k in range(len(members)))


def test_unseen_instances_are_explained_without_training():
    about = subject("node")
    explainer = GFlow(**SMALL)
    explainer.fit(about.select(torch.tensor([0, 1])), seed=0)
    unseen = about.select(torch.tensor([2]))
    again = GFlow(**SMALL)
    again.fit(about.select(torch.tensor([0, 1])), seed=0)
    assert torch.equal(explainer.explain(unseen, seed=0).edge, again.explain(unseen, seed=0).edge)


def test_explaining_before_fitting_is_refused():
    with pytest.raises(ConfigError, match="not been fitted"):
        GFlow(**SMALL).explain(subject("node"), seed=0)


@pytest.mark.parametrize("wrong", [{"weighting": "rewards"}, {"preset": "papper"}, {"betta": 3}])
def test_unknown_settings_are_answered_with_the_nearest(wrong):
    with pytest.raises(ConfigError, match="Did you mean"):
        GFlow(**wrong)
