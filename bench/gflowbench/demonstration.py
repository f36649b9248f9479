"""The demonstration: two small tasks from nothing to scored and stored explanations, beside floors and peers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gflowbench.explainers import Scores, Subject
from gflowbench.explainers.gflow import GFlow
from gflowbench.explainers.interface import Explainer
from gflowbench.explainers.registry import names
from gflowbench.metrics import MetricSettings
from gflowbench.protocol import Contestant, Loaded, Problem, ProtocolSettings, evaluate, problem
from gflowbench.protocol.presentation import TITLES
from gflowbench.protocol.record import Cell, Record
from gflowexplainer import SubgraphExplanation
from gflowexplainer.report import Case
from gflowexplainer.report.run_folder import Run
from gflowexplainer.report.truth import own_motif
from gflowexplainer.training.checkpoint import METRICS

FLOORS = ("random", "distance", "probability")
PEERS: dict[str, dict[str, Any]] = {"gnnexplainer": {"epochs": 50}, "pgexplainer": {}}
"""Explainers of PyG to compare with, and how they are shortened to keep the demonstration short."""

NUM_GRAPHS = 200
SHOWN = 8
"""Graphs of the small BA-2motifs, and instances of each task in the report."""


@dataclass
class Exhibit:
    """A dataset, its GNN and how it is explained.

    Attributes:
        loaded: Dataset and GNN.
        problem: Both as the protocol takes them.
        settings: Settings of the explainer; what is not named is the default.
    """

    loaded: Loaded
    problem: Problem
    settings: dict[str, Any] = field(default_factory=dict)


class Remembering:
    """Any explainer, whose last scores are kept for the report."""

    def __init__(self, explainer: Explainer) -> None:
        self.name, self._explainer = explainer.name, explainer
        self.deterministic = bool(getattr(explainer, "deterministic", False))
        self.scores: Scores | None = None

    def fit(self, subject: Subject, seed: int) -> None:
        """Fits it."""
        self._explainer.fit(subject, seed)

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Explains by it."""
        self.scores = self._explainer.explain(subject, seed)
        return self.scores


def exhibits(folder: Path, seed: int, progress: bool) -> list[Exhibit]:
    """Generates the data and trains the GNNs, or finds them where an earlier run left them."""
    cycles = problem("tree-cycles", "trained", seed=seed, weights=folder / "gnns", progress=progress)
    return [_exhibit(each, {}) for each in (cycles, _few_motifs(folder / "gnns", seed, progress))]


def _exhibit(wanted: Problem, settings: dict[str, Any]) -> Exhibit:
    loaded = wanted.load()
    return Exhibit(loaded, Problem(wanted.dataset, wanted.gnn, lambda: loaded, wanted.settings), settings)


