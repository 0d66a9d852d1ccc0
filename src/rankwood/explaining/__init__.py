"""Explanations: what features contribute to scores, and trees as tables, texts and drawings."""
