import copy
import itertools
from contextlib import contextmanager

import networkx as nx
import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.explain import Explainer, ModelConfig
from torch_geometric.explain.metric import characterization_score, fidelity, unfaithfulness
from torch_geometric.nn import GATConv, GCNConv, GINConv, GINEConv, SAGEConv, global_mean_pool

import gflowexplainer
from gflowexplainer import GFlowExplainer, SubgraphExplanation
from gflowexplainer.errors import CheckpointError, ConfigError, GFlowExplainerError, InstanceError, ModelError
from gflowexplainer.inference import explaining
from gflowexplainer.testing import EdgeFeatureModel, GraphModel, NodeModel, path, random_graph

QUICK = {
    "max_nodes": 4, "epochs": 3, "rollouts": 4, "num_contexts": 4, "hidden": 8, "num_samples": 16,
}  # fmt: skip
MODES = [
    ("multiclass_classification", "raw"),
    ("multiclass_classification", "probs"),
    ("multiclass_classification", "log_probs"),
    ("binary_classification", "raw"),
    ("binary_classification", "probs"),
    ("regression", "raw"),
]


class Net(nn.Module):
    """Two layers of one architecture, for any level, mode and return type."""

    def __init__(self, architecture, level, mode, return_type):
        super().__init__()
        torch.manual_seed(3)
        self.level, self.mode, self.return_type = level, mode, return_type
        layer = {
            "gcn": GCNConv,
            "gat": GATConv,
            "sage": SAGEConv,
            "gin": lambda a, b: GINConv(nn.Linear(a, b)),
            "edges": lambda a, b: GINEConv(nn.Linear(a, b), edge_dim=2),
        }[architecture]
        self.first, self.second = layer(3, 6), layer(6, 6)
        self.out = nn.Linear(6, 3 if mode == "multiclass_classification" else 1)

    def forward(self, x, edge_index, edge_attr=None, batch=None):
        more = () if edge_attr is None else (edge_attr,)
        x = self.second(self.first(x, edge_index, *more).relu(), edge_index, *more).relu()
        if self.level == "graph":
            x = global_mean_pool(x, batch if batch is not None else edge_index.new_zeros(x.size(0)))
        x = 2 * self.out(x)
        if self.return_type == "raw":
            return x
        if self.mode == "binary_classification":
            return x.sigmoid()
        return x.softmax(dim=1) if self.return_type == "probs" else x.log_softmax(dim=1)


def connect(model, algorithm, level="node", mode="multiclass_classification", return_type="raw", kind="model", **more):
    masks = {"node_mask_type": "object", "edge_mask_type": "object", **more}
    config = {"mode": mode, "task_level": level, "return_type": return_type}
    return Explainer(model, algorithm, explanation_type=kind, model_config=config, **masks)


def connected(explanation, nodes):
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    inside = set(nodes)
    graph.add_edges_from((u, v) for u, v in explanation.edge_index.t().tolist() if u in inside and v in inside)
    return nx.is_connected(graph)


def check(explanation, bound, num_nodes, num_edges):
    """Asserts everything that every explanation must be."""
    assert isinstance(explanation, SubgraphExplanation)
    assert explanation.validate()
    assert explanation.node_mask.shape == (num_nodes, 1)
    assert explanation.edge_mask.shape == (num_edges,)
    for mask in (explanation.node_mask, explanation.edge_mask):
        assert 0 <= float(mask.min()) <= float(mask.max()) <= 1
    subgraphs = explanation.subgraphs
    assert sum(s.probability for s in subgraphs) == pytest.approx(1)
    assert [s.probability for s in subgraphs] == sorted((s.probability for s in subgraphs), reverse=True)
    for subgraph in subgraphs:
        assert 1 <= len(subgraph) <= bound
        assert len(set(subgraph.nodes)) == len(subgraph)
        assert connected(explanation, subgraph.nodes)
    inside, both = torch.zeros(num_nodes), torch.zeros(num_edges)
    for subgraph in subgraphs:
        there = torch.zeros(num_nodes)
        there[list(subgraph.nodes)] = subgraph.probability
        inside += there
        both += torch.minimum(*there[explanation.edge_index])
    assert torch.allclose(inside, explanation.node_mask[:, 0], atol=1e-6)
    assert torch.allclose(both, explanation.edge_mask, atol=1e-6)


