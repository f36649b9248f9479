"""The loop around a sampler: updates, checkpoints, several processes."""
