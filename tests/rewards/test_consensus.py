"""The consensus reward: what is learned, and the reward against a loop with networkx."""

import itertools
import math
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowexplainer.choices import Direction, EvidenceType
from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, subgraph_keys
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.candidates import Candidates
from gflowexplainer.rewards.cohesion import cohesion_of
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.consensus_reward import ConsensusReward
from gflowexplainer.rewards.evidence import PAIR_RIDGE, RIDGE, Evidence, raw_evidence
from gflowexplainer.rewards.evidence_trial import EvidenceTrial
from gflowexplainer.rewards.learning import learn_consensus
from gflowexplainer.rewards.least_squares import LeastSquares, Regularization
from gflowexplainer.rewards.measuring import Measuring
from gflowexplainer.rewards.prediction import PredictionReward
from gflowexplainer.testing import EdgeFeatureModel, GraphModel, NodeModel, graph_of, random_graph


def subgraphs_of(*rows: tuple[int, list[int]], width: int = 4) -> Subgraphs:
    members = [nodes + [-1] * (width - len(nodes)) for _, nodes in rows]
    return Subgraphs(torch.tensor([instance for instance, _ in rows]), torch.tensor(members))


def connected_of(instances: Instances, width: int = 3) -> Subgraphs:
    """Lists all connected subgraphs of at most ``width`` nodes by networkx."""
    whole = nx.Graph(instances.edge_index.t().tolist())
    rows = []
    for number in range(len(instances)):
        nodes = range(int(instances.ptr[number]), int(instances.ptr[number + 1]))
        for size in range(1, width + 1):
            for chosen in itertools.combinations(nodes, size):
                if size == 1 or nx.is_connected(whole.subgraph(chosen)):
                    rows.append((number, list(chosen)))
    return subgraphs_of(*rows, width=width)


# What is learned ------------------------------------------------------------------------------------------------------


class KindsAndBonds(nn.Module):
    """Log-odds of class 1 of a graph: 2 for each node of the first kind, -1 for each edge."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        number = int(batch.max()) + 1
        value = torch.zeros(number, dtype=x.dtype).index_add(0, batch, 2 * x[:, 0])
        value = value.index_add(0, batch[edge_index[0]], torch.full_like(edge_index[0], -0.5, dtype=x.dtype))
        return torch.stack([torch.zeros_like(value), value - 3], dim=1)


def kinds_graph(seed: int, num_nodes: int = 7) -> Data:
    graph = random_graph(num_nodes, 0.2, seed=seed)
    kind = torch.randint(0, 2, (num_nodes,), generator=torch.Generator().manual_seed(seed))
    kind[:2] = torch.tensor([0, 1])
    graph.x = torch.nn.functional.one_hot(kind, 2).float()
    return graph


def learn(
    predictor: Predictor,
    instances: Instances,
    raw: Tensor | None = None,
    *,
    label: Tensor | None = None,
    removals: tuple[str, ...] = ("induced",),
    pooling: float = 30.0,
    num_contexts: int = 8,
) -> Consensus:
    """Learns from shared evidence in contexts that keep half of the nodes."""
    target = Target.of(predictor, instances, label)
    inputs = TaskInputs(predictor, instances, target, node_prediction=instances.x if raw is None else raw)
    candidates = Candidates(EvidenceType.shared, (0.5,), removals, pooling)
    return learn_consensus(inputs, connected_of(instances), candidates, Measuring(inputs, num_contexts, 0))


def test_what_a_model_looks_at_is_found_out() -> None:
    instances = Instances.of_graphs([kinds_graph(seed) for seed in range(6)])
    predictor = Predictor(KindsAndBonds(), level="graph", num_hops=1)
    consensus = learn(predictor, instances, label=torch.ones(6, dtype=torch.long), num_contexts=64)
    first, second, nodes, edges, *pairs = consensus.weight[-1].tolist()
    # A node that is added was absent in half of the contexts, an edge in three quarters of them, at most.
    assert first - second > 0.7
    assert edges < -0.1
    assert consensus.chosen.explained > 0.8
    assert max(abs(p) for p in pairs) < 0.3
    assert nodes == pytest.approx(0, abs=1.0)


class VotesAround(nn.Module):
    """Log-odds of the classes of a node: one for each neighbour of the kind."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])


