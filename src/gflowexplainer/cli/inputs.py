"""From the words of a command to what is explained: a model, graphs and which of their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

from gflowexplainer.cli.options import Inputs, check_device, listed, positions, value_of
from gflowexplainer.errors import ConfigError, InstanceError, one_of
from gflowexplainer.report.truth import own_motif
from gflowexplainer.sources import fill_weights, load_graphs, load_model, read_molecules
from gflowexplainer.sources.datasets import NamedDataset, load_dataset
from gflowexplainer.storage.identity import identity_of

if TYPE_CHECKING:
    from gflowexplainer.report import Case

MODES = {
    "multiclass": "multiclass_classification",
    "binary": "binary_classification",
    "regression": "regression",
}


@dataclass(frozen=True)
class Loaded:
    """A model, graphs, and which of their predictions to explain.

    Attributes:
        model: The model, on its device.
        graphs: The graphs, there too; exactly one unless graphs are explained.
        level: ``"node"``, ``"edge"`` or ``"graph"``.
        places: Nodes, positions of graphs, or columns of ``links``.
        config: Mode, level and return type, as PyG's ``ModelConfig`` takes them; ``None`` for those of the explainer.
        links: Both ends of the links, shape ``[2, L]``.
        target: Classes or values to explain, one a node, graph or link; ``None`` for the predicted ones.
        node_type: Type of the nodes.
        dataset: The dataset by name that the graphs are of.
    """

    model: nn.Module
    graphs: list[Any]
    level: str
    places: list[int]
    config: dict[str, str] | None
    links: Tensor | None = None
    target: Tensor | None = None
    node_type: str | None = None
    dataset: NamedDataset | None = None

    @property
    def data(self) -> Any:
        """The graphs as the explainer takes them."""
        return self.graphs if self.level == "graph" else self.graphs[0]

    def arguments(self, places: Sequence[int] | None = None) -> dict[str, Any]:
        """Returns the arguments of ``fit`` and ``explain`` that name some of the predictions, all by default."""
        chosen = self.places if places is None else list(places)
        if self.links is None:
            return {"model_config": self.config, "target": self.target, "index": chosen}
        target = None if self.target is None else self.target[chosen]
        return {"model_config": self.config, "target": target, "edge_label_index": self.links[:, chosen]}

    def name(self, place: int) -> str:
        """Returns what to call an instance."""
        if self.links is not None:
            return f"link {' - '.join(map(str, self.links[:, place].tolist()))}"
        return f"{self.node_type or self.level} {place}"

    def sentence(self) -> str:
        """Returns a sentence about what is to be explained, so that a wrong guess is seen."""
        kind = {"edge": "link"}.get(self.level, self.level)
        what = f"{len(self.places)} {kind}{'s' if len(self.places) != 1 else ''}"
        where = f"of {len(self.graphs)}" if self.level == "graph" else f"of a graph with {self.data.num_nodes} nodes"
        how = "as the explainer was fitted"
        if self.config is not None:
            mode = next(short for short, long in MODES.items() if long == self.config["mode"])
            how = f"{mode}, returns {self.config['return_type']}"
        return f"{what} {where}; {type(self.model).__name__}, {how} (--task-level, --mode, --return-type change this)"

    def identity(self, **more: Any) -> dict[str, str]:
        """Returns digests of the model and of everything that it may be given, to notice when a file has changed."""
        graphs = [{str(name): value for name, value in graph.to_dict().items()} for graph in self.graphs]
        words: dict[str, Any] = {"index": self.places, "target": self.target, "edge_label_index": self.links}
        return identity_of(self.model, graphs, **words, **more)

    def case(self, place: int, explanation: Any) -> Case:
        """Returns an explanation with everything that is known about its instance."""
        from gflowexplainer.report import Case

        graph = self.graphs[place if self.level == "graph" else 0]
        if isinstance(graph, HeteroData):
            return explanation.case(self.name(place))
        shown = {"labels": graph.get("node_names"), "words": graph.get("tokens"), "smiles": graph.get("smiles")}
        if self.dataset is not None:
            shown |= {"classes": self.dataset.classes, **self.dataset.describe(graph)}
        truth = own_motif(graph, explanation.explained_node)
        return Case(name=self.name(place), explanation=explanation, truth=truth, **shown)

    def doubts(self, explanation: Any) -> list[str]:
        """Returns what looks as if something else was meant: many outputs that no label has, as of an embedding."""
        plain = [graph for graph in self.graphs if isinstance(graph, Data)]
        stores = plain if self.node_type is None else [self.graphs[0][self.node_type]]
        labels = [store.y.reshape(-1) for store in stores if isinstance(store.get("y"), Tensor)]
        known = torch.cat(labels) if labels else torch.empty(0)
        outputs = len(explanation.whole_prediction or ())
        if known.is_floating_point() or known.numel() < 10 * outputs or 2 * (int(known.max()) + 1) > outputs:
            return []
        return [
            f"The model returns {outputs} columns, but 'y' knows {int(known.max()) + 1} classes. If the columns are an "
            "embedding, name a model that ends in a prediction."
        ]


def read_inputs(
    words: Inputs, *, device: str = "cpu", seed: int = 0, progress: bool = False, fitted: bool = False
) -> Loaded:
    """Loads what the options name.

    Args:
        words: The options.
        device: Where model and graphs go.
        seed: Of a dataset that is generated, or a GNN that is trained.
        progress: Whether training of a GNN shows a progress bar.
        fitted: Whether a fitted explainer knows mode and return type.
    """
    check_device(device)
    _check_combination(words)
    named, model, graphs = None, None, []
    if words.dataset is not None:
        gnn = (words.gnn or "published") if words.model is None else None
        named = load_dataset(words.dataset, gnn=gnn, seed=seed, progress=progress)
        model, graphs = named.model, named.graphs
    if words.model is not None:
        model = load_model(words.model)
        if words.weights is not None:
            fill_weights(model, words.weights)
    if words.data is not None or words.smiles is not None:
        graphs, named = _graphs(words), None
    assert model is not None
    level = _level(words, graphs, named)
    if level != "graph" and len(graphs) != 1:
        raise ConfigError(
            f"Predictions of {level}s are explained in one graph, but there are {len(graphs)}. "
            "Use --task-level graph, or give one graph."
        )
    model, graphs = model.to(device).eval(), [graph.to(device) for graph in graphs]
    count = _count(words, level, graphs)
    links = _links(words.edge_label_index, device)
    places = _places(words, level, count, named) if links is None else list(range(links.size(1)))
    target = _target(words, places, level, len(places) if level == "edge" else count, graphs)
    return Loaded(model, graphs, level, places, _config(words, level, fitted), links, target, words.node_type, named)


def untrained(words: Inputs, model: nn.Module) -> list[str]:
    """Returns a warning where nothing says which weights a model has."""
    if words.model is None or words.weights is not None or not any(True for _ in model.parameters()):
        return []
    return [
        f"No --weights are given, so {type(model).__name__} is explained as '{words.model}' makes it. If that is an "
        "untrained network, its predictions and their explanations mean nothing."
    ]


def _check_combination(words: Inputs) -> None:
    wrong = (
        (words.model is None and words.dataset is None, "Which model? Name yours with --model, or try one that is "
         "there: --dataset karate."),
        (words.data is None and words.smiles is None and words.dataset is None, "Which graphs? Name a file with --data "
         "(or --smiles, or --dataset)."),
        (words.data is not None and words.smiles is not None, "'--data' and '--smiles' exclude each other. Leave one "
         "out."),
        (words.model is None and words.weights is not None, "'--weights' needs '--model', which says what they are the "
         "weights of."),
        (words.gnn is not None and (words.dataset is None or words.model is not None), "'--gnn' names a GNN of a "
         "dataset: use it with --dataset and without --model."),
        (words.atoms is not None and words.smiles is None, "'--atoms' says how molecules are read: use it with "
         "--smiles."),
        ((words.index is not None) + words.everything + (words.edge_label_index is not None) > 1, "'--index', '--all' "
         "and '--edge-label-index' exclude each other. Leave the others out."),
    )  # fmt: skip
    for is_wrong, said in wrong:
        if is_wrong:
            raise ConfigError(said)


def _graphs(words: Inputs) -> list[Any]:
    if words.smiles is None:
        assert words.data is not None
        return load_graphs(words.data)
    atoms = {} if words.atoms is None else {"atoms": tuple(listed(words.atoms))}
    return list(read_molecules(words.smiles, column=words.smiles_column, **atoms))


def _level(words: Inputs, graphs: Sequence[Any], named: NamedDataset | None) -> str:
    if words.task_level is not None:
        return one_of("task-level", words.task_level, ("node", "edge", "graph"))
    if words.edge_label_index is not None:
        return "edge"
    if named is not None:
        return named.level
    if words.smiles is not None or len(graphs) != 1:
        return "graph"
    (graph,) = graphs
    y = graph.get("y") if isinstance(graph, Data) else None
    labelled = isinstance(y, Tensor) and y.dim() > 0 and y.size(0) == graph.num_nodes > 1
    return "node" if words.index is not None or words.node_type is not None or labelled else "graph"


def _config(words: Inputs, level: str, fitted: bool) -> dict[str, str] | None:
    if fitted and (words.mode, words.task_level, words.return_type) == (None, None, None):
        return None
    mode = words.mode or ("binary" if level == "edge" else "multiclass")
    mode = mode if mode in MODES.values() else MODES[one_of("mode", mode, tuple(MODES))]
    return_type = one_of("return-type", words.return_type or "raw", ("raw", "probs", "log_probs"))
    if mode == MODES["regression"] and return_type != "raw":
        raise ConfigError("A regression model returns 'raw' values. Leave '--return-type' out.")
    return {"mode": mode, "task_level": level, "return_type": return_type}


def _links(text: str | None, device: str) -> Tensor | None:
    if text is None:
        return None
    try:
        pairs = [[int(end) for end in pair.split(":")] for pair in text.split(",")]
        return torch.tensor(pairs, device=device).reshape(len(pairs), 2).t().contiguous()
    except (ValueError, RuntimeError, OverflowError) as error:
        raise ConfigError(f"'--edge-label-index' takes pairs of node ids, as 0:4,3:9 (got {text[:80]!r}).") from error


def _count(words: Inputs, level: str, graphs: Sequence[Any]) -> int | None:
    """Returns how many instances there are; ``None`` where the type of the nodes is not known."""
    if level == "graph":
        return len(graphs)
    if isinstance(graphs[0], Data):
        return int(graphs[0].num_nodes or 0)
    if words.node_type is None:
        return None
    return int(graphs[0][one_of("node type", words.node_type, tuple(graphs[0].node_types))].num_nodes)


def _places(words: Inputs, level: str, count: int | None, named: NamedDataset | None) -> list[int]:
    if level == "edge":
        raise ConfigError("Which links? Name both ends of each, as --edge-label-index 0:4,3:9.")
    if count == 0:
        raise InstanceError("There is nothing to explain: the graph has no nodes.")
    if words.index is not None:
        wanted = positions(words.index)
        if count is not None and max(wanted) >= count:
            there = f"the graph has {count} nodes" if level == "node" else f"there are {count} graphs"
            raise ConfigError(f"'--index' names {level} {max(wanted)}, but {there}. Use numbers in 0-{count - 1}.")
        return wanted
    if words.everything and named is not None:
        return named.index
    if count is None:
        raise ConfigError("Which nodes? Say of which type they are with --node-type.")
    if not words.everything and (level == "node" or named is not None):
        example = ",".join(map(str, (range(count) if named is None else named.index)[:3]))
        raise ConfigError(f"Which {level}s? Name them, as --index {example}, or use --all.")
    return list(range(count))


def _target(words: Inputs, places: list[int], level: str, total: int | None, graphs: Sequence[Any]) -> Tensor | None:
    """Reads ``--target`` into one value a node, graph or link; those that are not explained stay 0."""
    if words.target is None:
        return None
    regression = words.mode == "regression"
    kind = torch.float if regression else torch.long
    if words.target == "labels":
        stores = graphs if words.node_type is None else [graphs[0][words.node_type]]
        labels = [store.to_dict().get("y") for store in stores]
        if any(not isinstance(label, Tensor) for label in labels):
            raise ConfigError("'--target labels' needs labels, but the graphs have none ('y' is missing).")
        known = torch.cat([label.reshape(-1) for label in labels])
        if known.numel() != total:
            raise ConfigError(f"'--target labels' needs one label a {level} (got {known.numel()}).")
        return known.to(kind)
    numbers = [value_of(part) for part in words.target.split(",")]
    fits = int | float if regression else int
    if any(not isinstance(number, fits) or isinstance(number, bool) or abs(number) > 1e15 for number in numbers):
        what = "a value" if regression else "a class, which is a whole number"
        raise ConfigError(f"'--target' takes {what}, one for all or one for each, or 'labels' (got {words.target!r}).")
    if len(numbers) not in (1, len(places)):
        raise ConfigError(f"'--target' names {len(numbers)} values for {len(places)} instances. Give one, or one each.")
    if total is None:
        raise ConfigError("'--target' needs the type of the nodes. Say it with --node-type.")
    values = torch.zeros(total, dtype=kind)
    values[places] = torch.tensor(numbers, dtype=kind)
    return values
