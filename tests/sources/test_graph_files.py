import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_undirected

from gflowexplainer.errors import ConfigError, DatasetError
from gflowexplainer.sources import load_graphs, load_typed_graph, save_graphs, save_typed_graph
from gflowexplainer.testing import cycle, house, path, typed_graph


def labelled(graph: Data, label: int) -> Data:
    edges = graph.edge_index.size(1)
    graph.y, graph.edge_attr = torch.tensor([label]), torch.arange(2.0 * edges).reshape(edges, 2)
    graph.role = torch.arange(graph.num_nodes)
    return graph


def same(one: Data, other: Data) -> bool:
    return set(one.keys()) == set(other.keys()) and all(torch.equal(one[name], other[name]) for name in one.keys())  # noqa: SIM118


@pytest.fixture
def graphs() -> list[Data]:
    return [labelled(house(), 0), labelled(path(1), 1), labelled(cycle(7), 1)]


def test_what_is_saved_is_loaded_again(graphs, tmp_path):
    found = load_graphs(save_graphs(tmp_path / "graphs.safetensors", graphs))
    assert len(found) == 3
    assert all(same(one, other) for one, other in zip(graphs, found, strict=True))


def test_one_graph_keeps_its_shapes(tmp_path):
    graph = house()
    graph.y, graph.scale = torch.arange(5), torch.tensor(2.0)
    (found,) = load_graphs(save_graphs(tmp_path / "one.safetensors", graph))
    assert same(graph, found)


@pytest.mark.parametrize("key", ["ptr", "batch"])
@pytest.mark.parametrize("kind", ["npz", "safetensors", "pt"])
def test_a_batch_of_pyg_as_flat_tensors(graphs, tmp_path, kind, key):
    batch = Batch.from_data_list(graphs)
    tensors = {name: batch[name] for name in ("x", "edge_index", "y", "edge_attr", "role", key)}
    file = tmp_path / f"graphs.{kind}"
    if kind == "npz":
        np.savez(file, **{name: value.numpy() for name, value in tensors.items()})
    elif kind == "pt":
        torch.save(tensors, file)
    else:
        save_file(tensors, file)
    assert all(same(one, other) for one, other in zip(graphs, load_graphs(file), strict=True))


def test_edges_in_any_order_find_their_graph(graphs, tmp_path):
    batch = Batch.from_data_list(graphs)
    order = torch.randperm(batch.edge_index.size(1), generator=torch.Generator().manual_seed(0))
    tensors = {"x": batch.x, "ptr": batch.ptr, "edge_index": batch.edge_index[:, order].contiguous()}
    save_file(tensors | {"edge_attr": batch.edge_attr[order]}, tmp_path / "mixed.safetensors")
    for one, other in zip(graphs, load_graphs(tmp_path / "mixed.safetensors"), strict=True):
        wanted = {(*edge, *row) for edge, row in zip(one.edge_index.t().tolist(), one.edge_attr.tolist(), strict=True)}
        found = zip(other.edge_index.t().tolist(), other.edge_attr.tolist(), strict=True)
        assert {(*edge, *row) for edge, row in found} == wanted


def test_a_data_and_a_list_of_data_saved_by_torch(graphs, tmp_path):
    torch.save(graphs[0], tmp_path / "one.pt")
    torch.save(graphs, tmp_path / "many.pth")
    assert same(load_graphs(tmp_path / "one.pt")[0], graphs[0])
    assert [graph.num_nodes for graph in load_graphs(tmp_path / "many.pth")] == [5, 1, 7]


class Bomb:
    def __reduce__(self):
        return (print, ("the pickle has run code",))


def test_a_pickle_with_code_is_refused_and_not_run(tmp_path, capsys):
    torch.save({"x": Bomb()}, tmp_path / "bomb.pt")
    with pytest.raises(DatasetError, match=r"could run foreign code.*save_graphs"):
        load_graphs(tmp_path / "bomb.pt")
    assert capsys.readouterr().out == ""


