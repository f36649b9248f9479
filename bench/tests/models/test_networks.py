import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, MessagePassing

from gflowbench.models import MODELS, Architecture, build
from gflowbench.models.networks import GraphNetwork, NodeNetwork
from gflowexplainer.testing import cycle, graph_of, random_graph, star


def network(model: str, task: str, **settings: object) -> NodeNetwork | GraphNetwork:
    torch.manual_seed(0)
    made = build(Architecture(model=model, task=task, in_channels=4, num_classes=3, **settings))  # type: ignore[arg-type]
    with torch.no_grad():  # biases start at zero in PyG; padding would then be invisible
        for name, parameter in made.named_parameters():
            if name.endswith("bias"):
                parameter.normal_()
    return made.eval()


def graphs() -> list[Data]:
    return [star(4, width=4), cycle(4, width=4), graph_of([], 1, width=4), random_graph(6, width=4)]


@pytest.mark.parametrize("model", MODELS)
def test_layers_are_message_passing_of_the_papers_shape(model):
    node, graph = network(model, "node"), network(model, "graph")
    assert isinstance(node, NodeNetwork)
    assert isinstance(graph, GraphNetwork)
    for made, width in ((node, 60), (graph, 40)):
        assert all(isinstance(layer, MessagePassing) for layer in made.convolutions)
        assert sum(isinstance(module, MessagePassing) for module in made.modules()) == 3
        assert made.lin.weight.shape == (3, width)
    data = graphs()[0]
    lengths = torch.stack(node.layers(data.x, data.edge_index)).norm(dim=-1)
    assert (lengths <= 1 + 1e-6).all()


@pytest.mark.parametrize("model", MODELS)
def test_a_disjoint_union_gives_what_its_members_give_alone(model):
    members = graphs()
    union = Batch.from_data_list(members)
    node, graph = network(model, "node"), network(model, "graph")
    alone = torch.cat([node(data.x, data.edge_index) for data in members])
    torch.testing.assert_close(node(union.x, union.edge_index), alone)
    for made in (graph, network(model, "graph", padded_nodes=6)):
        alone = torch.cat([made(data.x, data.edge_index) for data in members])
        torch.testing.assert_close(made(union.x, union.edge_index, union.batch), alone)


def test_gcn_network_is_the_formula():
    made, data = network("gcn", "graph"), graphs()[1]
    adjacency = torch.eye(4)
    adjacency[data.edge_index[0], data.edge_index[1]] = 1
    scale = adjacency.sum(0).rsqrt()
    x = data.x
    for layer in made.convolutions:
        x = scale[:, None] * adjacency * scale @ x @ layer.lin.weight.T + layer.bias
        x = (x / x.norm(dim=1, keepdim=True)).relu()
    expected = made.lin(torch.cat([x.max(dim=0).values, x.mean(dim=0)]))
    torch.testing.assert_close(made(data.x, data.edge_index)[0], expected)


@pytest.mark.parametrize("model", MODELS)
def test_padding_in_closed_form_equals_real_padding(model):
    padded, plain = network(model, "graph", padded_nodes=6), network(model, "graph")
    plain.load_state_dict(padded.state_dict())
    real = []
    for data in graphs():
        extra = torch.arange(data.num_nodes, 6)
        real.append(
            Data(
                x=torch.cat([data.x, torch.zeros(len(extra), 4)]),
                edge_index=torch.cat([data.edge_index, torch.stack([extra, extra])], dim=1),
            )
        )
    union, filled = Batch.from_data_list(graphs()), Batch.from_data_list(real)
    answer = padded(union.x, union.edge_index, union.batch)
    torch.testing.assert_close(answer, plain(filled.x, filled.edge_index, filled.batch))
    assert not torch.allclose(answer, plain(union.x, union.edge_index, union.batch))


def test_batch_normalisation_follows_the_first_two_layers():
    made = network("gcn", "node", normalization="batch")
    assert isinstance(made.conv1, GCNConv)
    assert {name for name in made.state_dict() if name.startswith("bn")} == {
        f"bn{i}.module.{part}"
        for i in (1, 2)
        for part in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    }
    data = graphs()[0]
    assert made(data.x, data.edge_index).shape == (5, 3)
