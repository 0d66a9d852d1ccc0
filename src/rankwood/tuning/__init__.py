"""Search for the best ranker within a scoring budget."""
