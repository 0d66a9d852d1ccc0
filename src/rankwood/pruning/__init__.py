"""Pruning: make any tree ranker smaller, re-weigh what remains, and show that nothing was lost (CLEaVER)."""
