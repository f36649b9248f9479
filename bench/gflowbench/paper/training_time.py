"""The paper's table of training times: RG-Explainer's pre-training, and one epoch of RG-Explainer and of ours."""

from __future__ import annotations

from collections.abc import Mapping

from gflowbench.paper.experiment import Experiment, Outcome, Results, Verdict
from gflowbench.paper.inference_time import LABELS, REFERENCE, Times, machine_notes, times
from gflowbench.paper.systems import DEFAULT, PAPER
from gflowbench.paper.timings import CPU, EXPLAINERS, GPU, RG, steps
from gflowbench.protocol import printed_numbers
from gflowbench.protocol.presentation import TITLES
from gflowexplainer.report.tables import NOT_THERE, Table

OURS = (PAPER, DEFAULT)
_LEAST = 0.1
"""Epochs whose time is a smaller share than this of the preparation's cannot be told from its noise."""
EPOCH = {RG: printed_numbers.EPOCH_SECONDS["RG-Explainer"], PAPER: printed_numbers.EPOCH_SECONDS["GFlowExplainer"]}


def present(results: Results) -> Outcome:
    """Compares preparation, epochs and whole fits."""
    tables, verdicts = [], []
    for device in (CPU, GPU):
        known = {dataset: value["explainers"] for dataset, value in times(results, device).items()}
        found = {dataset: of for dataset, of in known.items() if "span" in of[RG]}
        if found:
            where = "CPU" if device == CPU else "GPU"
            tables += [_compared(found, where), _fits(found, where)]
            verdicts += _verdicts(found, where)
    notes = [
        "The paper's machine is another one and its number of instances is not known, so only ratios can be compared.",
        "An epoch of ours in the paper's settings is one pass over all instances with one rollout for each; one of "
        "RG-Explainer's is one update on at most 128 instances. The time of an epoch is the difference of a longer and "
        "a shorter fit, left out where it is lost in the noise of what comes before; preparation is what is left. Our "
        "default has no epochs: its whole fit learns evidence, once.",
        *machine_notes(results),
        *notes_of_old_times(results),
    ]
    return Outcome(tables, verdicts, notes=notes)


def notes_of_old_times(results: Results) -> list[str]:
    """Says where times of training are left out: values that were stored before whole fits were timed have no span."""
    old = [d for d in (CPU, GPU) for value in times(results, d).values() if "span" not in value["explainers"][RG]]
    if not old:
        return []
    return [f"Times of training on {' and '.join(sorted({d.upper() for d in old}))} spanned too few epochs: left out."]


def _epoch(times: Mapping[str, float]) -> float | None:
    """Returns the seconds of an epoch, if there are any and they can be told."""
    if times["epoch"] is None:
        return None
    return times["epoch"] if times["span"] * times["epoch"] >= _LEAST * times["preparation"] else None


def _fit(times: Mapping[str, float]) -> float | None:
    """Returns the seconds of a whole fit, if those of its epochs can be told."""
    return times["fit"] if times["epoch"] is None or _epoch(times) is not None else None


def _compared(found: Times, where: str) -> Table:
    rows = []
    for title, read, printed in (
        ("preparation", lambda times: times["preparation"], {RG: printed_numbers.PRETRAINING_SECONDS}),
        ("one epoch", _epoch, EPOCH),
    ):
        for name in (RG, *OURS):
            ours = [read(of[name]) for of in found.values()]
            shown = (_written(value, ".3g") for value in ours)
            if name not in printed:
                rows.append((f"{title}, {LABELS[name]}, ours", *shown))
                continue
            there = [printed[name][dataset].mean for dataset in found]
            gaps = (_written(None if a is None else a - b, "+.3g") for a, b in zip(ours, there, strict=True))
            rows.append((f"{title}, {LABELS[name]}, paper", *(f"{value:.4g}" for value in there)))
            rows.append((f"{title}, {LABELS[name]}, ours", *shown))
            rows.append((f"{title}, {LABELS[name]}, difference", *gaps))
    heads = ("", *(TITLES[dataset] for dataset in found))
    return Table(f"Training, seconds, {where}", heads, tuple(rows))


def _fits(found: Times, where: str) -> Table:
    """Whole fits, and how many instances must be explained before they pay: GNNExplainer needs no fit."""
    rows = []
    for name in EXPLAINERS:
        seconds = [_fit(of[name]) for of in found.values()]
        text = (_written(value if value and value >= 5e-4 else None, ".3g") for value in seconds)
        rows.append((f"{LABELS.get(name, name)}, whole fit", *text))
    for name in (RG, *OURS, "pgexplainer"):
        pays = []
        for of in found.values():
            gain, fit = (of[REFERENCE]["alone"] - of[name]["alone"]) / 1000, _fit(of[name])
            pays.append(_written(fit / gain if fit is not None and gain > 0 else None, ".0f"))
        rows.append((f"{LABELS[name]}, instances from which it pays against GNNExplainer", *pays))
    heads = ("", *(TITLES[dataset] for dataset in found))
    return Table(f"Whole fits, seconds, and after how many instances they pay, {where}", heads, tuple(rows))


def _written(value: float | None, form: str) -> str:
    return NOT_THERE if value is None else f"{value:{form}}"


def _verdicts(found: Times, where: str) -> list[Verdict]:
    whole = {name: {d: _fit(of[name]) for d, of in found.items()} for name in (RG, *OURS)}
    epoch = {name: {d: _epoch(of[name]) for d, of in found.items()} for name in (RG, *OURS)}
    share = {d: found[d][RG]["preparation"] / fit for d, fit in whole[RG].items() if fit}
    verdicts = [
        Verdict.judge(
            f"Pre-training takes most of RG-Explainer's training time ({where}).",
            [value > 0.5 for value in share.values()],
            "Share of the whole fit: " + ", ".join(f"{TITLES[d]} {value:.0%}" for d, value in share.items()) + "."
            if share
            else "It cannot be told.",
        )
    ]
    for name in OURS:
        words = LABELS[name].split(", ")[1]
        for claim, seconds in (
            (f"An epoch of GFlowExplainer is faster than one of RG-Explainer ({words}, {where}).", epoch),
            (f"Without pre-training, the whole training of GFlowExplainer is faster ({words}, {where}).", whole),
        ):
            if seconds is epoch and name == DEFAULT:
                continue  # it has none
            ratio = {d: of / ours for d, of in seconds[RG].items() if of and (ours := seconds[name][d])}
            faster = f"Times faster than RG-Explainer: {_listed(ratio)}." if ratio else "RG-Explainer's cannot be told."
            verdicts.append(Verdict.judge(claim, [value > 1 for value in ratio.values()], faster))
    return verdicts


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{TITLES[d]} {value:.2g}" for d, value in values.items())


EXPERIMENT = Experiment(
    name="training-time",
    title="Training time: pre-training and epochs",
    claims="""
RG-Explainer's pre-training takes 83 to 2918 s and most of its training time; GFlowExplainer has none. An epoch of
GFlowExplainer takes 7 to 12 s, one of RG-Explainer 5 to 28 s: overall GFlowExplainer is faster.
""",
    method="""
The same values as `inference-time`: all explainers of a dataset one after the other in one process on one machine. RG-
Explainer is trained with its pre-training and without any epoch, and then with all; ours in the paper's settings for
one epoch, and then for some more; the differences give the time of an epoch. A whole fit is preparation and as many
epochs as the explainer has by default: RG-Explainer's by its public code, the paper's 100, in our default none.
""",
    plan=steps,
    present=present,
)
