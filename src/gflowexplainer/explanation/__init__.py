"""What the user holds in hand: a distribution over connected subgraphs."""

from gflowexplainer.explanation.certificate import Certificate
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.ranked_subgraphs import RankedSubgraph

__all__ = ["Certificate", "RankedSubgraph", "SubgraphExplanation"]
