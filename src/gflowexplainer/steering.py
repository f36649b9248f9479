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
STEEP = 4.0
"""Single losses count as far as they add up to what pieces bring near the whole instance, and steeply less where they
do not: a model that knows several ways to its answer loses little without any one node, whatever it looks at."""
CLEAR = 0.7
"""Share of the evidence of the loudest node at which one speaks clearly; what speaks louder counts no more, so that a
whole motif is found and not its loudest corner."""
LEAST_SPREAD = 0.2
"""Share of the usual spread of evidence that an instance has at least, or noise would be blown up."""
BETA = 6.0
"""A subgraph that stands out by one spread of the reward is e^6 times as probable as the usual one."""
PRICE = 0.01
"""Probability that one node more must be worth in the parts that are shown."""
MARGIN = 0.25
"""How much better than random sets of its size an explanation must be to say anything."""
AGREED = 0.05
"""Total variation between what is shown and the target, as two independent runs tell it, up to which it is right."""
