"""The figures of a report for papers, with matplotlib."""

from __future__ import annotations

from rankwood.drawing import Figure
from rankwood.reporting.facts import ReportFacts


def report_figures(facts: ReportFacts) -> list[Figure]:
    """Every figure of the report that there is something for."""
    return []
