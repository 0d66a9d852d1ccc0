"""Models of other tools: one file per format that is read or written; `registry.py` and `export.py` list them."""
