"""Fitting: leaf values of all trees at once, to a target by least squares or to labels by Newton steps."""
