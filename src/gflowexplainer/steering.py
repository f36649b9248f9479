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
TRUST, STEEP = 3.0, 6.0
"""What is seen near the whole instance counts this much beside what is seen far from it, where single losses add up to
what pieces bring, and steeply less where they do not: a model that knows several ways to its answer loses little
without any one node, whatever it looks at."""
LEAST_SPREAD = 0.2
"""Share of the usual spread of evidence that an instance has at least, or noise would be blown up."""
BETA = 4.0
"""Spreads of the reward that a subgraph has to stand out by to be e^4 times as probable as the usual one."""
PRICE = 0.01
"""Probability that one node more must be worth in the parts that are shown."""
MARGIN = 0.25
"""How much better than random sets of its size an explanation must be to say anything."""
AGREED = 0.05
"""Total variation between what is shown and the target, as two independent runs tell it, up to which it is right."""
