"""What people do with PyG's explain interface, one use a row: each works, or is refused with what to do instead."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, SchNet
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csc_tensor, to_torch_csr_tensor

from gflowexplainer import GFlowExplainer, adapt
from gflowexplainer.errors import ConfigError, GFlowExplainerError
from gflowexplainer.testing import EdgeFeatureModel, GraphModel, LinkModel, NodeModel, path, random_graph

QUICK = {
    "max_nodes": 3, "epochs": 1, "rollouts": 2, "hidden": 4, "num_samples": 4, "num_contexts": 2,
    "reward": "prediction",
}  # fmt: skip
NODES = 12
DATA = random_graph(NODES, 0.2, seed=3)
GRAPHS = [random_graph(8, 0.2, seed=seed) for seed in range(3)]
IDS = torch.randint(0, 10, (NODES,), generator=torch.Generator().manual_seed(0))
LINKS = torch.tensor([[0, 1, 2], [3, 4, 5]])


def config(level="node", mode="multiclass_classification", return_type="raw"):
    return {"mode": mode, "task_level": level, "return_type": return_type}


def by_pyg(model, *given, level="node", mode="multiclass_classification", masks=("object", "object"), **asked):
    """Explains through PyG's ``Explainer``, which checks the masks."""
    node, edge = masks
    explainer = Explainer(
        model, GFlowExplainer(**QUICK), explanation_type="model", node_mask_type=node, edge_mask_type=edge,
        model_config=config(level, mode),
    )  # fmt: skip
    return explainer(*given, **asked)


def by_us(model, data, *index, **asked):
    return GFlowExplainer(**QUICK).explain(model, data, *index, progress=False, **asked)


class Embedded(nn.Module):
    """Looks features up: whole numbers, atoms, or ids of nodes."""

    def __init__(self, seed=0, layer=GCNConv):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.table, self.layer = nn.Embedding(NODES, 6), layer(6, 3)

    def forward(self, x, edge_index):
        return 3 * self.layer(self.table(x.reshape(-1)), edge_index)


class Atoms(Embedded):
    def forward(self, z, edge_index, batch=None):
        return super().forward(z, edge_index)


class OfData(NodeModel):
    def forward(self, data):
        return super().forward(data.x, data.edge_index)


class GraphOfData(GraphModel):
    def forward(self, data):
        return super().forward(data.x, data.edge_index, data.batch)


class Several(NodeModel):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index), x


class Named(NodeModel):
    def forward(self, x, edge_index):
        return {"scores": super().forward(x, edge_index)}


class Adjacency(nn.Module):
    def __init__(self, layer=GCNConv):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.layer = layer(3, 3)

    def forward(self, x, adj_t):
        return self.layer(x, adj_t)


class AllNodes(nn.Module):
    """Has features of its own for every node, and takes edges alone."""

    def __init__(self):
        super().__init__()
        self.table, self.layer = nn.Embedding(NODES, 6), GCNConv(6, 3)

    def forward(self, edge_index):
        return self.layer(self.table.weight, edge_index)


class Near(nn.Module):
    """The edges of SchNet, without torch-cluster."""

    def forward(self, pos, batch):
        distance = torch.cdist(pos, pos)
        joined = (distance < 3) & (batch[:, None] == batch) & ~torch.eye(len(pos), dtype=torch.bool)
        edges = joined.nonzero().t()
        return edges, distance[edges[0], edges[1]]


def points():
    place = torch.randn(8, 3, generator=torch.Generator().manual_seed(1))
    return Data(z=torch.arange(1, 9) % 4 + 1, pos=place, edge_index=path(8).edge_index)


def schnet():
    return SchNet(8, 8, 2, 8, interaction_graph=Near())


def transposed(make):
    """The adjacency matrix as PyG's layers take it: row i are the edges that end at i."""
    return make(DATA.edge_index.flip(0), size=(NODES, NODES))


def weighted(make, weight):
    return make(DATA.edge_index.flip(0), weight, size=(NODES, NODES))


