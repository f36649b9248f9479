import math

import pytest
import torch
from torch_geometric.explain import Explanation
from torch_geometric.explain.metric import unfaithfulness as pyg_unfaithfulness

from gflowbench.explainers import Subject
from gflowbench.metrics.fidelity import fidelity, robust_fidelity, unfaithfulness


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


@pytest.fixture
def hub(two_triangles, count_neighbors):
    """Node 2 has neighbours 0, 1 and 3: class 1 with probability sigmoid(3 - 1)."""
    return Subject.of(count_neighbors, two_triangles, [2], num_hops=2)


def nodes(subject, *ids):
    return torch.isin(subject.instances.node_id, torch.tensor(ids))


def test_fidelity_of_a_node_by_hand(hub):
    found = fidelity(hub, nodes(hub, 2, 0, 1))
    # Without 0 and 1 one neighbour is left; with only them, two are.
    assert found.plus == pytest.approx(sigmoid(2) - sigmoid(0))
    assert found.minus == pytest.approx(sigmoid(2) - sigmoid(1))
    # sigmoid(0) is a tie, which goes to class 0: the label is lost without the explanation.
    assert (found.plus_label, found.minus_label) == (1.0, 0.0)


def test_the_two_removals_differ_on_graphs(molecules, mean_degree):
    subject = Subject.of(mean_degree, molecules, [0])
    explanation = torch.tensor([True, True, True, False, False])
    # The triangle alone has mean degree 2; with two isolated nodes more it has 6 / 5. The whole has 10 / 5.
    assert fidelity(subject, explanation, "induced").minus == pytest.approx(0, abs=1e-6)
    assert fidelity(subject, explanation, "isolate").minus == pytest.approx(sigmoid(2) - sigmoid(6 / 5), abs=1e-6)
    # Without it the edge 3-4 is left: mean degree 1, or 2 / 5 when all nodes stay.
    assert fidelity(subject, explanation, "induced").plus == pytest.approx(sigmoid(2) - sigmoid(1), abs=1e-6)
    assert fidelity(subject, explanation, "isolate").plus == pytest.approx(sigmoid(2) - sigmoid(2 / 5), abs=1e-6)


def test_unfaithfulness_takes_the_whole_prediction_as_reference():
    whole, only = torch.tensor([[0.9, 0.1]]).double(), torch.tensor([[0.5, 0.5]]).double()
    forward = 0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.5)
    backward = 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1)
    assert float(unfaithfulness(whole, only)) == pytest.approx(1 - math.exp(-forward))

    class Reversed:  # PyG's own function on the same two predictions
        class model_config:
            from torch_geometric.explain.config import ModelMode, ModelReturnType, ModelTaskLevel

            mode, return_type = ModelMode.multiclass_classification, ModelReturnType.probs
            task_level = ModelTaskLevel.graph

        node_mask_type = edge_mask_type = None
        explanation_type = None

        def get_masked_prediction(self, *args, **kwargs):
            return only

    explanation = Explanation(x=torch.ones(1, 1), edge_index=torch.empty(2, 0), prediction=whole)
    explanation._model_args = []
    assert pyg_unfaithfulness(Reversed(), explanation) == pytest.approx(1 - math.exp(-backward))


def test_robust_fidelity_with_full_shares_is_the_plain_one(hub):
    explanation = nodes(hub, 2, 0, 1)
    plain = fidelity(hub, explanation)
    robust = robust_fidelity(hub, explanation, num_contexts=2, remove_share=1.0, keep_share=0.0)
    assert robust == (pytest.approx(plain.plus), pytest.approx(plain.minus))


def test_robust_fidelity_is_an_expectation(hub):
    explanation = nodes(hub, 2, 0, 1)
    found = robust_fidelity(hub, explanation, num_contexts=500, remove_share=0.5, keep_share=0.5)
    # Plus: 0, 1 or 2 of two neighbours go. Minus: of all others only neighbour 3 matters.
    plus = sigmoid(2) - (sigmoid(2) + 2 * sigmoid(1) + sigmoid(0)) / 4
    minus = sigmoid(2) - (sigmoid(2) + sigmoid(1)) / 2
    assert found == (pytest.approx(plus, abs=0.02), pytest.approx(minus, abs=0.02))
