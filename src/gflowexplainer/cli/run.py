"""A command in the folder of its run: makes explainers, fits, explains what is not stored yet, shows the results."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import typer

from gflowexplainer import GFlowExplainer
from gflowexplainer.cli.console import print_json, print_table, shows_bars, tell_always, teller
from gflowexplainer.cli.inputs import Loaded, read_inputs, untrained
from gflowexplainer.cli.options import How, Inputs, Output, Shown
from gflowexplainer.cli.results import changes, summary, table, warnings
from gflowexplainer.errors import ConfigError
from gflowexplainer.report import write_figures
from gflowexplainer.report.run_folder import FITTED, REPORT, Run, write_run_report
from gflowexplainer.storage.identity import content_digest, settings_fingerprint
from gflowexplainer.storage.lock import folder_lock

AT_ONCE = (16, 64)
"""Instances that are explained between two looks at the disk, without and with a fit."""
MOST_CERTIFIED = 20
"""Instances up to which certificates, and what would change a prediction, are computed by default."""


def make_explainer(how: How, inputs: Inputs) -> GFlowExplainer:
    """Makes an explainer with the settings that the options name."""
    relation: Any = None if inputs.edge_type is None else tuple(inputs.edge_type.split(","))
    own: dict[str, Any] = {"node_type": inputs.node_type, "edge_type": relation, "remove_link": not inputs.keep_link}
    try:
        return GFlowExplainer(**own, **how.settings())
    except TypeError as error:  # a name that is taken by an option
        raise ConfigError(f"'--set' cannot say that ({error}).") from error


def load_explainer(folder: Path, how: How, inputs: Inputs, fit: bool) -> GFlowExplainer:
    """Loads a fitted explainer, of which only the number of samples can still be chosen."""
    given = {"--preset": how.preset, "--set": how.setting, "--max-nodes": how.max_nodes, "--seed": how.seed}
    given |= {"--num-hops": how.num_hops, "--keep-link": inputs.keep_link or None, "--fit": fit}
    for name, value in given.items():
        if value:
            raise ConfigError(f"'{name}' cannot change an explainer that is fitted. Leave it out, or --explainer.")
    algorithm = GFlowExplainer.load(folder)
    algorithm.num_samples = how.samples or algorithm.num_samples
    return algorithm


@contextmanager
def open_run(
    kind: str, output: Output, loaded: Loaded, settings: dict[str, Any], given: dict[str, Any]
) -> Iterator[Run]:
    """Opens the folder of a run for writing; without a name, other options get a folder of its own.

    Args:
        kind: Name of the command.
        output: Where results go.
        loaded: What is explained.
        settings: Those of the explainer.
        given: Options that decide the results, by name.
    """
    words = {k: str(v) if isinstance(v, Path) else v for k, v in given.items() if v not in (None, False, [])}
    fitted = content_digest((given["explainer"] / FITTED[0]).read_bytes()) if given.get("explainer") else None
    identity = loaded.identity(explainer=fitted, settings=settings)
    short = settings_fingerprint({"given": words, "identity": identity})[:8]
    folder = Path("runs") / f"{kind}-{short}" if output.out is None else output.out
    with folder_lock(folder):
        yield Run.begin(folder, kind, words, identity=identity, overwrite=output.overwrite, settings=settings)


def fit_in_folder(algorithm: GFlowExplainer, loaded: Loaded, folder: Path, quiet: bool, fabric: Any = None) -> None:
    """Fits an explainer in a folder; a person sees a bar, a file gets a line now and then.

    Args:
        algorithm: The explainer.
        loaded: What to fit it to.
        folder: Where checkpoints and the explainer go.
        quiet: Whether to show nothing.
        fabric: Of the processes that train together; ``None`` for this one alone.
    """
    tell, bars = teller(quiet), shows_bars(quiet)

    def callback(trainer: Any, record: Any) -> None:
        total = trainer.num_iterations
        if not bars and (record["iteration"] + 1) * 10 // total > record["iteration"] * 10 // total:
            tell(f"update {record['iteration'] + 1} of {total}: loss {record['loss']:.4g}")

    where: dict[str, Any] = {"folder": folder, "progress": bars, "callback": callback, "fabric": fabric}
    algorithm.fit(loaded.model, loaded.data, **loaded.arguments(), **where)


def explain_in_folder(kind: str, inputs: Inputs, how: How, output: Output, shown: Shown) -> None:
    """Explains what the options name, stores it in the folder of a run, and prints the results."""
    tell, quiet, fitted = teller(output.quiet), output.quiet, shown.explainer is not None
    if shown.explainer is None:
        algorithm = make_explainer(how, inputs)
    else:
        algorithm = load_explainer(shown.explainer, how, inputs, shown.fit)
    loaded = read_inputs(inputs, device=how.device, seed=how.seed or 0, progress=shows_bars(quiet), fitted=fitted)
    doubts = untrained(inputs, loaded.model)
    tell_always(doubts)
    given = {**vars(inputs), **vars(how)}
    given |= {"explainer": shown.explainer, "fit": shown.fit, "certificate": shown.certificate}
    with open_run(kind, output, loaded, algorithm.settings.to_dict(), given) as run:
        tell(f"Explaining {loaded.sentence()}")
        if torch.get_num_threads() > 1 and _load() > (os.cpu_count() or 1):
            tell("This machine is busy, and small work suffers most. OMP_NUM_THREADS=1 may be many times faster.")
        if shown.fit:
            run.files.claim(*FITTED)
            fit_in_folder(algorithm, loaded, run.folder, quiet)
        summaries = _explain(algorithm, loaded, run, shown, quiet)
        cases = [run.case(loaded.name(place)) for place in loaded.places]
        results, overview = summary(run, cases, summaries), table(cases)
        notes = [*loaded.doubts(cases[0].explanation), *warnings(cases)]
        results["warnings"] = [*doubts, *notes]
        run.write_results(results, [overview], results["warnings"])
        if shown.figures:
            add_figures(run, cases)
            tell(f"Figures: {run.folder / 'figures'}")
        if shown.report:
            write_run_report(run, cases)
    if output.as_json:
        print_json(results)
        return
    print_table(overview)
    for line in [*notes, *([] if shown.sentences else changes(cases))]:
        typer.echo(line)
    for name, said in summaries.items():
        typer.echo(f"{name}: {' '.join(said['sentences'])}")
    typer.echo(f"Report: {run.folder / REPORT}" if shown.report else f"Run: {run.folder}")


def _load() -> float:
    """Returns how many processes want to run, where the system says so."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def add_figures(run: Run, cases: Any) -> None:
    """Writes the figures of a run into its folder."""
    run.files.claim("figures")
    written = write_figures(run.report(cases=cases), run.folder / "figures")
    run.files.record(*(f"figures/{path.name}" for path in written))