def test_json_by_names_and_by_ids(tmp_path):
    entry = {
        "nodes": ["ann", "bob", "eve"],
        "edges": [["ann", "bob"], [1, 2], [2, 1]],
        "features": [[1, 0], [0, 1], [0, 0]],
        "edge_features": [[1.0], [2.0], [9.0]],
        "labels": [0, 1, 1],
    }
    (tmp_path / "g.json").write_text(json.dumps(entry))
    (graph,) = load_graphs(tmp_path / "g.json")
    assert graph.node_names == ["ann", "bob", "eve"]
    assert graph.x.dtype == torch.float
    assert torch.equal(graph.edge_index, to_undirected(torch.tensor([[0, 1], [1, 2]])))
    assert graph.edge_attr.flatten().tolist() == [1, 1, 2, 2]
    assert graph.y.tolist() == [0, 1, 1]


def test_json_directed_and_many(tmp_path):
    one = {"num_nodes": 2, "edges": [[0, 1]], "features": [[1.0], [2.0]], "undirected": False, "label": 1}
    (tmp_path / "g.json").write_text(json.dumps([one, {**one, "edges": []}]))
    first, second = load_graphs(tmp_path / "g.json")
    assert first.edge_index.tolist() == [[0], [1]]
    assert second.edge_index.shape == (2, 0)
    assert first.y.tolist() == [1]


def test_a_folder_is_read_in_the_order_of_its_numbers(tmp_path):
    for number in (10, 2, 1):
        save_graphs(tmp_path / f"graph{number}.safetensors", cycle(number + 2))
    assert [graph.num_nodes for graph in load_graphs(tmp_path)] == [3, 4, 12]


def test_whole_numbers_become_floats(tmp_path):
    np.savez(tmp_path / "g.npz", x=np.eye(3, dtype=np.int64), edge_index=np.array([[0, 1], [1, 2]], dtype=np.int32))
    (graph,) = load_graphs(tmp_path / "g.npz")
    assert graph.x.dtype == torch.float32
    assert graph.edge_index.dtype == torch.int64


GOOD = {"edges": [[0, 1]], "features": [[1.0], [2.0]]}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"edges": [[0, 1]]}, "has no 'features'"),
        ({**GOOD, "edgs": []}, "Did you mean 'edges'"),
        ({**GOOD, "edges": [[0, 1, 2]]}, "must be a list of pairs"),
        ({**GOOD, "edges": [["ann", 0]]}, "names 'ann', which is no node"),
        ({**GOOD, "edges": [[0, 7]]}, "7"),
        ({**GOOD, "edges": [[0, 0.5]]}, "names 0.5"),
        ({**GOOD, "features": [[1.0], [2.0, 3.0]]}, "must be a list of lists of numbers"),
        ({**GOOD, "features": [1.0, 2.0]}, "must be a list of lists"),
        ({**GOOD, "num_nodes": 3}, "says 3, but there are 2 rows"),
        ({**GOOD, "nodes": ["a", "a"]}, "two nodes are called 'a'"),
        ({**GOOD, "labels": [1]}, "1 rows for 2 nodes"),
        ({**GOOD, "edge_weights": [1, 2]}, "2 rows for 1 edges"),
        ({**GOOD, "undirected": "yes"}, "true or false"),
        ("text", "is a str"),
        ([], "holds no graph"),
    ],
)
def test_json_mistakes(tmp_path, entry, said):
    (tmp_path / "g.json").write_text(json.dumps(entry))
    with pytest.raises(DatasetError, match=said):
        load_graphs(tmp_path / "g.json")