def same(one, other):
    # Probabilities of the policy are real numbers, which another order of summation may change in the last digits.
    torch.testing.assert_close(one.node_mask, other.node_mask, atol=1e-5, rtol=0)
    torch.testing.assert_close(one.edge_mask, other.edge_mask, atol=1e-5, rtol=0)
    # What is improbable may be dropped by a rounding, and changes its place.
    mine, theirs = ({frozenset(s.nodes): s for s in e.subgraphs} for e in (one, other))
    for nodes in mine.keys() | theirs.keys():
        a, b = mine.get(nodes), theirs.get(nodes)
        if a is None or b is None:
            assert (a or b).probability < 1e-3
            continue
        assert a.probability == pytest.approx(b.probability, rel=1e-3, abs=1e-5)
        assert a.reward == pytest.approx(b.reward, rel=1e-3)
        assert a.prediction_only == pytest.approx(b.prediction_only, abs=1e-5)
        assert a.prediction_without == pytest.approx(b.prediction_without, abs=1e-5)


@pytest.mark.parametrize("architecture", ["gcn", "gin", "gat", "sage", "edges"])
@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", ["model", "phenomenon"])
@pytest.mark.parametrize(("mode", "return_type"), MODES)
def test_every_task_inside_pyg(architecture, level, kind, mode, return_type):
    graph = random_graph(10, 0.2, seed=2)
    model = Net(architecture, level, mode, return_type)
    explainer = connect(model, GFlowExplainer(**QUICK), level, mode, return_type, kind)
    more = {"edge_attr": torch.rand(graph.num_edges, 2)} if architecture == "edges" else {}
    rows = graph.num_nodes if level == "node" else 1
    target = None
    if kind == "phenomenon":
        target = torch.rand(rows, 1) if mode == "regression" else torch.ones(rows, dtype=torch.long)
    index = 4 if level == "node" else None
    explanation = explainer(graph.x, graph.edge_index, target=target, index=index, **more)
    check(explanation, 4, graph.num_nodes, graph.num_edges)
    assert explanation.explained_node == (4 if level == "node" else None)
    best = explanation.subgraphs[0]
    if level == "node":
        assert all(s.nodes[0] == 4 for s in explanation.subgraphs)
    width = {"multiclass_classification": 3, "binary_classification": 2, "regression": 1}[mode]
    assert len(best.prediction_only) == len(best.prediction_without) == width
    assert (best.class_only is None) == (mode == "regression")
    assert explanation.certificate.distance is not None
    if mode != "regression":
        assert all(0 <= value <= 1 for value in fidelity(explainer, explanation))


def test_the_target_class_is_held_not_the_predicted_one():
    graph, model = random_graph(12, 0.2, seed=4), NodeModel(seed=2)
    every = [
        GFlowExplainer(**QUICK, reward="prediction").explain(model, graph, [5], target=[label])[0] for label in range(3)
    ]
    for label, explanation in enumerate(every):
        assert int(explanation.target[5]) == label
    rewards = [{frozenset(s.nodes): s.reward for s in e.subgraphs} for e in every]
    assert rewards[0] != rewards[1] != rewards[2]


def test_one_node_with_several_targets_in_one_batch():
    graph, model = random_graph(12, 0.2, seed=4), NodeModel(seed=2)
    algorithm = GFlowExplainer(**QUICK).fit(model, graph, [1, 2], progress=False)
    together = algorithm.explain(model, graph, [5, 5, 5], target=[0, 1, 2])
    for label, explanation in enumerate(together):
        same(explanation, algorithm.explain(model, graph, [5], target=[label])[0])
    assert {round(e.subgraphs[0].reward, 6) for e in together} != {round(together[0].subgraphs[0].reward, 6)}


@pytest.mark.parametrize("threshold", [("hard", 0.3), ("topk", 3), ("topk_hard", 3)])
def test_thresholds(threshold):
    graph, model = random_graph(10, 0.2, seed=2), NodeModel()
    explainer = connect(model, GFlowExplainer(**QUICK), threshold_config=threshold)
    explanation = explainer(graph.x, graph.edge_index, index=3)
    assert explanation.validate()
    assert len(explanation.subgraphs) > 0
    assert explanation.certificate.num_subgraphs > 0
    if threshold[0] != "hard":
        assert int((explanation.edge_mask > 0).sum()) <= 3


def test_masks_that_were_not_asked_for_are_left_out():
    graph, model = random_graph(10, 0.2, seed=2), NodeModel()
    for kept, left in itertools.permutations(["node_mask", "edge_mask"]):
        explainer = connect(model, GFlowExplainer(**QUICK), **{f"{left}_type": None})
        explanation = explainer(graph.x, graph.edge_index, index=3)
        assert kept in explanation
        assert left not in explanation
        assert explanation.validate()
        fidelity(explainer, explanation)
        nodes = {node for subgraph in explanation.subgraphs for node in subgraph.nodes}
        assert nodes <= set(explanation.to_networkx())


