"""CLEaVER (Lucchese et al. 2016): prune a model at several rates, re-weigh the rest, take the smallest good model.

::

    model      train      validation
      │          │      ┌─────┴───────────────┐
      └────┬─────┴──────┤ chooses             │ judges (half of the queries, unless told otherwise)
           ▼            │                     │
    the leaf of every document in every tree  │                             outputs
           │                                  │
           ▼                                  │
    line search over the weights of all trees │                             line_search
           │                                  │
           ▼   for every rate                 │
    ┌──► victims: the k trees that a strategy removes                       strategies
    │      │                                  │
    │      ▼   in every variant               │
    └─── survivors re-weighed, or refitted ───┤                             pruner, leaves
                                              ▼
                  accepted: as good as the full model on queries that
                  chose nothing, and on all validation queries              accept
                                              │
                                              ▼
                  the smallest accepted model, or the full one              result
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from rankwood._version import __version__
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Comparison, Evaluator, aligned_features, compare, weighted_values
from rankwood.evaluation.measures import AnyMeasure, MeasureFunction, parse_measure
from rankwood.evaluation.significance import holm
from rankwood.fitting.outputs import sample_queries
from rankwood.model.additive import AdditiveModel
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance, Rule, p_difference, p_inferior
from rankwood.pruning.pruner import Pruned, Pruner, PruningSettings, Variant, checked_variants
from rankwood.pruning.result import CleaverResult, Row
from rankwood.pruning.strategies import Chooser, Strategy
from rankwood.scoring.timing import Budget, Timing, time_models, warn_if_busy

FEWEST_TO_SPLIT = 40  # validation queries; with fewer, halves are too small to choose or to judge by
TIMED = Budget(calls=20, seconds=0.03, most_seconds=0.4)  # per model, as there are many
OF_ANY_MODEL = ("line-search", "gradient")  # variants that change weights only
RATES = tuple(round(0.1 * i, 1) for i in range(1, 10))


def cleaver(
    model: Any,
    train: Dataset,
    valid: Dataset,
    *,
    test: Dataset | None = None,
    judge: Dataset | float | Literal["auto"] | None = "auto",
    measure: AnyMeasure = "nDCG@10",
    convention: str | Convention = "rankwood",
    strategy: str | Strategy = "quality-loss",
    rates: Sequence[float] = RATES,
    accept: Rule | Acceptance = "quality",
    variants: Variant | Sequence[Variant] = ("line-search", "refit", "distil"),
    settings: PruningSettings | None = None,
    n_threads: int | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> CleaverResult:
    """Make a tree ranker smaller without losing quality: the smallest of several pruned models that is as good.

    Works on any Ensemble, whoever trained it. Unless a smaller model is accepted the result is the input itself, and
    `result.accepted` says so. With the default rule the result is never worse on validation data than the input.

    Parameters
    ----------
    model : Ensemble, fitted ranker or AdditiveModel
        The model to prune. With an `AdditiveModel` the data sets hold the predictions of its members, only weights
        are searched, and nothing is timed.
    train : Dataset
        Data that weights are searched on.
    valid : Dataset
        Data that chooses the victims, which are the trees that are removed, and the best iteration of a search; models
        are judged on it, too.
    test : Dataset or None, default None
        Data that is only measured: `result.test` compares the result with the input there, and `result.is_loss` says
        whether it is significantly worse.
    judge : Dataset, float, "auto" or None, default "auto"
        Data set aside to judge models by, because the data that chose victims and weights is biased in their favour: a
        share of the validation queries, or other data. A model must then be as good there *and* on all of the
        validation data. "auto" sets half of the validation queries aside when there are at least 40. None: validation
        data judges what it chose, as in the paper.
    measure : str, Measure or callable, default "nDCG@10"
        Measure that must not get worse; also a function of labels, scores and offsets of queries, see
        `MeasureFunction`.
    convention : str or Convention, default "rankwood"
        Convention of the measure.
    strategy : str or callable, default "quality-loss"
        Which trees go: "quality-loss", "quality-loss-greedy", "score-loss", "low-weights", "skip", "last", "random",
        or a function (outputs, weights, queries, k) that returns the numbers of the trees that stay.
    rates : sequence of float, default (0.1, 0.2, ..., 0.9)
        Shares of the trees to remove; each gives a row of the table for every variant.
    accept : {"quality", "not-significant"} or Acceptance, default "quality"
        Rule that a smaller model must pass. `Acceptance` also sets the level of the tests and, for "non-inferior", the
        margin.
    variants : str or sequence of str, default ("line-search", "refit", "distil")
        How the trees that stay are re-weighed; all are tried at every rate.

        - "line-search": the paper's line search over their weights.
        - "refit": the same, then leaf values fitted to labels.
        - "distil": the trees with the smallest share in scores go, whatever the strategy, and the leaf values of the
          others are fitted to the scores of the full model. Labels have no part in it.
        - "gradient": a line search that starts from Newton steps on LambdaMART's gradients.
    settings : PruningSettings or None, default None
        What is seldom changed: the data by which victims are chosen, how to search and fit, limits, seed.
    n_threads : int or None, default None
        Threads; all CPUs when None.
    progress : callable or None, default None
        Called now and then with the number of searches done, fractions included, and their number in all.

    Returns
    -------
    CleaverResult
        The smallest accepted model, `ensemble`, and the table of all models that were tried, `rows`.

    See Also
    --------
    grow_and_prune : Trains and prunes by turns, for a model of a given size.

    Examples
    --------
    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=15, n_features=6).split(0.6)
    >>> model = rw.LambdaMART(n_trees=20, n_leaves=6, learning_rate=0.2).fit(train).ensemble_
    >>> result = rw.cleaver(model, train, valid, rates=(0.3, 0.6), settings=rw.PruningSettings(measure_speed=False))
    >>> result.ensemble.n_trees <= 20, result.valid_after >= result.valid_before
    (True, True)
    """
    model = getattr(model, "ensemble_", model)
    how, rule = PruningSettings.of(settings), Acceptance.of(accept)
    names = checked_variants(variants)  # type: ignore[arg-type]
    if isinstance(model, AdditiveModel):
        names, how = tuple(name for name in names if name in OF_ANY_MODEL), replace(how, measure_speed=False)
        if not names:
            raise RankwoodError(f"an additive model has no leaves to fit: its variants are {', '.join(OF_ANY_MODEL)}")
    bind = partial(Evaluator, measures=parse_measure(measure), convention=convention, n_threads=n_threads)
    chooses, judges = _set_aside(_checked(valid, "valid"), judge, how.seed)
    searched, chooses = (
        sample_queries(data, how.max_queries, seed=how.seed) for data in (_checked(train, "train"), chooses)
    )
    if not isinstance(parse_measure(measure), MeasureFunction):
        _check_tells_apart(valid)
    shares = checked_rates(rates)
    counts = _numbers_of_victims(shares, getattr(model, "n_trees", 0))
    chooser = Chooser(strategy, max(counts), seed=how.seed)
    pruner = Pruner.of(model, bind(searched, by_query=True), bind(chooses, by_query=True), chooser, how)
    on_valid = bind(valid)
    on_judge, on_test = (None if data is None else bind(data) for data in (judges, test))
    for evaluator in filter(None, (on_valid, on_judge, on_test)):
        evaluator.evaluate(model)  # data that does not suit the model is refused before the long search

    found = _pruned(pruner, shares, counts, names, progress)
    rows = _judged(_table(pruner, found), on_valid, on_judge, rule)
    rows = rows if on_test is None else _tested(rows, on_test)
    timings = _timed(rows, valid) if how.measure_speed else ()
    rows = _with_speed_ups(rows, timings)
    chosen = _smallest_accepted(rows)
    accepted = chosen is not rows[0]
    return CleaverResult(
        ensemble=chosen.ensemble.with_metadata(cleaver=_note(pruner, rule, rows[0], chosen)) if accepted else model,
        accepted=accepted,
        chosen=chosen,
        rows=tuple(rows),
        measure=str(pruner.valid.queries.measure),
        convention=pruner.valid.queries.evaluator.convention,
        strategy=pruner.chooser.name,
        rule=rule,
        needed_bytes=pruner.needed_bytes,
        test=_compared(model, chosen.ensemble, on_test) if accepted and on_test is not None else None,
        timings=timings,
    )


# Inputs: which data chooses and which judges, and how many trees go.


def _checked(data: Any, name: str) -> Dataset:
    if not isinstance(data, Dataset):
        raise DataError(f"{name} must be a Dataset, with labels and queries, got {type(data).__name__}")
    return data


def _set_aside(valid: Dataset, judge: Any, seed: int) -> tuple[Dataset, Dataset | None]:
    """Validation data that chooses, and data set aside that judges; None: the validation data judges as well."""
    if judge is None or (judge == "auto" and valid.n_queries < FEWEST_TO_SPLIT):
        return valid, None
    if isinstance(judge, (int, float)) and not 0.0 < judge < 1.0:
        raise RankwoodError(f"the share of the validation queries to judge by must lie between 0 and 1, got {judge}")
    if judge == "auto" or isinstance(judge, (int, float)):
        chooses, judges = valid.split(1.0 - (0.5 if judge == "auto" else judge), seed=seed)
        return chooses, judges
    return valid, _checked(judge, "judge")


def _check_tells_apart(valid: Dataset) -> None:
    """Refuse validation data in which no query has documents of different labels."""
    labels, n_queries = valid.y, valid.n_queries
    highest, lowest = np.full(n_queries, -np.inf), np.full(n_queries, np.inf)
    np.maximum.at(highest, valid.queries.index, labels)
    np.minimum.at(lowest, valid.queries.index, labels)
    if valid.n_docs and not (highest > lowest).any():
        raise DataError(
            "no query of the validation data has documents of different labels, so any model is as good as any other "
            "there: give other data"
        )


def checked_rates(rates: Sequence[float]) -> list[float]:
    """Shares of the trees to remove, each once, in increasing order."""
    try:
        shares = sorted({float(rate) for rate in ([rates] if isinstance(rates, (int, float)) else rates)})
    except (TypeError, ValueError):
        raise RankwoodError(f"rates must be numbers from 0 to below 1, got {rates!r}") from None
    if not shares or not 0.0 <= shares[0] <= shares[-1] < 1.0:
        raise RankwoodError(f"rates are shares of the trees to take out, from 0 to below 1, got {list(rates)}")
    return shares


def _numbers_of_victims(rates: Sequence[float], n_trees: int) -> list[int]:
    """Number of trees to remove at every rate; one tree at least stays."""
    return [min(round(rate * n_trees), max(n_trees - 1, 0)) for rate in rates]


# The search: a pruned model for every rate and variant.


def _pruned(
    pruner: Pruner,
    rates: Sequence[float],
    counts: Sequence[int],
    variants: tuple[str, ...],
    progress: Callable[[float, float], None] | None,
) -> list[tuple[float, Pruned]]:
    """Every pruned model with its rate."""
    tick = _Ticks(progress, 1 + len(counts) * len(variants))
    pruner.choosing_weights(tick.of_search)
    tick.next()
    found = []
    for rate, k in zip(rates, counts, strict=True):
        found += [(rate, pruned) for pruned in pruner.prune(k, variants, tick.of_search)]
        tick.next(len(variants))
    return found


class _Ticks:
    """Progress counted in searches; iterations of a search are fractions of one."""

    def __init__(self, progress: Callable[[float, float], None] | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def next(self, n: int = 1) -> None:
        """Count n more searches as done."""
        self._done += n
        if self._progress is not None:
            self._progress(self._done, self._total)

    def of_search(self, iteration: int, iterations: int) -> None:
        """Count a fraction of the search that is under way."""
        if self._progress is not None:
            self._progress(self._done + iteration / (iterations + 1), self._total)


# The table: each step fills in columns.


def _table(pruner: Pruner, found: Sequence[tuple[float, Pruned]]) -> list[Row]:
    """A row for the full model, then one for every pruned model; `valid` is that of the queries that chose."""
    model: Any = pruner.model
    weights = pruner.original
    train, valid = pruner.train.quality(weights), pruner.valid.quality(weights)
    rows = [Row(rate=0.0, variant="input", n_trees=model.n_trees, train=train, valid=valid, ensemble=model)]
    for rate, pruned in found:
        ensemble = pruner.ensemble(pruned)
        rows.append(Row(rate, pruned.variant, ensemble.n_trees, pruned.train, pruned.valid, ensemble))
    return rows


def _judged(rows: Sequence[Row], valid: Evaluator, judge: Evaluator | None, rule: Acceptance) -> list[Row]:
    """The rows with the measure on all validation data, p-values against the full model, and the rule's decision."""
    on_valid = [_measured(valid, row.ensemble) for row in rows]
    on_judge = on_valid if judge is None else [_measured(judge, row.ensemble) for row in rows]
    rows = [replace(row, valid=mean) for row, (mean, _) in zip(rows, on_valid, strict=True)]
    if judge is not None:
        rows = [replace(row, judged=mean) for row, (mean, _) in zip(rows, on_judge, strict=True)]
    full, *smaller = rows
    full_values, *values = [values for _, values in on_judge]
    better = [row.valid >= full.valid and row.worth >= full.worth for row in smaller]
    accepted = rule.decide(full_values, values, better)
    p_values = [p_difference(full_values, others) for others in values]
    corrected = [None] * len(smaller) if None in p_values else [float(p) for p in holm(p_values)]
    return [
        full,
        *(
            replace(
                row,
                p_valid=p_values[i],
                p_holm=corrected[i],
                p_inferior=None if rule.margin is None else p_inferior(full_values, values[i], rule.margin),
                accepted=accepted[i],
            )
            for i, row in enumerate(smaller)
        ),
    ]


