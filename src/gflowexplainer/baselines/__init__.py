"""Explainers to compare with, all behind one protocol."""

from gflowexplainer.baselines.interface import Explainer, Scores, Subject
from gflowexplainer.baselines.registry import FLOORS, create, names, register

__all__ = ["FLOORS", "Explainer", "Scores", "Subject", "create", "names", "register"]
