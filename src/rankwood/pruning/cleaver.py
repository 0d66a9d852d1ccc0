"""CLEaVER (Lucchese et al. 2016): prune trees at several rates, re-weigh what remains, take the smallest good model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from rankwood._version import __version__
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluate import Comparison, aligned_features, compare, evaluate
from rankwood.evaluation.evaluate import _weighted as weighted
from rankwood.evaluation.measures import Measure, parse_measure
from rankwood.evaluation.significance import holm
from rankwood.pruning.accept import Acceptance, Rule, p_difference, p_inferior
from rankwood.pruning.distil import Distil
from rankwood.pruning.line_search import LineSearch
from rankwood.pruning.outputs import needed_bytes, sample_queries
from rankwood.pruning.pruner import Pruned, Pruner, Variant, Victims, checked_variants
from rankwood.pruning.refit import Refit
from rankwood.pruning.result import CleaverResult, Row
from rankwood.pruning.speed import seconds_in_turn
from rankwood.pruning.strategies import Chooser, Strategy

FEWEST_TO_SPLIT = 40  # validation queries; with fewer, halves are too small to choose or to judge by
RATES = tuple(round(0.1 * i, 1) for i in range(1, 10))


def cleaver(
    model: Any,
    train: Dataset,
    valid: Dataset,
    *,
    test: Dataset | None = None,
    judge: Dataset | float | Literal["auto"] | None = "auto",
    measure: str | Measure = "nDCG@10",
    convention: str | Convention = "rankwood",
    strategy: str | Strategy = "quality-loss",
    victims: Victims = "valid",
    rates: Sequence[float] = RATES,
    accept: Rule = "quality",
    margin: float | None = None,
    alpha: float = 0.05,
    search: LineSearch | None = None,
    variants: Variant | Sequence[Variant] = ("line-search", "refit", "distil"),
    refit: Refit | None = None,
    distil: Distil | None = None,
    max_queries: int | None = None,
    max_memory: int | None = None,
    measure_speed: bool = True,
    seed: int = 0,
    n_threads: int | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> CleaverResult:
    """Make a tree ranker smaller without losing quality: the smallest of several pruned models that is as good.

    Works on any Ensemble, whoever trained it. Unless a smaller model is accepted the result is the input, and
    `result.accepted` says so. With the default rule the result is never worse on validation data than the input.

    model         an Ensemble, or a fitted ranker
    train, valid  where weights are searched, and where searches are stopped and models judged
    judge         data that is set aside to judge by, as what chose victims and weights is too kind to them: a share of
                  the validation queries, or other data; None: validation data judges what it chose, as in the paper.
                  "auto" sets half of the queries aside when there are at least 40. Where it judges, a model must be as
                  good there *and* on all of the validation data
    test          is only measured: `result.test` compares the result with the input there, `result.is_loss` says when
                  it is significantly worse
    strategy      which trees go: "quality-loss", "quality-loss-greedy", "score-loss", "low-weights", "skip", "last",
                  "random", or a function (outputs, weights, queries, k) -> trees that stay
    victims       the data that the strategy looks at. "train" is the paper's; but trees that over-fit that data are
                  judged too kindly there, and the first ones, which generalise best, go
    rates         shares of trees to take out; every one gives a row of the table
    accept        "quality": the validation measure is at least the full model's; "not-significant": or worse, but not
                  significantly so at level `alpha`; "non-inferior": shown to lose less than `margin`
    search        a `LineSearch`: radius, samples, shrink, iterations, patience
    variants      ways to re-weigh, all tried at every rate: "line-search", the paper's; "refit", leaf values fitted
                  anew after it; "distil", which asks neither labels nor the strategy: the trees with the smallest
                  share in scores go, and the leaves of the others are fitted to the scores of the whole model;
                  "gradient", a line search that starts from Newton steps on lambda gradients
    refit, distil how leaf values are fitted: a `Refit`, a `Distil`
    max_queries   search with at most so many queries of the training and of the validation data, drawn at random;
                  models are judged by all
    max_memory    bytes that leaf numbers may take; a document needs a byte or two per tree (`needed_bytes`)
    seed          of the strategy "random" and of `max_queries`

    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=15, n_features=6).split(0.6)
    >>> model = rw.LambdaMART(n_trees=20, n_leaves=6, learning_rate=0.2).fit(train).ensemble_
    >>> result = rw.cleaver(model, train, valid, rates=(0.3, 0.6), measure_speed=False)
    >>> result.ensemble.n_trees <= 20, result.valid_after >= result.valid_before
    (True, True)
    """
    model = getattr(model, "ensemble_", model)
    acceptance, names = Acceptance(accept, margin, alpha), checked_variants(variants)  # type: ignore[arg-type]
    whole = _checked(valid, "valid")
    valid, judging = _set_aside(whole, judge, seed)
    train, valid = (sample_queries(data, max_queries, seed=seed) for data in (_checked(train, "train"), valid))
    _check_tells_apart(whole)
    shares, how = checked_rates(rates), LineSearch() if search is None else search
    n_trees = getattr(model, "n_trees", 0)
    counts = [min(round(rate * n_trees), max(n_trees - 1, 0)) for rate in shares]
    chooser = Chooser(strategy, max(counts), seed=seed)
    pruner = Pruner.of(
        model, train, valid, measure, convention, chooser, how, refit or Refit(),
        distil=distil,
        victims=victims, max_memory=max_memory, n_threads=n_threads,
    )  # fmt: skip
    tick = _Ticks(progress, 1 + len(counts) * len(names))
    pruner.victims_by(tick.of_search)
    tick.next()
    bench = _Judge(
        pruner, whole, judging, test, parse_measure(measure), Convention.get(convention), acceptance, n_threads
    )
    found: list[tuple[float, Pruned]] = []
    for rate, k in zip(shares, counts, strict=True):
        found += [(rate, pruned) for pruned in pruner.prune(k, names, tick.of_search)]
        tick.next(len(names))
    rows = bench.rows(found, speed=measure_speed)
    return _result(pruner, bench, rows, how, train, valid, seed)


def checked_rates(rates: Sequence[float]) -> list[float]:
    """Shares of trees to take out, in increasing order."""
    try:
        shares = sorted({float(rate) for rate in ([rates] if isinstance(rates, (int, float)) else rates)})
    except (TypeError, ValueError):
        raise RankwoodError(f"rates must be numbers from 0 to below 1, got {rates!r}") from None
    if not shares or not 0.0 <= shares[0] <= shares[-1] < 1.0:
        raise RankwoodError(f"rates are shares of the trees to take out, from 0 to below 1, got {list(rates)}")
    return shares


def _checked(data: Any, name: str) -> Dataset:
    if not isinstance(data, Dataset):
        raise DataError(f"{name} must be a Dataset, with labels and queries, got {type(data).__name__}")
    return data


def _check_tells_apart(valid: Dataset) -> None:
    labels, n_queries = valid.y, valid.n_queries
    highest, lowest = np.full(n_queries, -np.inf), np.full(n_queries, np.inf)
    np.maximum.at(highest, valid.queries.index, labels)
    np.minimum.at(lowest, valid.queries.index, labels)
    if valid.n_docs and not (highest > lowest).any():
        raise DataError(
            "no query of the validation data has documents of different labels, so any model is as good as any other "
            "there: give other data"
        )


def _set_aside(valid: Dataset, judge: Any, seed: int) -> tuple[Dataset, Dataset | None]:
    """The validation data to choose by, and the data to judge by; None: the same."""
    if judge is None or (judge == "auto" and valid.n_queries < FEWEST_TO_SPLIT):
        return valid, None
    if isinstance(judge, (int, float)) and not 0.0 < judge < 1.0:
        raise RankwoodError(f"the share of the validation queries to judge by must lie between 0 and 1, got {judge}")
    if judge == "auto" or isinstance(judge, (int, float)):
        chooses, judges = valid.split(1.0 - (0.5 if judge == "auto" else judge), seed=seed)
        return chooses, judges
    return valid, _checked(judge, "judge")


class _Ticks:
    """Progress in searches, of which iterations are fractions."""

    def __init__(self, progress: Callable[[float, float], None] | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def next(self, n: int = 1) -> None:
        self._done += n
        if self._progress is not None:
            self._progress(self._done, self._total)

    def of_search(self, iteration: int, iterations: int) -> None:
        if self._progress is not None:
            self._progress(self._done + iteration / (iterations + 1), self._total)


class _Judge:
    """Measures models on the data that judges and on test data, against the full one."""

    def __init__(
        self,
        pruner: Pruner,
        valid: Dataset,
        judge: Dataset | None,
        test: Dataset | None,
        measure: Measure,
        convention: Convention,
        acceptance: Acceptance,
        n_threads: int | None,
    ) -> None:
        self.pruner, self.test, self.measure, self.convention = pruner, test, measure, convention
        self.acceptance, self._n_threads = acceptance, n_threads
        self._X = aligned_features(pruner.model, valid)
        self.judge, self._valid = judge, valid
        judged, self._full = self._judged(pruner.model, pruner.original, pruner.valid.outputs.values)
        self.full = Row(
            rate=0.0,
            variant="input",
            n_trees=pruner.model.n_trees,
            train=pruner.train.quality(pruner.original),
            valid=self._on_valid(pruner.model, pruner.valid.quality(pruner.original)),
            judged=judged,
            ensemble=pruner.model,
        )
        self._test_full = None if test is None else self._on(test, pruner.model)

    def rows(self, found: Sequence[tuple[float, Pruned]], *, speed: bool) -> list[Row]:
        """The full model, and then every pruned one."""
        models = [self.pruner.ensemble(pruned) for _, pruned in found]
        judged = [self._judged(m, p.weights, p.values) for m, (_, p) in zip(models, found, strict=True)]
        full, others = self._full, [values for _, values in judged]
        valid = [self._on_valid(m, pruned.valid) for m, (_, pruned) in zip(models, found, strict=True)]
        better = [
            value >= self.full.valid and (mean is None or self.full.judged is None or mean >= self.full.judged)
            for value, (mean, _) in zip(valid, judged, strict=True)
        ]
        passed = self.acceptance.judge(full, others, better)
        p_values = [p_difference(full, other) for other in others]
        corrected: list[Any] = list(holm(p_values)) if None not in p_values else [None] * len(found)
        margin = self.acceptance.margin
        times = seconds_in_turn([self.pruner.model, *models], self._X) if speed else None
        on_test = self._test_columns(models)
        rows = [self.full.with_(speed_up=1.0 if speed else None, **({} if self._test_full is None else on_test[0]))]
        for i, (rate, pruned) in enumerate(found):
            rows.append(
                Row(
                    rate=rate,
                    variant=pruned.variant,
                    n_trees=models[i].n_trees,
                    train=pruned.train,
                    valid=valid[i],
                    judged=judged[i][0],
                    ensemble=models[i],
                    speed_up=None if times is None else times[0] / times[i + 1],
                    p_valid=p_values[i],
                    p_holm=None if corrected[i] is None else float(corrected[i]),
                    p_inferior=None if margin is None else p_inferior(full, others[i], margin),
                    accepted=passed[i],
                    **on_test[i + 1],
                )
            )
        return rows

    def on_test(self, model: Ensemble) -> Comparison | None:
        """A model against the full one on test data; None without any, or with too few queries to tell."""
        if self.test is None:
            return None
        try:
            return compare(
                self.pruner.model, model, self.test, self.measure, convention=self.convention, n_threads=self._n_threads
            )
        except DataError:
            return None

    def _test_columns(self, models: Sequence[Ensemble]) -> list[dict[str, Any]]:
        """Measure on test data of the full model and of each other, and p of their difference."""
        if self.test is None or self._test_full is None:
            return [{} for _ in range(1 + len(models))]
        full_mean, full_values = self._test_full
        columns: list[dict[str, Any]] = [{"test": full_mean}]
        for model in models:
            mean, values = self._on(self.test, model)
            columns.append({"test": mean, "p_test": p_difference(full_values, values)})
        return columns

    def _judged(self, model: Ensemble, weights: FloatArray, values: FloatArray) -> tuple[float | None, FloatArray]:
        """Mean on the data that judges, None when that is the validation data; and values of its queries."""
        if self.judge is not None:
            return self._on(self.judge, model)
        valid = self.pruner.valid
        if valid.queries.n_queries != self._valid.n_queries:  # a sample of it chose
            return None, self._on(self._valid, model)[1]
        return None, weighted(valid.with_values(values).values(weights), valid.queries.query_weights)

    def _on_valid(self, model: Ensemble, chosen_by: float) -> float:
        """Measure on all of the validation data; that on the part that chose is known."""
        if self.pruner.valid.queries.n_queries == self._valid.n_queries:
            return chosen_by
        return self._on(self._valid, model)[0]

    def _on(self, data: Dataset, model: Ensemble) -> tuple[float, FloatArray]:
        found = evaluate(model, data, self.measure, convention=self.convention, n_threads=self._n_threads)
        name = str(self.measure)
        return found.means[name], weighted(found.per_query[name], found.query_weights)


def _result(
    pruner: Pruner, judge: _Judge, rows: list[Row], how: LineSearch, train: Dataset, valid: Dataset, seed: int
) -> CleaverResult:
    """Choose the smallest accepted model, the better one of two that are as small, and note what was done."""
    full = rows[0]
    gains = [row for row in rows[1:] if row.accepted and (row.n_trees < full.n_trees or row.worth > full.worth)]
    chosen = min(gains, key=lambda row: (row.n_trees, -row.worth), default=full)
    note = {
        "strategy": "score-loss" if chosen.variant == "distil" else pruner.chooser.name,
        "victims": pruner.victims,
        "measure": str(judge.measure),
        "convention": judge.convention.name,
        "accept": judge.acceptance.rule,
        "margin": judge.acceptance.margin,
        "alpha": judge.acceptance.alpha,
        "rate": chosen.rate,
        "variant": chosen.variant,
        "n_trees_before": full.n_trees,
        "n_trees_after": chosen.n_trees,
        "valid_before": full.valid,
        "valid_after": chosen.valid,
        "search": {name: getattr(how, name) for name in ("radius", "samples", "shrink", "iterations", "patience")},
        "queries": [train.n_queries, valid.n_queries],
        "seed": seed,
        "version": __version__,
    }
    accepted = chosen is not full
    model = chosen.ensemble.with_metadata(cleaver=note) if accepted else pruner.model
    return CleaverResult(
        ensemble=model,
        accepted=accepted,
        chosen=chosen,
        rows=tuple(rows),
        measure=str(judge.measure),
        convention=judge.convention,
        strategy=pruner.chooser.name,
        rule=judge.acceptance,
        needed_bytes=needed_bytes(pruner.model, int(np.sum([train.n_docs, valid.n_docs]))),
        test=judge.on_test(chosen.ensemble) if accepted else None,
    )
