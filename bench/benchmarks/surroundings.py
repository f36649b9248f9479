"""Why an instance remembers its surroundings: what published GNNs say of 3-hop neighbourhoods with and without."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.distribution_figures import markdown
from benchmarks.exact_rewards import subject_of
from benchmarks.measuring import environment, results_folder, write_json
from gflowbench.datasets import load, reference_folder
from gflowexplainer.storage.files import write_bytes

DATASETS = ("ba-shapes", "ba-community", "tree-cycles", "tree-grid")


def main(fast: bool = False) -> None:
    """Compares the class predicted on the whole graph with that on each instance alone, for all evaluated nodes."""
    folder = results_folder("surroundings", fast)
    if reference_folder() is None:
        print("needs the published GNNs: skipped")
        return
    rows, record = [], {}
    for dataset in DATASETS[2:3] if fast else DATASETS:
        subject, _ = subject_of(dataset)
        truth = load(dataset, source="published").graphs[0].y[subject.index]
        predictor, instances = subject.predictor, subject.instances
        with predictor.evaluating():
            bare = predictor.whole(replace(instances, around=None, place_outside=None)).argmax(dim=1)
            kept = predictor.whole(instances).argmax(dim=1)
        found = {
            "nodes": len(subject),
            "whole graph": float((subject.target.label == truth).float().mean()),
            "instance with surroundings": float((kept == truth).float().mean()),
            "instance cut out bare": float((bare == truth).float().mean()),
            "changed by cutting": float((bare != subject.target.label).float().mean()),
        }
        record[dataset] = found
        rows.append([dataset, str(found["nodes"]), *(f"{value:.3f}" for value in list(found.values())[1:])])
    head = ["dataset", "nodes", *list(found)[1:]]
    table = {"title": "Accuracy of the published GNNs on the evaluated nodes", "head": head, "rows": rows}
    write_json(folder / "results.json", {"accuracy": record, **environment()})
    text = markdown(table) + "\n"
    write_bytes(folder / "summary.md", text.encode())
    print(text)
