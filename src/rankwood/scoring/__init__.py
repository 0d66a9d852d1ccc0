"""Scoring: engines, whether they agree with each other, and the stopwatch."""
