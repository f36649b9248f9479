"""Speed beside PyG's GNNExplainer and PGExplainer on published GNNs: explaining, training, and many instances at once.

Ours is the public class, from the user's tensors to masks: ``GFlowExplainer.explain`` for all instances in one call,
the same with ranked subgraphs and the predictions with and without each of them, ``explain`` for one instance a call,
and PyG's ``Explainer`` with it for one instance a call. PyG's two run as PyG documents them, one instance a call on the
whole graph. Beside them stand the same two algorithms as this project computes them, for all instances together.
Seconds are those of the clock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer, PGExplainer
from torch_geometric.explain.algorithm import ExplainerAlgorithm

from benchmarks.large_graphs import readable
from benchmarks.measuring import environment, interleaved, ratio, results_folder, threads, write_json
from gflowbench.explainers import gnn_explainer, pg_explainer
from gflowbench.explainers.gflow import look_at, scores_of
from gflowbench.explainers.interface import Scores, Subject
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.measurement import agreement
from gflowbench.protocol.problems import Loaded, problem
from gflowexplainer import ExplanationList, GFlowExplainer
from gflowexplainer.errors import DatasetError
from gflowexplainer.report.tables import NOT_THERE, Table, join, number
from gflowexplainer.storage.files import write_text

DATASETS = ("ba-shapes", "tree-cycles")
SAMPLES, SEED = 64, 0
OURS, SINGLE, GNN, PG = "ours", "ours, one a call", "PyG GNNExplainer", "PyG PGExplainer"
LOOKED, ONE = "ours, predictions looked at", "ours, one a call of explain"
GNN_HERE, PG_HERE = "GNNExplainer, batched here", "PGExplainer, batched here"
FILES = {"cpu": "results.json", "cuda": "results-cuda.json"}
CONFIG = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}


@dataclass(frozen=True)
class Lengths:
    """How much is timed.

    Attributes:
        gnn_epochs, gnn_instances: Updates of GNNExplainer, and instances it explains in a round.
        pg_epochs, pg_instances: Passes of PGExplainer over all instances, and instances it explains in a round.
        rounds: How often everything is timed.
        copies: Copies of the graph from which many instances are explained.
        threads: Threads on a CPU; a single one feels other work on the machine least.
    """

    gnn_epochs: int = 200
    gnn_instances: int = 3
    pg_epochs: int = 30
    pg_instances: int = 20
    rounds: int = 3
    copies: int = 50
    threads: int = 2


ON_GPU = 167
"""Copies of the graph on a GPU, which is idle with fewer: some ten thousand instances."""
QUICK = Lengths(gnn_epochs=20, gnn_instances=2, pg_epochs=2, rounds=2, copies=5, threads=1)


def load(dataset: str, device: str) -> Loaded:
    """Loads the published graph and GNN; where they are missing, a generated graph and a GNN trained on it."""
    try:
        return problem(dataset, device=device).load()
    except DatasetError as error:
        print(f"{dataset}: a generated graph and a GNN trained here, since the published ones are missing. {error}")
        return problem(dataset, "trained", device=device).load()


def fit_ours(loaded: Loaded, **settings: Any) -> GFlowExplainer:
    """Fits the public class to all instances."""
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    explainer = GFlowExplainer(num_samples=SAMPLES, **{"seed": SEED, **settings})
    return explainer.fit(**subject.request, progress=False)


def graph_of(loaded: Loaded) -> Data:
    """Returns the graph where the GNN is; the very one that was loaded, if it is there already."""
    graph, device = loaded.benchmark.graphs[0], next(loaded.model.parameters()).device
    return graph if graph.x.device == device else graph.to(device)


def explain_ours(
    explainer: GFlowExplainer, loaded: Loaded, nodes: Tensor | None = None, graph: Data | None = None
) -> ExplanationList:
    """Explains instances in one call of the public class, as a user would, of a graph that is where the GNN is."""
    graph = graph_of(loaded) if graph is None else graph
    index = loaded.index if nodes is None else nodes
    return explainer.explain(loaded.model, graph, index, model_config=CONFIG, progress=False)


def look_at_predictions(found: ExplanationList) -> None:
    """Ranks the subgraphs of explanations and evaluates the model with only, and without, each of them."""
    look_at(found)
    for explanation in found:
        for subgraph in explanation.subgraphs:
            assert subgraph.prediction_only is not None
            assert subgraph.prediction_without is not None


def explain_one_by_one(
    explainer: GFlowExplainer, loaded: Loaded, nodes: Sequence[int], graph: Data | None = None
) -> None:
    """Explains instances one call each, by the class itself."""
    for node in nodes:
        look_at(explain_ours(explainer, loaded, torch.tensor([node]), graph))


def explain_singly(explainer: GFlowExplainer, loaded: Loaded, nodes: Sequence[int], graph: Data) -> None:
    """Explains instances one call each, by PyG's own ``Explainer``."""
    masks = {"node_mask_type": "object", "edge_mask_type": "object"}
    outer = Explainer(loaded.model, explainer, explanation_type="model", model_config=CONFIG, **masks)
    for node in nodes:
        outer(graph.x, graph.edge_index, index=node)


