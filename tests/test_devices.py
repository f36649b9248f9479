"""A GPU answers as the CPU does."""

import pytest
import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import NodeModel, random_graph

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
SMALL = {"max_nodes": 5, "epochs": 6, "rollouts": 4, "num_contexts": 8, "hidden": 16, "seed": 3}


def fitted(device, preset="default"):
    graph, model = random_graph(40, 0.1, seed=2).to(device), NodeModel(seed=6).to(device)
    settings = SMALL | ({"max_nodes": 6} if preset == "paper" else {})
    return GFlowExplainer(preset=preset, **settings).fit(model, graph, range(12), progress=False), model, graph


@pytest.mark.parametrize("preset", ["default", "context", "paper", "sequence"])
def test_the_same_weights_explain_alike(tmp_path, preset):
    here, model, graph = fitted("cpu", preset)
    here.save(tmp_path / "fitted")
    there = GFlowExplainer.load(tmp_path / "fitted")
    ours = here.explain(model, graph, range(20))
    theirs = there.explain(model.to("cuda"), graph.to("cuda"), range(20))
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one.node_mask, other.node_mask.cpu(), atol=1e-4)
        assert torch.allclose(one.edge_mask, other.edge_mask.cpu(), atol=1e-4)


def test_the_same_seed_trains_alike():
    (here, model, graph), (there, *_) = fitted("cpu"), fitted("cuda")
    ours = here.explain(model, graph, range(20))
    theirs = there.explain(model.to("cuda"), graph.to("cuda"), range(20))
    gaps = [(one.node_mask - other.node_mask.cpu()).abs().max() for one, other in zip(ours, theirs, strict=True)]
    assert max(gaps) < 0.02
