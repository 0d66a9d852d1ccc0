"""How good a forest is by the number of its trees, on the data that it was grown on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankwood.data.dataset import Dataset
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.diagnostics import Curve, measure_curve, usual_sizes
from rankwood.evaluation.measures import Measure
from rankwood.system import resolve_threads
from rankwood.training.full_depth import TaskGrower
from rankwood.training.inputs import filled, replacements
from rankwood.training.params import checked_parameters
from rankwood.training.random_forest import RandomForest, grower_of


def out_of_bag_curve(
    forest: RandomForest,
    train: Dataset,
    measures: str | Measure | Sequence[str | Measure] = "nDCG@10",
    *,
    sizes: Sequence[int] | None = None,
    convention: str | Convention = "rankwood",
    n_threads: int | None = None,
) -> Curve:
    """Measures over the number of trees of a fitted forest, on the data it was fitted to, out of the bag.

    A document is scored by the trees that have not seen it. What every tree has seen is drawn again from the forest's
    seed.

    Parameters
    ----------
    forest : RandomForest
        A fitted one.
    train : Dataset
        The data that it was fitted to.
    measures : str, Measure or a sequence of these, default "nDCG@10"
        What to compute.
    sizes : sequence of int, optional
        Numbers of trees to measure at; about 50 between 1 and all unless given. With task="ordinal" they count the
        trees of a grade.
    convention : str or Convention, default "rankwood"
        How measures are computed where tools disagree.
    n_threads : int, optional
        Threads; None uses every CPU.

    Returns
    -------
    Curve
        The sizes, and by measure the values after so many trees. Queries with a document that every tree has seen do
        not count; without others the value is NaN.

    See Also
    --------
    measure_curve : The same on data that was held out, for any model.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.make_ranking(n_queries=40, docs_per_query=10, n_features=6)
    >>> forest = rw.RandomForest(30, queries_per_tree=0.3, out_of_bag=True).fit(data)
    >>> curve = out_of_bag_curve(forest, data, sizes=[10, 30])
    >>> bool(abs(curve.values["nDCG@10"][-1] - forest.oob_score_) < 1e-12)
    True
    """
    if not isinstance(forest, RandomForest):
        raise RankwoodError(
            f"what a tree has seen is drawn again by the forest that was fitted: give the RandomForest, "
            f"not {type(forest).__name__}"
        )
    check_is_fitted(forest, "ensemble_")
    data = filled(train, replacements(train, forest.missing))
    grower = grower_of(checked_parameters(forest), data, n_threads=resolve_threads(n_threads))
    seed, step = int(forest.ensemble_.metadata["seed"]), grower.task.n_problems
    if not _same_first_tree(forest, grower, seed, n_threads):
        raise DataError("this is not the data that the forest was fitted to: its first tree, grown again, is another")
    at = usual_sizes(forest.n_trees_ // step) if sizes is None else np.asarray(sizes)
    curve = measure_curve(
        forest,
        train,
        measures,
        sizes=(at * step).tolist(),
        in_bag=lambda tree: grower.sample(seed, tree // step)[0],
        convention=convention,
        n_threads=n_threads,
    )
    return Curve(curve.sizes // step, curve.values)


def _same_first_tree(forest: RandomForest, grower: TaskGrower, seed: int, n_threads: int | None) -> bool:
    again = grower.grow(seed, 0, 1, n_threads=resolve_threads(n_threads)).threshold
    return np.array_equal(again, forest.ensemble_.threshold[: len(again)])
