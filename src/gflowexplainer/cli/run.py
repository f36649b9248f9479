"""A command in the folder of its run: makes explainers, fits, explains what is not stored yet, shows the results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from gflowexplainer import GFlowExplainer, SubgraphExplanation
from gflowexplainer.cli.console import print_table, shows_bars, teller
from gflowexplainer.cli.inputs import Loaded, read_inputs
from gflowexplainer.cli.options import How, Inputs, Output
from gflowexplainer.cli.results import changes, summary, table, warnings
from gflowexplainer.errors import ConfigError
from gflowexplainer.report import write_figures
from gflowexplainer.report.run_folder import FITTED, REPORT, Run, write_run_report
from gflowexplainer.storage.files import dumps
from gflowexplainer.storage.identity import content_digest, settings_fingerprint
from gflowexplainer.storage.lock import folder_lock

AT_ONCE = (16, 64)
"""Instances that are explained between two looks at the disk, without and with a fit."""
MOST_CERTIFIED = 20
"""Instances up to which certificates, and what would change a prediction, are computed by default."""


def make_explainer(how: How, inputs: Inputs) -> GFlowExplainer:
    """Makes an explainer with the settings that the options name."""
    relation = None if inputs.edge_type is None else tuple(inputs.edge_type.split(","))
    try:
        return GFlowExplainer(
            node_type=inputs.node_type,
            edge_type=relation,  # type: ignore[arg-type]
            remove_link=not inputs.keep_link,
            **how.settings(),
        )
    except TypeError as error:  # a name that is taken by an option
        raise ConfigError(f"'--set' cannot say that ({error}).") from error


def load_explainer(folder: Path, how: How, inputs: Inputs, **more: Any) -> GFlowExplainer:
    """Loads a fitted explainer, of which only the number of samples can still be chosen."""
    given = {"--preset": how.preset, "--set": how.setting, "--max-nodes": how.max_nodes, "--seed": how.seed}
    given |= {"--num-hops": how.num_hops, "--keep-link": inputs.keep_link or None} | more
    for name, value in given.items():
        if value:
            raise ConfigError(f"'{name}' cannot change an explainer that is fitted. Leave it out, or --explainer.")
    algorithm = GFlowExplainer.load(folder)
    if how.samples is not None:
        algorithm.num_samples = how.samples
    return algorithm


@contextmanager
def open_run(
    kind: str,
    output: Output,
    given: dict[str, Any],
    loaded: Loaded,
    settings: dict[str, Any],
    explainer: Path | None = None,
) -> Iterator[Run]:
    """Opens the folder of a run for writing; without a name, other options get a folder of its own."""
    fitted = None if explainer is None else content_digest((explainer / FITTED[0]).read_bytes())
    identity = loaded.identity(explainer=fitted, settings=settings)
    short = settings_fingerprint({"given": given, "identity": identity})[:8]
    folder = Path("runs") / f"{kind}-{short}" if output.out is None else output.out
    with folder_lock(folder):
        yield Run.begin(folder, kind, given, identity=identity, overwrite=output.overwrite, settings=settings)


def words_of(*groups: Any, **more: Any) -> dict[str, Any]:
    """Returns the options that were given, as plain values."""
    words = {name: value for group in groups for name, value in asdict(group).items()} | more
    return {k: str(v) if isinstance(v, Path) else v for k, v in words.items() if v not in (None, False, [])}


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

    algorithm.fit(
        loaded.model,
        loaded.data,
        **loaded.arguments(),
        folder=folder,
        progress=bars,
        callback=callback,
        fabric=fabric,
    )


def explain_in_folder(
    inputs: Inputs,
    how: How,
    output: Output,
    *,
    kind: str = "explain",
    explainer: Path | None = None,
    fit: bool = False,
    certificate: bool | None = None,
    sentences: bool = False,
    report: bool = True,
    figures: bool = False,
) -> None:
    """Explains what the options name, stores it in the folder of a run, and prints the results.

    Args:
        inputs: Model, graphs and predictions.
        how: How to explain.
        output: Where results go.
        kind: Name of the command.
        explainer: Folder of a fitted explainer.
        fit: Whether to fit one explainer to all instances first.
        certificate: Whether to compute certificates; ``None`` for those of few instances.
        sentences: Whether to print summaries.
        report: Whether to write the report.
        figures: Whether to write figures.
    """
    tell, quiet = teller(output.quiet), output.quiet
    if explainer is None:
        algorithm = make_explainer(how, inputs)
    else:
        algorithm = load_explainer(explainer, how, inputs, **{"--fit": fit})
    loaded = read_inputs(
        inputs, device=how.device, seed=how.seed or 0, progress=shows_bars(quiet), fitted=explainer is not None
    )
    certified = len(loaded.places) <= MOST_CERTIFIED if certificate is None else certificate
    given = words_of(inputs, how, explainer=explainer, fit=fit, certificate=certificate)
    with open_run(kind, output, given, loaded, algorithm.settings.to_dict(), explainer) as run:
        tell(f"Explaining {loaded.sentence()}")
        if fit:
            run.files.claim(*FITTED)
            fit_in_folder(algorithm, loaded, run.folder, quiet)
        summaries = _explain(algorithm, loaded, run, certified, sentences, quiet)
        cases = [run.case(loaded.name(place)) for place in loaded.places]
        results, shown, notes = summary(run, cases, summaries), table(cases), warnings(cases)
        run.write_results(results, [shown], notes)
        if figures:
            run.files.claim("figures")
            written = write_figures(run.report(cases=cases), run.folder / "figures")
            run.files.record(*(f"figures/{path.name}" for path in written))
            tell(f"Figures: {run.folder / 'figures'} ({len(written)} files)")
        if report:
            write_run_report(run, cases)
    if output.as_json:
        typer.echo(dumps(results, indent=1))
        return
    print_table(shown)
    for line in [*notes, *([] if sentences else changes(cases))]:
        typer.echo(line)
    for name, said in summaries.items():
        typer.echo(f"{name}: {' '.join(said['sentences'])}")
    typer.echo(f"Report: {run.folder / REPORT}" if report else f"Run: {run.folder}")


def _explain(
    algorithm: GFlowExplainer, loaded: Loaded, run: Run, certificate: bool, sentences: bool, quiet: bool
) -> dict[str, Any]:
    """Explains what is not stored yet and stores each explanation as it comes; returns summaries, if wanted."""
    from tqdm.auto import tqdm

    summaries: dict[str, Any] = {}
    missing = [place for place in loaded.places if not run.has(loaded.name(place))]
    if len(missing) < len(loaded.places):
        teller(quiet)(f"{len(loaded.places) - len(missing)} of {len(loaded.places)} are stored already")
    at_once = AT_ONCE[algorithm.is_fitted]
    with tqdm(total=len(missing), disable=not shows_bars(quiet), desc="explain", leave=False) as bar:
        for begin in range(0, len(missing), at_once):
            places = missing[begin : begin + at_once]
            found = algorithm.explain(loaded.model, loaded.data, progress=False, **loaded.arguments(places))
            for place, explanation in zip(places, found, strict=True):
                if certificate:
                    _ = explanation.certificate  # computed at the first access, and kept by the file only then
                if isinstance(explanation, SubgraphExplanation) and (sentences or certificate):
                    _ = explanation.summary(features=sentences)  # evaluates the model, and the file keeps the results
                run.store(loaded.case(place, explanation), explanation)
                bar.update()
            if not shows_bars(quiet):
                teller(quiet)(f"explained {begin + len(places)} of {len(missing)}")
    for name in map(loaded.name, loaded.places) if sentences else ():
        try:
            summaries[name] = run.case(name).explanation.summary().to_dict()
        except ConfigError as error:
            raise ConfigError(
                f"'{run.folder}' holds explanations without a summary ({error}) Run with --overwrite, or another --out."
            ) from error
    return summaries
