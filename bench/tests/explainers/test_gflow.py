import networkx as nx
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

from gflowbench.datasets.benchmark import Benchmark
from gflowbench.datasets.motif_truth import complete_ground_truth
from gflowbench.explainers.gflow import GFlow
from gflowbench.explainers.interface import Subject
from gflowbench.explainers.registry import create
from gflowbench.protocol import Contestant, Loaded, Problem, evaluate
from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import ConfigError
from gflowexplainer.report.truth import own_motif
from gflowexplainer.testing import GraphModel, NodeModel, random_graph

SMALL = {"max_nodes": 4, "epochs": 3, "rollouts": 4, "num_contexts": 4, "hidden": 16, "num_samples": 16}


def with_motif(graph, labels):
    """Nodes 0 to 2 are the motif."""
    graph.motif_id = torch.where(torch.arange(graph.num_nodes) < 3, 0, -1)
    graph.y = torch.zeros(labels, dtype=torch.long)
    return complete_ground_truth(graph)


DATA = {
    "node": [with_motif(random_graph(14, 0.15, seed=2), 14)],
    "graph": [with_motif(random_graph(8, 0.2, seed=seed), 1) for seed in range(4)],
}


def benchmark(task):
    index = [0, 1, 9] if task == "node" else None
    return Benchmark.from_graphs(DATA[task], task=task, index=index, num_classes=3 if task == "node" else 2)


def subject(task):
    return Subject.of(NodeModel() if task == "node" else GraphModel(), benchmark(task))


@pytest.mark.parametrize("name", ["gflow", "gflow-context"])
@pytest.mark.parametrize("task", ["node", "graph"])
def test_scores_are_probabilities_and_the_order_is_connected(task, name):
    about = subject(task)
    explainer = create(name, **SMALL)
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


def as_a_user(about, task, seed):
    """Explains by the public class alone, from plain graphs and ids."""
    algorithm = GFlowExplainer(seed=seed, **SMALL)
    data = [Data(x=graph.x, edge_index=graph.edge_index) for graph in DATA[task]]
    given = data[0] if task == "node" else data
    config = {"mode": "multiclass_classification", "task_level": task, "return_type": "raw"}
    index = about.index.tolist()
    algorithm.fit(about.model, given, index, progress=False, model_config=config)
    return algorithm.explain(about.model, given, index, progress=False, model_config=config)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("task", ["node", "graph"])
def test_scores_are_the_masks_that_a_user_gets_bit_by_bit(task, seed):
    about = subject(task)
    explainer = create("gflow", **SMALL)
    explainer.fit(about, seed)
    scores, instances = explainer.explain(about, seed), about.instances
    explanations = as_a_user(about, task, seed)
    assert len(explanations) == len(about)
    for i, explanation in enumerate(explanations):
        nodes = instances.owner == i
        edges = slice(int(instances.edge_ptr[i]), int(instances.edge_ptr[i + 1]))
        assert torch.equal(scores.node[nodes].float(), explanation.node_mask[instances.node_id[nodes], 0])
        assert torch.equal(scores.edge[edges].float(), explanation.edge_mask[instances.edge_id[edges]])
        outside = torch.ones(explanation.edge_mask.numel(), dtype=torch.bool)
        outside[instances.edge_id[edges]] = False
        assert not explanation.edge_mask[outside].any()


@pytest.mark.parametrize("task", ["node", "graph"])
def test_a_cell_holds_what_the_masks_of_a_user_are_worth(task, tmp_path):
    """The AUC of the protocol's cell is scikit-learn's AUC of the public masks, an undirected edge counted once."""
    about = subject(task)
    loaded = Loaded(about.model, benchmark(task), about.index)
    contestant = Contestant.named("gflow", **SMALL)
    record = evaluate([Problem("toy", "trained", lambda: loaded)], [contestant], seeds=[1], out=tmp_path)
    (cell,) = record.cells
    assert cell.status == "ok", cell.error
    marks, scores = [], []
    for place, explanation in zip(about.index.tolist(), as_a_user(about, task, 1), strict=True):
        graph = DATA[task][0 if task == "node" else place]
        source, target = graph.edge_index
        once = source < target
        if task == "node":
            kept, _, _, _ = k_hop_subgraph(place, 2, graph.edge_index, directed=False)
            inside = torch.zeros(graph.num_nodes, dtype=torch.bool)
            inside[kept] = True
            once &= inside[source] & inside[target]
        truth = own_motif(graph, place if task == "node" else None)
        marks += (torch.zeros(once.numel(), dtype=torch.bool) if truth is None else truth)[once].tolist()
        scores += explanation.edge_mask[once].tolist()
    assert cell.metrics["auc_own"] == pytest.approx(roc_auc_score(marks, scores))


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


@pytest.mark.parametrize("wrong", [{"reward": "evidenc"}, {"preset": "papper"}, {"betta": 3}])
def test_unknown_settings_are_answered_with_the_nearest(wrong):
    with pytest.raises(ConfigError, match="Did you mean"):
        GFlow(**wrong)
