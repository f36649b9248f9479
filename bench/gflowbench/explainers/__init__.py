"""Explainers to compare with, all behind one protocol."""

from gflowbench.explainers.interface import Explainer, Scores, Subject
from gflowbench.explainers.registry import FLOORS, create, names, register

__all__ = ["FLOORS", "Explainer", "Scores", "Subject", "create", "names", "register"]
