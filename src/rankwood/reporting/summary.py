"""The report in a few sentences."""

from __future__ import annotations

from rankwood.experiments.printed import p_text
from rankwood.reporting.facts import ALPHA, ModelFacts, ReportFacts


def summarise(facts: ReportFacts) -> list[str]:
    """The headline, and what else one should know of it; by the first measure."""
    if len(facts.models) == 1:
        return [_alone(facts)]
    kept = smallest_as_good(facts)
    sentences = [_none_kept(facts) if kept is None else _headline(facts, kept)]
    better = [m for m in facts.models if m is not facts.base and _is_better(facts, m)]
    if better:
        best = max(better, key=lambda m: m.quality[facts.measures[0]].value)
        difference = _difference(facts, best, corrected=True)
        sentences.append(f"{best.name} is significantly better than {facts.base.name}: {difference}.")
    return sentences


def headline_numbers(facts: ReportFacts) -> list[tuple[str, str]]:
    """The numbers of the headline, each with what it is."""
    measure, base = facts.measures[0], facts.base
    model = smallest_as_good(facts)
    if model is None:
        return [
            (f"{base.quality[measure].value:.4f}", f"{measure} of {base.name}"),
            (f"{number(base.timing.us_per_doc.value)} µs", "per document"),
            (f"{base.n_trees:,}", "trees"),
            (f"{base.n_leaves:,}", "leaves"),
        ]
    speed = "–" if model.speed_up is None else f"{model.speed_up:.1f}×"
    return [
        (f"{100 * model.n_leaves / base.n_leaves:.0f} %", f"of the leaves: {model.n_leaves:,} of {base.n_leaves:,}"),
        (speed, f"as fast: {number(model.timing.us_per_doc.value)} µs per document"),
        (signed(model.difference[measure].value), f"{measure}, difference from {base.name}"),
        (f"{model.n_trees:,}", f"trees, of {base.n_trees:,}"),
    ]


def smallest_as_good(facts: ReportFacts) -> ModelFacts | None:
    """The model with the fewest leaves that is smaller than the baseline and not significantly worse, if any."""
    smaller = [model for model in facts.models if model.n_leaves < facts.base.n_leaves]
    kept = [model for model in smaller if not _is_worse(facts, model)]
    return min(kept, key=lambda model: model.n_leaves, default=None)


def _alone(facts: ReportFacts) -> str:
    model, measure = facts.base, facts.measures[0]
    return (
        f"{model.name} has {model.n_trees:,} trees with {model.n_leaves:,} leaves, reaches {measure} "
        f"{model.quality[measure].value:.4f} on {facts.data['queries']:,} queries and scores a document in "
        f"{number(model.timing.us_per_doc.value)} µs."
    )


def _headline(facts: ReportFacts, model: ModelFacts) -> str:
    base = facts.base
    share = 100 * model.n_leaves / base.n_leaves
    speed = ""
    if model.speed_up is not None:
        speed = f" and scores {model.speed_up:.1f} times as fast"
    tested = model.difference[facts.measures[0]].p is not None
    what = "not significantly worse than" if tested else "to be compared with"
    return (
        f"{model.name} is the smallest model that is {what} {base.name}: it has {share:.0f} % of its leaves{speed} "
        f"({number(model.timing.us_per_doc.value)} against {number(base.timing.us_per_doc.value)} µs per document); "
        f"{_difference(facts, model)}."
    )


def _none_kept(facts: ReportFacts) -> str:
    if all(model.n_leaves >= facts.base.n_leaves for model in facts.models):
        return f"No model is smaller than {facts.base.name}, which has {facts.base.n_leaves:,} leaves."
    return f"Every model that is smaller than {facts.base.name} is significantly worse by {facts.measures[0]}."


def _difference(facts: ReportFacts, model: ModelFacts, *, corrected: bool = False) -> str:
    measure = facts.measures[0]
    found = model.difference[measure]
    text = f"{measure} {model.quality[measure].value:.4f} against {facts.base.quality[measure].value:.4f}"
    if found.low is None or found.high is None:
        return f"{text}, too few queries for a test"
    inner = f"difference {signed(found.value)}, 95 % interval {signed(found.low)} to {signed(found.high)}"
    p = f"corrected p = {p_or_dash(found.p_holm)}" if corrected else f"p = {p_or_dash(found.p)}"
    return f"{text} ({inner}, {p})"


def _is_worse(facts: ReportFacts, model: ModelFacts) -> bool:
    """By the test alone: correcting it for the number of models would overlook losses the more models there are."""
    found = model.difference[facts.measures[0]]
    return found.p is not None and found.p < ALPHA and found.value < 0


def _is_better(facts: ReportFacts, model: ModelFacts) -> bool:
    found = model.difference[facts.measures[0]]
    return found.is_significant and found.value > 0


def signed(value: float) -> str:
    """A difference, with a proper minus.

    >>> signed(0.01234), signed(-0.5)
    ('+0.0123', '−0.5000')
    """
    return f"{value:+.4f}".replace("-", "−")


def p_or_dash(p: float | None) -> str:
    """A p-value, or a dash.

    >>> p_or_dash(0.0312), p_or_dash(None)
    ('0.031', '–')
    """
    return "–" if p is None else p_text(p)


def number(value: float) -> str:
    """Three digits that count.

    >>> [number(value) for value in (0.01234, 1.234, 12.34, 1234.5)]
    ['0.0123', '1.23', '12.3', '1,234']
    """
    decimals = sum(abs(value) < bound for bound in (100, 10, 1, 0.1))
    return f"{value:,.{decimals}f}"
