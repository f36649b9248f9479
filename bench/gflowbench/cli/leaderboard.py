"""``leaderboard``: all explainers on suites of tasks, and one page of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import PROBLEM, one_line_errors, teller

if TYPE_CHECKING:
    from gflowbench.protocol import Contestant


def leaderboard(
    suite: Annotated[
        str,
        typer.Option(
            help="'paper', 'logic', 'molecules', 'compounds', 'real', 'null', 'published', 'links'; several with "
            "commas."
        ),
    ] = "paper",
    explainers: Annotated[
        str, typer.Option(help="Names with commas; 'floors', 'ours', 'peers' and 'all' stand for several.")
    ] = "floors,gflow,peers",
    explainer: Annotated[
        list[str] | None,
        typer.Option(
            "--explainer",
            metavar="MODULE:NAME",
            help="One of your own, or an algorithm of PyG such as torch_geometric.explain:GNNExplainer; repeatable.",
        ),
    ] = None,
    tasks: Annotated[str, typer.Option(help="Some tasks, with commas; all of a suite of which none is named.")] = "",
    gnns: Annotated[str, typer.Option(help="Some GNNs of the suite, with commas; its own if not given.")] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of the explainers, counted from 0.")] = 3,
    data_seeds: Annotated[
        str, typer.Option(help="Seeds of data and GNNs of the suites, with commas; below 100 is the development half.")
    ] = "",
    max_nodes: Annotated[int | None, typer.Option(min=1, help="Bound on the size of explanations.")] = None,
    contexts: Annotated[int, typer.Option(min=0, help="Draws of robust fidelity; 0 leaves it out.")] = 20,
    fast: Annotated[bool, typer.Option("--fast", help="One seed, one GNN a task, few instances.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes side by side, with one thread each.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder of cells; a second run goes on where one stopped.")] = Path(
        "runs/leaderboard"
    ),
    page: Annotated[Path | None, typer.Option(help="File of the page. (default: leaderboard.md in --out)")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    r"""Ranks explainers on suites of tasks and writes one page: ranks with ties, costs, floors first.

    To copy:

      gflowexplainer leaderboard --suite paper,logic,real,links --fast --jobs 2
      gflowexplainer leaderboard --suite logic --tasks or,and-far \
          --explainers floors,gflow --explainer my_module:MyExplainer
    """
    with one_line_errors(resumable=True):
        from gflowbench.explainers.registry import named, names
        from gflowbench.leaderboard import SUITES, problems_of, tasks_of
        from gflowbench.leaderboard import page as write_page
        from gflowbench.metrics import MetricSettings
        from gflowbench.protocol import Contestant, ProtocolSettings, evaluate, plan
        from gflowexplainer.errors import one_of
        from gflowexplainer.storage.files import write_text

        suites, wanted, words = options.listed(suite), options.listed(tasks), options.listed(explainers)
        for name in suites:
            one_of("suite", name, SUITES)
        own = [_own(place) for place in explainer or []]
        only_of_links = {*names(links=True)} - {*names()} if "links" in suites else set()
        settings = ProtocolSettings(metrics=MetricSettings(num_contexts=contexts), max_nodes=max_nodes)
        records = {}
        known = tuple(task for name in suites for task in tasks_of(name))
        for task in wanted:
            one_of("task", task, known)
        for name in suites:
            some = [task for task in wanted if task in tasks_of(name)]
            problems = problems_of(
                name,
                out,
                tasks=some,
                gnns=options.listed(gnns),
                seeds=[int(seed) for seed in options.listed(data_seeds)],
                fast=fast,
            )
            links = name == "links"
            chosen = named([word for word in words if links or word not in only_of_links], links=links)
            records[name] = evaluate(
                problems,
                [*map(Contestant.named, chosen), *own],
                seeds=range(seeds),
                out=out / name,
                settings=settings,
                report=None if quiet else teller(quiet),
                plan=(plan.fast if name in ("paper", "links") else plan.quick) if fast else plan.suite,
                jobs=jobs,
            )
            records[name].write(out / name)
        notes = ["A first look: one seed, few instances of each task."] if fast else []
        target = out / "leaderboard.md" if page is None else page
        write_text(target, write_page(records, notes=notes))
        typer.echo(f"Written: {target}")
        if any(cell.status == "failed" for record in records.values() for cell in record.cells):
            raise typer.Exit(PROBLEM)


def _own(place: str) -> Contestant:
    """Takes an explainer of the user's; the text of its module decides whether stored cells are its."""
    import hashlib
    import sys

    from gflowbench.explainers.foreign import PyGAlgorithm, import_explainer
    from gflowbench.explainers.registry import NO_LINKS, names
    from gflowbench.protocol import Contestant
    from gflowexplainer.errors import ConfigError

    made = import_explainer(place)
    if made.name in names():
        raise ConfigError(f"{place!r} is called '{made.name}' as a registered explainer is. Give it another name.")
    file = getattr(sys.modules.get(place.partition(":")[0]), "__file__", None)
    digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12] if file else ""
    why = "" if isinstance(made, PyGAlgorithm) else NO_LINKS
    return Contestant(made.name, partial(import_explainer, place), {"place": place, "source": digest}, why)
