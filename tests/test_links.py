"""Explanations of links through the public class: both ends, joined, in plain and in typed graphs."""

import itertools

import networkx as nx
import pytest
import torch
from torch_geometric.explain import Explainer
from torch_geometric.nn import GCNConv
from torch_geometric.utils import subgraph as induced

from gflowexplainer import GFlowExplainer, SubgraphExplanation
from gflowexplainer.errors import ConfigError, GFlowExplainerError
from gflowexplainer.explanation.typed_explanation import TypedExplanation
from gflowexplainer.flow.exact import enumerate_subgraphs
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.links import DETOUR
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.tasks import task_of
from gflowexplainer.testing import LinkModel, NodeModel, TypedLinkModel, graph_of, path, random_graph, typed_graph

QUICK = {"max_nodes": 5, "epochs": 3, "rollouts": 4, "num_contexts": 4, "hidden": 8, "num_samples": 16}
EDGE = {"mode": "binary_classification", "task_level": "edge", "return_type": "raw"}
LIKES = ("author", "likes", "venue")
PAIRS = torch.tensor([[0, 3, 5], [4, 9, 6]])


def without_link(graph, ends):
    whole = nx.Graph(graph.edge_index.t().tolist())
    whole.add_nodes_from(range(graph.num_nodes))
    if whole.has_edge(*ends):
        whole.remove_edge(*ends)
    return whole


def instances_of(graph, pairs, **more):
    task = task_of(Predictor(LinkModel(), level="edge", mode="binary_classification"), graph,
                   edge_label_index=pairs, **more)  # fmt: skip
    return task.inputs()


@pytest.mark.parametrize("fitted", [False, True])
def test_every_subgraph_holds_both_ends_and_is_connected_without_the_link(fitted):
    graph, model = random_graph(14, 0.1, seed=1), LinkModel()
    algorithm = GFlowExplainer(**QUICK)
    if fitted:
        algorithm.fit(model, graph, edge_label_index=PAIRS, progress=False)
    for explanation, pair in zip(
        algorithm.explain(model, graph, edge_label_index=PAIRS, progress=False), PAIRS.t().tolist(), strict=True
    ):
        assert explanation.validate()
        assert explanation.explained_link == tuple(pair)
        assert explanation.connected
        whole = without_link(graph, pair)
        for subgraph in explanation.subgraphs:
            assert subgraph.nodes[:2] == tuple(pair)
            assert nx.is_connected(whole.subgraph(subgraph.nodes))
        assert explanation.node_mask[pair].flatten().tolist() == [1, 1]


@pytest.mark.parametrize("measure", ["growth", "uniform"])
@pytest.mark.parametrize("seed", range(4))
def test_enumeration_is_that_of_an_independent_library(measure, seed):
    graph = random_graph(10, 0.12, seed=seed)
    bound = 6
    detour = DETOUR if measure == "growth" else None
    inputs = instances_of(graph, torch.tensor([[0], [5]]), bound=bound, detour=detour)
    instances = inputs.instances
    whole = without_link(graph, (0, 5)).subgraph(instances.node_id.tolist())
    shortest = nx.shortest_path_length(whole, 0, 5) + 1
    within = bound if detour is None else min(bound, shortest + detour)
    expected = set()
    for size in range(2, bound + 1):
        for rest in itertools.combinations(set(whole) - {0, 5}, size - 2):
            inside = whole.subgraph({0, 5, *rest})
            # In a bound that is tighter than the size, some way inside has to keep it.
            if nx.is_connected(inside) and nx.shortest_path_length(inside, 0, 5) + 1 <= within:
                expected.add(frozenset(inside))
    found = enumerate_subgraphs(instances, torch.tensor([0]), instances.center, bound)
    sets = [
        frozenset(instances.node_id[[m for m in members if m >= 0]].tolist())
        for members, complete in zip(found.subgraphs.members.tolist(), found.states.complete.tolist(), strict=True)
        if complete
    ]
    assert set(sets) == expected
    assert len(sets) == len(expected)
    # No state is a dead end: it may stop or grow.
    assert bool((found.states.complete | found.states.can_grow).all())


