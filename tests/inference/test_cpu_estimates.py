"""Estimates by NumPy beside those by torch."""

import pytest
import torch

from gflowexplainer.explainer import GFlowExplainer
from gflowexplainer.graphs.subgraphs import place_keys
from gflowexplainer.inference.cpu_estimates import CpuEstimates
from gflowexplainer.inference.estimates import effective_sizes, estimate_from_policy, reward_weights
from gflowexplainer.ops.streams import Stream
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.settings import Settings
from gflowexplainer.testing import GraphModel, NodeModel, random_graph


def a_sampler(level, **settings):
    explainer = GFlowExplainer(num_samples=8)
    if level == "node":
        data, model, index = random_graph(24, 0.15, 2), NodeModel(), [0, 5, 5, 9]
        config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    else:
        data, model, index = [random_graph(9, 0.3, seed) for seed in range(4)], GraphModel(), None
        config = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
    known = dict.fromkeys(("target", "node_type", "edge_label_index", "edge_type", "graph_index"))
    _, task = explainer._tasks.of_data(model, data, config, index=index, arguments={}, **known)
    return FlowSampler(Settings(max_nodes=6, **settings), task.inputs())


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("at_once", [3, 1 << 20])
def test_the_same_estimates_as_by_torch(level, at_once, monkeypatch):
    monkeypatch.setattr("gflowexplainer.inference.cpu_estimates._ENTRIES_AT_ONCE", at_once)
    sampler = a_sampler(level)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in sampler.network.policy.parameters():
            parameter += torch.randn_like(parameter) / 4
    instances = sampler.instances
    several = torch.arange(len(instances)).repeat_interleave(30)
    record = sampler.record(several, Stream.explaining)
    rollouts = record.rollouts()
    found, wanted = CpuEstimates(record), estimate_from_policy(rollouts)
    given = found.estimates()
    orders = [torch.argsort(place_keys(instances, each.subgraphs)) for each in (given, wanted)]
    keys = [place_keys(instances, each.subgraphs)[order] for each, order in zip((given, wanted), orders, strict=True)]
    assert torch.equal(*keys)
    torch.testing.assert_close(given.probability[orders[0]], wanted.probability[orders[1]])
    torch.testing.assert_close(given.node, wanted.node)
    torch.testing.assert_close(given.neighbor, wanted.neighbor)
    log_weight = reward_weights(rollouts, sampler.reward, sampler.settings)
    torch.testing.assert_close(
        found.find_effective_sizes(sampler.reward)(), effective_sizes(instances, rollouts.subgraphs, log_weight)
    )


def test_the_uniform_measure_is_left_to_torch():
    sampler = a_sampler("node", measure="uniform")
    assert sampler.record(torch.arange(len(sampler.instances)), Stream.explaining) is None
