from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark
from gflowbench.suites.cases import Case, make_cases
from gflowbench.suites.explaining import explain_cases

OPTIONS: dict[str, Any] = {"seed": 0, "max_nodes": 3}


def explained(name: str, model: nn.Module, task: Benchmark, cases: list[Case], **options: Any) -> list[Any]:
    return explain_cases(model, task, cases, explainer=name, seed=0, **options)


class SumOfNodes(nn.Module):
    """Says class 1 with logit (sum of x) - 2, of a node with the sum over itself and its neighbours."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        if batch is None:
            total = x[:, 0].index_add(0, edge_index[1], x[edge_index[0], 0]) - 2
        else:
            total = torch.zeros(int(batch.max()) + 1).index_add(0, batch, x[:, 0]) - 2
        return torch.stack([torch.zeros_like(total), total], dim=1)


def path_graph(values: list[float]) -> Data:
    n = len(values)
    forth = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    return Data(
        x=torch.tensor(values)[:, None], edge_index=torch.cat([forth, forth.flip(0)], dim=1), y=torch.tensor([1])
    )


def task_of(graphs: list[Data], level: str = "graph", mode: str = "multiclass_classification") -> Benchmark:
    number = len(graphs) if level == "graph" else graphs[0].num_nodes
    return Benchmark("toy", level, graphs, torch.arange(number), 2, "generated", "by hand", mode=mode, num_layers=1)


@pytest.fixture
def graph_task() -> Benchmark:
    return task_of([path_graph([0.0, 0.0, 0.0, 3.0, 4.0]), path_graph([5.0, 0.0, 0.0])])


@pytest.fixture
def cases(graph_task: Benchmark) -> list[Case]:
    return make_cases(SumOfNodes(), graph_task, [0, 1])


def test_occlusion_is_the_fall_by_hand(graph_task: Benchmark, cases: list[Case]) -> None:
    scores = explained("occlusion", SumOfNodes(), graph_task, cases)[0].scores
    logit = torch.tensor([5.0, 5.0, 5.0, 2.0, 1.0], dtype=torch.double)
    assert torch.allclose(scores, torch.tensor(5.0, dtype=torch.double).sigmoid() - logit.sigmoid(), atol=1e-6)


def test_greedy_grows_from_the_best_node(graph_task: Benchmark, cases: list[Case]) -> None:
    first, second = explained("greedy", SumOfNodes(), graph_task, cases)
    assert first.scores.argsort(descending=True)[:2].tolist() == [4, 3]
    assert first.parts == ((3, 4),)
    assert second.parts == ((0,),)


def test_gradients_by_hand(graph_task: Benchmark, cases: list[Case]) -> None:
    for case, flat, integrated in zip(
        cases,
        explained("saliency", SumOfNodes(), graph_task, cases, of="features"),
        explained("integrated-gradients", SumOfNodes(), graph_task, cases, of="features"),
        strict=True,
    ):
        assert torch.allclose(flat.scores, torch.ones(case.num_nodes, dtype=torch.double))
        assert torch.allclose(integrated.scores, case.x[:, 0].double())


def test_nodes_have_the_places_of_their_case() -> None:
    graph = path_graph([0.0, 1.0, 3.0, 0.0, 0.0])
    graph.y = torch.tensor([0, 1, 1, 1, 0])
    task = task_of([graph], level="node")
    model = SumOfNodes()
    (case,) = make_cases(model, task, [3])
    assert case.nodes.tolist() == [2, 3, 4]
    assert explained("distance", model, task, [case])[0].scores.tolist() == [-1, 0, -1]
    probability = explained("probability", model, task, [case])[0].scores
    assert torch.allclose(probability, torch.tensor([2.0, 1.0, -2.0], dtype=torch.double).sigmoid(), atol=1e-6)
    assert explained("occlusion", model, task, [case])[0].scores.argmin() == 2
    assert explained("greedy", model, task, [case])[0].parts == ((0, 1),)
