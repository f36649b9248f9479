"""The paper's table of inference times: milliseconds to explain one instance, on one machine for all explainers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gflowbench.paper.experiment import Experiment, Outcome, Results, Verdict, counted
from gflowbench.paper.systems import DEFAULT, PAPER, SYSTEMS, here, missing
from gflowbench.paper.timings import CPU, EXPLAINERS, GPU, name_of, steps
from gflowbench.protocol import printed_numbers
from gflowbench.protocol.presentation import TITLES
from gflowexplainer.report.tables import Table

REFERENCE = "gnnexplainer"
PRINTED = {SYSTEMS[name]: row for name, row in printed_numbers.INFERENCE_MILLISECONDS.items()}
LABELS = {system: name for name, system in SYSTEMS.items()} | {
    PAPER: "GFlowExplainer, paper's settings",
    DEFAULT: "GFlowExplainer, our default",
}
RIVALS = ("pgexplainer", "rg-explainer")
SAMPLES = "64 subgraphs"
Times = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Times by dataset, explainer and kind."""


def times(results: Results, device: str) -> dict[str, Any]:
    """Returns the values of a device by dataset; empty where it was not there."""
    found = {dataset: results[name_of(dataset, device)] for dataset in here(results.scope)}
    return {dataset: value for dataset, value in found.items() if value is not None}


def machine_notes(results: Results) -> list[str]:
    """Says on what was timed, and on how many instances."""
    notes = []
    for device in (CPU, GPU):
        found = times(results, device)
        if found:
            one = next(iter(found.values()))
            where = f"CPU, one process, {counted(one['threads'], 'thread')}" if device == CPU else one["device"]
            counts = ", ".join(f"{TITLES[d]} {value['instances']}" for d, value in found.items())
            notes.append(f"{where}. Instances: {counts}.")
        elif device == GPU:
            notes.append("There was no GPU; where there is one, the same command times it too.")
    return [*notes, *missing(results.scope)]


def present(results: Results) -> Outcome:
    """Compares milliseconds, and how many times faster than GNNExplainer each is."""
    tables, verdicts = [], []
    for device in (CPU, GPU):
        found = {dataset: value["explainers"] for dataset, value in times(results, device).items()}
        if found:
            where = "CPU" if device == CPU else "GPU"
            tables += [_milliseconds(found, where), _ratios(found, where), _together(found, where)]
            verdicts += _verdicts(found, where)
    notes = [
        "The paper's machine is another one, so of its numbers only the ratios can be compared.",
        f"The paper explains by one generated subgraph, and so is ours timed in its settings; '{SAMPLES}' is what "
        "other experiments use: the probability of every node and edge, from as many samples. Our default samples no "
        "single subgraphs: it is timed whole.",
        "One at a time: each call gets one instance, after a first call that is not timed. All at once: one call gets "
        "all instances.",
        *machine_notes(results),
    ]
    return Outcome(tables, verdicts, notes=notes)


def _heads(found: Times) -> tuple[str, ...]:
    return "", *(TITLES[dataset] for dataset in found)


def _milliseconds(found: Times, where: str) -> Table:
    rows = []
    for name in EXPLAINERS:
        ours = [_alone(of[name]) for of in found.values()]
        if name in PRINTED:
            printed = [PRINTED[name][dataset].mean for dataset in found]
            rows.append((f"{LABELS[name]}, paper", *(f"{value:.0f}" for value in printed)))
            rows.append((f"{LABELS[name]}, ours", *map(_brief, ours)))
            rows.append((f"{LABELS[name]}, difference", *(f"{a - b:+.1f}" for a, b in zip(ours, printed, strict=True))))
        else:
            rows.append((f"{LABELS.get(name, name)}, ours", *map(_brief, ours)))
        if name == PAPER:
            rows.append((f"{LABELS[name]}, {SAMPLES}", *(_brief(of[name]["alone"]) for of in found.values())))
    return Table(f"Milliseconds to explain one instance, one at a time, {where}", _heads(found), tuple(rows))


