"""Explainers from outside: algorithms of PyG as PyG itself runs them, and classes of the user's."""

import pytest
import torch
from torch_geometric.explain import DummyExplainer, Explainer, ExplainerConfig, Explanation
from torch_geometric.explain.algorithm import ExplainerAlgorithm

from gflowbench.explainers.foreign import PyGAlgorithm, import_explainer
from gflowexplainer.errors import ConfigError


class ByPlace(ExplainerAlgorithm):
    """Scores nodes by the sum of their features, edges by the source's."""

    def forward(self, model, x, edge_index, *, target, index=None, **kwargs):
        node = x.sum(dim=1, keepdim=True)
        return Explanation(node_mask=node, edge_mask=node[edge_index[0], 0])

    def supports(self) -> bool:
        return isinstance(self.explainer_config, ExplainerConfig)


def test_masks_are_read_off_at_the_instances(either_subject):
    scores = PyGAlgorithm("mine", ByPlace).explain(either_subject, 0)
    instances = either_subject.instances
    wanted = instances.x.double().sum(dim=1)
    torch.testing.assert_close(scores.node, wanted, atol=1e-5, rtol=0)
    torch.testing.assert_close(scores.edge, wanted[instances.edge_index[0]], atol=1e-5, rtol=0)


def test_an_algorithm_of_pyg_by_name(graph_subject):
    made = import_explainer("torch_geometric.explain:DummyExplainer")
    assert made.name == "DummyExplainer"
    part = graph_subject.select(torch.tensor([0]))
    found = made.explain(part, 3)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        explainer = Explainer(
            part.model,
            DummyExplainer(),
            explanation_type="model",
            node_mask_type="object",
            edge_mask_type="object",
            model_config={"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"},
        )
        wanted = explainer(part.instances.x, part.instances.edge_index)
    torch.testing.assert_close(found.edge, wanted.edge_mask.double())


def test_a_class_of_the_users():
    assert import_explainer("gflowbench.explainers.floors:Degree").name == "degree"


@pytest.mark.parametrize(
    ("place", "message"),
    [("nowhere", "module:attribute"), ("nowhere_at_all:X", "no explainer at"), ("json:JSONDecoder", "is no explainer")],
)
def test_what_is_no_explainer_is_refused(place, message):
    with pytest.raises(ConfigError, match=message):
        import_explainer(place)
