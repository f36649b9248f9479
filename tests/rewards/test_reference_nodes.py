"""Which nodes serve as reference where one node is explained without a fit."""

from dataclasses import replace
from unittest.mock import patch

import pytest
import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.inputs import input_graph
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task import GraphTask, NodeTask
from gflowexplainer.rewards import reference_nodes
from gflowexplainer.rewards.reference_nodes import ReferenceNodes
from gflowexplainer.settings import Settings
from gflowexplainer.testing import GraphModel, NodeModel, graph_of, random_graph

SMALL = {"max_nodes": 4, "num_contexts": 4, "hidden": 16}


class Listening(NodeTask):
    """Notes the inputs that were asked for beside the explained ones."""

    def inputs_at(self, nodes):
        self.heard = [*getattr(self, "heard", []), super().inputs_at(nodes)]
        return self.heard[-1]


def asked(index, graph=None, target=None):
    graph, model = random_graph(40, 0.1, seed=2) if graph is None else graph, NodeModel(seed=6)
    return Listening(Predictor(model), input_graph(graph.x, graph.edge_index, {}, model), index, target)


def called(task, count, **settings):
    """Returns the inputs that a consensus would be learned from, and the class that is explained."""
    inputs = task.inputs()
    chosen = Settings(**SMALL, reference_nodes=count, **settings)
    with patch.object(reference_nodes, "find_consensus", side_effect=InstanceError("not learned here")):
        ReferenceNodes(task, chosen).consensus(inputs)
    (reference,) = task.heard
    return reference.instances, reference.target, inputs.target.label


@pytest.mark.parametrize("count", [6, 64])
def test_nodes_of_the_same_class_come_first(count):
    task = asked([3])
    every = task.labels_at(torch.arange(40))
    with torch.no_grad():
        graph = random_graph(40, 0.1, seed=2)
        assert torch.equal(every, NodeModel(seed=6)(graph.x, graph.edge_index).argmax(dim=1))
    instances, target, (label,) = called(task, count)
    nodes = instances.node_id[instances.center]
    assert torch.equal(target.label, every[nodes])
    assert len(set(nodes.tolist())) == len(nodes)
    same = int((target.label == label).sum())
    if count == 6:
        assert (len(nodes), same) == (6, 6)
    else:
        # More are wanted than there are: all that were called, of whatever class.
        assert len(nodes) <= 40
        assert same == int((every == label).sum())


def test_who_is_called_is_drawn_by_the_seed():
    drawn = [called(asked([3]), 6, seed=seed)[0] for seed in range(4)]
    nodes = [tuple(sorted(one.node_id[one.center].tolist())) for one in drawn]
    assert len(set(nodes)) > 1
    # Drawn from everywhere: on average they stand where the class does (21), not at the beginning of the graph (14).
    every = asked([3]).labels_at(torch.arange(40))
    early = [called(asked([3]), 2, seed=seed) for seed in range(24)]
    ids = torch.cat([one.node_id[one.center][target.label == label] for one, target, label in early])
    wanted = torch.nonzero(every == every[3]).double().mean()
    assert float(ids.double().mean()) == pytest.approx(float(wanted), abs=5)


def test_who_is_called_does_not_depend_on_what_else_is_asked():
    label = asked(range(40)).inputs().target.label
    one, other = torch.nonzero(label == label[0]).flatten()[:2].tolist()
    first, second = (called(asked([node]), 6)[0] for node in (one, other))
    assert torch.equal(first.node_id, second.node_id)


def test_a_consensus_is_learned_once_for_each_class():
    task = asked(range(40))
    reference = ReferenceNodes(task, Settings(**SMALL, reference_nodes=6))
    found = [reference.consensus(task.inputs(slice(node, node + 1))) for node in range(40)]
    labels = task.inputs().target.label
    assert len(task.heard) == len(labels.unique())
    for one, label in zip(found, labels.tolist(), strict=True):
        assert one is found[labels.tolist().index(label)]


@pytest.mark.parametrize("changes", [{"reference_nodes": 0}, {"reward": "context"}])
def test_nobody_is_called_without_need(changes):
    task = asked([3])
    assert ReferenceNodes(task, Settings(**{**SMALL, **changes})).consensus(task.inputs()) is None


def test_graphs_have_no_reference_nodes():
    graph, model = random_graph(8, seed=1), GraphModel()
    task = GraphTask(
        Predictor(model, level="graph"), [input_graph(graph.x, graph.edge_index, {}, model)] * 3, [0], None
    )
    assert ReferenceNodes(task, Settings(**SMALL)).consensus(task.inputs()) is None


def test_the_only_node_of_a_graph_has_no_reference_nodes():
    task = asked([0], random_graph(1, seed=1))
    assert ReferenceNodes(task, Settings(**SMALL)).consensus(task.inputs()) is None


