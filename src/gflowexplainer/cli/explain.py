"""``explain``: explains predictions of a model and writes a report about them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import one_line_errors, print_table, shows_bars, teller
from gflowexplainer.cli.runs import begin_run, fit_in_folder, subject_words, write_run_report

if TYPE_CHECKING:
    from gflowexplainer.cli.command_inputs import CommandInputs
    from gflowexplainer.explainer import GFlowExplainer
    from gflowexplainer.report.run_folder import Run

AT_ONCE = 64
"""Instances that a fitted explainer answers between two looks at the disk."""
MOST_CERTIFIED = 20
"""Instances up to which certificates, and what would change a prediction, are computed without being asked for."""


def explain(
    context: typer.Context,
    model: options.Model = None,
    weights: options.Weights = None,
    mode: options.Mode = None,
    task_level: options.TaskLevel = None,
    return_type: options.ReturnType = None,
    num_hops: options.NumHops = None,
    data: options.Data = None,
    smiles: options.Smiles = None,
    smiles_column: options.SmilesColumn = "smiles",
    atoms: options.Atoms = None,
    dataset: options.Dataset = None,
    gnn: options.Gnn = None,
    index: options.Index = None,
    everything: options.AllInstances = False,
    target: options.ExplainedClass = None,
    explainer: Annotated[
        Path | None,
        typer.Option(help="Folder of a fitted explainer; its settings count.", rich_help_panel="How"),
    ] = None,
    together: Annotated[
        bool,
        typer.Option(
            "--fit",
            help="Fit one flow network to all asked instances first, so that they learn from one another; otherwise "
            "each is searched by itself.",
            rich_help_panel="How",
        ),
    ] = False,
    preset: options.Preset = None,
    max_nodes: options.MaxNodes = None,
    setting: options.Setting = None,
    num_samples: Annotated[
        int | None, typer.Option(min=1, help="Subgraphs to sample for each. (default: 64)", rich_help_panel="How")
    ] = None,
    weighting: Annotated[
        str | None,
        typer.Option(
            help="'policy': as often as sampled. 'reward': weighed by reward. (default: policy)", rich_help_panel="How"
        ),
    ] = None,
    inference: options.Inference = None,
    certificate: Annotated[
        bool | None,
        typer.Option(
            help=f"Measure the exact distance to the target. (default: of up to {MOST_CERTIFIED} instances)",
            rich_help_panel="How",
        ),
    ] = None,
    sentences: Annotated[
        bool,
        typer.Option(
            "--summary", help="Say of each what would change it and which features count.", rich_help_panel="How"
        ),
    ] = False,
    seed: options.Seed = None,
    device: options.Device = "cpu",
    out: options.Out = None,
    report: Annotated[bool, typer.Option(help="Whether to write report.html.", rich_help_panel="Output")] = True,
    figures: Annotated[
        bool, typer.Option("--figures", help="Write PNG and SVG figures too.", rich_help_panel="Output")
    ] = False,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    r"""Explains predictions by connected subgraphs: prints them, stores them, writes a report.

    To copy:

      gflowexplainer explain --dataset karate --index 28
      gflowexplainer explain --dataset karate --index 8,28 --fit --out runs/two

    With your own model (a function "build" in my_models.py), weights and graphs:

      gflowexplainer explain --model my_models:build --weights gnn.pt \
          --data graph.npz --index 3,14,15 --out runs/mine
      gflowexplainer explain --explainer runs/fitted --model my_models:build \
          --weights gnn.pt --data graphs.json --all --json
      gflowexplainer explain --model my_models:classifier --weights gnn.pt \
          --smiles molecules.csv --atoms C,N,O,Cl,S --max-nodes 4

    Graphs as JSON: "nodes" (names or number), "edges" (pairs), "features" (a list for each node), optional "undirected"
    (true), "labels" (of nodes) or "label" (of the graph); many graphs are a list. From Python, write
    gflowexplainer.sources.save_graphs("graphs.safetensors", data).
    """
    with one_line_errors(resumable=True):
        from gflowexplainer.cli.command_inputs import read_inputs
        from gflowexplainer.cli.results import changes, summary, table, warnings
        from gflowexplainer.storage.files import dumps

        tell = teller(quiet)
        sampling = {"num_samples": num_samples, "weighting": weighting, "inference": inference}
        sampling = {name: value for name, value in sampling.items() if value is not None}
        algorithm = _algorithm(explainer, together, preset, setting or [], max_nodes, seed, num_hops, sampling)
        fitted = None if algorithm._fitted is None else algorithm._fitted.config
        asked = read_inputs(**subject_words(context), progress=shows_bars(quiet), fitted=fitted)
        settings = algorithm.settings if together or explainer else algorithm.settings_alone
        run = begin_run("explain", out, context, asked, settings.to_dict())
        tell(f"Explaining {asked.sentence()}")
        if together:
            fit_in_folder(algorithm, asked, run.folder, quiet)
        certified = len(asked.index) <= MOST_CERTIFIED if certificate is None else certificate
        _explain(algorithm, asked, run, certified, sentences, quiet)
        cases = [run.case(asked.name(place)) for place in asked.index]
        results = summary(run, cases)
        summaries = {case.name: case.explanation.summary() for case in cases} if sentences else {}
        for entry in results["instances"] if sentences else ():
            entry["summary"] = summaries[entry["name"]].to_dict()
        shown = table(cases)
        notes = warnings(cases)
        run.write_results(results, [shown], notes)
        if figures:
            from gflowexplainer.report import write_figures

            written = write_figures(run.report(cases=cases), run.folder / "figures")
            tell(f"Figures: {run.folder / 'figures'} ({len(written)} files)")
        if report:
            write_run_report(run, cases)
        if as_json:
            typer.echo(dumps(results, indent=1))
        else:
            print_table(shown)
            for line in [*notes, *([] if sentences else changes(cases))]:
                typer.echo(line)
            for name, said in summaries.items():
                typer.echo(f"{name}: {' '.join(said.sentences)}")
            typer.echo(f"Report: {run.folder / 'report.html'}" if report else f"Run: {run.folder}")


def _algorithm(
    folder: Path | None,
    together: bool,
    preset: str | None,
    setting: list[str],
    max_nodes: int | None,
    seed: int | None,
    num_hops: int | None,
    sampling: dict[str, Any],
) -> GFlowExplainer:
    """Makes an explainer, or loads a fitted one, of which only the sampling can still be chosen."""
    from gflowexplainer.choices import Inference, Weighting
    from gflowexplainer.cli.command_inputs import explainer_of
    from gflowexplainer.errors import ConfigError
    from gflowexplainer.explainer import GFlowExplainer

    for name, kind in (("weighting", Weighting), ("inference", Inference)):
        if name in sampling:
            kind.of(name, sampling[name])
    if folder is None:
        return explainer_of(
            preset=preset, setting=setting, max_nodes=max_nodes, seed=seed, num_hops=num_hops, **sampling
        )
    said = {"--preset": preset, "--set": setting or None, "--max-nodes": max_nodes, "--seed": seed}
    said |= {"--num-hops": num_hops, "--fit": together or None}
    for name, value in said.items():
        if value is not None:
            raise ConfigError(f"'{name}' cannot change an explainer that is fitted. Leave it out, or --explainer.")
    algorithm = GFlowExplainer.load(folder)
    if algorithm.inference == Inference.search and sampling.get("inference", Inference.search) != Inference.search:
        raise ConfigError(f"'{folder}' was fitted with --inference search, so it has no flow network. Fit it again.")
    for name, value in sampling.items():
        setattr(algorithm, name, value)
    return algorithm


def _is_stored(run: Run, name: str, sentences: bool) -> bool:
    """Whether an explanation is stored, with what its summary needs if that is asked for."""
    return run.has(name) and not (sentences and not run.case(name).explanation.studies.knows("features"))


def _explain(
    algorithm: GFlowExplainer, asked: CommandInputs, run: Run, certificate: bool, sentences: bool, quiet: bool
) -> None:
    """Explains what is not stored yet and stores each answer as it comes."""
    from tqdm.auto import tqdm

    missing = [place for place in asked.index if not _is_stored(run, asked.name(place), sentences)]
    if len(missing) < len(asked.index):
        teller(quiet)(f"{len(asked.index) - len(missing)} of {len(asked.index)} are stored already")
    at_once = AT_ONCE if algorithm.is_fitted else 1
    with tqdm(total=len(missing), disable=not shows_bars(quiet), desc="explain", leave=False) as bar:
        for begin in range(0, len(missing), at_once):
            places = missing[begin : begin + at_once]
            found = algorithm.explain(
                asked.model,
                asked.data,
                places,
                target=asked.target,
                progress=False,
                model_config=asked.config,
                graph_index=asked.graph_index,
            )
            for place, explanation in zip(places, found, strict=True):
                if certificate:
                    _ = explanation.certificate  # computed when asked for, and kept by the file only then
                if len(asked.index) <= MOST_CERTIFIED:
                    explanation.ask()
                if sentences:
                    explanation.summary()  # asks the model, and the file keeps what it said
                run.store(asked.case(place, explanation))
                bar.update()
            if not shows_bars(quiet):
                teller(quiet)(f"explained {begin + len(places)} of {len(missing)}")
