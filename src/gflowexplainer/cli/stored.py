"""``report`` and ``motifs``: what is made of the explanations that a run has stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import one_line_errors, print_json, teller

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
        from gflowexplainer.cli.run import add_figures
        from gflowexplainer.errors import ConfigError
        from gflowexplainer.report import write_figures
        from gflowexplainer.report.run_folder import Run, write_run_report

        shown = Run.open(run)
        cases = shown.cases()
        if not (cases or shown.curves() or shown.tables()):
            raise ConfigError(
                f"The run '{run}' of '{shown.config['kind']}' holds nothing to show yet. Let it finish first: "
                f"{shown.config['command']}"
            )
        others = [Run.open(folder) for folder in beside or []]
        compared = _beside(cases, others)
        if others and not any(case.beside for case in compared):
            named = ", ".join(str(other.folder) for other in others)
            raise ConfigError(
                f"No instance of '{run}' is explained in {named} too, on the same graph. "
                "Compare runs of the same instances."
            )
        if out is not None and out.is_dir():
            raise ConfigError(f"'--out' names the folder '{out}'. Name a file, as {out / 'report.html'}.")
        path = write_run_report(shown, compared, out, title)
        if figures:
            if out is None:
                add_figures(shown, compared)
            else:
                write_figures(shown.report(cases=compared), path.parent / "figures")
            teller(quiet)(f"Figures: {path.parent / 'figures'}")
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
            other, mine = run.case(case.name).explanation, case.explanation
            if torch.equal(other.edge_index, mine.edge_index) and torch.equal(other.x, mine.x):
                found[place] = replace(case, beside={**case.beside, name: other})
    return found


def motifs(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of explain.")],
    min_support: Annotated[
        float, typer.Option(min=0, max=1, help="Share of a class's explanations that must show a motif.")
    ] = 0.05,
    top: Annotated[int, typer.Option(min=1, help="Motifs of a class at most.")] = 5,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Finds motifs that recur over the explanations of a run, and rules of their presence for every class.

    Writes motifs.json and motifs.html, a catalogue with pictures, into the folder of the run.

    To copy:

      gflowexplainer motifs runs/mine
      gflowexplainer motifs runs/mine --min-support 0.1 --json
    """
    with one_line_errors():
        from gflowexplainer import motifs as find_motifs
        from gflowexplainer.drawing.motifs import motif_page
        from gflowexplainer.errors import ConfigError
        from gflowexplainer.report.run_folder import Run
        from gflowexplainer.storage.files import dumps

        opened = Run.open(run)
        cases = opened.cases()
        if not cases:
            raise ConfigError(f"The run '{run}' holds no explanations. Explain some instances first.")
        teller(quiet)(f"Comparing {len(cases)} explanations")
        labels = [case.labels for case in cases if case.labels is not None]
        found = find_motifs(
            [case.explanation for case in cases],
            labels=labels if len(labels) == len(cases) else None,
            min_support=min_support,
            top=top,
        )
        page = motif_page(found, f"What the model of {opened.name} looks at", cases[0].classes)
        opened.write("motifs.json", dumps(found.to_dict(), indent=1))
        opened.write("motifs.html", page)
        if as_json:
            print_json(found.to_dict())
        else:
            typer.echo(str(found))
            typer.echo(f"Catalogue: {opened.folder / 'motifs.html'}")
