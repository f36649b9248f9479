"""Computation graphs, held against PyG's own cutter and networkx."""

import re
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.testing import NodeModel, cycle, house, path, random_graph, star


@st.composite
def graphs(draw: st.DrawFn) -> Data:
    """Directed graphs with self loops, duplicate edges, isolated nodes and several components."""
    number = draw(st.integers(1, 7))
    node = st.integers(0, number - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=16))
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()
    return Data(x=torch.arange(2.0 * number).view(number, 2), edge_index=edge_index)


def cut(graph: Data, index: Any, num_hops: int = 2, **arguments: Any) -> Instances:
    return Instances.around_nodes(graph.x, graph.edge_index, index, num_hops, **arguments)


def assert_same(left: Any, right: Any) -> None:
    if isinstance(left, Instances):
        left, right = vars(left), vars(right)
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for name in left:
            assert_same(left[name], right[name])
    elif isinstance(left, Tensor):
        torch.testing.assert_close(left, right, rtol=0, atol=0)
    else:
        assert left == right


def undirected(graph: Data) -> nx.Graph:
    simple = nx.Graph()
    simple.add_nodes_from(range(graph.num_nodes))
    simple.add_edges_from((u, v) for u, v in graph.edge_index.t().tolist() if u != v)
    return simple


@settings(deadline=None, max_examples=40)
@given(graphs(), st.integers(0, 3))
def test_cut_is_what_pyg_cuts(graph: Data, num_hops: int) -> None:
    instances = cut(graph, range(graph.num_nodes), num_hops)
    for node in range(graph.num_nodes):
        subset, edge_index, mapping, edge_mask = k_hop_subgraph(
            node, num_hops, graph.edge_index, relabel_nodes=True, num_nodes=graph.num_nodes
        )
        first, last = instances.ptr[node : node + 2].tolist()
        begin, end = instances.edge_ptr[node : node + 2].tolist()
        assert torch.equal(instances.node_id[first:last], subset)
        assert torch.equal(instances.edge_index[:, begin:end] - first, edge_index)
        assert torch.equal(instances.edge_id[begin:end], torch.nonzero(edge_mask).flatten())
        assert instances.center[node] - first == mapping
        assert torch.equal(instances.x[first:last], graph.x[subset])


