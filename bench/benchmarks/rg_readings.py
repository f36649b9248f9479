"""Where RG-Explainer's printed numbers come from: its AUC as training goes on, by graphs, and by settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import mean, stdev
from typing import Any

import torch
from torch import Tensor

from benchmarks.distribution_figures import markdown
from benchmarks.measuring import environment, results_folder, write_json
from gflowbench.datasets import Benchmark, reference_folder
from gflowbench.explainers import Subject
from gflowbench.explainers.rg_explainer import RGExplainer
from gflowbench.metrics import GroundTruth
from gflowbench.metrics.auc import pooled_auc
from gflowbench.metrics.undirected import UndirectedEdges
from gflowbench.protocol import problem
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.storage.files import write_bytes

Found = dict[int, dict[str, list[float]]]
"""By number of updates and by name: one value a seed."""


@dataclass(frozen=True)
class Case:
    """One way to train RG-Explainer.

    Attributes:
        dataset: Name of the dataset.
        words: What is different.
        settings: The same as settings of the explainer.
        stages: Updates of policy gradient after which it is looked at.
        seeds: Number of seeds.
        every: Takes only every n-th instance.
    """

    dataset: str
    words: str
    settings: dict[str, Any] = field(default_factory=dict)
    stages: Sequence[int] = (0, 10)
    seeds: int = 2
    every: int = 1


AS_IT_IS = "as it is"
COMPARED = {"baseline": True}
INSIDE = {"beyond": 0}
FORMER = {"locator_goals": "growth", "locator_loss": "divergence", "candidates": 10, "reach": 1000, **COMPARED}
CASES = (
    Case("tree-grid", AS_IT_IS, stages=(0, 10, 30)),
    Case("mutagenicity", AS_IT_IS, seeds=1),
    Case("tree-grid", "both, as before", COMPARED | INSIDE, (0, 10, 30, 90), seeds=1),
    Case("tree-grid", "grows inside what the model looks at", INSIDE, (0, 30), seeds=1),
    Case("tree-grid", "rollouts compared with one another", COMPARED, (0, 30), seeds=1),
    Case("mutagenicity", AS_IT_IS, every=10),
    Case("mutagenicity", "all of these, as before", FORMER, (0, 10, 80), every=10),
    Case("mutagenicity", "locator learns from random growth", {"locator_goals": "growth"}, every=10),
    Case("mutagenicity", "locator learns by the divergence", {"locator_loss": "divergence"}, every=10),
    Case("mutagenicity", "imitates the best of ten from anywhere", {"candidates": 10, "reach": 1000}, every=10),
    Case("mutagenicity", "rollouts compared with one another", COMPARED, every=10),
    Case("mutagenicity", "other nodes left in place", {"removal": "isolate"}, every=10),
)


def single_groups(benchmark: Benchmark, index: Tensor) -> Tensor:
    """Tells which of some molecules have exactly one group, two bonds of the truth, shape ``[I]``."""
    return torch.tensor([int(benchmark.graphs[i].edge_motif.sum()) == 4 for i in index.tolist()])


def look(case: Case) -> tuple[int, Found]:
    """Trains with every seed and scores what is explained at every stage; says how many instances there are."""
    loaded = problem(case.dataset, every=case.every).load()
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    truth = GroundTruth.of(loaded.benchmark, subject)
    assert truth is not None
    edges = UndirectedEdges.of(subject.instances)
    own, every = edges.merge(truth.own), edges.merge(truth.all)
    single = torch.ones_like(own)
    if loaded.benchmark.task == "graph":
        single = single_groups(loaded.benchmark, loaded.index)[edges.owner]
    found: Found = defaultdict(lambda: defaultdict(list))
    for seed in range(case.seeds):
        explainer = RGExplainer(**case.settings)
        reward = None
        for stage in explainer.fit_in_stages(subject, seed, case.stages):
            for way in ("likeliest", "sampled"):
                explainer.greedy = way == "likeliest"
                score = edges.merge(explainer.explain(subject, seed).edge)
                wide, order = explainer.grow(subject, seed)
                reward = explainer.reward(wide) if reward is None else reward
                grown = Subgraphs(torch.arange(len(subject)), order)
                values = {
                    "reward": float(reward.log_score(grown).mean()),
                    "nodes": float(grown.size.double().mean()),
                    "own": pooled_auc(score, own),
                    "all": pooled_auc(score, every),
                    "single": pooled_auc(score[single], own[single]),
                }
                for name, value in values.items():
                    found[stage][f"{way}, {name}"].append(value)
    return len(subject), found


def spread(values: Sequence[float]) -> str:
    """Writes a mean, and the standard deviation where there are several seeds."""
    return f"{mean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


def tables(found: Sequence[tuple[Case, int, Found]]) -> str:
    """Writes one table of Tree-Grid and one of Mutagenicity."""
    parts = []
    for dataset, truth, other, title in (
        ("tree-grid", "all", "AUC all", "Tree-Grid; printed 0.927 ± 0.030"),
        ("mutagenicity", "single", "AUC, one group", "Mutagenicity; printed 0.832 ± 0.046"),
    ):
        rows = []
        for case, number, stages in found:
            for stage, values in stages.items() if case.dataset == dataset else ():
                scores = [values[f"{way}, {name}"] for way in ("likeliest", "sampled") for name in ("own", truth)]
                size, reward = (mean(values[f"likeliest, {name}"]) for name in ("nodes", "reward"))
                about = [case.words, str(number), str(case.seeds), str(stage), f"{size:.1f}", f"{reward:.2f}"]
                rows.append([*about, *map(spread, scores)])
        head = ["what is different", "instances", "seeds", "updates", "nodes", "reward", "AUC own", other]
        head += ["AUC own, sampled", f"{other}, sampled"]
        parts.append(markdown({"title": f"RG-Explainer on {title}", "head": head, "rows": rows}))
    return "\n\n".join(parts) + "\n"


def main(fast: bool = False) -> None:
    """Trains in every way, and writes what is explained after so many updates."""
    folder = results_folder("rg_readings", fast)
    if reference_folder() is None:
        print("needs the published GNNs: skipped")
        return
    found = []
    for case in CASES:
        if fast:
            quick = {"list_epochs": 1, "set_epochs": 1, "locator_updates": 10, "max_nodes": 6}
            shorter = tuple(stage // 10 for stage in case.stages)
            case = replace(case, settings=case.settings | quick, stages=shorter, seeds=1, every=50)
        found.append((case, *look(case)))
        # Written after every case: a run that is stopped keeps what it has.
        results = [{"case": asdict(case), "instances": number, "values": stages} for case, number, stages in found]
        write_json(folder / "results.json", {"results": results, **environment()})
        write_bytes(folder / "summary.md", tables(found).encode())
        print(case.dataset, case.words, {s: spread(v["likeliest, own"]) for s, v in found[-1][2].items()}, flush=True)
    print(tables(found))
