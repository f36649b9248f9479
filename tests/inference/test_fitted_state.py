"""Files of fitted explainers: others are refused with what they are."""

import pytest

from gflowexplainer import GFlowExplainer, SubgraphExplanation
from gflowexplainer.errors import CheckpointError
from gflowexplainer.inference.fitted_state import FILE
from gflowexplainer.testing import NodeModel, random_graph
from gflowexplainer.training.checkpoint import CHECKPOINT


def test_loading_something_else(tmp_path):
    graph, model = random_graph(16, 0.1, seed=4), NodeModel()
    few = {"max_nodes": 4, "epochs": 3, "rollouts": 4, "num_contexts": 4, "hidden": 8, "num_samples": 16}
    algorithm = GFlowExplainer(preset="context", **few)
    algorithm.fit(model, graph, [0], folder=tmp_path, progress=False)
    explanation = algorithm.explain(model, graph, 1)[0]
    explanation.save(tmp_path / "other" / FILE)
    with pytest.raises(CheckpointError, match="no explainer"):
        GFlowExplainer.load(tmp_path / "other")
    with pytest.raises(CheckpointError, match="no explanation"):
        SubgraphExplanation.load(tmp_path / CHECKPOINT)
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-40])
    with pytest.raises(CheckpointError, match="damaged"):
        GFlowExplainer.load(tmp_path)
    with pytest.raises(CheckpointError, match="'index' differs"):
        algorithm.fit(model, graph, [0, 1], folder=tmp_path, progress=False)
