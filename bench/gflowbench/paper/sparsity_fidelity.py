"""Fidelity over sparsity: explanations of growing size, of ours and of peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from gflowbench.explainers.interface import Subject
from gflowbench.explainers.registry import create
from gflowbench.metrics.fidelity import fidelity
from gflowbench.metrics.selection import first_nodes
from gflowbench.metrics.shape import size, sparsity
from gflowbench.paper.experiment import Drawing, Experiment, Outcome, Results, Scope, Verdict, counted
from gflowbench.paper.line_figures import Line, Panel, draw_panels
from gflowbench.paper.steps import Measurement
from gflowbench.paper.systems import DEFAULT, PAPER, here, missing, short
from gflowbench.protocol import Problem
from gflowbench.protocol.presentation import TITLES
from gflowexplainer.report.tables import NOT_THERE, Table

SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12)
SHOWN = (2, 4, 6, 8, 12)
"""Sizes that are measured, and those of them that tables show."""
SEEDS = 3
RANDOM = "random"
LABELS = {
    DEFAULT: "GFlowExplainer",
    PAPER: "GFlowExplainer, paper's settings",
    "rg-explainer": "RG-Explainer",
    "degree-decomposition": "DEGREE",
    "pgexplainer": "PGExplainer",
    "gnnexplainer": "GNNExplainer",
    RANDOM: "random growth (floor)",
}
SLOWEST = (PAPER, "rg-explainer", DEFAULT)
FULL = {"ba-shapes": 1, "ba-community": 1, "tree-cycles": 1, "tree-grid": 3, "ba-2motifs": 2, "mutagenicity": 10}
FAST = {"ba-shapes": 12, "ba-community": 20, "tree-cycles": 6, "tree-grid": 30, "ba-2motifs": 20, "mutagenicity": 100}
"""Every n-th instance is explained."""
Found = Mapping[str, Mapping[str, list[dict[str, Any]]]]


def explainers(scope: Scope, dataset: str) -> list[str]:
    """Names the explainers; the paper's settings, which take longest, are run on its own dataset only."""
    names = [name for name in LABELS if name != PAPER or dataset == "ba-shapes"]
    return scope.pick(names, [name for name in names if name not in (PAPER, "rg-explainer")])


def plan(scope: Scope) -> list[Measurement]:
    """Every explainer on every dataset with every seed, the slowest first."""
    every = scope.pick(FULL, FAST)
    return [
        _step(scope, scope.problem(dataset, every=every[dataset]), name, seed)
        for name in sorted(LABELS, key=lambda name: name not in SLOWEST)
        for dataset in here(scope)
        if name in explainers(scope, dataset)
        for seed in seeds(scope, name)
    ]


def seeds(scope: Scope, name: str) -> range:
    """Returns the seeds; an explainer that is deterministic needs one, the paper's settings are too slow for more."""
    alone = name == PAPER or bool(getattr(create(name), "deterministic", False))
    return range(1) if alone else scope.seeds(SEEDS)


def _step(scope: Scope, problem: Problem, name: str, seed: int) -> Measurement:
    settings = short(name, problem.dataset).settings if scope.fast else {}
    settings = {**settings, "max_nodes": max(SIZES)}
    known = {"explainer": name, "settings": settings, "seed": seed, "sizes": SIZES}
    known |= {"gnn": problem.gnn, "problem": problem.settings}
    return Measurement(name_of(name, problem.dataset, seed), known, partial(measure, problem, name, settings, seed))


def name_of(name: str, dataset: str, seed: int) -> str:
    """Names a step."""
    return f"{name} on {dataset}, seed {seed}"


