"""Where which evidence wins: the rule's own choice beside shared evidence alone and each instance's own alone.

``python -m gflowbench.suites.evidence_map``. Every fit is of the public class with ``evidence="auto"`` (the default),
``"shared"`` or ``"own"``, on the same cases of the same GNN. What the rule costs is what the better of the two would
have had more, which only the truth can tell. Finished rows are kept under ``--out`` and not computed again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gflowbench.suites import citation, logic_suite, molecules, published
from gflowbench.suites.digests import suites_code
from gflowbench.suites.gnns import GNNS
from gflowbench.suites.ours import explain_cases
from gflowbench.suites.run import Cell, Problem, prepare
from gflowbench.suites.scoring import node_sets, score_cases, summarize
from gflowexplainer import GFlowExplainer
from gflowexplainer.storage.files import read_json, slug, write_json, write_text
from gflowexplainer.storage.provenance import code_digest, command_line

EVIDENCE = ("auto", "shared", "own")
TOP = 4
"""Best nodes that are measured on the model where there is no truth."""


class Place(NamedTuple):
    """A GNN of a suite, with the seed that names its task, and how many predictions of it are explained."""

    suite: str
    task: str
    gnn: str
    seed: int
    num_cases: int

    @property
    def score(self) -> str:
        """What is compared: against the truth, or on the model where there is none."""
        return f"characterization@{TOP}" if self.suite == "real" else "auc"


def places(seed: int, num_cases: int, suites: Sequence[str]) -> list[Place]:
    """Returns the GNNs of some suites; the published ones have seeds of their own, and Cora that of its nodes."""
    every = {
        "logic": [(name, gnn, seed) for name in logic_suite.NAMES for gnn in GNNS],
        "molecules": [(name, "gin", seed) for name in molecules.NAMES],
        "published": [(name, published.GNN, 0) for name in published.NAMES],
        "real": [("cora", gnn, 100) for gnn in citation.GNNS],
    }
    return [Place(suite, *row, num_cases) for suite in suites for row in every[suite]]


def measure(place: Place, out: Path) -> dict[str, Any]:
    """Fits and explains with each kind of evidence; no scores of a GNN that has not learned its task."""
    cell = Cell(place.suite, place.task, place.gnn, place.seed, "ours", None, place.num_cases)
    problem = prepare(cell, out)
    record: dict[str, Any] = {"identity": _identity(place), "scores": {}, "taken": None}
    if not problem.learned or not problem.cases:
        return record
    for evidence in EVIDENCE:
        explainer = GFlowExplainer(seed=place.seed, evidence=evidence)
        record["scores"][evidence] = _score(place, problem, explainer)
        if evidence == "auto":
            report = explainer.evidence_report()
            record["taken"] = _words(report.chosen)
            record["explained"], record["reproducible"] = report.explained, report.reproducible
    return record


def run(wanted: Sequence[Place], out: Path) -> Iterator[dict[str, Any]]:
    """Yields the record of each place, stored or measured now."""
    for number, place in enumerate(wanted):
        name = f"{slug(place.task)}-{place.gnn}-{place.seed}.json"
        stored = out / "cells" / "evidence" / place.suite / name
        record = read_json(stored) if stored.is_file() else None
        if record is None or record["identity"] != _identity(place):
            record = measure(place, out)
            write_json(stored, record)
            print(f"[{number + 1}/{len(wanted)}] {name}: {record['scores']}", file=sys.stderr, flush=True)
        yield record


def markdown(records: Sequence[dict[str, Any]]) -> str:
    """Returns a table of all places and one of what the rule costs in each suite."""
    lines = [
        "**Node AUC by kind of evidence** (Cora: characterization score of the best "
        f"{TOP} nodes)\n\n| suite | task | GNN | taken | explained | of | auto | shared | own |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[str, list[tuple[float, ...]]] = {}
    for record in records:
        place, scores = record["identity"], record["scores"]
        if not scores:
            continue
        values = tuple(scores[name] for name in EVIDENCE)
        groups.setdefault(place["suite"], []).append(values)
        told = [f"{record[name]:.2f}" for name in ("explained", "reproducible")] + [f"{v:.3f}" for v in values]
        names = (place["suite"], place["task"], place["gnn"], record["taken"], *told)
        lines.append(f"| {' | '.join(names)} |")
    lines += [
        "\n**What the rule costs** (means; the better of the two in hindsight, task by task)\n",
        "| suite | GNNs | auto | shared | own | better of both | most that auto is behind |",
        "|---|---|---|---|---|---|---|",
    ]
    for suite, rows in groups.items():
        auto, shared, own = torch.tensor(rows, dtype=torch.double).t()
        better = torch.maximum(shared, own)
        means = " | ".join(f"{column.mean():.3f}" for column in (auto, shared, own, better))
        lines.append(f"| {suite} | {len(rows)} | {means} | {float((better - auto).max()):.3f} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what the arguments ask for, prints the tables and writes them to ``evidence.md``."""
    suites = ("logic", "molecules", "published", "real")
    parser = argparse.ArgumentParser(prog="python -m gflowbench.suites.evidence_map", description=__doc__)
    parser.add_argument("--suites", nargs="*", choices=suites, default=suites)
    parser.add_argument("--seed", type=int, default=0, help="names the logic tasks and molecules")
    parser.add_argument("--cases", type=int, default=24, help="predictions of each GNN")
    parser.add_argument("--out", type=Path, default=Path("results/suites"), help="folder of rows and GNNs")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    table = markdown(list(run(places(options.seed, options.cases, options.suites), options.out)))
    write_text(options.out / "evidence.md", f"`{command_line()}`\n\n{table}")
    print(table)
    return 0


def _identity(place: Place) -> dict[str, Any]:
    return {**place._asdict(), "code": suites_code() + code_digest()}


def _score(place: Place, problem: Problem, explainer: GFlowExplainer) -> float:
    cases, model = problem.cases, problem.model
    found = explain_cases(explainer, model, problem.task, cases)
    top = (TOP,) if place.suite == "real" else ()
    sets = [node_sets(case, one, top) for case, one in zip(cases, found, strict=True)]
    return summarize(score_cases(model, cases, found, sets))[place.score]


def _words(chosen: Any) -> str:
    """Says which evidence was taken, from which contexts."""
    if chosen.by_gradients:
        return "shared, by gradients"
    apart = ", by class" if chosen.by_class else ""
    return f"{chosen.evidence.value}, {chosen.keep_probability:g} kept{apart}"


if __name__ == "__main__":
    sys.exit(main())