def test_metrics_of_pyg():
    graph, model = random_graph(10, 0.2, seed=2), NodeModel()
    explainer = connect(model, GFlowExplainer(**QUICK))
    explanation = explainer(graph.x, graph.edge_index, index=3)
    plus, minus = fidelity(explainer, explanation)
    assert 0 <= unfaithfulness(explainer, explanation) <= 1
    characterization_score(torch.tensor(plus), torch.tensor(minus))
    direct = explainer.algorithm.explain(model, graph, 3)[0]
    same(direct, explanation)
    assert fidelity(explainer, direct) == (plus, minus)
    assert unfaithfulness(explainer, direct) == pytest.approx(unfaithfulness(explainer, explanation))


def test_what_is_not_supported_is_refused_with_a_reason(caplog):
    with pytest.raises(ValueError, match="does not support"):
        connect(NodeModel(), GFlowExplainer(), "edge", node_mask_type="common_attributes")
    assert "GFlowExplainer" in caplog.text
    assert "common_attributes" in caplog.text


def node_case(**changes):
    graph, model = random_graph(16, 0.15, seed=1), NodeModel(seed=1)
    return graph, model, GFlowExplainer(**{**QUICK, **changes})


def graph_case(**changes):
    graphs = [random_graph(8, 0.2, seed=seed) for seed in range(6)]
    return graphs, GraphModel(), GFlowExplainer(**{**QUICK, **changes})


@pytest.mark.parametrize("preset", ["default", "context"])
@pytest.mark.parametrize("fitted", [True, False])
def test_a_node_is_explained_the_same_alone_and_in_any_batch(fitted, preset):
    graph, model, algorithm = node_case(preset=preset)
    if fitted:
        algorithm.fit(model, graph, [0, 1, 2], progress=False)
    batch = algorithm.explain(model, graph, [3, 9, 12], progress=False)
    turned = algorithm.explain(model, graph, [12, 3], progress=False)
    alone = [algorithm.explain(model, graph, node)[0] for node in (3, 9, 12)]
    pairs = [*zip(batch, alone, strict=True), (turned[0], batch[2]), (turned[1], batch[0])]
    for one, other in pairs:
        assert [s.nodes for s in one.subgraphs][:1] == [s.nodes for s in other.subgraphs][:1]
        assert torch.allclose(one.node_mask, other.node_mask, atol=1e-4)
        assert torch.allclose(one.edge_mask, other.edge_mask, atol=1e-4)
        same(one, other)


@pytest.mark.parametrize("fitted", [True, False])
def test_a_graph_is_explained_the_same_alone_and_in_any_batch(fitted):
    graphs, model, algorithm = graph_case()
    if fitted:
        algorithm.fit(model, graphs[:3], progress=False)
    batch = algorithm.explain(model, graphs, progress=False)
    assert len(batch) == 6
    for explanation, graph in zip(batch, graphs, strict=True):
        check(explanation, 4, graph.num_nodes, graph.num_edges)
    same(algorithm.explain(model, graphs[4])[0], batch[4])
    same(algorithm.explain(model, graphs, index=[5, 2], progress=False)[1], batch[2])
    same(algorithm.explain(model, Batch.from_data_list(graphs), index=5)[0], batch[5])
    inside = connect(model, algorithm, "graph")(graphs[1].x, graphs[1].edge_index)
    same(inside, batch[1])


def test_same_seed_same_answer_another_seed_another():
    graph, model, _ = node_case()
    answers = [GFlowExplainer(**QUICK, seed=seed).explain(model, graph, 4)[0] for seed in (0, 0, 1)]
    same(answers[0], answers[1])
    assert torch.equal(answers[0].node_mask, answers[1].node_mask)
    assert torch.equal(answers[0].edge_mask, answers[1].edge_mask)
    assert not torch.equal(answers[0].node_mask, answers[2].node_mask)