def measure(problem: Problem, name: str, settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Explains all instances and measures the first 1, 2, ... nodes.

    Returns:
        ``"points"``: for each of :data:`SIZES` the mean ``"size"``, ``"sparsity"``, and fidelity ``"plus"`` and
        ``"minus"`` on the class probability, where nodes outside lose their edges; and ``"instances"``.
    """
    loaded = problem.load()
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    explainer = create(name, **settings)
    explainer.fit(subject, seed)
    scores = explainer.explain(subject, seed)
    points = []
    for count in SIZES:
        chosen = first_nodes(subject.instances, scores, count)
        found = fidelity(subject, chosen, "isolate")
        points.append(
            {
                "size": size(subject.instances, chosen),
                "sparsity": sparsity(subject.instances, chosen),
                "plus": found.plus,
                "minus": found.minus,
            }
        )
    return {"points": points, "instances": len(subject)}


def present(results: Results) -> Outcome:
    """Draws fidelity over sparsity."""
    scope = results.scope
    found: Found = {
        dataset: {
            name: [results[name_of(name, dataset, seed)] for seed in seeds(scope, name)]
            for name in explainers(scope, dataset)
        }
        for dataset in here(scope)
    }
    counts = ", ".join(f"{TITLES[d]} {of[DEFAULT][0]['instances']}" for d, of in found.items())
    notes = [
        f"{counted(len(seeds(scope, DEFAULT)), 'seed')}, one of the paper's settings and of explainers that depend on "
        f"none. Instances: {counts}. All explainers may name at most {max(SIZES)} nodes; one that stops earlier is not "
        "given more.",
        "What is left out of a graph loses its edges and stays, so that mean pooling sees as many nodes as before; at "
        "a node the prediction cannot tell the difference.",
        *missing(scope),
    ]
    drawings = [
        Drawing(
            name,
            f"{words} over sparsity, the share of nodes that is left out, for explanations of 1 to {max(SIZES)} nodes; "
            "mean of the seeds. Sparse explanations are on the right.",
            partial(_draw, found, kind, words),
        )
        for name, kind, words in (
            ("fidelity", "plus", "Fidelity (loss of class probability without the explanation, larger is better)"),
            ("fidelity-minus", "minus", "Fidelity- (loss with nothing but the explanation, smaller is better)"),
        )
    ]
    return Outcome([_table(found, "plus"), _table(found, "minus")], _verdicts(found), drawings, notes)


def _mean(values: Sequence[Mapping[str, Any]], place: int, kind: str) -> float:
    return fmean(value["points"][place][kind] for value in values)


def _table(found: Found, kind: str) -> Table:
    rows = [
        (
            f"{TITLES[dataset]}, {LABELS[name]}",
            NOT_THERE,
            *(f"{_mean(v, k, kind):.3f} ({_mean(v, k, 'sparsity'):.2f})" for k in map(SIZES.index, SHOWN)),
        )
        for dataset, explainers in found.items()
        for name, v in explainers.items()
    ]
    title = "Fidelity" if kind == "plus" else "Fidelity-"
    heads = ("", "paper", *(f"{count} nodes" for count in SHOWN))
    return Table(f"{title} (and sparsity) of the first nodes; the paper shows a figure, no numbers", heads, tuple(rows))


def _verdicts(found: Found) -> list[Verdict]:
    curves = {d: [_mean(of[DEFAULT], k, "plus") for k in range(len(SIZES))] for d, of in found.items()}
    middle = SIZES.index(5)
    against = {d: {name: _mean(values, middle, "plus") for name, values in of.items()} for d, of in found.items()}
    best = {d: max(of, key=lambda name: of[name]) for d, of in against.items()}
    higher = {
        d: "" if best[d] == DEFAULT else f" (highest: {LABELS[best[d]]}, {of[best[d]]:.3f})"
        for d, of in against.items()
    }  # fmt: skip
    return [
        Verdict.of(
            "Sparser explanations tend to have lower fidelity.",
            {TITLES[d]: (c[-1] > c[0], f"{c[0]:.3f} and {c[-1]:.3f}") for d, c in curves.items()},
            f"Fidelity of 1 and of {max(SIZES)} nodes: ",
        ),
        Verdict.of(
            "GFlowExplainer's explanations are faithful: without its first 5 nodes the prediction loses more than "
            "without 5 nodes of random growth.",
            {
                TITLES[d]: (of[DEFAULT] > of[RANDOM], f"{of[DEFAULT]:.3f} against {of[RANDOM]:.3f}{higher[d]}")
                for d, of in against.items()
            },
        ),
    ]


def _draw(found: Found, kind: str, words: str) -> Any:
    panels = [
        Panel(
            TITLES[dataset],
            {
                LABELS[name]: Line(
                    [_mean(v, k, "sparsity") for k in range(len(SIZES))], [_mean(v, k, kind) for k in range(len(SIZES))]
                )
                for name, v in explainers.items()
            },
            "sparsity (share of nodes left out)",
            words.split(" (")[0],
        )
        for dataset, explainers in found.items()
    ]
    return draw_panels(panels, columns=3)


EXPERIMENT = Experiment(
    name="sparsity-fidelity",
    title="Fidelity and sparsity",
    plan=plan,
    present=present,
)
