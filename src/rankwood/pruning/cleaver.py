"""CLEaVER (Lucchese et al. 2016): prune trees at several rates, re-weigh what remains, take the smallest good model."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from rankwood._version import __version__
from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import DataError, ModelError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Comparison, aligned_features, compare, evaluate, weighted_values
from rankwood.evaluation.measures import Measure, parse_measure
from rankwood.evaluation.significance import holm
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance, Rule, p_difference, p_inferior
from rankwood.pruning.leaves import Distil, Refit, distil_leaves, gradient_weights, refit_leaves
from rankwood.pruning.line_search import LineSearch, Searched, line_search
from rankwood.pruning.outputs import Part, check_fits, needed_bytes, sample_queries, signed_weights, unsigned_weights
from rankwood.pruning.strategies import Chooser, Strategy, score_shares, smallest
from rankwood.scoring.timing import Budget, Timing, time_models, warn_if_busy
from rankwood.training.tasks import NOTE

# One model, its outputs on training and validation data, and what becomes of them when trees go.


Victims = Literal["train", "valid"]
Variant = Literal["line-search", "gradient", "refit", "distil"]
VARIANTS: tuple[str, ...] = get_args(Variant)


@dataclass(frozen=True)
class Pruned:
    """Weights of trees, 0 for those that are gone, and values of leaves, both as `TreeOutputs` has them."""

    variant: str
    weights: FloatArray
    values: FloatArray
    train: float
    valid: float


@dataclass
class Pruner:
    """Prunes one model to any number of trees.

    Victims of strategies that go by weights are chosen by the weights of a line search over all trees; then the
    survivors start from their original weights again.
    """

    model: Ensemble
    train: Part
    valid: Part
    chooser: Chooser
    search: LineSearch
    refit: Refit = field(default_factory=Refit)
    distil: Distil = field(default_factory=Distil)
    victims: Victims = "valid"  # the data that the strategy looks at
    _searched: FloatArray | None = None  # weights that victims are chosen by

    @classmethod
    def of(
        cls,
        model: Ensemble,
        train: Dataset,
        valid: Dataset,
        measure: str | Measure,
        convention: str | Convention,
        chooser: Chooser,
        search: LineSearch,
        refit: Refit,
        *,
        distil: Distil | None = None,
        victims: Victims = "valid",
        max_memory: int | None = None,
        n_threads: int | None = None,
    ) -> Pruner:
        check_model(model, search)
        if victims not in get_args(Victims):
            raise RankwoodError(f"victims must be 'train' or 'valid', the data they are chosen by, got {victims!r}")
        check_fits(model, [train, valid], max_memory)
        parts = []
        for name, data in (("training", train), ("validation", valid)):
            try:
                parts.append(Part.of(model, data, measure, convention, max_memory=max_memory, n_threads=n_threads))
            except DataError as error:
                raise DataError(f"{name} data: {error}") from None
        return cls(model, parts[0], parts[1], chooser, search, refit, distil or Distil(), victims)

    @property
    def original(self) -> FloatArray:
        return unsigned_weights(self.model)

    def victims_by(self, on_iteration: Callable[[int, int], None] | None = None) -> FloatArray:
        """The weights that victims are chosen by; the first call may search for them."""
        if self._searched is None:
            self._searched = self.original
            if self.chooser.goes_by_weights:
                found = line_search(
                    self.train, self.valid, self.original, settings=self.search, on_iteration=on_iteration
                )
                self._searched = found.weights
        return self._searched

    def prune(
        self,
        k: int,
        variants: tuple[str, ...] = ("line-search",),
        on_iteration: Callable[[int, int], None] | None = None,
    ) -> list[Pruned]:
        """Take k trees out and re-weigh the rest, once for each variant; trees driven to weight 0 go as well."""
        weights = self.victims_by() if k else self.original
        part = self.train if self.victims == "train" else self.valid
        stay = self.chooser.stay(part.outputs, weights, part.queries, k) if k else np.arange(len(weights))
        start = np.zeros_like(self.original)
        start[stay] = self.original[stay]
        values = self.train.outputs.values
        searched: Searched | None = None
        if {"line-search", "refit"} & set(variants):
            searched = line_search(self.train, self.valid, start, stay, settings=self.search, on_iteration=on_iteration)
        found = []
        for variant in variants:
            if variant == "distil":
                found.append(self._distilled(k))
            elif variant == "gradient":
                begin = gradient_weights(self.train, start, stay, samples=self.search.samples)
                other = line_search(self.train, self.valid, begin, stay, settings=self.search)
                found.append(Pruned(variant, other.weights, values, other.train, other.valid))
            else:
                assert searched is not None
                plain = Pruned(variant, searched.weights, values, searched.train, searched.valid)
                found.append(self._refitted(plain) if variant == "refit" else plain)
        return found

    def _refitted(self, plain: Pruned) -> Pruned:
        new, valid = refit_leaves(self.train, self.valid, plain.weights, self.refit)
        train = self.train.with_values(new).quality(plain.weights)
        return Pruned(plain.variant, plain.weights, new, train, valid)

    def _distilled(self, k: int) -> Pruned:
        """Without regard to labels: the trees that say least go, and the others learn what they said."""
        outputs, weights = self.train.outputs, self.original
        weights[smallest(score_shares(outputs, weights), k)] = 0.0
        new = distil_leaves(outputs, self.original, np.flatnonzero(weights > 0.0), self.distil)
        train, valid = (part.with_values(new).quality(weights) for part in (self.train, self.valid))
        return Pruned("distil", weights, new, train, valid)

    def ensemble(self, pruned: Pruned) -> Ensemble:
        """The model of the trees that are left. It scores as the weights and values do, to the bit."""
        signs = np.repeat(np.where(self.model.tree_weights < 0.0, -1.0, 1.0), np.diff(self.model.leaf_offsets))
        changed = pruned.values is not self.train.outputs.values
        whole = self.model.replace(leaf_value=pruned.values * signs) if changed else self.model
        left = np.flatnonzero(pruned.weights != 0.0)
        kept = whole.reweigh(signed_weights(self.model, pruned.weights)).select(left)
        note = kept.metadata
        if note.pop(NOTE, None) is not None:  # re-weighed trees no longer tell grades apart
            kept = kept.replace(metadata=note)
        return kept


def check_model(model: Ensemble, search: LineSearch) -> None:
    """Refuse what cannot be pruned: no trees, or values so large that a search could overflow."""
    if not isinstance(model, Ensemble):
        raise ModelError(
            f"pruning takes an Ensemble or a fitted ranker, got {type(model).__name__}; models of other libraries come "
            "in with rankwood.load_model"
        )
    if model.n_trees == 0:
        raise ModelError("the model has no trees: there is nothing to prune")
    weights = unsigned_weights(model)
    reach = search.first_radius(weights) * max(search.iterations, 1)
    with np.errstate(over="ignore"):
        largest = np.maximum.reduceat(np.abs(model.leaf_value), model.leaf_offsets[:-1])
        bound = abs(model.base) + float(((weights + 2.0 * reach) * largest).sum())
    if not bound < 1e300:
        raise ModelError("leaf values and weights are so large that scores could overflow while weights are searched")


def checked_variants(variants: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Names of variants, each once."""
    names = tuple(dict.fromkeys([variants] if isinstance(variants, str) else variants))
    wrong = [name for name in names if name not in VARIANTS]
    if wrong or not names:
        raise RankwoodError(f"variants are {', '.join(map(repr, VARIANTS))}, got {wrong[0] if wrong else 'none'!r}")
    return names


