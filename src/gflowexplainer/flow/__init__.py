"""The generative flow network over connected subgraphs; knows nothing of GNNs."""
