"""What the user holds in hand: a distribution over connected subgraphs."""

from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.findings import Certificate
from gflowexplainer.explanation.ranked import RankedSubgraph

__all__ = ["Certificate", "RankedSubgraph", "SubgraphExplanation"]
