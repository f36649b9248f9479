"""Evidence by features: what a node is, where what the model predicts there does not tell."""

from itertools import combinations_with_replacement

import networkx as nx
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from gflowexplainer import GFlowExplainer
from gflowexplainer.choices import EvidenceType
from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.evidence import MAX_KINDS, Evidence, find_basis, raw_evidence, tells_by_features
from gflowexplainer.testing import GraphModel, NodeModel, random_graph


class NearColour(nn.Module):
    """Class 1: a neighbour has the first colour; the more of them, the surer."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        near = torch.zeros_like(x[:, :1]).index_add_(0, edge_index[1], x[edge_index[0], :1])
        return torch.cat([1 - 2 * near, 2 * near - 1], dim=1)


def coloured(seed: int, number: int = 80, columns: int = 3):
    graph = random_graph(number, 0.03, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    graph.x = torch.nn.functional.one_hot(torch.randint(columns, (number,), generator=generator), columns).float()
    return graph


def inputs_of(graph, level: str = "node") -> TaskInputs:
    if level == "graph":
        predictor = Predictor(GraphModel(in_channels=graph.x.size(1)), level="graph", num_hops=2)
        return TaskInputs.of(predictor, Instances.of_graphs([graph]))
    model = NodeModel(in_channels=graph.x.size(1))
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 5], 2)
    prediction = model(instances.x, instances.edge_index).softmax(dim=1).detach()
    return TaskInputs.of(Predictor(model, level="node", num_hops=2), instances, node_prediction=prediction)


def test_features_of_neighbours_and_of_nodes_further_away_stand_before_what_is_predicted() -> None:
    graph = coloured(0)
    inputs = inputs_of(graph)
    plain, told = (raw_evidence(inputs, kind) for kind in (EvidenceType.shared, EvidenceType.features))
    instances, network = inputs.instances, nx.Graph(graph.edge_index.t().tolist())
    for row, found in enumerate(told):
        node, root = int(instances.node_id[row]), [0, 5][int(instances.owner[row])]
        steps = nx.shortest_path_length(network, root, node)
        x, none = graph.x[node].double(), torch.zeros(3, dtype=torch.double)
        wanted = {0: [none, none, 0 * plain[row]], 1: [x, none, plain[row]]}.get(steps, [none, x, plain[row]])
        torch.testing.assert_close(found, torch.cat(wanted))


def test_edges_around_nodes_are_counted_by_the_features_of_both_ends() -> None:
    inputs = inputs_of(coloured(0))
    instances, raw = inputs.instances, raw_evidence(inputs, EvidenceType.features)
    basis = find_basis(instances, EvidenceType.features, raw)
    evidence = Evidence.of(instances, raw, basis, EvidenceType.features)
    assert evidence.paired == 6
    assert evidence.num_columns == basis.size(1) + 2 + 21
    assert int(evidence.is_pair().sum()) == 21
    members = torch.nonzero(instances.owner == 0).flatten()
    found = evidence.describe(Subgraphs(torch.tensor([0]), members[None]))[0, -21:]
    edges = nx.Graph(instances.edge_index.t().tolist()).subgraph(members.tolist()).edges
    kind = raw[:, :6].numpy()
    pairs = combinations_with_replacement(range(6), 2)
    wanted = [sum(kind[u, a] * kind[v, b] + kind[u, b] * kind[v, a] for u, v in edges) for a, b in pairs]
    assert found.tolist() == pytest.approx(wanted)
    assert Evidence.of(instances, raw, basis).paired == 0


def test_graphs_are_told_by_features_anyway() -> None:
    inputs = inputs_of(coloured(0), "graph")
    assert torch.equal(raw_evidence(inputs, EvidenceType.features), raw_evidence(inputs, EvidenceType.shared))
    assert not tells_by_features(inputs)


def test_features_that_are_many_or_all_the_same_tell_nothing() -> None:
    assert tells_by_features(inputs_of(coloured(0)))
    same = coloured(0)
    same.x = torch.ones_like(same.x)
    assert not tells_by_features(inputs_of(same))
    many = inputs_of(coloured(0, columns=MAX_KINDS + 1))
    assert not tells_by_features(many)
    with pytest.raises(ConfigError, match="at most 16 features, but there are 17"):
        raw_evidence(many, EvidenceType.features)


def test_a_model_that_looks_for_a_colour_is_described_by_colours(tmp_path) -> None:
    graph, model = coloured(1), NearColour()
    label = model(graph.x, graph.edge_index).argmax(dim=1)
    index = torch.nonzero(label == 1).flatten()[:12]
    explainer = GFlowExplainer(max_nodes=6, max_updates=3, num_hops=2, seed=0)
    explainer.fit(model, graph, index, progress=False)
    report = explainer.evidence_report()
    kinds = {kind: max(t.explained for t in report.trials if t.evidence == kind) for kind in ("shared", "features")}
    assert kinds["features"] > kinds["shared"] + 0.05
    assert report.chosen.evidence == "features"
    assert "the features of nodes" in str(report)
    explainer.save(tmp_path / "fitted")
    again = GFlowExplainer.load(tmp_path / "fitted")
    assert again.evidence_report().chosen == report.chosen
    ours, theirs = (each.explain(model, graph, index[:3], progress=False) for each in (explainer, again))
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one.node_mask, other.node_mask)


class TwoInARow(torch.nn.Module):
    """Class 1 where a neighbour of the first colour has a neighbour of the second, beside the node itself."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index
        seconds = torch.zeros(len(x)).index_add(0, target, x[source, 1])
        ways = torch.zeros(len(x)).index_add(0, target, x[source, 0] * (seconds[source] - x[target, 1]))
        return torch.stack([-ways, ways], dim=1).clamp(-2, 2) + torch.tensor([1.0, -1.0])


