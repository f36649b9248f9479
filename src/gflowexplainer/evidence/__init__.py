"""Evidence: one number for every node and edge, learned from what the model says of small pieces in random company."""
