"""Which nodes serve as reference where one node is explained without a fit."""

import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.evidence.reference_nodes import REFERENCES, learn_from_references
from gflowexplainer.graphs.inputs import input_graph
from gflowexplainer.model.one_graph import NodeTask
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task import GraphTask
from gflowexplainer.testing import GraphModel, NodeModel, graph_of, random_graph

CONFIG = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}


class Listening(NodeTask):
    """Notes the inputs that were asked for beside the explained ones."""

    def inputs_at(self, nodes):
        self.heard = [*getattr(self, "heard", []), super().inputs_at(nodes)]
        return self.heard[-1]


def asked(index, graph=None, **more):
    graph, model = random_graph(40, 0.1, seed=2) if graph is None else graph, NodeModel(seed=6)
    return Listening(Predictor(model), input_graph(graph.x, graph.edge_index, {}, model), index, None, **more)


def called(task, seed=0):
    """Returns the inputs that are learned from, and the class that is explained."""
    inputs = task.inputs()
    learn_from_references(task, inputs, seed, "induced")
    (reference,) = task.heard
    return reference.instances, reference.target, inputs.target.label


def test_nodes_of_the_same_class_come_first():
    graph = random_graph(400, 0.01, seed=2)
    task = asked([3], graph)
    instances, target, (label,) = called(task)
    nodes = instances.node_id[instances.center].tolist()
    with torch.no_grad():
        every = NodeModel(seed=6)(graph.x, graph.edge_index).argmax(dim=1)
    assert torch.equal(target.label, every[nodes])
    assert 1 < len(set(nodes)) == len(nodes) <= REFERENCES
    assert set(target.label.tolist()) == {int(label)}


def test_who_is_called_is_drawn_by_the_seed_and_not_by_what_is_explained():
    label = asked(range(40)).inputs().target.label
    one, other = torch.nonzero(label == label[0]).flatten()[:2].tolist()
    drawn = [called(asked([node], random_graph(400, 0.01, seed=2)), seed)[0] for node, seed in ((3, 0), (3, 1), (3, 0))]
    nodes = [found.node_id[found.center].tolist() for found in drawn]
    assert nodes[0] == nodes[2]
    assert sorted(nodes[0]) != sorted(nodes[1])
    first, second = (called(asked([node]))[0] for node in (one, other))
    assert torch.equal(first.node_id, second.node_id)


def test_evidence_is_learned_once_for_each_class():
    task = asked(range(40))
    found = [learn_from_references(task, task.inputs(slice(node, node + 1)), 0, "induced") for node in range(40)]
    labels = task.inputs().target.label.tolist()
    assert len(task.heard) == len(set(labels))
    for one, label in zip(found, labels, strict=True):
        assert one is found[labels.index(label)]


def test_graphs_and_lonely_nodes_are_learned_from_themselves():
    graph, model = random_graph(8, seed=1), GraphModel()
    graphs = [input_graph(graph.x, graph.edge_index, {}, model)] * 3
    task = GraphTask(Predictor(model, level="graph"), graphs, [0], None)
    assert torch.isfinite(learn_from_references(task, task.inputs(), 0, "induced").usual).all()
    alone = asked([0], random_graph(1, seed=1))
    assert torch.isfinite(learn_from_references(alone, alone.inputs(), 0, "induced").usual).all()
    assert not hasattr(alone, "heard")


def test_a_small_instance_near_a_hub_is_explained():
    """Node 0 sees nodes 1 and 2; node 2 is a hub, whose leaves surround the instance and are more than the bound."""
    graph = graph_of([(0, 1), (1, 2), *((2, leaf) for leaf in range(3, 60))], 60)
    explainer = GFlowExplainer(max_graph_nodes=30, max_nodes=4)
    (found,) = explainer.explain(NodeModel(seed=6), graph, [0], model_config=CONFIG, progress=False)
    assert found.validate()


def test_one_node_is_explained_by_what_holds_many_and_the_same_in_company():
    graph, model = random_graph(40, 0.1, seed=2), NodeModel(seed=6)
    explainer = GFlowExplainer(max_nodes=4)
    alone = explainer.explain(model, graph, [3], model_config=CONFIG, progress=False)[0]
    among = explainer.explain(model, graph, [9, 3], model_config=CONFIG, progress=False)[1]
    torch.testing.assert_close(alone.node_mask, among.node_mask, atol=1e-5, rtol=0)


def test_what_was_learned_is_kept_for_later_calls_and_changes_nothing():
    data, model = random_graph(30, 0.1, 3), NodeModel()
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))

    def explained(explainer, node):
        calls.clear()
        found = explainer.explain(model, data, [node], model_config=CONFIG, progress=False)[0]
        return found, len(calls)

    label = model(data.x, data.edge_index).argmax(dim=1)
    first, second = torch.nonzero(label == label[0]).flatten()[:2].tolist()
    used, fresh = (GFlowExplainer(max_nodes=4) for _ in range(2))
    _, before = explained(used, first)
    later, after = explained(used, second)
    wanted, alone = explained(fresh, second)
    assert after < before
    assert after < alone
    torch.testing.assert_close(later.node_mask, wanted.node_mask)
    with torch.no_grad():
        model.second.lin.weight.mul_(0.9)
    assert explained(used, second)[1] > after


def test_a_node_without_neighbours_is_explained_by_what_was_learned_elsewhere():
    graph = random_graph(12, 0.2, seed=1)
    graph.x, graph.num_nodes = torch.cat([graph.x, torch.ones(1, 3)]), 13
    (found,) = GFlowExplainer(max_nodes=4).explain(NodeModel(), graph, [12], model_config=CONFIG, progress=False)
    assert [subgraph.nodes for subgraph in found.subgraphs] == [(12,)]
