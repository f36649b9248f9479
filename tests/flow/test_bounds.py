"""The bound on the size of subgraphs is a bound: it takes no memory beyond the instance, and changes nothing."""

import tracemalloc

import pytest
import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.sampling import grow_uniformly, roll_out
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops import memory
from gflowexplainer.testing import GraphModel, NodeModel, cycle, house, random_graph

QUICK = {"epochs": 3, "num_contexts": 4, "num_samples": 16}


def content(explanation):
    return [(s.nodes, s.probability, s.reward) for s in explanation.subgraphs]


@pytest.mark.parametrize("bound", [11, 1000, 10**9])
def test_a_bound_beyond_the_graph_changes_nothing(bound):
    data, model = random_graph(10), NodeModel()
    small = GFlowExplainer(max_nodes=10, **QUICK).explain(model, data, [3], progress=False)[0]
    large = GFlowExplainer(max_nodes=bound, **QUICK).explain(model, data, [3], progress=False)[0]
    assert content(large) == content(small)


def test_a_fit_too_and_it_is_stored_and_explains_smaller_and_larger_graphs(tmp_path):
    graphs, model = [house(), cycle(6), random_graph(9)], GraphModel()
    algorithm = GFlowExplainer(max_nodes=10**9, **QUICK).fit(model, graphs, folder=tmp_path, progress=False)
    loaded = GFlowExplainer.load(tmp_path)
    others = [cycle(3), random_graph(30)]
    for one, other in zip(algorithm.explain(model, others), loaded.explain(model, others), strict=True):
        assert content(one) == content(other)


def test_members_are_as_many_as_the_instance_has():
    graph = house()
    instances = Instances.of_graphs([graph, cycle(4)])
    rollouts = roll_out(instances, torch.tensor([0, 1]), None, 10**9, grow_uniformly)
    assert rollouts.states.members.size(1) == 5


def test_what_does_not_fit_into_memory_is_refused_with_the_number_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda device: 1_000_000_000)
    instances = Instances.of_graphs([cycle(3000)])
    every = torch.zeros(64, dtype=torch.long)
    tracemalloc.start()
    said = r"64 subgraphs of up to 3000 nodes would need about \d+.* GB, but 1 GB are free"
    with pytest.raises(ConfigError, match=said):
        roll_out(instances, every, None, 3000, grow_uniformly, cuts=False)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
