"""Models of other tools: read into an `Ensemble`, or written from one."""
