"""Which features a model needs: by the gains of its splits, and by what it loses when a feature is shuffled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.data.trec import docnos
from rankwood.dtypes import FloatArray, IndexArray
from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluate import aligned_features
from rankwood.evaluation.forest_diagnostics import as_ensemble
from rankwood.evaluation.measures import Measure, parse_measure
from rankwood.evaluation.per_query import mean, per_query


def impurity_importance(model: Any) -> FloatArray:
    """Share of every feature in the total gain of all splits: what its splits lowered the impurity by in training.

    Cheap, but of training data only, and kind to features with many values. Imported models may not know their gains.

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

    >>> import rankwood as rw
    >>> feature_shares(rw.Ensemble.from_trees([(1, 0.5, 1.0, 2.0)], n_features=3))
    array([0., 1., 0.])
    """
    sums = np.bincount(model.feature, weights=weights, minlength=model.n_features).astype(np.float64)
    shares: FloatArray = sums / (sums.sum() or 1.0)
    return shares


@dataclass(frozen=True)
class PermutationImportance:
    """What the measure falls by when a feature's values are shuffled, one row per repetition; see the means.

    `features` are in the order of the model.
    """

    measure: str
    convention: str
    within: str
    baseline: float
    drops: FloatArray  # repetitions x features
    feature_names: tuple[str, ...] | None

    @property
    def mean(self) -> FloatArray:
        """Mean fall of the measure, one value per feature."""
        falls: FloatArray = self.drops.mean(axis=0)
        return falls

    @property
    def std(self) -> FloatArray:
        """Its standard deviation over repetitions."""
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
    """How much `measure` falls on `data` when the values of one feature are shuffled.

    within    "query": among the documents of each query, which asks what the feature does for the order inside queries;
              one that is the same for all documents of a query loses nothing. "data": among all documents

    Features that no tree looks at are not tried. Every feature and repetition has a random stream of its own, so the
    result depends on the seed alone. Scoring uses `n_threads`.

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
    chosen, parsed = Convention.get(convention), parse_measure(measure)
    ids = docnos(data) if chosen.ties == "docno" else None

    def measured(features: Any) -> float:
        scores = model.score(features, n_threads=n_threads)
        rows = per_query(
            parsed, data.y, scores, data.offsets, data.order, convention=chosen, doc_ids=ids, n_threads=n_threads
        )
        return float(mean(rows[0], data.query_weights))

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
    return PermutationImportance(str(parsed), chosen.name, within, baseline, drops, model.feature_names)


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