@pytest.mark.parametrize("seed", range(3))
def test_parents_of_states_are_states_where_every_subgraph_counts_alike(seed):
    graph = random_graph(10, 0.12, seed=seed)
    instances = instances_of(graph, torch.tensor([[0], [5]]), bound=6, detour=None).instances
    found = enumerate_subgraphs(instances, torch.tensor([0]), instances.center, 6)
    known = {frozenset(m for m in members if m >= 0) for members in found.subgraphs.members.tolist()}
    states = found.states
    for row, slots in enumerate(states.parents("dag").tolist()):
        members = states.members[row].tolist()
        for slot in [slot for slot, is_parent in enumerate(slots) if is_parent]:
            assert frozenset(m for i, m in enumerate(members) if m >= 0 and i != slot) in known


def test_the_shown_distribution_is_close_to_full_enumeration():
    graph = random_graph(14, 0.1, seed=1)
    found = GFlowExplainer(max_nodes=5).explain(LinkModel(), graph, edge_label_index=PAIRS[:, :1], progress=False)
    assert found[0].certificate.distance < 0.03


def test_the_prediction_is_that_without_the_link_unless_it_is_to_stay():
    graph, model = path(6), LinkModel().eval()
    pair = torch.tensor([[2], [3]])
    ends = (graph.edge_index == pair).all(0) | (graph.edge_index == pair.flip(0)).all(0)
    cases = {True: graph.edge_index[:, ~ends], False: graph.edge_index}
    for remove, edges in cases.items():
        found = GFlowExplainer(**QUICK, remove_link=remove).explain(
            model, graph, edge_label_index=pair, progress=False
        )[0]  # fmt: skip
        assert found.whole_prediction[1] == pytest.approx(
            float(model(graph.x, edges, pair).sigmoid().detach()), abs=1e-5
        )
        assert found.connected is not remove
        assert bool(found.edge_mask[ends].any()) is not remove


def test_ends_that_nothing_joins_are_said_to_be_apart():
    graph = graph_of([(0, 1), (1, 2), (3, 4), (4, 5)], 6)
    found = GFlowExplainer(**QUICK).explain(
        LinkModel(), graph, edge_label_index=torch.tensor([[0], [5]]), progress=False
    )[0]  # fmt: skip
    assert not found.connected
    assert found.paths(3) == []
    assert {0, 5} <= set(found.subgraphs[0].nodes)


def test_a_way_that_is_longer_than_explanations_may_be_is_said_to_be_none():
    found = GFlowExplainer(**{**QUICK, "max_nodes": 3}, num_hops=3).explain(
        LinkModel(), path(6), edge_label_index=torch.tensor([[0], [4]]), progress=False
    )[0]  # fmt: skip
    assert not found.connected


def test_paths_are_those_of_an_independent_library():
    graph = random_graph(14, 0.1, seed=1)
    found = GFlowExplainer(**{**QUICK, "num_samples": 64}).explain(
        LinkModel(), graph, edge_label_index=PAIRS[:, :1], progress=False
    )[0]  # fmt: skip
    whole = without_link(graph, (0, 4))
    paths = found.paths(10)
    assert paths
    for ranked in paths:
        assert nx.is_simple_path(whole, ranked.nodes)
        assert (ranked.nodes[0], ranked.nodes[-1]) == (0, 4)
        for step, edge in zip(itertools.pairwise(ranked.nodes), ranked.edges, strict=True):
            assert tuple(graph.edge_index[:, edge].tolist()) == step
        inside = sum(
            s.probability
            for s in found.subgraphs
            if set(ranked.nodes) <= set(s.nodes)
        )  # fmt: skip
        assert ranked.probability == pytest.approx(inside)
    assert [p.probability for p in paths] == sorted((p.probability for p in paths), reverse=True)