TENSORS = {"x": torch.ones(4, 2), "edge_index": torch.tensor([[0, 1, 2], [1, 0, 3]])}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"x": None}, "has no 'x'"),
        ({"x": torch.ones(4)}, r"shape \[num_nodes, width\]"),
        ({"edge_index": torch.ones(2, 3)}, "must hold whole numbers"),
        ({"edge_index": torch.tensor([[0], [9]])}, "9"),
        ({"ptr": torch.tensor([0, 3])}, "must count up from 0 to the 4 nodes"),
        ({"ptr": torch.tensor([0, 3, 4])}, "an edge joins two graphs"),
        ({"batch": torch.tensor([1, 0, 0, 0])}, "in order"),
        ({"batch": torch.tensor([0, 0, 0, 10**15])}, "in order"),
        (
            {"ptr": torch.tensor([0, 2, 4]), "edge_index": torch.tensor([[0, 1], [1, 0]]), "odd": torch.ones(5)},
            "5 rows",
        ),
    ],
)
def test_tensor_mistakes(tmp_path, change, said):
    tensors = {name: value for name, value in {**TENSORS, **change}.items() if value is not None}
    save_file(tensors, tmp_path / "g.safetensors")
    with pytest.raises(DatasetError, match=said):
        load_graphs(tmp_path / "g.safetensors")


def test_files_that_are_not_what_they_say(tmp_path):
    for name in ("g.npz", "g.safetensors", "g.pt", "g.json"):
        (tmp_path / name).write_bytes(b"\x80nonsense")
        with pytest.raises(DatasetError):
            load_graphs(tmp_path / name)
    np.savez(tmp_path / "objects.npz", x=np.array([{}], dtype=object))
    with pytest.raises(DatasetError, match="plain numbers"):
        load_graphs(tmp_path / "objects.npz")
    (tmp_path / "g.csv").write_text("")
    with pytest.raises(ConfigError, match="are read from"):
        load_graphs(tmp_path / "g.csv")
    with pytest.raises(DatasetError, match="beside it"):
        load_graphs(tmp_path / "g.tsv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="holds no graphs"):
        load_graphs(tmp_path / "empty")


def test_typed_files_of_all_formats_hold_the_same_graph(tmp_path):
    graph = typed_graph()
    del graph["author"].x
    graph["author"].num_nodes = 8
    (first,) = load_graphs(save_graphs(tmp_path / "graph.safetensors", graph))
    arrays = {f"edge_index__{'__'.join(key)}": value.numpy() for key, value in graph.edge_index_dict.items()}
    arrays |= {f"x__{key}": graph[key].x.numpy() for key in ("paper", "venue")} | {"num_nodes__author": np.array(8)}
    np.savez(tmp_path / "graph.npz", **arrays)
    nodes = {"paper": graph["paper"].x.tolist(), "venue": graph["venue"].x.tolist(), "author": 8}
    edges = {" ".join(key): value.t().tolist() for key, value in graph.edge_index_dict.items()}
    (tmp_path / "graph.json").write_text(json.dumps({"nodes": nodes, "edges": edges}))
    for other in (load_typed_graph(tmp_path / "graph.npz"), load_typed_graph(tmp_path / "graph.json")):
        assert set(other.node_types) == set(first.node_types) == {"paper", "author", "venue"}
        assert other["author"].num_nodes == first["author"].num_nodes == 8
        assert torch.allclose(other["paper"].x, first["paper"].x)
        for key in graph.edge_types:
            assert torch.equal(other[key].edge_index, graph[key].edge_index)


TYPED = {"x__user": np.ones((3, 2)), "x__item": np.ones((4, 2)), "edge_index__user__buys__item": np.array([[0], [3]])}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"x": np.zeros((2, 3))}, "NAME__TYPE"),
        ({"edge_index__user__buys__item": np.zeros((3, 2), dtype=np.int64)}, r"shape \[2, num_edges\]"),
        ({"edge_index__user__buys__item": np.array([[0.0], [1.9]])}, "whole numbers"),
        ({"edge_index__user__buys__item": np.array([[0], [9]])}, "names node 9, but 'item' has 4 nodes"),
        ({"edge_index__user__buys__item": np.array([[-1], [0]])}, "names node -1"),
        ({"edge_index__user__buys__thing": np.array([[0], [0]])}, "joins 'thing', of which there are no nodes"),
        ({"edge_idx__user__likes__item": np.array([[0], [0]])}, "'edge_index' of user likes item .* is missing"),
        ({"xx__shop": np.ones((3, 2))}, "Give 'x__shop' or 'num_nodes__shop'"),
        ({"x__user": np.ones(3)}, r"\[num_nodes, width\]"),
        ({"num_nodes__shop": np.array(-3)}, "number of nodes"),
        ({"num_nodes__shop": np.array(2.5)}, "number of nodes"),
        ({"num_nodes__shop": np.array(10**15)}, "more than memory holds"),
        ({"edge_attr__user__buys__item": np.ones((7, 1))}, "7 rows for 1 edges"),
    ],
)
def test_typed_arrays_that_cannot_be_meant(tmp_path, change, said):
    np.savez(tmp_path / "graph.npz", **TYPED)
    load_typed_graph(tmp_path / "graph.npz")
    np.savez(tmp_path / "graph.npz", **{**TYPED, **change})
    with pytest.raises(DatasetError, match=said):
        load_typed_graph(tmp_path / "graph.npz")


