"""Goals that a policy is first shown, and the orders in which they are rebuilt."""

import networkx as nx
import pytest
import torch

from gflowbench.explainers.rg_policy import log_likelihood
from gflowbench.explainers.rg_pretraining import in_likeliest_order, in_order, sample_goals
from gflowbench.explainers.rg_reward import RGReward
from gflowexplainer.flow.sampling import roll_out
from gflowexplainer.graphs.subgraphs import Subgraphs

WEIGHTS = {"edge_weight": 0.01, "distance_weight": 1.0, "radius_weight": 0.1}


@pytest.mark.parametrize("task", ["node", "graph"])
def test_goals_are_breadth_first_connected_and_the_best_of_those_drawn(subject, task):
    about = subject(task)
    instances = about.instances
    start = instances.center if task == "node" else instances.ptr[:-1] + 2
    reward = RGReward(about.predictor, instances, target=about.target, **WEIGHTS)
    graph = nx.Graph(instances.edge_index.t().tolist())
    every = torch.arange(len(instances))
    for draw in range(3):
        goals = sample_goals(reward, start, draw, max_nodes=6, candidates=8)
        for row, root in zip(goals.tolist(), start.tolist(), strict=True):
            members = [node for node in row if node >= 0]
            assert members[0] == root
            assert 4 <= len(members) <= 6
            assert all(nx.is_connected(graph.subgraph(members[: k + 1])) for k in range(len(members)))
            steps = nx.single_source_shortest_path_length(graph, root)
            assert [steps[node] for node in members] == sorted(steps[node] for node in members)
        best = reward.log_score(Subgraphs(every, goals))
        # Keys number the candidates, so that a single one is the first of eight.
        single = reward.log_score(Subgraphs(every, sample_goals(reward, start, draw, max_nodes=6, candidates=1)))
        assert (best >= single - 1e-6).all()


def test_both_orders_rebuild_the_goal_and_the_policys_own_is_likelier(subject, random_policy):
    about = subject()
    instances, every = about.instances, torch.arange(3)
    policy = random_policy(about)
    encoding = policy.encode(instances, instances.x.double())
    reward = RGReward(about.predictor, instances, target=about.target, **WEIGHTS)
    goals = sample_goals(reward, instances.center, 0, max_nodes=6, candidates=1)
    sums = []
    for choose in (in_order(goals), in_likeliest_order(goals, policy, encoding)):
        again = roll_out(instances, every, instances.center, 6, choose)
        assert torch.equal(again.subgraphs.members.sort().values, goals.sort().values)
        first = again.rollout == again.states.instance[again.state]
        assert first.all()
        sums.append(log_likelihood(policy, encoding, again)[: len(every)])
    assert (sums[1] >= sums[0]).all()
