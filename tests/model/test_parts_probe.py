import pytest
import torch
from torch import nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import HANConv, HeteroConv, HGTConv, SAGEConv

from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import TypedNodeModel, random_graph, typed_graph


def chain(length=12):
    """Cities along a road, joined by roads in both directions, and each with a house."""
    graph = HeteroData()
    graph["city"].x = torch.randn(length, 3, generator=torch.Generator().manual_seed(0))
    graph["house"].x = torch.ones(length, 2)
    places = torch.arange(length)
    graph["city", "road", "city"].edge_index = torch.stack([places[:-1], places[1:]])
    graph["house", "in", "city"].edge_index = torch.stack([places, places])
    return graph


class Walks(nn.Module):
    """One layer that is called so many times, then a norm over all nodes it sees if asked for."""

    def __init__(self, times, norm=False):
        super().__init__()
        torch.manual_seed(0)
        self.into = nn.ModuleDict({"city": nn.Linear(3, 4), "house": nn.Linear(2, 4)})
        edges = [("city", "road", "city"), ("house", "in", "city")]
        self.layer = HeteroConv({key: SAGEConv((4, 4), 4) for key in edges})
        self.times, self.norm = times, norm

    def forward(self, x_dict, edge_index_dict):
        hidden = {key: self.into[key](x) for key, x in x_dict.items()}
        for _ in range(self.times):
            hidden = {**hidden, **self.layer(hidden, edge_index_dict)}
        city = hidden["city"]
        return city - city.mean(dim=0) if self.norm else city


FEW = {"max_nodes": 3, "epochs": 1, "num_contexts": 4, "num_samples": 8, "rollouts": 4}


def located(model, data, **asked):
    algorithm = GFlowExplainer(**FEW)
    algorithm.explain(model, data, progress=False, **asked)
    (found,) = algorithm._kept._localities.values()
    return found


@pytest.mark.parametrize("times", [1, 3, 5])
def test_a_layer_counts_as_often_as_it_is_called(times):
    found = located(Walks(times), chain(), index=[11], node_type="city")
    assert (found.local, found.together, found.hops) == (True, "union", times)


@pytest.mark.parametrize("times", [1, 3])
def test_a_layer_that_may_not_be_given_nan_is_counted_too(times):
    class Named(Walks):
        def forward(self, x_dict, edge_index_dict):
            if any(x.isnan().any() for x in x_dict.values()):
                raise ValueError("features that are NaN name nothing")
            return super().forward(x_dict, edge_index_dict)

    assert located(Named(times), chain(), index=[11], node_type="city").hops == times


def test_a_model_that_looks_at_everything_is_evaluated_alone():
    model, data, algorithm = Walks(2, norm=True), chain(), GFlowExplainer(**FEW)
    entry = algorithm.explain(model, data, index=[5, 6], node_type="city", progress=False)
    (found,) = algorithm._kept._localities.values()
    assert (found.local, found.together) == (False, "alone")
    assert "looks at all nodes" in entry[0].warnings[0]
    for explanation in entry:
        # The truth: PyG's own subgraph, and a plain call of the model.
        nodes = explanation.subgraphs[0].nodes
        keep = {t: torch.tensor(sorted(i for kind, i in nodes if kind == t), dtype=torch.long) for t in data.node_types}
        cut = data.subgraph(keep)
        place = keep["city"].tolist().index(explanation.explained_node[1])
        with torch.no_grad():
            wanted = model(cut.x_dict, cut.edge_index_dict)[place].softmax(dim=0)
        assert torch.allclose(torch.tensor(explanation.subgraphs[0].prediction_only), wanted, atol=1e-5)


class Hetero(nn.Module):
    def __init__(self, layer, data):
        super().__init__()
        torch.manual_seed(0)
        self.into = nn.ModuleDict({t: nn.Linear(data[t].num_features, 8) for t in data.node_types})
        self.layer, self.out = layer(8, 8, data.metadata(), heads=2), nn.Linear(8, 3)

    def forward(self, x_dict, edge_index_dict):
        hidden = {key: self.into[key](x) for key, x in x_dict.items()}
        return self.out(self.layer(hidden, edge_index_dict)["paper"])


@pytest.mark.parametrize("layer", [HGTConv, HANConv])
def test_attention_over_relations_is_local(layer):
    data = typed_graph()
    found = located(Hetero(layer, data), data, index=[3], node_type="paper")
    assert (found.local, found.together, found.hops) == (True, "union", 1)


def test_usual_models_are_local():
    found = located(TypedNodeModel(), typed_graph(), index=[3], node_type="paper")
    assert (found.local, found.together, found.failure) == (True, "union", "")


class Picky(nn.Module):
    """Fails on graphs that are smaller than the user's."""

    def __init__(self):
        super().__init__()
        self.layer = SAGEConv(3, 2)

    def forward(self, x, edge_index):
        if x.size(0) < 14:
            raise ValueError("too small")
        return self.layer(x, edge_index)


def test_a_probe_that_fails_counts_as_not_local():
    from gflowexplainer.graphs.inputs import InputGraph
    from gflowexplainer.model.parts_probe import probe_parts
    from gflowexplainer.model.predictor import Predictor

    data = random_graph(20, 0.2)
    found = probe_parts(Predictor(Picky(), level="node"), InputGraph(data.x, data.edge_index, {}))
    assert (found.local, found.together) == (False, "alone")
    assert "too small" in found.failure
    (said,) = found.notes("Picky", 1)
    assert "could not be found out" in said
