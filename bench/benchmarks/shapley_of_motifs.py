"""Why SubgraphX leaves a motif node out on BA-Shapes: what a motif is worth to it, and what other subgraphs are."""

from __future__ import annotations

import torch

from benchmarks.distribution_figures import markdown
from benchmarks.exact_rewards import subject_of
from benchmarks.measuring import environment, results_folder, write_json
from gflowbench.datasets import load, reference_folder
from gflowbench.explainers.shapley import ShapleyValues
from gflowexplainer.storage.files import write_bytes

EVERY, SAMPLES = 3, 100


def main(fast: bool = False) -> None:
    """Compares Shapley values of each house with those of sets that hold the neighbour outside in place of one node.

    A house without any one of its nodes is still connected, so all of these are subgraphs that SubgraphX may choose.
    """
    folder = results_folder("shapley_of_motifs", fast)
    if reference_folder() is None:
        print("needs the published GNNs: skipped")
        return
    graph = load("ba-shapes", source="published").graphs[0]
    subject, _ = subject_of("ba-shapes")
    subject = subject.select(torch.arange(0, len(subject), 20 if fast else EVERY))
    values = ShapleyValues(subject, num_samples=10 if fast else SAMPLES)
    source, target = graph.edge_index
    found = []
    for number, node in enumerate(subject.index.tolist()):
        own = int(graph.motif_id[node])
        motif = (graph.motif_id == own).nonzero()[:, 0]
        outside = target[(source == node) & (graph.motif_id[target] != own)][:1]
        others = motif[motif != node]
        sets = [motif, torch.cat([motif, outside])]
        sets += [torch.cat([motif[motif != other], outside]) for other in others]
        begin, end = subject.instances.ptr[number : number + 2].tolist()
        inside = torch.cat([torch.isin(subject.instances.node_id[begin:end], nodes) for nodes in sets])
        value = values(torch.full((len(sets),), number), inside)
        found.append([float(value[0]), float(value[1]), float(value[2:].max())])
    table = torch.tensor(found, dtype=torch.double)
    better = int((table[:, 2] > table[:, 0]).sum())
    rows = [
        ["the house", f"{table[:, 0].mean():.3f}", "-"],
        [
            "the house and the neighbour outside",
            f"{table[:, 1].mean():.3f}",
            f"{int((table[:, 1] > table[:, 0]).sum())}",
        ],
        ["the neighbour in place of the node that is missed least", f"{table[:, 2].mean():.3f}", f"{better}"],
    ]
    head = ["nodes", "mean Shapley value", f"worth more than the house, of {len(found)}"]
    title = "Shapley values of subgraphs on BA-Shapes, published GNN"
    write_json(folder / "results.json", {"nodes": subject.index.tolist(), "values": found, **environment()})
    text = markdown({"title": title, "head": head, "rows": rows}) + "\n"
    write_bytes(folder / "summary.md", text.encode())
    print(text)