def test_unsampled_paths_follow_those_that_were():
    # Ten ways of the same length from 0 to 1, of which a few samples see a few.
    graph = graph_of([(0, i) for i in range(2, 12)] + [(1, i) for i in range(2, 12)], 12)
    found = GFlowExplainer(**{**QUICK, "num_samples": 2, "max_nodes": 3}).explain(
        LinkModel(), graph, edge_label_index=torch.tensor([[0], [1]]), progress=False
    )[0]  # fmt: skip
    paths = found.paths(10)
    assert {p.nodes for p in paths} == {(0, i, 1) for i in range(2, 12)}
    assert paths[-1].probability == 0 < paths[0].probability


def test_through_pyg_one_link_or_one_of_several(tmp_path):
    graph, model = random_graph(14, 0.1, seed=1), LinkModel()
    masks = {"node_mask_type": "object", "edge_mask_type": "object"}
    explainer = Explainer(model, GFlowExplainer(**QUICK), explanation_type="model", model_config=EDGE, **masks)
    one = explainer(graph.x, graph.edge_index, edge_label_index=PAIRS[:, 1:2])
    same = explainer(graph.x, graph.edge_index, edge_label_index=PAIRS, index=1)
    assert one.explained_link == same.explained_link == (3, 9)
    assert torch.equal(one.node_mask, same.node_mask)
    assert one.explained_class == same.explained_class
    both = explainer(graph.x, graph.edge_index, edge_label_index=PAIRS)
    assert [e.explained_link for e in both.explanations] == [tuple(pair) for pair in PAIRS.t().tolist()]
    assert torch.equal(both.node_mask, torch.stack([e.node_mask for e in both.explanations]).amax(dim=0))
    one.save(tmp_path / "e.safetensors")
    stored = SubgraphExplanation.load(tmp_path / "e.safetensors")
    assert stored.explained_link == (3, 9)
    assert stored.paths(3) == one.paths(3)


def test_links_of_a_typed_graph(tmp_path):
    graph, model = typed_graph(), TypedLinkModel()
    whole = nx.Graph()
    for (source, _, target), edges in graph.edge_index_dict.items():
        whole.add_edges_from(((source, u), (target, v)) for u, v in edges.t().tolist())
    authors = graph["author", "writes", "paper"].edge_index[0, :3]
    pairs = torch.stack([authors, torch.tensor([1, 2, 0])])
    algorithm = GFlowExplainer(**QUICK).fit(model, graph, edge_label_index=pairs, edge_type=LIKES, progress=False)
    for explanation, (author, venue) in zip(
        algorithm.explain(model, graph, edge_label_index=pairs), pairs.t().tolist(), strict=True
    ):
        ends = ("author", author), ("venue", venue)
        assert explanation.validate()
        assert explanation.explained_link == ends
        assert explanation.connected
        assert nx.is_connected(whole.subgraph(explanation.subgraphs[0].nodes))
        best = explanation.paths(1)[0]
        assert nx.is_simple_path(whole, best.nodes)
        for (one, other), (key, number) in zip(itertools.pairwise(best.nodes), best.edges, strict=True):
            assert (one[0], other[0]) == (key[0], key[2])
            assert graph[key].edge_index[:, number].tolist() == [one[1], other[1]]
    algorithm.save(tmp_path)
    loaded = GFlowExplainer.load(tmp_path)
    again = loaded.explain(model, graph, edge_label_index=pairs)
    assert again[0].subgraphs == algorithm.explain(model, graph, edge_label_index=pairs)[0].subgraphs
    again[0].save(tmp_path / "e.safetensors")
    stored = TypedExplanation.load(tmp_path / "e.safetensors")
    assert stored.paths(2) == again[0].paths(2)
    assert stored.explained_link == again[0].explained_link


def test_a_typed_link_that_is_in_the_graph_is_left_out_in_both_directions():
    graph = typed_graph()
    key = ("paper", "in", "venue")
    predictor = Predictor(TypedLinkModel(), level="edge", mode="binary_classification")

    def joins_ends(**asked):
        task = task_of(predictor, graph, edge_label_index=graph[key].edge_index[:, :1], edge_type=key, **asked)
        instances = task._instances(torch.tensor([[0], [20 + venue]]))
        ends = {int(instances.center[0]), int(instances.other_end[0])}
        return [set(pair) for pair in instances.edge_index.t().tolist()].count(ends)

    # Papers stand first in the flat graph, then authors, then venues.
    venue = int(graph[key].edge_index[1, 0])
    assert joins_ends(remove_link=False) == 2
    assert joins_ends() == 0


