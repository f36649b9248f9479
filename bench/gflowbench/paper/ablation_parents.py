"""What the parents of a state are: flow-matching loss with three rules, and the distance to the exact distribution."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gflowbench.paper.experiment import Drawing, Experiment, Outcome, Results, Scope, Spread, Verdict, counted
from gflowbench.paper.line_figures import Panel, draw_panels
from gflowbench.paper.steps import Measurement
from gflowbench.paper.trainings import Training, distance_line, early_and_late, falls, loss_line
from gflowexplainer.report.tables import NOT_THERE, Table

RULES = {"dag": "GFlowExplainer (dag)", "sequence": "GFlow-Sequence", "graph": "GFlow-Graph"}
PAPER, LOG = "paper's loss", "log-space loss"
SHARED, SINGLE = "one policy for all instances", "one policy for one instance"
SUBGRAPHS = 180
"""About how many connected subgraphs the single instance has."""


def trainings(scope: Scope) -> dict[str, Training]:
    """Names the four trainings, to which the rule is still to be added."""
    pick = scope.pick
    # "16 batches" is read as batches of 16 instances.
    losses = {"batch_size": 16, "epochs": pick(80, 10), "max_updates": 0, "descents": 1}
    engine: dict[str, Any] = {"objective": "flow_matching", "measure": "uniform", "descents": 1}
    alone = {"hidden": 256, "rollouts": 64, "epsilon": 0.2, "learning_rate": 3e-3}
    return {
        PAPER: Training("ba-shapes", "paper", losses | {"max_nodes": pick(20, 8)}, every=pick(1, 3)),
        LOG: Training("ba-shapes", "context", losses | engine, every=pick(1, 10)),
        SHARED: Training(
            "tree-cycles",
            "context",
            engine | {"epochs": pick(400, 100), "max_updates": 0, "keep_probability": 0.5},
            every=pick(1, 6),
            distance_every=pick(20, 10),
        ),
        SINGLE: Training(
            "tree-cycles",
            "context",
            engine | alone | {"epochs": pick(3000, 200), "max_updates": 0, "final_rate": 0.001},
            subgraphs=SUBGRAPHS,
            distance_every=pick(100, 50),
        ),
    }


def plan(scope: Scope) -> list[Measurement]:
    """Every training with every rule and seed."""
    steps = []
    for what, training in trainings(scope).items():
        for rule in RULES:
            ruled = Training(**vars(training) | {"changes": {**training.changes, "parents": rule}})
            steps += [ruled.step(name_of(what, rule, seed), scope, seed) for seed in scope.seeds(5)]
    return steps


def name_of(what: str, rule: str, seed: int) -> str:
    """Names a step."""
    return f"{what}, {rule} parents, seed {seed}"


def present(results: Results) -> Outcome:
    """Compares the rules."""
    seeds = results.scope.seeds(5)
    found = {
        what: {rule: [results[name_of(what, rule, seed)] for seed in seeds] for rule in RULES}
        for what in (PAPER, LOG, SHARED, SINGLE)
    }
    tables = [_loss_table(found), _distance_table(found)]
    sizes = {what: found[what]["dag"][0] for what in found}
    notes = [
        f"{counted(len(seeds), 'seed')}. "
        + "; ".join(
            f"{what}: {counted(value['instances'], 'instance')}, {value['updates']} updates, at most "
            f"{value['settings']['max_nodes']} nodes"
            for what, value in sizes.items()
        )
        + ".",
        'The paper\'s "16 batches" is read as batches of 16 instances. It multiplied the regularisers of its reward to '
        "make the loss larger, without saying by how much; here the reward is the printed one.",
        "The losses of different rules measure the balance of different flow networks; the distance is one measure for "
        "all.",
    ]
    drawings = [
        Drawing(
            "loss",
            "Flow-matching loss on BA-Shapes with three rules for the parents of a state, in the paper's raw form and "
            "settings (left) and in log space with our policy and reward (right); mean of the seeds, and the range "
            "between the least and the largest.",
            partial(_draw, found, {PAPER: "BA-Shapes, paper's settings", LOG: "BA-Shapes, log space"}),
        ),
        Drawing(
            "distance",
            "Total variation between what the policy samples and the exact distribution on Tree-Cycles, of one policy "
            "for all instances (left) and of one that is trained on a single instance (right). Only with the DAG's "
            "parents can it reach 0.",
            partial(_draw, found, {SHARED: "Tree-Cycles, one policy for all", SINGLE: "Tree-Cycles, one instance"}),
        ),
    ]
    return Outcome(tables, _verdicts(found), drawings, notes)


Found = Mapping[str, Mapping[str, list[dict[str, Any]]]]


def _loss_table(found: Found) -> Table:
    rows = []
    for what in (PAPER, LOG):
        for rule, values in found[what].items():
            ends = [early_and_late(value) for value in values]
            begin, end = (_brief([pair[k] for pair in ends]) for k in (0, 1))
            rows.append((f"{what}, {RULES[rule]}", NOT_THERE, begin, end))
    heads = ("", "paper", "loss, first tenth of epochs", "loss, last tenth of epochs")
    return Table("Flow-matching loss on BA-Shapes (the paper shows a figure, no numbers)", heads, tuple(rows))


def _distance_table(found: Found) -> Table:
    heads = ("parents", *(f"{what}" for what in (SHARED, SINGLE)))
    rows = [
        (
            RULES[rule],
            *(str(Spread.of([value["distance"][-1][1] for value in found[what][rule]])) for what in heads[1:]),
        )
        for rule in RULES
    ]
    title = "Total variation to the exact distribution at the end, Tree-Cycles (not in the paper)"
    return Table(title, heads, tuple(rows))


def _brief(values: list[float]) -> str:
    spread = Spread.of(values)
    assert spread is not None
    return f"{spread.mean:.4g}" if spread.deviation is None else f"{spread.mean:.4g} ± {spread.deviation:.2g}"


def _verdicts(found: Found) -> list[Verdict]:
    losses = {
        what: {rule: [early_and_late(v)[1] for v in of] for rule, of in found[what].items()} for what in (PAPER, LOG)
    }
    converging = {(what, rule): [falls(v) for v in found[what][rule]] for what in losses for rule in ("dag", "graph")}
    far = {
        what: {rule: [v["distance"][-1][1] for v in of] for rule, of in found[what].items()}
        for what in (SHARED, SINGLE)
    }
    lower = {what: [d < g for d, g in zip(of["dag"], of["graph"], strict=True)] for what, of in losses.items()}
    near = {
        what: [d < min(s, g) for d, s, g in zip(*(of[rule] for rule in RULES), strict=True)] for what, of in far.items()
    }
    return [
        Verdict.of(
            "With and without the connectivity constraint, the flow-matching loss converges.",
            {
                f"{what} with {RULES[rule]}": (each, f"{sum(each)} of {len(each)} seeds")
                for (what, rule), each in converging.items()
            },
        ),
        Verdict.of(
            "GFlowExplainer ends with a lower loss than GFlow-Graph, whose parents need not be connected.",
            {
                what: (
                    lower[what],
                    f"lower with {sum(lower[what])} of {len(lower[what])} seeds, {_brief(of['dag'])} against "
                    f"{_brief(of['graph'])} (GFlow-Sequence {_brief(of['sequence'])})",
                )
                for what, of in losses.items()
            },
        ),
        Verdict.of(
            "The DAG's parents are what lets the policy sample in proportion to the reward (claimed, not measured "
            "there).",
            {
                what: (
                    near[what],
                    ", ".join(f"{Spread.of(values)} with {RULES[rule]}" for rule, values in of.items())
                    + f", nearest with the DAG's with {sum(near[what])} of {len(near[what])} seeds",
                )
                for what, of in far.items()
            },
            "Total variation to the exact distribution: ",
        ),
    ]


def _draw(found: Found, shown: Mapping[str, str]) -> Any:
    panels = []
    for what, title in shown.items():
        distances = what in (SHARED, SINGLE)
        line = distance_line if distances else loss_line
        lines = {RULES[rule]: line(values) for rule, values in found[what].items()}
        axes = ("update", "total variation") if distances else ("epoch", "flow-matching loss")
        panels.append(Panel(title, lines, *axes, log_y=not distances, from_zero=distances))
    return draw_panels(panels, columns=2, width=4.4, height=3.3)


EXPERIMENT = Experiment(
    name="ablation-parents",
    title="Parents of a state: the DAG's, the sequence's, or any node's",
    plan=plan,
    present=present,
)