@pytest.mark.parametrize(("work", "count"), [(1, 12), (8 << 20, 24)])
def test_where_instances_are_large_fewer_must_do(monkeypatch, work, count):
    monkeypatch.setattr(reference_nodes, "_WORK", work)
    task, asked_of = asked([3]), []
    learn = reference_nodes.find_consensus

    def watched(settings, inputs, **how):
        asked_of.append(len(inputs))
        return learn(settings, inputs, **how)

    monkeypatch.setattr(reference_nodes, "find_consensus", watched)
    ReferenceNodes(task, Settings(**SMALL, reference_nodes=24)).consensus(task.inputs())
    assert asked_of == [count]


@pytest.mark.parametrize("explained", [0.05, 0.5])
def test_what_does_not_predict_the_model_is_not_taken(monkeypatch, explained):
    """Then an instance is explained as it is without reference nodes, and the class is not asked about again."""
    task, found = asked([3]), []
    learn = reference_nodes.find_consensus

    def told(*args, **how):
        found.append(learn(*args, **how))
        return replace(found[-1], chosen=replace(found[-1].chosen, explained=explained))

    monkeypatch.setattr(reference_nodes, "find_consensus", told)
    reference = ReferenceNodes(task, Settings(**SMALL, reference_nodes=6))
    for _ in range(2):
        assert (reference.consensus(task.inputs()) is None) is (explained < 0.1)
    assert len(found) == 1


def test_a_small_instance_near_a_hub_has_reference_nodes():
    """Node 0 sees nodes 1 and 2; node 2 is a hub, whose leaves surround the instance and are more than the bound."""
    graph = graph_of([(0, 1), (1, 2), *((2, leaf) for leaf in range(3, 60))], 60)
    model = NodeModel(seed=6)
    known = input_graph(graph.x, graph.edge_index, {}, model)
    task = NodeTask(Predictor(model), known, [0], None, limit=30)
    inputs = task.inputs()
    assert inputs.instances.left_out is not None
    assert inputs.instances.num_nodes == 3
    assert ReferenceNodes(task, Settings(**SMALL)).consensus(inputs) is not None


def test_what_is_wrong_with_other_nodes_is_nobodys_business():
    graph = random_graph(30, 0.02, seed=3)
    far = torch.cat([graph.x, torch.full((20, 3), torch.nan)])
    graph.x, graph.num_nodes = far, 50
    task = asked([0], graph)
    assert ReferenceNodes(task, Settings(**SMALL)).consensus(task.inputs()) is None


def test_one_node_is_explained_by_what_holds_many():
    graph, model = random_graph(40, 0.1, seed=2), NodeModel(seed=6)
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    settings = {**SMALL, "epochs": 4, "seed": 0}
    with_others, without = (GFlowExplainer(**settings, reference_nodes=count) for count in (64, 0))
    alone = with_others.explain(model, graph, [3], model_config=config, progress=False)[0]
    among = with_others.explain(model, graph, [9, 3], model_config=config, progress=False)[1]
    # In another batch sums may have another order, which changes the last digits.
    torch.testing.assert_close(alone.node_mask, among.node_mask, atol=1e-5, rtol=0)
    itself = without.explain(model, graph, [3], model_config=config, progress=False)[0]
    assert float((alone.node_mask - itself.node_mask).abs().max()) > 1e-3


def test_what_was_learned_is_kept_for_later_calls_and_changes_nothing():
    data, model = random_graph(30, 0.1, 3), NodeModel()
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))

    def explained(explainer, node):
        calls.clear()
        found = explainer.explain(model, data, [node], model_config=config, progress=False)[0]
        return found, len(calls)

    label = model(data.x, data.edge_index).argmax(dim=1)
    first, second = torch.nonzero(label == label[0]).flatten()[:2].tolist()
    settings = {"max_nodes": 4, "epochs": 2, "num_samples": 8, "reference_nodes": 4, "num_contexts": 2}
    used, fresh = GFlowExplainer(**settings), GFlowExplainer(**settings)
    _, before = explained(used, first)
    later, after = explained(used, second)
    wanted, alone = explained(fresh, second)
    assert after < before
    assert after < alone
    torch.testing.assert_close(later.node_mask, wanted.node_mask)
    assert [s.nodes for s in later.subgraphs] == [s.nodes for s in wanted.subgraphs]
    with torch.no_grad():
        next(model.parameters()).mul_(0.9)
    assert explained(used, second)[1] > after


def test_where_asking_is_dear_the_smallest_instances_are_asked_about(monkeypatch):
    inputs = asked(range(40)).inputs()
    cost = inputs.predictor.cost(inputs.instances)
    everyone, rollouts = reference_nodes._cheapest(inputs)
    assert (len(everyone), rollouts) == (40, 256)
    monkeypatch.setattr(reference_nodes, "_WORK", 4 * int(cost.sort().values[:20].sum()))
    some, rollouts = reference_nodes._cheapest(inputs)
    assert (len(some), rollouts) == (20, 80)
    assert some.predictor.cost(some.instances).max() <= cost.sort().values[20]
    # In the order in which they were drawn.
    nodes = some.instances.node_id[some.instances.center]
    assert torch.equal(nodes, nodes.sort().values)
    monkeypatch.setattr(reference_nodes, "_WORK", 1)
    least, rollouts = reference_nodes._cheapest(inputs)
    assert (len(least), rollouts) == (12, 48)
