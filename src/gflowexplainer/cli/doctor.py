"""``doctor``: says whether everything is there that the package needs, and what the rest would be good for."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from pathlib import Path

import typer

from gflowexplainer.cli import options
from gflowexplainer.cli.console import PROBLEM, one_line_errors, print_json, print_table
from gflowexplainer.version import __version__

OK, MISSING, BROKEN = "ok", "missing", "broken"
ESSENTIAL = ("torch", "torch_geometric", "numpy", "scipy", "safetensors", "tqdm")
EXTRAS = {
    "gflowbench": (MISSING, "evaluate, reproduce, datasets, leaderboard", "pip install gflowbench"),
    "matplotlib": (MISSING, "figures, explanation.draw", 'pip install "gflowexplainer[figures]"'),
    "networkx": (MISSING, "explanation.to_networkx", 'pip install "gflowexplainer[figures]"'),
    "jinja2": (MISSING, "the HTML report", "pip install jinja2"),
    "pandas": (MISSING, "explanations.to_dataframe", "pip install pandas"),
    "rdkit": (MISSING, "molecules: --smiles, drawings", 'pip install "gflowexplainer[molecules]"'),
    "lightning-fabric": (MISSING, "fit --devices", 'pip install "gflowexplainer[distributed]"'),
    "ray": (MISSING, "bulk", 'pip install "gflowexplainer[ray]"'),
}
GROUP = "gflowexplainer.checks"
"""Entry points of this group are functions without arguments that give findings of their own."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: Its name.
        state: ``"ok"``, ``"missing"`` (something optional) or ``"broken"`` (something essential).
        detail: What was found, and what to do about it.
    """

    what: str
    state: str
    detail: str


def doctor(as_json: options.Json = False) -> None:
    """Checks the installation and explains a toy graph. Ends with exit code 1 if something essential is broken.

    To copy:

      gflowexplainer doctor
      gflowexplainer doctor --json
    """
    with one_line_errors():
        found = findings()
        if as_json:
            print_json([vars(finding) for finding in found])
        else:
            from gflowexplainer.report.tables import Table

            rows = tuple((finding.what, finding.state, finding.detail) for finding in found)
            print_table(Table(f"GFlowExplainer {__version__}", ("what", "state", "found"), rows))
        if any(finding.state == BROKEN for finding in found):
            raise typer.Exit(PROBLEM)


def findings() -> list[Finding]:
    """Returns what every check found; a check that fails in an unexpected way is a finding too."""
    checks: dict[str, Callable[[], list[Finding]]] = {"packages": _packages, "GPU": _gpu, "self-test": _self_test}
    checks |= {entry.name: partial(_load_and_check, entry) for entry in entry_points(group=GROUP)}
    found = [Finding("python", OK, platform.python_version())]
    for name, check in checks.items():
        try:
            found += check()
        except Exception as error:
            found.append(Finding(name, BROKEN, f"{type(error).__name__}: {' '.join(str(error).split())}"))
    return found


def _load_and_check(entry: EntryPoint) -> list[Finding]:
    return entry.load()()


def _packages() -> list[Finding]:
    found = []
    needed = {name: (BROKEN, "", f"pip install {name}") for name in ESSENTIAL}
    for name, (state, purpose, way) in (needed | EXTRAS).items():
        try:
            found.append(Finding(name, OK, f"{version(name)} ({purpose})" if purpose else version(name)))
        except PackageNotFoundError:
            found.append(Finding(name, state, f"{f'for {purpose}' if purpose else 'not installed'}: {way}"))
    return found


def _gpu() -> list[Finding]:
    import torch

    if torch.cuda.is_available():
        return [Finding("GPU", OK, f"{torch.cuda.get_device_name(0)} (use it with --device cuda)")]
    return [Finding("GPU", MISSING, "none that torch can use; everything runs on the CPU")]


def _self_test() -> list[Finding]:
    """Explains a node of a house on a toy model, and stores the explanation."""
    from gflowexplainer import GFlowExplainer, SubgraphExplanation
    from gflowexplainer.testing import NodeModel, house

    (explanation,) = GFlowExplainer(max_nodes=3, seed=0).explain(NodeModel(), house(), [0], progress=False)
    distance = explanation.certificate.distance
    if distance is None or not 0 <= distance < 0.5:
        return [Finding("self-test", BROKEN, f"the explanation is {distance} off its target; please report this")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "explanation.safetensors"
        explanation.save(path)
        if SubgraphExplanation.load(path).subgraphs != explanation.subgraphs:
            return [Finding("self-test", BROKEN, "a stored explanation is not read back as it was")]
    return [Finding("self-test", OK, f"explained a toy graph; exact distance to the target {distance:.3f}")]
