from itertools import pairwise

import networkx as nx
import pytest
import torch

from gflowbench.explainers import create
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.exact import enumerate_subgraphs
from gflowexplainer.graphs.subgraphs import Subgraphs, subgraph_keys
from gflowexplainer.inference.search import search
from gflowexplainer.rewards.factory import prepare_reward
from gflowexplainer.settings import Settings

SMALL = {"max_nodes": 4, "num_contexts": 4, "beta": 3.0}


def test_a_beam_that_is_wide_enough_is_exact(either_subject):
    beam = create("beam", width=100_000, **SMALL).explain(either_subject, 2)
    exact = create("exact", **SMALL).explain(either_subject, 2)
    torch.testing.assert_close(beam.node, exact.node)
    torch.testing.assert_close(beam.edge, exact.edge)
    assert torch.equal(beam.order, exact.order)


def test_one_best_subgraph_of_each_size_goes_on(either_subject):
    """With a beam of one, the subgraph of size k + 1 is the best that grows out of the one of size k."""
    instances = either_subject.instances
    reward = prepare_reward(Settings(**SMALL), either_subject)
    found, _ = search(instances, reward, 4, 1)
    assert subgraph_keys(instances, found).unique().numel() == len(found)
    graph = nx.Graph(instances.edge_index.t().tolist())
    graph.remove_edges_from(nx.selfloop_edges(graph))
    for number in range(len(instances)):
        sets = [
            {m for m in row if m >= 0}
            for row, at in zip(found.members.tolist(), found.instance.tolist(), strict=True)
            if at == number
        ]
        assert sorted(map(len, sets)) == list(range(reward.min_nodes, 5))
        for one, larger in pairwise(sorted(sets, key=len)):
            grown = [[*one, n] for n in sorted({n for member in one for n in graph[member]} - one)]
            members = torch.tensor([row + [-1] * (4 - len(row)) for row in grown])
            value = reward.log_reward(Subgraphs(torch.full((len(grown),), number), members))
            assert float(value.max()) == pytest.approx(float(value[[set(row) for row in grown].index(larger)]))


def test_a_wider_beam_looks_at_more(either_subject):
    instances = either_subject.instances
    reward = prepare_reward(Settings(**SMALL), either_subject)
    narrow, wide = (len(search(instances, reward, 4, width)[0]) for width in (1, 5))
    every = torch.arange(len(instances))
    start = instances.center if instances.level == "node" else None
    states = enumerate_subgraphs(instances, every, start, 4).states
    assert narrow < wide <= int((states.size > 0).sum())


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="'width' must be positive"):
        create("beam", width=0)
    with pytest.raises(ConfigError, match="Did you mean 'beta'"):
        create("beam", betta=3)