# What CLEaVER found: every model it tried, and the one it chose.


@dataclass(frozen=True)
class Row:
    """One model of the table. None: not measured.

    rate        share of the trees that was taken out; trees driven to weight 0 are gone besides
    variant     how the rest was re-weighed; "input" is the full model
    speed_up    time of scoring with the full model over that with this one (see `CleaverResult.timings`)
    valid       the measure on all of the validation data
    judged      on the data that judges, when some is set aside for that
    p_valid, p_test   of the randomisation test that it differs from the full model, on the data that judges and on test
                data; `p_holm` is p_valid corrected for the number of rows (Holm)
    p_inferior  of the test that it is worse by the margin or more: small is good
    accepted    whether it passes the rule
    """

    rate: float
    variant: str
    n_trees: int
    train: float
    valid: float
    ensemble: Ensemble
    judged: float | None = None
    test: float | None = None
    speed_up: float | None = None
    p_valid: float | None = None
    p_holm: float | None = None
    p_test: float | None = None
    p_inferior: float | None = None
    accepted: bool = True

    @property
    def worth(self) -> float:
        """The measure on the data that judges."""
        return self.valid if self.judged is None else self.judged

    def with_(self, **changes: Any) -> Row:
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """All but the model, as JSON can hold it."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "ensemble"}


@dataclass(frozen=True)
class CleaverResult:
    """`ensemble` is the smallest accepted model, the input itself when none was.

    accepted      whether a smaller model was accepted; `chosen` is its row
    rows          the full model, then every model tried; `table` has them as dicts
    needed_bytes  memory that the leaf numbers took
    timings       how long scoring takes, of each row, and what was measured: engine, batch, precision, threads; empty
                  without `measure_speed`
    test          the chosen model against the input on test data; None without test data, when it has too few queries
                  to tell, and when the input stays
    """

    ensemble: Ensemble
    accepted: bool
    chosen: Row
    rows: tuple[Row, ...]
    measure: str
    convention: Convention
    strategy: str
    rule: Acceptance
    needed_bytes: int
    test: Comparison | None = None
    timings: tuple[Timing, ...] = ()

    @property
    def table(self) -> list[dict[str, Any]]:
        return [row.as_dict() for row in self.rows]

    @property
    def valid_before(self) -> float:
        return self.rows[0].valid

    @property
    def valid_after(self) -> float:
        return self.chosen.valid

    @property
    def is_loss(self) -> bool:
        """Whether the chosen model is significantly worse on test data, at the level of the rule."""
        return self.test is not None and self.test.difference < 0 and self.test.p_randomisation <= self.rule.alpha

    def curves(self) -> dict[str, dict[str, list[Any]]]:
        """For plots: by variant, the columns `n_trees`, `rate`, `train`, `valid`, `test` and `speed_up`, by rate."""
        names = ("rate", "n_trees", "train", "valid", "test", "speed_up")
        variants = dict.fromkeys(row.variant for row in self.rows[1:])
        return {
            variant: {name: [getattr(row, name) for row in self.rows[1:] if row.variant == variant] for name in names}
            for variant in variants
        }

    def summary(self) -> str:
        """What came of it, in a sentence; with what test data says of it, if there is any."""
        full, chosen = self.rows[0], self.chosen
        if not self.accepted:
            return (
                f"no smaller model was accepted (rule {self.rule.rule!r}): the model keeps its {full.n_trees:,} trees"
            )
        faster = "" if chosen.speed_up is None else f", {chosen.speed_up:.1f}x as fast"
        tested = "" if chosen.test is None else f", on test data {self.verdict()}"
        lost = ", a significant loss" if self.is_loss else ""
        return (
            f"{chosen.n_trees:,} of {full.n_trees:,} trees ({chosen.variant}){faster}, {self.measure} on validation "
            f"data {chosen.valid:.4f} (before: {full.valid:.4f}){tested}{lost}"
        )

    def verdict(self) -> str:
        """What test data says of the chosen model: measure, difference, its interval and p; nothing without any."""
        if self.chosen.test is None:
            return ""
        values = f"{self.chosen.test:.4f} (before: {self.rows[0].test:.4f})"
        if self.test is None:
            return f"{values}, too few queries for a test" if self.accepted else values
        low, high = self.test.interval
        tested = f"95 % interval {low:+.4f} .. {high:+.4f}, p = {self.test.p_randomisation:.4f}"
        return f"{values}: {self.test.difference:+.4f} ({tested})"

    def __repr__(self) -> str:
        return f"CleaverResult({self.summary()})"


# CLEaVER (Lucchese et al. 2016): prune trees at several rates, re-weigh what remains, take the smallest good model.


FEWEST_TO_SPLIT = 40  # validation queries; with fewer, halves are too small to choose or to judge by
TIMED = Budget(calls=20, seconds=0.03, most_seconds=0.4)  # of each model, as there are many
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
    rows, timings = bench.rows(found, speed=measure_speed)
    return replace(_result(pruner, bench, rows, how, train, valid, seed), timings=timings)


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

    def rows(self, found: Sequence[tuple[float, Pruned]], *, speed: bool) -> tuple[list[Row], tuple[Timing, ...]]:
        """The full model, and then every pruned one; and how long they take."""
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
        timings = self._time([self.pruner.model, *models]) if speed else ()
        on_test = self._test_columns(models)
        rows = [self.full.with_(speed_up=1.0 if timings else None, **({} if self._test_full is None else on_test[0]))]
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
                    speed_up=timings[0].us_per_doc / timings[i + 1].us_per_doc if timings else None,
                    p_valid=p_values[i],
                    p_holm=None if corrected[i] is None else float(corrected[i]),
                    p_inferior=None if margin is None else p_inferior(full, others[i], margin),
                    accepted=passed[i],
                    **on_test[i + 1],
                )
            )
        return rows, timings

    def _time(self, models: Sequence[Ensemble]) -> tuple[Timing, ...]:
        timings = time_models([(model, self._X) for model in models], budget=TIMED)
        warn_if_busy(timings)
        return tuple(timings)

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
        return None, weighted_values(valid.with_values(values).values(weights), valid.queries.query_weights)

    def _on_valid(self, model: Ensemble, chosen_by: float) -> float:
        """Measure on all of the validation data; that on the part that chose is known."""
        if self.pruner.valid.queries.n_queries == self._valid.n_queries:
            return chosen_by
        return self._on(self._valid, model)[0]

    def _on(self, data: Dataset, model: Ensemble) -> tuple[float, FloatArray]:
        found = evaluate(model, data, self.measure, convention=self.convention, n_threads=self._n_threads)
        name = str(self.measure)
        return found.means[name], weighted_values(found.per_query[name], found.query_weights)


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


# Grow, prune, grow again: a model of a given size from more trees than it holds.


@dataclass(frozen=True)
class Stage:
    """After one round: trees before and after pruning, and the validation measure before and after."""

    n_grown: int
    n_trees: int
    valid_grown: float
    valid: float


def _can_go_on(learner: Any) -> bool:
    """Whether it is a ranker of rankwood that boosts on from a given model."""
    is_ours = type(learner).__module__.startswith("rankwood.")
    return is_ours and "init_model" in inspect.signature(learner.fit).parameters


def grow_and_prune(
    learner: Any,
    train: Dataset,
    valid: Dataset,
    size: int,
    *,
    grow: int = 100,
    keep: int = 50,
    measure: str = "nDCG@10",
    convention: Any = "rankwood",
    strategy: str | Strategy = "quality-loss",
    search: LineSearch | None = None,
    on_stage: Callable[[Stage], None] | None = None,
    n_threads: int | None = None,
) -> tuple[Ensemble, list[Stage]]:
    """Boost `grow` trees, prune so that `keep` of them are added, and go on from there until there are `size`.

    `learner` is a boosted ranker such as LambdaMART; its number of trees does not matter. Every pruning looks at all
    trees, old and new. Returns the model and what every stage came to; the model is the last one, of at most `size`
    trees, as the line search may turn trees off.

    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=40, docs_per_query=12, n_features=5).split(0.6)
    >>> model, stages = rw.grow_and_prune(rw.LambdaMART(n_leaves=5), train, valid, 6, grow=6, keep=3)
    >>> model.n_trees <= 6, [stage.n_grown - stage.n_trees >= 3 for stage in stages]
    (True, [True, True])
    """
    if not 1 <= keep <= grow or size < 1:
        raise RankwoodError(f"grow_and_prune needs 1 <= keep <= grow and a size, got {keep=}, {grow=}, {size=}")
    if not _can_go_on(learner) or getattr(learner, "task", "regression") != "regression":
        raise RankwoodError(
            "grow_and_prune goes on from pruned models: give a boosted ranker such as LambdaMART or MART, "
            f"with task='regression', got {type(learner).__name__}"
        )
    how = LineSearch() if search is None else search
    binned = BinnedDataset.make(train, getattr(learner, "max_bins", 255), n_threads=n_threads)
    model: Ensemble | None = None
    stages: list[Stage] = []
    for goal in [*range(keep, size, keep), size]:
        grower = type(learner)(**learner.get_params(deep=False)).set_params(n_trees=grow, early_stopping_rounds=None)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "no tree has a split")
            grown: Ensemble = grower.fit(binned, init_model=model).ensemble_
        k = max(grown.n_trees - goal, 0)
        chooser = Chooser(strategy, k)
        pruner = Pruner.of(grown, train, valid, measure, convention, chooser, how, Refit(), n_threads=n_threads)
        (pruned,) = pruner.prune(k)
        model = pruner.ensemble(pruned)
        stages.append(Stage(grown.n_trees, model.n_trees, pruner.valid.quality(pruner.original), pruned.valid))
        if on_stage is not None:
            on_stage(stages[-1])
    assert model is not None
    note = {"grow": grow, "keep": keep, "size": size, "strategy": chooser.name, "n_stages": len(stages)}
    return model.with_metadata(grow_and_prune=note), stages