@pytest.mark.parametrize("seed", range(3))
def test_cut_is_what_pyg_cuts_from_larger_graphs(seed: int) -> None:
    graph = random_graph(80, 0.03, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    # Dropping half of the edges makes the graph directed.
    graph.edge_index = graph.edge_index[:, torch.rand(graph.num_edges, generator=generator) < 0.5]
    index = torch.randint(0, 80, (20,), generator=generator)
    instances = cut(graph, index, 3)
    for number, node in enumerate(index.tolist()):
        subset, edge_index, _, edge_mask = k_hop_subgraph(node, 3, graph.edge_index, relabel_nodes=True, num_nodes=80)
        alone = instances.select(torch.tensor([number]))
        assert torch.equal(alone.node_id, subset)
        assert torch.equal(alone.edge_index, edge_index)
        assert torch.equal(alone.edge_id, torch.nonzero(edge_mask).flatten())


@settings(deadline=None, max_examples=40)
@given(graphs(), st.data())
def test_selecting_is_cutting_alone(graph: Data, data: st.DataObject) -> None:
    node = st.integers(0, graph.num_nodes - 1)
    index = torch.tensor(data.draw(st.lists(node, min_size=1, max_size=5)))
    chosen = torch.tensor(data.draw(st.lists(st.integers(0, index.numel() - 1), min_size=1, max_size=5)))
    arguments = {"edge_weight": torch.rand(graph.num_edges), "age": torch.rand(graph.num_nodes), "depth": 3}
    instances = cut(graph, index, **arguments)
    assert len(instances) == index.numel()
    assert_same(instances.select(chosen), cut(graph, index[chosen], **arguments))


def test_selecting_counts_from_the_end_as_tensors_do() -> None:
    instances = cut(random_graph(), [0, 5, 7])
    assert_same(instances.select(torch.tensor([-1, 0])), instances.select(torch.tensor([2, 0])))


@settings(deadline=None, max_examples=40)
@given(graphs(), st.randoms(use_true_random=False))
def test_relabelling_changes_nothing_but_ids(graph: Data, random: Any) -> None:
    order = list(range(graph.num_nodes))
    random.shuffle(order)
    rename = torch.tensor(order)
    renamed = Data(x=graph.x[rename.argsort()], edge_index=rename[graph.edge_index])
    before = cut(graph, range(graph.num_nodes))
    after = cut(renamed, rename)
    assert torch.equal(before.node_counts, after.node_counts)
    assert torch.equal(before.edge_id, after.edge_id)
    # Which place each node of the first cut has in the second.
    place = {(i, n): p for p, (i, n) in enumerate(zip(after.owner.tolist(), after.node_id.tolist(), strict=True))}
    move = torch.tensor(
        [place[i, order[n]] for i, n in zip(before.owner.tolist(), before.node_id.tolist(), strict=True)]
    )
    assert torch.equal(move[before.center], after.center)
    assert torch.equal(move[before.edge_index], after.edge_index)
    assert torch.equal(before.x, after.x[move])
    assert torch.equal(before.degree, after.degree[move])
    assert torch.equal(before.hops_to_center(3), after.hops_to_center(3)[move])


@settings(deadline=None, max_examples=40)
@given(graphs(), st.sampled_from([0, 1, 2, 3, 4, 12]))
def test_hops_to_center_are_networkx_distances(graph: Data, limit: int) -> None:
    instances = cut(graph, range(graph.num_nodes))
    hops = instances.hops_to_center(limit)
    for node in range(graph.num_nodes):
        inside = instances.owner == node
        ids = instances.node_id[inside].tolist()
        distance = nx.single_source_shortest_path_length(undirected(graph).subgraph(ids), node)
        assert hops[inside].tolist() == [min(distance[i], limit) for i in ids]


def test_at_graph_level_there_is_no_center() -> None:
    instances = Instances.of_graphs([path(3), star(2)])
    assert instances.center.tolist() == [-1, -1]
    assert instances.hops_to_center(4).tolist() == [4] * 6


def test_messages_travel_along_edges_only() -> None:
    # 0 -> 1 -> 2: nothing reaches node 0, everything reaches node 2.
    graph = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    instances = cut(graph, [0, 2])
    assert instances.node_counts.tolist() == [1, 3]
    assert instances.edge_counts.tolist() == [0, 2]


def test_self_loops_and_duplicates_stay_with_the_model_but_not_among_neighbors() -> None:
    graph = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 0, 0, 1, 2], [0, 1, 1, 1, 2]]))
    instances = cut(graph, [1, 2], 1)
    assert instances.edge_id.tolist() == [0, 1, 2, 3, 4]
    assert instances.edge_counts.tolist() == [4, 1]
    assert instances.degree.tolist() == [1, 1, 0]
    assert instances.neighbor.tolist() == [1, 0]


def test_isolated_node_is_an_instance_of_its_own() -> None:
    graph = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]]))
    instances = cut(graph, 2)
    assert (instances.node_id.tolist(), instances.center.tolist(), instances.edge_index.shape) == ([2], [0], (2, 0))
    assert instances.neighbor_ptr.tolist() == [0, 0]


def test_graph_without_edges() -> None:
    empty = torch.empty(2, 0, dtype=torch.long)
    assert Instances.around_nodes(torch.ones(2, 1), empty, [1, 0], 3).node_id.tolist() == [1, 0]
    assert Instances.of_graphs([Data(x=torch.ones(2, 1), edge_index=empty)]).degree.tolist() == [0, 0]


def test_other_components_do_not_reach_a_node() -> None:
    graph = Data(x=torch.ones(5, 1), edge_index=torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]))
    assert cut(graph, [0, 3, 4], 9).node_id.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "index",
    [3, (3,), [3], np.array([3]), torch.tensor(3), torch.tensor([3], dtype=torch.int32), torch.arange(5) == 3],
    ids=["int", "tuple", "list", "numpy", "scalar", "int32", "mask"],
)
def test_index_comes_in_many_forms(index: Any) -> None:
    assert_same(cut(house(), index), cut(house(), torch.tensor([3])))


