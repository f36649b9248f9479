"""Is the right motif first in a catalogue? Asked where the truth is known: logic tasks, and the paper's datasets."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from gflowbench.protocol.problems import problem
from gflowbench.suites.logic_suite import NAMES as LOGIC
from gflowbench.suites.run import Cell, prepare
from gflowbench.suites.task import TaskTruth
from gflowexplainer import GFlowExplainer, motifs
from gflowexplainer.catalogue.canonical_form import CanonicalForm

NodeSets = list[tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class CatalogueTask:
    """Predictions to make a catalogue of, and what is true of them.

    Attributes:
        model: The GNN.
        data: One graph, or the graphs.
        index: The nodes; ``None`` for graphs.
        config: Mode, level and return type.
        truths: The motifs that decide each prediction, as node sets; empty where nothing does.
    """

    model: nn.Module
    data: Data | list[Data]
    index: list[int] | None
    config: dict[str, str]
    truths: list[NodeSets]


def catalogue_task(name: str, number: int, out: Path, seed: int = 0) -> CatalogueTask:
    """Makes the task of a dataset or of a logic task, with about ``number`` predictions, half of each kind."""
    if name in LOGIC:
        found = prepare(Cell("logic", name, "gin", seed, "ours", None, number), out)
        task = found.task
        index = _half_of_each([i for i in task.splits["test"].tolist() if i in task.truths], task.truths, number)
        truths = [list(task.truths[i].parts) for i in index]
        if task.level == "graph":
            return CatalogueTask(found.model, [task.graphs[i] for i in index], None, task.model_config, truths)
        return CatalogueTask(found.model, task.graphs[0], index, task.model_config, truths)
    loaded = problem(name, instances="all-roles").load()
    level = loaded.benchmark.task
    config = {"mode": "multiclass_classification", "task_level": level, "return_type": "raw"}
    if level == "graph":
        # Mutagens and others: a motif counts by how much more often its class has it.
        every = torch.linspace(0, len(loaded.benchmark.graphs) - 1, number).long().tolist()
        graphs = [loaded.benchmark.graphs[i] for i in every]
        return CatalogueTask(loaded.model, graphs, None, config, [_motifs(graph) for graph in graphs])
    graph = loaded.benchmark.graphs[0]
    inside = loaded.index[torch.linspace(0, len(loaded.index) - 1, number // 2).long()]
    base = torch.nonzero(graph.motif_id < 0).flatten()
    index = torch.cat([inside, base[torch.linspace(0, len(base) - 1, number - len(inside)).long()]]).unique().tolist()
    own = {int(m): tuple(torch.nonzero(graph.motif_id == m).flatten().tolist()) for m in graph.motif_id.unique()}
    truths = [[own[int(graph.motif_id[i])]] if graph.motif_id[i] >= 0 else [] for i in index]
    return CatalogueTask(loaded.model, graph, index, config, truths)


def _half_of_each(index: list[int], truths: Mapping[int, TaskTruth], number: int) -> list[int]:
    """Picks evenly from the test set, half with a truth and half without where there are both.

    Neighbouring nodes of a node task lie in one component and share what is near them.
    """
    kinds = [[i for i in index if bool(truths[i].parts) == decided] for decided in (True, False)]
    kinds = [kind for kind in kinds if kind]
    each = number // len(kinds)
    return sorted(i for kind in kinds for i in _evenly(kind, min(each, len(kind))))


def _evenly(values: Sequence[int], number: int) -> list[int]:
    return [values[place] for place in torch.linspace(0, len(values) - 1, number).long().tolist()]


def _motifs(graph: Data) -> NodeSets:
    numbers = [int(m) for m in graph.motif_id.unique() if m >= 0]
    return [tuple(torch.nonzero(graph.motif_id == m).flatten().tolist()) for m in numbers]


def measure_catalogue(name: str, number: int, out: Path, seed: int = 0) -> dict[str, Any]:
    """Makes a catalogue, compares the first motif of each class with the truth, and checks its rules.

    A class is judged where at least half of its predictions have a truth. Its first motif is right if it is one of the
    true ones; its support is compared with the share of the class's predictions that have this truth. Rules are those
    of a catalogue of the first half, and a decision tree of depth 3 knows the same motifs' presence; both are measured
    on the other half. The seed is that of a logic task, of its GNN and of the explainer.
    """
    task = catalogue_task(name, number, out, seed)
    explainer = GFlowExplainer(seed=seed)
    explainer.fit(task.model, task.data, task.index, model_config=task.config, progress=False)
    found = explainer.explain(task.model, task.data, task.index, model_config=task.config, progress=False)
    for one in found:
        _ = one.subgraphs, one.known_parts
    started = time.perf_counter()
    made = motifs(found)
    seconds = time.perf_counter() - started
    labels = [one.explained_class for one in found]
    forms = [[made.label_graph(k, one).form(part) for part in task.truths[k]] for k, one in enumerate(found)]
    half = torch.randperm(len(found), generator=torch.Generator().manual_seed(0)).tolist()
    learned, held = ([found[k] for k in sorted(half[i::2])] for i in range(2))
    learner = motifs(learned)
    return {
        "name": name,
        "explanations": len(found),
        "seconds": seconds,
        "classes": [_judged(label, made.by_class[label], labels, forms) for label in made.by_class],
        "rules": [
            {"rule": str(rule), "covers": rule.covers, "right": rule.right} for rule in learner.check_rules(held)
        ],
        "rule accuracy": _rule_accuracy(learner, held),
        "tree accuracy": _tree(learner, learned, held),
    }


def _judged(
    label: int | None, found: Sequence[Any], labels: Sequence[int | None], forms: Sequence[Sequence[CanonicalForm]]
) -> dict[str, Any]:
    own = [set(forms[k]) for k, other in enumerate(labels) if other == label]
    count = Counter(form for truth in own for form in truth)
    first = found[0] if found else None
    right = first is not None and first.form in count
    return {
        "class": label,
        "predictions": len(own),
        "judged": sum(map(bool, own)) >= len(own) / 2,
        "right": right,
        "place": next((place + 1 for place, motif in enumerate(found) if motif.form in count), None),
        "nodes": None if first is None else len(first),
        "support": None if first is None else first.support,
        "truth": count[first.form] / len(own) if first is not None and right else None,
    }


def _rule_accuracy(made: Any, explanations: Sequence[Any]) -> float | None:
    """Returns how often the class whose rule fires with the most accuracy is the model's, on other explanations."""
    if not made.rules:
        return None
    presence = made.presence(explanations)
    classes = [one.explained_class for one in explanations]
    default = Counter(classes).most_common(1)[0][0]
    ranked = sorted(made.rules, key=lambda rule: -rule.right)
    said = [next((r.label for r in ranked if r.fulfilled(row)), default) for row in presence]
    return sum(a == b for a, b in zip(said, classes, strict=True)) / len(classes)


def _tree(made: Any, learned: Sequence[Any], held: Sequence[Any]) -> float | None:
    from sklearn.tree import DecisionTreeClassifier

    if not made.motifs:
        return None
    rows, other = ([[row[m.number] for m in made.motifs] for row in made.presence(part)] for part in (learned, held))
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(rows, [e.explained_class for e in learned])
    return float(tree.score(other, [e.explained_class for e in held]))
