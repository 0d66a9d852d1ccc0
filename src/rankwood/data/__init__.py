"""Ranking data: the data set, readers and writers, bins, folds, synthetic data."""