def test_graphs_in_a_union_inside_pyg():
    graphs, model, algorithm = graph_case()
    union = Batch.from_data_list(graphs)
    explainer = connect(model, algorithm, "graph")
    explanation = explainer(union.x, union.edge_index, batch=union.batch, index=2)
    check(explanation, 4, union.num_nodes, union.num_edges)
    nodes = torch.nonzero(explanation.node_mask[:, 0]).flatten()
    assert set(union.batch[nodes].tolist()) == {2}
    alone = algorithm.explain(model, graphs[2])[0]
    offset = int(union.ptr[2])
    assert [tuple(n - offset for n in s.nodes) for s in explanation.subgraphs] == [s.nodes for s in alone.subgraphs]
    fidelity(explainer, explanation)
    whole = explainer(union.x, union.edge_index, batch=union.batch)  # all graphs of the batch
    assert len(whole.explanations) == len(graphs)
    mine = union.batch == 2
    assert torch.allclose(whole.node_mask[mine], explanation.node_mask[mine], atol=1e-6)


@pytest.mark.parametrize("index", [[3, 7], torch.tensor([3, 7]), torch.arange(12) % 4 == 3])
def test_several_nodes_inside_pyg(index):
    graph, model = random_graph(12, 0.2, seed=3), NodeModel()
    algorithm = GFlowExplainer(**QUICK)
    explainer = connect(model, algorithm)
    joint = explainer(graph.x, graph.edge_index, index=index)
    many = algorithm.explain(model, graph, index, progress=False)
    assert [e.explained_node for e in joint.explanations] == [e.explained_node for e in many]
    assert torch.allclose(joint.node_mask, torch.stack([e.node_mask for e in many]).amax(dim=0), atol=1e-6)
    assert torch.allclose(joint.edge_mask, torch.stack([e.edge_mask for e in many]).amax(dim=0), atol=1e-6)
    assert joint.validate()
    union = {node for e in many for node in e.subgraphs[0].nodes}
    assert joint.get_explanation_subgraph().num_nodes == len(union)
    assert joint.threshold("topk", 1).get_explanation_subgraph().num_nodes == 1
    fidelity(explainer, joint)
    assert "node 7" in repr(joint)
    assert "<iframe" in joint._repr_html_()


def test_graph_model_without_batch_argument():
    class Alone(GraphModel):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index)

    graphs, _, algorithm = graph_case()
    model = Alone()
    algorithm.fit(model, graphs[:2], progress=False)
    found = algorithm.explain(model, graphs[:3])
    wanted = GFlowExplainer(**QUICK).fit(GraphModel(), graphs[:2], progress=False).explain(GraphModel(), graphs[:3])
    assert len(found) == 3
    for one, other in zip(found, wanted, strict=True):
        same(one, other)


def test_edge_features_and_weights_pass_through():
    graphs = []
    for seed in range(3):
        graph = random_graph(8, 0.2, seed=seed)
        graph.edge_attr = torch.rand(graph.num_edges, 2)
        graphs.append(graph)
    model, algorithm = EdgeFeatureModel(), GFlowExplainer(**QUICK)
    config = {"mode": "regression", "task_level": "graph"}
    algorithm.fit(model, graphs, progress=False, model_config=config)
    explanations = algorithm.explain(model, graphs)
    assert all("edge_attr" in explanation for explanation in explanations)
    other = copy.copy(graphs[0])
    other.edge_attr = torch.rand(other.num_edges, 2)
    twice = algorithm.explain(model, [graphs[0], other])  # same nodes and edges: told apart by what they carry
    same(twice[0], explanations[0])
    assert twice[0].subgraphs[0].prediction_only != twice[1].subgraphs[0].prediction_only

    graph, model, algorithm = node_case()
    weight = torch.rand(graph.num_edges)
    given = algorithm.explain(model, graph, 3, edge_weight=weight)[0]
    graph.edge_weight = weight
    same(algorithm.explain(model, graph, 3)[0], given)
    same(connect(model, algorithm)(graph.x, graph.edge_index, index=3, edge_weight=weight), given)
    graph.edge_weight = None
    assert not torch.equal(algorithm.explain(model, graph, 3)[0].prediction, given.prediction)


def test_shared_arguments_reach_the_model():
    class Scaled(NodeModel):
        def forward(self, x, edge_index, *, scale, names=None):
            assert names is None
            return scale * super().forward(x, edge_index)

    graph, _, algorithm = node_case()
    explanation = algorithm.explain(Scaled(), graph, 3, scale=2.0, names=None)[0]
    assert explanation.scale == 2.0
    assert explanation._model_args == ["scale"]


