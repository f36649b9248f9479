"""``explain-typed``: explains nodes and links of heterogeneous graphs, and links of plain ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import one_line_errors, shows_bars, teller
from gflowexplainer.cli.runs import write_run_report

if TYPE_CHECKING:
    from gflowexplainer.explainer import GFlowExplainer
    from gflowexplainer.report import Case
    from gflowexplainer.report.run_folder import Run

_WHAT, _OUT = "What to explain", "Output"


def explain_typed(
    context: typer.Context,
    model: Annotated[
        str, typer.Option(metavar="MODULE:NAME", help="Your model, as my_models:build.", rich_help_panel="Model")
    ],
    data: Annotated[
        Path,
        typer.Option(
            help="The graph: .npz or .safetensors with x__TYPE and edge_index__SOURCE__RELATION__TARGET, .json of "
            "nodes and edges by type; for links also a plain graph.",
            rich_help_panel="Graphs",
        ),
    ],
    weights: options.Weights = None,
    mode: options.Mode = None,
    return_type: options.ReturnType = None,
    num_hops: options.NumHops = None,
    node_type: Annotated[
        str | None, typer.Option(help="Type of the nodes. (default: found out)", rich_help_panel=_WHAT)
    ] = None,
    index: Annotated[str | None, typer.Option(help="Nodes, as 3,14,15.", rich_help_panel=_WHAT)] = None,
    edge_label_index: Annotated[
        str | None, typer.Option(help="Links, both ends of each, as 0:4,3:9.", rich_help_panel=_WHAT)
    ] = None,
    edge_type: Annotated[
        str | None,
        typer.Option(help="The predicted relation, as user,likes,item.", rich_help_panel=_WHAT),
    ] = None,
    keep_link: Annotated[
        bool, typer.Option("--keep-link", help="Leave explained links in the graph.", rich_help_panel=_WHAT)
    ] = False,
    together: Annotated[
        bool, typer.Option("--fit", help="Fit one flow network to all of them first.", rich_help_panel="How")
    ] = False,
    max_nodes: options.MaxNodes = None,
    seed: options.Seed = None,
    paths: Annotated[int, typer.Option(min=1, help="Paths of a link to list.", rich_help_panel=_OUT)] = 3,
    out: Annotated[
        Path | None, typer.Option(help="Folder for one .safetensors each, and a report.", rich_help_panel=_OUT)
    ] = None,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
) -> None:
    r"""Explains nodes and links of heterogeneous graphs, and links of plain ones; prints JSON.

    To copy:

      gflowexplainer explain-typed --model my_models:build --data graph.npz \
          --node-type paper --index 3,4
      gflowexplainer explain-typed --model my_models:build --data graph.npz \
          --edge-type user,likes,item --edge-label-index 0:4,3:9 --out runs/links
    """
    with one_line_errors():
        from gflowexplainer.errors import ConfigError
        from gflowexplainer.explainer import GFlowExplainer
        from gflowexplainer.report.run_folder import RESULTS
        from gflowexplainer.sources import fill_weights, load_graphs, load_model
        from gflowexplainer.sources.typed_files import is_typed_file, load_typed_graph
        from gflowexplainer.storage.files import dumps, write_json

        if (index is None) == (edge_label_index is None):
            raise ConfigError("What to explain? Name nodes, as --index 3,4, or links, as --edge-label-index 0:4.")
        network = load_model(model)
        if weights is not None:
            fill_weights(network, weights)
        graph: Any = load_typed_graph(data) if is_typed_file(data) else load_graphs(data)[0]
        relation = None if edge_type is None else tuple(edge_type.split(","))
        chosen: dict[str, Any] = {"max_nodes": max_nodes, "seed": seed}
        algorithm = GFlowExplainer(
            num_hops=num_hops,
            node_type=node_type,
            edge_type=relation,  # type: ignore[arg-type]
            remove_link=not keep_link,
            **{name: value for name, value in chosen.items() if value is not None},
        )
        asked = _asked(index, edge_label_index, mode, return_type)
        run = None if out is None else _begin(context, out, algorithm, network, graph, asked)
        if together:
            algorithm.fit(network, graph, progress=shows_bars(quiet), **asked)
        found = algorithm.explain(network, graph, progress=shows_bars(quiet), **asked)
        results = []
        for number, explanation in enumerate(found):
            link = explanation.explained_link
            row: dict[str, Any] = {
                "explained": explanation.explained_node if link is None else link,
                "prediction": explanation.whole_prediction,
                "subgraphs": [s.to_dict() for s in explanation.top(3)],
            }
            if link is not None:
                row |= {"connected": explanation.connected, "paths": [p.to_dict() for p in explanation.paths(paths)]}
            results.append(row)
            if out is not None:
                explanation.save(out / f"explanation_{number}.safetensors")
        if run is not None:
            write_json(run.folder / RESULTS, results)
            write_run_report(run, [*map(_case, range(len(found)), found)])
        typer.echo(dumps(results, indent=1))
        teller(quiet)(f"explained {len(results)}")


def _begin(
    context: typer.Context, out: Path, algorithm: GFlowExplainer, model: Any, graph: Any, asked: dict[str, Any]
) -> Run:
    """Makes the folder of the run, or says what differs from the run that is in it."""
    from gflowexplainer.report.run_folder import Run
    from gflowexplainer.storage.lock import folder_lock

    places = {"index": asked.get("index"), "edge_label_index": asked.get("edge_label_index")}
    nothing: dict[str, Any] = dict.fromkeys(("target", "node_type", "edge_type", "graph_index"))
    _, task = algorithm._tasks.of_data(model, graph, asked["model_config"], **places, **nothing, arguments={})
    identity = task.identity(algorithm.settings.to_dict())
    context.with_resource(folder_lock(out))
    overwrite = bool(context.params["overwrite"])
    settings = algorithm.settings.to_dict()
    question = {"together": context.params["together"]}
    run = Run.begin(out, "explain-typed", question, identity=identity, overwrite=overwrite, settings=settings)
    for old in out.glob("explanation_*.safetensors") if overwrite else ():
        old.unlink()
    return run


def _case(number: int, explanation: Any) -> Case:
    """Returns what the report shows of an explanation."""
    from gflowexplainer.explanation.explanation import SubgraphExplanation
    from gflowexplainer.report import Case

    name = f"{number}: {explanation.name}"
    return Case(name, explanation) if isinstance(explanation, SubgraphExplanation) else explanation.case(name)


def _asked(index: str | None, links: str | None, mode: str | None, return_type: str | None) -> dict[str, Any]:
    """Reads what is to be explained."""
    import torch

    from gflowexplainer.cli.options import positions
    from gflowexplainer.errors import ConfigError, one_of

    modes = {"multiclass": "multiclass_classification", "binary": "binary_classification", "regression": "regression"}
    level = "node" if links is None else "edge"
    name = ("multiclass" if links is None else "binary") if mode is None else one_of("mode", mode, tuple(modes))
    config = {"mode": modes[name], "task_level": level, "return_type": return_type or "raw"}
    if links is None:
        return {"index": positions(str(index)), "model_config": config}
    try:
        pairs = [[int(end) for end in pair.split(":")] for pair in links.split(",")]
        ends = torch.tensor(pairs).reshape(-1, 2).t()
    except (ValueError, RuntimeError) as error:
        raise ConfigError(f"'--edge-label-index' takes pairs of node ids, as 0:4,3:9 (got {links!r}).") from error
    return {"edge_label_index": ends, "model_config": config}
