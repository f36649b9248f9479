"""A model that no fingerprint tells from another is told from it by what it returns."""

import pytest
import torch
from torch_geometric.data import Data

from gflowexplainer import GFlowExplainer, adapt
from gflowexplainer.errors import CheckpointError, ModelError
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.tasks import task_of
from gflowexplainer.model.witness import Witness
from gflowexplainer.storage.identity import model_fingerprint
from gflowexplainer.testing import GraphModel, LinkModel, NodeModel, TypedNodeModel, random_graph, typed_graph

QUICK = {
    "max_nodes": 3,
    "epochs": 1,
    "rollouts": 2,
    "hidden": 4,
    "num_samples": 4,
    "num_contexts": 2,
    "reward": "context",
}


class Holder:
    """An object of the user's."""

    factor = 1.0


def scaling(factor):
    return lambda x: x * factor


class Flexible(NodeModel):
    def build(self):
        super().build()
        self.act, self.table, self.holder, self.scaled = torch.relu, {"a": 1.0}, Holder(), scaling(1.0)

    def forward(self, x, edge_index, edge_weight=None):
        hidden = self.act(self.first(self.scaled(x), edge_index, edge_weight))
        return self.table["a"] * self.holder.factor * self.second(hidden, edge_index, edge_weight)


CHANGES = {
    "activation": lambda model: setattr(model, "act", torch.tanh),
    "dictionary": lambda model: model.table.update(a=2.0),
    "object": lambda model: setattr(model.holder, "factor", 2.0),
    "closure": lambda model: setattr(model, "scaled", scaling(2.0)),
    "hook": lambda model: model.register_forward_hook(lambda *given: given[-1] * 2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_behind_the_fingerprint_is_refused(name, tmp_path):
    graph, model = random_graph(12, 0.2), Flexible(seed=1).eval()
    before = model_fingerprint(model)
    fitted = GFlowExplainer(**QUICK).fit(model, graph, [0, 1], folder=tmp_path, progress=False)
    assert len(fitted.explain(model, graph, [3])) == 1
    CHANGES[name](model)
    assert model_fingerprint(model) == before
    for explainer in (fitted, GFlowExplainer.load(tmp_path)):
        with pytest.raises(ModelError, match="fitted to another model"):
            explainer.explain(model, graph, [3])
    with pytest.raises(CheckpointError, match="'predictions' differs"):
        GFlowExplainer(**QUICK).fit(model, graph, [0, 1], folder=tmp_path, progress=False)


@pytest.mark.parametrize(
    ("model", "data", "wanted"),
    [
        (NodeModel(), random_graph(12), {"level": "node"}),
        (GraphModel(), [random_graph(6)], {"level": "graph"}),
        (LinkModel(), random_graph(12), {"level": "edge", "mode": "binary_classification"}),
        (TypedNodeModel(), typed_graph(), {"level": "node"}),
        (adapt(NodeModel(), output=lambda out: 2 * out), random_graph(12), {"level": "node"}),
    ],
    ids=["node", "graph", "link", "typed", "adapted"],
)
def test_the_call_of_any_model_can_be_repeated_from_a_file(model, data, wanted):
    links = {"edge_label_index": torch.tensor([[0], [3]])} if wanted["level"] == "edge" else {}
    witness = task_of(Predictor(model.eval(), **wanted), data, **links).witness()
    assert witness is not None
    again = Witness.from_tensors(witness.tensors())
    assert again.agrees(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5)
    assert not again.agrees(model)


def test_a_random_model_has_no_witness():
    class Random(NodeModel):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index) + torch.rand(x.size(0), 3)

    graph: Data = random_graph(12)
    assert task_of(Predictor(Random()), graph).witness() is None