def test_what_speaks_for_one_class_is_learned_from_the_others() -> None:
    """Nodes of a class speak for it: one set of weights says so of both, which weights of each kind could not."""
    graph = kinds_graph(3, 14)
    instances = Instances.around_nodes(graph.x, graph.edge_index, list(range(14)), 1)
    label = graph.x.argmax(dim=1)
    consensus = learn(Predictor(VotesAround(), num_hops=1), instances, label=label)
    assert not consensus.chosen.by_class
    assert consensus.chosen.explained > 0.5
    pooled = consensus.weight[-1]
    assert pooled[2] > abs(pooled[0] - pooled[1])
    # A single prediction of another class teaches nothing.
    label = torch.tensor([0] + 13 * [1])
    assert learn(Predictor(VotesAround(), num_hops=1), instances, label=label).basis.shape == (3, 2)


@pytest.mark.parametrize("level", ["node", "graph"])
def test_it_is_the_fit_of_the_context_rewards_log_odds(level: str) -> None:
    if level == "graph":
        instances = Instances.of_graphs([random_graph(7, 0.2, seed=seed) for seed in range(3)])
        predictor, raw = Predictor(GraphModel(seed=3), level="graph"), instances.x
    else:
        graph = random_graph(9, 0.2, seed=1)
        instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 4, 8], 2)
        predictor = Predictor(NodeModel(seed=3))
        raw = NodeModel(seed=3)(graph.x, graph.edge_index).softmax(dim=1).detach()[instances.node_id]
    found = learn(predictor, instances, raw, pooling=1.5)
    subgraphs, target = connected_of(instances), Target.of(predictor, instances)
    inputs = TaskInputs(predictor, instances, target, node_prediction=raw)
    score = Measuring(inputs, 8, 0).measure(subgraphs, 0.5, "induced").value
    evidence = Evidence.of(instances, raw_evidence(inputs, EvidenceType.shared), found.basis)
    ridge = torch.where(evidence.is_pair(), PAIR_RIDGE, RIDGE)
    pooling = 1.5 if found.chosen.by_class else math.inf
    fitted = LeastSquares(evidence.describe(subgraphs), score, subgraphs.instance, target.label, ridge)
    weight = fitted.weights(found.weight.size(0) - 1, Regularization(pooling))
    torch.testing.assert_close(found.weight, weight)
    assert found.weight.shape == ((3 if level == "node" else 2) + 1, evidence.num_columns)
    assert torch.equal(found.weights_of(target), found.weight[target.label])


def test_of_two_removals_the_one_that_agrees_better_is_taken() -> None:
    chosen = set()
    instances = Instances.of_graphs([random_graph(6, 0.2, seed=seed) for seed in range(3)])
    for seed in range(6):
        predictor = Predictor(GraphModel(seed=seed), level="graph")
        alone = {removal: learn(predictor, instances, removals=(removal,)) for removal in ("induced", "isolate")}
        for order in (("induced", "isolate"), ("isolate", "induced")):
            both = learn(predictor, instances, removals=order)
            assert both.chosen.explained == max(c.chosen.explained for c in alone.values())
            assert both.chosen == alone[both.chosen.removal].chosen
            torch.testing.assert_close(both.weight, alone[both.chosen.removal].weight)
        chosen.add(both.chosen.removal)
    assert chosen == {"induced", "isolate"}


def test_it_survives_a_file_and_another_file_is_refused() -> None:
    instances = Instances.of_graphs([kinds_graph(seed) for seed in range(3)])
    consensus = learn(Predictor(KindsAndBonds(), level="graph", num_hops=1), instances, removals=("isolate",))
    consensus = replace(consensus, cohesion=0.25)
    again = Consensus.from_tensors(consensus.tensors())
    assert again.cohesion == 0.25
    assert torch.equal(again.basis, consensus.basis)
    assert torch.equal(again.weight, consensus.weight)
    assert (again.chosen, again.trials) == (consensus.chosen, consensus.trials)
    assert again.chosen.removal == "isolate"
    for wrong in ({}, {**consensus.tensors(), "trials": torch.tensor([[7.0, 0.0]])}):
        with pytest.raises(CheckpointError, match="no consensus reward"):
            Consensus.from_tensors(wrong)


