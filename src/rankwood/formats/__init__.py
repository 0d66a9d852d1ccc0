"""Models of other tools: one file per tool, reading and writing; `registry.py` lists them."""
