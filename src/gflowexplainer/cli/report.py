"""``report``: writes the report of a run again, beside others if there are any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import one_line_errors, teller

if TYPE_CHECKING:
    from gflowexplainer.report import Case
    from gflowexplainer.report.run_folder import Run


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of explain, fit, evaluate or demo.")],
    beside: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="Other runs of the same instances, to be compared with it."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write it. (default: report.html in RUN)")] = None,
    title: Annotated[str | None, typer.Option(help="What to write above it.")] = None,
    figures: Annotated[bool, typer.Option("--figures", help="Write PNG and SVG figures too.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Builds report.html again from what a run has stored, compared with other runs if there are any.

    To copy:

      gflowexplainer explain --dataset karate --index 28 --out runs/one
      gflowexplainer explain --dataset karate --index 28 --seed 1 --out runs/other
      gflowexplainer report runs/one
      gflowexplainer report runs/one runs/other --out both.html
    """
    with one_line_errors():
        from gflowexplainer.errors import ConfigError
        from gflowexplainer.report.run_folder import Run, write_run_report

        shown = Run.open(run)
        cases = shown.cases()
        if not (cases or shown.curves() or shown.tables()):
            raise ConfigError(
                f"The run '{run}' of '{shown.config['kind']}' holds nothing to show yet. Let it finish first: "
                f"{shown.config['command']}"
            )
        others = [Run.open(folder) for folder in beside or []]
        shown_cases = _beside(cases, others)
        if others and not any(case.beside for case in shown_cases):
            named = ", ".join(str(other.folder) for other in others)
            raise ConfigError(
                f"No instance of '{run}' is explained in {named} too, on the same graph. "
                "Compare runs of the same instances."
            )
        if out is not None and out.is_dir():
            raise ConfigError(f"'--out' names the folder '{out}'. Name a file, as {out / 'report.html'}.")
        path = write_run_report(shown, shown_cases, out, title)
        if figures:
            from gflowexplainer.report import write_figures

            folder = path.parent / "figures"
            if out is None:
                shown.files.claim("figures")
            written = write_figures(shown.report(cases=shown_cases), folder)
            if out is None:
                shown.files.record(*(f"figures/{one.name}" for one in written))
            teller(quiet)(f"Figures: {folder}")
        typer.echo(str(path))


def _beside(cases: Sequence[Case], runs: Sequence[Run]) -> list[Case]:
    """Adds to each case the explanations that other runs found for the same instance of the same graph."""
    import torch

    found = list(cases)
    for number, run in enumerate(runs):
        taken = {name for case in found for name in (*case.others, *case.beside)}
        name = run.name if run.name not in taken else f"{run.name} ({number + 2})"
        for place, case in enumerate(found):
            if not run.has(case.name):
                continue
            other = run.case(case.name).explanation
            mine = case.explanation
            if torch.equal(other.edge_index, mine.edge_index) and torch.equal(other.x, mine.x):
                found[place] = replace(case, beside={**case.beside, name: other})
    return found
