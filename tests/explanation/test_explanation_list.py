"""The explanations of one call, built when they are looked at."""

import pytest
import torch
from torch_geometric.data import Batch

from gflowexplainer import GFlowExplainer, SubgraphExplanation
from gflowexplainer.errors import ModelError
from gflowexplainer.testing import GraphModel, LinkModel, NodeModel, TypedNodeModel, random_graph, typed_graph

QUICK = {"max_nodes": 4, "epochs": 3, "rollouts": 4, "num_contexts": 4, "hidden": 8, "num_samples": 16}


class Counting(NodeModel):
    """Counts how often it is called."""

    calls = 0

    def forward(self, x, edge_index, edge_weight=None):
        self.calls += 1
        return super().forward(x, edge_index, edge_weight)


@pytest.fixture
def fitted():
    graph, model = random_graph(20, 0.1, seed=2), Counting(seed=1)
    algorithm = GFlowExplainer(**QUICK).fit(model, graph, range(8), progress=False)
    return graph, model, algorithm


def test_it_is_a_sequence(fitted):
    graph, model, algorithm = fitted
    many = algorithm.explain(model, graph, [3, 9, 12, 5])
    assert len(many) == 4
    assert [explanation.explained_node for explanation in many] == [3, 9, 12, 5]
    assert many[1] is many[1]
    assert many[-1].explained_node == 5
    part = many[1:3]
    assert [explanation.explained_node for explanation in part] == [9, 12]
    assert part[0] is many[1]
    assert [e.explained_node for e in reversed(many)] == [5, 12, 9, 3]
    assert repr(many).splitlines()[0] == "ExplanationList of 4 explanations"
    assert len(repr(many).splitlines()) == 5
    for wrong in (4, -5):
        with pytest.raises(IndexError):
            many[wrong]


def test_masks_are_one_sparse_block(fitted):
    graph, model, algorithm = fitted
    many = algorithm.explain(model, graph, [3, 9, 12])
    assert many.node_mask.shape == (3, 20)
    assert many.edge_mask.shape == (3, graph.num_edges)
    assert torch.equal(many.node_mask.to_dense(), torch.stack([one.node_mask[:, 0] for one in many]))
    assert torch.equal(many.edge_mask.to_dense(), torch.stack([one.edge_mask for one in many]))
    assert torch.equal(many[1:].node_mask.to_dense(), many.node_mask.to_dense()[1:])


def test_the_largest_probability_is_that_of_all_that_are_in_the_list(fitted):
    graph, model, algorithm = fitted
    many = algorithm.explain(model, graph, [3, 9, 12])
    for some in (many, many[1:], many[2:]):
        assert torch.equal(some.largest("node"), torch.stack([one.node_mask[:, 0] for one in some]).amax(dim=0))
        assert torch.equal(some.largest("edge"), torch.stack([one.edge_mask for one in some]).amax(dim=0))


def test_masks_of_graphs_of_different_size():
    graphs, model = [random_graph(size, 0.2, seed=size) for size in (6, 9, 7)], GraphModel()
    many = GFlowExplainer(**QUICK).fit(model, graphs, progress=False).explain(model, graphs)
    assert many.node_mask.shape == (3, 9)
    for row, one in zip(many.node_mask.to_dense(), many, strict=True):
        size = one.node_mask.size(0)
        assert torch.equal(row[:size], one.node_mask[:, 0])
        assert not row[size:].any()


def shuffled(graph, seed=3):
    """The same graph with its edges in another order, some of them twice and some loops."""
    order = torch.randperm(graph.num_edges, generator=torch.Generator().manual_seed(seed))
    loops = torch.arange(4).repeat(2, 1)
    graph.edge_index = torch.cat([loops, graph.edge_index[:, order], graph.edge_index[:, :3]], dim=1)
    return graph


def explained_nodes():
    return GFlowExplainer(**QUICK).explain(NodeModel(), shuffled(random_graph(20, 0.1, seed=2)), [9, 3], progress=False)


def explained_parts_of_surroundings():
    algorithm = GFlowExplainer(**QUICK, max_graph_nodes=15)
    return algorithm.explain(NodeModel(), shuffled(random_graph(40, 0.2, seed=4)), [30, 3], progress=False)


