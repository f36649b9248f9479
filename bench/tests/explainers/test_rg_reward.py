"""The reward of a subgraph, worked out by hand."""

import pytest
import torch

from gflowbench.explainers.interface import Subject
from gflowbench.explainers.rg_reward import RGReward, WithRepresentation
from gflowexplainer.graphs.subgraphs import Subgraphs

WEIGHTS = {"edge_weight": 0.01, "distance_weight": 1.0, "radius_weight": 0.1}


def test_rewards_by_hand(triangle_subject):
    about = triangle_subject  # whole: node 0 has 2 neighbours, so class 1
    reward = RGReward(about.predictor, about.instances, target=about.target, **WEIGHTS)
    sets = Subgraphs(torch.zeros(3, dtype=torch.long), torch.tensor([[0, 1, -1], [0, 2, 3], [0, 1, 2]]))
    half, seven_tenths = torch.tensor(0.5).log(), torch.tensor(1.0).sigmoid().log()
    wanted = [half - 0.02 - 1 - 0.1, half - 0.04 - 1 - 0.2, seven_tenths - 0.06 - 0 - 0.1]
    assert reward.log_score(sets).tolist() == pytest.approx([float(value) for value in wanted])


def test_graph_rewards_by_hand_keep_the_nodes_and_count_the_radius_from_the_start(molecules, mean_degree):
    about = Subject.of(mean_degree, molecules)  # graph 0: five nodes, mean degree 2
    reward = RGReward(about.predictor, about.instances, target=about.target, removal="isolate", **WEIGHTS)
    sets = Subgraphs(torch.zeros(2, dtype=torch.long), torch.tensor([[0, 2, 3], [2, 3, 0]]))
    base = float(torch.tensor(0.8).sigmoid().log()) - 0.04 - 1.2
    assert reward.log_score(sets).tolist() == pytest.approx([base - 0.2, base - 0.1])


@pytest.mark.parametrize("task", ["node", "graph"])
def test_representation_is_what_the_last_layer_reads(subject, task):
    about = subject(task)
    model, instances = about.predictor.model, about.instances
    arguments = {} if task == "node" else {"batch": instances.owner}
    answer = WithRepresentation(model)(instances.x, instances.edge_index, **arguments)
    scores = model(instances.x, instances.edge_index, **arguments)
    representation = answer[:, scores.size(1) :]
    assert torch.allclose(answer[:, : scores.size(1)], scores)
    if task == "graph":
        assert torch.allclose(3 * model.readout(representation), scores)
    else:  # no dense layer: the last convolution
        assert torch.allclose(3 * representation, scores)
