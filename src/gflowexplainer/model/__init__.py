"""The explained model: how it is called, what it predicts, and what it sees at a node."""