class SpeaksForNumber(nn.Module):
    """Log-odds of class 1 of a graph: 2 for each node of number 5; 0 and 10 say nothing."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        value = torch.zeros(int(batch.max()) + 1).index_add(0, batch, 2.0 * (x[:, 0] == 5))
        return torch.stack([torch.zeros_like(value), value - 3], dim=1)


def numbered_graph(seed: int) -> Data:
    graph = random_graph(9, 0.2, seed=seed)
    graph.x = 5.0 * (torch.randperm(9, generator=torch.Generator().manual_seed(seed)) % 3)[:, None]
    return graph


def test_numbers_that_are_names_tell_kinds_apart_also_after_a_file() -> None:
    model = Predictor(SpeaksForNumber(), level="graph", num_hops=1)
    consensus = learn(model, Instances.of_graphs([numbered_graph(seed) for seed in range(3)]), num_contexts=64)
    assert consensus.names.tolist() == [[0, 0], [0, 5], [0, 10]]
    assert consensus.chosen.explained > 0.9  # no line through 0, 5 and 10 does that
    again = Consensus.from_tensors(consensus.tensors())
    assert torch.equal(again.names, consensus.names)
    inputs = TaskInputs.of(model, Instances.of_graphs([numbered_graph(7)]))
    raw = raw_evidence(inputs, EvidenceType.shared, names=again.names)
    assert torch.equal(raw, (numbered_graph(7).x == torch.tensor([0, 5, 10])).double())


def test_values_instead_of_classes_have_one_row_of_weights() -> None:
    graphs = [random_graph(6, 0.2, seed=seed) for seed in range(3)]
    for graph in graphs:
        graph.edge_attr = torch.rand(graph.num_edges, 2, generator=torch.Generator().manual_seed(0))
    instances = Instances.of_graphs(graphs, arguments=["edge_attr"])
    predictor = Predictor(EdgeFeatureModel(), level="graph", mode="regression")
    consensus = learn(predictor, instances)
    assert consensus.weight.shape[0] == 1
    target = Target.of(predictor, instances)
    assert torch.equal(consensus.weights_of(target), consensus.weight.expand(3, -1))
    reward = ConsensusReward(predictor, instances, consensus=consensus, raw=instances.x, target=target)
    assert torch.isfinite(reward.log_score(connected_of(instances))).all()


# The reward -----------------------------------------------------------------------------------------------------------


TRIAL = EvidenceTrial(EvidenceType.shared, 0.5, "induced", False, 0.5, 0.9)


def random_consensus(columns: int, kinds: int, classes: int = 2, seed: int = 0) -> Consensus:
    weight = torch.randn(classes + 1, columns, generator=torch.Generator().manual_seed(seed)).double()
    return Consensus(torch.eye(kinds, dtype=torch.double), weight, TRIAL)


@pytest.mark.parametrize("level", ["node", "graph"])
def test_evidence_a_node_against_a_loop_over_networkx(level: str) -> None:
    graphs = [random_graph(7, 0.25, seed=seed) for seed in range(3)]
    if level == "graph":
        instances, predictor = Instances.of_graphs(graphs), Predictor(GraphModel(), level="graph")
        consensus = random_consensus(11, 3)
    else:
        instances = Instances.around_nodes(graphs[0].x, graphs[0].edge_index, [0, 3, 6], 2)
        predictor, consensus = Predictor(NodeModel()), random_consensus(5, 3, 3)
    label = torch.tensor([1, 0, 1])
    target = Target.of(predictor, instances, label)
    reward = ConsensusReward(predictor, instances, consensus=consensus, raw=instances.x, target=target)
    asked = predictor.num_evaluations
    subgraphs = connected_of(instances)
    found = reward.log_score(subgraphs)
    whole = nx.Graph(instances.edge_index.t().tolist())
    kind = instances.x.double().numpy()
    for row, members in enumerate(subgraphs.members.tolist()):
        nodes = [node for node in members if node >= 0]
        weight = consensus.weight[label[subgraphs.instance[row]]].numpy()
        total = sum(kind[v] @ weight[:3] for v in nodes)
        mixed = np.zeros((3, 3))
        if level == "graph":
            mixed[np.triu_indices(3)] = weight[5:]
            mixed = mixed + mixed.T
        total += sum(weight[4] + kind[u] @ mixed @ kind[v] for u, v in whole.subgraph(nodes).edges)
        assert float(found[row]) == pytest.approx(total / len(nodes), abs=1e-9)
    assert predictor.num_evaluations == asked
    assert reward.num_requests == len(subgraphs)


def test_cohesion_is_added_per_node_and_contributions_stay_as_they_were_learned() -> None:
    data = random_graph(9, 0.3, seed=2)
    instances = Instances.around_nodes(data.x, data.edge_index, [0, 3], 2)
    predictor, learned = Predictor(NodeModel()), random_consensus(5, 3, 3)
    plain, together = (
        ConsensusReward(predictor, instances, consensus=consensus, raw=instances.x)
        for consensus in (learned, replace(learned, cohesion=0.25))
    )
    subgraphs = connected_of(instances)
    added = 0.25 * cohesion_of(instances, subgraphs) / subgraphs.size
    assert added.max() > 0
    torch.testing.assert_close(together.log_score(subgraphs), plain.log_score(subgraphs) + added)
    assert torch.equal(together.contributions(), plain.contributions())


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("evidence", ["consensus", "prediction"])
def test_what_grown_subgraphs_are_worth_is_known_without_growing_them(level: str, evidence: str) -> None:
    data = random_graph(9, 0.3, seed=2)
    if level == "graph":
        instances, predictor = Instances.of_graphs([data, random_graph(7, 0.2)]), Predictor(GraphModel(), level="graph")
    else:
        instances = Instances.around_nodes(data.x, data.edge_index, [0, 3], 2)
        predictor = Predictor(NodeModel())
    reward: Reward = PredictionReward(predictor, instances, beta=3.0)
    if evidence == "consensus":
        consensus = random_consensus(11, 3) if level == "graph" else random_consensus(5, 3, 3)
        reward = ConsensusReward(predictor, instances, consensus=consensus, raw=instances.x, beta=3.0)
    start = None if level == "graph" else instances.center
    states = States.initial(instances, torch.arange(2), start, 4)
    for _ in range(3):
        grown = states.children()
        found = reward.log_reward_grown(states.subgraphs, states.frontier_state, states.frontier)
        torch.testing.assert_close(found, reward.log_reward(grown.subgraphs, grown.can_grow))
        states = grown


def test_edges_of_a_small_instance_are_summed_up_by_a_matrix_or_by_entries_alike(monkeypatch):
    instances = Instances.of_graphs([random_graph(9, 0.3, 3)])
    predictor, consensus = Predictor(GraphModel(), level="graph"), random_consensus(11, 3, 3)
    reward = ConsensusReward(predictor, instances, consensus=consensus, raw=instances.x)
    subgraphs, scores = connected_of(instances), []
    assert len(set(subgraphs.size.tolist())) > 1
    for bound in (9, 8):
        monkeypatch.setattr("gflowexplainer.rewards.consensus_reward._SQUARE", bound)
        scores.append(reward.log_score(subgraphs))
    assert torch.equal(*scores)


def test_a_constant_for_every_node_changes_no_distribution() -> None:
    instances = Instances.of_graphs([kinds_graph(seed) for seed in range(2)])  # kinds add up to 1 at every node
    consensus = random_consensus(7, 2)
    subgraphs, predictor = connected_of(instances), Predictor(KindsAndBonds(), level="graph", num_hops=1)

    def score(weight: Tensor) -> Tensor:
        changed = Consensus(consensus.basis, weight, TRIAL)
        return ConsensusReward(predictor, instances, consensus=changed, raw=instances.x).log_score(subgraphs)

    lifted, sized = consensus.weight.clone(), consensus.weight.clone()
    lifted[:, :2] += 0.7
    sized[:, 2] += 0.7
    before = score(consensus.weight)
    torch.testing.assert_close(score(lifted), before + 0.7)
    assert torch.equal(score(sized), before)


@pytest.mark.parametrize("level", ["node", "graph"])
def test_relabelled_nodes_get_the_same_reward(level: str) -> None:
    graph, order = random_graph(8, 0.25, seed=2), torch.randperm(8, generator=torch.Generator().manual_seed(3))
    place = torch.empty_like(order)
    place[order] = torch.arange(8)
    turned = Data(x=graph.x[order], edge_index=place[graph.edge_index])
    scores: list[dict[frozenset[int], float]] = []
    for data, name in ((graph, torch.arange(8)), (turned, order)):
        if level == "graph":
            instances, predictor = Instances.of_graphs([data]), Predictor(GraphModel(), level="graph")
        else:
            center = int(torch.nonzero(name == 4))
            instances = Instances.around_nodes(data.x, data.edge_index, [center], 2)
            predictor = Predictor(NodeModel())
        consensus = random_consensus(11 if level == "graph" else 5, 3, 3)
        reward = ConsensusReward(predictor, instances, consensus=consensus, raw=instances.x)
        subgraphs = connected_of(instances)
        nodes = [frozenset(name[instances.node_id[row[row >= 0]]].tolist()) for row in subgraphs.members]
        scores.append(dict(zip(nodes, reward.log_score(subgraphs).tolist(), strict=True)))
    assert scores[0].keys() == scores[1].keys()
    for nodes, value in scores[0].items():
        assert scores[1][nodes] == pytest.approx(value, abs=1e-9)


def test_a_batch_gives_what_its_members_give_alone() -> None:
    together = Instances.of_graphs([random_graph(7, 0.25, seed=seed) for seed in range(3)])
    predictor, consensus = Predictor(GraphModel(), level="graph"), random_consensus(11, 3)
    settings: dict[str, Any] = {"consensus": consensus, "relative": True, "beta": 3.0}
    reward = ConsensusReward(predictor, together, raw=together.x, **settings)
    subgraphs = connected_of(together)
    reward.calibrate(subgraphs)
    score, values = reward.log_reward(subgraphs), reward.node_values()
    for number in range(3):
        alone = together.select(torch.tensor([number]))
        mine = ConsensusReward(predictor, alone, raw=alone.x, **settings)
        inside = connected_of(alone)
        mine.calibrate(inside)
        rows = subgraphs.instance == number
        assert torch.equal(subgraph_keys(together, subgraphs)[rows], subgraph_keys(alone, inside))
        torch.testing.assert_close(mine.log_reward(inside), score[rows])
        torch.testing.assert_close(mine.node_values(), values[together.owner == number])


def test_values_of_nodes_and_of_their_edges_on_average() -> None:
    # A path 0 - 1 - 2: the middle node has two edges.
    instances = Instances.of_graphs([graph_of([(0, 1), (1, 2)], 4)])
    consensus = random_consensus(11, 3)
    reward = ConsensusReward(
        Predictor(GraphModel(), level="graph"), instances, consensus=consensus, raw=instances.x, beta=2.0
    )
    single = reward.log_score(subgraphs_of((0, [0]), (0, [1]), (0, [2]), (0, [3])))
    pairs = 2 * reward.log_score(subgraphs_of((0, [0, 1]), (0, [1, 2]))) - single[:2] - single[1:3]
    values = reward.node_values()
    torch.testing.assert_close(values[:, 0], 2 * single)
    torch.testing.assert_close(values[:, 1], 2 * torch.stack([pairs[0], pairs.mean(), pairs[1], pairs[0] * 0]))


@pytest.mark.parametrize("level", ["node", "graph"])
def test_models_of_double_precision(level: str) -> None:
    graph = random_graph(8, 0.2, seed=1)
    graph.x = graph.x.double()
    if level == "graph":
        instances = Instances.of_graphs([graph, graph])
        predictor = Predictor(GraphModel(seed=1).double(), level="graph")
    else:
        instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 4], 2)
        predictor = Predictor(NodeModel(seed=1).double())
    consensus = learn(predictor, instances, removals=("induced",))
    assert consensus.weight.dtype == torch.double
    raw = raw_evidence(TaskInputs.of(predictor, instances, node_prediction=instances.x), EvidenceType.shared)
    reward = ConsensusReward(predictor, instances, consensus=consensus, raw=raw, relative=True)
    reward.calibrate(connected_of(instances))
    assert torch.isfinite(reward.log_reward(connected_of(instances))).all()


def test_features_that_do_not_vary_leave_nodes_and_edges_to_count() -> None:
    graphs = [random_graph(6, 0.3, seed=seed) for seed in range(3)]
    for graph in graphs:
        graph.x = torch.ones(6, 3)
    instances = Instances.of_graphs(graphs)
    predictor = Predictor(GraphModel(seed=1), level="graph")
    consensus = learn(predictor, instances)
    assert consensus.basis.shape == (3, 0)
    assert consensus.weight.shape == (3, 2)
    reward = ConsensusReward(predictor, instances, consensus=consensus, raw=instances.x)
    subgraphs = connected_of(instances)
    edges = Evidence.of(instances, instances.x, consensus.basis).describe(subgraphs)[:, 1]
    wanted = consensus.weight[reward.target.label[subgraphs.instance], 1] * edges / subgraphs.size
    torch.testing.assert_close(reward.log_score(subgraphs), wanted)


def test_many_features_are_learned_from_through_few_directions() -> None:
    graphs = [random_graph(9, 0.3, seed=seed, width=20) for seed in range(4)]
    instances = Instances.of_graphs(graphs)
    predictor = Predictor(GraphModel(in_channels=20), level="graph")
    consensus = learn(predictor, instances)
    assert consensus.basis.shape == (20, 16)
    assert consensus.weight.shape == (3, 16 + 2 + 16 * 17 // 2)
    unseen = Instances.of_graphs([random_graph(9, 0.3, seed=7, width=20)])
    reward = ConsensusReward(predictor, unseen, consensus=consensus, raw=unseen.x)
    assert torch.isfinite(reward.log_score(connected_of(unseen))).all()
    # Weights of directions are weights of features: the linear part of the reward is w'Bx.
    own = consensus.weights_of(reward.target)[0, :16]
    single = reward.log_score(subgraphs_of(*((0, [v]) for v in range(9))))
    torch.testing.assert_close(single, unseen.x.double() @ (consensus.basis @ own))


def test_no_instance_counts_in_units_far_below_the_usual() -> None:
    """Where random subgraphs of an instance all miss what matters, its rewards must not become enormous."""
    graph = random_graph(8, 0.2, seed=1)
    instances, predictor = Instances.of_graphs([graph, graph]), Predictor(GraphModel(seed=1), level="graph")
    consensus = learn(predictor, instances, removals=("induced",))
    usual = replace(consensus, spread=1.0)
    reward = ConsensusReward(predictor, instances, consensus=usual, raw=instances.x, relative=True)
    reward.spread = torch.tensor([0.001, 0.9], dtype=torch.double)
    reward.settle_spread()
    assert reward.spread.tolist() == pytest.approx([0.2, 0.9])


def test_the_usual_spread_travels_with_the_consensus() -> None:
    one = Consensus(torch.eye(2, dtype=torch.double), torch.zeros(3, 4, dtype=torch.double), TRIAL, (TRIAL,), 0.7)
    again = Consensus.from_tensors(one.tensors())
    assert (again.chosen, again.trials, again.spread) == (TRIAL, (TRIAL,), 0.7)


def test_classes_have_no_direction() -> None:
    instances = Instances.of_graphs([random_graph(6, 0.2, seed=0)])
    with pytest.raises(ConfigError, match="predicts classes"):
        ConsensusReward(
            Predictor(GraphModel(), level="graph"),
            instances,
            consensus=random_consensus(11, 3),
            raw=instances.x,
            direction=Direction.up,
        )
