"""PyG's own questions to its algorithms, asked of ours: every mode, return type, level, kind of explanation and index.

After ``test/explain/algorithm/test_gnn_explainer.py`` of PyG, for masks of whole nodes and edges. There, a batch may
join graphs by edges; here graphs of a batch are apart, as what one of them says is otherwise not its own.
"""

import os
from itertools import product

import pytest
import torch
from torch_geometric.explain import Explainer, Explanation, ModelConfig
from torch_geometric.nn import GCNConv, TransformerConv, global_add_pool

from gflowexplainer import GFlowExplainer

QUICK = {
    "max_nodes": 3,
    "epochs": 1,
    "rollouts": 2,
    "hidden": 4,
    "num_samples": 4,
    "num_contexts": 2,
    "reward": "prediction",
}
OUTPUTS = [
    ("binary_classification", "raw"),
    ("binary_classification", "probs"),
    ("multiclass_classification", "raw"),
    ("multiclass_classification", "probs"),
    ("multiclass_classification", "log_probs"),
    ("regression", "raw"),
]
INDICES = [None, 2, torch.arange(3)]
X = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
CHAIN = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7]])
BATCH = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
LINKS = torch.tensor([[0, 1, 2], [3, 4, 5]])


def edges(level):
    joined = CHAIN if level != "graph" else CHAIN[:, BATCH[CHAIN[0]] == BATCH[CHAIN[1]]]
    return torch.cat([joined, joined.flip(0)], dim=1)


class Model(torch.nn.Module):
    def __init__(self, layer, mode, return_type, level):
        super().__init__()
        width = 7 if mode == "multiclass_classification" else 1
        self.first, self.second = layer(3, 16), layer(16, width)
        self.unused = torch.nn.Parameter(torch.zeros(1))
        self.mode, self.return_type, self.level = mode, return_type, level

    def forward(self, x, edge_index, batch=None, edge_label_index=None):
        x = self.second(self.first(x, edge_index).relu(), edge_index)
        if self.level == "graph":
            x = global_add_pool(x, batch)
        if self.level == "edge":
            x = x[edge_label_index[0]] * x[edge_label_index[1]]
        if self.return_type == "probs":
            return x.sigmoid() if self.mode == "binary_classification" else x.softmax(dim=-1)
        return x.log_softmax(dim=-1) if self.return_type == "log_probs" else x


def target_of(model, given):
    with torch.no_grad():
        output = model(*given)
    if model.mode == "multiclass_classification":
        return output.argmax(dim=-1)
    return output if model.mode == "regression" else (output > 0.5 * (model.return_type == "probs")).long().view(-1)


def check(output, level, kind, index, edge_mask, layer=GCNConv):
    torch.manual_seed(12345)
    model = Model(layer, *output, level)
    given = (X, edges(level), BATCH, LINKS)
    config = ModelConfig(mode=output[0], task_level=level, return_type=output[1])
    explainer = Explainer(
        model, GFlowExplainer(**QUICK), explanation_type=kind, node_mask_type="object", edge_mask_type=edge_mask,
        model_config=config,
    )  # fmt: skip
    asked = {"batch": BATCH} if level == "graph" else {"edge_label_index": LINKS} if level == "edge" else {}
    target = target_of(model, given) if kind == "phenomenon" else None
    found = explainer(X, edges(level), target=target, index=index, **asked)
    assert isinstance(found, Explanation)
    assert found.validate(raise_on_error=True)
    assert found.node_mask.shape == (8, 1)
    assert 0 <= found.node_mask.min() <= found.node_mask.max() <= 1 + 1e-6
    assert ("edge_mask" in found) == (edge_mask is not None)
    if edge_mask is not None:
        assert found.edge_mask.shape == (edges(level).size(1),)
        assert 0 <= found.edge_mask.min() <= found.edge_mask.max() <= 1 + 1e-6
    assert "prediction" in found or kind == "phenomenon"
    assert "target" in found


EVERY = list(product(OUTPUTS, ("node", "edge", "graph"), ("model", "phenomenon"), range(3), ("object", None)))
# Every output at every level, the other choices in turn; all combinations take minutes (GFLOWEXPLAINER_ALL_TESTS=1).
SOME = [
    (OUTPUTS[o], level, ("model", "phenomenon")[(o + place + i) % 2], i, ("object", None)[(o // 2 + i + place) % 2])
    for o in range(6)
    for place, level in enumerate(("node", "edge", "graph"))
    for i in [(o + place) % 3]
]


@pytest.mark.parametrize(
    ("output", "level", "kind", "place", "edge_mask"), EVERY if os.environ.get("GFLOWEXPLAINER_ALL_TESTS") else SOME
)
def test_every_mode_level_kind_and_index(output, level, kind, place, edge_mask):
    check(output, level, kind, INDICES[place], edge_mask)


def test_another_layer():
    check(OUTPUTS[0], "node", "model", 2, "object", TransformerConv)