def _ratios(found: Times, where: str) -> Table:
    rows = []
    for name in EXPLAINERS:
        if name == REFERENCE:
            continue
        if name in PRINTED:
            printed = [PRINTED[REFERENCE][d].mean / PRINTED[name][d].mean for d in found]
            rows.append((f"{LABELS[name]}, paper", *(f"{value:.1f}" for value in printed)))
        label, several = LABELS.get(name, name), f", {SAMPLES}" if name == PAPER else ""
        alone = [_alone(of[REFERENCE]) / _alone(of[name]) for of in found.values()]
        together = [of[REFERENCE]["together"] / of[name]["together"] for of in found.values()]
        rows.append((f"{label}, ours, one at a time", *map(_brief, alone)))
        rows.append((f"{label}, ours, all at once{several}", *map(_brief, together)))
    return Table(f"Times faster than GNNExplainer, {where}", _heads(found), tuple(rows))


def _together(found: Times, where: str) -> Table:
    rows = tuple(
        (LABELS.get(name, name), *(_brief(of[name]["together"]) for of in found.values())) for name in EXPLAINERS
    )
    return Table(f"Milliseconds an instance when all are explained at once, {where}", _heads(found), rows)


def _alone(times: Mapping[str, Any]) -> float:
    """Milliseconds of an instance alone; ours by one sampled subgraph, as the paper explains."""
    return times["alone"] if times["single"] is None else times["single"]


def _brief(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _verdicts(found: Times, where: str) -> list[Verdict]:
    slowest = {d: max((*RIVALS, PAPER, DEFAULT, REFERENCE), key=lambda n: _alone(of[n])) for d, of in found.items()}
    verdicts = [
        Verdict.judge(
            f"GNNExplainer takes longest to explain one instance ({where}).",
            [name == REFERENCE for name in slowest.values()],
            "Slowest: " + ", ".join(f"{TITLES[d]} {LABELS[name]}" for d, name in slowest.items()) + ".",
        )
    ]
    for ours in (PAPER, DEFAULT):
        factors = {d: _factor([_alone(of[name]) for name in (*RIVALS, ours)]) for d, of in found.items()}
        verdicts.append(
            Verdict.judge(
                f"PGExplainer, RG-Explainer and ours are of one order of magnitude ({LABELS[ours].split(', ')[1]}, "
                f"{where}).",
                [factor <= 10 for factor in factors.values()],
                "The slowest takes so many times as long as the fastest: "
                + ", ".join(f"{TITLES[d]} {factor:.1f}" for d, factor in factors.items())
                + "; ours "
                + ", ".join(_brief(_alone(of[ours])) for of in found.values())
                + " ms"
                + (
                    f", by {SAMPLES} " + ", ".join(_brief(of[PAPER]["alone"]) for of in found.values()) + " ms."
                    if ours == PAPER
                    else "."
                ),
            )
        )
    return verdicts


def _factor(values: Sequence[float]) -> float:
    return max(values) / min(values)


EXPERIMENT = Experiment(
    name="inference-time",
    title="Inference time: milliseconds to explain one instance",
    claims="""
GNNExplainer, which learns a mask for each instance, is the slowest (16 to 76 ms); PGExplainer, RG-Explainer and
GFlowExplainer, which learn beforehand, take times of the same order of magnitude (1 to 17 ms).
""",
    method="""
All explainers of a dataset are fitted and then explain, one after the other in one process on one machine. A few
instances are explained one at a time, as the paper did, and all of them at once, for which every explainer here is
written. Peers get instances that are cut out already, with what the GNN says of them. Ours is the public class, from
the user's graph to masks, so that it cuts out, and asks the GNN, within its time. With the paper's settings it is
trained for a few epochs only.
""",
    plan=steps,
    present=present,
)