def test_self_loops_and_isolated_nodes():
    graph = path(4)
    graph.edge_index = torch.cat([graph.edge_index, torch.tensor([[1, 5], [1, 5]])], dim=1)
    graph.x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    first, second, lonely = GFlowExplainer(**QUICK).explain(NodeModel(), graph, [1, 5, 4], progress=False)
    assert first.edge_mask[-2] == first.node_mask[1, 0] == 1
    assert first.edge_mask[-1] == 0
    for explanation, node in ((second, 5), (lonely, 4)):
        assert [s.nodes for s in explanation.subgraphs] == [(node,)]
        assert explanation.certificate.distance == pytest.approx(0, abs=1e-6)  # a probability in single precision


@contextmanager
def updates_counted():
    """Counts the steps of all optimizers."""
    count = []
    handle = register_optimizer_step_pre_hook(lambda *_: count.append(1))
    try:
        yield count
    finally:
        handle.remove()


@pytest.mark.parametrize("preset", ["default", "context"])
def test_fit_explains_unseen_instances_without_training(preset):
    graph, model, algorithm = node_case(epochs=5, preset=preset)
    records = []
    with updates_counted() as count:
        same_one = algorithm.fit(model, graph, range(8), progress=False, callback=lambda _, r: records.append(r))
        # Only a reward that asks the model is learned by a network.
        assert (len(count) >= len(records) == 5) if preset == "context" else not count
    assert same_one is algorithm
    assert algorithm.is_fitted
    with updates_counted() as count:
        explanations = algorithm.explain(model, graph, range(8, 16))
    assert not count
    for explanation in explanations:
        if preset == "default":
            check(explanation, 4, graph.num_nodes, graph.num_edges)


@pytest.mark.parametrize("level", ["node", "graph"])
def test_unseen_instances_are_explained_without_asking_for_rewards(level):
    graphs, model, algorithm = node_case() if level == "node" else graph_case()
    trained, unseen = ([0, 1, 2], [5, 9]) if level == "node" else ([0, 1, 2], [3, 5])
    algorithm.fit(model, graphs, trained, progress=False)
    asked = []
    handle = model.register_forward_pre_hook(lambda _, given: asked.append(given[0].size(0)))
    explanations = algorithm.explain(model, graphs, unseen)
    sizes = [int((e.node_mask >= 0).sum()) for e in explanations]
    # The model is evaluated on the whole, without each single node, and once as it was when fitted; not on subgraphs.
    rows = sum(asked)
    assert rows <= 2 * sum(size * (size + 4) for size in sizes)
    listed = sum(len(explanation.subgraphs) for explanation in explanations)
    assert sum(asked) == rows
    assert listed > sum(sizes)
    for explanation in explanations:
        assert len(explanation.subgraphs[0].prediction_only) == len(explanation.subgraphs[0].prediction_without)
    handle.remove()
    assert sum(asked) > rows


def test_instances_for_which_a_gpu_has_no_room_are_explained_in_halves(monkeypatch):
    graph, model, algorithm = node_case()
    algorithm.fit(model, graph, [0, 1, 2], progress=False)
    together = algorithm.explain(model, graph, range(10))
    sample, sizes = explaining.explain_instances, []

    def with_little_room(sampler, options):
        sizes.append(len(sampler.instances))
        if len(sampler.instances) > 3:
            raise torch.cuda.OutOfMemoryError
        return sample(sampler, options)

    monkeypatch.setattr(explaining, "explain_instances", with_little_room)
    apart = algorithm.explain(model, graph, range(10))
    assert sizes == [10, 5, 3, 2, 5, 3, 2]
    # Batches of another size are summed in another order.
    torch.testing.assert_close(together.node_mask.to_dense(), apart.node_mask.to_dense(), atol=1e-6, rtol=0)
    monkeypatch.setattr(explaining, "explain_instances", refuse)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        algorithm.explain(model, graph, range(2))


def refuse(*_, **__):
    raise torch.cuda.OutOfMemoryError


def test_an_interrupted_fit_is_taken_up_again(tmp_path):
    graph, model, algorithm = node_case(epochs=12, preset="context")
    straight = algorithm.fit(model, graph, [0, 1, 2], progress=False)

    def interrupt(trainer, record):
        if record["iteration"] == 5:
            raise KeyboardInterrupt

    again = GFlowExplainer(preset="context", **{**QUICK, "epochs": 12})
    with pytest.raises(KeyboardInterrupt):
        again.fit(model, graph, [0, 1, 2], folder=tmp_path, progress=False, callback=interrupt)
    assert not again.is_fitted
    with pytest.raises(CheckpointError, match="not finished"):
        GFlowExplainer.load(tmp_path)
    seen = []
    again.fit(model, graph, [0, 1, 2], folder=tmp_path, progress=False, callback=lambda _, r: seen.append(r))
    assert len(seen) < 12
    for name, value in straight._fitted.sampler.network.items():
        assert torch.equal(value, again._fitted.sampler.network[name])
    same(GFlowExplainer.load(tmp_path).explain(model, graph, 9)[0], straight.explain(model, graph, 9)[0])


