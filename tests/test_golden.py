"""What the public class answers on small problems, held against stored answers.

The stored answers are no truth: they show whether a change of the code changes what is explained. Rewrite them with
``python tests/test_golden.py --write`` (or name some problems), and say in the commit why they change. Weights and
features come from numpy, whose numbers are the same on every machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.explain import Explainer
from torch_geometric.nn import global_mean_pool

from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import (
    EdgeFeatureModel,
    GraphModel,
    LinkModel,
    NodeModel,
    TypedLinkModel,
    TypedNodeModel,
    graph_of,
    typed_graph,
)

FOLDER = Path(__file__).parent / "golden"
SHORT = {"max_updates": 4, "rollouts": 4, "num_contexts": 4, "hidden": 8}
PAPER = {"preset": "paper", "epochs": 2, "hidden": 8, "max_nodes": 5}
TRAINED = 2e-5
"""Tolerance where a network was trained: rounding grows with every update."""


class GraphOfTypes(TypedNodeModel):
    """Classifies a whole heterogeneous graph."""

    def forward(self, x_dict, edge_index_dict, batch_dict=None):
        scores = super().forward(x_dict, edge_index_dict)
        if batch_dict is None:
            return scores.mean(dim=0, keepdim=True)
        return global_mean_pool(
            scores, batch_dict["paper"], 1 + max(int(b.max()) for b in batch_dict.values() if len(b))
        )


def filled(model: nn.Module, seed: int = 0) -> nn.Module:
    """Draws the weights of a model by numpy, sharp enough for its predictions to depend on the graph."""
    rng = np.random.default_rng(seed)
    for _, weight in sorted(model.named_parameters()):
        values = rng.standard_normal(tuple(weight.shape)) / (weight.size(-1) ** 0.5 if weight.dim() > 1 else 4)
        weight.data = torch.from_numpy(values).float()
    return model.eval()


def graph(number: int = 14, seed: int = 0, extra: int = 8, width: int = 3) -> Data:
    """A random tree with some more edges."""
    rng = np.random.default_rng(seed)
    edges = [(int(rng.integers(node)), node) for node in range(1, number)]
    edges += [(int(u), int(v)) for u, v in rng.integers(number, size=(extra, 2)) if u != v]
    made = graph_of(edges, number)
    made.x = torch.from_numpy(rng.standard_normal((number, width))).float()
    return made


def with_edges(made: Data, seed: int = 0, width: int = 2) -> Data:
    made.edge_attr = torch.from_numpy(np.random.default_rng(seed).standard_normal((made.num_edges, width))).float()
    return made


def directed() -> Data:
    made = graph(seed=3)
    made.edge_index = made.edge_index[:, torch.arange(made.num_edges) % 3 != 0]
    return made


def isolated() -> Data:
    made = graph(seed=4)
    made.x = torch.cat([made.x, made.x[:1] + 1])
    return made


def with_loops() -> Data:
    made = graph(seed=5)
    made.edge_index = torch.cat([made.edge_index, torch.tensor([[0, 3], [0, 3]])], dim=1)
    return made


def typed(seed: int = 0) -> HeteroData:
    rng = np.random.default_rng(seed)
    made = typed_graph(9, 6, 3, seed=seed)
    for key in made.node_types:
        made[key].x = torch.from_numpy(rng.standard_normal(tuple(made[key].x.shape))).float()
    return made


def several(make: Callable[[int], Any] = lambda seed: graph(10, seed, 5), number: int = 6) -> list[Any]:
    return [make(seed) for seed in range(number)]


def config(level: str, mode: str = "multiclass_classification") -> dict[str, str]:
    return {"mode": mode, "task_level": level, "return_type": "raw"}


def explain(
    model: nn.Module, data: Any, index: Any = None, *, fit: Any = None, settings: Any = None, **asked: Any
) -> list[Any]:
    """Explains by the public class, after a fit to the instances ``fit`` where these are given."""
    algorithm, model = GFlowExplainer(**{"max_nodes": 6, "seed": 7, **(settings or {})}), filled(model)
    if fit is not None:
        options = {**asked, **(fit if isinstance(fit, dict) else {"index": fit})}
        algorithm.fit(model, data, progress=False, **options)
    return list(algorithm.explain(model, data, index, progress=False, **asked))


def together() -> list[Any]:
    """Several nodes by one call of PyG's Explainer."""
    algorithm = GFlowExplainer(max_nodes=6, seed=7)
    explainer = Explainer(
        filled(NodeModel()), algorithm, explanation_type="model", node_mask_type="object", edge_mask_type="object",
        model_config=config("node"),
    )  # fmt: skip
    data = graph()
    joint = explainer(data.x, data.edge_index, index=[2, 5])
    assert torch.equal(joint.node_mask, torch.stack([e.node_mask for e in joint.explanations]).amax(dim=0))
    return list(joint.explanations)


