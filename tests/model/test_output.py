"""What models return: read as probabilities or values, or refused in words."""

import re
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gflowexplainer import GFlowExplainer, adapt
from gflowexplainer.errors import ModelError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.testing import GraphModel, LinkModel, NodeModel, house


class Fixed(nn.Module):
    """Returns what it is told, for every node or graph."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Any:
        rows = x.size(0) if batch is None else int(batch.max()) + 1
        return self.answer(rows) if callable(self.answer) else self.answer


class WideLinks(LinkModel):
    """Returns two values a link."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        return super().forward(x, edge_index, edge_label_index)[:, None].repeat(1, 2)


def ask(answer: Any, level: str = "node", **config: Any) -> Tensor:
    graph = house()
    if level == "node":
        instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 1], 1)
    else:
        instances = Instances.of_graphs([graph, graph])
    return Predictor(Fixed(answer), level=level, num_hops=1, **config).whole(instances)


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize(
    ("mode", "return_type", "answer", "wanted"),
    [
        ("multiclass_classification", "raw", [0.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]),
        ("multiclass_classification", "probs", [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
        ("multiclass_classification", "log_probs", [0.0, -torch.inf], [1.0, 0.0]),
        ("binary_classification", "raw", [0.0], [0.5, 0.5]),
        ("binary_classification", "probs", [0.2], [0.8, 0.2]),
        ("binary_classification", "log_probs", [-torch.inf], [1.0, 0.0]),
        ("regression", "raw", [3.5], [3.5]),
    ],
)
def test_outputs_are_read(level: str, mode: str, return_type: str, answer: list[float], wanted: list[float]) -> None:
    ours = ask(lambda rows: torch.tensor([answer] * rows), level, mode=mode, return_type=return_type)
    torch.testing.assert_close(ours, torch.tensor([wanted] * 2))


@pytest.mark.parametrize("level", ["node", "graph"])
def test_one_number_a_row_may_come_flat(level: str) -> None:
    assert ask(lambda rows: torch.full((rows,), 2.0), level, mode="regression").tolist() == [[2.0], [2.0]]


@pytest.mark.parametrize(
    ("answer", "mode", "wanted"),
    [
        (torch.tensor(2.0), "regression", [[2.0]]),
        (torch.tensor([0.5, 0.5]), "multiclass_classification", [[0.5, 0.5]]),
    ],
)
def test_squeezed_answer_on_a_single_graph(answer: Tensor, mode: str, wanted: list[list[float]]) -> None:
    predictor = Predictor(Fixed(answer), level="graph", mode=mode, num_hops=1)
    assert predictor.whole(Instances.of_graphs([house()])).tolist() == wanted


@pytest.mark.parametrize(("model", "level"), [(NodeModel(), "node"), (GraphModel(), "graph"), (WideLinks(), "edge")])
def test_regression_of_several_outputs_names_one_to_explain(model: nn.Module, level: str) -> None:
    graph = house()
    asked: dict[str, Any] = {"edge_label_index": torch.tensor([[2], [4]])} if level == "edge" else {}
    asked |= {"index": 0} if level == "node" else {}
    config = {"mode": "regression", "task_level": level, "return_type": "raw"}
    explainer = GFlowExplainer(max_nodes=3, epochs=1, num_contexts=2)
    explain = partial(explainer.explain, data=graph, progress=False, model_config=config, **asked)
    with pytest.raises(ModelError, match=r"one column \(got \d\).*explain one: .*out\[:, 0:1\]"):
        explain(model)
    assert explain(adapt(model, output=lambda out: out[:, 0:1]))[0].explained_class is None


def raise_it(_: int) -> Tensor:
    raise KeyError("missing thing")


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize(
    ("answer", "config", "message"),
    [
        (torch.zeros(77, 3), {}, "Fixed must return one row a {level}, shape ["),
        (torch.zeros(77, 3), {}, "(got (77, 3)). Is it really a {level}-level model?"),
        (lambda rows: torch.zeros(rows, 3, 2), {}, "num_classes] (got ("),
        ("text", {}, "Fixed must return a tensor (got str). Pick what is explained"),
        (None, {}, "Fixed must return a tensor (got NoneType). Pick what is explained"),
        (
            lambda rows: (torch.zeros(rows, 3), None),
            {},
            "Fixed must return a tensor (got tuple). Pick what is explained",
        ),
        (
            lambda rows: {"logits": torch.zeros(rows, 3), "hidden": None},
            {},
            "Fixed must return a tensor (got dict). Pick what is explained: adapt(model, output=lambda out: out['lo",
        ),
        (lambda rows: torch.full((rows, 3), torch.nan), {}, "Fixed returned NaN or infinity."),
        (lambda rows: torch.full((rows, 3), -torch.inf), {}, "Fixed returned NaN or infinity."),
        (
            lambda rows: torch.full((rows, 3), torch.inf),
            {"return_type": "log_probs"},
            "Fixed returned NaN or infinity.",
        ),
        (
            lambda rows: torch.full((rows, 3), torch.nan),
            {"return_type": "log_probs"},
            "Fixed returned NaN or infinity.",
        ),
        (
            lambda rows: torch.zeros(rows, 2),
            {"mode": "binary_classification"},
            "must return one column (got 2). Use mode=",
        ),
        (lambda rows: torch.zeros(rows, 1), {}, "at least two columns (got 1). Use mode='binary_classification'"),
        (
            raise_it,
            {},
            "Fixed failed when called with (x, edge_index{batch}) on a part of the graph: KeyError: 'missing",
        ),
    ],
)
def test_models_that_misbehave_are_named(level: str, answer: Any, config: dict[str, Any], message: str) -> None:
    message = message.format(level=level, batch=", batch" if level == "graph" else "")
    with pytest.raises(ModelError, match=re.escape(message)):
        ask(answer, level, **config)


def test_cause_of_a_failure_is_kept() -> None:
    with pytest.raises(ModelError) as caught:
        ask(raise_it)
    assert isinstance(caught.value.__cause__, KeyError)
