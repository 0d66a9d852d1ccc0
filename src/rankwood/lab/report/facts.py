"""The facts of a report: plain numbers and texts about models on data, and how they are gathered."""

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
from rankwood.pruning.accept import Proof
from rankwood.scoring.timing import Timing

# The records: no models and no data, only numbers and texts.


ALPHA = 0.05  # below, a difference is called significant


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, whose ends are None when there are too few queries."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Difference(Estimate):
    """How much better than the baseline a model is.

    Parameters
    ----------
    p : float, optional
        That of the pair: see `Pair`.
    proof : Proof, optional
        Whether the queries show that a loss, if there is one, is less than the margin of the report; corrected for all
        models that are compared with the baseline (Holm).
    """

    p: float | None = None
    proof: Proof | None = None

    @property
    def is_significant(self) -> bool:
        """Whether the difference is significant."""
        return self.p is not None and self.p < ALPHA

    @property
    def is_as_good(self) -> bool:
        """Whether the queries show that the loss is less than the margin."""
        return self.proof is not None and self.proof.holds


@dataclass(frozen=True)
class Bins:
    """Bins of a histogram of whole numbers, shared by all models: the first begins at `first`, each is `width` wide."""

    first: int
    width: int


@dataclass(frozen=True)
class Anatomy:
    """The shape of a model's trees.

    Parameters
    ----------
    depths, leaves : sequence of int
        Number of trees in every bin of depth and of number of leaves.
    trees : sequence of int
        Numbers, from 1, of the trees in `weights` and `ranges`: all, or as many as a figure can show.
    weights : sequence of float
        Weights of these trees.
    ranges : sequence of float
        Weight times the difference between the largest and the smallest leaf value.
    splits : sequence of float
        Share of all splits, by column of the data.
    gains : sequence of float or None
        Share of all gain, by column of the data; None when the model does not know gains.
    """

    depths: Sequence[int]
    leaves: Sequence[int]
    trees: Sequence[int]
    weights: Sequence[float]
    ranges: Sequence[float]
    splits: Sequence[float]
    gains: Sequence[float] | None


@dataclass(frozen=True)
class Curve:
    """A measure after each iteration; iterations count from 1, and some may be left out."""

    iterations: Sequence[int]
    values: Sequence[float | None]


@dataclass(frozen=True)
class Effects:
    """How much each feature moves scores.

    Parameters
    ----------
    shares : sequence of float
        Mean size of a feature's contributions (SHAP values) without their signs, as a share of that of all features, by
        column of the data.
    total : float
        The mean sizes of all features, added up.
    n_docs : int
        Documents that the means are of.
    by_training : bool
        Whether contributions are weighed by the training data of the leaves; else by the data of the report.
    """

    shares: Sequence[float]
    total: float
    n_docs: int
    by_training: bool


