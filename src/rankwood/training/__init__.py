"""Training: growing trees, losses, the loop, and the estimators on top."""
