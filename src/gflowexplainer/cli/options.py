"""The options of commands, in one dataclass per purpose: which predictions, how, and where results go.

A command names these dataclasses as parameters, and :func:`takes_options` makes its options of their fields.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.markup import escape

from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.settings import GROUPS, PRESETS

MODEL, GRAPHS, WHAT, HOW, OUT = "Model", "Graphs", "What to explain", "How", "Output"
"""Panels of the help."""
_MOST_NAMED = 1_000_000
"""Instances that ``--index`` may name."""


def option(panel: str, help: str, *names: str, default: Any = None, among: Sequence[str] = (), **more: Any) -> Any:
    """Makes a field of a dataclass that is an option.

    Args:
        panel: Where the help shows it.
        help: What it does.
        *names: What it is called, if not as the field.
        default: Its default; ``...`` for an option that must be given.
        among: Values that the completion of a shell offers.
        **more: Further arguments of ``typer.Option``.
    """
    if among:
        more["autocompletion"] = lambda incomplete: [value for value in among if value.startswith(incomplete)]
    made = typer.Option(*names, help=escape(help), rich_help_panel=panel, **more)
    return field(default=MISSING if default is ... else default, metadata={"option": made})


Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON, not as a table.", rich_help_panel=OUT)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.", rich_help_panel=OUT)]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Which model, which graphs, and which of their predictions."""

    model: str | None = option(
        MODEL,
        "Your model: a function or class without arguments, or an nn.Module, as my_models:build or file.py:Net.",
        metavar="MODULE:NAME",
    )
    weights: Path | None = option(MODEL, "Its weights: .safetensors, or .pt of a state dict.")
    mode: str | None = option(
        MODEL,
        "'multiclass', 'binary' or 'regression'. (default: multiclass, of links binary)",
        among=("multiclass", "binary", "regression"),
    )
    task_level: str | None = option(
        MODEL,
        "'node', 'edge' or 'graph'. (default: node for one graph with --index or a label for each node, edge with "
        "--edge-label-index, else graph)",
        among=("node", "edge", "graph"),
    )
    return_type: str | None = option(
        MODEL,
        "What it returns: 'raw' scores, 'probs' or 'log_probs'. (default: raw)",
        among=("raw", "probs", "log_probs"),
    )
    data: Path | None = option(
        GRAPHS,
        "Graphs: .safetensors or .npz with x and edge_index, .pt of a PyG Data, .json of nodes and edges, or a "
        "folder of these. Of several types: x__TYPE and edge_index__SOURCE__RELATION__TARGET.",
    )
    smiles: Path | None = option(GRAPHS, "Molecules: a table with a column of SMILES.", metavar="FILE.csv")
    smiles_column: str = option(GRAPHS, "Name of that column.", default="smiles")
    atoms: str | None = option(
        GRAPHS,
        "Elements that the model knows, in the order of its features, as C,N,O,F. With H among them hydrogens are "
        "atoms too. (default: the 14 of Mutagenicity)",
    )
    dataset: str | None = option(
        GRAPHS, "A dataset with a GNN: karate, or with gflowbench one of the paper, as tree-cycles."
    )
    gnn: str | None = option(
        GRAPHS,
        "With --dataset: its 'published' GNN, or one that is 'trained' here. (default: published)",
        among=("published", "trained"),
    )
    index: str | None = option(
        WHAT, "Nodes, or positions of graphs, counted from 0; 20-25 is six of them.", metavar="3,14,20-25"
    )
    everything: bool = option(
        WHAT, "All of them; of a dataset, those that are usually explained.", "--all", default=False
    )
    edge_label_index: str | None = option(WHAT, "Links, both ends of each, as 0:4,3:9.")
    node_type: str | None = option(WHAT, "Type of the nodes, of a heterogeneous graph. (default: found out)")
    edge_type: str | None = option(WHAT, "Relation of the links, as user,likes,item.")
    keep_link: bool = option(WHAT, "Leave explained links in the graph.", "--keep-link", default=False)
    target: str | None = option(
        WHAT, "Explain this class (or value) instead of the predicted one: one for all, one for each, or 'labels'."
    )