@dataclass(frozen=True)
class ModelFacts:
    """Everything that a report shows of one model.

    Quality and differences are by measure; the baseline has no differences. Curves are by data set and measure.
    """

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
    speed_up: Estimate  # over the baseline
    anatomy: Anatomy
    curves: Mapping[str, Mapping[str, Curve]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    effects: Effects | None = None


@dataclass(frozen=True)
class Reasons:
    """What features add to the scores of some documents of a query, by two models.

    Parameters
    ----------
    documents : sequence of int
        Which of the query's documents.
    features : sequence of int
        Columns of the data, those whose contributions differ most.
    values : sequence of sequences of str
        Of each feature, its value in every document.
    first, second : sequence of sequences of float
        Of each feature, and of all others together, what it adds to the score of every document by either model.
    """

    documents: Sequence[int]
    features: Sequence[int]
    values: Sequence[Sequence[str]]
    first: Sequence[Sequence[float]]
    second: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Document:
    """A document of a query as two models see it; ranks count from 1."""

    name: str
    label: float
    first_rank: int
    second_rank: int
    first_score: float
    second_score: float
    row: int  # of the data


@dataclass(frozen=True)
class Extreme:
    """A query on which two models differ much.

    Parameters
    ----------
    query : str
        Its id.
    n_docs : int
        Number of its documents.
    labels : str
        How many documents have each label.
    first, second : float
        The measure of either model.
    n_ranked : int
        How many documents are the first ones of a model.
    documents : sequence of Document
        The first ones of either model, in the order of the first model.
    reasons : Reasons, optional
        Why documents have their scores; of as many queries as a report has room for.
    """

    query: str
    n_docs: int
    labels: str
    first: float
    second: float
    n_ranked: int
    documents: Sequence[Document]
    reasons: Reasons | None = None


@dataclass(frozen=True)
class Pair:
    """Two models compared query by query under one measure.

    Parameters
    ----------
    first, second : int
        Numbers of the models; differences are the second minus the first.
    wins, ties, losses : int
        Queries on which the second model is better, equal and worse.
    difference : float or None
        Difference of the means.
    p : float or None
        p-value of the randomisation test, corrected for all pairs under this measure (Holm): the only one that a report
        has of the pair.
    differences : sequence of float
        Sorted differences of queries; of many queries as many as a figure can show, evenly spread.
    queries : sequence of str
        The queries of `differences`.
    worst, best : sequence of Extreme
        The queries on which the second model loses and gains most.
    """

    first: int
    second: int
    measure: str
    wins: int
    ties: int
    losses: int
    difference: float | None
    p: float | None
    differences: Sequence[float]
    queries: Sequence[str]
    worst: Sequence[Extreme]
    best: Sequence[Extreme]


@dataclass(frozen=True)
class ReportFacts:
    """Everything that a report shows."""

    title: str
    made: str  # date and time
    data: Mapping[str, Any]
    measures: Sequence[str]
    convention: str
    baseline: int
    margin: float  # loss of a measure that is to be ruled out
    models: Sequence[ModelFacts]
    pairs: Sequence[Pair]
    features: Sequence[str]
    depth_bins: Bins
    leaf_bins: Bins
    environment: Mapping[str, Any]
    numbered: bool = False  # whether features have numbers for names, from 1

    @property
    def base(self) -> ModelFacts:
        """The model that the others are compared with."""
        return self.models[self.baseline]


# The shape of trees, in bins that all models share.


MOST_BINS = 40
MOST_TREES = 500  # points that a figure of trees shows


def shared_bins(values: Sequence[AnyArray]) -> Bins:
    """Return bins, 40 at most, for the whole numbers of all models.

    Examples
    --------
    >>> shared_bins([np.array([3, 5]), np.array([4])]), shared_bins([np.array([1, 100])])
    (Bins(first=3, width=1), Bins(first=1, width=3))
    """
    filled = [array for array in values if len(array)]
    if not filled:
        return Bins(0, 1)
    low, high = min(int(array.min()) for array in filled), max(int(array.max()) for array in filled)
    return Bins(low, -(-(high - low + 1) // MOST_BINS))


def count_in(values: AnyArray, bins: Bins) -> list[int]:
    """Return the number of values in each bin.

    Examples
    --------
    >>> count_in(np.array([3, 5, 5]), Bins(3, 1))
    [1, 0, 2]
    """
    return [int(n) for n in np.bincount((values.astype(np.int64) - bins.first) // bins.width)]


def describe_anatomy(
    model: Ensemble, topology: Topology, columns: IndexArray, n_columns: int, depth_bins: Bins, leaf_bins: Bins
) -> Anatomy:
    """Return the shape of a model's trees.

    Parameters
    ----------
    model, topology
        The model and its topology.
    columns : array of int
        Column of the data, by feature of the model.
    n_columns : int
        Number of columns of the data.
    depth_bins, leaf_bins : Bins
        Bins that all models share.
    """
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
    """Return the positions 0 to n - 1, or `most` of them, evenly spread from the first to the last.

    Examples
    --------
    >>> spread_out(3, 5).tolist(), spread_out(9, 5).tolist()
    ([0, 1, 2], [0, 2, 4, 6, 8])
    """
    if n <= most:
        return np.arange(n)
    return np.unique(np.rint(np.linspace(0, n - 1, most)).astype(np.int64))


def _value_ranges(model: Ensemble) -> FloatArray:
    """Return the largest minus the smallest leaf value of every tree."""
    if model.n_trees == 0:
        return np.zeros(0)
    starts = model.leaf_offsets[:-1]
    ranges: FloatArray = np.maximum.reduceat(model.leaf_value, starts) - np.minimum.reduceat(model.leaf_value, starts)
    return ranges


def _shares(values: AnyArray, columns: IndexArray, n_columns: int) -> FloatArray:
    """Return values by feature of the model as shares by column of the data."""
    by_column = np.zeros(n_columns)
    np.add.at(by_column, columns, values)
    return by_column / (by_column.sum() or 1.0)


# Learning curves and settings, which models note in their metadata.


MOST_POINTS = 600  # of a curve
LONGEST = 80  # characters of a setting
CURVES = "learning_curves"  # in a model's metadata
PRUNED = ("cleaver", "grow_and_prune")  # notes of pruned models, whose curve is that of the model before
NOT_SETTINGS = (CURVES, "ordinal", "checkpoint")  # notes for programs


def curves_of(given: Any, model: Ensemble) -> dict[str, dict[str, Curve]]:
    """Return learning curves by data set and measure: those given, or else those in the model's metadata."""
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
    """Return a curve of at most 600 points, the best value among them; None stands for values that are not finite.

    Examples
    --------
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
    """Return settings as texts: those given, or else the model's metadata with its nested notes flattened."""
    found = dict(given) if given is not None else model.metadata
    flat: dict[str, str] = {}
    for key, value in found.items():
        if given is None and key in NOT_SETTINGS:
            continue
        _flatten(str(key), value, flat)
    return flat


def _flatten(key: str, value: Any, flat: dict[str, str]) -> None:
    """Add a setting to `flat`, or every entry of a nested one."""
    if isinstance(value, Mapping):
        for inner, entry in value.items():
            if inner != CURVES:
                # Parameters keep their own names, as readers look for them.
                _flatten(str(inner) if key == "parameters" else f"{key} {inner}", entry, flat)
        return
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    text = ", ".join(map(str, value)) if is_list else str(value)
    flat[key] = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


# Pairs of models, compared query by query.


SHOWN_DIFFERENCES = 120_000  # of all pairs and measures, to keep the page small
FEWEST_SHOWN, MOST_SHOWN = 60, 400  # of one pair
EXTREMES = 8  # worst and best queries of a pair; fewer when there are many pairs
RANKED = 10  # first documents of either model that are shown; fewer when there are many pairs
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
    """Compare all pairs of models under all measures; `on_pair` is called after each test."""
    numbers = list(itertools.combinations(range(len(evaluations)), 2))
    n_shown = min(MOST_SHOWN, max(FEWEST_SHOWN, SHOWN_DIFFERENCES // max(1, len(numbers) * len(measures))))
    are_many = len(numbers) * len(measures) > 100
    n_extremes = EXTREMES // 2 if are_many else EXTREMES
    queries = _QueryNotes(data, scores, RANKED // 2 if are_many else RANKED)
    pairs: list[Pair] = []
    for measure in measures:
        p_values: list[float | None] = []
        for first, second in numbers:
            p_values.append(_p_value(evaluations[first], evaluations[second], measure, n_threads))
            on_pair()
        for (first, second), p in zip(numbers, corrected(p_values), strict=True):
            a, b = evaluations[first], evaluations[second]
            pairs.append(_pair(first, second, measure, a, b, p, queries, n_shown, n_extremes))
    return pairs


def corrected(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values after Holm's correction; None stays None.

    Examples
    --------
    >>> corrected([0.01, None, 0.03])
    [0.02, None, 0.03]
    """
    known = iter(holm([p for p in p_values if p is not None]).tolist())
    return [None if p is None else next(known) for p in p_values]


def _p_value(a: Evaluation, b: Evaluation, measure: str, n_threads: int | None) -> float | None:
    """Return p of the randomisation test; None with too few queries."""
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
    p: float | None,
    queries: _QueryNotes,
    n_shown: int,
    n_extremes: int,
) -> Pair:
    """Compare two models."""
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
        p=p,
        differences=differences[shown].tolist(),
        queries=[queries.name(int(q)) for q in counted[shown]],
        worst=extremes(worst),
        best=extremes(best),
    )


class _QueryNotes:
    """What is told of queries: their ids, their labels, and the documents that a model ranks first."""

    def __init__(self, data: Dataset, scores: Sequence[AnyArray], n_ranked: int) -> None:
        self._data, self._scores, self._n_ranked = data, scores, n_ranked

    def name(self, query: int) -> str:
        """The id of a query."""
        return str(self._data.queries.ids[query])

    def extreme(self, query: int, first: int, second: int, ours: FloatArray, theirs: FloatArray) -> Extreme:
        """Describe a query on which two models differ."""
        rows = self._rows(query)
        labels, counts = np.unique(self._data.y[rows], return_counts=True)
        return Extreme(
            query=self.name(query),
            n_docs=len(rows),
            labels=", ".join(f"{n} × {label:g}" for label, n in zip(labels[::-1], counts[::-1], strict=True)),
            first=float(ours[query]),
            second=float(theirs[query]),
            n_ranked=self._n_ranked,
            documents=self._documents(rows, first, second),
        )

    def _rows(self, query: int) -> IndexArray:
        places = np.arange(self._data.offsets[query], self._data.offsets[query + 1])
        return places if self._data.order is None else self._data.order[places]

    def _documents(self, rows: IndexArray, first: int, second: int) -> list[Document]:
        scores = [self._scores[model][rows] for model in (first, second)]
        ranks = [np.argsort(np.argsort(-of_model, kind="stable")) for of_model in scores]
        return [
            Document(
                name=self._document_name(int(rows[place])),
                label=float(self._data.y[rows[place]]),
                first_rank=int(ranks[0][place]) + 1,
                second_rank=int(ranks[1][place]) + 1,
                first_score=float(scores[0][place]),
                second_score=float(scores[1][place]),
                row=int(rows[place]),
            )
            for place in np.argsort(ranks[0])
            if min(ranks[0][place], ranks[1][place]) < self._n_ranked
        ]

    def _document_name(self, row: int) -> str:
        """The name of a document, or its row, counted from 1."""
        return f"row {row + 1}" if self._data.doc_ids is None else str(self._data.doc_ids[row])
