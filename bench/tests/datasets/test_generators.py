import networkx as nx
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import contains_self_loops, is_undirected

from gflowbench.datasets import Benchmark, generators, load
from gflowexplainer.errors import ConfigError

SHAPES = {
    "ba-shapes": nx.house_graph(),
    "ba-community": nx.house_graph(),
    "tree-cycles": nx.cycle_graph(6),
    "tree-grid": nx.grid_2d_graph(3, 3),
}
NODE_TASKS = tuple(SHAPES)


def to_networkx(data: Data, mask: torch.Tensor | None = None) -> nx.Graph:
    edges = data.edge_index if mask is None else data.edge_index[:, mask]
    return nx.Graph(edges.t().tolist())


@pytest.fixture(scope="module", params=NODE_TASKS)
def generated(request: pytest.FixtureRequest) -> Benchmark:
    return load(request.param, "generated", seed=3)


def test_every_motif_has_its_shape(generated: Benchmark) -> None:
    data, truth = generated.data, SHAPES[generated.name]
    whole, marked = to_networkx(data), to_networkx(data, data.edge_motif)
    for number in range(int(data.motif_id.max()) + 1):
        nodes = (data.motif_id == number).nonzero().view(-1).tolist()
        assert len(nodes) == generated.motif_size
        assert nx.is_isomorphic(marked.subgraph(nodes), truth)
        assert nx.is_isomorphic(whole.subgraph(nodes), truth)


def test_graph_is_connected_simple_and_undirected(generated: Benchmark) -> None:
    data = generated.data
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)
    graph = to_networkx(data)
    assert 2 * graph.number_of_edges() == data.num_edges
    assert graph.number_of_nodes() == data.num_nodes
    assert nx.is_connected(graph)


@pytest.mark.parametrize("name", [*NODE_TASKS, "ba-2motifs"])
def test_seed_decides_everything(name: str) -> None:
    first, again, other = (load(name, "generated", seed=seed) for seed in (5, 5, 6))
    for left, right in zip(first.graphs, again.graphs, strict=True):
        assert all(torch.equal(left[key], right[key]) for key in left.keys())  # noqa: SIM118
    pairs = zip(first.graphs, other.graphs, strict=True)
    assert any(not torch.equal(left.edge_index, right.edge_index) for left, right in pairs)


@pytest.mark.parametrize("name", NODE_TASKS)
def test_default_has_the_layout_of_the_published_file(name: str, reference: object) -> None:
    ours, theirs = load(name, "generated", seed=1), load(name, "published")
    assert ours.data.x.shape == theirs.data.x.shape
    for key in ("y", "motif_id"):
        assert torch.equal(ours.data[key], theirs.data[key])
    for key in ("train_mask", "val_mask", "test_mask"):
        assert ours.data[key].sum() == theirs.data[key].sum()
    assert torch.equal(ours.index, theirs.index)
    assert ours.data.edge_motif.sum() == theirs.data.edge_motif.sum()
    assert (ours.num_classes, ours.motif_size) == (theirs.num_classes, theirs.motif_size)
    if name != "tree-cycles":  # The number of second links is random there.
        assert ours.data.num_edges == theirs.data.num_edges
    if name != "ba-community":
        assert torch.equal(ours.data.x, theirs.data.x)
    # The part of the construction that is not random: the motifs themselves and where they hang.
    fixed = {tuple(edge) for edge in theirs.data.edge_index[:, theirs.data.edge_motif].t().tolist()}
    fixed |= {(node, int(anchor)) for node, anchor in attachments(ours).items()}
    assert fixed <= {tuple(edge) for edge in theirs.data.edge_index.t().tolist()}


def attachments(benchmark: Benchmark) -> dict[int, int]:
    """The base neighbour of node 0 of each motif, where noise gave it no second one."""
    data = benchmark.data
    found = {}
    for node in benchmark.motif_nodes(role=0).tolist():
        neighbours = data.edge_index[1, data.edge_index[0] == node]
        base = neighbours[data.motif_id[neighbours] < 0]
        if len(base) == 1:
            found[node] = int(base)
    return found


def test_published_edges_follow_the_rule_of_tree_cycles(reference: object) -> None:
    # Each ring has its own anchor; half of the rings have a second link, from nodes 1-3 to the next three.
    data = load("tree-cycles", "published").data
    extra = 0
    for source, target in data.edge_index.t().tolist():
        if data.motif_id[source] >= 0 and data.motif_id[target] < 0:
            ring, role = int(data.motif_id[source]), (source - 511) % 6
            extra += role in (1, 2, 3) and target - 8 * ring in (1, 2, 3)
    assert extra == 32


def test_noise_of_ten_percent_gives_the_edges_of_the_papers_tree_grid() -> None:
    assert generators.tree_grid(noise=0.1).data.num_edges == 3410


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("ba-shapes", {"num_motifs": 0}, "'num_motifs' must be a positive integer"),
        ("ba-shapes", {"num_base_nodes": 2.5}, "'num_base_nodes' must be a positive integer"),
        ("ba-shapes", {"edges_per_node": 300}, "must be below 'num_base_nodes'"),
        ("tree-grid", {"noise": 2}, "between 0 and 1"),
        ("tree-grid", {"attachment": "radnom"}, "Did you mean 'random'"),
        ("tree-cycles", {"cycle_size": 2}, "at least 3 nodes"),
        ("ba-2motifs", {"num_graphs": 1}, "at least 2"),
        ("ba-community", {"num_bridges": -1}, "must not be negative"),
    ],
)
def test_impossible_sizes(name: str, sizes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(name, "generated", **sizes)
