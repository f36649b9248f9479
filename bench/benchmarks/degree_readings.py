"""Where DEGREE loses its AUC: the same decomposition with its edge scores read in other ways."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.distribution_figures import markdown
from benchmarks.measuring import environment, results_folder, write_json
from gflowbench.datasets import reference_folder
from gflowbench.explainers import Scores, Subject
from gflowbench.explainers.degree_decomposition import Contribution, _below_zero, agglomerate
from gflowbench.metrics import GroundTruth
from gflowbench.metrics.auc import pooled_auc
from gflowbench.metrics.undirected import UndirectedEdges
from gflowbench.protocol import problem
from gflowexplainer.graphs.subgraphs import Subgraphs, edge_values
from gflowexplainer.storage.files import write_bytes

DATASETS = {"tree-grid": 6, "ba-community": 4, "tree-cycles": 1}


class OfTheClass(Contribution):
    """Contributions to the score of the class alone, not less those to the other classes."""

    def __call__(self, sets: Subgraphs) -> Tensor:
        return self.decomposition.contributions(sets).double().gather(1, self.label[sets.instance, None])[:, 0]


def readings(subject: Subject, contribution: Contribution) -> dict[str, Tensor]:
    """Edge scores ``[e]`` by the way they are read."""
    instances = subject.instances
    source, target = instances.edge_index
    every = torch.arange(instances.num_nodes)
    node = contribution(Subgraphs(instances.owner, every[:, None]))
    ends = node[source] + node[target]
    outside = _below_zero(instances, ends, instances.owner[source])
    found = {}
    for name, bound in (("order", subject.max_nodes), ("order, twice the nodes", 2 * subject.max_nodes)):
        inside = Scores.of_order(instances, agglomerate(contribution, instances.center, bound), bound).edge
        found[name] = torch.where(inside > 0, inside, outside)
        found[f"{name}, nothing outside"] = inside
    found["both ends alone"] = ends
    found["both ends together"] = edge_values(instances, contribution.of_neighbors())
    return found


def main(fast: bool = False) -> None:
    """Scores every reading against the motifs of the explained node, and of all."""
    folder = results_folder("degree_readings", fast)
    if reference_folder() is None:
        print("needs the published GNNs: skipped")
        return
    rows, values = [], {}
    for name, every in DATASETS.items():
        loaded = problem(name, every=10 * every if fast else every).load()
        subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
        truth = GroundTruth.of(loaded.benchmark, subject)
        assert truth is not None
        edges = UndirectedEdges.of(subject.instances)
        for kind, contribution in (("less the others", Contribution(subject)), ("class alone", OfTheClass(subject))):
            for reading, score in readings(subject, contribution).items():
                aucs = [pooled_auc(edges.merge(score), edges.merge(mask)) for mask in (truth.own, truth.all)]
                values[f"{name}, {kind}, {reading}"] = aucs
                rows.append([name, str(len(subject)), kind, reading, *(f"{auc:.3f}" for auc in aucs)])
    head = ["dataset", "instances", "contribution", "reading", "AUC own", "AUC all"]
    text = markdown({"title": "DEGREE, read in other ways; published GNNs", "head": head, "rows": rows}) + "\n"
    write_json(folder / "results.json", {"values": values, **environment()})
    write_bytes(folder / "summary.md", text.encode())
    print(text)