def _explain(algorithm: GFlowExplainer, loaded: Loaded, run: Run, shown: Shown, quiet: bool) -> dict[str, Any]:
    """Explains what is not stored yet and stores each explanation as it comes; returns summaries, if wanted."""
    from tqdm.auto import tqdm

    certified = len(loaded.places) <= MOST_CERTIFIED if shown.certificate is None else shown.certificate
    missing = [place for place in loaded.places if not run.has(loaded.name(place))]
    if len(missing) < len(loaded.places):
        teller(quiet)(f"{len(loaded.places) - len(missing)} of {len(loaded.places)} are stored already")
    at_once = AT_ONCE[algorithm.is_fitted]
    with tqdm(total=len(missing), disable=not shows_bars(quiet), desc="explain", leave=False) as bar:
        for begin in range(0, len(missing), at_once):
            places = missing[begin : begin + at_once]
            found = algorithm.explain(loaded.model, loaded.data, progress=False, **loaded.arguments(places))
            for place, explanation in zip(places, found, strict=True):
                if certified:
                    _ = explanation.certificate  # computed at the first access, and kept by the file only then
                if shown.sentences or certified:
                    _ = explanation.summary(features=shown.sentences)  # evaluates the model; the file keeps the results
                run.store(loaded.case(place, explanation), explanation)
                bar.update()
            if not shows_bars(quiet):
                teller(quiet)(f"explained {begin + len(places)} of {len(missing)}")
    if not shown.sentences:
        return {}
    try:
        return {name: run.case(name).explanation.summary().to_dict() for name in map(loaded.name, loaded.places)}
    except ConfigError as error:
        raise ConfigError(
            f"'{run.folder}' holds explanations without a summary ({error}) Run with --overwrite, or another --out."
        ) from error
