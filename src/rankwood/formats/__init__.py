"""Models of other tools: one file per tool, for reading and writing; `registry` lists them."""
