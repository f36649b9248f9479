"""The settings each GNN is trained with, found by trying them on the published and on generated data."""

from dataclasses import dataclass

from gflowbench.models.architecture import MODELS, TASKS
from gflowexplainer.errors import ConfigError, one_of


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a GNN is trained.

    Attributes:
        learning_rate: Of Adam at the start; it falls to zero over ``max_epochs`` along a cosine.
        weight_decay: Of Adam.
        max_epochs: Passes over the training split at most.
        patience: Epochs without a better validation result after which training ends.
        batch_size: Graph tasks: graphs in one step.
        clip_norm: Longest gradient of one step.
        centred: Whether to start with centred layers (:func:`~gflowbench.models.initialization.centre`).
        hidden_channels: Width of each layer.
        normalization: See :class:`~gflowbench.models.architecture.Architecture`.
        padded_nodes: Graph tasks: see :class:`~gflowbench.models.architecture.Architecture`.
    """

    learning_rate: float = 0.01
    weight_decay: float = 0.0
    max_epochs: int = 1000
    patience: int = 300
    batch_size: int = 64
    clip_norm: float = 2.0
    centred: bool = False
    hidden_channels: int = 20
    normalization: str = "l2"
    padded_nodes: int | None = None

    def __post_init__(self) -> None:
        """Refuses settings that cannot train."""
        for name in ("max_epochs", "patience", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"'{name}' must be a positive whole number (got {value!r}).")
        for name in ("learning_rate", "clip_norm"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"'{name}' must be positive (got {getattr(self, name)!r}).")
        if self.weight_decay < 0:
            raise ConfigError(f"'weight_decay' must not be negative (got {self.weight_decay!r}).")


_NODE = Recipe()
_GRAPH = Recipe(max_epochs=80, patience=40)
# All graphs have the same constant features, so the classes differ in nothing but structure, which a GCN that
# normalises rows sees only faintly at first. Steps any larger throw it back to where it sees nothing.
_BA_2MOTIFS = Recipe(learning_rate=0.002, clip_norm=0.3, max_epochs=120, patience=60, centred=True)
# Some of its features are very large, and the few validation nodes let a GNN that learned them by heart pass.
_BA_COMMUNITY = Recipe(weight_decay=0.001)
_OF_TASK = {"node": _NODE, "graph": _GRAPH}
_OF_DATASET = {"ba-2motifs": _BA_2MOTIFS, "ba-community": _BA_COMMUNITY}


def recipe_for(dataset: str, model: str, task: str) -> Recipe:
    """Returns the settings to train ``model`` on ``dataset`` with.

    The settings were found with GCN, and are the same for the other models.

    Args:
        dataset: Name of the dataset; one that is not known here gets the settings of its task.
        model: Name of the convolution.
        task: ``"node"`` or ``"graph"``.
    """
    one_of("model", model, MODELS)
    return _OF_DATASET.get(dataset, _OF_TASK[one_of("task", task, TASKS)])
