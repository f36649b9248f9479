import pytest
import torch
from torch_geometric.explain import AttentionExplainer, ExplainerConfig, ModelConfig
from torch_geometric.nn import GATConv, TransformerConv

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject, create
from gflowbench.explainers.masked_model import MaskedModel
from gflowexplainer.errors import ConfigError, ModelError


class Attentive(torch.nn.Module):
    def __init__(self, layer=GATConv):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.first = layer(3, 4, heads=2)
            self.second = layer(8, 3, heads=1)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def subject_of(graph, layer=GATConv, index=(0, 12)):
    benchmark = Benchmark.from_graphs([graph], task="node", index=list(index), num_classes=3)
    return Subject.of(Attentive(layer), benchmark)


def pyg_attention(subject, reduce):
    graphs = MaskedModel.of(subject)
    algorithm = AttentionExplainer(reduce)
    algorithm.connect(
        ExplainerConfig(explanation_type="model", edge_mask_type="object"),
        ModelConfig(mode="multiclass_classification", task_level="node", return_type="raw"),
    )
    outer = graphs.graphs
    mask = algorithm(subject.predictor.model, outer.x, outer.edge_index, target=None).edge_mask
    return mask[graphs.own].double()


@pytest.mark.parametrize("layer", [GATConv, TransformerConv])
@pytest.mark.parametrize("reduce", ["max", "mean"])
def test_pyg_reads_off_the_same(layer, reduce, random_nodes):
    random_nodes.edge_index = random_nodes.edge_index[:, random_nodes.edge_index[0] != random_nodes.edge_index[1]]
    subject = subject_of(random_nodes, layer)
    found = create("attention", reduce=reduce).explain(subject, 0).edge
    torch.testing.assert_close(found, pyg_attention(subject, reduce))
    assert float(found.std()) > 0


def test_a_self_loop_does_not_shift_the_attention_of_other_edges(random_nodes):
    """The layer drops the loop and adds its own, so the graph without it has the same attention."""
    with_loop = create("attention").explain(subject_of(random_nodes), 0)
    source, target = subject_of(random_nodes).instances.edge_index
    assert bool((source == target).any())
    bare = random_nodes.clone()
    bare.edge_index = bare.edge_index[:, bare.edge_index[0] != bare.edge_index[1]]
    without = create("attention").explain(subject_of(bare), 0)
    torch.testing.assert_close(with_loop.edge[source != target], without.edge)


def test_models_without_attention_are_refused_and_keep_no_hooks(node_subject):
    with pytest.raises(ModelError, match="NodeModel has no attention layers"):
        create("attention").explain(node_subject, 0)
    layers = [m for m in node_subject.predictor.model.modules() if hasattr(m, "_message_forward_hooks")]
    assert layers
    assert not any(layer._message_forward_hooks for layer in layers)
    with pytest.raises(ConfigError, match="'reduce'"):
        create("attention", reduce="sum")
