"""Tasks on graphs of several types and on links, whose truth is known: data, GNNs, peers and scores."""