class Peers:
    """PyG's own explainers of one GNN, one instance at a time on the whole graph.

    Args:
        loaded: Graph and GNN.
        lengths: How long they learn.
    """

    def __init__(self, loaded: Loaded, lengths: Lengths) -> None:
        self.loaded, self.lengths = loaded, lengths
        self.device = next(loaded.model.parameters()).device
        self.graph = graph_of(loaded)
        self.nodes = loaded.index.tolist()
        with torch.no_grad():
            self.label = loaded.model(self.graph.x, self.graph.edge_index).argmax(dim=1)
        self.pg: Explainer | None = None

    def _explainer(self, algorithm: ExplainerAlgorithm, kind: str) -> Explainer:
        algorithm = algorithm.to(self.device)
        # GNNExplainer leaves empty masks in the layers, after which PGExplainer no longer learns: each gets its own.
        model = deepcopy(self.loaded.model)
        return Explainer(model, algorithm, explanation_type=kind, edge_mask_type="object", model_config=CONFIG)

    def explain_by_gnn(self) -> None:
        """Explains some instances by GNNExplainer."""
        explainer = self._explainer(GNNExplainer(epochs=self.lengths.gnn_epochs), "model")
        for node in self.nodes[: self.lengths.gnn_instances]:
            explainer(self.graph.x, self.graph.edge_index, index=node)

    def fit_pg(self, epochs: int | None = None) -> None:
        """Trains PGExplainer on all instances."""
        torch.manual_seed(SEED)
        algorithm = PGExplainer(epochs=self.lengths.pg_epochs)
        # PyG keeps these in one dictionary for all explainers; ours gets its own, with the size that suits the data.
        size = pg_explainer.SIZES.get(self.loaded.benchmark.name, pg_explainer.SIZE)
        algorithm.coeffs = {**PGExplainer.coeffs, "edge_size": size}
        self.pg = self._explainer(algorithm, "phenomenon")
        x, edge_index = self.graph.x, self.graph.edge_index
        for epoch in range(self.lengths.pg_epochs if epochs is None else epochs):
            for node in self.nodes:
                algorithm.train(epoch, self.pg.model, x, edge_index, target=self.label, index=node)
        if epochs is not None:
            self.pg = None

    def explain_by_pg(self, count: int | None = None) -> list[Tensor]:
        """Explains so many instances by PGExplainer, all if not said: the mask ``[E]`` of each."""
        assert self.pg is not None
        given = {"target": self.label}
        return [
            self.pg(self.graph.x, self.graph.edge_index, index=node, **given).edge_mask for node in self.nodes[:count]
        ]

    def scores(self, subject: Subject) -> Scores:
        """Puts PGExplainer's masks where the instances of ``subject`` have their edges."""
        parts = subject.instances.edge_id.split(subject.instances.edge_counts.tolist())
        masks = [mask[edges] for mask, edges in zip(self.explain_by_pg(), parts, strict=True)]
        return Scores.of_edges(subject.instances, torch.cat(masks))


