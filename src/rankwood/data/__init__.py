"""Ranking data: the data set object, readers and writers, synthetic data."""