LINKS = torch.tensor([[1, 2], [7, 9]])
TYPED_LINKS = torch.tensor([[0, 1], [1, 2]])
RELATION = ("author", "likes", "venue")
ONE_VALUE = config("node", "regression")
GRAPH_VALUE = config("graph", "regression")
LINK = config("edge", "binary_classification")

PROBLEMS: dict[str, Callable[[], list[Any]]] = {
    "node_class": lambda: explain(NodeModel(), graph(), [2, 5]),
    "node_class_fit": lambda: explain(NodeModel(), graph(), [2, 5], fit=range(14)),
    "node_class_other_target": lambda: explain(NodeModel(), graph(), [2], target=torch.tensor([1])),
    "node_value": lambda: explain(NodeModel(num_classes=1), graph(), [2, 5], model_config=ONE_VALUE),
    "node_value_up_fit": lambda: explain(
        NodeModel(num_classes=1), graph(), [2, 5], fit=range(14), model_config=ONE_VALUE, settings={"direction": "up"}
    ),
    "node_edge_weight": lambda: explain(
        NodeModel(), graph(), [2], edge_weight=torch.linspace(0.5, 1.5, graph().num_edges)
    ),
    "node_by_pyg": together,
    "node_large": lambda: explain(NodeModel(), graph(60, 1, 60), [20], settings={"max_nodes": 20, "num_samples": 16}),
    "node_bounded": lambda: explain(NodeModel(), graph(60, 1, 60), [20], settings={"max_graph_nodes": 12}),
    "node_directed": lambda: explain(NodeModel(), directed(), [2, 5]),
    "node_isolated": lambda: explain(NodeModel(), isolated(), [14, 2]),
    "node_loops": lambda: explain(NodeModel(), with_loops(), [0, 3], settings={"removal": "isolate"}),
    "node_context": lambda: explain(NodeModel(), graph(), [2], settings={"preset": "context", **SHORT}),
    "node_context_fit": lambda: explain(
        NodeModel(), graph(), [2, 5], fit=range(14), settings={"preset": "context", **SHORT}
    ),
    "node_paper_fit": lambda: explain(NodeModel(), graph(), [2], fit=range(14), settings=PAPER),
    "graph_class": lambda: explain(GraphModel(), several(number=1)),
    "graph_class_fit": lambda: explain(GraphModel(), several(), fit={}),
    "graph_value_edge_attr": lambda: explain(
        EdgeFeatureModel(), several(lambda seed: with_edges(graph(8, seed, 4), seed), 2), model_config=GRAPH_VALUE
    ),
    "graph_value_edge_attr_fit": lambda: explain(
        EdgeFeatureModel(), several(lambda seed: with_edges(graph(8, seed, 4), seed)), [1, 3], fit={},
        model_config=GRAPH_VALUE,
    ),
    "graph_context": lambda: explain(GraphModel(), several(number=2), settings={"preset": "context", **SHORT}),
    "graph_paper_fit": lambda: explain(GraphModel(), several(), [0, 4], fit={}, settings=PAPER),
    "link_class": lambda: explain(LinkModel(), graph(), edge_label_index=LINKS, model_config=LINK),
    "link_value": lambda: explain(
        LinkModel(), graph(), edge_label_index=LINKS[:, :1], model_config=config("edge", "regression")
    ),
    "link_class_fit": lambda: explain(LinkModel(), graph(), fit={}, edge_label_index=LINKS, model_config=LINK),
    "link_context": lambda: explain(
        LinkModel(), graph(), edge_label_index=LINKS[:, :1], model_config=LINK,
        settings={"preset": "context", **SHORT},
    ),
    "typed_node_class": lambda: explain(TypedNodeModel(), typed(), [3], node_type="paper"),
    "typed_node_class_fit": lambda: explain(TypedNodeModel(), typed(), [3, 4], fit=range(9), node_type="paper"),
    "typed_graph_class": lambda: explain(GraphOfTypes(), several(typed, 2), model_config=config("graph")),
    "typed_link_class": lambda: explain(
        TypedLinkModel(), typed(), edge_label_index=TYPED_LINKS, edge_type=RELATION, model_config=LINK
    ),
}  # fmt: skip