def _tested(rows: Sequence[Row], test: Evaluator) -> list[Row]:
    """The rows with the measure on test data, and p-values against the full model there."""
    (full_mean, full_values), *others = [_measured(test, row.ensemble) for row in rows]
    smaller = [
        replace(row, test=mean, p_test=p_difference(full_values, values))
        for row, (mean, values) in zip(rows[1:], others, strict=True)
    ]
    return [replace(rows[0], test=full_mean), *smaller]


def _measured(evaluator: Evaluator, model: Ensemble) -> tuple[float, FloatArray]:
    """Mean of the measure, and its values of all queries, weighted as in the mean."""
    found, (name,) = evaluator.evaluate(model), evaluator.names
    return found.means[name], weighted_values(found.per_query[name], found.query_weights)


def _timed(rows: Sequence[Row], data: Dataset) -> tuple[Timing, ...]:
    """Scoring time of every row's model."""
    X = aligned_features(rows[0].ensemble, data)
    timings = time_models([(row.ensemble, X) for row in rows], budget=TIMED)
    warn_if_busy(timings)
    return tuple(timings)


def _with_speed_ups(rows: Sequence[Row], timings: Sequence[Timing]) -> list[Row]:
    """The rows with scoring time of the full model divided by their own; as they are without timings."""
    if not timings:
        return list(rows)
    full = timings[0].us_per_doc
    return [replace(row, speed_up=full / timing.us_per_doc) for row, timing in zip(rows, timings, strict=True)]


