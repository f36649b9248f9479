import pytest
import torch
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark
from gflowexplainer.errors import DatasetError


def path(nodes: int = 4, features: int = 2, **more: object) -> Data:
    place = torch.arange(nodes - 1)
    edges = torch.cat([torch.stack([place, place + 1]), torch.stack([place + 1, place])], dim=1)
    return Data(x=torch.ones(nodes, features), edge_index=edges, **more)


def test_single_graph_with_node_labels_is_a_node_task() -> None:
    benchmark = Benchmark.from_graphs(path(y=torch.tensor([0, 1, 2, 0])))
    assert (benchmark.task, benchmark.num_classes, benchmark.source) == ("node", 3, "user")
    assert benchmark.index.tolist() == [0, 1, 2, 3]
    assert not benchmark.has_ground_truth
    assert "edge_motif" not in benchmark.data


def test_edges_give_motifs() -> None:
    # Only 0 -> 1 is marked (edge 0), and only in one direction.
    marks = torch.tensor([True, False, False, False, False, False])
    benchmark = Benchmark.from_graphs(path(y=torch.zeros(4), edge_motif=marks))
    assert benchmark.data.edge_motif.tolist() == [True, False, False, True, False, False]
    assert benchmark.data.motif_id.tolist() == [0, 0, -1, -1]
    assert benchmark.index.tolist() == [0, 1]
    assert benchmark.motif_nodes().tolist() == [0, 1]
    assert benchmark.motif_nodes(role=1).tolist() == [1]


def test_motifs_give_edges() -> None:
    benchmark = Benchmark.from_graphs(path(y=torch.zeros(4), motif_id=torch.tensor([-1, 3, 3, -1])))
    assert benchmark.data.edge_motif.tolist() == [False, True, False, False, True, False]
    assert benchmark.motif_nodes(role=0).tolist() == [1]


def test_graphs_of_the_user_stay_as_they_were() -> None:
    graph = path(y=torch.zeros(4), motif_id=torch.tensor([-1, 0, 0, -1]))
    graph.x = graph.x.double()
    checked = Benchmark.from_graphs(graph).data
    assert checked.x.dtype == torch.float32
    assert checked.y.dtype == torch.int64
    assert graph.x.dtype == torch.float64
    assert "edge_motif" not in graph


def test_graphs_without_labels_need_a_number_of_classes() -> None:
    assert Benchmark.from_graphs([path(), path()], num_classes=2).num_classes == 2
    with pytest.raises(DatasetError, match="Pass 'num_classes'"):
        Benchmark.from_graphs([path(), path()])


@pytest.mark.parametrize(
    ("graphs", "options", "message"),
    [
        ([], {}, "is empty"),
        (["house"], {}, "Graph 0 is a str"),
        ([Data(edge_index=torch.zeros(2, 0, dtype=torch.long))], {}, "no tensor 'x'"),
        ([Data(x=torch.ones(3))], {}, "no tensor 'edge_index'"),
        ([Data(x=torch.ones(3), edge_index=torch.zeros(2, 0, dtype=torch.long))], {}, r"got \[3\]"),
        ([Data(x=torch.ones(3, 1), edge_index=torch.zeros(2, 1))], {}, "int64 with shape"),
        ([Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [3]]))], {}, r"ids in \[0, 3\)"),
        ([path(), path(features=3)], {}, "Graph 1 has 3 features"),
        ([path(edge_motif=torch.ones(2))], {}, r"'edge_motif' must be a tensor of shape \[6\]"),
        ([path(motif_id=[0])], {}, "'motif_id' must be a tensor"),
        ([path(y=torch.zeros(3))], {"task": "node"}, r"needs 4 label\(s\)"),
        ([path(), path()], {"task": "node"}, "exactly one graph"),
        ([path(y=torch.zeros(4))], {"index": [4]}, r"Pass ids in \[0, 4\)"),
        ([path(y=torch.zeros(4))], {"index": [0.5]}, "must hold integers"),
        ([path(y=torch.zeros(1))] * 2, {"splits": {"train": [-1]}}, r"splits\['train'\]"),
    ],
)
def test_mistakes_are_named(graphs: list[Data], options: dict[str, object], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        Benchmark.from_graphs(graphs, **options)