@pytest.mark.parametrize("preset", ["default", "context"])
def test_save_and_load(tmp_path, preset):
    graphs, model, algorithm = graph_case(preset=preset, seed=5)
    algorithm.fit(model, graphs[:3], progress=False)
    algorithm.save(tmp_path / "here")
    loaded = GFlowExplainer.load(tmp_path / "here")
    assert repr(loaded) == repr(algorithm)
    assert loaded.settings == algorithm.settings
    for one, other in zip(loaded.explain(model, graphs), algorithm.explain(model, graphs), strict=True):
        same(one, other)


def test_the_model_is_handed_back_as_it_came():
    graph, _, algorithm = node_case()
    model = NodeModel()
    model.train()
    model.second.eval()
    graph.x.requires_grad_(True)
    before = copy.deepcopy(model.state_dict())
    state = torch.get_rng_state()
    algorithm.fit(model, graph, [0, 1], progress=False).explain(model, graph, [2])
    GFlowExplainer(**QUICK).explain(model, graph, [2])
    assert torch.equal(state, torch.get_rng_state())
    assert [m.training for m in model.modules()] == [True, True, *[True] * 2, False, *[False] * 2]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert graph.x.grad is None
    assert not any(m._forward_hooks for m in model.modules())
    with pytest.raises(ModelError):
        algorithm.explain(model, graph, [2], edge_weight="no tensor")
    assert model.training
    assert not model.second.training


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_from_within_no_grad(mode):
    graph, model, algorithm = node_case()
    outside = algorithm.explain(model, graph, 3)[0]
    with mode():
        inside = GFlowExplainer(**QUICK).explain(model, graph, 3)[0]
    same(inside, outside)
    assert not inside.node_mask.requires_grad


@pytest.mark.parametrize("fit", [True, False])
def test_a_model_of_double_precision(fit):
    graph, model, algorithm = node_case()
    graph.x, model = graph.x.double(), model.double()
    if fit:
        algorithm.fit(model, graph, [0, 1], progress=False)
    explanation = algorithm.explain(model, graph, 3)[0]
    check(explanation, 4, graph.num_nodes, graph.num_edges)
    assert explanation.certificate.distance is not None


def test_level_is_found_out():
    graph, model, algorithm = node_case()
    graph.y = torch.zeros(16, dtype=torch.long)
    assert len(algorithm.explain(model, graph, progress=False)) == 16
    graphs, model, algorithm = graph_case()
    assert len(algorithm.explain(model, graphs[0])) == 1
    assert algorithm.explain(model, graphs[0])[0].explained_node is None


@pytest.mark.parametrize("preset", ["context", "paper", "sequence", "graph"])
def test_presets(preset):
    graphs, model, _ = graph_case()
    algorithm = GFlowExplainer(preset=preset, max_nodes=4, epochs=2, num_samples=8)
    algorithm.fit(model, graphs[:3], progress=False)
    for explanation in algorithm.explain(model, graphs[3:]):
        assert explanation.validate()
        assert explanation.certificate.distance is not None


def test_training_brings_the_network_near_its_target():
    graph, model = path(6), NodeModel(seed=3)
    short, long = (
        GFlowExplainer(preset="context", max_nodes=3, beta=4.0, epochs=epochs).explain(model, graph, 2)[0].certificate
        for epochs in (1, 100)
    )
    assert long.num_subgraphs == 6
    assert long.distance < 0.1 < short.distance


def test_import_is_light_and_small():
    classes = {"ExplanationList", "GFlowExplainer", "SubgraphExplanation", "TypedExplanation"}
    assert set(gflowexplainer.__all__) == classes | {"__version__", "adapt", "motifs"}
    assert {*gflowexplainer.__all__, "sources", "bulk"} <= set(dir(gflowexplainer))
    with pytest.raises(AttributeError, match="has no attribute"):
        gflowexplainer.Nothing  # noqa: B018


# Wrong uses -----------------------------------------------------------------------------------------------------------

NODE = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
GRAPH = {**NODE, "task_level": "graph"}


