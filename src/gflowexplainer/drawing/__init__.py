"""One drawing of an explanation, for reports, notebooks and matplotlib."""

from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.molecules import smiles_of

__all__ = ["Case", "smiles_of"]
