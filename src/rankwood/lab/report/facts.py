"""What a report is made of: plain numbers and texts of models on data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.errors import DataError
from rankwood.evaluation.evaluator import Evaluation, randomisation_p
from rankwood.evaluation.significance import holm
from rankwood.model.ensemble import Ensemble
from rankwood.model.topology import Topology
from rankwood.scoring.timing import Timing

# What a report is made of: plain numbers and texts, no models and no data.


ALPHA = 0.05  # below, a difference is called significant


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; None where too few queries tell."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Difference(Estimate):
    """How much better than the baseline: p of the randomisation test, and corrected for all models and measures."""

    p: float | None = None
    p_holm: float | None = None

    @property
    def is_significant(self) -> bool:
        return self.p_holm is not None and self.p_holm < ALPHA


@dataclass(frozen=True)
class Bins:
    """Bins of whole numbers that all models share: from `first` on, each `width` wide."""

    first: int
    width: int


@dataclass(frozen=True)
class Anatomy:
    """Shape of the trees. Weights and output ranges are of the trees `trees`: all, or as many as can be seen."""

    depths: Sequence[int]  # trees by depth, in bins
    leaves: Sequence[int]  # trees by number of leaves, in bins
    trees: Sequence[int]  # numbers from 1
    weights: Sequence[float]
    ranges: Sequence[float]  # weight times the difference between the largest and the smallest leaf value
    splits: Sequence[float]  # share of all splits, by column of the data
    gains: Sequence[float] | None  # share of all gain, if the model knows it


@dataclass(frozen=True)
class Curve:
    """A measure after each iteration; `iterations` count from 1 and may leave some out."""

    iterations: Sequence[int]
    values: Sequence[float | None]


@dataclass(frozen=True)
class ModelFacts:
    """One model. `quality` and `difference` are by measure; the baseline has no differences."""

    name: str
    n_trees: int
    n_nodes: int
    n_leaves: int
    mean_depth: float
    max_depth: int
    path_length: int
    n_features_used: int
    n_bytes: int  # of its file in rankwood's own format
    quality: Mapping[str, Estimate]
    difference: Mapping[str, Difference]
    timing: Timing
    speed_up: float | None  # over the baseline
    anatomy: Anatomy
    curves: Mapping[str, Mapping[str, Curve]] = field(default_factory=dict)  # by data set and measure
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Extreme:
    """A query on which two models differ much. Labels are those of the first documents as each model ranks them."""

    query: str
    n_docs: int
    labels: str  # how many documents have each label
    first: float
    second: float
    first_ranking: str
    second_ranking: str


@dataclass(frozen=True)
class Pair:
    """Two models, by number, query by query: `second` minus `first`.

    Differences are sorted; of many queries as many as can be seen, evenly spread. Counts and extremes are of all.
    """

    first: int
    second: int
    measure: str
    wins: int  # of the second
    ties: int
    losses: int
    difference: float | None
    p: float | None
    p_holm: float | None  # corrected for all pairs under this measure
    differences: Sequence[float]
    queries: Sequence[str]  # of the differences
    worst: Sequence[Extreme]  # for the second, the worst first
    best: Sequence[Extreme]  # for the second, the best first


@dataclass(frozen=True)
class ReportFacts:
    """All that a report shows."""

    title: str
    made: str  # date and time
    data: Mapping[str, Any]
    measures: Sequence[str]
    convention: str
    baseline: int
    models: Sequence[ModelFacts]
    pairs: Sequence[Pair]
    features: Sequence[str]
    depth_bins: Bins
    leaf_bins: Bins
    environment: Mapping[str, Any]

    @property
    def base(self) -> ModelFacts:
        return self.models[self.baseline]


# Shape of the trees of several models, in bins that they share.


MOST_BINS = 40
MOST_TREES = 500  # points that a figure of trees shows


def shared_bins(values: Sequence[AnyArray]) -> Bins:
    """Bins for whole numbers of all models: 40 at most.

    >>> shared_bins([np.array([3, 5]), np.array([4])]), shared_bins([np.array([1, 100])])
    (Bins(first=3, width=1), Bins(first=1, width=3))
    """
    filled = [array for array in values if len(array)]
    if not filled:
        return Bins(0, 1)
    low, high = min(int(array.min()) for array in filled), max(int(array.max()) for array in filled)
    return Bins(low, -(-(high - low + 1) // MOST_BINS))


def count_in(values: AnyArray, bins: Bins) -> list[int]:
    """How many values each bin has.

    >>> count_in(np.array([3, 5, 5]), Bins(3, 1))
    [1, 0, 2]
    """
    return [int(n) for n in np.bincount((values.astype(np.int64) - bins.first) // bins.width)]


def describe_anatomy(
    model: Ensemble, topology: Topology, columns: IndexArray, n_columns: int, depth_bins: Bins, leaf_bins: Bins
) -> Anatomy:
    """The anatomy of `model`; feature f of it is column `columns[f]` of the data."""
    shown = spread_out(model.n_trees, MOST_TREES)
    ranges = model.tree_weights * _value_ranges(model)
    gains = topology.gain_per_feature
    return Anatomy(
        depths=count_in(topology.depths, depth_bins),
        leaves=count_in(topology.leaves, leaf_bins),
        trees=(shown + 1).tolist(),
        weights=model.tree_weights[shown].tolist(),
        ranges=ranges[shown].tolist(),
        splits=_shares(topology.splits_per_feature, columns, n_columns).tolist(),
        gains=None if gains is None or not gains.sum() > 0 else _shares(gains, columns, n_columns).tolist(),
    )


def spread_out(n: int, most: int) -> IndexArray:
    """All of n positions, or `most` of them, evenly spread with the first and the last.

    >>> spread_out(3, 5).tolist(), spread_out(9, 5).tolist()
    ([0, 1, 2], [0, 2, 4, 6, 8])
    """
    if n <= most:
        return np.arange(n)
    return np.unique(np.rint(np.linspace(0, n - 1, most)).astype(np.int64))


def _value_ranges(model: Ensemble) -> FloatArray:
    """Largest minus smallest leaf value of every tree."""
    if model.n_trees == 0:
        return np.zeros(0)
    starts = model.leaf_offsets[:-1]
    ranges: FloatArray = np.maximum.reduceat(model.leaf_value, starts) - np.minimum.reduceat(model.leaf_value, starts)
    return ranges


def _shares(values: AnyArray, columns: IndexArray, n_columns: int) -> FloatArray:
    by_column = np.zeros(n_columns)
    np.add.at(by_column, columns, values)
    return by_column / (by_column.sum() or 1.0)


# What models remember of their training: learning curves and settings.


MOST_POINTS = 600  # of a curve
LONGEST = 80  # characters of a setting
CURVES = "learning_curves"  # in a model's metadata
PRUNED = ("cleaver", "grow_and_prune")  # notes of models whose curve is that of another model, before pruning
NOT_SETTINGS = (CURVES, "ordinal", "checkpoint")  # notes for programs


def curves_of(given: Any, model: Ensemble) -> dict[str, dict[str, Curve]]:
    """Learning curves: `given` by hand or the learner's own (`evals_result_`), else those in the model's metadata."""
    found = given
    if found is None and not any(note in model.metadata for note in PRUNED):
        found = model.metadata.get(CURVES)
    if not isinstance(found, Mapping):
        return {}
    curves: dict[str, dict[str, Curve]] = {}
    for name, by_measure in found.items():
        if isinstance(by_measure, Mapping):
            kept = {str(measure): thinned(values) for measure, values in by_measure.items() if len(values)}
            if kept:
                curves[str(name)] = kept
    return curves


def thinned(values: Sequence[float | None]) -> Curve:
    """A curve of at most 600 points; the best value is among them. What is no finite number becomes a gap.

    >>> thinned([0.5, float("nan"), 0.75])
    Curve(iterations=[1, 2, 3], values=[0.5, None, 0.75])
    """
    plain = [float(v) if v is not None and math.isfinite(v) else None for v in values]
    shown = set(spread_out(len(plain), MOST_POINTS).tolist())
    known = [n for n, value in enumerate(plain) if value is not None]
    if known:
        shown.add(max(known, key=lambda n: (plain[n], -n)))
    places = sorted(shown)
    return Curve([n + 1 for n in places], [plain[n] for n in places])


def settings_of(given: Mapping[str, Any] | None, model: Ensemble) -> dict[str, str]:
    """Settings as texts: those given, else what the model's metadata says of its making, nested notes flattened."""
    found = dict(given) if given is not None else model.metadata
    flat: dict[str, str] = {}
    for key, value in found.items():
        if given is None and key in NOT_SETTINGS:
            continue
        _flatten(str(key), value, flat)
    return flat


