"""What a GNN is made of: the few facts from which it can be rebuilt, as a plain record."""

import json
from dataclasses import asdict, dataclass, fields

from gflowbench.models.convolutions import CONVOLUTIONS, GAT_HEADS
from gflowexplainer.errors import ConfigError, one_of

MODELS: tuple[str, ...] = tuple(CONVOLUTIONS)
TASKS = ("node", "graph")
NORMALIZATIONS = ("l2", "batch", "none")


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The shape of a three-layer GNN.

    Attributes:
        model: The convolution: ``"gcn"``, ``"gin"``, ``"gat"`` or ``"graphsage"``.
        task: ``"node"`` or ``"graph"``: what gets a class.
        in_channels: Number of node features.
        num_classes: Number of classes.
        hidden_channels: Width of each layer.
        normalization: ``"l2"`` scales every node's output to length one before the ReLU; ``"batch"`` puts
            batch normalisation after the ReLU of the first two layers; ``"none"`` leaves both out. Only ``"batch"``
            makes disjoint graphs depend on one another while training.
        padded_nodes: Graph tasks: behave as if every graph had been filled up to this number of nodes, with
            nodes that have zero features and only a self loop. A larger graph is not filled.
    """

    model: str
    task: str
    in_channels: int
    num_classes: int
    hidden_channels: int = 20
    normalization: str = "l2"
    padded_nodes: int | None = None

    def __post_init__(self) -> None:
        """Refuses shapes that cannot be built."""
        one_of("model", self.model, MODELS)
        one_of("task", self.task, TASKS)
        one_of("normalization", self.normalization, NORMALIZATIONS)
        for name in ("in_channels", "num_classes", "hidden_channels"):
            _positive(name, getattr(self, name))
        if self.model == "gat" and self.hidden_channels % GAT_HEADS:
            raise ConfigError(
                f"'hidden_channels' must be a multiple of {GAT_HEADS}, the number of heads, for 'gat' "
                f"(got {self.hidden_channels})."
            )
        if self.padded_nodes is not None:
            _positive("padded_nodes", self.padded_nodes)
            if self.task != "graph":
                raise ConfigError("'padded_nodes' is for graph tasks. Leave it out for a node task.")

    def to_json(self) -> str:
        """Returns the record as a JSON object."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Architecture":
        """Rebuilds the record that :meth:`to_json` wrote."""
        try:
            values = json.loads(text)
        except (TypeError, json.JSONDecodeError) as error:
            raise ConfigError(f"An architecture must be a JSON object (got {text!r}).") from error
        known = {field.name for field in fields(cls)}
        required = {"model", "task", "in_channels", "num_classes"}
        if not isinstance(values, dict) or not required <= set(values) <= known:
            raise ConfigError(f"An architecture must have the keys {sorted(required)} (got {text!r}).")
        return cls(**values)


def _positive(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"'{name}' must be a positive whole number (got {value!r}).")