NODES = {"user": 3, "item": [[1.0], [0.5]]}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"nodes": NODES, "edges": {"user buys item": [[0, 1.9]]}}, "whole numbers"),
        ({"nodes": NODES, "edges": {"user buys item": [[0, 1, 1]]}}, "pairs of ids"),
        ({"nodes": NODES, "edges": {"user buys item": [0, 1]}}, "list of pairs"),
        ({"nodes": NODES, "edges": {"user item": [[0, 1]]}}, "NAME__SOURCE__RELATION__TARGET"),
        ({"nodes": NODES, "edges": {"user buys item": [[0, 1]]}, "edgs": {}}, "Did you mean 'edges'"),
        ({"nodes": {**NODES, "user": True}, "edges": {"user buys item": [[0, 1]]}}, "number of nodes"),
        ({"nodes": {**NODES, "user": -1}, "edges": {"user buys item": [[0, 1]]}}, "number of nodes"),
        ({"nodes": {**NODES, "user": 10**30}, "edges": {"user buys item": [[0, 1]]}}, "number of nodes"),
        ({"nodes": {}, "edges": {}}, "must hold 'nodes'"),
    ],
)
def test_typed_json_that_cannot_be_meant(tmp_path, entry, said):
    (tmp_path / "graph.json").write_text(json.dumps(entry))
    with pytest.raises(DatasetError, match=said):
        load_typed_graph(tmp_path / "graph.json")


@pytest.mark.parametrize("ending", [".npz", ".safetensors", ".json"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"[" * 100_000])
def test_empty_and_damaged_files(tmp_path, ending, content):
    path = tmp_path / f"graph{ending}"
    path.write_bytes(content)
    with pytest.raises(DatasetError):
        load_typed_graph(path)


def test_what_cannot_be_saved(tmp_path):
    graph = house()
    with pytest.raises(ConfigError, match=r"written as \.safetensors"):
        save_graphs(tmp_path / "g.pt", graph)
    graph.remark = "text"
    with pytest.raises(DatasetError, match="'remark' of graph 0 is a str"):
        save_graphs(tmp_path / "g.safetensors", graph)
    with pytest.raises(DatasetError, match="Only 1 of 2 graphs have 'y'"):
        save_graphs(tmp_path / "g.safetensors", [labelled(house(), 0), house()])
    with pytest.raises(DatasetError, match="no graph"):
        save_graphs(tmp_path / "g.safetensors", [])
    typed = typed_graph()
    typed["paper"].titles = ["one"]
    with pytest.raises(DatasetError, match="'titles' of paper is a list"):
        save_typed_graph(tmp_path / "g.safetensors", typed)
    with pytest.raises(DatasetError, match="holds no heterogeneous graph"):
        load_typed_graph(save_graphs(tmp_path / "g.safetensors", house()))
