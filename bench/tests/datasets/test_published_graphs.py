from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from gflowbench.datasets import load, statistics

SHAPES = {
    "ba-shapes": nx.house_graph(),
    "ba-community": nx.house_graph(),
    "tree-cycles": nx.cycle_graph(6),
    "tree-grid": nx.grid_2d_graph(3, 3),
}


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "classes", "motifs", "evaluated"),
    [
        ("ba-shapes", 700, 4110, 4, 80, range(400, 700, 5)),
        ("ba-community", 1400, 8920, 8, 160, range(400, 700, 5)),
        ("tree-cycles", 871, 1942, 2, 60, range(511, 871, 6)),
        ("tree-grid", 1231, 3130, 2, 80, range(511, 800)),
    ],
)
def test_node_tasks(
    reference: Path, name: str, nodes: int, edges: int, classes: int, motifs: int, evaluated: range
) -> None:
    benchmark = load(name, "published")
    found = statistics(benchmark)
    assert (found.nodes, found.edges, found.classes, found.motifs) == (nodes, edges, classes, motifs)
    assert benchmark.index.tolist() == list(evaluated)
    assert benchmark.source == "published"
    assert f"{name.replace('-', '_')}.npz, SHA-256" in benchmark.provenance
    data = benchmark.data
    assert data.x.dtype == torch.float32
    marked = nx.Graph(data.edge_index[:, data.edge_motif].t().tolist())
    for component in nx.connected_components(marked):
        assert nx.is_isomorphic(marked.subgraph(component), SHAPES[name])
        assert len(data.motif_id[list(component)].unique()) == 1


def test_ba_2motifs(reference: Path) -> None:
    benchmark = load("ba-2motifs", "published")
    found = statistics(benchmark)
    assert (found.graphs, found.nodes, found.edges, found.self_loops) == (1000, 25000, 50960, 40)
    assert [len(benchmark.splits[key]) for key in ("train", "val", "test")] == [800, 100, 100]
    assert len(benchmark.index) == 200
    published = np.load(reference / "ba_2motifs.npz", allow_pickle=False)
    marks = torch.cat([graph.edge_motif for graph in benchmark.graphs]).numpy()
    loops = published["edge_index"][0] == published["edge_index"][1]
    assert np.array_equal(marks, published["edge_gt"].astype(bool) & ~loops)
    shapes = (nx.cycle_graph(5), nx.house_graph())
    for graph in benchmark.graphs[::50]:
        motif = nx.Graph(graph.edge_index[:, graph.edge_motif].t().tolist())
        assert nx.is_isomorphic(motif, shapes[int(graph.y)])
