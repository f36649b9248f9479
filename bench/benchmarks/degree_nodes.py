"""What DEGREE's printed numbers count: nodes instead of edges, on a GNN that normalises nothing."""

from __future__ import annotations

import copy
from dataclasses import replace
from statistics import mean, stdev

import torch
from torch import Tensor, nn

from benchmarks.distribution_figures import markdown
from benchmarks.measuring import environment, results_folder, write_json
from gflowbench.datasets import Benchmark, reference_folder
from gflowbench.datasets.reference import read_reference
from gflowbench.explainers import Subject
from gflowbench.explainers.decomposition import Rules
from gflowbench.explainers.degree_decomposition import Contribution, DegreeDecomposition
from gflowbench.metrics import GroundTruth
from gflowbench.metrics.auc import mean_auc, pooled_auc
from gflowbench.metrics.undirected import UndirectedEdges
from gflowbench.models import accuracies, train
from gflowbench.protocol import problem
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.storage.files import write_bytes

DATASETS = {"tree-grid": (1, 1), "ba-community": (4, 5), "tree-cycles": (1, 1)}
"""Which datasets, every how many-th explained node of the protocol, and of all motif nodes."""
PRINTED = {"tree-grid": "0.925 ± 0.040", "ba-community": "0.957 ± 0.010", "tree-cycles": "0.902 ± 0.022"}
SEEDS = 3
OURS = "as they are"


class BiasToBackground(Rules):
    """A bias belongs to nobody's features: the background has it all."""

    def bias(self, portion: Tensor, whole: Tensor, bias: Tensor) -> Tensor:
        return portion


class OwnLength(Rules):
    """A target portion is scaled to length one by itself."""

    def scale(self, portion: Tensor, length: Tensor) -> Tensor:
        return portion / portion.norm(dim=1, keepdim=True).clamp(min=1e-12)


class NotScaled(Rules):
    """A target portion is not normalised at all."""

    def scale(self, portion: Tensor, length: Tensor) -> Tensor:
        return portion


class SharedReLU(Rules):
    """Neither portion comes first: the mean of what ReLU gives the target before the background and after it."""

    def relu(self, portion: Tensor, whole: Tensor) -> Tensor:
        return (portion.relu() + whole.relu() - (whole - portion).relu()) / 2


RULES: dict[str, Rules] = {
    OURS: Rules(),
    "biases to the background": BiasToBackground(),
    "rows scaled by their own length": OwnLength(),
    "rows not scaled": NotScaled(),
    "ReLU shared by both": SharedReLU(),
}


def node_scores(subject: Subject, rules: Rules) -> Tensor:
    """Scores every node as the public code does, by the absolute size of its portion beside the background's, ``[n]``.

    That code multiplies the class probability by the sigmoid of this difference; within an instance the order is the
    same.
    """
    instances = subject.instances
    contribution = Contribution(subject, rules)
    single = Subgraphs(instances.owner, torch.arange(instances.num_nodes)[:, None])
    label = contribution.label[instances.owner, None]
    portion = contribution.decomposition.contributions(single).double().gather(1, label)
    whole = contribution.decomposition.total.double()[instances.owner].gather(1, label)
    return (portion.abs() - (whole - portion).abs())[:, 0]


def node_auc(model: nn.Module, benchmark: Benchmark, index: Tensor, rules: Rules) -> float:
    """Computes the AUC of nodes, a mean over the explained nodes that the GNN classifies right, as the public code."""
    subject = Subject.of(model, benchmark, index)
    truth = GroundTruth.of(benchmark, subject)
    assert truth is not None
    assert subject.target.label is not None
    right = subject.target.label == benchmark.graphs[0].y[index]
    owner = subject.instances.owner
    counted = right[owner]
    score = node_scores(subject, rules)
    return mean_auc(score[counted], truth.node[counted], owner[counted], len(subject))


def edge_auc(model: nn.Module, benchmark: Benchmark, index: Tensor, rules: Rules) -> float:
    """Computes the AUC of edges by the protocol: own motif, pooled."""
    subject = Subject.of(model, benchmark, index)
    truth = GroundTruth.of(benchmark, subject)
    assert truth is not None
    edges = UndirectedEdges.of(subject.instances)
    scores = DegreeDecomposition(rules=rules).explain(subject, 0)
    return pooled_auc(edges.merge(scores.edge), edges.merge(truth.own))


def with_plain_features(benchmark: Benchmark) -> Benchmark:
    """Returns the benchmark with the features of the file: the published GNNs were trained on row-normalised ones."""
    graph = copy.copy(benchmark.graphs[0])
    file = benchmark.name.replace("-", "_") + ".npz"
    graph.x = torch.from_numpy(read_reference(file, "It is needed here.")["x_raw"]).float()
    return replace(benchmark, graphs=[graph])


def main(fast: bool = False) -> None:
    """Scores edges and nodes, with other rules on the published GNNs and on GNNs without normalisation."""
    folder = results_folder("degree_nodes", fast)
    if reference_folder() is None:
        print("needs the published data: skipped")
        return
    rows, values = [], {}
    for name, (every, every_node) in DATASETS.items():
        loaded = problem(name, every=10 * every if fast else every).load()
        plain = with_plain_features(loaded.benchmark)
        motif = plain.motif_nodes()[:: 20 * every_node if fast else every_node]
        epochs = {"max_epochs": 20} if fast else {}
        trained = [
            train("gcn", plain, seed=seed, progress=False, normalization="none", centred=True, **epochs)
            for seed in range(1 if fast else SEEDS)
        ]
        share = [made.accuracies["train"].share for made in trained]
        published = accuracies(loaded.model, loaded.benchmark)["train"].share
        cases: list[tuple[str, str, list[nn.Module], Benchmark, list[float]]] = [
            ("published", rule, [loaded.model], loaded.benchmark, [published]) for rule in RULES
        ]
        cases.append(("nothing normalised", OURS, [made.model for made in trained], plain, share))
        for gnn, rule, models, benchmark, right in cases:
            found = {
                "accuracy": right,
                "edges": [edge_auc(model, benchmark, loaded.index, RULES[rule]) for model in models],
                "nodes": [node_auc(model, benchmark, loaded.index, RULES[rule]) for model in models],
                "nodes of all motifs": [node_auc(model, benchmark, motif, RULES[rule]) for model in models],
            }
            values[f"{name}, {gnn}, {rule}"] = found
            rows.append([name, gnn, rule, *map(spread, found.values()), PRINTED[name]])
            print(rows[-1], flush=True)
    head = [
        "dataset",
        "GNN",
        "rules",
        "its accuracy",
        "edges",
        "nodes",
        "nodes, all of the motifs explained",
        "printed",
    ]
    text = markdown({"title": "DEGREE: AUC of edges and of nodes, own motif", "head": head, "rows": rows}) + "\n"
    write_json(folder / "results.json", {"values": values, "seeds": SEEDS, **environment()})
    write_bytes(folder / "summary.md", text.encode())
    print(text)


def spread(values: list[float]) -> str:
    """Writes a mean, and the standard deviation where there are several values."""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{mean(values):.3f} ± {stdev(values):.3f}"
