"""Measures, evaluation of models, and tests of significance."""
