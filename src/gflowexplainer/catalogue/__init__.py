"""What a model looks at in general: recurring motifs of many explanations, and rules of their presence."""

from gflowexplainer.catalogue.motif_catalogue import Motif, MotifCatalogue, motifs
from gflowexplainer.catalogue.rules import Rule

__all__ = ["Motif", "MotifCatalogue", "Rule", "motifs"]