# The choice, and what is noted of it.


def _smallest_accepted(rows: Sequence[Row]) -> Row:
    """The smallest accepted model that gains something, the better of two of the same size; else the full model."""
    full = rows[0]
    gains = [row for row in rows[1:] if row.accepted and (row.n_trees < full.n_trees or row.worth > full.worth)]
    return min(gains, key=lambda row: (row.n_trees, -row.worth), default=full)


def _compared(full: Ensemble, chosen: Ensemble, test: Evaluator) -> Comparison | None:
    """The chosen model against the full one on test data; None when it has too few queries for a test."""
    (measure,) = test.measures
    try:
        return compare(full, chosen, test.data, measure, convention=test.convention, n_threads=test.n_threads)
    except DataError:
        return None


def _note(pruner: Pruner, rule: Acceptance, full: Row, chosen: Row) -> dict[str, Any]:
    """What is left in the metadata of the chosen model: how it was pruned, and the figures before and after."""
    queries, how = pruner.valid.queries, pruner.settings
    return {
        "strategy": "score-loss" if chosen.variant == "distil" else pruner.chooser.name,
        "victims": how.victims,
        "measure": str(queries.measure),
        "convention": queries.evaluator.convention.name,
        "accept": rule.rule,
        "margin": rule.margin,
        "alpha": rule.alpha,
        "rate": chosen.rate,
        "variant": chosen.variant,
        "n_trees_before": full.n_trees,
        "n_trees_after": chosen.n_trees,
        "valid_before": full.valid,
        "valid_after": chosen.valid,
        "search": asdict(how.search),
        "queries": [pruner.train.queries.n_queries, queries.n_queries],
        "seed": how.seed,
        "version": __version__,
    }
