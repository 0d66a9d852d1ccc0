"""Scoring engines: ways to run a model that all reach the same leaves and the same sums, at different speeds."""
