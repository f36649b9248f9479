"""Readings of the paper's own method, by what they score: ``python -m benchmarks.paper_readings --jobs 16``.

First the exact optimum of every reward, which says what no training can reach. Then trainings: from the printed words
one choice is changed at a time, and changes that move most are put together as long as the result gets nearer to the
printed number. The choice looks at the truth that is scored by, so what is found is an upper bound for readings of this
kind. A cell is a process and a JSON file in ``--out``; finished ones are kept. Published data and GNNs come from the
folder that ``GFLOWEXPLAINER_DATA`` names.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.reading_scores import Reading, optima, score
from gflowbench.datasets.published_graphs import MOTIF_SIZES
from gflowbench.paper.experiment import Spread
from gflowbench.protocol.presentation import TITLES
from gflowbench.protocol.printed_numbers import AUC, DATASETS
from gflowexplainer.report.provenance import command_line
from gflowexplainer.report.tables import NOT_THERE, Table, join
from gflowexplainer.storage.files import read_json, slug, write_json, write_text
from gflowexplainer.storage.identity import settings_fingerprint

ENUMERATED = {"tree-cycles": 1, "tree-grid": 5, "ba-2motifs": 20}
"""Every n-th instance of the datasets whose subgraphs are few enough to be enumerated."""
GRAPHS = ("ba-2motifs", "mutagenicity")
REWARDS, SIGNS = ("subgraph", "whole", "predicted", "true", "odds"), (1, -1)
SINGLE = ("one", "greedy", "best")
"""Scores of one generated subgraph, as the paper speaks of it; the others average 64 of them."""
Scores = Mapping[str, float]
Found = Mapping[str, Sequence[float]]


def changes(dataset: str) -> list[dict[str, Any]]:
    """Returns what is changed alone, from the printed words."""
    size = MOTIF_SIZES.get(dataset, 6)
    found: dict[str, Sequence[Any]] = {
        "reward": REWARDS[1:],
        "sign": SIGNS[1:],
        "view": ("soft",),
        "max_nodes": sorted({5, size, size + 1, 10}),
        "stop": ("bound",),
        "loss": ("flow_matching", "trajectory_balance", "conditional_trajectory_balance", "detailed_balance"),
        "epochs": (10, 50),
        "beta": (10.0,),
        "flows": ("softmax",),
        "alpha": (0.15,),
        **({"start": ("anywhere",)} if dataset in GRAPHS else {"reach": (3,)}),
    }
    single = [{name: value} for name, values in found.items() for value in values]
    # The order of growth to the bound is what is scored where learning does not stop early; both belong together.
    single += [{"max_nodes": bound, "stop": "bound"} for bound in found["max_nodes"]]
    return single + ([{"view": "isolated"}] if dataset in GRAPHS else [])


def enumerated(dataset: str) -> list[Reading]:
    """Returns the readings whose exact optimum is computed."""
    views = ("alone", "isolated", "soft") if dataset in GRAPHS else ("alone", "soft")
    size = MOTIF_SIZES[dataset]
    return [
        Reading(reward=reward, sign=sign, view=view, stop=stop, beta=beta, max_nodes=bound, loss="exact")
        for reward, sign, view, stop, beta, bound in product(
            REWARDS, SIGNS, views, ("learned", "bound"), (1.0, 10.0), (size, size + 1)
        )
    ]


class Cells:
    """Scores of readings, computed where they are not stored.

    Args:
        out: Folder of the cells.
        every: Every n-th instance is explained.
        pool: Processes.
    """

    def __init__(self, out: Path, every: int, pool: ProcessPoolExecutor) -> None:
        self.out, self.every, self.pool = out, every, pool

    def of(
        self, dataset: str, readings: Sequence[Reading], seeds: Iterable[int] = (0,)
    ) -> list[dict[str, list[float]]]:
        """Returns of each reading every score with all seeds."""
        pairs = [(reading, seed) for reading in readings for seed in seeds]
        paths = [self._path(dataset, reading, seed) for reading, seed in pairs]
        running = {
            path: self.pool.submit(score, dataset, reading, seed, self.every)
            for path, (reading, seed) in zip(paths, pairs, strict=True)
            if not path.is_file()
        }
        for path, result in running.items():
            try:
                write_json(path, {"scores": result.result()})
            except Exception as error:  # a loss that is no number any more is a result
                write_json(path, {"scores": {}, "error": str(error)})
        found = {path: read_json(path)["scores"] for path in paths}
        collected = []
        for reading in readings:
            of = [found[path] for path, (one, _) in zip(paths, pairs, strict=True) if one == reading]
            collected.append({name: [each[name] for each in of if name in each] for name in of[0]})
        return collected

    def optima(self, dataset: str) -> list[tuple[Reading, Scores]]:
        """Returns what the exact optimum of every reading scores."""
        readings = enumerated(dataset)
        path = self.out / f"optima-{dataset}.json"
        if not path.is_file():
            every = ENUMERATED[dataset] * self.every
            write_json(path, {"scores": self.pool.submit(optima, dataset, readings, every).result()})
        return list(zip(readings, read_json(path)["scores"], strict=True))

    def _path(self, dataset: str, reading: Reading, seed: int) -> Path:
        known = {"dataset": dataset, "seed": seed, "every": self.every, **asdict(reading)}
        return self.out / "cells" / f"{slug(dataset)}.{settings_fingerprint(known)}.json"


def best_of(found: Mapping[str, Sequence[float]], among: Sequence[str] = ("",)) -> tuple[float, str]:
    """Returns the largest mean score and its name, of those whose name begins in one of some ways."""
    there = ((fmean(values), name) for name, values in found.items() if values and name.startswith(tuple(among)))
    return max(there, default=(0.0, NOT_THERE))


def search(cells: Cells, dataset: str) -> tuple[list[tuple[dict[str, Any], Found]], Reading]:
    """Changes one choice at a time, then keeps adding the change that moved most; returns both steps and the end."""
    base, single = Reading(), changes(dataset)
    alone = cells.of(dataset, [base, *(replace(base, **change) for change in single)])
    rows: list[tuple[dict[str, Any], Found]] = list(zip([{}, *single], alone, strict=True))
    current, printed = base, best_of(alone[0])[0]
    best = printed
    for change, found in sorted(rows[1:], key=lambda row: -best_of(row[1])[0]):
        together = replace(current, **change)
        if best_of(found)[0] <= printed or together == current:
            continue
        (reached,) = cells.of(dataset, [together])
        if best_of(reached)[0] > best + 0.005:
            current, best = together, best_of(reached)[0]
            rows.append(({"together": True, **_difference(current)}, reached))
    return rows, current


def _line(change: Mapping[str, Any], found: Found) -> tuple[str, ...]:
    both = best_of(found), best_of(found, SINGLE)
    return _words(change), *(f"{value:.3f} ({name})" for value, name in both)


def _difference(reading: Reading) -> dict[str, Any]:
    return {name: value for name, value in asdict(reading).items() if value != getattr(Reading(), name)}


def _words(change: Mapping[str, Any]) -> str:
    said = ", ".join(f"{name} {value}" for name, value in change.items() if name != "together") or "as printed"
    return f"together: {said}" if "together" in change else said


def optimum_table(found: Mapping[str, list[tuple[Reading, Scores]]]) -> Table:
    """Compares rewards by the best that any score of their exact optimum gets, over bounds, stops and exponents."""
    rows = []
    for reward, sign, view in product(REWARDS, SIGNS, ("alone", "isolated", "soft")):
        cells = []
        for of in found.values():
            there = [s for r, s in of if (r.reward, r.sign, r.view) == (reward, sign, view)]
            best = max((value for scores in there for value in scores.values()), default=None)
            single = (value for scores in there for name, value in scores.items() if name.startswith(SINGLE))
            cells.append(NOT_THERE if best is None else f"{best:.3f} ({max(single):.3f})")
        rows.append((f"{reward}, {'minus cross-entropy' if sign > 0 else 'sign as printed'}, {view}", *cells))
    heads = ("reward", *(TITLES[dataset] for dataset in found))
    rows.append(("printed AUC", *(f"{AUC['GFlowExplainer'][dataset].mean:.3f}" for dataset in found)))
    return Table(
        "Best AUC of any score of the exact optimum (and of a single subgraph), by reward and view", heads, tuple(rows)
    )


def main(arguments: Sequence[str] = ()) -> int:
    """Computes what the arguments ask for, and writes tables; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper_readings", description=__doc__)
    parser.add_argument("--datasets", nargs="*", default=DATASETS, choices=DATASETS)
    parser.add_argument("--every", type=int, default=1, help="explain every n-th instance")
    parser.add_argument("--seeds", type=int, default=10, help="seeds of the printed and of the nearest reading")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--optima-only", action="store_true", help="enumerate, train nothing")
    parser.add_argument("--out", type=Path, default=Path("runs/paper-readings"))
    given = parser.parse_args(arguments)
    context = get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.reading_scores"])
    with ProcessPoolExecutor(given.jobs, context, max_tasks_per_child=1) as pool:
        cells = Cells(given.out, given.every, pool)
        exact = {dataset: cells.optima(dataset) for dataset in given.datasets if dataset in ENUMERATED}
        tables = [optimum_table(exact)] if exact else []
        nearest = []
        for dataset in () if given.optima_only else given.datasets:
            rows, end = search(cells, dataset)
            lines = tuple(_line(change, found) for change, found in rows)
            heads = ("change", "best AUC of any score", "of a single subgraph")
            tables.append(Table(f"Readings on {TITLES[dataset]}, one seed", heads, lines))
            for label, reading in (("as printed", Reading()), ("nearest", end)):
                of = cells.of(dataset, [reading], range(given.seeds))[0]
                name = best_of(of)[1]
                told = (label, _words(_difference(reading)), str(Spread.of(of.get(name, []))), name)
                nearest.append((TITLES[dataset], f"{AUC['GFlowExplainer'][dataset].mean:.3f}", *told))
    if nearest:
        title = f"The printed and the nearest reading, {given.seeds} seeds"
        tables.insert(0, Table(title, ("dataset", "printed", "", "reading", "AUC", "score"), tuple(nearest)))
    text = f"`{command_line()}`\n\n{join(tables, 'markdown')}"
    write_text(given.out / "readings.md", text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
