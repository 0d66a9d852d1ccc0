"""Models of other tools: one file per format, and `registry.py`, which tells them apart."""
