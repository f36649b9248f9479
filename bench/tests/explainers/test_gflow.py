import pytest
import torch
from torch_geometric.data import Data

from gflowbench.datasets.benchmark import Benchmark
from gflowbench.datasets.motif_truth import complete_ground_truth
from gflowbench.explainers.gflow import GFlow
from gflowbench.explainers.interface import Subject
from gflowbench.explainers.registry import create
from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import ConfigError
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
