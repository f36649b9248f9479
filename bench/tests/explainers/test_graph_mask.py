import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject, create
from gflowbench.explainers.graph_mask import _Gates
from gflowbench.explainers.masked_model import MaskedModel, differentiable
from gflowbench.models import build
from gflowbench.models.architecture import Architecture
from gflowexplainer.errors import ModelError


class Sum(torch.nn.Module):
    """One layer: the class of node 0 is decided by how many ones its neighbours send, of zeros it learns nothing."""

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(1, 4, normalize=False, add_self_loops=False, bias=False)
        self.conv.lin.weight.data.fill_(1.0)

    def forward(self, x, edge_index):
        total = self.conv(x, edge_index).mean(dim=1, keepdim=True)
        return torch.cat([torch.zeros_like(total), 4 * total - 6], dim=1)


@pytest.mark.parametrize("learned", [False, True])
def test_gates_stay_open_where_the_predictions_need_them(learned):
    """Node 0 has three neighbours that send a one and three that send a zero, node 7 six that send a zero."""
    graph = Data(
        x=torch.tensor([0.0, 1, 1, 1] + [0] * 10)[:, None],
        edge_index=torch.tensor([[1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13], [0] * 6 + [7] * 6]),
        y=torch.zeros(14, dtype=torch.long),
    )
    subject = Subject.of(Sum(), Benchmark.from_graphs([graph], task="node", index=[0, 7], num_classes=2))
    assert subject.target.label.tolist() == [1, 0]
    explainer = create("graphmask", epochs=150, learned_replacement=learned)
    explainer.fit(subject, 0)
    edge = explainer.explain(subject, 0).edge
    assert float(edge[:3].min()) > 5 * float(edge[3:].max())


def test_open_gates_leave_the_prediction_as_it_is(graph_subject):
    """PyG's own gates rescale every message, so that it is another model which is explained."""
    graphs = MaskedModel.of(graph_subject)
    with differentiable(graph_subject.predictor) as model:
        gates = _Gates(2, epochs=1, log=False)
        gates.measure(graphs)
        rows = graphs.graphs.num_nodes + int((graphs.graphs.edge_index[0] != graphs.graphs.edge_index[1]).sum())
        gates._inject_messages(model, [torch.ones(rows)] * 2, [torch.rand(8)] * 2)
        open_gates = graphs().softmax(dim=1)
        gates._inject_messages(model, [torch.zeros(rows)] * 2, [torch.rand(8)] * 2)
        shut_gates = graphs().softmax(dim=1)
    torch.testing.assert_close(open_gates, graph_subject.target.prediction)
    assert float((shut_gates - open_gates).abs().max()) > 1e-3


@pytest.mark.parametrize("model", ["gin", "gat"])
def test_layers_that_pyg_cannot_mask_are_refused(model, random_nodes):
    benchmark = Benchmark.from_graphs([random_nodes], task="node", index=[0], num_classes=2)
    network = build(Architecture(model=model, task="node", in_channels=3, num_classes=2)).eval()
    with pytest.raises(ModelError, match="PyG's GraphMask"):
        create("graphmask", epochs=2).fit(Subject.of(network, benchmark), 0)
    assert all(parameter.requires_grad for parameter in network.parameters())