def copied(loaded: Loaded, copies: int) -> Loaded:
    """Puts several copies of the graph side by side, so that none of their instances is the same as another."""
    graph = loaded.benchmark.graphs[0]
    shift = torch.arange(copies)[:, None] * graph.num_nodes
    edges = torch.stack([(ends + shift).flatten() for ends in graph.edge_index.cpu()])
    data = Data(x=graph.x.repeat(copies, 1), edge_index=edges.to(graph.edge_index.device))
    benchmark = replace(loaded.benchmark, graphs=[data])
    return replace(loaded, benchmark=benchmark, index=(loaded.index.cpu() + shift).flatten())


def measure(dataset: str, lengths: Lengths, device: str) -> dict[str, Any]:
    """Times everything on one dataset.

    Returns:
        Seconds of each round: ``"training"`` of a whole training, ``"explaining"`` and ``"many"`` of one explanation;
        ``"auc"`` (own, pooled) of what was trained last; and ``"ratios"``, how many times the seconds of ours the
        seconds of a peer are.
    """
    loaded = load(dataset, device)
    peers = Peers(loaded, lengths)
    batched = {
        GNN_HERE: gnn_explainer.GNNExplainer(epochs=lengths.gnn_epochs),
        PG_HERE: pg_explainer.PGExplainer(epochs=lengths.pg_epochs),
    }
    learned: dict[str, GFlowExplainer] = {}

    def subject() -> Subject:
        return Subject.of(loaded.model, loaded.benchmark, loaded.index)

    def done(work: Callable[[], object]) -> Callable[[], None]:
        def finished() -> None:
            work()
            if device == "cuda":
                torch.cuda.synchronize()

        return finished

    # First calls load and set up what later ones find.
    fit_ours(loaded)
    peers.fit_pg(epochs=1)
    trainings = {
        OURS: done(lambda: learned.update({OURS: fit_ours(loaded)})),
        PG: done(peers.fit_pg),
        PG_HERE: done(lambda: batched[PG_HERE].fit(subject(), SEED)),
    }
    training = interleaved(trainings, lengths.rounds, warm=True)
    ours, few = learned[OURS], lengths.pg_instances
    explaining = interleaved(
        {
            OURS: done(lambda: look_at(explain_ours(ours, loaded, graph=peers.graph))),
            LOOKED: done(lambda: look_at_predictions(explain_ours(ours, loaded, graph=peers.graph))),
            ONE: done(lambda: explain_one_by_one(ours, loaded, peers.nodes[:few], peers.graph)),
            SINGLE: done(lambda: explain_singly(ours, loaded, peers.nodes[:few], peers.graph)),
            GNN: done(peers.explain_by_gnn),
            PG: done(lambda: peers.explain_by_pg(few)),
            GNN_HERE: done(lambda: batched[GNN_HERE].explain(subject(), SEED)),
            PG_HERE: done(lambda: batched[PG_HERE].explain(subject(), SEED)),
        },
        lengths.rounds,
    )
    counts = {GNN: lengths.gnn_instances, PG: few, SINGLE: few, ONE: few}
    explaining = {name: _each(values, counts.get(name, len(loaded.index))) for name, values in explaining.items()}
    many = copied(loaded, lengths.copies)
    thrown = interleaved({OURS: done(lambda: look_at(explain_ours(ours, many)))}, lengths.rounds)
    asked = subject()
    truth = GroundTruth.of(loaded.benchmark, asked)
    assert truth is not None
    found = {
        **{name: scores_of(explain_ours(own, loaded), asked, own.settings.max_nodes) for name, own in learned.items()},
        PG: peers.scores(asked),
        GNN_HERE: batched[GNN_HERE].explain(asked, SEED),
        PG_HERE: batched[PG_HERE].explain(asked, SEED),
    }
    return {
        "facts": loaded.facts,
        "instances": len(loaded.index),
        "many_instances": len(many.index),
        "training": training,
        "explaining": explaining,
        "many": _each(thrown[OURS], len(many.index)),
        "auc": {name: agreement(asked, scores, truth)["auc_own"] for name, scores in found.items()},
        "ratios": {
            "explaining, GNNExplainer": ratio(explaining, GNN, OURS),
            "explaining, PGExplainer": ratio(explaining, PG, OURS),
            "one a call, GNNExplainer": ratio(explaining, GNN, SINGLE),
            "one a call, PGExplainer": ratio(explaining, PG, SINGLE),
            "one a call of explain, GNNExplainer": ratio(explaining, GNN, ONE),
            "one a call of explain, PGExplainer": ratio(explaining, PG, ONE),
            "training, PGExplainer": ratio(training, PG, OURS),
        },
    }