def rounded(values: Any) -> Any:
    """Numbers with the digits that are compared."""
    if isinstance(values, Tensor):
        return rounded(values.flatten().tolist())
    if isinstance(values, float):
        return round(values, 7) + 0.0
    return [rounded(value) for value in values] if isinstance(values, list | tuple) else values


def answer(explanation: Any) -> dict[str, Any]:
    """Everything that an explanation says, as plain values."""
    stores = [store for store in explanation.stores if "node_mask" in store or "edge_mask" in store]
    parts, certificate = explanation.parts, explanation.certificate
    found = {
        "name": explanation.name,
        "prediction": explanation.whole_prediction,
        "class": explanation.explained_class,
        "subgraphs": [[sorted(s.nodes), s.probability] for s in explanation.top(5)],
        "number": len(explanation.subgraphs),
        "only": explanation.subgraphs[0].prediction_only,
        "without": explanation.subgraphs[0].prediction_without,
        "node_mask": [store.node_mask for store in stores if "node_mask" in store],
        "edge_mask": [store.edge_mask for store in stores if "edge_mask" in store],
        "error": explanation.error,
        "parts": [
            [sorted(part.nodes) for part in parts], parts.prediction_only, parts.prediction_without, parts.preserved,
            parts.preserved_by_random, parts.holds,
        ],
        "certificate": [certificate.distance, certificate.node_error, certificate.num_subgraphs],
        "warnings": len(explanation.warnings),
    }  # fmt: skip
    if explanation.explained_link is not None:
        found["paths"] = [[path.nodes, path.edges, path.probability] for path in explanation.paths(3)]
    if hasattr(explanation, "counterfactual"):
        amount = 0.2 if explanation.explained_class is None else None
        changed = explanation.counterfactual(amount=amount)
        found["counterfactual"] = changed and [sorted(changed.nodes), changed.prediction, changed.minimal]
        features = explanation.feature_contributions(evaluations=64)
        found["features"] = [features.columns, features.whole, features.bare]
    return {name: rounded(value) for name, value in found.items()}


def written(answers: list[dict[str, Any]]) -> str:
    """One line a value, so that a difference can be read."""
    lines = [[f"  {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in one.items()] for one in answers]
    return "[\n{\n" + "\n},\n{\n".join(",\n".join(one) for one in lines) + "\n}\n]\n"


def numbers(value: Any) -> list[float]:
    """All real numbers of nested lists, in order."""
    if isinstance(value, list):
        return [number for entry in value for number in numbers(entry)]
    return [value] if isinstance(value, float) else []


def words(value: Any) -> Any:
    """The same lists without real numbers."""
    return [words(entry) for entry in value] if isinstance(value, list) else None if isinstance(value, float) else value


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_answer_is_the_stored_one(name):
    within = TRAINED if "context" in name or "paper" in name else 1e-6
    explanations = PROBLEMS[name]()
    stored = json.loads((FOLDER / f"{name}.json").read_text())
    assert len(explanations) == len(stored)
    for explanation, expected in zip(explanations, stored, strict=True):
        found = json.loads(json.dumps(answer(explanation)))
        probability = {tuple(map(str, sorted(s.nodes))): s.probability for s in explanation.subgraphs}
        # Subgraphs that are equally probable may stand in any order.
        listed, known = (value.pop("subgraphs") for value in (found, expected))
        assert [p for _, p in listed] == pytest.approx([p for _, p in known], abs=within)
        here = [probability[tuple(str(tuple(n) if isinstance(n, list) else n) for n in nodes)] for nodes, _ in known]
        assert here == pytest.approx([p for _, p in known], abs=within)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert words(found[key]) == words(value), key
            assert numbers(found[key]) == pytest.approx(numbers(value), abs=within), key


def test_every_stored_answer_has_a_problem_and_all_are_small():
    files = list(FOLDER.glob("*.json"))
    assert {file.stem for file in files} == set(PROBLEMS)
    assert sum(file.stat().st_size for file in files) < 100_000


if __name__ == "__main__":
    chosen = [name for name in sys.argv[1:] if name != "--write"] or list(PROBLEMS)
    FOLDER.mkdir(exist_ok=True)
    for name in chosen:
        text = written([answer(explanation) for explanation in PROBLEMS[name]()])
        print(name, len(text), "bytes")
        if "--write" in sys.argv:
            (FOLDER / f"{name}.json").write_text(text)
