"""Loss curves on the datasets that the paper's ablation leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gflowbench.paper.experiment import Drawing, Experiment, Outcome, Results, Scope, Verdict, counted
from gflowbench.paper.line_figures import Line, Panel, draw_panels
from gflowbench.paper.steps import Measurement
from gflowbench.paper.trainings import Training, early_and_late, falls, loss_line
from gflowbench.protocol.presentation import TITLES
from gflowbench.protocol.printed_numbers import DATASETS
from gflowbench.protocol.problems import GENERATED
from gflowexplainer.report.tables import NOT_THERE, Table

OTHERS = tuple(name for name in DATASETS if name != "ba-shapes")
WAYS = {"paper": "paper's settings, raw flow matching", "context": "context reward, log-partition variance"}
FULL = {"ba-community": 1, "tree-cycles": 1, "tree-grid": 1, "ba-2motifs": 1, "mutagenicity": 4}
FAST = {"ba-community": 10, "tree-cycles": 6, "tree-grid": 30, "ba-2motifs": 20, "mutagenicity": 100}
"""Every n-th instance is trained on; of a fast run about ten of each dataset."""


def datasets(scope: Scope) -> tuple[str, ...]:
    """Names the datasets; those that can only be read from a file are left out where it is not there."""
    return tuple(name for name in OTHERS if scope.gnn == "published" or name in GENERATED)


def plan(scope: Scope) -> list[Measurement]:
    """Every dataset in both ways with every seed."""
    return [
        training_of(scope, dataset, way).step(name_of(dataset, way, seed), scope, seed)
        for dataset in datasets(scope)
        for way in WAYS
        for seed in scope.seeds(5)
    ]


def training_of(scope: Scope, dataset: str, way: str) -> Training:
    """Returns the training on a dataset; the epochs are the paper's."""
    changes: dict[str, Any] = {"epochs": scope.pick(100, 12), "max_updates": 0, "descents": 1}
    if scope.fast and way == "paper":
        changes |= {"max_nodes": 8}
    return Training(dataset, way, changes, every=scope.pick(FULL, FAST)[dataset])


def name_of(dataset: str, way: str, seed: int) -> str:
    """Names a step."""
    return f"{dataset}, {way}, seed {seed}"


def present(results: Results) -> Outcome:
    """Tells of each dataset whether its loss converges."""
    seeds, shown = results.scope.seeds(5), datasets(results.scope)
    found = {
        dataset: {way: [results[name_of(dataset, way, seed)] for seed in seeds] for way in WAYS} for dataset in shown
    }
    notes = [
        f"{counted(len(seeds), 'seed')}; instances: "
        + ", ".join(f"{TITLES[dataset]} {found[dataset]['paper'][0]['instances']}" for dataset in shown)
        + f"; {len(found[shown[0]]['paper'][0]['loss'])} epochs; at most "
        f"{found[shown[0]]['paper'][0]['settings']['max_nodes']} nodes in the paper's settings.",
        *(f"{TITLES[name]} is left out: its file is not there." for name in OTHERS if name not in shown),
    ]
    drawings = [
        Drawing(
            "loss",
            "Loss over epochs, divided by its mean over the first tenth of them: the paper's settings with its raw "
            "flow-matching loss, and our context reward; mean of the seeds, and the range between the least and the "
            "largest.",
            partial(_draw, found),
        )
    ]
    return Outcome([_table(found)], _verdicts(found), drawings, notes)


Found = Mapping[str, Mapping[str, list[dict[str, Any]]]]


def _table(found: Found) -> Table:
    rows = []
    for dataset, ways in found.items():
        for way, values in ways.items():
            ends = [early_and_late(value) for value in values if value["diverged"] is None]
            begin, end = (f"{sum(pair[k] for pair in ends) / len(ends):.4g}" if ends else NOT_THERE for k in (0, 1))
            share = f"{sum(map(falls, values))} of {len(values)}"
            rows.append((f"{TITLES[dataset]}, {WAYS[way]}", "converges", share, begin, end))
    heads = ("", "paper", "seeds that converge", "loss, first tenth of epochs", "loss, last tenth")
    return Table("Convergence of the loss (the paper shows three figures, no numbers)", heads, tuple(rows))


def _verdicts(found: Found) -> list[Verdict]:
    verdicts = []
    for way, words in WAYS.items():
        falling = {dataset: [falls(value) for value in ways[way]] for dataset, ways in found.items()}
        verdicts.append(
            Verdict.of(
                f"The loss converges on all datasets ({words}).",
                {TITLES[d]: (each, f"{sum(each)} of {len(each)}") for d, each in falling.items()},
                "Seeds that converge: ",
            )
        )
    return verdicts


def _relative(values: list[dict[str, Any]]) -> Line:
    return loss_line([{"loss": [one / early_and_late(value)[0] for one in value["loss"]]} for value in values])


def _draw(found: Found) -> Any:
    panels = [
        Panel(
            TITLES[dataset],
            {WAYS[way]: _relative(values) for way, values in ways.items()},
            "epoch",
            "loss / first loss",
            log_y=True,
        )
        for dataset, ways in found.items()
    ]
    return draw_panels(panels, columns=3)


EXPERIMENT = Experiment(
    name="convergence",
    title="Convergence of the loss on the other datasets",
    plan=plan,
    present=present,
)
