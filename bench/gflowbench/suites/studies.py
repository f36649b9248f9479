"""Measures counterfactuals and catalogues: ``python -m gflowbench.suites.studies counterfactuals tree-cycles``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from gflowbench.protocol.problems import problem
from gflowbench.suites.counterfactual_peers import EdgeProblem, cf_gnn_explainer, exhaustive_minimum, greedy_removal
from gflowbench.suites.logic_suite import NAMES as LOGIC
from gflowbench.suites.pieces import palette_of
from gflowbench.suites.run import Cell, prepare
from gflowbench.suites.task import Combination
from gflowexplainer import GFlowExplainer, motifs
from gflowexplainer.errors import GFlowExplainerError
from gflowexplainer.storage.files import dumps, write_json

_HOPS = 4
"""Three layers, and one step more as degrees are counted."""
_GREEDY = 300
"""Edges up to which greedy removal is run."""
_TRIED = 400
"""Sets of edges up to which the truth is searched exhaustively."""


def subject(name: str, number: int, out: Path) -> tuple[Any, Any, Any, dict[str, str], Any]:
    """Returns GNN, data, index, configuration and task of a published dataset or a task of the logic suite."""
    if name in LOGIC:
        cell = Cell("logic", name, "gin", 0, "ours", None, number)
        found = prepare(cell, out)
        combinations = None if name != "absence" else [Combination.ALL, Combination.NONE]
        index = found.task.instances(combinations)[:number]
        if found.task.level == "graph":
            return (
                found.model,
                [found.task.graphs[i] for i in index],
                None,
                found.task.model_config,
                (found.task, index),
            )
        return found.model, found.task.graphs[0], index, found.task.model_config, (found.task, index)
    loaded = problem(name, instances="all-roles").load()
    level = loaded.benchmark.task
    config = {"mode": "multiclass_classification", "task_level": level, "return_type": "raw"}
    number = min(number, len(loaded.index))
    index = loaded.index[torch.linspace(0, len(loaded.index) - 1, number).long()].tolist()
    if level == "graph":
        return loaded.model, [loaded.benchmark.graphs[i] for i in index], None, config, None
    return loaded.model, loaded.benchmark.graphs[0], index, config, None


def counterfactuals(name: str, number: int, out: Path) -> dict[str, Any]:
    """Measures validity, size and cost of counterfactuals by edges, beside other ways, and of ours by nodes."""
    model, data, index, config, _ = subject(name, number, out)
    explainer = GFlowExplainer(seed=0).fit(model, data, index, model_config=config, progress=False)
    explanations = explainer.explain(model, data, index, model_config=config, progress=False)
    sizes: dict[str, list[int | None]] = {k: [] for k in ("ours", "greedy", "cf-gnnexplainer", "first subgraph")}
    minimum: list[int | None] = []
    nodes: list[Any] = []
    evaluations: list[int] = []
    seconds = dict.fromkeys(sizes, 0.0)
    for place, e in enumerate(explanations):
        graph = data[place] if index is None else data
        one = (
            EdgeProblem(model, graph.x, graph.edge_index)
            if index is None
            else EdgeProblem.around(model, graph.x, graph.edge_index, index[place], _HOPS)
        )
        whole = EdgeProblem(model, graph.x, graph.edge_index, None if index is None else index[place])
        started = time.perf_counter()
        found = e.counterfactual(by="edges")
        seconds["ours"] += time.perf_counter() - started
        sizes["ours"].append(None if found is None else len(found) if whole.changes(found.edges) else -1)
        started = time.perf_counter()
        greedy = greedy_removal(one) if len(one.pairs) <= _GREEDY else None
        seconds["greedy"] += time.perf_counter() - started
        sizes["greedy"].append(None if greedy is None else len(greedy))
        started = time.perf_counter()
        learned = cf_gnn_explainer(one)
        seconds["cf-gnnexplainer"] += time.perf_counter() - started
        sizes["cf-gnnexplainer"].append(None if learned is None else len(learned))
        inside = set(e.subgraphs[0].nodes)
        first = [pair for pair in whole.pairs if set(pair) <= inside]
        sizes["first subgraph"].append(len(first) if whole.changes(first) else None)
        minimum.append(exhaustive_minimum(one, _TRIED))
        by_nodes = e.counterfactual()
        nodes.append(None if by_nodes is None else by_nodes.to_dict())
        evaluations += [] if by_nodes is None else [by_nodes.evaluations]
    return {
        "name": name,
        "instances": len(explanations),
        "edges": {way: _row(values, minimum, seconds[way]) for way, values in sizes.items()},
        "exhaustive": {
            "known": sum(m is not None and m > 0 for m in minimum),
            "mean": _mean([m for m in minimum if m]),
        },
        "nodes": {
            "found": sum(n is not None for n in nodes),
            "minimal": sum(n is not None and n["minimal"] for n in nodes),
            "mean size": _mean([len(n["nodes"]) for n in nodes if n]),
            "evaluations, median": sorted(evaluations)[len(evaluations) // 2] if evaluations else None,
            "evaluations, most": max(evaluations, default=None),
        },
    }


def _row(values: Sequence[int | None], minimum: Sequence[int | None], seconds: float) -> dict[str, Any]:
    known = [(v, m) for v, m in zip(values, minimum, strict=True) if m]
    both = [(v, m) for v, m in known if v is not None and v > 0]
    return {
        "found": sum(v is not None and v > 0 for v in values),
        "invalid": sum(v == -1 for v in values),
        "mean size": _mean([v for v in values if v is not None and v > 0]),
        "found where exhaustive search does": f"{len(both)} of {len(known)}",
        "size over minimum": sum(v for v, _ in both) / sum(m for _, m in both) if both else None,
        "seconds each": seconds / max(len(values), 1),
    }


def catalogue(name: str, number: int, out: Path) -> dict[str, Any]:
    """Makes the catalogue of a logic task on half of the graphs, and checks its rules on the other half."""
    cell = Cell("logic", name, "gin", 0, "ours", None, number)
    found = prepare(cell, out)
    task = found.task
    index = task.splits["test"].tolist()[:number]
    graphs, config = [task.graphs[i] for i in index], task.model_config
    explainer = GFlowExplainer(seed=0).fit(found.model, graphs, model_config=config, progress=False)
    explanations = explainer.explain(found.model, graphs, model_config=config, progress=False)
    half = len(explanations) // 2
    started = time.perf_counter()
    made = motifs(explanations[:half])
    seconds = time.perf_counter() - started
    from gflowexplainer.catalogue.canonical_form import canonical_form

    palette = palette_of(0)
    truths = {
        key: canonical_form([str(c) for c in motif.labels], {(int(u), int(v)): "" for u, v in motif.edges})
        for key, motif in (("A", palette.first), ("B", palette.second))
    }
    names = {form: key for key, form in truths.items()}
    return {
        "name": name,
        "explanations": half,
        "seconds": seconds,
        "classes": {
            str(label): [
                f"{names.get(m.form, f'{len(m)} nodes')}: score {m.score:.2f}, support {m.support:.2f}, "
                f"present {m.present:.2f}, elsewhere {m.elsewhere if m.elsewhere is None else round(m.elsewhere, 2)}"
                for m in entries
            ]
            for label, entries in made.by_class.items()
        },
        "rules": [str(rule) for rule in made.rules],
        "held out": [str(rule) for rule in made.check_rules(explanations[half:])],
        "decision tree": _tree(made, explanations, half),
    }


def _tree(made: Any, explanations: Any, half: int) -> float | None:
    """Returns the held-out accuracy of a decision tree on the presence of the same motifs."""
    from sklearn.tree import DecisionTreeClassifier

    if not made.motifs:
        return None
    rows = [[row[m.number] for m in made.motifs] for row in made.presence(explanations)]
    classes = [e.explained_class for e in explanations]
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(rows[:half], classes[:half])
    return float(tree.score(rows[half:], classes[half:]))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what the arguments ask for and prints it as JSON; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m gflowbench.suites.studies", description=__doc__)
    parser.add_argument("what", choices=("counterfactuals", "catalogue"))
    parser.add_argument("names", nargs="+", help="published datasets, or tasks of the logic suite")
    parser.add_argument("--number", type=int, default=100, help="instances of each")
    parser.add_argument("--out", type=Path, default=Path("results/suites"), help="folder of results and GNNs")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    measure = counterfactuals if options.what == "counterfactuals" else catalogue
    try:
        for name in options.names:
            found = measure(name, options.number, options.out)
            write_json(options.out / f"{options.what}-{name}.json", found)
            print(dumps(found, indent=1), flush=True)
    except GFlowExplainerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
