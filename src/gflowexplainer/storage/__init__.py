"""What is written to disk: checkpoints, atomic files, and the identities of what was stored."""
