"""Every number that steers an answer, with the reason for it; whatever else is a number in this library is a budget."""

FAR, NEAR = 0.5, 0.8
"""Shares of an instance that the random contexts of a piece keep: among half of the nodes a piece shows what it brings
by itself, among four fifths what it does together with others."""
PIECE = 8
"""Nodes of a random piece at most; a motif of the usual size fits into it, and nothing depends on ``max_nodes``."""
RIDGE = 1e-3
"""Penalty of standardised weights: far below what any kind explains that matters."""
POOLING = 10.0
"""Instances of a class at which it is described half by its own weights and half by those of all classes."""
MAX_KINDS = 16
"""Directions that the nodes of one source of kinds are told apart by, at most."""
SPARSE = 8.0
"""Neighbours up to which each edge counts fully: those of rings, houses and molecules do, those among hubs do not."""
EXPLAINED, ADDED_UP = 2.0, 4.0
"""Powers of the share of the variance that kinds explain, and that single losses add up to, by which each counts. For
losses it is higher: a model that knows several ways to its answer loses little without any one node, whatever it looks
at."""
CLEAR = 0.5
"""Share of the evidence of the loudest node at which one speaks clearly; what speaks louder counts no more, so that a
whole motif is found and not its loudest corner."""
LEAST_SPREAD = 0.2
"""Share of the usual spread of evidence that an instance has at least, or noise would be blown up."""
SILENT = 0.25
"""Nodes that say nothing and count in the mean of every subgraph, so that of equal nodes all are better than some."""
ENDING = 0.5
"""Chance that random growth ends after a node: of two explanations that say as much, one that is a node larger is half
as probable."""
BETA = 6.0
"""A subgraph that stands out by one spread of the reward is e^6 times as probable as the usual one."""
PRICE = 0.01
"""Probability that one node more must be worth in the parts that are shown."""
MARGIN = 0.25
"""How much better than random sets of its size an explanation must be to say anything."""
AGREED = 0.05
"""Total variation between what is shown and the target, as two independent runs tell it, up to which it is right."""
