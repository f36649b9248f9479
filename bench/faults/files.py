"""Damaged files: whatever bytes they hold, they load as they were or are refused."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from faults.counting import Count
from gflowexplainer import GFlowExplainer, SubgraphExplanation
from gflowexplainer.report import Case
from gflowexplainer.report.run_folder import Run
from gflowexplainer.sources import fill_weights, load_graphs, save_graphs
from gflowexplainer.storage.checkpoints import read_checkpoint
from gflowexplainer.storage.identity import content_digest
from gflowexplainer.testing import NodeModel, random_graph

QUICK: dict[str, Any] = {"max_nodes": 3, "epochs": 2}


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Returns other bytes: some changed, cut off, doubled, zeroed, or moved."""
    place, length = draw.randrange(len(content)), draw.choice((1, 4, 64, 4096))
    kind = draw.randrange(6)
    if kind == 0:
        return content[:place] + bytes([content[place] ^ (1 << draw.randrange(8))]) + content[place + 1 :]
    if kind == 1:
        return content[:place]
    if kind == 2:
        return content[:place] + content[place + length :]
    if kind == 3:
        return content[:place] + bytes(min(length, len(content) - place)) + content[place + length :]
    if kind == 4:
        return content[:place] + draw.randbytes(length) + content[place:]
    return content[:place] + draw.randbytes(min(length, len(content) - place)) + content[place + length :]


def corrupted(number: int) -> Count:
    """Damages every kind of file that is read, in turn."""
    count = Count("damaged files")
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as home:
        here = Path(home)
        kinds = _files(here)
        for turn in range(number):
            path, read, whole = kinds[turn % len(kinds)]
            content = path.read_bytes()
            other = damaged(content, draw)
            try:
                path.write_bytes(other)
                truth = whole

                def right(found: object, truth: str | None = truth) -> bool:
                    # Files of the user's own have no checksum: any graph is a graph.
                    return truth is None or found == truth

                count.judge(f"{path.name}, damage {turn}", read, right)
            finally:
                path.write_bytes(content)
    return count


def _files(here: Path) -> list[tuple[Path, Callable[[], object], str | None]]:
    """Writes one file of each kind; returns how it is read, and what comes out of a whole one."""
    data, model = random_graph(12), NodeModel()
    algorithm = GFlowExplainer(**QUICK).fit(model, data, [0, 1], folder=here / "fit", progress=False)
    trained = {**QUICK, "preset": "context", "num_contexts": 4}
    GFlowExplainer(**trained).fit(model, data, [0, 1], folder=here / "trained", progress=False)
    explanation = algorithm.explain(model, data, [3])[0]
    explanation.save(here / "explanation.safetensors")
    run = Run.begin(here / "run", "explain", {}, identity={"x": "1"})
    run.store(Case("node 3", explanation))
    run.write_results({"a": 1}, [])
    save_graphs(here / "graph.safetensors", data)
    np.savez(here / "graph.npz", x=data.x.numpy(), edge_index=data.edge_index.numpy())
    torch.save({"x": data.x, "edge_index": data.edge_index}, here / "graph.pt")
    entry = {"features": data.x.tolist(), "edges": data.edge_index.t().tolist()}
    (here / "graph.json").write_text(json.dumps(entry))
    torch.save(model.state_dict(), here / "weights.pt")

    def content(explanation: SubgraphExplanation) -> str:
        plain = [s.to_dict() for s in explanation.subgraphs]
        return content_digest([plain, dict(explanation.items()), explanation.warnings])

    def explainer(folder: str) -> Callable[[], str]:
        def read() -> str:
            fitted: Any = GFlowExplainer.load(here / folder)
            return content_digest([fitted._fitted.sampler.sections(), fitted.settings.to_dict(), fitted.num_samples])

        return read

    def checkpoint() -> str:
        return content_digest(list(read_checkpoint(here / "trained" / "checkpoint.safetensors")))

    def case() -> str:
        return content(Run.open(here / "run").case("node 3").explanation)

    def graphs(name: str) -> Callable[[], object]:
        return lambda: load_graphs(here / name)

    stored = "node-3.safetensors"
    readers: list[tuple[Path, Callable[[], object], bool]] = [
        (here / "fit" / "explainer.safetensors", explainer("fit"), True),
        (here / "trained" / "explainer.safetensors", explainer("trained"), True),
        (here / "trained" / "checkpoint.safetensors", checkpoint, True),
        (here / "explanation.safetensors", lambda: content(_load(here / "explanation.safetensors")), True),
        (here / "run" / "explanations" / stored, case, True),
        (here / "run" / "cases" / stored, case, True),
        (here / "run" / "graph.safetensors", case, True),
        (here / "run" / "config.json", lambda: Run.open(here / "run").report(), False),
        (here / "graph.safetensors", graphs("graph.safetensors"), False),
        (here / "graph.npz", graphs("graph.npz"), False),
        (here / "graph.pt", graphs("graph.pt"), False),
        (here / "graph.json", graphs("graph.json"), False),
        (here / "weights.pt", lambda: fill_weights(NodeModel(), here / "weights.pt"), False),
    ]
    return [(path, read, str(read()) if checked else None) for path, read, checked in readers]


def _load(path: Path) -> SubgraphExplanation:
    return SubgraphExplanation.load(path)