def test_two_colours_in_a_row_are_found_though_either_colour_alone_says_nothing() -> None:
    graph, model = coloured(2, number=240, columns=4), TwoInARow()
    colour = graph.x.argmax(dim=1)
    index = torch.nonzero(model(graph.x, graph.edge_index).argmax(dim=1) == 1).flatten()[:24]
    explainer = GFlowExplainer(max_nodes=6, max_updates=3, num_hops=2, seed=0)
    explainer.fit(model, graph, index, progress=False)
    assert explainer.evidence_report().chosen.evidence == "features"
    network, scores = nx.Graph(graph.edge_index.t().tolist()), []
    for node, explanation in zip(index.tolist(), explainer.explain(model, graph, index, progress=False), strict=True):
        truth = set()
        for first in network[node]:
            seconds = [other for other in network[first] if colour[other] == 1 and other != node]
            truth |= {first, *seconds} if colour[first] == 0 and seconds else set()
        others = [other for other in nx.single_source_shortest_path_length(network, node, 2) if other != node]
        inside = [other in truth for other in others]
        if not all(inside):
            scores.append(roc_auc_score(inside, explanation.node_mask.flatten()[others]))
    assert sum(scores) / len(scores) > 0.95


def test_a_mistake_or_two_do_not_hide_what_all_others_have_in_common() -> None:
    """Two nodes of 24 are of the other class, for other reasons that change its log-odds far more."""

    class Shouts(NearColour):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            found, (source, target) = super().forward(x, edge_index), edge_index
            other = torch.zeros_like(found[:, :1]).index_add_(0, target, x[source, 1:2])
            return torch.where(found[:, :1] > 0, torch.cat([1 + 40 * other, -1 - 40 * other], dim=1), found)

    graph, model = coloured(2, number=240, columns=4), Shouts()
    label = model(graph.x, graph.edge_index).argmax(dim=1)
    usual, others = (torch.nonzero(label == c).flatten() for c in (1, 0))
    told = []
    for index in (usual[:22], torch.cat([usual[:22], others[:2]])):
        explainer = GFlowExplainer(max_nodes=6, max_updates=1, num_hops=2, seed=0)
        explainer.fit(model, graph, index, progress=False)
        told.append(explainer.evidence_report())
    assert told[0].chosen.evidence == told[1].chosen.evidence == "features"
    assert told[1].explained > told[0].explained - 0.05
