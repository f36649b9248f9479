"""Models that cannot be meant, and models that are strange but can be explained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GraphNorm, PairNorm

from faults.cases import INF, NAN, QUICK, Case, changed, explain
from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import NodeModel, random_graph


class _Returning(NodeModel):
    """Returns something else than scores."""

    def __init__(self, change: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.change = change

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        """Returns what ``change`` makes of the scores."""
        return self.change(super().forward(x, edge_index))


def _fail(_: Tensor) -> Any:
    raise KeyError("speed")


def bad_models() -> Iterator[Case]:
    """Models that return, hold or do something unusual."""
    outputs: dict[str, Callable[[Tensor], Any]] = {
        "no classes": lambda y: y[:, :0],
        "whole numbers": lambda y: y.argmax(dim=1),
        "rows of whole numbers": lambda y: y.long(),
        "booleans": lambda y: y > 0,
        "complex numbers": lambda y: y.to(torch.complex64),
        "sparse scores": lambda y: y.to_sparse(),
        "NaN": lambda y: y * NAN,
        "infinity": lambda y: y + INF,
        "a tuple": lambda y: (y, y),
        "a dictionary": lambda y: {"out": y},
        "nothing": lambda y: None,
        "a number": lambda y: 3.0,
        "a list": lambda y: y.tolist(),
        "three dimensions": lambda y: y[:, None],
        "one column": lambda y: y[:, :1],
        "one row less": lambda y: y[1:],
        "one row": lambda y: y.mean(dim=0, keepdim=True),
        "a scalar": lambda y: y.sum(),
        "an exception": _fail,
    }
    for name, change in outputs.items():
        yield f"a model that returns {name}", lambda c=change: explain(_Returning(c)), None
    for kind in ("probs", "log_probs"):
        config = {"mode": "multiclass_classification", "task_level": "node", "return_type": kind}
        yield f"scores as {kind}", lambda c=config: explain(model_config=c), None
        yield (
            f"{kind} that add up to something else",
            lambda c=config: explain(_Returning(lambda y: y.sigmoid() if c["return_type"] == "probs" else -y.exp()),
                                      model_config=c),
            None,
        )  # fmt: skip
    yield "a function as model", lambda: explain(lambda x, edge_index: x), None
    yield "text as model", lambda: explain("NodeModel"), None
    yield "a model without message passing", lambda: explain(nn.Linear(3, 2)), None
    yield "a lazy model", lambda: explain(nn.Sequential(GCNConv(-1, 3))), None

    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(3, 2, flow="target_to_source")

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index)

    yield "a model of another flow", lambda: explain(Turned()), None

    class Extra(NodeModel):
        def get_extra_state(self) -> Any:
            return {"a": [1, {"b": {2, 3}}]}

    fine = lambda found: len(found[0].subgraphs) > 0  # noqa: E731
    yield "a model with extra state", lambda: explain(Extra()), fine

    def sparse() -> nn.Module:
        model = NodeModel()
        model.register_buffer("table", torch.eye(4).to_sparse())
        return model

    yield "a model with a sparse buffer", lambda: explain(sparse()), fine
    yield "a model in half precision on floats", lambda: explain(NodeModel().half()), None
    yield "a model of meta tensors", lambda: explain(NodeModel().to("meta")), None

    class Writing(NodeModel):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
            x += 1
            return super().forward(x, edge_index)

    def written() -> object:
        data = random_graph(10)
        before = data.x.clone()
        found = explain(Writing(), data)
        return torch.equal(data.x, before) and any("writes into" in said for said in found[0].warnings)

    yield "a model that writes into its input", written, bool

    class Random(NodeModel):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(x, edge_index) + torch.rand(x.size(0), 1)

    random_said = lambda found: any("random" in said for said in found[0].warnings)  # noqa: E731
    yield "a model that is random", lambda: explain(Random()), random_said
    for norm in (PairNorm(), GraphNorm(3)):
        yield f"a model with {type(norm).__name__}", lambda n=norm: _with_norm(n), bool
    yield (
        "another model than was fitted",
        lambda: (
            GFlowExplainer(**QUICK)
            .fit(NodeModel(), random_graph(10), [0, 1], progress=False)
            .explain(NodeModel(seed=3), random_graph(10), 3)
        ),
        None,
    )
    yield (
        "other features than were fitted",
        lambda: (
            GFlowExplainer(**QUICK)
            .fit(NodeModel(), random_graph(10), [0, 1], progress=False)
            .explain(NodeModel(), changed(x=torch.rand(10, 4)), 3)
        ),
        None,
    )


def _with_norm(norm: nn.Module) -> bool:
    """Whether "only" is what the model says of the subgraph by itself."""

    class Normed(NodeModel):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(norm(x), edge_index)

    from torch_geometric.utils import subgraph

    model, data = Normed().eval(), random_graph(10)
    # Such a model sees one subgraph a call: few are asked for.
    algorithm = GFlowExplainer(**QUICK, preset="context", num_contexts=2, rollouts=2)
    best = algorithm.explain(model, data, 3, progress=False)[0].subgraphs[0]
    nodes = sorted(best.nodes)
    edges, _ = subgraph(torch.tensor(nodes), data.edge_index, relabel_nodes=True, num_nodes=10)
    with torch.no_grad():
        truth = model(data.x[nodes], edges)[nodes.index(3)].softmax(dim=0)
    return bool(torch.allclose(torch.tensor(best.prediction_only), truth, atol=1e-4))
