"""Files that are whole, and hold what cannot be meant: graphs, weights, explainers and explanations."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from faults.cases import NAN, QUICK, Case
from gflowexplainer import GFlowExplainer, SubgraphExplanation
from gflowexplainer.sources import fill_weights, load_graphs, load_model, save_graphs
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.testing import GraphModel, NodeModel, house, random_graph


def bad_files() -> Iterator[Case]:
    """Graphs, weights and names of models, in the working directory."""
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


def bad_checkpoints(here: Path) -> Iterator[Case]:
    """An explainer and an explanation stored below ``here``, with one entry or tensor replaced."""
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
                if not tensor.is_floating_point() or not tensor.numel() or kind == "explanation":
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
