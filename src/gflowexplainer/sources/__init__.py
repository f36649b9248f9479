"""What a user brings along: a model, its weights, graphs, molecules. Reading files runs no code that is in them."""

from gflowexplainer.sources.datasets import karate_club
from gflowexplainer.sources.graph_files import load_graphs, load_typed_graph, save_graphs, save_typed_graph
from gflowexplainer.sources.model_files import fill_weights, load_model
from gflowexplainer.sources.smiles import read_molecules

__all__ = [
    "fill_weights",
    "karate_club",
    "load_graphs",
    "load_model",
    "load_typed_graph",
    "read_molecules",
    "save_graphs",
    "save_typed_graph",
]