def test_same_node_twice_is_two_instances() -> None:
    instances = cut(house(), [2, 2])
    assert_same(instances.select(torch.tensor([0])), instances.select(torch.tensor([1])))


def test_index_of_a_graph_is_shared() -> None:
    graph = random_graph()
    index = GraphIndex.build(graph.edge_index, graph.num_nodes)
    assert_same(cut(graph, [1, 4], graph_index=index), cut(graph, [1, 4]))
    with pytest.raises(
        InstanceError,
        match=r"built for a graph of 12 nodes and 60 edges, but this one has 5 nodes and 12 edges\. Build",
    ):
        cut(house(), 0, graph_index=index)


def test_arguments_are_cut_along() -> None:
    graph = random_graph(20, 0.05)
    weight, age = torch.rand(graph.num_edges, 2), torch.rand(20)
    instances = cut(graph, [3, 9], 1, edge_attr=weight, age=age, mode="mean", table=torch.eye(2))
    assert torch.equal(instances.edge_arguments["edge_attr"], weight[instances.edge_id])
    assert torch.equal(instances.node_arguments["age"], age[instances.node_id])
    assert instances.shared_arguments["mode"] == "mean"
    assert torch.equal(instances.shared_arguments["table"], torch.eye(2))


@pytest.mark.parametrize("level", ["node", "graph"])
def test_name_decides_where_there_are_as_many_nodes_as_edges(level: str) -> None:
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    weight, age = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0])
    graph = Data(x=torch.ones(3, 1), edge_index=edge_index, edge_weight=weight, age=age)
    if level == "node":
        instances = cut(graph, 0, 1, edge_weight=weight, age=age)
        assert instances.edge_arguments["edge_weight"].tolist() == [3.0]
        assert instances.node_arguments["age"].tolist() == [4.0, 6.0]
    else:
        instances = Instances.of_graphs([graph], arguments=["edge_weight", "age"])
        assert instances.edge_arguments.keys() == {"edge_weight"}
        assert instances.node_arguments.keys() == {"age"}


def test_whole_graphs_lie_behind_each_other() -> None:
    parts = [house(seed=1), path(3, seed=2), cycle(4, seed=3)]
    for part in parts:
        part.edge_attr = torch.rand(part.num_edges, 2)
        part.age = torch.rand(part.num_nodes)
    whole = Instances.of_graphs(parts, arguments=["edge_attr", "age"], first=10, mode="sum")
    assert whole.level == "graph"
    assert whole.graph.tolist() == [10, 11, 12]
    assert whole.node_id.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2, 3]
    assert whole.shared_arguments == {"mode": "sum"}
    for number, part in enumerate(parts):
        alone = Instances.of_graphs([part], arguments=["edge_attr", "age"], first=10 + number, mode="sum")
        assert_same(whole.select(torch.tensor([number])), alone)
        assert torch.equal(alone.edge_index, part.edge_index)
        assert torch.equal(alone.x, part.x)
        assert torch.equal(alone.edge_arguments["edge_attr"], part.edge_attr)
        assert torch.equal(alone.node_arguments["age"], part.age)


def test_node_keys_depend_on_ids_alone() -> None:
    graph = house()
    one, other = cut(graph, [0, 2], 1), cut(graph, [2], 4)
    keys = dict(zip(other.node_id.tolist(), other.key.tolist(), strict=True))
    assert one.key.tolist() == [keys[i] for i in one.node_id.tolist()]
    assert len(set(keys.values())) == 5
    graphs = Instances.of_graphs([graph, graph])
    assert len(set(graphs.key.tolist())) == 10


def test_the_key_of_an_instance_is_no_key_of_a_node() -> None:
    """Were it the key of its centre, {u} of the instance of v and {v} of the instance of u would have one sum."""
    graph = house()
    instances = cut(graph, [0, 1], 4)
    assert not set(instances.own_key.tolist()) & set(instances.key.tolist())
    sums = instances.own_key[instances.owner] + instances.key
    assert sums.unique().numel() == instances.num_nodes == 10
    graphs = Instances.of_graphs([graph, graph])
    assert graphs.own_key.unique().numel() == 2
    assert not set(graphs.own_key.tolist()) & set(graphs.key.tolist())


