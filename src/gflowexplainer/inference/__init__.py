"""From a trained flow network to explanations."""
