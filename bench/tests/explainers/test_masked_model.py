import copy

import pytest
import torch
from torch_geometric.explain import Explainer, GNNExplainer

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject, create
from gflowbench.explainers.masked_model import MaskedModel, differentiable
from gflowexplainer.errors import ConfigError
from gflowexplainer.testing import NodeModel

PEERS = ["gnnexplainer", "pgexplainer", "graphmask", "saliency", "integrated-gradients"]
QUICK = {"gnnexplainer": {"epochs": 3}, "pgexplainer": {"epochs": 2}, "graphmask": {"epochs": 2}}


def test_without_a_mask_the_model_answers_as_on_the_whole_graph(either_subject):
    graphs = MaskedModel.of(either_subject)
    ones = torch.ones(graphs.edge_owner.numel())
    with differentiable(either_subject.predictor):
        output = graphs(ones, sigmoid=False)
    torch.testing.assert_close(output.softmax(dim=1), either_subject.target.prediction)
    expected = -either_subject.target.prediction.max(dim=1).values.log()
    torch.testing.assert_close(graphs.losses(output), expected)


def test_edges_from_outside_carry_nothing_that_reaches_the_explained_node(node_subject):
    graphs = MaskedModel.of(node_subject)
    mask = torch.zeros(graphs.edge_owner.numel())
    mask[graphs.own] = 1
    assert int((mask == 0).sum()) > 0
    with differentiable(node_subject.predictor):
        output = graphs(mask, sigmoid=False)
    torch.testing.assert_close(output.softmax(dim=1), node_subject.target.prediction)


def state(model):
    """Everything of a model that can be compared."""
    seen = {}
    for name, module in model.named_modules():
        seen[name] = {
            key: value
            for key, value in vars(module).items()
            if not key.startswith("_") or key in ("_explain", "_edge_mask", "_loop_mask", "_apply_sigmoid")
        }
        seen[name]["parameters"] = set(module._parameters)
        seen[name]["names"] = set(vars(module))
        seen[name]["hooks"] = len(module._forward_hooks)
    return seen


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_hands_the_model_back_as_it_came(name, node_subject):
    model = node_subject.predictor.model
    model.train()
    model.first.bias.requires_grad_(False)
    before, weights = state(model), copy.deepcopy(model.state_dict())
    explainer = create(name, **QUICK.get(name, {}))
    explainer.fit(node_subject, 0)
    explainer.explain(node_subject, 0).check(node_subject.instances, name)
    after = state(model)
    assert before == after
    assert [p.requires_grad for p in model.parameters()] == [False, True, True, True]
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", PEERS)
def test_same_seed_same_answer_and_the_global_random_state_is_left_alone(name, either_subject):
    answers = []
    for noise in (1, 2):
        torch.manual_seed(noise)
        torch.rand(noise)
        drawn = torch.get_rng_state()
        explainer = create(name, **QUICK.get(name, {}))
        explainer.fit(either_subject, 3)
        answers.append(explainer.explain(either_subject, 3).edge)
        assert torch.equal(torch.get_rng_state(), drawn)
    assert torch.equal(*answers)


@pytest.mark.parametrize("name", PEERS)
def test_settings_that_make_no_sense_are_refused(name):
    with pytest.raises(ConfigError, match="'max_nodes' must be positive"):
        create(name, max_nodes=0)
    wrong = {"saliency": "epochs", "integrated-gradients": "steps"}.get(name, "epochs")
    with pytest.raises(ConfigError, match=wrong):
        create(name, **{wrong: 0})


def test_a_model_of_double_precision_is_explained_too(random_nodes):
    benchmark = Benchmark.from_graphs([random_nodes], task="node", index=[0, 5], num_classes=3)
    benchmark.graphs[0].x = benchmark.graphs[0].x.double()
    subject = Subject.of(NodeModel().double(), benchmark)
    for name in set(PEERS) - {"graphmask"}:  # PyG's gates are of single precision
        explainer = create(name, **QUICK.get(name, {}))
        explainer.fit(subject, 0)
        scores = explainer.explain(subject, 0)
        scores.check(subject.instances, name)
        assert float(scores.edge.max()) > float(scores.edge.min()), name  # something is told apart


@pytest.mark.parametrize("name", ["gnnexplainer", "pgexplainer"])
def test_what_pyg_left_in_the_layers_changes_nothing(name, node_subject, random_nodes):
    def scores():
        explainer = create(name, epochs=5)
        explainer.fit(node_subject, 0)
        return explainer.explain(node_subject, 0).edge

    expected = scores()
    explainer = Explainer(
        node_subject.predictor.model,
        GNNExplainer(epochs=2),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    explainer(random_nodes.x, random_nodes.edge_index, index=0)
    left = [set(layer._parameters) for layer in node_subject.predictor.model.modules()]
    assert any("_edge_mask" in names for names in left)
    assert torch.equal(scores(), expected)
    assert [set(layer._parameters) for layer in node_subject.predictor.model.modules()] == left