def test_moving_moves_every_tensor() -> None:
    graph = random_graph()
    instances = cut(graph, [1, 4], edge_weight=torch.rand(graph.num_edges), table=torch.eye(2), mode="mean")
    moved = instances.to("meta")
    tensors = [value for value in vars(moved).values() if isinstance(value, Tensor)]
    tensors += [moved.edge_arguments["edge_weight"], moved.shared_arguments["table"]]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert moved.device.type == "meta"
    assert moved.shared_arguments["mode"] == "mean"
    assert_same(instances.to("cpu"), instances)
    assert instances.degree.tolist() == instances.to("cpu").degree.tolist()  # what was counted before does not travel


def nan_at(node: int, value: float) -> Tensor:
    x = torch.zeros(5, 3)
    x[node, 1] = value
    return x


EDGES = house().edge_index


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"index": 900}, "'index' names node 900, but the graph has 5 nodes. Pass ids in [0, 5)."),
        ({"index": [0, -1]}, "'index' names node -1, but the graph has 5 nodes. Pass ids in [0, 5)."),
        ({"index": []}, "'index' is empty. Pass at least one node id."),
        ({"index": torch.zeros(5, dtype=torch.bool)}, "'index' is empty. Pass at least one node id."),
        ({"index": torch.ones(3, dtype=torch.bool)}, "mask of 3 entries, but the graph has 5 nodes. Pass one a node."),
        ({"index": 1.5}, "'index' must hold whole numbers (got torch.float32). Call .long() on it."),
        ({"index": "abc"}, "'index' must hold node ids (got 'abc')."),
        ({"index": None}, "'index' must hold node ids (got None)."),
        ({"index": [[0, 1], [2]]}, "'index' must hold node ids (got [[0, 1], [2]])."),
        ({"index": 2**70}, "'index' must hold node ids (got 1180591620717411303424)."),
        ({"x": torch.empty(0, 3)}, "There is nothing to explain: the graph has no nodes."),
        ({"x": nan_at(2, torch.nan)}, "The features of the graph hold NaN or infinity, first at node 2. Clean"),
        ({"x": nan_at(4, -torch.inf)}, "The features of the graph hold NaN or infinity, first at node 4. Clean"),
        ({"x": torch.zeros(5)}, "must be a float tensor [num_nodes, width] (got torch.float32 of shape (5,))."),
        (
            {"x": torch.zeros(5, 3).long()},
            "must be a float tensor [num_nodes, width] (got torch.int64 of shape (5, 3))",
        ),
        ({"x": [[1.0]]}, "must be a float tensor [num_nodes, width] (got list)."),
        ({"edge_index": EDGES.t()}, "must be a tensor of shape [2, num_edges] (got (12, 2))."),
        ({"edge_index": [[0], [1]]}, "must be a tensor of shape [2, num_edges] (got list)."),
        ({"edge_index": EDGES.float()}, "must be int64 (got torch.float32). Call .long() on it."),
        (
            {"edge_index": EDGES + 3},
            "'edge_index' names node 5, but the graph has 5 nodes. Every id must lie in [0, 5).",
        ),
        ({"edge_index": EDGES - 1}, "'edge_index' names node -1, but the graph has 5 nodes."),
        ({"num_hops": -1}, "'num_hops' must not be negative (got -1)."),
    ],
)
def test_mistakes_are_answered(changes: dict[str, Any], message: str) -> None:
    graph = house()
    arguments = {"x": graph.x, "edge_index": graph.edge_index, "index": 0, "num_hops": 2} | changes
    with pytest.raises(InstanceError, match=re.escape(message)):
        Instances.around_nodes(**arguments)


