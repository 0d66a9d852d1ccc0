"""Models evaluated on a data set, and compared query by query."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.data.dataset import Dataset, docnos
from rankwood.display import Column, as_html
from rankwood.dtypes import AnyArray, FeatureMatrix, FloatArray
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import AnyMeasure, Measure, MeasureFunction, parse_measure
from rankwood.evaluation.per_query import as_sequence, mean, per_query
from rankwood.evaluation.significance import (
    BootstrapInterval,
    bootstrap_interval,
    paired_t_test,
    randomisation_test,
    wilcoxon_test,
)
from rankwood.group import ALONE, Group
from rankwood.matrix import column_order
from rankwood.model.ensemble import Ensemble
from rankwood.packages import need
from rankwood.system import resolve_threads

DEFAULT_MEASURES = ("nDCG@10",)


@dataclass(frozen=True)
class Evaluation(Mapping[str, float]):
    """Means of measures over queries, as a mapping from the measure's name, and the values of every query behind them.

    Attributes
    ----------
    convention : Convention
        How measures were computed where tools disagree.
    means : dict of str to float
        Mean of every measure.
    per_query : dict of str to array
        Values of every query, not weighted; NaN where a query is left out.
    query_weights : array of float or None
        Weights of the queries in the means; None when all weigh the same.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.Dataset([[1.0], [2.0], [3.0]], [0, 1, 1], group=[2, 1], query_weights=[3, 1])
    >>> result = rw.evaluate([0.2, 0.1, 0.3], data, ["RR", "P@1"])
    >>> result["RR"], result.per_query["RR"].tolist()
    (0.625, [0.5, 1.0])
    """

    convention: Convention
    means: dict[str, float]
    per_query: dict[str, FloatArray]
    query_weights: FloatArray | None = None

    def __getitem__(self, measure: str) -> float:
        return self.means[measure if measure in self.means else str(parse_measure(measure))]

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}: {value:.4f}" for name, value in self.means.items())
        return f"Evaluation({values}; convention {self.convention.name})"

    def _repr_html_(self) -> str:
        """What notebooks show: the means, of how many queries, and how they were computed."""
        counts = {int(np.isfinite(values).sum()) for values in self.per_query.values()}
        queries = " to ".join(f"{count:,}" for count in sorted({min(counts), max(counts)})) if counts else "0"
        weighted = "" if self.query_weights is None else ", weighted"
        told = f"means over {queries} queries{weighted}; convention {self.convention.name}"
        columns = [Column("measure", "", list(self.means)), Column("mean", ".4f", list(self.means.values()))]
        return as_html("Evaluation", [told], columns)

    def to_frame(self, *, per_query: bool = False) -> Any:
        """The means as a DataFrame of pandas, a row for each measure; or the values of every query, a row for each.

        Parameters
        ----------
        per_query : bool, default False
            Whether the values of queries are wanted, a column for each measure, in the order of `Dataset.queries`.

        Examples
        --------
        >>> import rankwood as rw
        >>> data = rw.Dataset([[1.0], [2.0], [3.0]], [0, 1, 1], group=[2, 1])
        >>> rw.evaluate([0.2, 0.1, 0.3], data, ["RR", "P@1"]).to_frame()  # doctest: +NORMALIZE_WHITESPACE
                 mean  n_queries
        measure
        RR       0.75          2
        P@1      0.50          2
        """
        pandas = need("pandas", "to_frame")
        if per_query:
            return pandas.DataFrame(self.per_query).rename_axis(index="query")
        counted = [int(np.count_nonzero(~np.isnan(values))) for values in self.per_query.values()]
        index = pandas.Index(list(self.means), name="measure")
        return pandas.DataFrame({"mean": list(self.means.values()), "n_queries": counted}, index=index)


@dataclass(frozen=True)
class Evaluations(Mapping[str, Evaluation]):
    """Evaluations of several models on the same data, as a mapping from the model's name.

    Attributes
    ----------
    by_model : dict of str to Evaluation
        The evaluation of every model.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.Dataset([[1.0], [2.0], [3.0]], [0, 1, 1], group=[2, 1])
    >>> results = rw.evaluate({"a": [0.2, 0.1, 0.3], "b": [0.1, 0.2, 0.3]}, data, ["RR", "P@1"])
    >>> results["a"]["RR"], len(results["b"].per_query["RR"])
    (0.75, 2)
    """

    by_model: dict[str, Evaluation]

    def __getitem__(self, model: str) -> Evaluation:
        return self.by_model[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_model)

    def __len__(self) -> int:
        return len(self.by_model)

    def __repr__(self) -> str:
        lines = [f"{name}: {one!r}" for name, one in self.by_model.items()]
        return "\n".join(["Evaluations", *lines])

    def _repr_html_(self) -> str:
        """What notebooks show: a row for each model, a column for each measure."""
        measures = dict.fromkeys(measure for one in self.by_model.values() for measure in one)
        means = [
            Column(measure, ".4f", [one.means.get(measure) for one in self.by_model.values()]) for measure in measures
        ]
        return as_html("Evaluations", [], [Column("model", "", list(self.by_model)), *means])

    def to_frame(self) -> Any:
        """The means as a DataFrame of pandas: a row for each model, a column for each measure.

        Examples
        --------
        >>> import rankwood as rw
        >>> data = rw.Dataset([[1.0], [2.0], [3.0]], [0, 1, 1], group=[2, 1])
        >>> rw.evaluate({"a": [0.2, 0.1, 0.3], "b": [0.1, 0.2, 0.3]}, data, ["RR", "P@1"]).to_frame()
        ... # doctest: +NORMALIZE_WHITESPACE
                 RR  P@1
        model
        a      0.75  0.5
        b      1.00  1.0
        """
        pandas = need("pandas", "to_frame")
        index = pandas.Index(list(self.by_model), name="model")
        return pandas.DataFrame([one.means for one in self.by_model.values()], index=index)


class Evaluator:
    """Measures bound to a data set: labels, queries and ids are looked up once, then any number of scores is measured.

    Parameters
    ----------
    data : Dataset
        Labels and queries; query weights count in means.
    measures : str, Measure or sequence of these, default "nDCG@10"
        What is computed, each measure once.
    convention : str or Convention, default "rankwood"
        How, where tools disagree.
    by_query : bool, default False
        Whether scores will stand query by query, as training and pruning keep them, instead of in input order.
    n_threads : int, optional
        Threads of every call; every CPU is used unless given. Results do not depend on it.
    group : Group
        Processes that hold the data together: `data` is the share of this one, `values` are those of its queries, means
        and evaluations are over the queries of all.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.Dataset([[1.0], [2.0], [3.0]], [0, 1, 1], qid=["a", "b", "a"])
    >>> evaluator = Evaluator(data, "RR")
    >>> evaluator.values([0.9, 0.1, 0.3]).tolist(), evaluator.means([0.9, 0.1, 0.3]).tolist()
    ([[0.5, 1.0]], [0.75])
    """

    def __init__(
        self,
        data: Dataset,
        measures: AnyMeasure | Sequence[AnyMeasure] = DEFAULT_MEASURES,
        convention: str | Convention = "rankwood",
        *,
        by_query: bool = False,
        n_threads: int | None = None,
        group: Group = ALONE,
    ) -> None:
        if not isinstance(data, Dataset):
            raise DataError(f"evaluation needs a Dataset, with labels and queries, got {type(data).__name__}")
        self.data, self.convention = data, Convention.get(convention)
        self.measures = unique_measures(measures)
        self.n_threads = resolve_threads(n_threads)
        self.by_query, self.group = by_query, group
        self.labels: FloatArray = self.in_order(data.y)
        self.doc_ids: AnyArray | None = None  # for conventions that break ties by them
        if self.convention.ties == "docno":
            self.doc_ids = self.in_order(np.asarray(docnos(data)))

    @property
    def names(self) -> list[str]:
        """Names of the measures."""
        return [str(measure) for measure in self.measures]

    def in_order(self, values: AnyArray) -> AnyArray:
        """Values of the rows of the data set, in the order in which scores stand."""
        if not self.by_query or self.data.order is None:
            return values
        return np.ascontiguousarray(values[self.data.order])

    def values(self, scores: Any) -> FloatArray:
        """Values of the measures for every query, measures x queries; NaN where a query is left out."""
        return per_query(
            self.measures,
            self.labels,
            scores,
            self.data.offsets,
            None if self.by_query else self.data.order,
            convention=self.convention,
            doc_ids=self.doc_ids,
            n_threads=self.n_threads,
        )

    def means(self, scores: Any) -> FloatArray:
        """Mean of each measure over queries, weighted by their weights if there are any."""
        means: FloatArray = self.mean(self.values(scores))
        return means

    def mean(self, values: FloatArray) -> Any:
        """Mean of per-query values over the queries of this data set."""
        return mean(values, self.data.query_weights, self.group)

    def gathered(self, values: FloatArray) -> FloatArray:
        """Values of the queries of all processes, queries being the last axis, in the order of the whole data set."""
        return values if self.group.size == 1 else np.concatenate(self.group.gather(values), axis=-1)

    def evaluate(self, model: Any) -> Evaluation:
        """The evaluation of a model, or of scores in input order."""
        scores = scores_of(model, self.data, n_threads=self.n_threads)
        values = self.values(self.in_order(scores))
        means = dict(zip(self.names, self.mean(values).tolist(), strict=True))
        per_query = dict(zip(self.names, self.gathered(values), strict=True))
        weights = self.data.query_weights
        return Evaluation(self.convention, means, per_query, None if weights is None else self.gathered(weights))


def evaluate(
    model: Any,
    data: Dataset,
    measures: AnyMeasure | Sequence[AnyMeasure] = DEFAULT_MEASURES,
    *,
    convention: str | Convention = "rankwood",
    n_threads: int | None = None,
) -> Evaluation:
    """Measures of how well a model ranks the documents of every query.

    Parameters
    ----------
    model : Ensemble, fitted learner or array of scores
        Features are found by name when the model and the data both have names, else by position. A model with early
        exit is measured with it; `model.replace(exit=None)` is the one without. Scores are one per row.
    data : Dataset
        Documents with labels. The mean is over all queries, weighted by query weights if there are any.
    measures : str, Measure or sequence of these, default "nDCG@10"
        What is computed, such as "nDCG@10" or ["AP", "RR"].
    convention : str or Convention, default "rankwood"
        How measures are computed where tools disagree: the name of a preset, like "lightgbm".
    n_threads : int, optional
        Every CPU is used unless given. Results do not depend on it.

    Returns
    -------
    Evaluation
        Means by name of the measure, and the values of every query.

    See Also
    --------
    compare : Difference of two models on the same queries, with interval and p-values.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.Dataset([[1.0], [2.0], [3.0]], [0, 1, 2], group=[3])
    >>> rw.evaluate([3.0, 2.0, 1.0], data, "nDCG@10")
    Evaluation(nDCG@10: 0.5869; convention rankwood)
    """
    return Evaluator(data, measures, convention, n_threads=n_threads).evaluate(model)


@dataclass(frozen=True)
class Comparison:
    """Two models, compared on the same queries.

    Attributes
    ----------
    measure, convention : str
        What was compared.
    n_queries : int
        Queries with a value in both.
    mean, other_mean : float
        Means of the two models.
    difference : float
        Mean of `other` less that of `model`: above 0, `other` is better.
    interval : tuple of float
        Its 95 % bootstrap interval.
    p_randomisation, p_wilcoxon, p_t : float
        Two-sided p-values of the randomisation test, of Wilcoxon's test and of Student's paired t-test.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.Dataset([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], group=[2, 2])
    >>> result = rw.compare([2, 1, 2, 1], [1, 2, 2, 1], data, "RR")
    >>> result.mean, result.other_mean, result.difference, result.n_queries
    (0.5, 0.75, 0.25, 2)
    """

    measure: str
    convention: str
    n_queries: int
    mean: float
    other_mean: float
    difference: float
    interval: tuple[float, float]
    p_randomisation: float
    p_wilcoxon: float
    p_t: float

    def as_dict(self) -> dict[str, Any]:
        """All of it as a dictionary that JSON can hold."""
        return {**self.__dict__, "interval": list(self.interval)}

    def to_frame(self) -> Any:
        """All of it as a DataFrame of pandas with one row; the interval is two columns, `low` and `high`.

        Examples
        --------
        >>> import rankwood as rw
        >>> data = rw.Dataset([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], group=[2, 2])
        >>> frame = rw.compare([2, 1, 2, 1], [1, 2, 2, 1], data, "RR").to_frame()
        >>> frame[["measure", "mean", "other_mean", "difference", "low", "high"]].values.tolist()
        [['RR', 0.5, 0.75, 0.25, 0.0, 0.5]]
        """
        facts = self.as_dict()
        low, high = facts.pop("interval")
        place = list(facts).index("difference") + 1
        columns = [*list(facts.items())[:place], ("low", low), ("high", high), *list(facts.items())[place:]]
        return need("pandas", "to_frame").DataFrame([dict(columns)])

    def words(self) -> str:
        """The difference with its interval and p-value, as part of a sentence."""
        low, high = self.interval
        tested = f"95 % interval {low:+.4f} .. {high:+.4f}, p = {self.p_randomisation:.4f}"
        return f"{self.difference:+.4f} ({tested})"

    def _repr_html_(self) -> str:
        """What notebooks show: both means, the difference with its interval, and the tests."""
        low, high = self.interval
        rows = {
            "model": f"{self.mean:.4f}",
            "other": f"{self.other_mean:.4f}",
            "difference, other less model": f"{self.difference:+.4f}",
            "its 95 % interval": f"{low:+.4f} .. {high:+.4f}",
            "p, randomisation test": f"{self.p_randomisation:.4f}",
            "p, Wilcoxon's test": f"{self.p_wilcoxon:.4f}",
            "p, paired t-test": f"{self.p_t:.4f}",
        }
        told = f"{self.measure} of {self.n_queries:,} queries; convention {self.convention}"
        columns = [Column("", "", list(rows)), Column(self.measure, "", list(rows.values()))]
        return as_html("Comparison", [told], columns)


def compare(
    model: Any,
    other: Any,
    data: Dataset,
    measure: AnyMeasure = "nDCG@10",
    *,
    convention: str | Convention = "rankwood",
    seed: int = 0,
    n_threads: int | None = None,
) -> Comparison:
    """Paired tests of whether one model ranks better or worse than another, and a 95 % interval of the difference.

    With query weights the means are weighted, and the tests look at differences times weight, scaled so that their mean
    is the difference of the weighted means.

    Parameters
    ----------
    model, other : Ensemble, fitted learner or array of scores
        The two models, as `evaluate` takes them.
    data : Dataset
        Documents with labels.
    measure : str or Measure, default "nDCG@10"
        What is compared.
    convention : str or Convention, default "rankwood"
        How it is computed where tools disagree.
    seed : int, default 0
        Of the randomisation test and of the bootstrap interval.
    n_threads : int, optional
        Every CPU is used unless given. Results do not depend on it.

    Returns
    -------
    Comparison
        The difference is that of `other` over `model`.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.make_ranking(n_queries=30, docs_per_query=20, n_features=5)
    >>> rw.compare(data.X[:, 0], data.X[:, 0], data).difference
    0.0
    """
    name = str(parse_measure(measure))
    first, second = (evaluate(m, data, measure, convention=convention, n_threads=n_threads) for m in (model, other))
    return compare_values(first, second, name, seed=seed)


def compare_values(first: Evaluation, second: Evaluation, measure: str, *, seed: int = 0) -> Comparison:
    """The comparison of two evaluations on the same data, under the same convention and with the same query weights."""
    if first.convention != second.convention:
        raise RankwoodError(f"cannot compare {first.convention.name} values with {second.convention.name} values")
    weights = first.query_weights
    if not _same(weights, second.query_weights):
        raise RankwoodError("cannot compare values of queries that have other weights in the one than in the other")
    a, b = (weighted_values(one.per_query[measure], weights) for one in (first, second))
    randomisation = randomisation_test(a, b, seed=seed)
    interval = bootstrap_interval(a, b, seed=seed)
    return Comparison(
        measure=measure,
        convention=first.convention.name,
        n_queries=randomisation.n_queries,
        mean=mean(first.per_query[measure], weights),
        other_mean=mean(second.per_query[measure], weights),
        difference=randomisation.mean_difference,
        interval=(interval.low, interval.high),
        p_randomisation=randomisation.p_value,
        p_wilcoxon=wilcoxon_test(a, b).p_value,
        p_t=paired_t_test(a, b).p_value,
    )


def mean_interval(
    evaluation: Evaluation, measure: str, *, seed: int = 0, n_threads: int | None = None
) -> BootstrapInterval:
    """The 95 % interval of the mean of a measure, queries drawn with replacement.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.Dataset([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], group=[2, 2])
    >>> interval = mean_interval(rw.evaluate([1, 2, 2, 1], data, "RR"), "RR")
    >>> interval.low, interval.high
    (0.5, 1.0)
    """
    values = weighted_values(evaluation.per_query[measure], evaluation.query_weights)
    return bootstrap_interval(np.zeros_like(values), values, seed=seed, n_threads=n_threads)


def difference_interval(
    first: Evaluation, second: Evaluation, measure: str, *, seed: int = 0, n_threads: int | None = None
) -> BootstrapInterval:
    """The mean difference and its 95 % interval alone, as in `compare_values`: for many models."""
    a, b = (weighted_values(one.per_query[measure], first.query_weights) for one in (first, second))
    return bootstrap_interval(a, b, seed=seed, n_threads=n_threads)


def randomisation_p(
    first: Evaluation, second: Evaluation, measure: str, *, seed: int = 0, n_threads: int | None = None
) -> float:
    """The p-value of the randomisation test alone, as in `compare_values`: for many pairs of models."""
    a, b = (weighted_values(one.per_query[measure], first.query_weights) for one in (first, second))
    return randomisation_test(a, b, seed=seed, n_threads=n_threads).p_value


def _same(weights: FloatArray | None, others: FloatArray | None) -> bool:
    return weights is others or (weights is not None and others is not None and np.array_equal(weights, others))


def weighted_values(values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Values times weights, scaled so that their plain mean is the weighted mean of the values."""
    if weights is None:
        return values
    counted = ~np.isnan(values)
    total = weights[counted].sum()
    if counted.any() and not total > 0:
        raise DataError("a comparison needs queries with a weight above 0: those of all queries are 0")
    return np.where(counted, values * weights * (counted.sum() / total), np.nan)