def explain(model=None, data=None, index=3, config=NODE, algorithm=None, **more):
    model = NodeModel() if model is None else model
    data = random_graph(10, 0.2, seed=2) if data is None else data
    algorithm = GFlowExplainer(**QUICK) if algorithm is None else algorithm
    return algorithm.explain(model, data, index, model_config=config, **more)


def changed(**fields):
    graph = random_graph(10, 0.2, seed=2)
    for name, value in fields.items():
        graph[name] = value
    return graph


def hetero():
    data = HeteroData()
    data["a"].x = torch.zeros(20, 3)
    data["a", "to", "a"].edge_index = torch.tensor([[0], [1]])
    return data


class Failing(NodeModel):
    def forward(self, x, edge_index):
        raise RuntimeError("no")


class TwoOutputs(NodeModel):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index), None


class Nan(NodeModel):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index) * torch.nan


def inside(**more):
    graph = random_graph(10, 0.2, seed=2)
    return connect(NodeModel(), GFlowExplainer(**QUICK))(graph.x, graph.edge_index, **more)


def fitted():
    return GFlowExplainer(**QUICK).fit(NodeModel(), random_graph(10, 0.2, seed=2), [1], progress=False)


WRONG = {
    "float index": (lambda: explain(index=3.0), InstanceError, "whole numbers"),
    "float index inside PyG": (lambda: inside(index=3.0), InstanceError, "whole numbers"),
    "index out of range": (lambda: explain(index=10), InstanceError, r"node 10.*10 nodes"),
    "negative index": (lambda: explain(index=-1), InstanceError, "node -1"),
    "empty index": (lambda: explain(index=[]), InstanceError, "empty"),
    "index of words": (lambda: explain(index="three"), InstanceError, "node ids"),
    "mask of wrong length": (lambda: explain(index=torch.ones(4, dtype=torch.bool)), InstanceError, "4 entries"),
    "graph model asked for a node": (lambda: explain(GraphModel()), ModelError, "node-level"),
    "node model asked for a graph": (lambda: explain(index=None, config=GRAPH), ModelError, "graph-level"),
    "graph task asked for a node": (lambda: explain(GraphModel(), config=GRAPH), InstanceError, "graph 3"),
    "float position of a graph": (lambda: explain(GraphModel(), index=0.5, config=GRAPH), InstanceError, "whole"),
    "list for a node task": (lambda: explain(data=[path(3), path(4)], index=0), InstanceError, "one graph"),
    "no graphs": (lambda: explain(GraphModel(), [], None, GRAPH), InstanceError, "no graph"),
    "no nodes": (lambda: explain(data=changed(x=torch.zeros(0, 3))), InstanceError, "no nodes"),
    "no features": (lambda: explain(data=Data(edge_index=path(3).edge_index)), InstanceError, "'x'"),
    "integer features": (lambda: explain(data=changed(x=torch.zeros(10, 3).long())), ModelError, r"pass x.float\(\)"),
    "NaN features": (lambda: explain(data=changed(x=torch.full((10, 3), torch.nan))), InstanceError, "NaN"),
    "edges of int32": (lambda: explain(data=changed(edge_index=path(3).edge_index.int())), InstanceError, "int64"),
    "edges to nowhere": (lambda: explain(data=changed(edge_index=torch.tensor([[0], [99]]))), InstanceError, "99"),
    "edges the wrong way": (lambda: explain(data=changed(edge_index=path(5).edge_index.t())), InstanceError, "shape"),
    "heterogeneous, but the model is not": (lambda: explain(data=hetero()), ModelError, "NodeModel failed"),
    "heterogeneous without relations": (
        lambda: GFlowExplainer()(NodeModel(), {"a": torch.zeros(2, 3)}, {}, index=0),
        InstanceError,
        "no relation",
    ),
    "data of another kind": (lambda: explain(data=7), InstanceError, "got int"),
    "model of another kind": (lambda: explain(model="gcn"), ModelError, "Module"),
    "model elsewhere": (lambda: explain(NodeModel().to("meta")), InstanceError, "on cpu, but the model on meta"),
    "class that does not exist": (lambda: explain(target=[7]), InstanceError, "class 7"),
    "fractional class": (lambda: explain(target=[0.5]), InstanceError, "whole numbers"),
    "targets of wrong number": (lambda: explain(target=[1, 0, 1]), InstanceError, "3 rows"),
    "several classes each": (lambda: explain(target=torch.ones(1, 3)), InstanceError, "3 columns"),
    "links that nobody names": (lambda: explain(config={**NODE, "task_level": "edge"}), InstanceError, "edge_label"),
    "unknown mode": (lambda: explain(config={**NODE, "mode": "ranking"}), ConfigError, "ranking"),
    "wrong mode": (lambda: explain(config={**NODE, "mode": "binary_classification"}), ModelError, "one column"),
    "wrong return type": (lambda: explain(config={**NODE, "return_type": "probs"}), ModelError, "no probs"),
    "failing model": (lambda: explain(Failing()), ModelError, "no"),
    "model with two outputs": (lambda: explain(TwoOutputs()), ModelError, "must return a tensor"),
    "model that returns NaN": (lambda: explain(Nan()), ModelError, "NaN"),
    "model without layers": (lambda: explain(nn.Linear(3, 2)), ConfigError, "num_hops"),
    "argument the model does not take": (lambda: explain(colour=1), ModelError, "colour"),
    "batch size": (lambda: explain(batch_size=3), InstanceError, "batch_size"),
    "batch of floats": (
        lambda: explain(GraphModel(), index=None, config=GRAPH, batch=torch.zeros(10)),
        InstanceError,
        "int64",
    ),
    "several graphs in one Data": (
        lambda: explain(
            GraphModel(), changed(edge_index=torch.tensor([[0], [1]])), None, GRAPH, batch=torch.arange(10) // 5
        ),
        InstanceError,
        "list",
    ),
    "edges between graphs": (
        lambda: explain(GraphModel(), index=None, config=GRAPH, batch=torch.arange(10) // 5),
        InstanceError,
        "joins two graphs",
    ),
    "features of different width": (
        lambda: explain(GraphModel(), [path(3), path(3, width=4)], None, GRAPH, algorithm=None),
        GFlowExplainerError,
        "width|mat1",
    ),
    "another model than fitted": (lambda: fitted().explain(NodeModel(seed=9), path(4), 0), ModelError, "another model"),
    "another task than fitted": (
        lambda: explain(algorithm=fitted(), config={**NODE, "return_type": "log_probs"}),
        (ConfigError, ModelError),
        "fitted for|no log_probs",
    ),
    "unknown setting": (lambda: GFlowExplainer(max_node=3), ConfigError, "max_nodes"),
    "unknown preset": (lambda: GFlowExplainer(preset="papper"), ConfigError, "paper"),
    "unknown reward": (lambda: GFlowExplainer(reward="contexts"), ConfigError, "'context'"),
    "no samples": (lambda: GFlowExplainer(num_samples=0), ConfigError, "num_samples"),
    "size as text": (lambda: GFlowExplainer(max_nodes="8"), ConfigError, "whole number"),
    "fit by identities": (
        lambda: GFlowExplainer(node_identities=True).fit(NodeModel(), path(4), [0]),
        ConfigError,
        "node_identities",
    ),
    "save before fit": (lambda: GFlowExplainer().save("nowhere"), ConfigError, "Call fit first"),
    "load from nowhere": (lambda: GFlowExplainer.load("nowhere"), CheckpointError, "There is no"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses_get_a_clear_error(name):
    use, kind, says = WRONG[name]
    with pytest.raises(kind, match=says) as caught:
        use()
    assert isinstance(caught.value, GFlowExplainerError)


def test_config_of_pyg_is_taken_from_the_explainer():
    graph = random_graph(10, 0.2, seed=2)
    model = Net("gcn", "node", "regression", "raw")
    algorithm = GFlowExplainer(**QUICK)
    connect(model, algorithm, mode="regression")
    explanation = algorithm.explain(model, graph, 2)[0]
    assert explanation._model_config == ModelConfig("regression", "node", "raw")
    assert explanation.subgraphs[0].class_only is None


@pytest.mark.parametrize("size", [1, 2, 6])
def test_without_a_fit_a_subgraph_is_as_large_as_was_asked_for(size: int) -> None:
    steps = torch.arange(size - 1)
    ends = torch.stack([torch.cat([steps, steps + 1]), torch.cat([steps + 1, steps])])
    graph = Data(x=torch.randn(size, 3, generator=torch.Generator().manual_seed(1)), edge_index=ends)
    e = GFlowExplainer(max_nodes=4, seed=0).explain(GraphModel(), [graph], progress=False)[0]
    assert {len(subgraph) for subgraph in e.subgraphs} == set(range(1, min(size, 4) + 1))
    assert e.error == 0
    assert e.summary().to_dict()["error"] == 0
    assert not any("may be off" in warning for warning in e.warnings)
    assert e.certificate.distance == pytest.approx(0, abs=1e-9)