@pytest.mark.parametrize(
    ("graphs", "arguments", "message"),
    [
        ([], [], "'graphs' is empty. Pass at least one."),
        ([house(), path(width=4)], [], "different width (3, 4). One model needs one width."),
        ([house(), Data(edge_index=EDGES)], [], "Graph 1 has no 'x'. Set 'x' (node features"),
        ([Data(x=torch.ones(2, 3))], [], "Graph 0 has no 'edge_index'. Set 'edge_index' (node ids"),
        ([house(), Data(x=torch.empty(0, 3), edge_index=EDGES[:, :0])], [], "graph 1 has no nodes."),
        (
            [house(), Data(x=nan_at(3, torch.nan), edge_index=EDGES)],
            [],
            "graph 1 hold NaN or infinity, first at node 3",
        ),
        ([Data(x=torch.ones(2, 3), edge_index=EDGES)], [], "names node 2, but graph 0 has 2 nodes. Every id"),
        ([house()], ["edge_attr"], "(graph 0 has 5 nodes, 12 edges and no such tensor)."),
        ([Data(**house().to_dict(), age=torch.ones(7))], ["age"], "(graph 0 has 5 nodes, 12 edges and 7 rows)."),
        ([Data(**house().to_dict(), age=3)], ["age"], "(graph 0 has 5 nodes, 12 edges and no such tensor)."),
    ],
)
def test_mistakes_in_whole_graphs_are_answered(graphs: list[Data], arguments: list[str], message: str) -> None:
    with pytest.raises(InstanceError, match=re.escape(message)):
        Instances.of_graphs(graphs, arguments=arguments)


def test_surroundings_let_a_model_answer_as_on_the_whole_graph() -> None:
    """Degree normalisation counts the edges of the outermost nodes, also those from beyond the cut."""
    from gflowexplainer.model.predictor import Predictor

    graph = random_graph(60, 0.04, seed=3)
    model = NodeModel(seed=2).eval()
    whole = model(graph.x, graph.edge_index).softmax(dim=1).detach()
    index = torch.arange(60)
    instances = Instances.around_nodes(graph.x, graph.edge_index, index, 2)
    predictor = Predictor(model)
    torch.testing.assert_close(predictor.whole(instances), whole)
    # Without them the answer is another one, for some nodes.
    kept = torch.ones(instances.num_nodes, dtype=torch.bool)
    cut = predictor.predict(instances, index, kept, alone=True)
    assert (cut - whole).abs().max() > 1e-2
    chosen = torch.tensor([17, 3, 42])
    torch.testing.assert_close(predictor.whole(instances.select(chosen)), whole[chosen])


def test_removal_with_surroundings_is_removal_from_the_whole_graph() -> None:
    from torch_geometric.utils import subgraph

    from gflowexplainer.model.predictor import Predictor

    graph = random_graph(40, 0.05, seed=5)
    model = NodeModel(seed=2).eval()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [7], 2)
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        kept = torch.rand(instances.num_nodes, generator=generator) < 0.6
        kept[instances.center] = True
        left = torch.ones(40, dtype=torch.bool)
        left[instances.node_id[~kept]] = False
        edges, _ = subgraph(left, graph.edge_index, num_nodes=40)
        expected = model(graph.x, edges)[7].softmax(dim=0).detach()
        torch.testing.assert_close(Predictor(model).predict(instances, torch.tensor([0]), kept)[0], expected)


def test_wide_features_are_not_copied(monkeypatch) -> None:
    graph, nodes = random_graph(40, 0.06, 1), torch.tensor([7, 3])
    narrow = cut(graph, nodes)
    monkeypatch.setattr("gflowexplainer.graphs.instances.WIDE", 2)
    wide = cut(graph, nodes)
    assert wide.x.data_ptr() == graph.x.data_ptr()
    assert torch.equal(wide.rows(), narrow.x)
    for one, other in ((wide, narrow), (wide.surroundings, narrow.surroundings)):
        second = torch.tensor([1])
        assert torch.equal(one.select(second).rows(), other.select(second).rows())
        assert torch.equal(one.rows(torch.tensor([4, 0])), other.x[[4, 0]])
    graph.x[7, 0] = torch.nan
    with pytest.raises(InstanceError, match="node 7"):
        cut(graph, nodes)
