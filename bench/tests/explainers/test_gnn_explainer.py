import pytest
import torch
from torch_geometric.explain import Explainer, ExplainerConfig, GNNExplainer, ModelConfig

from gflowbench.datasets import reference_folder
from gflowbench.explainers import Subject, create
from gflowbench.explainers.masked_model import MaskedModel, differentiable, parts, pyg_model_config, pyg_target
from gflowbench.metrics.auc import pooled_auc
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.undirected import UndirectedEdges
from gflowbench.protocol import problem

REFERENCE = reference_folder()
PYG = {"learning_rate": 0.01, "size": 0.005, "entropy": 1.0}


class _FromGivenMask(GNNExplainer):
    """PyG's algorithm, begun at a mask that does not depend on what was drawn before."""

    def _initialize_masks(self, x, edge_index):
        self.node_mask = None
        self.edge_mask = torch.nn.Parameter(self.initial.clone())


def by_pyg(graph, initial):
    algorithm = _FromGivenMask(40, 0.01, edge_size=0.005, edge_ent=1.0)
    algorithm.initial = initial
    config = ExplainerConfig(explanation_type="model", edge_mask_type="object")
    algorithm.connect(config, ModelConfig(**pyg_model_config(graph.predictor)))
    target, index = pyg_target(graph)
    x, edge_index = graph.graphs.rows(), graph.graphs.edge_index
    return algorithm(graph.predictor.model, x, edge_index, target=target, index=index, **graph.arguments).edge_mask


def test_together_the_masks_are_those_that_pyg_finds_one_by_one(either_subject):
    ours = create("gnnexplainer", epochs=40, **PYG)
    together = ours.explain(either_subject, 1).edge
    with differentiable(either_subject.predictor):
        graphs = [MaskedModel.of(part) for part in parts(either_subject, 1)]
        one_by_one = torch.cat([by_pyg(graph, ours._initial(graph, 1))[graph.own] for graph in graphs])
    torch.testing.assert_close(together, one_by_one.double(), atol=2e-4, rtol=0)
    assert float(together.std()) > 0.01


class _Begun(GNNExplainer):
    def _initialize_masks(self, x, edge_index):
        super()._initialize_masks(x, edge_index)
        self.edge_mask.data.copy_(self.begin)


def test_a_computation_graph_gives_what_pyg_finds_on_the_whole_graph(random_nodes, node_subject):
    """The public face of PyG on the user's whole graph, not only on what was cut out of it."""
    ours = create("gnnexplainer", epochs=40, **PYG)
    instances = node_subject.instances
    graphs = MaskedModel.of(node_subject)
    begin = ours._initial(graphs, 0)[graphs.own]
    found = ours.explain(node_subject, 0).edge
    for number in range(len(node_subject)):
        edges = slice(*instances.edge_ptr[number : number + 2].tolist())
        algorithm = _Begun(epochs=40, lr=0.01)
        algorithm.begin = torch.zeros(random_nodes.edge_index.size(1))
        algorithm.begin[instances.edge_id[edges]] = begin[edges]
        explainer = Explainer(
            node_subject.predictor.model,
            algorithm,
            explanation_type="model",
            edge_mask_type="object",
            model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
        )
        whole = explainer(random_nodes.x, random_nodes.edge_index, index=int(node_subject.index[number])).edge_mask
        torch.testing.assert_close(found[edges].float(), whole[instances.edge_id[edges]].detach(), atol=2e-4, rtol=0)


@pytest.mark.skipif(
    REFERENCE is None or not (REFERENCE / "tree_cycles.npz").is_file(), reason="needs the reference folder"
)
def test_the_papers_number_on_tree_cycles_with_the_settings_of_its_public_code():
    """Printed: 0.540 +- 0.017, with 100 epochs, learning rate .003, size .05, entropy 1; motif edges of all cycles."""
    loaded = problem("tree-cycles").load()
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    scores = create("gnnexplainer", learning_rate=0.003, size=0.05, entropy=1.0).explain(subject, 0)
    edges = UndirectedEdges.of(subject.instances)
    truth = GroundTruth.of(loaded.benchmark, subject)
    assert pooled_auc(edges.merge(scores.edge), edges.merge(truth.all)) == pytest.approx(0.54, abs=0.06)