def _flatten(key: str, value: Any, flat: dict[str, str]) -> None:
    if isinstance(value, Mapping):
        for inner, entry in value.items():
            if inner != CURVES:
                # parameters are what one looks for: they keep their own names
                _flatten(str(inner) if key == "parameters" else f"{key} {inner}", entry, flat)
        return
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    text = ", ".join(map(str, value)) if is_list else str(value)
    flat[key] = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


# Two models query by query: who wins where, by how much, and whether that could be chance.


SHOWN_DIFFERENCES = 120_000  # of all pairs and measures: what keeps the page small
FEWEST_SHOWN, MOST_SHOWN = 60, 400  # of one pair
EXTREMES = 8  # worst and best queries of a pair; fewer when there are many pairs
RANKED = 10  # first documents whose labels are shown
TIE = 1e-12  # differences that are zero but for rounding


def compare_pairs(
    evaluations: Sequence[Evaluation],
    scores: Sequence[AnyArray],
    data: Dataset,
    measures: Sequence[str],
    *,
    n_threads: int | None = None,
    on_pair: Callable[[], None] = lambda: None,
) -> list[Pair]:
    """All pairs of models under all measures, the earlier model first."""
    numbers = list(itertools.combinations(range(len(evaluations)), 2))
    n_shown = min(MOST_SHOWN, max(FEWEST_SHOWN, SHOWN_DIFFERENCES // max(1, len(numbers) * len(measures))))
    n_extremes = EXTREMES if len(numbers) * len(measures) <= 100 else EXTREMES // 2
    queries = _QueryNotes(data, scores)
    pairs: list[Pair] = []
    for measure in measures:
        p_values: list[float | None] = []
        for first, second in numbers:
            p_values.append(_p_value(evaluations[first], evaluations[second], measure, n_threads))
            on_pair()
        adjusted = corrected(p_values)
        for (first, second), p, p_holm in zip(numbers, p_values, adjusted, strict=True):
            a, b = evaluations[first], evaluations[second]
            pairs.append(_pair(first, second, measure, a, b, (p, p_holm), queries, n_shown, n_extremes))
    return pairs


def corrected(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction of the p-values that there are.

    >>> corrected([0.01, None, 0.03])
    [0.02, None, 0.03]
    """
    known = iter(holm([p for p in p_values if p is not None]).tolist())
    return [None if p is None else next(known) for p in p_values]


def _p_value(a: Evaluation, b: Evaluation, measure: str, n_threads: int | None) -> float | None:
    try:
        return randomisation_p(a, b, measure, n_threads=n_threads)
    except DataError:  # fewer than two queries with a value
        return None


def _pair(
    first: int,
    second: int,
    measure: str,
    a: Evaluation,
    b: Evaluation,
    p_values: tuple[float | None, float | None],
    queries: _QueryNotes,
    n_shown: int,
    n_extremes: int,
) -> Pair:
    ours, theirs = a.per_query[measure], b.per_query[measure]
    counted = np.flatnonzero(~(np.isnan(ours) | np.isnan(theirs)))
    differences = theirs[counted] - ours[counted]
    differences[np.abs(differences) <= TIE] = 0.0
    order = np.argsort(differences, kind="stable")
    shown = order[spread_out(len(order), n_shown)]
    worst = [n for n in order[:n_extremes] if differences[n] < 0]
    best = [n for n in order[::-1][:n_extremes] if differences[n] > 0]

    def extremes(places: list[int]) -> list[Extreme]:
        return [queries.extreme(int(counted[n]), first, second, ours, theirs) for n in places]

    mean = b.means[measure] - a.means[measure]
    return Pair(
        first=first,
        second=second,
        measure=measure,
        wins=int(np.count_nonzero(differences > 0)),
        ties=int(np.count_nonzero(differences == 0)),
        losses=int(np.count_nonzero(differences < 0)),
        difference=float(mean) if len(counted) else None,
        p=p_values[0],
        p_holm=p_values[1],
        differences=differences[shown].tolist(),
        queries=[queries.name(int(q)) for q in counted[shown]],
        worst=extremes(worst),
        best=extremes(best),
    )


class _QueryNotes:
    """What is told of a query: its id, its labels, and how a model ranks them."""

    def __init__(self, data: Dataset, scores: Sequence[AnyArray]) -> None:
        self._data, self._scores = data, scores

    def name(self, query: int) -> str:
        return str(self._data.queries.ids[query])

    def extreme(self, query: int, first: int, second: int, ours: FloatArray, theirs: FloatArray) -> Extreme:
        rows = self._rows(query)
        labels, counts = np.unique(self._data.y[rows], return_counts=True)
        return Extreme(
            query=self.name(query),
            n_docs=len(rows),
            labels=", ".join(f"{n} × {label:g}" for label, n in zip(labels[::-1], counts[::-1], strict=True)),
            first=float(ours[query]),
            second=float(theirs[query]),
            first_ranking=self._ranking(rows, first),
            second_ranking=self._ranking(rows, second),
        )

    def _rows(self, query: int) -> IndexArray:
        places = np.arange(self._data.offsets[query], self._data.offsets[query + 1])
        return places if self._data.order is None else self._data.order[places]

    def _ranking(self, rows: IndexArray, model: int) -> str:
        best = np.argsort(-self._scores[model][rows], kind="stable")[:RANKED]
        return " ".join(f"{label:g}" for label in self._data.y[rows[best]])
