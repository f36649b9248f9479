"""The demonstration: two small tasks from nothing to scored and stored explanations, beside floors and peers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gflowbench.explainers import Scores, Subject, create
from gflowbench.metrics import MetricSettings
from gflowbench.protocol import Contestant, Problem, ProtocolSettings, evaluate, problem
from gflowbench.protocol.presentation import TITLES
from gflowbench.protocol.record import Cell, Record
from gflowexplainer import SubgraphExplanation
from gflowexplainer.report import Case
from gflowexplainer.report.run_folder import Run
from gflowexplainer.report.truth import own_motif
from gflowexplainer.training.checkpoint import METRICS

FLOORS = ("random", "distance", "probability")
OURS: dict[str, Any] = {}
PEERS: dict[str, dict[str, Any]] = {"gnnexplainer": {"epochs": 50}, "pgexplainer": {}}
"""Settings of ours, and of explainers of PyG to compare with, which are shortened to keep the demonstration short."""

NUM_GRAPHS = 200
SHOWN = 8
"""Graphs of the small BA-2motifs, and instances of each task in the report."""


def exhibits(folder: Path, seed: int, progress: bool) -> list[Problem]:
    """Names both tasks, whose GNNs are trained once, or found where an earlier run left them."""
    cycles = problem("tree-cycles", "trained", seed=seed, weights=folder, progress=progress)
    motifs = problem("ba-2motifs", "trained", seed=seed, weights=folder, progress=progress, num_graphs=NUM_GRAPHS)
    return [replace(each, load=cache(each.load)) for each in (cycles, motifs)]


def demonstrate(
    run: Run,
    *,
    seed: int = 0,
    tell: Callable[[str], None] = lambda line: None,
    progress: bool = False,
) -> Record:
    """Explains both tasks, scores the explanations beside floors and peers, and stores some for the report.

    Args:
        run: Where everything is stored; what is there already is not computed again.
        seed: Fixes data, GNNs and explanations.
        tell: Is told how far it is, one line each.
        progress: Whether to show progress bars.
    """
    tell(f"Training the GNNs of Tree-Cycles and of a BA-2motifs of {NUM_GRAPHS} graphs")
    settings = ProtocolSettings(metrics=MetricSettings(num_contexts=20))
    cells: list[Cell] = []
    stability: dict[tuple[str, str, str], float] = {}
    with _one_thread():
        for task in exhibits(run.folder / "gnns", seed, progress):
            loaded = task.load()
            shares = ", ".join(f"{k} {v:.2f}" for k, v in loaded.facts["gnn_accuracies"].items())
            tell(f"{TITLES[task.dataset]}: {len(loaded.index)} instances; accuracy of the GNN: {shares}")
            fitting = {"folder": run.folder / task.dataset, "progress": progress}
            ours = partial(create, "gflow", **OURS, fitting=fitting)
            beside = [*map(Contestant.named, FLOORS), *(Contestant.named(name, **PEERS[name]) for name in PEERS)]
            contestants = [Contestant("gflow", ours, OURS), *beside]
            record = evaluate([task], contestants, seeds=[seed], out=run.folder, settings=settings, report=tell)
            cells += record.cells
            stability |= record.stability
            _store(run, task, ours, seed)
    curves = run.folder / "tree-cycles" / METRICS
    if curves.is_file():
        shutil.copyfile(curves, run.folder / METRICS)
    return Record(cells, settings=record.settings, stability=stability)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Computes with one thread: the tensors here are so small that threads spend their time waiting for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _store(run: Run, task: Problem, ours: Callable[[], Any], seed: int) -> None:
    """Stores a few explanations, with the truth and with what the peers say, unless they are there."""
    loaded = task.load()
    step = max(1, len(loaded.index) // SHOWN)
    level, title = loaded.benchmark.task, TITLES[task.dataset]
    called = {i: f"{title} {level} {int(loaded.index[i])}" for i in list(range(0, len(loaded.index), step))[:SHOWN]}
    if all(run.has(name) for name in called.values()):
        return
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    explainer, peers = ours(), {name: create(name, **PEERS[name]) for name in PEERS}
    for each in (explainer, *peers.values()):
        each.fit(subject, seed)
    explainer.explain(subject, seed)
    scores = {name: peer.explain(subject, seed) for name, peer in peers.items()}
    for i, name in called.items():
        explanation = explainer.explanations[i]
        _ = explanation.certificate  # computed when it is read, and kept by the file only then
        graph = loaded.benchmark.graphs[0 if level == "node" else int(loaded.index[i])]
        others = {peer: _edge_scores(subject, i, found, explanation) for peer, found in scores.items()}
        run.store(Case(name, explanation, truth=own_motif(graph, explanation.explained_node), others=others))


def _edge_scores(subject: Subject, i: int, scores: Scores, explanation: SubgraphExplanation) -> Tensor:
    """Puts an explainer's scores of one instance back onto the edges of the whole graph, ``[E]``."""
    instances = subject.instances
    mine = slice(int(instances.edge_ptr[i]), int(instances.edge_ptr[i + 1]))
    whole = torch.zeros(explanation.edge_index.size(1))
    whole[instances.edge_id[mine].cpu()] = scores.edge[mine].detach().float().cpu()
    return whole
