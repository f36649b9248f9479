"""From a question to a run: its folder, the training in it, and its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gflowexplainer.cli.console import shows_bars, teller

if TYPE_CHECKING:
    from gflowexplainer.cli.command_inputs import CommandInputs
    from gflowexplainer.explainer import GFlowExplainer
    from gflowexplainer.report.run_folder import Run

_SHOWING = ("context", "out", "as_json", "quiet", "report", "figures", "sentences", "devices", "nodes", "overwrite")
_EXPLAINING = (
    "preset",
    "max_nodes",
    "setting",
    "num_hops",
    "explainer",
    "num_samples",
    "weighting",
    "inference",
    "certificate",
)
"""Options of ``fit`` and ``explain`` that change nothing in the answer, and those that say how to explain."""


def fit_in_folder(
    algorithm: GFlowExplainer, asked: CommandInputs, folder: Path, quiet: bool, fabric: Any = None
) -> None:
    """Fits an explainer in a folder; a person sees a bar, a file gets a line now and then.

    Args:
        algorithm: The explainer.
        asked: What to fit it to.
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
        asked.model,
        asked.data,
        asked.index,
        target=asked.target,
        folder=folder,
        progress=bars,
        callback=callback,
        model_config=asked.config,
        graph_index=asked.graph_index,
        fabric=fabric,
    )


def subject_words(context: typer.Context) -> dict[str, Any]:
    """Returns the options that say which model and which graphs."""
    return {name: value for name, value in context.params.items() if name not in (*_EXPLAINING, *_SHOWING, "together")}


def begin_run(
    kind: str, out: Path | None, context: typer.Context, asked: CommandInputs, settings: dict[str, Any]
) -> Run:
    """Makes the folder of a run; without a name, each question gets one of its own."""
    from gflowexplainer.report.run_folder import Run
    from gflowexplainer.storage.identity import content_digest, settings_fingerprint
    from gflowexplainer.storage.lock import folder_lock
    from gflowexplainer.training.folder import EXPLAINER

    question = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in context.params.items()
        if name not in _SHOWING
    }
    question["config"] = asked.config
    explainer = context.params.get("explainer")
    fitted = None if explainer is None else content_digest((explainer / EXPLAINER).read_bytes())
    identity = asked.identity(explainer=fitted, settings=settings)
    short = settings_fingerprint({"question": question, "identity": identity})[:8]
    folder = Path("runs") / f"{kind}-{short}" if out is None else out
    context.with_resource(folder_lock(folder))
    return Run.begin(
        folder, kind, question, identity=identity, overwrite=bool(context.params.get("overwrite")), settings=settings
    )


def write_run_report(run: Run, cases: Any = None, path: Path | None = None, title: str | None = None) -> Path:
    """Writes the report of a run into its folder, or to ``path``."""
    from gflowexplainer.report import write_report
    from gflowexplainer.report.run_folder import REPORT

    return write_report(run.report(cases=cases, title=title), run.folder / REPORT if path is None else path)
