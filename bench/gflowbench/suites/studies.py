"""Measures counterfactuals and catalogues: ``python -m gflowbench.suites.studies counterfactuals tree-cycles``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from gflowbench.protocol.problems import problem
from gflowbench.suites.catalogue_study import measure_catalogue
from gflowbench.suites.counterfactual_peers import EdgeProblem, cf_gnn_explainer, exhaustive_minimum, greedy_removal
from gflowbench.suites.logic_suite import NAMES as LOGIC
from gflowbench.suites.published import NAMES as DATASETS
from gflowbench.suites.run import Cell, prepare
from gflowbench.suites.task import Combination
from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import GFlowExplainerError
from gflowexplainer.report.tables import Table
from gflowexplainer.storage.files import dumps, read_json, write_json, write_text

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


def absence(name: str, number: int, out: Path) -> dict[str, Any]:
    """Compares the counterfactuals of graphs that have the motif, in a task of its absence, with the motif itself.

    One node less breaks a motif, so the smallest counterfactual is one of its nodes. All that were found of this size
    together, the counterfactual and its alternatives, are the nodes that the GNN needs, as exhaustive search finds
    them; these are the motif where the GNN needs all of it.
    """
    found = prepare(Cell("logic", name, "gin", 0, "ours", None, number), out)
    task = found.task
    index = task.instances([Combination.ALL])[:number]
    graphs, config = [task.graphs[i] for i in index], task.model_config
    explainer = GFlowExplainer(seed=0).fit(found.model, graphs, model_config=config, progress=False)
    rows: list[dict[str, Any]] = []
    for i, e in zip(index, explainer.explain(found.model, graphs, model_config=config, progress=False), strict=True):
        motif = set(task.truths[i].parts[0])
        change = e.counterfactual(exhaustive=2000)
        if change is None:
            rows.append({"found": False})
            continue
        every, needed = set(change.together), _needed_nodes(found.model, task.graphs[i])
        rows.append(
            {
                "found": True,
                "size": len(change),
                "inside": set(change.nodes) <= motif,
                "alternatives inside": every <= motif,
                "together the motif": every == motif,
                "minimal": change.minimal,
                "as exhaustive search": every == needed,
                "exhaustive search is the motif": needed == motif,
                "without the motif": _class_without(found.model, task.graphs[i], motif) == change.predicted_class,
            }
        )
    known = [row for row in rows if row["found"]]
    return {
        "name": name,
        "instances": len(rows),
        "found": len(known),
        "mean size": _mean([row["size"] for row in known]),
        **{
            key: sum(row[key] for row in known)
            for key in (
                "inside",
                "alternatives inside",
                "together the motif",
                "minimal",
                "as exhaustive search",
                "exhaustive search is the motif",
                "without the motif",
            )
        },
    }


def _needed_nodes(model: Any, graph: Data) -> set[int]:
    """Finds the nodes without any one of which the class changes, by calling the GNN on what is left."""
    whole = _class_without(model, graph, set())
    return {node for node in range(graph.x.size(0)) if _class_without(model, graph, {node}) != whole}


@torch.no_grad()
def _class_without(model: Any, graph: Data, gone: set[int]) -> int:
    """Returns the class of a graph without some of its nodes."""
    rest = graph.subgraph(torch.tensor([node for node in range(graph.x.size(0)) if node not in gone]))
    return int(model(rest.x, rest.edge_index, torch.zeros(rest.x.size(0), dtype=torch.long)).argmax())


def write_tables(out: Path) -> Path:
    """Writes what was measured as tables, with the commands that measure it again."""
    changes = [read_json(path) for path in sorted(out.glob("cells/counterfactuals-*.json"))]
    ways = Table(
        "Counterfactuals by edges",
        (
            "dataset",
            "way",
            "found",
            "not valid",
            "mean size",
            "where exhaustive search finds",
            "over minimum",
            "seconds",
        ),
        tuple(
            (
                found["name"] if way == "ours" else "",
                way,
                f"{row['found']} of {found['instances']}",
                str(row["invalid"]),
                number_of(row["mean size"], 2),
                row["found where exhaustive search does"],
                number_of(row["size over minimum"], 2),
                number_of(row["seconds each"], 2),
            )
            for found in changes
            for way, row in found["edges"].items()
        ),
    )
    nodes = Table(
        "Counterfactuals by nodes (ours)",
        ("dataset", "found", "shown to be minimal", "mean size", "evaluations, median", "most"),
        tuple(
            (
                found["name"],
                f"{found['nodes']['found']} of {found['instances']}",
                str(found["nodes"]["minimal"]),
                number_of(found["nodes"]["mean size"], 2),
                str(found["nodes"]["evaluations, median"]),
                str(found["nodes"]["evaluations, most"]),
            )
            for found in changes
        ),
    )
    absent = [read_json(path) for path in sorted(out.glob("cells/absence-*.json"))]
    motif = Table(
        "Graphs with the motif, in the task of its absence",
        (
            "graphs",
            "found",
            "mean size",
            "inside the motif, with all alternatives",
            "together the motif",
            "together what exhaustive search finds",
            "exhaustive search finds the motif",
            "class changes without the whole motif",
        ),
        tuple(
            (
                str(found["instances"]),
                str(found["found"]),
                number_of(found["mean size"], 2),
                *(
                    str(found[key])
                    for key in (
                        "alternatives inside",
                        "together the motif",
                        "as exhaustive search",
                        "exhaustive search is the motif",
                        "without the motif",
                    )
                ),
            )
            for found in absent
        ),
    )
    made = [read_json(path) for path in sorted(out.glob("cells/catalogue-*.json"))]
    order = {name: place for place, name in enumerate((*DATASETS, *LOGIC))}
    made.sort(key=lambda found: order.get(found["name"], 99))
    names = ("task", "explanations", "class", "true motif first", "its place", "support", "truth", "rules", "tree")
    catalogues = Table("Catalogues", names, tuple(row for found in made for row in _catalogue_rows(found)))
    judged = [entry for found in made for entry in found["classes"] if entry["judged"]]
    near = [e for e in judged if e["right"] and abs(e["support"] - e["truth"]) <= 0.05 + 1e-9]
    said = (
        f"The true motif is first in {sum(e['right'] for e in judged)} of {len(judged)} classes that have one, "
        f"its support within .05 of the truth in {len(near)}."
    )
    text = "\n\n".join(
        ["# Studies", "Commands: `python -m gflowbench.suites.studies WHAT NAMES --number N`, then `tables`.", said]
        + [table.to_markdown() for table in (ways, nodes, motif, catalogues) if table.rows]
    )
    write_text(out / "summary.md", text.rstrip() + "\n")
    return out / "summary.md"


def _catalogue_rows(found: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for place, entry in enumerate(e for e in found["classes"] if e["judged"]):
        rows.append(
            (
                "" if place else found["name"],
                "" if place else str(found["explanations"]),
                str(entry["class"]),
                "yes" if entry["right"] else "no",
                "-" if entry["place"] is None else str(entry["place"]),
                number_of(entry["support"], 2),
                number_of(entry["truth"], 2),
                "" if place else number_of(found["rule accuracy"], 2),
                "" if place else number_of(found["tree accuracy"], 2),
            )
        )
    return rows


def number_of(value: float | None, digits: int) -> str:
    """Writes a number for a table."""
    return "-" if value is None else f"{value:.{digits}f}"


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what the arguments ask for and prints it as JSON; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m gflowbench.suites.studies", description=__doc__)
    parser.add_argument("what", choices=(*MEASURES, "tables"))
    parser.add_argument("names", nargs="*", help="published datasets, or tasks of the logic suite")
    parser.add_argument("--number", type=int, default=100, help="instances of each")
    parser.add_argument("--seed", type=int, default=0, help="seed of catalogues; each into an --out of its own")
    parser.add_argument("--out", type=Path, default=Path("results/studies"), help="folder of results and GNNs")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    try:
        for name in options.names:
            seeded = {"seed": options.seed} if options.what == "catalogue" else {}
            found = MEASURES[options.what](name, options.number, options.out, **seeded)
            write_json(options.out / "cells" / f"{options.what}-{name}.json", found)
            print(dumps(found, indent=1), flush=True)
        if options.what == "tables":
            print(write_tables(options.out))
    except GFlowExplainerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


MEASURES: dict[str, Any] = {"counterfactuals": counterfactuals, "absence": absence, "catalogue": measure_catalogue}

if __name__ == "__main__":
    sys.exit(main())
