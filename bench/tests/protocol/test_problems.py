import pytest
import torch

from gflowbench.datasets import reference_folder
from gflowbench.metrics import MetricSettings
from gflowbench.protocol import Contestant, ProtocolSettings, evaluate, problem
from gflowexplainer.errors import ConfigError

REFERENCE = reference_folder()
needs_reference = pytest.mark.skipif(
    REFERENCE is None or not (REFERENCE / "tree_cycles.npz").is_file(), reason="needs the reference folder"
)


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'tree-cycles'"):
        problem("tree-cycle")
    with pytest.raises(ConfigError, match="Did you mean 'published'"):
        problem("tree-cycles", "publishd")
    with pytest.raises(ConfigError, match="'instances'"):
        problem("tree-cycles", instances="some")
    with pytest.raises(ConfigError, match="Did you mean 'gcn'"):
        problem("tree-cycles", "trained", architecture="gcnn")


def test_published_problems_load_with_the_published_ids():
    assert problem("tree-cycles").load().index.tolist() == list(range(511, 871, 6))
    assert len(problem("tree-cycles", instances="all-roles").load().index) == 360
    assert len(problem("ba-shapes", every=6).load().index) == 10


# Pooled AUC, own motif, of explainers that need neither reward nor learning, as measured for the protocol.
FLOORS = {
    ("random", "ba-shapes"): (0.997, 0.002),
    ("random", "ba-community"): (0.996, 0.002),
    ("random", "tree-cycles"): (0.71, 0.03),
    ("random", "tree-grid"): (0.86, 0.03),
    ("distance", "ba-shapes"): (0.993, 0.001),
    ("distance", "ba-community"): (0.992, 0.001),
    ("probability", "tree-cycles"): (0.942, 0.001),
    ("probability", "tree-grid"): (0.976, 0.02),
}


@needs_reference
@pytest.mark.parametrize("dataset", ["ba-shapes", "ba-community", "tree-cycles", "tree-grid"])
def test_the_floors_of_the_protocol_are_reproduced(dataset, tmp_path):
    settings = ProtocolSettings(metrics=MetricSettings(num_contexts=0), max_nodes=7)
    names = [name for name, where in FLOORS if where == dataset]
    contestants = [Contestant.named(name) for name in names]
    record = evaluate([problem(dataset)], contestants, seeds=[0], out=tmp_path, settings=settings)
    for cell in record.cells:
        expected, tolerance = FLOORS[cell.explainer, dataset]
        assert cell.metrics["auc_own"] == pytest.approx(expected, abs=tolerance), cell.explainer


def test_a_gnn_is_trained_once_on_generated_data(tmp_path, monkeypatch):
    from gflowbench.models import TrainedModel, build
    from gflowbench.models.architecture import Architecture
    from gflowbench.models.model_accuracy import Accuracy

    trained = []

    def train(name, benchmark, *, seed, progress):
        trained.append((name, benchmark.source, seed))
        model = build(Architecture(model=name, task="node", in_channels=10, num_classes=2)).eval()
        return TrainedModel(model, {"test": Accuracy(3, 4)}, {}, 0, 0.0, benchmark.name, {})

    monkeypatch.setattr("gflowbench.models.train", train)
    wanted = problem("tree-cycles", "trained", seed=3, weights=tmp_path)
    first, second = wanted.load(), wanted.load()
    assert trained == [("gcn", "generated", 3)]
    assert first.facts["gnn_accuracies"] == second.facts["gnn_accuracies"] == {"test": 0.75}
    assert torch.equal(first.model.lin.weight, second.model.lin.weight)
    assert wanted.settings["gnn_seed"] == 3
