"""Scoring: engines, the stopwatch, verification."""
