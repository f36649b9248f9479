"""What is lost without a node, beside calls of the model by hand."""

import pytest
import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.evidence.losses import node_losses
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.testing import GraphModel, NodeModel, random_graph


class Scaled(GraphModel):
    """The same model with larger scores."""

    factor = 1.0

    def forward(self, x, edge_index, batch=None):
        return self.factor * super().forward(x, edge_index, batch)


class ScaledNodes(NodeModel):
    factor = 1.0

    def forward(self, x, edge_index, edge_weight=None):
        return self.factor * super().forward(x, edge_index, edge_weight)


def of_graphs(model, graphs, **config):
    return TaskInputs.of(Predictor(model, level="graph", **config), Instances.of_graphs(graphs))


def log_odds(scores, label):
    chance = scores.double().log_softmax(dim=-1)
    others = [chance[c] for c in range(len(chance)) if c != label]
    return float(chance[label] - torch.stack(others).logsumexp(dim=0))


@torch.no_grad()
@pytest.mark.parametrize("removal", ["induced", "isolate"])
def test_losses_of_graphs_are_those_of_calls_without_each_node(removal):
    graphs, model = [random_graph(9, 0.3, seed=seed) for seed in range(3)], GraphModel(num_classes=3, seed=2)
    found = node_losses(of_graphs(model, graphs), removal).split(9)
    for graph, lost in zip(graphs, found, strict=True):
        whole = model(graph.x, graph.edge_index)[0]
        label = int(whole.argmax())
        for node in range(9):
            kept = torch.arange(9) != node
            stays = kept[graph.edge_index].all(dim=0)
            rest = graph.subgraph(kept) if removal == "induced" else graph.edge_subgraph(stays)
            wanted = log_odds(whole, label) - log_odds(model(rest.x, rest.edge_index)[0], label)
            assert float(lost[node]) == pytest.approx(wanted, abs=1e-4)


@torch.no_grad()
def test_losses_around_a_node_are_those_of_calls_without_each_other_node():
    graph, model = random_graph(12, 0.2, seed=1), NodeModel(seed=3)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [2, 7], 2)
    lost = node_losses(TaskInputs.of(Predictor(model), instances), "induced")
    whole = model(graph.x, graph.edge_index)
    for place, node in enumerate(instances.node_id.tolist()):
        root = (2, 7)[int(instances.owner[place])]
        if node == root:
            assert float(lost[place]) == 0
            continue
        kept = torch.arange(12) != node
        rest = graph.subgraph(kept)
        alone = model(rest.x, rest.edge_index)[int(kept[:root].sum())]
        label = int(whole[root].argmax())
        assert float(lost[place]) == pytest.approx(log_odds(whole[root], label) - log_odds(alone, label), abs=1e-4)


@pytest.mark.parametrize("factor", [0.01, 0.1, 100.0, 1e4])
def test_a_model_that_is_surer_of_itself_loses_in_proportion(factor):
    """The log-odds of two classes are the difference of their scores, however large these are."""
    graphs, model, other = [random_graph(10, 0.3, seed=seed) for seed in range(3)], Scaled(), Scaled()
    other.factor = factor
    plain, scaled = (node_losses(of_graphs(one, graphs), "induced") for one in (model, other))
    torch.testing.assert_close(scaled / factor, plain, rtol=1e-3, atol=1e-4)


def test_scores_of_a_tenth_keep_the_ranking_of_nodes():
    graph, rankings = random_graph(14, 0.2, seed=1), []
    for factor in (1.0, 0.1, 300.0):
        model = ScaledNodes(num_classes=2, seed=3)
        model.factor = factor
        instances = Instances.around_nodes(graph.x, graph.edge_index, [5], 2)
        lost = node_losses(TaskInputs.of(Predictor(model), instances), "induced")
        rankings.append(torch.argsort(lost[lost.abs() > 1e-3 * factor], descending=True).tolist())
    assert len(rankings[0]) > 3
    assert rankings[0] == rankings[1] == rankings[2]


@pytest.mark.parametrize("fit", [False, True])
def test_a_model_of_half_precision_is_explained(fit):
    graph, model = random_graph(12, 0.2, seed=1), NodeModel(seed=1).to(torch.bfloat16)
    graph.x = graph.x.to(torch.bfloat16)
    algorithm = GFlowExplainer(max_nodes=4, num_samples=32)
    if fit:
        algorithm.fit(model, graph, [0, 1, 2], progress=False)
    explanation = algorithm.explain(model, graph, [5], progress=False)[0]
    assert explanation.validate()
    assert sum(subgraph.probability for subgraph in explanation.subgraphs) == pytest.approx(1)
    assert len(explanation.parts.nodes) > 0