def _few_motifs(folder: Path, seed: int, progress: bool) -> Problem:
    """Names a BA-2motifs of few graphs, with a GNN trained on them."""
    from gflowbench.datasets import load
    from gflowbench.models import load_weights, read_metadata, train

    def loaded() -> Loaded:
        benchmark = load("ba-2motifs", "generated", seed=seed, num_graphs=NUM_GRAPHS)
        path = folder / f"ba-2motifs-{NUM_GRAPHS}-gcn-{seed}.safetensors"
        if path.is_file():
            model, accuracies = load_weights(path), read_metadata(path)["accuracies"]
        else:
            trained = train("gcn", benchmark, seed=seed, progress=progress)
            model, accuracies = trained.model, trained.accuracies
            trained.save(path)
        facts = {"gnn": f"gcn trained here, seed {seed}", "gnn_accuracies": {n: a.share for n, a in accuracies.items()}}
        return Loaded(model, benchmark, benchmark.index, facts)

    return Problem("ba-2motifs", "trained", loaded, {"num_graphs": NUM_GRAPHS, "gnn_seed": seed})


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
    with _one_thread():
        return _demonstrate(run, seed, tell, progress)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Computes with one thread: the tensors here are so small that threads spend their time waiting for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _demonstrate(run: Run, seed: int, tell: Callable[[str], None], progress: bool) -> Record:
    tell(f"Training the GNNs of Tree-Cycles and of a BA-2motifs of {NUM_GRAPHS} graphs")
    settings = ProtocolSettings(metrics=MetricSettings(num_contexts=20))
    cells: list[Cell] = []
    stability: dict[tuple[str, str, str], float] = {}
    for task in exhibits(run.folder, seed, progress):
        name = task.problem.dataset
        shares = ", ".join(f"{k} {v:.2f}" for k, v in task.loaded.facts["gnn_accuracies"].items())
        tell(f"{TITLES[name]}: {len(task.loaded.index)} instances; accuracy of the GNN: {shares}")
        fitted = GFlow(**task.settings, fitting={"folder": run.folder / name, "progress": progress})
        beside = _beside()
        contestants = [
            Contestant("gflow", partial(_same, fitted), task.settings),
            *(Contestant(each, partial(_same, explainer), PEERS.get(each, {})) for each, explainer in beside.items()),
        ]
        record = evaluate([task.problem], contestants, seeds=[seed], out=run.folder, settings=settings, report=tell)
        cells += record.cells
        stability |= record.stability
        _store(run, task, fitted, beside, seed)
    curves = run.folder / "tree-cycles" / METRICS
    if curves.is_file():
        shutil.copyfile(curves, run.folder / METRICS)
    return Record(cells, settings=record.settings, stability=stability)


def _same(explainer: Explainer) -> Explainer:
    """Hands on an explainer that is used once, so that its answer is still there afterwards."""
    return explainer


def _beside() -> dict[str, Remembering]:
    """Makes the floors, and the peers that are there."""
    from gflowbench.explainers.registry import create

    wanted = [*FLOORS, *(name for name in PEERS if name in names())]
    return {name: Remembering(create(name, **PEERS.get(name, {}))) for name in wanted}


def _store(run: Run, task: Exhibit, fitted: GFlow, beside: Mapping[str, Remembering], seed: int) -> None:
    """Stores a few explanations, with the truth and with what the peers say."""
    loaded = task.loaded
    step = max(1, len(loaded.index) // SHOWN)
    chosen = list(range(0, len(loaded.index), step))[:SHOWN]
    level, title = loaded.benchmark.task, TITLES[task.problem.dataset]
    called = {i: f"{title} {level} {int(loaded.index[i])}" for i in chosen}
    if all(run.has(name) for name in called.values()):
        return
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    if not fitted.explanations:  # scored in an earlier run
        fitted.fit(subject, seed)
        fitted.explain(subject, seed)
    peers = {name: beside[name] for name in PEERS if name in beside}
    for peer in peers.values():
        if peer.scores is None:
            peer.fit(subject, seed)
            peer.explain(subject, seed)
    for i in chosen:
        explanation = fitted.explanations[i]
        _ = explanation.certificate  # computed when asked for, and kept by the file only then
        graph = loaded.benchmark.graphs[0 if level == "node" else int(loaded.index[i])]
        others = {name: _edge_scores(subject, i, peer.scores, explanation) for name, peer in peers.items()}
        run.store(Case(called[i], explanation, truth=own_motif(graph, explanation.explained_node), others=others))


def _edge_scores(subject: Subject, i: int, scores: Scores | None, explanation: SubgraphExplanation) -> Tensor:
    """Puts an explainer's scores of one instance back onto the edges of the whole graph, ``[E]``."""
    assert scores is not None
    instances = subject.instances
    mine = slice(int(instances.edge_ptr[i]), int(instances.edge_ptr[i + 1]))
    whole = torch.zeros(explanation.edge_index.size(1))
    whole[instances.edge_id[mine].cpu()] = scores.edge[mine].detach().float().cpu()
    return whole
