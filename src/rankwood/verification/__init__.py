"""Comparison of two models: whether they score alike, on data and on rows at every threshold."""