def with_ids(shape):
    return Data(x=IDS.reshape(shape), edge_index=DATA.edge_index)


def bare(**fields):
    return Data(edge_index=DATA.edge_index, num_nodes=NODES, **fields)


def attributed():
    graphs = [graph.clone() for graph in GRAPHS]
    for graph in graphs:
        graph.edge_attr = torch.ones(graph.num_edges, 2)
    return graphs


BATCH = Batch.from_data_list(GRAPHS)
VALUE = config("graph", "regression")
BINARY = config("node", "binary_classification")
ONE_LABEL = adapt(NodeModel(), output=lambda out: out[:, 2:3])
BY_ID = adapt(Embedded(), call=lambda model, data: model(data.n_id, data.edge_index))

WORKS = {
    # Which predictions
    "one node": lambda: by_pyg(NodeModel(), DATA.x, DATA.edge_index, index=3),
    "one node, a tensor": lambda: by_pyg(NodeModel(), DATA.x, DATA.edge_index, index=torch.tensor(3)),
    "several, a list": lambda: by_pyg(NodeModel(), DATA.x, DATA.edge_index, index=[1, 2]),
    "several, a tensor": lambda: by_pyg(NodeModel(), DATA.x, DATA.edge_index, index=torch.tensor([1, 2])),
    "several, a mask": lambda: by_pyg(NodeModel(), DATA.x, DATA.edge_index, index=torch.arange(NODES) < 2),
    "all nodes": lambda: by_pyg(NodeModel(), path(3).x, path(3).edge_index),
    "one graph": lambda: by_pyg(GraphModel(), GRAPHS[0].x, GRAPHS[0].edge_index, level="graph"),
    "all graphs of a batch": lambda: by_pyg(GraphModel(), BATCH.x, BATCH.edge_index, level="graph", batch=BATCH.batch),
    "one graph of a batch": lambda: by_pyg(
        GraphModel(), BATCH.x, BATCH.edge_index, level="graph", batch=BATCH.batch, index=1
    ),
    "some graphs of a batch": lambda: by_pyg(
        GraphModel(), BATCH.x, BATCH.edge_index, level="graph", batch=BATCH.batch, index=[0, 2]
    ),
    "one link": lambda: by_pyg(
        LinkModel(), DATA.x, DATA.edge_index, level="edge", mode="binary_classification", edge_label_index=LINKS[:, :1]
    ),
    "several links": lambda: by_pyg(
        LinkModel(), DATA.x, DATA.edge_index, level="edge", mode="binary_classification", edge_label_index=LINKS
    ),
    "one of several links": lambda: by_pyg(
        LinkModel(),
        DATA.x,
        DATA.edge_index,
        level="edge",
        mode="binary_classification",
        edge_label_index=LINKS,
        index=1,
    ),
    "a mask of nodes, by us": lambda: by_us(NodeModel(), DATA, torch.arange(NODES) < 2),
    "a Batch, by us": lambda: by_us(GraphModel(), BATCH, [0, 2]),
    "a node model without labels or index": lambda: by_us(
        NodeModel(), Data(x=path(3).x, edge_index=path(3).edge_index)
    ),
    # Which masks
    "no edge mask": lambda: by_pyg(NodeModel(), DATA.x, DATA.edge_index, index=3, masks=("object", None)),
    "no node mask": lambda: by_pyg(NodeModel(), DATA.x, DATA.edge_index, index=3, masks=(None, "object")),
    "features": lambda: by_pyg(NodeModel(), DATA.x, DATA.edge_index, index=3, masks=("attributes", "object")),
    "common features": lambda: by_pyg(NodeModel(), DATA.x, DATA.edge_index, index=3, masks=("common_attributes", None)),
    # Adjacency matrices
    "csr": lambda: by_pyg(Adjacency(), DATA.x, transposed(to_torch_csr_tensor), index=3),
    "csc": lambda: by_pyg(Adjacency(SAGEConv), DATA.x, transposed(to_torch_csc_tensor), index=3),
    "coo": lambda: by_pyg(Adjacency(), DATA.x, transposed(to_torch_coo_tensor), index=3),
    "csr, several nodes": lambda: by_pyg(Adjacency(), DATA.x, transposed(to_torch_csr_tensor), index=[3, 4]),
    "adj_t of a Data": lambda: by_us(Adjacency(), Data(x=DATA.x, adj_t=transposed(to_torch_csr_tensor)), [3]),
    "SAGE on adj_t": lambda: by_us(Adjacency(SAGEConv), Data(x=DATA.x, adj_t=transposed(to_torch_csr_tensor)), [3]),
    # Features
    "whole numbers": lambda: by_us(Embedded(), with_ids((-1, 1)), [3]),
    "whole numbers through PyG": lambda: by_pyg(Embedded(), IDS[:, None], DATA.edge_index, index=3),
    "a vector of whole numbers": lambda: by_pyg(Embedded(), IDS, DATA.edge_index, index=3),
    "32 bits": lambda: by_us(Embedded(), Data(x=IDS[:, None].int(), edge_index=DATA.edge_index), [3]),
    "double": lambda: by_us(NodeModel().double(), Data(x=DATA.x.double(), edge_index=DATA.edge_index), [3]),
    "atoms": lambda: by_us(Atoms(), bare(z=IDS), [3]),
    "ids of nodes": lambda: by_us(BY_ID, bare(), [3]),
    "ids of nodes beside features": lambda: by_us(BY_ID, DATA, [3]),
    "z and pos": lambda: by_us(schnet(), [points()], model_config=VALUE),
    "z and pos by a function": lambda: by_us(
        adapt(schnet(), call=lambda model, data: model(data.z, data.pos, data.batch)), [points()], model_config=VALUE
    ),
    # Ways to call a model
    "forward(data)": lambda: by_us(adapt(OfData(), call=lambda model, data: model(data)), DATA, [3]),
    "forward(data) through PyG": lambda: by_pyg(
        adapt(OfData(), call=lambda model, data: model(data)), DATA.x, DATA.edge_index, index=3
    ),
    "forward(data) of graphs": lambda: by_us(adapt(GraphOfData(), call=lambda model, data: model(data)), GRAPHS),
    "a tuple": lambda: by_us(adapt(Several(), output=lambda out: out[0]), DATA, [3]),
    "a dictionary": lambda: by_us(adapt(Named(), output=lambda out: out["scores"]), DATA, [3]),
    "a tuple through PyG": lambda: by_pyg(
        adapt(Several(), output=lambda out: out[0]), DATA.x, DATA.edge_index, index=3
    ),
    "one of several labels": lambda: by_us(ONE_LABEL, DATA, [3], model_config=BINARY),
    "one of several labels through PyG": lambda: by_pyg(
        ONE_LABEL, DATA.x, DATA.edge_index, index=3, mode="binary_classification"
    ),
    "edge_attr": lambda: by_us(EdgeFeatureModel(), attributed(), [0], model_config=VALUE),
    "edge_weight by name": lambda: by_us(NodeModel(), DATA, [3], edge_weight=torch.ones(DATA.num_edges)),
    "a batch that a node model ignores": lambda: by_us(Atoms(), bare(z=IDS, batch=torch.zeros(NODES).long()), [3]),
    # Other kinds of modules
    "scripted": lambda: by_us(torch.jit.script(NodeModel()), DATA, [3]),
    "traced": lambda: by_us(torch.jit.trace(NodeModel(), (DATA.x, DATA.edge_index)), DATA, [3]),
    "DataParallel": lambda: by_us(nn.DataParallel(NodeModel()), DATA, [3]),
    "DataParallel through PyG": lambda: by_pyg(nn.DataParallel(NodeModel()), DATA.x, DATA.edge_index, index=3),
    "compiled": lambda: by_us(torch.compile(NodeModel(), backend="eager"), DATA, [3]),
    "in training mode": lambda: by_us(NodeModel().train(), DATA, [3]),
    "attention": lambda: by_us(Adjacency(GATConv), DATA, [3]),
}