@dataclass(frozen=True, kw_only=True)
class How:
    """How to explain."""

    preset: str | None = option(
        HOW, "Settings to begin with, as 'default' or 'paper'. (default: default)", among=tuple(PRESETS)
    )
    max_nodes: int | None = option(HOW, "Most nodes of an explanation.", min=1)
    samples: int | None = option(HOW, "Subgraphs to sample for each prediction.", min=1)
    num_hops: int | None = option(HOW, "Message-passing steps of the model. (default: counted)", min=0)
    setting: list[str] | None = option(
        HOW,
        "Any setting of GFlowExplainer, as beta=50; may be repeated. "
        + " ".join(f"{title}: {', '.join(names)}." for title, names in GROUPS.items()),
        "--set",
        metavar="NAME=VALUE",
        among=tuple(f"{name}=" for names in GROUPS.values() for name in names),
    )
    seed: int | None = option(HOW, "Fixes everything random. (default: 0)")
    device: str = option(HOW, "Where to compute: 'cpu' or 'cuda'.", default="cpu", among=("cpu", "cuda"))

    def settings(self) -> dict[str, Any]:
        """Returns the arguments of ``GFlowExplainer`` that the options name."""
        found = assignments(self.setting or [])
        named = {"preset": self.preset, "max_nodes": self.max_nodes, "num_samples": self.samples}
        named |= {"num_hops": self.num_hops, "seed": self.seed}
        for name, value in named.items():
            if value is not None and name in found:
                raise ConfigError(f"'{name}' is said twice: by an option of its own and by --set. Say it once.")
        return found | {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where results go."""

    out: Path | None = option(
        OUT, "Folder of the run; the same command goes on where it stopped. (default: a folder of its own in runs/)"
    )
    overwrite: bool = option(
        OUT, "Begin anew in --out: what an earlier run wrote there is deleted.", "--overwrite", default=False
    )
    as_json: Json = False
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is computed and shown of each explanation."""

    explainer: Path | None = option(HOW, "Folder of a fitted explainer; its settings count.")
    fit: bool = option(
        HOW, "Fit one explainer to all instances first, so that they learn from one another.", "--fit", default=False
    )
    certificate: bool | None = option(HOW, "Measure the exact distance to the target. (default: of few)")
    sentences: bool = option(
        HOW, "Say of each what would change it and which features count.", "--summary", default=False
    )
    report: bool = option(OUT, "Whether to write report.html.", default=True)
    figures: bool = option(OUT, "Write PNG and SVG figures too.", "--figures", default=False)


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Makes a command of a function: parameters that are dataclasses of options become the options in them."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))
            continue
        inner = get_type_hints(groups[name], include_extras=True)
        for each in fields(groups[name]):
            kind, made = inner[each.name], each.metadata.get("option")
            parameters.append(
                inspect.Parameter(
                    each.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if each.default is MISSING else each.default,
                    annotation=kind if made is None else Annotated[kind, made],
                )
            )

    @wraps(command)
    def run(**words: Any) -> None:
        made = {
            name: kind(**{each.name: words.pop(each.name) for each in fields(kind)}) for name, kind in groups.items()
        }
        command(**words, **made)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del run.__wrapped__
    return run


def listed(text: str) -> list[str]:
    """Splits ``a,b`` and drops repeats."""
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def positions(text: str) -> list[int]:
    """Reads ``3,14,20-22`` as ``[3, 14, 20, 21, 22]``, repeats dropped."""
    found: dict[int, None] = {}
    for part in text.split(","):
        begin, dash, end = (piece.strip() for piece in part.partition("-"))
        if not begin.isdecimal() or (dash and not end.isdecimal()) or max(len(begin), len(end)) > 18:
            raise ConfigError(f"'--index' takes whole numbers from 0 on, as 3,14,20-25 (got {text[:80]!r}).")
        first, last = int(begin), int(end if dash else begin)
        if last < first:
            raise ConfigError(f"'--index' counts upwards: {part.strip()} names nothing. Write {last}-{first}.")
        if last - first >= _MOST_NAMED - len(found):
            raise ConfigError(f"'--index' names more than {_MOST_NAMED} instances ({text[:80]}). Use --all for all.")
        found.update(dict.fromkeys(range(first, last + 1)))
    return list(found)


def value_of(text: str) -> Any:
    """Reads a number, true, false or null; anything else is a word."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {"True": True, "False": False, "None": None}.get(text, text)


def assignments(texts: Sequence[str]) -> dict[str, Any]:
    """Reads ``name=value`` settings."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and name.isidentifier() and value):
            raise ConfigError(f"'--set' takes NAME=VALUE, such as beta=50 (got {text!r}).")
        if name in found:
            raise ConfigError(f"'--set' names '{name}' twice. Say it once.")
        found[name] = value_of(value)
    return found


def check_device(device: str) -> None:
    """Refuses a device that is not there."""
    import torch

    kind, _, number = device.partition(":")
    one_of("device", kind, ("cpu", "cuda"))
    if kind == "cuda" and not torch.cuda.is_available():
        raise ConfigError("'device' is 'cuda', but torch finds no GPU here. Use --device cpu.")
    if number and not (number.isdecimal() and (kind == "cpu" or int(number) < torch.cuda.device_count())):
        raise ConfigError(f"There is no device '{device}'. Use --device {kind}.")
