"""Another number of threads makes torch add up in another order: rounding, and nothing else, differs."""

import pytest
import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import NodeModel, random_graph


@pytest.fixture
def with_threads():
    before = torch.get_num_threads()

    def fit(number, preset):
        torch.set_num_threads(number)
        algorithm = GFlowExplainer(preset=preset, max_nodes=4, max_updates=4, num_contexts=4)
        data = random_graph(40, 0.05, seed=0)
        state = algorithm.fit(NodeModel(), data, list(range(6)), progress=False)._fitted.sampler
        found = algorithm.explain(NodeModel(), data, list(range(6)), progress=False)
        return state, [explanation.subgraphs[0].nodes for explanation in found]

    yield fit
    torch.set_num_threads(before)


def test_evidence_differs_by_rounding(with_threads):
    (one, first), (two, second) = with_threads(1, "default"), with_threads(2, "default")
    for this, that in zip(one.learned.shared, two.learned.shared, strict=True):
        assert torch.allclose(this.weight, that.weight, atol=1e-4)
    assert first == second


def test_weights_differ_by_rounding(with_threads):
    (one, first), (two, second) = with_threads(1, "context"), with_threads(2, "context")
    # A rounding of 1e-7 grows with every update.
    for name, weight in one.network.items():
        assert torch.allclose(weight, two.network[name], atol=1e-4), name
    assert first == second
