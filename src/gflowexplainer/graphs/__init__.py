"""The user's graphs: checked, indexed, and cut into flat batches of instances."""
