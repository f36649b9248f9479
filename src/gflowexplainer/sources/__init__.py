"""What a user brings along: a model, its weights, graphs, molecules. Nothing that is read here is executed by it."""

from gflowexplainer.sources.graph_files import load_graphs, save_graphs
from gflowexplainer.sources.karate import karate_club
from gflowexplainer.sources.model_files import fill_weights, load_model
from gflowexplainer.sources.smiles import read_molecules

__all__ = ["fill_weights", "karate_club", "load_graphs", "load_model", "read_molecules", "save_graphs"]
