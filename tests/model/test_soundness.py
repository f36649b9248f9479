"""What is shown is what a plain call of the user's model says: on directed graphs, after changes, graph by graph."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import DirGNNConv, GCNConv
from torch_geometric.utils import degree, subgraph, to_undirected

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.inputs import InputGraph
from gflowexplainer.model.cache import ModelCache
from gflowexplainer.model.one_graph import NodeTask
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.tasks import task_of
from gflowexplainer.testing import GraphModel, LinkModel, NodeModel, cycle, random_graph


def directed(seed=0, nodes=20):
    graph = random_graph(nodes, 0.1, seed=seed)
    keep = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(seed)) < 0.5
    return Data(x=graph.x, edge_index=graph.edge_index[:, keep])


class Backwards(NodeModel):
    def forward(self, x, edge_index, edge_weight=None):
        return super().forward(x, edge_index.flip(0))


class Both(NodeModel):
    def forward(self, x, edge_index, edge_weight=None):
        return super().forward(x, to_undirected(edge_index, num_nodes=x.size(0)))


class Directions(NodeModel):
    def build(self):
        self.first, self.second = DirGNNConv(GCNConv(3, 8)), DirGNNConv(GCNConv(8, 3))

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class Blind(Backwards):
    """NaN does not spread in it."""

    def forward(self, x, edge_index, edge_weight=None):
        return super().forward(x.nan_to_num(), edge_index)


class Hub(NodeModel):
    """Divides by the largest degree of all nodes."""

    def forward(self, x, edge_index, edge_weight=None):
        count = degree(edge_index[1], x.size(0))
        return super().forward(x * (count / count.max().clamp(min=1))[:, None], edge_index)


@pytest.mark.parametrize("make", [NodeModel, Backwards, Both, Directions, Blind, Hub])
def test_a_prediction_without_nodes_is_that_of_a_plain_call_whatever_way_the_model_looks(make):
    graph, model = directed(), make(seed=1).eval()
    task = NodeTask(Predictor(model, num_hops=None), InputGraph(graph.x, graph.edge_index, {}), limit=1000)
    inputs = task.inputs()
    with torch.no_grad():
        plain = model(graph.x, graph.edge_index).softmax(dim=1)
    torch.testing.assert_close(inputs.target.prediction, plain)
    generator = torch.Generator().manual_seed(0)
    for node in range(graph.num_nodes):
        instance = inputs.instances.select(torch.tensor([node]))
        gone = torch.rand(graph.num_nodes, generator=generator) < 0.3
        gone[node] = False
        kept = ~gone[instance.node_id]
        ours = inputs.predictor.predict(instance, torch.tensor([0]), kept)
        # Nodes that the instance does not hold make no difference: they stay.
        stays = ~(gone & torch.zeros_like(gone).index_fill(0, instance.node_id, True))
        edge_index, _ = subgraph(stays, graph.edge_index, relabel_nodes=True, num_nodes=graph.num_nodes)
        with torch.no_grad():
            wanted = model(graph.x[stays], edge_index)[int(stays[:node].sum())].softmax(dim=0)
        torch.testing.assert_close(ours[0], wanted)


class BackwardLinks(LinkModel):
    def forward(self, x, edge_index, edge_label_index):
        return super().forward(x.nan_to_num(), to_undirected(edge_index, num_nodes=x.size(0)), edge_label_index)


class SizeLinks(LinkModel):
    """Counts nodes once there are more than any small part has."""

    def forward(self, x, edge_index, edge_label_index):
        return super().forward(x, edge_index, edge_label_index) + 0.02 * max(0, x.size(0) - 200)


@pytest.mark.parametrize("make", [LinkModel, BackwardLinks, SizeLinks])
def test_a_link_is_predicted_as_in_the_whole_graph_without_it(make):
    graph, model = cycle(300) if make is SizeLinks else directed(), make().eval()
    pairs = torch.tensor([[0, 5], [7, 11]])
    predictor = Predictor(model, level="edge", mode="binary_classification")
    for pair in pairs.t():
        inputs = task_of(predictor, graph, edge_label_index=pair[:, None], limit=1000).inputs()
        joins = (graph.edge_index == pair[:, None]).all(dim=0) | (graph.edge_index == pair.flip(0)[:, None]).all(dim=0)
        with torch.no_grad():
            plain = model(graph.x, graph.edge_index[:, ~joins], pair[:, None]).sigmoid()
        torch.testing.assert_close(inputs.target.prediction[:, 1], plain.flatten())


def test_what_is_larger_than_instances_may_be_is_said():
    graph, model = directed(nodes=60), Blind(seed=1).eval()
    task = NodeTask(Predictor(model), InputGraph(graph.x, graph.edge_index, {}), limit=59)
    inputs = task.inputs()
    assert any("depends on more of the graph than is looked at" in note for note in inputs.predictor.notes)


class Factor:
    """No attribute that can be looked into."""

    value = 1.0


class Scaled(NodeModel):
    def build(self):
        super().build()
        self.factor = Factor()

    def forward(self, x, edge_index, edge_weight=None):
        return self.factor.value * super().forward(x, edge_index)


def test_a_change_that_cannot_be_looked_at_is_noticed_by_what_is_predicted():
    graph, model, cache = random_graph(20, 0.1), Scaled(seed=1).eval(), ModelCache()

    def predicted():
        return task_of(Predictor(model, known=cache.model(model)), graph, cache, index=[3]).inputs().target.prediction

    before = predicted()
    assert torch.equal(predicted(), before)
    model.factor.value = -1.0
    with torch.no_grad():
        wanted = model(graph.x, graph.edge_index)[3:4].softmax(dim=1)
    torch.testing.assert_close(predicted(), wanted)
    assert not torch.allclose(before, wanted)


@pytest.mark.parametrize(
    "several", [lambda g: DataLoader(g, 2), lambda g: list(DataLoader(g, 2)), Batch.from_data_list]
)
def test_several_graphs_are_explained_one_by_one(several):
    graphs, model = [random_graph(6, seed=seed) for seed in range(3)], GraphModel().eval()
    found = task_of(Predictor(model, level="graph"), several(graphs)).inputs()
    with torch.no_grad():
        wanted = torch.cat([model(g.x, g.edge_index, torch.zeros(6, dtype=torch.long)) for g in graphs])
    torch.testing.assert_close(found.target.prediction, wanted.softmax(dim=1))


@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_union_that_is_no_batch_is_refused(level):
    both = Batch.from_data_list([random_graph(6, seed=seed) for seed in range(2)])
    union = Data(x=both.x, edge_index=both.edge_index, batch=both.batch)
    model: nn.Module = NodeModel() if level == "node" else GraphModel()
    with pytest.raises(InstanceError, match="'batch' of the graph names several graphs"):
        GFlowExplainer().explain(
            model,
            union,
            [0],
            model_config={"mode": "multiclass_classification", "task_level": level, "return_type": "raw"},
        )