def _each(seconds: Sequence[float], count: int) -> list[float]:
    return [value / count for value in seconds]


def _cells(seconds: Sequence[float], scale: float) -> tuple[str, str]:
    """Writes the median and the range of some times."""
    low, middle, high = (readable(scale * value) for value in (min(seconds), median(seconds), max(seconds)))
    return middle, f"{low} to {high}"


def tables(stored: dict[str, Any]) -> list[Table]:
    """Makes the tables of explaining, training and many instances on one device."""
    lengths = stored["lengths"]
    where = f"{stored['device']}, {stored['threads']} threads, {lengths['rounds']} rounds"
    learned = {
        **dict.fromkeys((OURS, SINGLE, LOOKED, ONE), f"{SAMPLES} particles"),
        **dict.fromkeys((GNN, GNN_HERE), f"{lengths['gnn_epochs']} updates"),
        **dict.fromkeys((PG, PG_HERE), f"{lengths['pg_epochs']} epochs"),
    }
    explaining, training, many = [], [], []
    for dataset, found in stored["datasets"].items():
        for name, seconds in found["explaining"].items():
            times = "1" if name == OURS else readable(ratio(found["explaining"], name, OURS))
            explaining.append((f"{dataset}, {name} ({learned[name]})", *_cells(seconds, 1e3), times))
        for name, seconds in found["training"].items():
            share = "1" if name == OURS else readable(ratio(found["training"], name, OURS))
            auc = number(found["auc"][name])
            training.append((f"{dataset}, {name} ({learned[name]})", *_cells(seconds, 1), share, auc))
        auc = number(found["auc"][GNN_HERE])
        training.append((f"{dataset}, {GNN_HERE} ({learned[GNN_HERE]})", *[NOT_THERE] * 3, auc))
        middle, spread = _cells([1 / value for value in found["many"]], 1)
        many.append((dataset, f"{found['many_instances']:,}", middle, spread))
    spread, times = "range of the rounds", "times ours"
    return [
        Table(f"Milliseconds of an explanation ({where})", ("", "median", spread, times), tuple(explaining)),
        Table(f"Seconds of a whole training ({where})", ("", "median", spread, times, "AUC (own)"), tuple(training)),
        Table(f"Explanations a second, many at once ({where})", ("", "instances", "median", spread), tuple(many)),
    ]


def publish(folder: Path) -> None:
    """Writes the page from what is stored, CPU first, and prints it."""
    found = [json.loads((folder / file).read_text()) for file in FILES.values() if (folder / file).is_file()]
    notes = []
    for stored in found:
        versions = ", ".join(f"{name} {version}" for name, version in stored["versions"].items())
        notes += [
            f"`{stored['command']}` on {stored['device']}, {stored['date']}, {stored['threads']} threads, "
            f"{stored['cores']} cores, load {stored['load'][0]:.1f} before and {stored['load'][1]:.1f} after.",
            f"{versions}.",
        ]
    text = join([table for stored in found for table in tables(stored)], "markdown", notes)
    write_text(folder / "summary.md", text)
    print(text)


def main(fast: bool = False, device: str = "cpu") -> None:
    """Times everything, and stores and prints it."""
    # On a GPU the peers take their time; two rounds show whether it is steady.
    lengths = QUICK if fast else Lengths() if device == "cpu" else Lengths(rounds=2, copies=ON_GPU)
    folder = results_folder("peers", fast)
    before = os.getloadavg()[0]
    found: dict[str, Any] = {}
    with threads(lengths.threads):
        for dataset in DATASETS:
            found[dataset] = measure(dataset, lengths, device)
            result = {
                "datasets": found,
                "lengths": asdict(lengths),
                "seed": SEED,
                "cores": os.cpu_count(),
                "load": [before, os.getloadavg()[0]],
                **environment(),
                "device": torch.cuda.get_device_name() if device == "cuda" else "CPU",
            }
            write_json(folder / FILES[device], result)
    publish(folder)
