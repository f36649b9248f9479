"""Another number of threads makes torch add up in another order: rounding, and nothing else, differs."""

import pytest
import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import NodeModel, random_graph


@pytest.fixture
def with_threads():
    before = torch.get_num_threads()

    def fit(number):
        torch.set_num_threads(number)
        algorithm = GFlowExplainer(max_nodes=4, max_updates=4, num_contexts=4)
        data = random_graph(40, 0.05, seed=0)
        state = algorithm.fit(NodeModel(), data, list(range(6)), progress=False)._fitted.sampler
        found = algorithm.explain(NodeModel(), data, list(range(6)), progress=False)
        return state, [explanation.subgraphs[0].nodes for explanation in found]

    yield fit
    torch.set_num_threads(before)


def test_weights_differ_by_rounding_and_the_consensus_not_at_all(with_threads):
    (one, first), (two, second) = with_threads(1), with_threads(2)
    assert torch.allclose(one.consensus.weight, two.consensus.weight, atol=1e-9)
    # A rounding of 1e-7 grows with every update.
    for name, weight in one.network.items():
        assert torch.allclose(weight, two.network[name], atol=1e-4), name
    assert first == second
