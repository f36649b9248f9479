"""From the words of ``fit`` and ``explain`` to what is explained: a model, graphs and which of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowexplainer.cli.options import assignments, check_device, listed, positions, value_of
from gflowexplainer.errors import ConfigError, DatasetError, GFlowExplainerError, InstanceError, one_of
from gflowexplainer.explainer import GFlowExplainer
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import input_graphs
from gflowexplainer.model.config import guess_level
from gflowexplainer.report.truth import own_motif
from gflowexplainer.settings import PRESETS
from gflowexplainer.sources import fill_weights, load_graphs, load_model, read_molecules
from gflowexplainer.sources.datasets import load_dataset
from gflowexplainer.sources.datasets import NamedDataset
from gflowexplainer.sources.typed_files import is_typed_file
from gflowexplainer.storage.identity import identity_of

if TYPE_CHECKING:
    from gflowexplainer.report import Case

MODES = {
    "multiclass": "multiclass_classification",
    "binary": "binary_classification",
    "regression": "regression",
}


@dataclass(frozen=True)
class CommandInputs:
    """A model, graphs, and which of their predictions to explain.

    Attributes:
        model: The model, on its device.
        graphs: The graphs, there too; exactly one at node level.
        index: Nodes, or positions of graphs.
        config: Mode, level and return type, as PyG's ``ModelConfig`` takes them.
        target: Classes or values to hold, one a node of the graph (a graph of the list), of which only those at
            ``index`` count; ``None`` for the predicted ones.
        dataset: The dataset by name that the graphs are of, if they are.
    """

    model: nn.Module
    graphs: list[Data]
    index: list[int]
    config: dict[str, str]
    target: Tensor | None = None
    dataset: NamedDataset | None = None

    @property
    def level(self) -> str:
        """``"node"`` or ``"graph"``."""
        return self.config["task_level"]

    @property
    def data(self) -> Data | list[Data]:
        """The graphs as the explainer takes them."""
        return self.graphs[0] if self.level == "node" else self.graphs

    @cached_property
    def graph_index(self) -> GraphIndex | None:
        """The index of the one graph whose nodes are explained, built once; ``None`` at graph level."""
        if self.level == "graph":
            return None
        return GraphIndex.build(self.graphs[0].edge_index, self.graphs[0].x.size(0))

    def name(self, place: int) -> str:
        """What to call an instance."""
        return f"{self.level} {place}"

    def sentence(self) -> str:
        """Says what is about to be explained, so that a wrong guess is seen."""
        kind = next(short for short, long in MODES.items() if long == self.config["mode"])
        what = f"{len(self.index)} {self.level}{'s' if len(self.index) != 1 else ''}"
        where = (
            f"of a graph with {self.graphs[0].num_nodes} nodes" if self.level == "node" else f"of {len(self.graphs)}"
        )
        return (
            f"{what} {where}; {type(self.model).__name__}, {kind}, returns {self.config['return_type']} "
            "(--task-level, --mode and --return-type change this)"
        )

    def identity(self, **more: Any) -> dict[str, str]:
        """Names the model and everything that it is given, to notice when a file has changed."""
        graphs = [graph.given() for graph in input_graphs(self.data, self.model, {})]
        return identity_of(self.model, graphs, index=self.index, target=self.target, **more)

    def case(self, place: int, explanation: SubgraphExplanation) -> Case:
        """Puts an explanation together with everything that is known about its instance."""
        from gflowexplainer.report import Case

        graph = self.graphs[0 if self.level == "node" else place]
        shown = {"labels": graph.get("names"), "words": graph.get("tokens"), "smiles": graph.get("smiles")}
        if self.dataset is not None:
            shown |= {"classes": self.dataset.classes, **self.dataset.describe(graph)}
        truth = own_motif(graph, explanation.explained_node)
        return Case(name=self.name(place), explanation=explanation, truth=truth, **shown)


def read_inputs(
    *,
    model: str | None,
    weights: Path | None,
    mode: str | None,
    task_level: str | None,
    return_type: str | None,
    data: Path | None,
    smiles: Path | None,
    smiles_column: str,
    atoms: str | None,
    dataset: str | None,
    gnn: str | None,
    index: str | None,
    everything: bool,
    target: str | None,
    seed: int | None,
    device: str,
    progress: bool,
    fitted: Mapping[str, str] | None = None,
) -> CommandInputs:
    """Brings together what the options name; the arguments are the options.

    Args:
        progress: Whether training of a GNN shows a progress bar.
        fitted: Mode, level and return type of a fitted explainer, which count where the options say nothing.
    """
    check_device(device)
    _check_combination(model, weights, data, smiles, dataset, gnn, atoms)
    if index is not None and everything:
        raise ConfigError("'--index' and '--all' exclude each other. Leave one out.")
    wanted = None if index is None else positions(index)
    config = _partial_config(mode, task_level, return_type)
    named, found, graphs, protocol, level = None, None, [], None, None
    if dataset is not None:
        wanted_gnn = (gnn or "published") if model is None else None
        named = load_dataset(dataset, gnn=wanted_gnn, seed=seed or 0, progress=progress)
        found, graphs, protocol, level = named.model, named.graphs, named.index, named.level
    if model is not None:
        found = load_model(model)
        if weights is not None:
            fill_weights(found, weights)
    if data is not None:
        graphs, protocol, level = _plain_graphs(data), None, None
    elif smiles is not None:
        chosen = {} if atoms is None else {"atoms": tuple(listed(atoms))}
        graphs, protocol, level = read_molecules(smiles, column=smiles_column, **chosen), None, "graph"
    assert found is not None
    if config.get("task_level") is None:
        config["task_level"] = (
            level or (fitted or {}).get("task_level") or guess_level(graphs[0] if len(graphs) == 1 else graphs, wanted)
        )
    defaults = {"mode": MODES["multiclass"], "return_type": "raw", **(fitted or {})}
    config = {name: config.get(name) or defaults[name] for name in ("mode", "task_level", "return_type")}
    _check_level(config["task_level"], graphs)
    places = _places(wanted, everything, config["task_level"], graphs, protocol)
    moved = [graph.to(device) for graph in graphs]
    values = _target(target, places, moved, config)
    return CommandInputs(
        found.to(device), moved, places, config, values, named if data is None and smiles is None else None
    )


def explainer_of(
    *,
    preset: str | None,
    setting: Sequence[str],
    max_nodes: int | None,
    seed: int | None,
    num_hops: int | None,
    **more: Any,
) -> GFlowExplainer:
    """Makes an explainer with the settings that the options name."""
    changes = assignments(setting)
    for name, value in (("max_nodes", max_nodes), ("seed", seed)):
        if value is not None:
            if name in changes:
                raise ConfigError(f"'{name}' is said twice: as --{name.replace('_', '-')} and by --set. Say it once.")
            changes[name] = value
    chosen = one_of("preset", preset or "default", tuple(PRESETS))
    return GFlowExplainer(preset=chosen, num_hops=num_hops, **more, **changes)


def _check_combination(
    model: str | None,
    weights: Path | None,
    data: Path | None,
    smiles: Path | None,
    dataset: str | None,
    gnn: str | None,
    atoms: str | None,
) -> None:
    if model is None and dataset is None:
        raise ConfigError("Which model? Name yours with --model, or try one that is there: --dataset karate.")
    if data is None and smiles is None and dataset is None:
        raise ConfigError("Which graphs? Name a file with --data (or --smiles, or --dataset).")
    if data is not None and smiles is not None:
        raise ConfigError("'--data' and '--smiles' exclude each other. Leave one out.")
    if model is None and weights is not None:
        raise ConfigError("'--weights' needs '--model', which says what they are the weights of.")
    if gnn is not None and (dataset is None or model is not None):
        raise ConfigError("'--gnn' names a GNN of a dataset: use it with --dataset and without --model.")
    if atoms is not None and smiles is None:
        raise ConfigError("'--atoms' says how molecules are read: use it with --smiles.")


def _partial_config(mode: str | None, task_level: str | None, return_type: str | None) -> dict[str, str]:
    config = {}
    if mode is not None:
        config["mode"] = mode if mode in MODES.values() else MODES[one_of("mode", mode, tuple(MODES))]
    if task_level is not None:
        config["task_level"] = one_of("task-level", task_level, ("node", "graph"))
    if return_type is not None:
        config["return_type"] = one_of("return-type", return_type, ("raw", "probs", "log_probs"))
    if config.get("mode") == MODES["regression"] and return_type not in (None, "raw"):
        raise ConfigError("A regression model returns 'raw' values. Leave '--return-type' out.")
    return config


def _check_level(level: str, graphs: Sequence[Data]) -> None:
    if level == "node" and len(graphs) != 1:
        raise ConfigError(
            f"Predictions of nodes are explained in one graph, but there are {len(graphs)}. "
            "Use --task-level graph, or give one graph."
        )


def _places(
    wanted: list[int] | None, everything: bool, level: str, graphs: Sequence[Data], protocol: list[int] | None
) -> list[int]:
    count = len(graphs) if level == "graph" else int(graphs[0].num_nodes or 0)
    if count == 0:
        raise InstanceError("There is nothing to explain: the graph has no nodes.")
    if wanted is None:
        if everything and protocol is not None:
            return protocol
        if not everything and (level == "node" or protocol is not None):
            example = ",".join(map(str, (protocol or range(count))[:3]))
            raise ConfigError(f"Which {level}s? Name them, as --index {example}, or use --all.")
        return list(range(count))
    wrong = [place for place in wanted if place >= count]
    if wrong:
        there = f"the graph has {count} nodes" if level == "node" else f"there are {count} graphs"
        raise ConfigError(f"'--index' names {level} {wrong[0]}, but {there}. Use numbers in 0-{count - 1}.")
    return wanted


def _target(text: str | None, places: list[int], graphs: list[Data], config: dict[str, str]) -> Tensor | None:
    """Reads ``--target`` into one value a node (a graph); those that are not asked for stay 0."""
    if text is None:
        return None
    node_level, regression = config["task_level"] == "node", config["mode"] == MODES["regression"]
    total = int(graphs[0].num_nodes or 0) if node_level else len(graphs)
    kind = torch.float if regression else torch.long
    values = torch.zeros(total, dtype=kind, device=graphs[0].x.device)
    if text == "labels":
        labels = [graph.get("y") for graph in graphs]
        if any(not isinstance(label, Tensor) for label in labels):
            raise ConfigError("'--target labels' needs labels, but the graphs have none ('y' is missing).")
        known = torch.cat([label.reshape(-1) for label in labels])
        if known.numel() != total:
            raise ConfigError(f"'--target labels' needs one label a {config['task_level']} (got {known.numel()}).")
        return known.to(kind)
    numbers = [value_of(part) for part in text.split(",")]
    if any(
        not isinstance(number, int | float if regression else int) or isinstance(number, bool) for number in numbers
    ):
        what = "a value" if regression else "a class, which is a whole number"
        raise ConfigError(f"'--target' takes {what}, one for all or one for each, or 'labels' (got {text!r}).")
    if len(numbers) not in (1, len(places)):
        raise ConfigError(f"'--target' names {len(numbers)} values for {len(places)} instances. Give one, or one each.")
    values[places] = torch.tensor(numbers, dtype=kind, device=values.device)
    return values


def _plain_graphs(path: Path) -> Any:
    """Reads graphs of one type; of a file that holds a heterogeneous one, it says which command takes it."""
    try:
        return load_graphs(path)
    except DatasetError as error:
        try:
            typed = is_typed_file(path)
        except GFlowExplainerError:  # then the file is damaged, as the first error says
            typed = False
        if not typed:
            raise
        raise ConfigError(
            f"'{path}' holds a heterogeneous graph, which this command does not take. Use explain-typed, or "
            "GFlowExplainer.fit and explain from Python."
        ) from error