def test_regression_of_links():
    config = {"mode": "regression", "task_level": "edge", "return_type": "raw"}
    found = GFlowExplainer(**QUICK).explain(
        LinkModel(), random_graph(14, 0.1, seed=1), edge_label_index=PAIRS, model_config=config, progress=False
    )
    assert found[0].explained_class is None
    assert found[0].validate()


def test_states_begin_at_the_first_end_and_stop_only_with_both():
    instances = instances_of(path(4), torch.tensor([[0], [2]]), bound=4).instances
    first = States.initial(instances, torch.tensor([0]), instances.center, 4)
    assert first.complete.tolist() == [False]
    assert instances.node_id[first.frontier].tolist() == [1]
    second = first.step(torch.tensor([0]))
    assert second.complete.tolist() == [False]
    third = second.step(torch.tensor([0]))
    assert instances.node_id[third.members[0, :3]].tolist() == [0, 1, 2]
    assert third.complete.tolist() == [True]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"edge_label_index": torch.tensor([[1], [1]])}, "two different nodes"),
        ({"edge_label_index": torch.tensor([[1], [99]])}, "names node 99"),
        ({"edge_label_index": torch.zeros(2, 0, dtype=torch.long)}, "is empty"),
        ({"edge_label_index": torch.zeros(3, 1, dtype=torch.long)}, r"shape \[2, num_links\]"),
        ({"edge_label_index": torch.zeros(2, 1)}, "whole numbers"),
        ({"edge_label_index": torch.tensor([[0], [1]]), "edge_type": LIKES}, "belongs to a HeteroData"),
        ({"edge_label_index": torch.tensor([[0], [1]]), "index": [3]}, "names link 3"),
        ({}, "Which links"),
    ],
)
def test_links_that_cannot_be_meant_are_refused(asked, message):
    with pytest.raises(GFlowExplainerError, match=message):
        GFlowExplainer(**QUICK).explain(LinkModel(), path(5), model_config=EDGE, progress=False, **asked)


def test_a_typed_link_needs_its_relation():
    with pytest.raises(GFlowExplainerError, match="edge_type"):
        GFlowExplainer(**QUICK).explain(
            TypedLinkModel(), typed_graph(), edge_label_index=torch.tensor([[0], [1]]), progress=False
        )  # fmt: skip


@pytest.mark.parametrize("settings", [{"objective": "detailed_balance"}, {"objective": "subtrajectory_balance"}])
def test_objectives_that_compare_states_which_may_stop_are_refused(settings):
    algorithm = GFlowExplainer(**{**QUICK, **settings})
    with pytest.raises(ConfigError, match="links"):
        algorithm.explain(LinkModel(), path(5), edge_label_index=torch.tensor([[0], [2]]), progress=False)


def test_a_model_of_nodes_explains_no_links():
    with pytest.raises(ConfigError, match="task_level='edge'"):
        GFlowExplainer(**QUICK).explain(
            LinkModel(), path(5), edge_label_index=torch.tensor([[0], [2]]), progress=False,
            model_config={**EDGE, "task_level": "node"},
        )  # fmt: skip


def test_only_links_have_paths():
    found = GFlowExplainer(**QUICK).explain(NodeModel(), random_graph(8, seed=0), [0], progress=False)
    with pytest.raises(ConfigError, match="no explanation of one"):
        found[0].paths()


