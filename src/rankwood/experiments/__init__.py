"""Experiments: configurations, their runs in parallel and kept in a table, and what is written of them."""
