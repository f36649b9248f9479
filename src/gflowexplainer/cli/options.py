"""The options that commands share, in dataclasses by what they are about, and how their words are read."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from gflowexplainer.errors import ConfigError, one_of

_MODEL, _DATA, _WHAT, _HOW, _OUT = "Model", "Graphs", "What to explain", "How", "Output"
_MOST_NAMED = 1_000_000
"""Instances that a range of ``--index`` may name."""


def _option(panel: str, help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


Json = Annotated[bool, _option(_OUT, "Print the results as JSON, not as a table.", "--json")]
Quiet = Annotated[bool, _option(_OUT, "Show no progress.", "--quiet")]


@dataclass(frozen=True)
class Inputs:
    """Which model, which graphs, and which of their predictions."""

    model: Annotated[
        str | None,
        _option(
            _MODEL,
            "Your model: a function or class without arguments, or an nn.Module, as my_models:build or file.py:Net.",
            metavar="MODULE:NAME",
        ),
    ] = None
    weights: Annotated[Path | None, _option(_MODEL, "Its weights: .safetensors, or .pt of a state dict.")] = None
    mode: Annotated[
        str | None, _option(_MODEL, "'multiclass', 'binary' or 'regression'. (default: multiclass, of links binary)")
    ] = None
    task_level: Annotated[
        str | None,
        _option(
            _MODEL,
            "'node', 'edge' or 'graph'. (default: node for one graph with --index or a label for each node, edge with "
            "--edge-label-index, else graph)",
        ),
    ] = None
    return_type: Annotated[
        str | None, _option(_MODEL, "What it returns: 'raw' scores, 'probs' or 'log_probs'. (default: raw)")
    ] = None
    data: Annotated[
        Path | None,
        _option(
            _DATA,
            "Graphs: .safetensors or .npz with x and edge_index, .pt of a PyG Data, .json of nodes and edges, or a "
            "folder of these. Of several types: x__TYPE and edge_index__SOURCE__RELATION__TARGET.",
        ),
    ] = None
    smiles: Annotated[
        Path | None, _option(_DATA, "Molecules: a table with a column of SMILES.", metavar="FILE.csv")
    ] = None
    smiles_column: Annotated[str, _option(_DATA, "Name of that column.")] = "smiles"
    atoms: Annotated[
        str | None,
        _option(
            _DATA,
            "Elements that the model knows, in the order of its features, as C,N,O,F. With H among them hydrogens are "
            "atoms too. (default: the 14 of Mutagenicity)",
        ),
    ] = None
    dataset: Annotated[
        str | None, _option(_DATA, "A dataset with a GNN: karate, or with gflowbench one of the paper, as tree-cycles.")
    ] = None
    gnn: Annotated[
        str | None,
        _option(_DATA, "With --dataset: its 'published' GNN, or one that is 'trained' here. (default: published)"),
    ] = None
    index: Annotated[
        str | None,
        _option(
            _WHAT,
            "Nodes, or positions of graphs, counted from 0; 20-25 is six of them.",
            metavar="3,14,20-25",
        ),
    ] = None
    everything: Annotated[
        bool, _option(_WHAT, "All of them; of a dataset, those that are usually explained.", "--all")
    ] = False
    edge_label_index: Annotated[str | None, _option(_WHAT, "Links, both ends of each, as 0:4,3:9.")] = None
    node_type: Annotated[
        str | None, _option(_WHAT, "Type of the nodes, of a heterogeneous graph. (default: found out)")
    ] = None
    edge_type: Annotated[str | None, _option(_WHAT, "Relation of the links, as user,likes,item.")] = None
    keep_link: Annotated[bool, _option(_WHAT, "Leave explained links in the graph.", "--keep-link")] = False
    target: Annotated[
        str | None,
        _option(
            _WHAT, "Explain this class (or value) instead of the predicted one: one for all, one for each, or 'labels'."
        ),
    ] = None


@dataclass(frozen=True)
class How:
    """How to explain."""

    preset: Annotated[
        str | None, _option(_HOW, "Settings to begin with, as 'default' or 'paper'. (default: default)")
    ] = None
    max_nodes: Annotated[int | None, _option(_HOW, "Most nodes of an explanation.", min=1)] = None
    samples: Annotated[int | None, _option(_HOW, "Subgraphs to sample for each prediction.", min=1)] = None
    num_hops: Annotated[int | None, _option(_HOW, "Message-passing steps of the model. (default: counted)", min=0)] = (
        None
    )
    setting: Annotated[
        list[str] | None,
        _option(_HOW, "Any setting of GFlowExplainer, as beta=50; may be repeated.", "--set", metavar="NAME=VALUE"),
    ] = None
    seed: Annotated[int | None, _option(_HOW, "Fixes everything random. (default: 0)")] = None
    device: Annotated[str, _option(_HOW, "Where to compute: 'cpu' or 'cuda'.")] = "cpu"

    def settings(self) -> dict[str, Any]:
        """Returns the arguments of ``GFlowExplainer`` that the options name."""
        found = assignments(self.setting or [])
        named = {"preset": self.preset, "max_nodes": self.max_nodes, "num_samples": self.samples}
        named |= {"num_hops": self.num_hops, "seed": self.seed}
        for name, value in named.items():
            if value is not None and name in found:
                raise ConfigError(f"'{name}' is said twice: by an option of its own and by --set. Say it once.")
        return found | {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class Output:
    """Where results go."""

    out: Annotated[
        Path | None,
        _option(
            _OUT,
            "Folder of the run; the same command goes on where it stopped. (default: a folder of its own in runs/)",
        ),
    ] = None
    overwrite: Annotated[
        bool, _option(_OUT, "Begin anew in --out: what an earlier run wrote there is deleted.", "--overwrite")
    ] = False
    as_json: Json = False
    quiet: Quiet = False


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
        for field in fields(groups[name]):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters.append(
                inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=inner[field.name]
                )
            )

    @wraps(command)
    def run(**words: Any) -> None:
        made = {
            name: kind(**{field.name: words.pop(field.name) for field in fields(kind)}) for name, kind in groups.items()
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
    found: list[int] = []
    for part in text.split(","):
        begin, dash, end = (piece.strip() for piece in part.partition("-"))
        if not begin.isdecimal() or (dash and not end.isdecimal()) or max(len(begin), len(end)) > 18:
            raise ConfigError(f"'--index' takes whole numbers from 0 on, as 3,14,20-25 (got {text[:80]!r}).")
        first, last = int(begin), int(end if dash else begin)
        if last < first:
            raise ConfigError(f"'--index' counts upwards: {part.strip()} names nothing. Write {last}-{first}.")
        if last - first >= _MOST_NAMED:
            raise ConfigError(f"'--index': {part.strip()} names {last - first + 1} instances. Use --all for all.")
        found += range(first, last + 1)
    return list(dict.fromkeys(found))


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
