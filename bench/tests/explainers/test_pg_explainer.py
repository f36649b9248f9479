import pytest
import torch

from gflowbench.datasets import reference_folder
from gflowbench.explainers import Subject, create
from gflowbench.explainers.masked_model import MaskedModel, pyg_target
from gflowbench.explainers.pg_explainer import PGExplainer, edge_inputs
from gflowbench.metrics.auc import pooled_auc
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.undirected import UndirectedEdges
from gflowbench.protocol import problem

REFERENCE = reference_folder()


def fitted(subject, seed=0, **settings):
    explainer = create("pgexplainer", **settings)
    explainer.fit(subject, seed)
    return explainer


class ByPyG(PGExplainer):
    """Lets PyG make each update by a single instance, with the same coin flips."""

    def _update(self, algorithm, subject, epoch, seed):
        graph, embedding = MaskedModel.of(subject), subject.require_embedding()
        algorithm.noise = graph.uniform(seed, 1, epoch)
        algorithm.embedding = embedding.new_zeros(graph.graphs.num_nodes, embedding.size(1))
        place = subject.instances.place_outside
        algorithm.embedding[slice(None) if place is None else place] = embedding
        target, index = pyg_target(graph)
        x, edge_index = graph.graphs.rows(), graph.graphs.edge_index
        algorithm.train(epoch, graph.predictor.model, x, edge_index, target=target, index=index, **graph.arguments)


def test_together_it_learns_what_pyg_learns_one_by_one(either_subject):
    # Slowly, so that no machine's random GNN has all of its masks at 1 after it.
    settings = {"epochs": 8, "learning_rate": 0.003, "size": 0.002, "batch_size": 1}
    together = fitted(either_subject, **settings).explain(either_subject, 0)
    alone = ByPyG(**settings)
    alone.fit(either_subject, 0)
    one_by_one = alone.explain(either_subject, 0)
    torch.testing.assert_close(together.edge, one_by_one.edge, atol=1e-4, rtol=0)
    assert float(together.edge.std()) > 0.01


def test_pygs_own_answer_is_ours(graph_subject):
    """The explanation that PyG itself gives, graph by graph, once its network is trained."""
    explainer = fitted(graph_subject, epochs=3)
    found = explainer.explain(graph_subject, 0).edge
    algorithm, instances = explainer._algorithm, graph_subject.instances
    algorithm._curr_epoch = algorithm.epochs
    for number in range(len(graph_subject)):
        nodes = slice(*instances.ptr[number : number + 2].tolist())
        edges = slice(*instances.edge_ptr[number : number + 2].tolist())
        algorithm.embedding = graph_subject.embedding[nodes]
        x, edge_index = instances.x[nodes], instances.edge_index[:, edges] - nodes.start
        mask = algorithm(graph_subject.predictor.model, x, edge_index, target=torch.zeros(1)).edge_mask
        torch.testing.assert_close(found[edges].float(), mask, atol=1e-6, rtol=0)


def test_the_network_sees_both_ends_and_the_explained_node(node_subject, graph_subject):
    instances, embedding = node_subject.instances, node_subject.embedding
    inputs, width = edge_inputs(node_subject), node_subject.embedding.size(1)
    edge = int(instances.edge_ptr[1]) + 2
    source, target = instances.edge_index[:, edge].tolist()
    center = int(instances.center[1])
    assert torch.equal(inputs[edge], torch.cat([embedding[source], embedding[target], embedding[center]]))
    assert inputs.size(1) == 3 * width
    assert edge_inputs(graph_subject).size(1) == 2 * graph_subject.embedding.size(1)


@pytest.mark.skipif(
    REFERENCE is None or not (REFERENCE / "ba_shapes.npz").is_file(), reason="needs the reference folder"
)
def test_it_reproduces_itself_on_ba_shapes():
    """Printed: 0.974 +- 0.005, motif edges of all houses."""
    loaded = problem("ba-shapes", every=6).load()
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    scores = fitted(subject).explain(subject, 0)
    edges = UndirectedEdges.of(subject.instances)
    truth = GroundTruth.of(loaded.benchmark, subject)
    assert pooled_auc(edges.merge(scores.edge), edges.merge(truth.all)) > 0.97