@pytest.mark.parametrize("typed", [False, True])
def test_the_one_part_of_a_link_holds_its_first_subgraph(typed, tmp_path):
    graph, model = (typed_graph(), TypedLinkModel()) if typed else (random_graph(14, 0.1, seed=1), LinkModel())
    pairs, more = (PAIRS[:, :1], {}) if not typed else (torch.tensor([[0], [1]]), {"edge_type": LIKES})
    explanation = GFlowExplainer(**QUICK).explain(model, graph, edge_label_index=pairs, progress=False, **more)[0]
    (part,) = explanation.parts
    assert set(part.nodes) >= set(explanation.subgraphs[0].nodes)
    assert set(explanation.explained_link) <= set(part.nodes)
    assert explanation.parts.prediction_only == part.prediction_only
    assert isinstance(explanation.holds, bool)
    assert explanation.verdict
    assert explanation.name.startswith("link ")
    assert explanation.name in repr(explanation)
    explanation.save(tmp_path / "e")
    again = type(explanation).load(tmp_path / "e")
    assert again.parts == explanation.parts
    assert again.warnings == explanation.warnings
    assert again.explained_link == explanation.explained_link


class Twice(LinkModel):
    """Calls its layers twice, so that information travels twice as far as layers are counted."""

    def __init__(self):
        super().__init__()
        self.layer = GCNConv(3, 3)

    def forward(self, x, edge_index, edge_label_index):
        hidden = x
        for _ in range(3):
            hidden = self.layer(hidden, edge_index).tanh()
        return 3 * (hidden[edge_label_index[0]] * hidden[edge_label_index[1]]).sum(dim=1)


class Normed(Twice):
    """Looks at all nodes that it is given."""

    def forward(self, x, edge_index, edge_label_index):
        hidden = self.layer(x, edge_index)
        hidden = hidden - hidden.mean(dim=0)
        return 3 * (hidden[edge_label_index[0]] * hidden[edge_label_index[1]]).sum(dim=1)


@pytest.mark.parametrize("model", [Twice(), Normed()])
@torch.no_grad()
def test_what_a_model_of_links_depends_on_is_found_out(model):
    graph = random_graph(14, 0.1, seed=1)
    found = GFlowExplainer(**QUICK).explain(model, graph, edge_label_index=PAIRS, model_config=EDGE, progress=False)
    for explanation, pair in zip(found, PAIRS.t(), strict=True):
        source, target = graph.edge_index
        link = (source == pair[0]) & (target == pair[1]) | (source == pair[1]) & (target == pair[0])
        rest = graph.edge_index[:, ~link]
        whole = model(graph.x, rest, pair[:, None]).sigmoid()
        assert explanation.whole_prediction[1] == pytest.approx(float(whole), abs=1e-5)
        for subgraph in explanation.top(3):
            nodes = torch.tensor(sorted(subgraph.nodes))
            edges, _ = induced(nodes, rest, relabel_nodes=True, num_nodes=graph.num_nodes)
            alone = model(graph.x[nodes], edges, torch.searchsorted(nodes, pair.contiguous())[:, None]).sigmoid()
            assert subgraph.prediction_only[1] == pytest.approx(float(alone), abs=1e-5)


def test_a_folder_knows_which_links_it_is_of(tmp_path):
    graph, model = random_graph(14, 0.1, seed=1), LinkModel()
    algorithm = GFlowExplainer(**QUICK)
    algorithm.fit(model, graph, edge_label_index=PAIRS, folder=tmp_path, progress=False)
    with pytest.raises(GFlowExplainerError, match="edge_label_index"):
        algorithm.fit(model, graph, edge_label_index=PAIRS.flip(1), folder=tmp_path, progress=False)
    other = GFlowExplainer(**QUICK, remove_link=False)
    with pytest.raises(GFlowExplainerError, match="remove_link"):
        other.fit(model, graph, edge_label_index=PAIRS, folder=tmp_path, progress=False)


def test_links_farther_apart_than_those_fitted_to_are_joined():
    graph = graph_of([(0, 1), (1, 2), *((i, i + 1) for i in range(3, 10))])
    algorithm = GFlowExplainer(**{**QUICK, "max_nodes": 8})
    algorithm.fit(LinkModel(), graph, edge_label_index=torch.tensor([[0], [2]]), progress=False)
    found = algorithm.explain(LinkModel(), graph, edge_label_index=torch.tensor([[3], [7]]))[0]
    assert found.connected
    assert all({3, 4, 5, 6, 7} <= set(subgraph.nodes) for subgraph in found.subgraphs)
