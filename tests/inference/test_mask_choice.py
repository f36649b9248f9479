"""Masks of classes that rest on nodes here and there, and of those that rest on one place."""

import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from gflowexplainer import GFlowExplainer
from gflowexplainer.inference import mask_choice
from gflowexplainer.rewards.consensus import Consensus

CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


class EachKind(nn.Module):
    """Class 1 if some kinds of nodes are all there, however often."""

    def __init__(self, kinds: int) -> None:
        super().__init__()
        self.kinds = kinds

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        batch = torch.zeros(x.size(0), dtype=torch.long) if batch is None else batch
        there = torch.zeros(int(batch.max()) + 1, x.size(1)).index_add(0, batch, x)[:, : self.kinds].clamp(max=1)
        odds = 6 * (there.sum(dim=1) - self.kinds + 0.5)
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


def path_graphs(*kinds: int, number: int = 16, size: int = 18) -> list[Data]:
    """Paths of plain nodes with one node of each of some kinds, far from one another, in places of their own."""
    graphs = []
    for seed in range(number):
        generator = torch.Generator().manual_seed(seed)
        x = torch.zeros(size, 3)
        x[:, 2] = 1
        places = torch.randperm(size // 3, generator=generator)[: len(kinds)] * 3
        x[places] = nn.functional.one_hot(torch.tensor(kinds), 3).float()
        path = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
        graphs.append(Data(x=x, edge_index=to_undirected(path)))
    return graphs


def fitted(model: nn.Module, graphs: list[Data], **settings: object) -> GFlowExplainer:
    return GFlowExplainer(seed=0, max_updates=20, num_hops=1, **settings).fit(
        model, graphs, model_config=CONFIG, progress=False
    )


def consensus_of(explainer: GFlowExplainer) -> Consensus:
    found = explainer._fitted.sampler.consensus
    assert found is not None
    return found


def mean_auc(explainer: GFlowExplainer, model: nn.Module, graphs: list[Data]) -> float:
    found = explainer.explain(model, graphs, model_config=CONFIG, progress=False)
    scores = [roc_auc_score(graph.x[:, 2] == 0, one.node_mask[:, 0]) for graph, one in zip(graphs, found, strict=True)]
    return float(sum(scores) / len(scores))


@pytest.mark.parametrize("inference", ["auto", "search"])
def test_what_lies_between_does_not_belong(inference, monkeypatch, tmp_path) -> None:
    model, graphs = EachKind(2), path_graphs(0, 1, 1, 0)
    monkeypatch.setattr(mask_choice, "BETTER", 2.0)
    usual = fitted(model, graphs, inference=inference)
    assert not consensus_of(usual).apart
    monkeypatch.undo()
    apart = fitted(model, graphs, inference=inference)
    assert consensus_of(apart).apart
    assert mean_auc(apart, model, graphs) > max(0.99, mean_auc(usual, model, graphs))
    one = apart.explain(model, graphs[:1], model_config=CONFIG, progress=False)[0]
    ends = one.node_mask[:, 0][graphs[0].edge_index]
    torch.testing.assert_close(one.edge_mask, ends.amin(dim=0))
    apart.save(tmp_path)
    again = GFlowExplainer.load(tmp_path)
    assert torch.equal(
        again.explain(model, graphs[:1], model_config=CONFIG, progress=False)[0].node_mask, one.node_mask
    )


def test_one_place_is_left_to_the_distribution() -> None:
    assert not consensus_of(fitted(EachKind(1), path_graphs(0))).apart


def test_a_class_that_is_never_lost_decides_nothing() -> None:
    """Whatever is there, something of the second kind is missing: no first nodes of any mask are better than others."""
    graphs = path_graphs(0, 0, 0)
    assert int(EachKind(2)(graphs[0].x, graphs[0].edge_index).argmax()) == 0
    assert not consensus_of(fitted(EachKind(2), graphs)).apart


class NoSingleNodes(EachKind):
    """One that refuses graphs of a single node, as a norm over their nodes does."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        counts = torch.tensor([x.size(0)]) if batch is None else torch.bincount(batch)
        if int(counts.min()) < 2:
            raise ValueError("Expected more than 1 value per channel")
        return super().forward(x, edge_index, batch)


def test_a_model_that_takes_no_small_graphs_keeps_its_masks() -> None:
    model, graphs = NoSingleNodes(2), path_graphs(0, 1)
    assert not consensus_of(fitted(model, graphs)).apart


def test_tiny_graphs_are_left_alone() -> None:
    graph = Data(x=torch.eye(3)[:2], edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert not consensus_of(fitted(EachKind(2), [graph] * 4)).apart