def explained_graphs():
    graphs = [shuffled(random_graph(size, 0.3, seed=size)) for size in (6, 9, 7)]
    return GFlowExplainer(**QUICK).explain(GraphModel(), graphs, progress=False)


def explained_links():
    graph, pairs = shuffled(random_graph(14, 0.1, seed=1)), torch.tensor([[0, 3, 5], [4, 9, 6]])
    return GFlowExplainer(**QUICK).explain(LinkModel(), graph, edge_label_index=pairs, progress=False)


def explained_types():
    return GFlowExplainer(**QUICK).explain(TypedNodeModel(), typed_graph(), [4, 1], node_type="paper", progress=False)


@pytest.mark.parametrize(
    "explain", [explained_nodes, explained_parts_of_surroundings, explained_graphs, explained_links, explained_types]
)
def test_masks_stand_in_order(explain):
    many = explain()
    for mask in (many.node_mask, many.edge_mask):
        row, column = mask.indices()
        assert bool((torch.diff(row * mask.size(1) + column) > 0).all())
        assert mask.values().numel() > 0


def test_the_model_is_evaluated_only_for_what_is_looked_at(fitted):
    graph, model, algorithm = fitted
    many = algorithm.explain(model, graph, [3, 9, 12])
    before = model.calls
    assert all(sum(s.probability for s in one.subgraphs) == pytest.approx(1) for one in many)
    assert many[0].node_mask[3, 0] == 1
    assert model.calls == before
    assert len(many[0].subgraphs[0].prediction_only) == 3
    once = model.calls
    assert once > before
    # All explanations of the call were evaluated together.
    assert {len(s.prediction_only) for one in many for s in one.subgraphs} == {3}
    assert model.calls == once


def test_a_model_that_has_changed_since_is_not_asked(fitted):
    graph, model, algorithm = fitted
    (one,) = algorithm.explain(model, graph, [3])
    with torch.no_grad():
        model.first.bias.add_(1.0)
    with pytest.raises(ModelError, match="trained on after it was explained"):
        one.subgraphs[0].prediction_only  # noqa: B018


def test_a_table_of_all(fitted):
    pytest.importorskip("pandas")
    graph, model, algorithm = fitted
    many = algorithm.explain(model, graph, [3, 9])
    table = many.to_dataframe()
    assert table["node"].tolist() == [3, 9]
    assert table["nodes"].tolist() == [one.subgraphs[0].nodes for one in many]
    assert table["size"].tolist() == [len(one.subgraphs[0]) for one in many]


def test_graphs_are_named_by_their_positions(tmp_path):
    graphs = [random_graph(6, seed=seed) for seed in range(4)]
    many = GFlowExplainer(**QUICK).explain(GraphModel(), graphs, index=[3, 1], progress=False)
    assert [one.name for one in many] == ["graph 3", "graph 1"]
    assert [one.explained_graph for one in many] == [3, 1]
    assert "of graph 3\n" in repr(many[0])
    assert "1: graph 1, " in repr(many)
    assert "of graph 1." in str(many[1].summary())
    many[1].save(tmp_path / "one")
    assert SubgraphExplanation.load(tmp_path / "one").name == "graph 1"
    batch = GFlowExplainer(**QUICK).explain(GraphModel(), Batch.from_data_list(graphs), index=[2], progress=False)
    assert batch[0].name == "graph 2"
    alone = GFlowExplainer(**QUICK).explain(GraphModel(), graphs[0], progress=False)
    assert alone[0].name == "graph"
    assert alone[0].explained_graph is None


def test_a_table_names_graphs_and_links():
    pytest.importorskip("pandas")
    graphs = [random_graph(6, seed=seed) for seed in range(3)]
    table = GFlowExplainer(**QUICK).explain(GraphModel(), graphs, index=[2, 0], progress=False).to_dataframe()
    assert table["graph"].tolist() == [2, 0]
    assert "node" not in table
    link = torch.tensor([[0], [4]])
    links = GFlowExplainer(**QUICK).explain(LinkModel(), graphs[0], edge_label_index=link, progress=False)
    assert links.to_dataframe()["link"].tolist() == [(0, 4)]
    assert "of link 0 - 4." in str(links[0].summary())