REFUSED = {
    "several outputs": (lambda: by_us(Several(), DATA, [3]), "adapt(model, output="),
    "forward(data)": (lambda: by_us(OfData(), DATA, [3]), "adapt(model, call="),
    "several labels at once": (lambda: by_us(NodeModel(), DATA, [3], model_config=BINARY), "adapt(model, output="),
    "no edge_attr": (lambda: by_us(EdgeFeatureModel(), GRAPHS, model_config=VALUE), "Set it on"),
    "features of its own for all nodes": (lambda: by_us(AllNodes(), bare(), [3]), "let its forward take their ids"),
    "no x": (lambda: by_us(NodeModel(), bare(), [3]), "no 'x'"),
    "points without edges": (
        lambda: by_us(schnet(), [Data(z=IDS, pos=torch.randn(NODES, 3))], model_config=VALUE), "RadiusGraph",
    ),
    "forms that differ": (
        lambda: by_us(adapt(GraphOfData(), call=lambda m, d: m(d)), [GRAPHS[0], with_ids((-1, 1))]), "another form",
    ),
    "a mask of another length": (lambda: by_us(NodeModel(), DATA, torch.ones(5).bool()), "Pass one a node"),
    "an edge mask of features": (
        lambda: by_pyg(NodeModel(), DATA.x, DATA.edge_index, index=3, masks=("object", "attributes")),
        "of type 'object'",
    ),
    "a mask that is all false": (lambda: by_us(NodeModel(), DATA, torch.zeros(NODES).bool()), "is empty"),
}  # fmt: skip


