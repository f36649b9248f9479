"""The options that commands share, and how their words are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gflowexplainer.errors import ConfigError, one_of

_MODEL, _DATA, _WHAT, _HOW, _OUT = "Model", "Graphs", "What to explain", "How", "Output"

Model = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME",
        help="Your model: a function or class without arguments, or an nn.Module, as my_models:build or file.py:Net.",
        rich_help_panel=_MODEL,
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(help="Its weights: .safetensors, or .pt of a state dict.", rich_help_panel=_MODEL),
]
Mode = Annotated[
    str | None,
    typer.Option(help="'multiclass', 'binary' or 'regression'. (default: multiclass)", rich_help_panel=_MODEL),
]
TaskLevel = Annotated[
    str | None,
    typer.Option(
        help="'node' or 'graph'. (default: node for one graph with --index or a label for each node, else graph)",
        rich_help_panel=_MODEL,
    ),
]
ReturnType = Annotated[
    str | None,
    typer.Option(help="What it returns: 'raw' scores, 'probs' or 'log_probs'. (default: raw)", rich_help_panel=_MODEL),
]
NumHops = Annotated[
    int | None,
    typer.Option(min=0, help="Its message-passing steps. (default: counted)", rich_help_panel=_MODEL),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="Graphs: .safetensors or .npz with x and edge_index, .pt of a PyG Data, .json of nodes and edges, or a "
        "folder of these.",
        rich_help_panel=_DATA,
    ),
]
Smiles = Annotated[
    Path | None,
    typer.Option(metavar="FILE.csv", help="Molecules: a table with a column of SMILES.", rich_help_panel=_DATA),
]
SmilesColumn = Annotated[str, typer.Option(help="Name of that column.", rich_help_panel=_DATA)]
Atoms = Annotated[
    str | None,
    typer.Option(
        help="Elements that the model knows, in the order of its features, as C,N,O,F. With H among them hydrogens "
        "are atoms too. (default: the 14 of Mutagenicity)",
        rich_help_panel=_DATA,
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        help="A dataset with a GNN: karate, or with gflowbench one of the paper, as tree-cycles.", rich_help_panel=_DATA
    ),
]
Gnn = Annotated[
    str | None,
    typer.Option(
        help="With --dataset: its 'published' GNN, or one that is 'trained' here. (default: published)",
        rich_help_panel=_DATA,
    ),
]
Index = Annotated[
    str | None,
    typer.Option(
        metavar="3,14,20-25",
        help="Nodes, or positions of graphs, counted from 0; 20-25 is six of them.",
        rich_help_panel=_WHAT,
    ),
]
AllInstances = Annotated[
    bool, typer.Option("--all", help="All of them; of a dataset, those of the protocol.", rich_help_panel=_WHAT)
]
ExplainedClass = Annotated[
    str | None,
    typer.Option(
        help="Explain this class (or value) instead of the predicted one: one for all, one for each, or 'labels'.",
        rich_help_panel=_WHAT,
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        help="'default', 'gpu', 'context', 'paper', 'sequence' or 'graph'. (default: default)", rich_help_panel=_HOW
    ),
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting, as beta=50; may be repeated.", rich_help_panel=_HOW),
]
Inference = Annotated[
    str | None,
    typer.Option(
        help="'flow': a flow network is trained and samples. 'search': a beam search under the same reward, nothing is "
        "trained. 'auto': flow after a fit, search without one, but for links. (default: auto)",
        rich_help_panel=_HOW,
    ),
]
MaxNodes = Annotated[
    int | None, typer.Option(min=1, help="Most nodes of an explanation. (default: 20)", rich_help_panel=_HOW)
]
Seed = Annotated[int | None, typer.Option(help="Fixes everything random. (default: 0)", rich_help_panel=_HOW)]
Device = Annotated[str, typer.Option(help="Where to compute: 'cpu' or 'cuda'.", rich_help_panel=_HOW)]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the run; the same command goes on where it stopped. (default: a folder of its own in runs/)",
        rich_help_panel=_OUT,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite", help="Begin anew in --out, even if it holds another run; that one is lost.", rich_help_panel=_OUT
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON, not as a table.", rich_help_panel=_OUT)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.", rich_help_panel=_OUT)]


def listed(text: str) -> list[str]:
    """Splits ``a,b`` and drops repeats."""
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def positions(text: str, name: str = "--index") -> list[int]:
    """Reads ``3,14,20-22`` as ``[3, 14, 20, 21, 22]``, repeats dropped."""
    found: list[int] = []
    for part in text.split(","):
        begin, dash, end = (piece.strip() for piece in part.partition("-"))
        if not begin.isdecimal() or (dash and not end.isdecimal()):
            raise ConfigError(f"'{name}' takes whole numbers from 0 on, as 3,14,20-25 (got {text!r}).")
        first, last = int(begin), int(end if dash else begin)
        if last < first:
            raise ConfigError(f"'{name}' counts upwards: {part.strip()} names nothing. Write {last}-{first}.")
        if last - first >= 10_000_000:
            raise ConfigError(f"'{name}': {part.strip()} names {last - first + 1} instances. Use --all for all.")
        found += range(first, last + 1)
    return list(dict.fromkeys(found))


def value_of(text: str) -> Any:
    """Reads a number, true, false or null; anything else is a word."""
    try:
        return json.loads(text)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(text, text)


def assignments(texts: Sequence[str]) -> dict[str, Any]:
    """Reads ``name=value`` settings of an explainer; names and values are checked."""
    from gflowexplainer.settings import Settings

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and name and value):
            raise ConfigError(f"'--set' takes NAME=VALUE, such as beta=50 (got {text!r}).")
        one_of("setting", name, tuple(Settings.__dataclass_fields__))
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
