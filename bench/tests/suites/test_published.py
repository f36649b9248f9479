import pytest

from gflowbench.datasets import load
from gflowbench.datasets.task_truth import Combination
from gflowbench.suites.published import load_published_gnn, make_published_task
from gflowexplainer.errors import DatasetError


def published(name: str, seed: int = 0):
    try:
        return make_published_task(name, seed)
    except DatasetError:
        pytest.skip("the published files are not there")


def test_the_truth_of_a_node_is_what_the_gnn_sees_of_its_motif() -> None:
    """The opposite corners of a grid of nine are four steps apart, one more than the GNN has layers."""
    task = published("tree-grid")
    sizes = sorted({len(truth.parts[0]) for truth in task.truths.values()})
    assert sizes == [8, 9]
    motif = load("tree-grid", "published").data.motif_id
    for node, truth in task.truths.items():
        (part,) = truth.parts
        assert node in part
        assert set(motif[list(part)].tolist()) == {int(motif[node])}


def test_the_seed_orders_the_instances_and_the_gnn_is_the_published_one() -> None:
    one, other = published("tree-cycles", 0), published("tree-cycles", 1)
    assert one.splits["test"].tolist() != other.splits["test"].tolist()
    assert sorted(one.splits["test"].tolist()) == sorted(other.splits["test"].tolist())
    model, score = load_published_gnn(one)
    predicted = model(one.graphs[0].x, one.graphs[0].edge_index).argmax(dim=1)
    index = one.splits["test"]
    assert score == pytest.approx(float((predicted == one.graphs[0].y)[index].double().mean()))


def test_motifs_of_graphs_are_alternatives() -> None:
    task = published("ba-2motifs")
    truth = task.truths[task.instances()[0]]
    assert truth.combination is Combination.ANY
    assert len(truth.parts[0]) == 5
