"""The GNNs that are explained: built by name, trained, saved, and the published ones read."""

from gflowbench.models.architecture import MODELS, Architecture
from gflowbench.models.gnn_training import TrainedModel, train
from gflowbench.models.model_accuracy import Accuracy, accuracies, logits
from gflowbench.models.networks import GraphNetwork, NodeNetwork, build
from gflowbench.models.published import (
    PUBLISHED,
    PUBLISHED_DATASETS,
    PublishedAccuracy,
    load_published,
    published_accuracies,
)
from gflowbench.models.recipes import Recipe, recipe_for
from gflowbench.models.weights import load_weights, read_metadata, save_weights

__all__ = [
    "MODELS",
    "PUBLISHED",
    "PUBLISHED_DATASETS",
    "Accuracy",
    "Architecture",
    "GraphNetwork",
    "NodeNetwork",
    "PublishedAccuracy",
    "Recipe",
    "TrainedModel",
    "accuracies",
    "build",
    "load_published",
    "load_weights",
    "logits",
    "published_accuracies",
    "read_metadata",
    "recipe_for",
    "save_weights",
    "train",
]