@pytest.mark.parametrize("use", WORKS)
def test_a_use_works(use):
    found = WORKS[use]()
    if isinstance(found, list | tuple) or not hasattr(found, "validate"):
        assert len(found) >= 1
        found = found[0]
    assert found.validate(raise_on_error=True)
    assert found.edge_index.layout == torch.strided
    if "edge_mask" in found:
        assert found.edge_mask.shape == (found.edge_index.size(1),)
        assert 0 <= float(found.edge_mask.min()) <= float(found.edge_mask.max()) <= 1 + 1e-6


@pytest.mark.parametrize("use", REFUSED)
def test_a_use_is_refused_with_what_to_do(use):
    ask, remedy = REFUSED[use]
    with pytest.raises((GFlowExplainerError, ValueError)) as error:
        ask()
    assert remedy in str(error.value)


def said(explanation):
    """What the model says of it, with and without its first subgraph."""
    first = explanation.subgraphs[0]
    return explanation.whole_prediction, first.nodes, first.prediction_only, first.prediction_without


PAIRS = {
    "csr": (
        lambda: by_us(Adjacency(), Data(x=DATA.x, adj_t=transposed(to_torch_csr_tensor)), [3]),
        lambda: by_us(Adjacency(), DATA, [3]),
    ),
    "forward(data)": (
        lambda: by_us(adapt(OfData(), call=lambda model, data: model(data)), DATA, [3]),
        lambda: by_us(NodeModel(), DATA, [3]),
    ),
    "DataParallel": (lambda: by_us(nn.DataParallel(NodeModel()), DATA, [3]), lambda: by_us(NodeModel(), DATA, [3])),
    "scripted": (lambda: by_us(torch.jit.script(NodeModel()), DATA, [3]), lambda: by_us(NodeModel(), DATA, [3])),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_another_form_of_the_same_is_asked_the_same(pair):
    mine, usual = (make()[0] for make in PAIRS[pair])
    assert mine.whole_prediction == pytest.approx(usual.whole_prediction, abs=1e-5)
    by_nodes = {frozenset(s.nodes): s for s in usual.subgraphs}
    both = [(s, by_nodes[frozenset(s.nodes)]) for s in mine.subgraphs if frozenset(s.nodes) in by_nodes]
    for one, other in both:
        assert one.prediction_only == pytest.approx(other.prediction_only, abs=1e-5)
        assert one.prediction_without == pytest.approx(other.prediction_without, abs=1e-5)
    assert both


def test_what_is_explained_is_what_the_model_says():
    model, data = Embedded(), with_ids((-1, 1))
    (found,) = by_us(model, data, [3])
    assert found.whole_prediction == pytest.approx(model(data.x, data.edge_index)[3].softmax(0).tolist(), abs=1e-5)
    weight = torch.rand(DATA.num_edges) + 0.5
    (found,) = by_us(Adjacency(), Data(x=DATA.x, adj_t=weighted(to_torch_csr_tensor, weight)), [3])
    expected = Adjacency()(DATA.x, weighted(to_torch_csr_tensor, weight))[3].softmax(0)
    assert found.whole_prediction == pytest.approx(expected.tolist(), abs=1e-5)
    (found,) = by_us(ONE_LABEL, DATA, [3], model_config=BINARY)
    assert found.whole_prediction[1] == pytest.approx(NodeModel()(DATA.x, DATA.edge_index)[3, 2].sigmoid().item())


def test_a_matrix_of_another_library_is_read_and_built_again():
    class SparseTensor:
        """What torch-sparse offers, as far as it is used."""

        def __init__(self, row, col, value, sparse_sizes):
            self.row, self.col, self.value, self.sizes = row, col, value, sparse_sizes

        def coo(self):
            return self.row, self.col, self.value

    class Model(Adjacency):
        def forward(self, x, adj_t):
            assert isinstance(adj_t, SparseTensor)
            return super().forward(x, torch.stack([adj_t.col, adj_t.row]))

    matrix = SparseTensor(DATA.edge_index[1], DATA.edge_index[0], None, (NODES, NODES))
    (found,) = by_us(Model(), Data(x=DATA.x, adj_t=matrix), [3])
    assert found.whole_prediction == pytest.approx(by_us(Adjacency(), DATA, [3])[0].whole_prediction, abs=1e-5)


def test_two_ways_to_call_one_model_are_two_models():
    first, second = (adapt(NodeModel(), output=lambda out, k=k: out[:, k : k + 1]) for k in (0, 1))
    fitted = GFlowExplainer(**QUICK).fit(first, DATA, [3, 4], model_config=BINARY, progress=False)
    assert fitted.explain(first, DATA, [3])[0].subgraphs
    with pytest.raises(GFlowExplainerError, match="another model"):
        fitted.explain(second, DATA, [3])


def test_a_fitted_explainer_knows_its_adapted_model_again(tmp_path):
    model, data = Embedded(), with_ids((-1, 1))
    GFlowExplainer(**QUICK).fit(model, data, [3, 4], progress=False).save(tmp_path)
    assert GFlowExplainer.load(tmp_path).explain(model, data, [5])[0].subgraphs


def test_the_most_frequent_number_stands_for_one_that_is_not_there():
    (found,) = by_us(Embedded(), with_ids((-1, 1)), [3])
    features = found.feature_contributions()
    assert features.exact
    assert len(features.columns) == 1


@pytest.mark.parametrize("wrong", [{}, {"call": 3}, {"output": "first"}])
def test_adapting_nothing_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"nothing to adapt|must be a function"):
        adapt(NodeModel(), **wrong)


def test_a_graph_model_keeps_its_level():
    graph = Data(x=path(5).x, edge_index=path(5).edge_index)
    (found,) = by_us(GraphModel(), graph)
    assert found.explained_node is None


class Taking(NodeModel):
    """Has a method of a name that adapters have too."""

    def takes(self):
        return 1


def test_a_model_may_have_methods_of_any_name():
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    explainer = GFlowExplainer(max_nodes=3, epochs=2, rollouts=4, num_contexts=2)
    found, wanted = (
        explainer.explain(model, random_graph(10), index=[0], model_config=config, progress=False)[0]
        for model in (Taking().eval(), NodeModel().eval())
    )
    assert torch.equal(found.node_mask, wanted.node_mask)
