"""The inductive setting: explainers are fitted on a share of the instances and explain the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from gflowbench.metrics import MetricSettings
from gflowbench.paper.experiment import Drawing, Experiment, Outcome, Results, Scope, Spread, Verdict, counted
from gflowbench.paper.line_figures import Line, Panel, draw_panels
from gflowbench.paper.steps import Contest, record_of
from gflowbench.paper.systems import here, missing, short
from gflowbench.protocol import Contestant, ProtocolSettings
from gflowbench.protocol.plan import Part
from gflowbench.protocol.presentation import TITLES
from gflowexplainer.report.tables import NOT_THERE, Table

SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
FAST_SHARES = (0.3, 0.7)
GFLOW, CONTEXT, SEQUENCE, RG, BARE = (
    "gflow",
    "gflow-context",
    "gflow-sequence",
    "rg-explainer",
    "rg-explainer-no-pretraining",
)
LABELS = {
    GFLOW: "GFlowExplainer",
    CONTEXT: "GFlowExplainer, context reward",
    SEQUENCE: "GFlow-Sequence",
    RG: "RG-Explainer",
    BARE: "RG-Explainer, no pre-training",
}
SEEDS, FEWER_SEEDS = 5, 3
THINNED = (CONTEXT,)
"""Not in the paper; run with :data:`FEWER_SEEDS`."""
FULL = {"ba-community": 1, "ba-shapes": 1, "tree-cycles": 1, "tree-grid": 3, "ba-2motifs": 2, "mutagenicity": 10}
FAST = {"ba-community": 20, "ba-shapes": 12, "tree-cycles": 5, "tree-grid": 24, "ba-2motifs": 20, "mutagenicity": 100}
"""Every n-th instance is taken, the slowest dataset first."""
DATASETS = ("ba-shapes", "ba-community", "tree-cycles", "tree-grid", "ba-2motifs", "mutagenicity")
Found = Mapping[str, Mapping[str, Mapping[float, Sequence[float]]]]
"""AUC of every seed by dataset, explainer and share."""


def shares(scope: Scope) -> tuple[float, ...]:
    """Returns the shares of the instances that are fitted on."""
    return scope.pick(SHARES, FAST_SHARES)


def datasets(scope: Scope) -> tuple[str, ...]:
    """Names the datasets; a fast run has only the two that the paper speaks of, and one of graphs."""
    return here(scope, scope.pick(DATASETS, ("ba-shapes", "tree-cycles", "ba-2motifs")))


def seeds(scope: Scope, explainer: str) -> range:
    """Returns the seeds of an explainer."""
    return scope.seeds(FEWER_SEEDS if explainer in THINNED else SEEDS)


def plan(scope: Scope) -> list[Contest]:
    """Every explainer on every dataset with every share."""
    every = scope.pick(FULL, FAST)
    return [
        Contest(
            name_of(explainer, dataset, share),
            scope.problem(dataset, every=every[dataset]),
            [Contestant.named(explainer)],
            seeds(scope, explainer),
            ProtocolSettings(metrics=MetricSettings(num_contexts=0), train_share=share),
            shortened if scope.fast else _as_asked,
        )
        for explainer in (RG, BARE, SEQUENCE, CONTEXT, GFLOW)  # the slowest first: parts of the plan take about as long
        for dataset in every
        if dataset in datasets(scope)
        for share in shares(scope)
    ]


def shortened(explainer: str, dataset: str) -> Part:
    """Trains for a moment, on all instances of the problem."""
    return Part(settings=short(explainer, dataset).settings)


def _as_asked(explainer: str, dataset: str) -> Part:
    return Part()


def name_of(explainer: str, dataset: str, share: float) -> str:
    """Names a step."""
    return f"{explainer} on {dataset}, fitted on {share:.0%}"


def present(results: Results) -> Outcome:
    """Draws AUC over the share of training instances."""
    scope = results.scope
    sizes: dict[str, int] = {}

    def scored(dataset: str, explainer: str, share: float) -> list[float]:
        cells = record_of(results[name_of(explainer, dataset, share)]).cells
        sizes[dataset] = max(sizes.get(dataset, 0), *(cell.facts.get("instances", 0) for cell in cells))
        return [cell.metrics["auc_own"] for cell in cells if cell.status == "ok"]

    found: Found = {d: {e: {s: scored(d, e, s) for s in shares(scope)} for e in LABELS} for d in datasets(scope)}
    notes = [
        f"{counted(len(seeds(scope, GFLOW)), 'seed')}, with the context reward "
        f"{counted(len(seeds(scope, CONTEXT)), 'seed')}; for each seed other instances are drawn to fit on. "
        "Instances in all: " + ", ".join(f"{TITLES[d]} {count}" for d, count in sizes.items()) + ".",
        "By default nothing is trained to sample, and there are no parents. GFlow-Sequence is about parents, so a flow "
        "network is trained for it by the context reward; 'GFlowExplainer, context reward' differs from it in the "
        "parents alone.",
        *missing(scope, scope.pick(DATASETS, datasets(scope))),
    ]
    drawings = [
        Drawing(
            "auc",
            "AUC on the instances that were not fitted on, over the share that was; mean of the seeds, and the range "
            "between the least and the largest.",
            partial(_draw, found),
        )
    ]
    return Outcome([_table(found)], _verdicts(found), drawings, notes)


def _table(found: Found) -> Table:
    every = list(next(iter(next(iter(found.values())).values())))
    rows = [
        (f"{TITLES[dataset]}, {LABELS[explainer]}", NOT_THERE, *(str(Spread.of(by[s]) or NOT_THERE) for s in every))
        for dataset, explainers in found.items()
        for explainer, by in explainers.items()
    ]
    heads = ("", "paper", *(f"fitted on {share:.0%}" for share in every))
    return Table("AUC on unseen instances, own motif (the paper shows figures, no numbers)", heads, tuple(rows))


def _verdicts(found: Found) -> list[Verdict]:
    means = {d: {e: {s: fmean(v) for s, v in by.items() if v} for e, by in of.items()} for d, of in found.items()}
    least = {d: min(of[GFLOW].values()) for d, of in means.items()}
    lasting = {d: max(of[GFLOW].values()) - least[d] for d, of in means.items()}
    over = {
        (ours, peer): {d: [of[ours][s] > of[peer][s] for s in of[ours] if s in of[peer]] for d, of in means.items()}
        for ours, peer in ((GFLOW, SEQUENCE), (CONTEXT, SEQUENCE), (GFLOW, RG))
    }
    bare = {d: list(means[d][BARE].values()) for d in ("tree-cycles", "tree-grid") if d in means}
    unsteady = {e: fmean(max(v) - min(v) for of in found.values() for v in of[e].values() if v) for e in (GFLOW, RG)}
    several = any(len(values) > 1 for of in found.values() for values in of[RG].values())
    return [
        Verdict.of(
            "GFlowExplainer is good from 10 % of the instances on: its AUC hardly depends on the share (to .03).",
            {TITLES[d]: (gap <= 0.03, f"{gap:.3f} (least {least[d]:.3f})") for d, gap in lasting.items()},
            "Largest less least mean over the shares: ",
        ),
        *(
            Verdict.of(
                f"{LABELS[ours]} explains unseen instances better than {LABELS[peer]}"
                + (", all else equal." if ours == CONTEXT else "."),
                {TITLES[d]: (parts, f"{sum(parts)} of {len(parts)}") for d, parts in by.items()},
                f"Mean of all {_mean(means, ours):.3f} against {_mean(means, peer):.3f}; shares with a higher mean: ",
            )
            for (ours, peer), by in over.items()
        ),
        Verdict.of(
            "Without pre-training RG-Explainer stays at an AUC of .5 on Tree-Cycles and Tree-Grid.",
            {
                TITLES[d]: ([abs(value - 0.5) <= 0.02 for value in values], f"{min(values):.3f} to {max(values):.3f}")
                for d, values in bare.items()
                if values
            },
        ),
        Verdict.judge(
            "RG-Explainer is less steady over seeds than GFlowExplainer.",
            [unsteady[RG] > unsteady[GFLOW]] if several else [],
            f"Largest less least AUC of the seeds, on average: {unsteady[RG]:.3f} of RG-Explainer, "
            f"{unsteady[GFLOW]:.3f} of GFlowExplainer.",
        ),
    ]


def _mean(means: Mapping[str, Mapping[str, Mapping[float, float]]], explainer: str) -> float:
    return fmean(value for of in means.values() for value in of[explainer].values())


def _draw(found: Found) -> Any:
    panels = [
        Panel(
            TITLES[dataset],
            {LABELS[e]: _line(by) for e, by in explainers.items() if any(by.values())},
            "share of instances fitted on, %",
            "AUC on the others",
        )
        for dataset, explainers in found.items()
    ]
    return draw_panels(panels, columns=3)


def _line(by: Mapping[float, Sequence[float]]) -> Line:
    known = {share: values for share, values in by.items() if values}
    x = [100 * share for share in known]
    return Line(
        x,
        [fmean(values) for values in known.values()],
        [min(values) for values in known.values()],
        [max(values) for values in known.values()],
    )


EXPERIMENT = Experiment(
    name="inductive",
    title="Inductive setting: fitted on some instances, explaining others",
    plan=plan,
    present=present,
)
