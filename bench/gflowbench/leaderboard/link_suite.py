"""The suite of links: tasks whose true paths are known, and what one cell of it is.

Cells are those of the protocol, stored, resumed and computed side by side in the same way; only what is explained, by
whom and how it is scored differs (:mod:`gflowbench.typed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gflowbench.explainers.foreign import PyGAlgorithm
from gflowbench.explainers.registry import named_of_links, names
from gflowbench.protocol.cells import Bench, Contestant, PendingCell
from gflowbench.protocol.evaluation import evaluate
from gflowbench.protocol.plan import Part
from gflowbench.protocol.problems import Problem
from gflowbench.protocol.record import Cell, Record
from gflowbench.suites.halves import seeds_of
from gflowbench.typed.link_peers import create_link_peer, import_link_peer
from gflowbench.typed.link_scores import score_links
from gflowbench.typed.link_truth import LinkTruth
from gflowbench.typed.motif_links import load_motif_links
from gflowbench.typed.user_item_attr import load_user_item_attr
from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.storage.identity import identity_of

TASKS = ("user-item-attr", "motif-links")
DEPTHS = (3, 10)
"""Numbers of first edges among which a true path is looked for, in the tables."""
NOT_LINKS = "they explain nodes and graphs, not links"
_FEW_LINKS = {"user-item-attr": 16, "motif-links": 5}
"""In a first look, every n-th link of a task: eight or nine of them."""
_QUICK: dict[str, dict[str, Any]] = {
    "gflow": {"num_train": 16},
    "gnnexplainer": {"epochs": 30},
    "integrated-gradients": {"steps": 5},
    "gnnshap": {"num_samples": 128},
    "pgexplainer": {"num_train": 16},
}
_SLOW = {
    ("gnnexplainer", "user-item-attr"): Part(seeds=1, every=4),
    ("occlusion", "user-item-attr"): Part(seeds=1),
    ("gnnshap", "user-item-attr"): Part(seeds=1),
}


def link_problems(tasks: Sequence[str] = (), *, fast: bool = False) -> list[Problem]:
    """Names the tasks of links with their GNNs.

    Args:
        tasks: Some tasks; all if not given.
        fast: One GNN a task. Otherwise a task that is generated has three, each on a graph of its own.
    """
    found = []
    for task in tasks or TASKS:
        if one_of("task", task, TASKS) == "user-item-attr":
            found.append(Problem(task, "published", load_user_item_attr, {"suite": "links"}))
            continue
        for seed in seeds_of("development", 1 if fast else 3):
            settings = {"suite": "links", "seed": seed}
            found.append(Problem(task, f"sage {seed}", partial(load_motif_links, seed), settings))
    return found


def link_contestants(words: Sequence[str], own: Sequence[Contestant] = ()) -> tuple[list[Contestant], list[str]]:
    """Takes explainers of links.

    Args:
        words: Names of explainers and groups.
        own: Explainers of the user's; algorithms of PyG are run at edge level.

    Returns:
        The explainers, and the names of those that explain no links.
    """
    chosen, others = named_of_links(words)
    found = [Contestant(name, partial(create_link_peer, name), module=__name__) for name in chosen]
    for one in own:
        if isinstance(one.make(), PyGAlgorithm):
            found.append(replace(one, make=partial(import_link_peer, one.settings["place"])))
        else:
            others.append(one.name)
    return found, others


def evaluate_links(
    problems: Sequence[Problem],
    contestants: Sequence[Contestant],
    others: Sequence[str] = (),
    *,
    seeds: Sequence[int],
    out: Path,
    fast: bool = False,
    report: Callable[[str], None] | None = None,
    jobs: int = 1,
) -> Record:
    """Runs explainers of links on tasks of links, as :func:`gflowbench.protocol.evaluate` does for nodes and graphs.

    Args:
        problems: What :func:`link_problems` names.
        contestants: What :func:`link_contestants` takes.
        others: Explainers that were meant too and explain no links; the record says so.
        seeds, out, report, jobs: As there.
        fast: Whether this is a first look.
    """
    if not contestants:
        raise ConfigError(
            f"None of these explainers explains links: {', '.join(others) or 'none was named'}. "
            f"Choose some of {', '.join(names(links=True))}."
        )
    plan = fast_link_plan if fast else link_plan
    record = evaluate(problems, contestants, seeds=seeds, out=out, report=report, plan=plan, jobs=jobs, bench=LinkBench)
    left = {(problem.gnn, problem.dataset, name): NOT_LINKS for problem in problems for name in others}
    return replace(record, left_out=record.left_out | left)


def link_plan(explainer: str, dataset: str) -> Part:
    """Thins what is slow. Of a generated task the GNNs differ, so one seed of an explainer each will do."""
    usual = Part() if dataset == "user-item-attr" else Part(seeds=1)
    return _SLOW.get((explainer, dataset), usual)


def fast_link_plan(explainer: str, dataset: str) -> Part:
    """Returns a first look: one seed, few links, short fits."""
    return Part(seeds=1, every=_FEW_LINKS.get(dataset, 1), settings=_QUICK.get(explainer, {}))


class LinkBench(Bench):
    """Computes cells of links."""

    def _prepare(self, problem: Problem) -> LinkTruth:  # type: ignore[override]
        task: LinkTruth = problem.load()
        return task

    def identity(self, task: PendingCell) -> dict[str, str]:
        """Names the GNN, every tensor of the graph, the links to fit to and those to explain."""
        links: LinkTruth = self._load(task.problem)
        if task.every not in self._named:
            stores = links.graph.to_dict().items()
            graph = {" ".join(name) if isinstance(name, tuple) else name: value for name, value in stores}
            self._named[task.every] = identity_of(
                links.model, [graph], index=links.test[:, :: task.every], training_links=links.train
            )
        return self._named[task.every]

    def _run(self, task: PendingCell) -> Cell:
        """Fits, explains, scores."""
        links: LinkTruth = self._load(task.problem).every(task.every)
        wanted = task.blank(self.settings)
        peer = task.contestant.make()
        with counted_evaluations(links) as evaluations:
            answers = peer.explain(links, task.seed)
        auc, hits = score_links(answers.scores, links, task.seed)
        metrics = {
            "auc_edge": auc,
            **{f"path_hit_{depth}": hits[depth] for depth in DEPTHS},
            "evaluations": evaluations(),
            "fit_seconds": answers.fit_seconds,
            "milliseconds": 1000 * answers.seconds,
        }
        facts = {"instances": links.test.size(1), "training_links": links.train.size(1), "gnn": task.problem.gnn}
        return replace(wanted, identity=self.identity(task), metrics=metrics, facts=facts)


@contextmanager
def counted_evaluations(task: LinkTruth) -> Iterator[Callable[[], float]]:
    """Counts how often the model is evaluated within a block, whoever evaluates it.

    One evaluation is as many nodes as a link depends on, on average.

    Yields:
        A function that returns the evaluations so far, for each link to explain.
    """
    nodes = [len({end for edge in around for end in task.ends_of(edge)}) for around in task.around]
    rows = 0

    def count(_module: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        nonlocal rows
        given = arguments[0] if arguments else named.get("x", named.get("x_dict"))
        tensors = given.values() if isinstance(given, dict) else [given]
        rows += sum(x.size(0) for x in tensors if isinstance(x, torch.Tensor))

    handle = task.model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield lambda: rows / max(sum(nodes), 1)
    finally:
        handle.remove()