def aligned_features(model: Ensemble, data: Dataset) -> FeatureMatrix:
    """The features of a data set in the order of a model: by name when both have names, else by position.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([0.0], feature_names=["bm25", "clicks"])
    >>> data = rw.Dataset([[7.0, 0.5]], group=[1], feature_names=["clicks", "bm25"])
    >>> aligned_features(model, data).tolist()
    [[0.5, 7.0]]
    """
    order = column_order(data.feature_names, model.feature_names, "the data")
    return data.X if order is None else np.ascontiguousarray(data.X[:, order])


def scores_of(model: Any, data: Dataset, *, n_threads: int | None = None) -> AnyArray:
    """Scores of the rows of `data`, in input order: of an Ensemble, of a fitted learner, or the scores themselves.

    A model with early exit is given the queries, so that what is measured is what is served.
    """
    model = getattr(model, "ensemble_", model)
    if is_model(model):
        if getattr(model, "exit", None) is None:
            order = column_order(data.feature_names, model.feature_names, "the data")
            data = data if order is None else data.select_features(order)
            scores = data.per_row(lambda X: model.score(X, n_threads=n_threads))
        else:
            X = aligned_features(model, data.in_memory())
            scores = model.score(X, n_threads=n_threads, qid=data.queries.index)
    elif hasattr(model, "predict"):
        scores = data.per_row(model.predict)
    else:
        scores = model
    if isinstance(scores, (str, os.PathLike)):
        raise DataError(f"{os.fspath(scores)!r} is the name of a file: give the model in it, rankwood.load_model(path)")
    if isinstance(scores, (list, tuple)) and any(is_model(getattr(one, "ensemble_", one)) for one in scores):
        raise DataError("several models are given where one is expected: rankwood.evaluate takes them, compare two")
    array = np.asarray(scores)
    if array.shape != (data.n_docs,):
        raise DataError(
            f"a model was expected, or scores with one value per row ({data.n_docs}), got "
            + (f"shape {array.shape}" if array.shape else type(scores).__name__)
        )
    return np.ascontiguousarray(array, dtype=np.float32 if array.dtype == np.float32 else np.float64)


def is_model(model: Any) -> bool:
    """Whether this scores features as an Ensemble does."""
    return hasattr(model, "score") and hasattr(model, "leaves")


def share_of_trees(model: Ensemble, data: Dataset, *, n_threads: int | None = None) -> float:
    """Share of the trees that documents go through on average, with early exit where the model has it."""
    if model.exit is None:
        return 1.0
    trees = model.trees_evaluated(aligned_features(model, data), qid=data.queries.index, n_threads=n_threads)
    return float(trees.sum(dtype=np.int64)) / max(1, model.n_trees * len(trees))


def unique_measures(measures: AnyMeasure | Sequence[AnyMeasure]) -> list[Measure | MeasureFunction]:
    """Measures, each once, in the order given."""
    return list(dict.fromkeys(parse_measure(measure) for measure in as_sequence(measures)))
