"""Importance of features, and likeness, strength and number of the trees of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import DataError, ModelError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Evaluator, aligned_features
from rankwood.evaluation.measures import Measure
from rankwood.model.ensemble import Ensemble

# Which features a model needs: by the gains of its splits, and by what it loses when a feature is shuffled.


def impurity_importance(model: Any) -> FloatArray:
    """Share of every feature in the total gain of all splits: what its splits lowered the impurity by in training.

    Cheap, but it tells of training data only and favours features with many values.

    Parameters
    ----------
    model : Ensemble or fitted learner
        It must know the gains of its splits; imported models may not.

    Returns
    -------
    array of float64
        One share per feature; they add up to 1.

    Raises
    ------
    ModelError
        The model does not know its gains.

    Examples
    --------
    >>> import rankwood as rw
    >>> ranker = rw.MART(n_trees=3, n_leaves=3).fit(rw.make_ranking(n_queries=30, docs_per_query=20, n_features=5))
    >>> shares = impurity_importance(ranker)
    >>> len(shares), round(float(shares.sum()), 9)
    (5, 1.0)
    """
    model = as_ensemble(model)
    if model.split_gain is None:
        raise ModelError("the model knows no gains of its splits: use permutation_importance, which needs data instead")
    return feature_shares(model, model.split_gain)


def feature_shares(model: Ensemble, weights: FloatArray | None = None) -> FloatArray:
    """Share of every feature in all splits, or in the sum of the splits' weights.

    Examples
    --------
    >>> import rankwood as rw
    >>> feature_shares(rw.Ensemble.from_trees([(1, 0.5, 1.0, 2.0)], n_features=3))
    array([0., 1., 0.])
    """
    sums = np.bincount(model.feature, weights=weights, minlength=model.n_features).astype(np.float64)
    shares: FloatArray = sums / (sums.sum() or 1.0)
    return shares


@dataclass(frozen=True)
class PermutationImportance:
    """Falls of a measure when the values of a feature are shuffled: what `permutation_importance` returns.

    Attributes
    ----------
    measure, convention : str
        What was measured.
    within : {"query", "data"}
        Among which documents values were shuffled.
    baseline : float
        The measure with the data as it is.
    drops : array of float64
        What it falls by, repetitions x features, in the order of the model's features.
    feature_names : tuple of str or None
        Names of the model's features.
    """

    measure: str
    convention: str
    within: str
    baseline: float
    drops: FloatArray
    feature_names: tuple[str, ...] | None

    @property
    def mean(self) -> FloatArray:
        """Mean fall of the measure, one value per feature."""
        falls: FloatArray = self.drops.mean(axis=0)
        return falls

    @property
    def std(self) -> FloatArray:
        """Standard deviation of the fall over repetitions, one value per feature."""
        spread: FloatArray = self.drops.std(axis=0, ddof=1) if len(self.drops) > 1 else np.zeros(self.drops.shape[1])
        return spread

    def ranking(self) -> IndexArray:
        """Numbers of the features, the most important first."""
        return np.argsort(-self.mean, kind="stable")


def permutation_importance(
    model: Any,
    data: Dataset,
    measure: str | Measure = "nDCG@10",
    *,
    within: Literal["query", "data"] = "query",
    n_repeats: int = 5,
    convention: str | Convention = "rankwood",
    seed: int = 0,
    n_threads: int | None = None,
) -> PermutationImportance:
    """Importance of every feature: how much a measure falls when the values of the feature are shuffled.

    Features that no tree looks at are not tried. Every feature and repetition has a random stream of its own, so the
    result depends on the seed alone.

    Parameters
    ----------
    model : Ensemble or fitted learner
    data : Dataset
        Documents with labels.
    measure : str or Measure, default "nDCG@10"
        What falls.
    within : {"query", "data"}, default "query"
        Among which documents values are shuffled. "query": among those of each query, which asks what the feature does
        for the order inside queries; a feature that is the same for all documents of a query loses nothing. "data":
        among all.
    n_repeats : int, default 5
        How often each feature is shuffled.
    convention : str or Convention, default "rankwood"
        How the measure is computed where tools disagree.
    seed : int, default 0
        Of the shuffling.
    n_threads : int, optional
        Every CPU is used unless given.

    Returns
    -------
    PermutationImportance
        Its `mean` has one value per feature, its `ranking()` their numbers, the most important first.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 0.0, 1.0)], n_features=2)
    >>> data = rw.Dataset([[0.0, 1.0], [1.0, 2.0]] * 30, [0, 1] * 30, group=[2] * 30)
    >>> result = permutation_importance(model, data, "RR")
    >>> result.baseline, bool(0.1 < result.mean[0] < 0.4), float(result.mean[1]), result.ranking().tolist()
    (1.0, True, 0.0, [0, 1])
    """
    model = as_ensemble(model)
    if n_repeats < 1:
        raise RankwoodError(f"n_repeats must be at least 1, got {n_repeats}")
    if within not in ("query", "data"):
        raise RankwoodError(f"within must be 'query' or 'data', got {within!r}")
    evaluator = Evaluator(data, measure, convention, n_threads=n_threads)

    def measured(features: Any) -> float:
        return float(evaluator.means(model.score(features, n_threads=n_threads))[0])

    X = np.array(aligned_features(model, data))  # a copy, one column of which is shuffled at a time
    baseline = measured(X)
    drops = np.zeros((n_repeats, model.n_features))
    for feature in np.unique(model.feature):
        column = X[:, feature].copy()
        for repeat in range(n_repeats):
            rng = np.random.default_rng([seed, int(feature), repeat])
            X[:, feature] = _shuffled(column, data, within, rng)
            drops[repeat, feature] = baseline - measured(X)
        X[:, feature] = column
    (name,) = evaluator.names
    return PermutationImportance(name, evaluator.convention.name, within, baseline, drops, model.feature_names)


def _shuffled(column: Any, data: Dataset, within: str, rng: np.random.Generator) -> Any:
    if within == "data":
        return rng.permutation(column)
    index = data.queries.index
    # Rows sorted by query, and inside a query at random: the k-th of a query takes the value of its k-th at random.
    into = np.argsort(index, kind="stable")
    source = np.lexsort((rng.random(len(column)), index))
    shuffled = np.empty_like(column)
    shuffled[into] = column[source]
    return shuffled


# What makes a forest good: how alike its trees are, how strong each is alone, and how many it takes (Breiman 2001).


_BLOCK_BYTES = 32 << 20  # of leaf numbers held at a time


@dataclass(frozen=True)
class Correlation:
    """Mean correlation between the outputs of two trees, over all pairs of trees that are not constant.

    Attributes
    ----------
    mean : float
        NaN when fewer than two trees tell documents apart.
    n_trees : int
        Trees that do.
    n_constant : int
        Trees that do not, which are left out.
    """

    mean: float
    n_trees: int
    n_constant: int


def tree_correlation(
    model: Any, data: Dataset, *, within_queries: bool = False, n_threads: int | None = None
) -> Correlation:
    """Likeness of the trees of a model: mean Pearson correlation of the outputs of two trees, over all pairs of trees.

    Parameters
    ----------
    model : Ensemble or fitted learner
    data : Dataset
        Documents whose outputs are compared.
    within_queries : bool, default False
        Whether outputs are taken less their mean in the query, which is what ranking depends on.
    n_threads : int, optional
        Every CPU is used unless given.

    Returns
    -------
    Correlation
        Its `mean` is the mean over pairs.

    Notes ----- The mean over pairs follows from the sum of the standardised outputs, so one pass over the trees is
    enough: no matrix of documents x trees or of pairs is held.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0), (0, 0.5, 0.0, 9.0), (0, 0.5, 1.0, 0.0)])
    >>> data = rw.Dataset([[0.0], [1.0], [1.0]], [0, 1, 1], group=[3])
    >>> tree_correlation(model, data).mean.__round__(6)  # of 1, -1 and -1
    -0.333333
    """
    total = np.zeros(data.n_docs)
    n_trees = n_constant = 0
    for _, values in tree_outputs(model, data, n_threads=n_threads):
        centred = values - (_query_means(values, data) if within_queries else values.mean())
        largest = np.abs(values).max(initial=0.0)
        norm = float(np.linalg.norm(centred))
        # Less than rounding leaves of equal values is no difference between documents.
        if norm <= 1e-12 * largest * np.sqrt(max(len(values), 1)):
            n_constant += 1
            continue
        total += centred / norm
        n_trees += 1
    if n_trees < 2:
        return Correlation(float("nan"), n_trees, n_constant)
    return Correlation(float((total @ total - n_trees) / (n_trees * (n_trees - 1))), n_trees, n_constant)


def tree_strength(
    model: Any,
    data: Dataset,
    measures: str | Measure | Sequence[str | Measure] = "nDCG@10",
    *,
    convention: str | Convention = "rankwood",
    n_threads: int | None = None,
) -> dict[str, FloatArray]:
    """Measures of every tree alone; their mean is the mean strength of the trees (Breiman 2001).

    A tree alone gives many documents of a query the same score. So ties count as the mean over all orders, whatever the
    convention says of them: else the order of documents in the file would be part of the strength.

    Parameters
    ----------
    model : Ensemble or fitted learner
    data : Dataset
        Documents with labels.
    measures : str, Measure or sequence of these, default "nDCG@10"
        What is computed.
    convention : str or Convention, default "rankwood"
        How measures are computed where tools disagree, ties aside.
    n_threads : int, optional
        Every CPU is used unless given.

    Returns
    -------
    dict of str to array
        For every measure, one value per tree.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 0.0, 1.0), (0, 0.5, 1.0, 0.0), 7.0])
    >>> data = rw.Dataset([[0.0], [1.0]], [0, 1], group=[2])
    >>> tree_strength(model, data, "P@1")["P@1"].tolist()
    [1.0, 0.0, 0.5]
    """
    chosen = dataclasses.replace(Convention.get(convention), ties="average")
    evaluator = Evaluator(data, measures, chosen, n_threads=n_threads)
    found = [evaluator.means(values) for _, values in tree_outputs(model, data, n_threads=n_threads)]
    table = np.array(found, dtype=np.float64).reshape(len(found), len(evaluator.measures))
    return {name: table[:, column] for column, name in enumerate(evaluator.names)}


@dataclass(frozen=True)
class Curve:
    """Measures over the number of trees.

    Attributes
    ----------
    sizes : array of int64
        Numbers of trees.
    values : dict of str to array
        By name of the measure, its values after the first `sizes[i]` trees.
    """

    sizes: IndexArray
    values: dict[str, FloatArray]


def measure_curve(
    model: Any,
    data: Dataset,
    measures: str | Measure | Sequence[str | Measure] = "nDCG@10",
    *,
    sizes: Sequence[int] | None = None,
    in_bag: Callable[[int], IndexArray] | None = None,
    convention: str | Convention = "rankwood",
    n_threads: int | None = None,
) -> Curve:
    """Measures over the number of trees, on held-out data or, with `in_bag`, out of the bag on the training data.

    Parameters
    ----------
    model : Ensemble or fitted learner
    data : Dataset
        Documents with labels.
    measures : str, Measure or sequence of these, default "nDCG@10"
        What is computed.
    sizes : sequence of int, optional
        Numbers of trees to measure at; about 50 between 1 and all unless given.
    in_bag : callable, optional
        For measures out of the bag: given the number of a tree, returns the rows of `data` that it has seen. A document
        is scored by the mean of the trees that have not seen it, and only queries all of whose documents have such a
        score count; a value is NaN as long as there are none.
    convention : str or Convention, default "rankwood"
        How measures are computed where tools disagree.
    n_threads : int, optional
        Every CPU is used unless given.

    Returns
    -------
    Curve
        `sizes`, and `values` by name of the measure.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 0.0), (0, 0.5, 0.0, 9.0)])
    >>> data = rw.Dataset([[0.0], [1.0]], [0, 1], group=[2])
    >>> measure_curve(model, data, "RR").values["RR"].tolist()
    [0.5, 1.0]
    """
    model = as_ensemble(model)
    evaluator = Evaluator(data, measures, convention, n_threads=n_threads)
    at = _sizes(sizes, model.n_trees)
    sums, counts = np.full(data.n_docs, model.base if in_bag is None else 0.0), np.zeros(data.n_docs)
    found: list[Any] = []
    # A mean of leaf values as they are, where that is all the same: rounded weights would break ties.
    weights = model.tree_weights
    plain = in_bag is not None and bool((weights == weights[:1]).all() and (weights != 0).all())
    for tree, values in tree_outputs(model.reweigh(np.sign(weights)) if plain else model, data, n_threads=n_threads):
        if in_bag is None:
            sums += values
        else:
            unseen = np.ones(data.n_docs, dtype=bool)
            unseen[in_bag(tree)] = False
            sums[unseen] += values[unseen]
            counts[unseen] += 1
        if len(found) < len(at) and tree + 1 == at[len(found)]:
            scores = sums if in_bag is None else sums / np.maximum(counts, 1)
            rows = evaluator.values(scores)
            if in_bag is not None:
                lacking = np.bincount(data.queries.index, weights=counts == 0, minlength=data.n_queries)
                rows = np.where(lacking == 0, rows, np.nan)
            found.append(evaluator.mean(rows))
    table = np.array(found, dtype=np.float64).reshape(len(at), len(evaluator.measures))
    return Curve(at, {name: table[:, column] for column, name in enumerate(evaluator.names)})


def tree_outputs(model: Any, data: Dataset, *, n_threads: int | None = None) -> Iterator[tuple[int, FloatArray]]:
    """Number and outputs of every tree, one after another: weight times leaf value, for every row.

    Leaves are found for a block of trees at a time, so a large forest needs little memory.
    """
    model = as_ensemble(model)
    X = aligned_features(model, data)
    n_bytes = 4 if np.diff(model.leaf_offsets).max(initial=0) > 1 << 16 else 2
    step = max(1, _BLOCK_BYTES // max(1, n_bytes * data.n_docs))
    for begin in range(0, model.n_trees, step):
        block = model.select(np.arange(begin, min(begin + step, model.n_trees)))
        leaves = block.leaves(X, n_threads=n_threads)
        for number in range(block.n_trees):
            first, last = block.leaf_offsets[number : number + 2]
            contribution = block.tree_weights[number] * block.leaf_value[first:last]
            yield begin + number, contribution[leaves[:, number]]


def as_ensemble(model: Any) -> Ensemble:
    """The model itself, or that of a fitted ranker; a ModelError for anything else."""
    ensemble = getattr(model, "ensemble_", model)
    if not isinstance(ensemble, Ensemble):
        raise ModelError(
            f"trees are looked at one by one: give an Ensemble or a fitted ranker, got {type(model).__name__}"
        )
    return ensemble


def _query_means(values: FloatArray, data: Dataset) -> FloatArray:
    index = data.queries.index
    sums = np.bincount(index, weights=values, minlength=data.n_queries)
    means: FloatArray = (sums / np.maximum(data.queries.sizes, 1))[index]
    return means


def usual_sizes(n_trees: int) -> IndexArray:
    """About 50 numbers of trees between 1 and all."""
    return np.unique(np.rint(np.geomspace(1, max(n_trees, 1), 50)).astype(np.int64))[: n_trees or 0]


def _sizes(sizes: Sequence[int] | None, n_trees: int) -> IndexArray:
    if sizes is None:
        return usual_sizes(n_trees)
    given = np.unique(np.asarray(sizes))
    if given.dtype.kind not in "iu":
        raise RankwoodError("sizes must be whole numbers of trees")
    if len(given) and not (given[0] >= 1 and given[-1] <= n_trees):
        raise DataError(f"sizes must lie between 1 and the number of trees ({n_trees}), got {given[0]} to {given[-1]}")
    return given.astype(np.int64)
