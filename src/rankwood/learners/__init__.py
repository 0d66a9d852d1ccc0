"""Learners: the boosting loop, and the estimators on top of it."""
