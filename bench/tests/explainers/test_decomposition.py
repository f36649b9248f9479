"""The decomposed forward pass against PyG's own forward pass and against a dense one that carries both portions."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj

from gflowbench.explainers.decomposition import Decomposition
from gflowbench.models.architecture import Architecture
from gflowbench.models.networks import GraphNetwork, build
from gflowexplainer.errors import ModelError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.testing import house, random_graph, star

SHAPES = {
    "node": {"task": "node"},
    "node-batch": {"task": "node", "normalization": "batch"},
    "node-none": {"task": "node", "normalization": "none"},
    "graph": {"task": "graph"},
    "graph-batch": {"task": "graph", "normalization": "batch"},
    "graph-padded": {"task": "graph", "padded_nodes": 9},
}


def network(shape: str) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = build(Architecture(model="gcn", in_channels=3, num_classes=3, hidden_channels=12, **SHAPES[shape]))
        for name, value in [*model.named_parameters(), *model.named_buffers()]:
            if value.is_floating_point():
                # Fresh biases are zero, and fresh statistics those of no normalisation: nothing would be tested.
                value.data = torch.rand_like(value) + 0.2 if "running_var" in name else torch.randn_like(value)
    return model.double().eval()


def doubles(data: Data) -> Data:
    return Data(x=data.x.double(), edge_index=data.edge_index)


def case(shape: str) -> tuple[Decomposition, list[Data]]:
    """A decomposition of several instances and the graph that each comes from, with what surrounds it."""
    model = network(shape)
    task = SHAPES[shape]["task"]
    predictor = Predictor(model, level=task)
    if task == "node":
        graph = doubles(random_graph(14, 0.05, seed=2))
        instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 5, 13], predictor.num_hops)
        assert instances.surroundings is not None
        return Decomposition(predictor, instances), [graph] * 3
    graphs = [doubles(g) for g in (house(seed=1), star(3, seed=2), random_graph(7, 0.3, seed=3))]
    return Decomposition(predictor, Instances.of_graphs(graphs)), graphs


def dense_portions(model: nn.Module, graph: Data, center: int, inside: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """DEGREE's rules with dense matrices and two portions that are carried side by side."""

    def biased(t, b, bias):
        share = torch.where(t.abs() > 0, t.abs() / (t.abs() + b.abs()), 0.0)
        return t + share * bias, b + bias - share * bias

    adjacency = to_dense_adj(graph.edge_index, max_num_nodes=graph.x.size(0))[0].double().T
    padded = getattr(model.architecture, "padded_nodes", None) or 0
    size = max(graph.x.size(0), padded)
    full = torch.zeros(size, size, dtype=torch.double)
    full[: graph.x.size(0), : graph.x.size(0)] = adjacency
    full += torch.eye(size, dtype=torch.double)
    root = full.sum(dim=1).rsqrt()
    operator = root[:, None] * full * root
    x = torch.zeros(size, graph.x.size(1), dtype=torch.double)
    x[: graph.x.size(0)] = graph.x
    mask = torch.zeros(size, 1, dtype=torch.double)
    mask[inside] = 1
    t, b = x * mask, x * (1 - mask)
    layers = []
    for number, conv in enumerate(model.convolutions):
        t, b = biased(operator @ t @ conv.lin.weight.T, operator @ b @ conv.lin.weight.T, conv.bias)
        if model.architecture.normalization == "l2":
            length = (t + b).norm(dim=1, keepdim=True)
            t, b = t / length, b / length
        t, b = t.relu(), (t + b).relu() - t.relu()
        if model.architecture.normalization == "batch" and number < 2:
            norm = (model.bn1, model.bn2)[number].module
            scale = norm.weight / (norm.running_var + norm.eps).sqrt()
            t, b = biased(t * scale, b * scale, norm.bias - norm.running_mean * scale)
        layers.append((t, b))
    if isinstance(model, GraphNetwork):
        where, column = (t + b).max(dim=0).indices, torch.arange(t.size(1))
        t, b = torch.cat([t[where, column], t.mean(dim=0)]), torch.cat([b[where, column], b.mean(dim=0)])
    else:
        t, b = (torch.cat([layer[part][center] for layer in layers]) for part in (0, 1))
    return biased(t @ model.lin.weight.T, b @ model.lin.weight.T, model.lin.bias)


def random_sets(instances: Instances, seed: int) -> Subgraphs:
    """Ten random node sets of every instance, among them nothing and everything."""
    generator = torch.Generator().manual_seed(seed)
    owners, rows, width = [], [], int(instances.node_counts.max())
    for number, (begin, end) in enumerate(instances.ptr.unfold(0, 2, 1).tolist()):
        for trial in range(10):
            chosen = torch.rand(end - begin, generator=generator) < trial / 9
            nodes = torch.nonzero(chosen).flatten() + begin
            rows.append(torch.cat([nodes, nodes.new_full((width - nodes.numel(),), -1)]))
            owners.append(number)
    return Subgraphs(torch.tensor(owners), torch.stack(rows))


@pytest.mark.parametrize("shape", SHAPES)
def test_both_portions_agree_with_dense_ones_and_add_up_to_the_model(shape):
    decomposition, graphs = case(shape)
    instances = decomposition.instances
    sets = random_sets(instances, 0)
    got = decomposition.contributions(sets)
    for row, instance in enumerate(sets.instance.tolist()):
        inside = instances.node_id[sets.members[row][sets.filled[row]]]
        center = int(instances.node_id[instances.center[instance]]) if instances.level == "node" else -1
        with torch.no_grad():
            target, background = dense_portions(decomposition.network, graphs[instance], center, inside)
        torch.testing.assert_close(got[row], target, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(decomposition.total[instance], target + background, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["gin", "gat", "graphsage"])
def test_other_layers_are_refused_by_name(name):
    model = build(Architecture(model=name, task="node", in_channels=3, num_classes=2))
    graph = random_graph(6)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0], 3)
    with pytest.raises(ModelError, match=f"no rule to decompose NodeNetwork .{type(model.conv1).__name__}"):
        Decomposition(Predictor(model), instances)
