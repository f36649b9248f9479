"""Bad inputs: settings, graphs, indices, targets, models, files and words of the command line that cannot be meant."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GCNConv, GraphNorm, PairNorm
from typer.testing import CliRunner

from faults.counting import Count
from gflowexplainer import GFlowExplainer, SubgraphExplanation
from gflowexplainer.cli.application import app
from gflowexplainer.errors import GFlowExplainerError
from gflowexplainer.sources import fill_weights, load_graphs, load_model, save_graphs
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.testing import GraphModel, NodeModel, cycle, house, random_graph

QUICK: dict[str, Any] = {"max_nodes": 3, "epochs": 2, "num_contexts": 2, "reference_nodes": 4, "num_samples": 8}
NAN, INF = float("nan"), float("inf")
Case = tuple[str, Callable[[], object], Callable[[object], bool] | None]
"""What is tried, and what is right if it is taken; ``None`` if it must be refused."""


def bad_inputs() -> Count:
    """Tries them all."""
    count = Count("bad inputs")
    with tempfile.TemporaryDirectory() as home:
        before = Path.cwd()
        os.chdir(home)
        try:
            for makers in (_settings, _graphs, _indices, _models, _files, _stored, _commands):
                for name, work, right in makers(Path(home)):
                    count.judge(name, work, right)
        finally:
            os.chdir(before)
    return count


def _explain(model: Any = None, data: Any = None, index: Any = 3, **more: Any) -> Any:
    model = NodeModel() if model is None else model
    data = random_graph(10) if data is None else data
    return GFlowExplainer(**QUICK).explain(model, data, index, progress=False, **more)


def _changed(**fields: Any) -> Data:
    data = random_graph(10)
    for name, value in fields.items():
        data[name] = value
    return data


def _settings(_: Path) -> Iterator[Case]:
    values: dict[str, list[Any]] = {
        "max_nodes": [0, -1, 1.5, "8", None, NAN, True, [3]],
        "min_nodes": [0, -3, 21, 2.5, "a"],
        "beta": [0, -1.0, NAN, INF, "two", None],
        "seed": [2**64, 0.5, "x", None],
        "learning_rate": [0, -1, NAN, INF, "fast"],
        "keep_probability": [1.5, -0.1, NAN],
        "epsilon": [-0.1, 1.1, "x"],
        "reward": ["consensu", 3, None, ""],
        "removal": ["isolated", 1],
        "objective": ["balance", None],
        "measure": ["growt", 0],
        "policy": ["additiv", None],
        "hidden": [0, -4, 2.5],
        "num_samples": [0, -1, 1.5, "4", True, None],
        "weighting": ["rewards", None, 1],
        "num_hops": [-1, 1.5, "2", True, [2]],
        "certificate_limit": [0, "many"],
        "memory_budget": [0, -1, 1.5, "1GB"],
        "preset": ["papers", None, 3],
        "epochs": [0, 1.5],
        "batch_size": [0, -2, "all"],
        "relative_beta": [1, "yes", None],
        "no_such_setting": [1],
    }
    for name, wrong in values.items():
        for value in wrong:
            yield f"{name}={value!r}", lambda n=name, v=value: GFlowExplainer(**{n: v}), None
    yield (
        "preset and node_identities of a fit",
        lambda: GFlowExplainer(node_identities=True).fit(NodeModel(), random_graph(10), [0], progress=False),
        None,
    )
    yield (
        "max_nodes of a billion",
        lambda: GFlowExplainer(**{**QUICK, "max_nodes": 10**9}).explain(
            NodeModel(), random_graph(10), 3, progress=False
        ),
        lambda found: max(len(s) for s in found[0].subgraphs) <= 10,
    )  # type: ignore[index]
    yield "fit nothing and save", lambda: GFlowExplainer().save("folder"), None


def _graphs(_: Path) -> Iterator[Case]:
    x = random_graph(10).x
    holes = x.clone()
    holes[3, 1] = NAN
    fields: dict[str, dict[str, Any]] = {
        "sparse x": {"x": x.to_sparse()},
        "x in CSR": {"x": x.to_sparse_csr()},
        "x without columns": {"x": torch.zeros(10, 0)},
        "x without rows": {"x": torch.zeros(0, 3)},
        "x of whole numbers": {"x": torch.ones(10, 3, dtype=torch.long)},
        "x of booleans": {"x": torch.ones(10, 3, dtype=torch.bool)},
        "complex x": {"x": x.to(torch.complex64)},
        "x of one dimension": {"x": x[:, 0]},
        "x of three dimensions": {"x": x[:, None]},
        "x as a list": {"x": x.tolist()},
        "x as an array": {"x": x.numpy()},
        "no x": {"x": None},
        "NaN in x": {"x": holes},
        "infinity in x": {"x": x / 0.0},
        "x of another width": {"x": torch.rand(10, 5)},
        "x in double precision": {"x": x.double()},
        "no edge_index": {"edge_index": None},
        "edge_index of floats": {"edge_index": torch.zeros(2, 4)},
        "edge_index of int32": {"edge_index": torch.zeros(2, 4, dtype=torch.int32)},
        "edge_index turned": {"edge_index": torch.zeros(4, 2, dtype=torch.long)},
        "edge_index of one dimension": {"edge_index": torch.zeros(4, dtype=torch.long)},
        "edge_index that names a node too far": {"edge_index": torch.tensor([[0, 10], [1, 0]])},
        "edge_index that names a negative node": {"edge_index": torch.tensor([[0, -1], [1, 0]])},
        "sparse edge_index": {"edge_index": torch.eye(10).to_sparse()},
        "edge_index as a list": {"edge_index": [[0, 1], [1, 0]]},
    }
    for name, change in fields.items():
        yield name, lambda c=change: _explain(data=_changed(**c)), None
    weights: dict[str, Any] = {
        "edge_weight too short": torch.ones(3),
        "edge_weight of text": "heavy",
        "edge_weight with NaN": torch.full((random_graph(10).edge_index.size(1),), NAN),
    }
    for name, value in weights.items():
        yield name, lambda v=value: _explain(edge_weight=v), None
    yield (
        "a graph without edges",
        lambda: _explain(data=Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long))),
        (
            lambda found: found[0].subgraphs[0].nodes == (3,)  # type: ignore[index]
        ),
    )
    yield "no data", lambda: _explain(data=[]), None
    yield "data of text", lambda: _explain(data="graph"), None
    yield "data of numbers", lambda: _explain(data=[1, 2]), None
    yield "HeteroData", lambda: _explain(data=HeteroData()), None
    yield "an empty Data", lambda: _explain(data=Data()), None
    yield "two graphs for a model of nodes", lambda: _explain(
        data=[house(), cycle(5)], model_config={"mode": "multiclass_classification", "task_level": "node",
                                        "return_type": "raw"}), None  # fmt: skip
    yield "graphs of different width", lambda: _explain(GraphModel(), [house(), house(width=5)], None), None
    yield "a batch_size", lambda: _explain(batch_size=3), None
    yield "an argument that the model does not take", lambda: _explain(no_such_argument=3), None
    yield "graph_index of another graph", lambda: _explain(graph_index=_index_of(cycle(5))), None


def _index_of(data: Data) -> Any:
    from gflowexplainer.graphs.index import GraphIndex

    return GraphIndex.build(data.edge_index, int(data.num_nodes or 0))


def _indices(_: Path) -> Iterator[Case]:
    for value in (10, -1, [3, 99], [], 1.5, "3", "a", [1.0], [[]], {"a": 1}, torch.tensor([True]), 1j, [NAN], 2**70):
        yield f"index={value!r}", lambda v=value: _explain(index=v), None
    for value in (5, -1, [], "a", 1.5, [True], 2**70):
        yield f"index={value!r} of graphs", lambda v=value: _explain(GraphModel(), [house(), cycle(5)], v), None
    for value in (7, -1, [0, 1], "a", 0.5, [[0, 1]], torch.rand(3, 2), {"a": 1}, NAN, [None]):
        yield f"target={value!r}", lambda v=value: _explain(target=v), None
    configs: list[Any] = ["raw", 3, {"mode": "x", "task_level": "node", "return_type": "raw"}, {}, {"level": "node"}]
    configs += [{"mode": "regression", "task_level": "node", "return_type": "probs"}, [1, 2]]
    configs += [{"mode": "binary_classification", "task_level": "node", "return_type": "raw"}]
    for value in configs:
        yield f"model_config={value!r}", lambda v=value: _explain(model_config=v), None


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


def _models(_: Path) -> Iterator[Case]:
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
        yield f"a model that returns {name}", lambda c=change: _explain(_Returning(c)), None
    for kind in ("probs", "log_probs"):
        config = {"mode": "multiclass_classification", "task_level": "node", "return_type": kind}
        yield f"scores as {kind}", lambda c=config: _explain(model_config=c), None
        yield (
            f"{kind} that add up to something else",
            lambda c=config: _explain(_Returning(lambda y: y.sigmoid() if c["return_type"] == "probs" else -y.exp()),
                                      model_config=c),
            None,
        )  # fmt: skip
    yield "a function as model", lambda: _explain(lambda x, edge_index: x), None
    yield "text as model", lambda: _explain("NodeModel"), None
    yield "a model without message passing", lambda: _explain(nn.Linear(3, 2)), None
    yield "a lazy model", lambda: _explain(nn.Sequential(GCNConv(-1, 3))), None

    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(3, 2, flow="target_to_source")

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index)

    yield "a model of another flow", lambda: _explain(Turned()), None

    class Extra(NodeModel):
        def get_extra_state(self) -> Any:
            return {"a": [1, {"b": {2, 3}}]}

    fine = lambda found: len(found[0].subgraphs) > 0  # noqa: E731
    yield "a model with extra state", lambda: _explain(Extra()), fine

    def sparse() -> nn.Module:
        model = NodeModel()
        model.register_buffer("table", torch.eye(4).to_sparse())
        return model

    yield "a model with a sparse buffer", lambda: _explain(sparse()), fine
    yield "a model in half precision on floats", lambda: _explain(NodeModel().half()), None
    yield "a model of meta tensors", lambda: _explain(NodeModel().to("meta")), None

    class Writing(NodeModel):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
            x += 1
            return super().forward(x, edge_index)

    def written() -> object:
        data = random_graph(10)
        before = data.x.clone()
        found = _explain(Writing(), data)
        return torch.equal(data.x, before) and any("writes into" in said for said in found[0].warnings)

    yield "a model that writes into its input", written, bool

    class Random(NodeModel):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(x, edge_index) + torch.rand(x.size(0), 1)

    random_said = lambda found: any("random" in said for said in found[0].warnings)  # noqa: E731
    yield "a model that is random", lambda: _explain(Random()), random_said
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
            .explain(NodeModel(), _changed(x=torch.rand(10, 4)), 3)
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
    best = _explain(model, data)[0].subgraphs[0]
    nodes = sorted(best.nodes)
    edges, _ = subgraph(torch.tensor(nodes), data.edge_index, relabel_nodes=True, num_nodes=10)
    with torch.no_grad():
        truth = model(data.x[nodes], edges)[nodes.index(3)].softmax(dim=0)
    return bool(torch.allclose(torch.tensor(best.prediction_only), truth, atol=1e-4))


def _files(here: Path) -> Iterator[Case]:
    entries: dict[str, Any] = {
        "a negative id": {"features": [[1.0]] * 3, "edges": [[0, -1]]},
        "an id too large": {"features": [[1.0]] * 3, "edges": [[0, 3]]},
        "an enormous id": {"features": [[1.0]] * 3, "edges": [[0, 10**30]]},
        "an edge of three": {"features": [[1.0]] * 3, "edges": [[0, 1, 2]]},
        "an edge of text": {"features": [[1.0]] * 3, "edges": [["a", "b"]]},
        "an edge of null": {"features": [[1.0]] * 3, "edges": [[None, 0]]},
        "edges of null": {"features": [[1.0]] * 3, "edges": None},
        "ragged features": {"features": [[1.0], [1.0, 2.0]], "edges": []},
        "features of text": {"features": [["a"]], "edges": []},
        "features of null": {"features": None, "edges": []},
        "enormous features": {"features": [[10**400]], "edges": []},
        "no features": {"edges": [[0, 1]]},
        "an unknown key": {"features": [[1.0]], "edges": [], "wieghts": []},
        "other counts": {"features": [[1.0]], "edges": [], "num_nodes": 5},
        "labels of another length": {"features": [[1.0]], "edges": [], "labels": [1, 2]},
        "a number": 3,
        "null": None,
        "a list of numbers": [1, 2],
        "an empty list": [],
        "undirected of text": {"features": [[1.0]], "edges": [], "undirected": "no"},
    }
    for name, entry in entries.items():
        yield f"JSON with {name}", lambda e=entry: _read("graph.json", json.dumps(e).encode()), None
    nested = b"[" * 100_000
    for name, content in {"nested": nested, "empty": b"", "binary": b"\x00\xff" * 50, "cut": b'{"edges": ['}.items():
        for ending in (".json", ".npz", ".pt", ".safetensors"):
            yield f"{ending} that is {name}", lambda c=content, e=ending: _read("graph" + e, c), None
    yield "an .npz that claims 40 GB", lambda: _read("claims.npz", _claiming((10**8, 100))), None
    yield "an .npz that claims a negative size", lambda: _read("claims.npz", _claiming((-5, 100))), None
    x, edge_index = np.ones((3, 2)), np.zeros((2, 1), dtype=np.int64)
    arrays: dict[str, dict[str, Any]] = {
        "no x": {"edge_index": edge_index},
        "no edge_index": {"x": x},
        "x of text": {"x": np.array([["a"]]), "edge_index": edge_index},
        "x of objects": {"x": np.array([[None]]), "edge_index": edge_index},
        "edges beyond": {"x": x, "edge_index": edge_index + 9},
        "edges of floats": {"x": x, "edge_index": edge_index + 0.5},
        "a wrong ptr": {"x": x, "edge_index": edge_index, "ptr": np.array([0, 99])},
        "a wrong batch": {"x": x, "edge_index": edge_index, "batch": np.array([1, 0, 0])},
    }
    for name, fields in arrays.items():
        yield f".npz with {name}", lambda f=fields: _read("graph.npz", _npz(f)), None
    for path in ("none.json", "none", "a\0b.json", "n" * 300 + ".json", "", ".", "/dev/null", "graph.txt"):
        yield f"graphs from {path[:20]!r}", lambda p=path: load_graphs(p), None
        yield f"weights from {path[:20]!r}", lambda p=path: fill_weights(NodeModel(), p), None
    for name in ("", ":", "a:b", "math:pi", "math:nothing", "a\0b:c", "gflowexplainer.testing:graph_of", "json:dumps"):
        yield f"model {name!r}", lambda n=name: load_model(n), None
    yield "weights of another model", lambda: _weights(GraphModel().state_dict()), None
    yield "weights that are a list", lambda: _weights([1, 2]), None
    yield "weights of another shape", lambda: _weights(NodeModel(5).state_dict()), None
    yield "graphs to text", lambda: save_graphs("graph.txt", house()), None
    yield "no graphs to write", lambda: save_graphs("graph.safetensors", []), None
    yield "a number to write", lambda: save_graphs("graph.safetensors", [3]), None  # type: ignore[list-item]


def _read(name: str, content: bytes) -> object:
    Path(name).write_bytes(content)
    return load_graphs(name)


def _weights(content: Any) -> object:
    torch.save(content, "weights.pt")
    return fill_weights(NodeModel(), "weights.pt")


def _npz(fields: dict[str, Any]) -> bytes:
    content = io.BytesIO()
    np.savez(content, **fields)
    return content.getvalue()


def _claiming(shape: tuple[int, int]) -> bytes:
    """Makes an archive whose header promises more than it holds."""
    header = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    entry = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 400
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("x.npy", entry)
        archive.writestr("edge_index.npy", entry)
    return content.getvalue()


def _stored(here: Path) -> Iterator[Case]:
    data, model = random_graph(10), NodeModel()
    fitted = GFlowExplainer(**QUICK).fit(model, data, [0, 1], folder=here / "fit", progress=False)
    explanation = fitted.explain(model, data, 3)[0]
    explanation.save(here / "e.safetensors")
    files = {
        "explainer": (here / "fit" / "explainer.safetensors", lambda path: GFlowExplainer.load(path.parent)),
        "explanation": (here / "e.safetensors", SubgraphExplanation.load),
    }
    for kind, (path, load) in files.items():
        sections, meta = read_checkpoint(path)
        (here / kind).mkdir()
        for name in meta:
            for value in (None, [], [[1]], {"a": {"b": {}}}, "text", -1, 1e300):
                if value == meta[name] or (name == "identity" and value is None):
                    continue
                said = f"{kind} whose '{name}' is {value!r}"
                other = here / kind / path.name
                # Written anew, with a checksum that is right: damage that only its meaning shows.
                yield said, lambda o=other, s=sections, m={**meta, name: value}, f=load: _load_again(o, s, m, f), (
                    lambda found, n=name: n in ("model_args", "model_config", "sparse", "num_hops", "memory_budget",
                                                "identity", "settings", "model", "fields", "certificate_limit",
                                                "num_samples", "node_type")
                )  # fmt: skip
        for label, part in sections.items():
            for name, tensor in part.items():
                if not tensor.is_floating_point() or kind == "explanation":
                    continue
                spoiled = {**sections, label: {**part, name: torch.full_like(tensor, NAN)}}
                other = here / kind / path.name
                yield (
                    f"{kind} with NaN in '{label}/{name}'",
                    lambda o=other, s=spoiled, m=meta, f=load: _load_again(o, s, m, f),
                    None,
                )
                if tensor.numel() == 1:
                    continue
                small = {**sections, label: {**part, name: tensor.reshape(-1)[:1].clone()}}
                yield (
                    f"{kind} with one number in '{label}/{name}'",
                    lambda o=other, s=small, m=meta: _load_and_use(o, s, m, model, data),
                    None,
                )


def _load_again(path: Path, sections: Any, meta: Any, load: Callable[[Path], object]) -> object:
    write_checkpoint(path, sections, meta)
    return load(path)


def _load_and_use(path: Path, sections: Any, meta: Any, model: nn.Module, data: Data) -> object:
    write_checkpoint(path, sections, meta)
    return GFlowExplainer.load(path.parent).explain(model, data, 3)[0].subgraphs


def _commands(here: Path) -> Iterator[Case]:
    save_graphs(here / "ten.safetensors", random_graph(10))
    start = ["explain", "--model", "gflowexplainer.testing:NodeModel"]
    usual = [*start, "--data", "ten.safetensors"]
    words: list[list[str]] = [
        ["explain"],
        [*usual],
        [*usual, "--index", "99"],
        [*usual, "--index", "-1"],
        [*usual, "--index", "a"],
        [*usual, "--index", ""],
        [*usual, "--index", "3-1"],
        [*usual, "--index", "3", "--all"],
        [*usual, "--index", "3", "--max-nodes", "0"],
        [*usual, "--index", "3", "--set", "beta"],
        [*usual, "--index", "3", "--set", "beta=x"],
        [*usual, "--index", "3", "--set", "no=1"],
        [*usual, "--index", "3", "--preset", "no"],
        [*usual, "--index", "3", "--device", "tpu"],
        [*usual, "--index", "3", "--target", "x"],
        [*usual, "--index", "3", "--target", "99"],
        [*usual, "--index", "3", "--num-hops", "-1"],
        [*usual, "--index", "3", "--mode", "x"],
        [*usual, "--index", "3", "--task-level", "edge"],
        [*usual, "--index", "3", "--return-type", "probs"],
        [*usual, "--index", "3", "--out", "/proc/nowhere"],
        [*usual, "--index", "3", "--out", "n" * 300],
        [*usual, "--index", "3", "--explainer", "nowhere"],
        [*usual, "--index", "3", "--weights", "nowhere.pt"],
        [*start, "--data", "nowhere.npz", "--index", "3"],
        [*start, "--smiles", "nowhere.csv"],
        ["explain", "--model", "nowhere:build", "--data", "ten.safetensors", "--index", "3"],
        ["fit", "--model", "gflowexplainer.testing:NodeModel"],
        ["report", "nowhere"],
        ["bulk", "--explainer", "nowhere", "--out", "x"],
        ["nothing"],
        ["explain", "--no-such-option"],
    ]
    for line in words:
        yield " ".join(line)[:80], lambda w=line: _command(w), None


class _Said(GFlowExplainerError):
    """A command said in one line what is wrong."""


def _command(words: list[str]) -> object:
    result = CliRunner().invoke(app, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code in (1, 2) and "Traceback" not in result.output:
        raise _Said(result.output)
    return result.exit_code
