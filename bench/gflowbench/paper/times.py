"""The paper's two tables of times: to explain one instance and to train, of all explainers on one machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gflowbench.paper.experiment import Experiment, Outcome, Results, Verdict, counted
from gflowbench.paper.systems import DEFAULT, PAPER, SYSTEMS, here, missing
from gflowbench.paper.timings import CPU, EXPLAINERS, GPU, RG, name_of, steps
from gflowbench.protocol import printed_numbers
from gflowbench.protocol.presentation import TITLES
from gflowexplainer.report.tables import NOT_THERE, Table

REFERENCE, RIVALS, OURS = "gnnexplainer", ("pgexplainer", RG), (PAPER, DEFAULT)
PRINTED = {SYSTEMS[name]: row for name, row in printed_numbers.INFERENCE_MILLISECONDS.items()}
EPOCH = {RG: printed_numbers.EPOCH_SECONDS["RG-Explainer"], PAPER: printed_numbers.EPOCH_SECONDS["GFlowExplainer"]}
PREPARATION = {RG: printed_numbers.PRETRAINING_SECONDS}
LABELS = {name: name for name in EXPLAINERS} | {system: name for name, system in SYSTEMS.items()}
LABELS |= {PAPER: "GFlowExplainer, paper's settings", DEFAULT: "GFlowExplainer, our default"}
WORDS = {PAPER: "paper's settings", DEFAULT: "our default"}
_LEAST = 0.1
"""Epochs whose time is a smaller share than this of the preparation's cannot be told from its noise."""
Times = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Times by dataset, explainer and kind."""
Read = Callable[[Mapping[str, Any]], float | None]


def inference(results: Results) -> Outcome:
    """Compares milliseconds, and how many times faster than GNNExplainer each is."""
    tables, verdicts = [], []
    for where, found in _by_device(results).items():
        tables += [_milliseconds(found, where), _together(found, where)]
        slowest = {d: max((*RIVALS, *OURS, REFERENCE), key=lambda n: _alone(of[n])) for d, of in found.items()}
        parts = {TITLES[d]: (name == REFERENCE, LABELS[name]) for d, name in slowest.items()}
        verdicts.append(
            Verdict.of(f"GNNExplainer takes longest to explain one instance ({where}).", parts, "Slowest: ")
        )
        for ours in OURS:
            several = {d: [_alone(of[name]) for name in (*RIVALS, ours)] for d, of in found.items()}
            factors = {TITLES[d]: max(values) / min(values) for d, values in several.items()}
            verdicts.append(
                Verdict.of(
                    f"PGExplainer, RG-Explainer and ours are of one order of magnitude ({WORDS[ours]}, {where}).",
                    {title: (factor <= 10, f"{factor:.1f}") for title, factor in factors.items()},
                    "The slowest takes so many times as long as the fastest: ",
                )
            )
    notes = [
        "The paper's machine is another one, so of its numbers only the ratios can be compared.",
        "The paper explains by one generated subgraph, and so is ours timed in its settings, one at a time; all at "
        "once, it estimates the probability of every node and edge from 64. Our default is timed whole.",
    ]
    return Outcome(tables, verdicts, notes=[*notes, *_machines(results)])


def training(results: Results) -> Outcome:
    """Compares preparation, epochs and whole fits."""
    tables, verdicts = [], []
    for where, found in _by_device(results).items():
        if not all("span" in of[RG] for of in found.values()):
            continue
        tables.append(_seconds(found, where))
        verdicts += _training_verdicts(found, where)
    notes = [
        "The paper's machine is another one and its number of instances is not known, so only ratios can be compared.",
        "An epoch of ours in the paper's settings is one pass over all instances with one rollout for each; one of "
        "RG-Explainer's is one update on at most 128 instances. The time of an epoch is the difference of a longer and "
        "a shorter fit, left out where it is lost in the noise of what comes before; preparation is what is left. Our "
        "default has no epochs: its whole fit learns evidence, once.",
    ]
    return Outcome(tables, verdicts, notes=[*notes, *_machines(results)])


def _by_device(results: Results) -> dict[str, Times]:
    """Returns the times of the devices that there were, by what they are called."""
    found = {where: _values(results, device) for where, device in (("CPU", CPU), ("GPU", GPU))}
    return {where: {d: value["explainers"] for d, value in of.items()} for where, of in found.items() if of}


def _values(results: Results, device: str) -> dict[str, Any]:
    found = {dataset: results[name_of(dataset, device)] for dataset in here(results.scope)}
    return {dataset: value for dataset, value in found.items() if value is not None}


def _machines(results: Results) -> list[str]:
    """Says on what was timed, and on how many instances."""
    notes = []
    for device in (CPU, GPU):
        found = _values(results, device)
        if found:
            one = next(iter(found.values()))
            where = f"CPU, one process, {counted(one['threads'], 'thread')}" if device == CPU else one["device"]
            counts = ", ".join(f"{TITLES[d]} {value['instances']}" for d, value in found.items())
            notes.append(f"{where}. Instances: {counts}.")
        elif device == GPU:
            notes.append("There was no GPU; where there is one, the same command times it too.")
    return [*notes, *missing(results.scope)]


def _alone(times: Mapping[str, Any]) -> float:
    """Milliseconds of an instance alone; ours by one sampled subgraph, as the paper explains."""
    return times["alone"] if times["single"] is None else times["single"]


def _epoch(times: Mapping[str, Any]) -> float | None:
    """Returns the seconds of an epoch, if there are any and they can be told."""
    if times["epoch"] is None:
        return None
    return times["epoch"] if times["span"] * times["epoch"] >= _LEAST * times["preparation"] else None


def _fit(times: Mapping[str, Any]) -> float | None:
    """Returns the seconds of a whole fit, if those of its epochs can be told."""
    return times["fit"] if times["epoch"] is None or _epoch(times) is not None else None


def _milliseconds(found: Times, where: str) -> Table:
    rows = []
    for name in EXPLAINERS:
        if name in PRINTED:
            rows.append((f"{LABELS[name]}, paper", *(f"{PRINTED[name][dataset].mean:.0f}" for dataset in found)))
        ours = [(_alone(of[name]), _alone(of[REFERENCE])) for of in found.values()]
        rows.append((f"{LABELS[name]}, ours", *(f"{_brief(own)} ({_brief(slow / own)})" for own, slow in ours)))
    title = f"Milliseconds to explain one instance, one at a time (times faster than GNNExplainer), {where}"
    return Table(title, _heads(found), tuple(rows))


def _together(found: Times, where: str) -> Table:
    ours = {n: [(of[n]["together"], of[REFERENCE]["together"]) for of in found.values()] for n in EXPLAINERS}
    rows = [(LABELS[n], *(f"{_brief(own)} ({_brief(slow / own)})" for own, slow in of)) for n, of in ours.items()]
    title = f"Milliseconds an instance when all are explained at once (times faster than GNNExplainer), {where}"
    return Table(title, _heads(found), tuple(rows))


def _seconds(found: Times, where: str) -> Table:
    rows = []
    kinds: Sequence[tuple[str, Read, Sequence[str], Mapping[str, Any]]] = (
        ("preparation", lambda times: times["preparation"], (RG, *OURS), PREPARATION),
        ("one epoch", _epoch, (RG, PAPER), EPOCH),
        ("whole fit", _fit, EXPLAINERS, {}),
    )
    for kind, read, names, printed in kinds:
        for name in names:
            if name in printed:
                paper = (f"{printed[name][dataset].mean:.4g}" for dataset in found)
                rows.append((f"{kind}, {LABELS[name]}, paper", *paper))
            values = [read(of[name]) for of in found.values()]
            rows.append((f"{kind}, {LABELS[name]}, ours", *(NOT_THERE if v is None else f"{v:.3g}" for v in values)))
    return Table(f"Training, seconds, {where}", _heads(found), tuple(rows))


def _training_verdicts(found: Times, where: str) -> list[Verdict]:
    whole = {d: fit for d, of in found.items() if (fit := _fit(of[RG]))}
    share = {TITLES[d]: found[d][RG]["preparation"] / fit for d, fit in whole.items()}
    verdicts = [
        Verdict.of(
            f"Pre-training takes most of RG-Explainer's training time ({where}).",
            {title: (value > 0.5, f"{value:.0%}") for title, value in share.items()},
            "Share of the whole fit: ",
        )
    ]
    for name in OURS:
        for claim, read in (
            ("An epoch of GFlowExplainer is faster than one of RG-Explainer", _epoch),
            ("Without pre-training, the whole training of GFlowExplainer is faster", _fit),
        ):
            pairs = {TITLES[d]: (read(of[RG]), read(of[name])) for d, of in found.items()}
            ratio = {title: rg / ours for title, (rg, ours) in pairs.items() if rg and ours}
            if name == PAPER or read is _fit:
                verdicts.append(
                    Verdict.of(
                        f"{claim} ({WORDS[name]}, {where}).",
                        {title: (value > 1, f"{value:.2g}") for title, value in ratio.items()},
                        "Times faster than RG-Explainer: ",
                    )
                )
    return verdicts


def _heads(found: Times) -> tuple[str, ...]:
    return "", *(TITLES[dataset] for dataset in found)


def _brief(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


INFERENCE = Experiment("inference-time", "Inference time: milliseconds to explain one instance", steps, inference)
TRAINING = Experiment("training-time", "Training time: pre-training and epochs", steps, training)
