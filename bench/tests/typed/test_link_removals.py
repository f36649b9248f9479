"""Occlusion against removal one by one, Shapley values against the formula with every coalition."""

import itertools
import math

import pytest
import torch

from gflowbench.typed.link_peers import create_link_peer
from gflowbench.typed.motif_links import load_motif_links
from gflowbench.typed.toy_links import shared_attributes, shared_neighbours
from gflowexplainer.errors import ConfigError


def test_occlusion_is_removal_one_by_one():
    for task in (load_motif_links(0).every(20), shared_neighbours()):
        found = create_link_peer("occlusion").explain(task, 0).scores
        x, edges = task.graph.x, task.graph.edge_index
        for link, around, score in zip(task.test.t(), task.around, found, strict=True):
            whole = float(task.model(x, edges, link[:, None]).detach())
            for edge in around:
                others = torch.arange(edges.size(1)) != edge[1]
                lost = whole - float(task.model(x, edges[:, others], link[:, None]).detach())
                assert score[edge] == pytest.approx(lost, abs=1e-4)


def test_all_coalitions_give_shapley_values():
    task = shared_attributes()
    (score,) = create_link_peer("gnnshap", num_samples=30).explain(task, 0).scores
    edges, path = task.around[0], set(task.paths[0][0])
    # A coalition is worth 1 where it holds both edges of the one true path.
    for edge in edges:
        others = [e for e in edges if e != edge]
        wanted = 0.0
        for size in range(5):
            weight = math.factorial(size) * math.factorial(4 - size) / math.factorial(5)
            for some in itertools.combinations(others, size):
                wanted += weight * ((path <= {*some, edge}) - (path <= set(some)))
        assert score[edge] == pytest.approx(wanted, abs=1e-5)
    assert sum(score.values()) == pytest.approx(1.0)


def test_sampled_values_add_up_and_are_drawn_by_the_seed():
    task = shared_neighbours()
    first, again, other = (create_link_peer("gnnshap", num_samples=60).explain(task, s).scores[0] for s in (0, 0, 1))
    assert first == again != other
    assert sum(first.values()) == pytest.approx(4.0)  # from -1 without edges to 3 with all
    with pytest.raises(ConfigError, match="num_samples"):
        create_link_peer("gnnshap", num_samples=0).explain(task, 0)
