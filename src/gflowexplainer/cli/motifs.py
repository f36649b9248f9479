"""``motifs``: what the model of a run looks at over all its explanations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import one_line_errors, teller


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
        from gflowexplainer.errors import ConfigError
        from gflowexplainer.report.motif_page import motif_page
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
            typer.echo(dumps(found.to_dict(), indent=1))
        else:
            typer.echo(str(found))
            typer.echo(f"Catalogue: {opened.folder / 'motifs.html'}")
