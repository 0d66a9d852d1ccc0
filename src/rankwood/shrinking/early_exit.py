"""Early exit, learnt: how far behind a document must be at each checkpoint to stop, at a stated loss.

    gap of a document at a checkpoint = (top-th best partial score of its query) - (its own)

The gaps of validation documents that end among the best `top` say what a margin costs: a margin as wide as the largest
stops none of them, one as wide as the n-th largest at most n - 1. The same n for all checkpoints is found by bisection:
the largest with which the measure loses no more than is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import ModelError, RankwoodError, one_line
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Evaluator, aligned_features
from rankwood.evaluation.measures import AnyMeasure
from rankwood.model.early_exit import SUM_GROUP, EarlyExit
from rankwood.model.ensemble import Ensemble

CHECKPOINTS = (0.10, 0.20, 0.30, 0.45, 0.65)
TOP = 10  # where the measure has no cutoff


def early_exit(
    model: Any,
    valid: Dataset,
    *,
    measure: AnyMeasure = "nDCG@10",
    loss: float = 0.0005,
    checkpoints: Sequence[float] = CHECKPOINTS,
    top: int | None = None,
    convention: str | Convention = "rankwood",
    n_threads: int | None = None,
) -> Ensemble:
    """The model with early exit: margins as narrow as lose no more than `loss` on validation data.

    Parameters
    ----------
    model : Ensemble or fitted learner
        Its trees stay as they are; the exit that it may have is replaced.
    valid : Dataset
        Documents with labels that the model was not trained on. What exit loses on other data is measured by
        `evaluate`, on queries that chose nothing.
    measure : str or Measure, default "nDCG@10"
        What may not get worse.
    loss : float, default 0.0005
        By how much its mean over validation queries may fall, at most.
    checkpoints : sequence of float, default (0.10, 0.20, 0.30, 0.45, 0.65)
        Where documents may stop, as shares of the trees below 1, or as numbers of trees; rounded to multiples of 16.
    top : int, optional
        How many of the best documents of a query never stop; the cutoff of the measure, or 10, unless given.
    convention : str or Convention, default "rankwood"
        How the measure is computed where tools disagree.
    n_threads : int, optional
        Every CPU is used unless given. Results do not depend on it.

    Returns
    -------
    Ensemble
        `exit` has checkpoints and margins, infinite where nobody may stop. The entry `early_exit` of `metadata` says
        what it lost on `valid`, and the share of trees evaluated there.

    See Also
    --------
    EarlyExit : The rule.

    Examples
    --------
    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=40, n_features=5).split(0.5)
    >>> model = rw.LambdaMART(n_trees=60, n_leaves=8).fit(train).ensemble_
    >>> swift = rw.early_exit(model, valid)
    >>> swift.exit.checkpoints, swift.metadata["early_exit"]["lost"] <= 0.0005
    ((16, 32), True)
    """
    ensemble = getattr(model, "ensemble_", model)
    if not isinstance(ensemble, Ensemble):
        raise ModelError(f"early exit is learnt for an Ensemble or a fitted learner, got {type(model).__name__}")
    if not (isinstance(loss, (int, float)) and 0 <= loss < math.inf):
        raise RankwoodError(f"loss must be a number of 0 or more, got {one_line(repr(loss))}")
    evaluator = Evaluator(valid, measure, convention, n_threads=n_threads)
    if len(evaluator.measures) != 1:
        raise RankwoodError("early exit is learnt for one measure")
    if top is None:
        top = getattr(evaluator.measures[0], "cutoff", None) or TOP
    plain, places = ensemble.replace(exit=None), as_checkpoints(checkpoints, ensemble.n_trees)
    found = _Search(plain, evaluator, places, top, float(loss)).run()
    rule = found.model.exit
    assert rule is not None
    return found.model.with_metadata(
        early_exit={
            "measure": evaluator.names[0],
            "loss_allowed": float(loss),
            "lost": found.lost,
            "trees_evaluated": found.trees_evaluated,
            "queries": valid.n_queries,
        }
    )


def as_checkpoints(checkpoints: Sequence[float], n_trees: int) -> tuple[int, ...]:
    """Numbers of trees, rising multiples of 16 below `n_trees`: the nearest to the shares or numbers given.

    Examples
    --------
    >>> as_checkpoints((0.1, 0.2, 0.3), 200), as_checkpoints((50, 60), 200), as_checkpoints((0.5,), 16)
    ((16, 48, 64), (48, 64), ())
    """
    places = set()
    for given in checkpoints:
        if isinstance(given, bool) or not isinstance(given, (int, float, np.number)) or not 0 < given < math.inf:
            raise RankwoodError(f"a checkpoint is a share of the trees or a number of them, got {one_line(repr(given))}")
        n = given * n_trees if given < 1 else given
        places.add(max(SUM_GROUP, math.floor(n / SUM_GROUP + 0.5) * SUM_GROUP))
    return tuple(sorted(place for place in places if place < n_trees))


@dataclass(frozen=True)
class _Candidate:
    """The model with some margins, and what they do on the validation data."""

    model: Ensemble
    lost: float
    trees_evaluated: float  # share


class _Search:
    """The narrowest margins that lose no more than is allowed."""

    def __init__(
        self, model: Ensemble, evaluator: Evaluator, checkpoints: tuple[int, ...], top: int, loss: float
    ) -> None:
        self.model, self.evaluator, self.checkpoints, self.top, self.loss = model, evaluator, checkpoints, top, loss
        self.X, self.index = aligned_features(model, evaluator.data), evaluator.data.queries.index
        scores = self._scores(model)
        self.reference = float(evaluator.means(scores)[0])
        best = self._best(scores)
        # The gaps of the documents that end at the top, by checkpoint, the widest first.
        self.gaps = [
            np.sort(self._gaps(self._scores(model.select(np.arange(place))))[best])[::-1] for place in checkpoints
        ]
        self.n_best = len(best)

    def run(self) -> _Candidate:
        """The candidate that stops most of the best documents: none of them is the least that is tried."""
        found = self._candidate(0) if self.n_best else None
        if found is None or found.lost > self.loss:
            return self._try([math.inf] * len(self.checkpoints))
        most, too_many = 0, self.n_best
        while too_many - most > 1:
            n = (most + too_many) // 2
            candidate = self._candidate(n)
            if candidate.lost <= self.loss:
                most, found = n, candidate
            else:
                too_many = n
        return found

    def _candidate(self, n: int) -> _Candidate:
        """What at most `n` of the best documents are lost with, at each checkpoint by itself."""
        return self._try([max(0.0, float(gaps[n])) for gaps in self.gaps])

    def _try(self, margins: list[float]) -> _Candidate:
        model = self.model.replace(exit=EarlyExit(self.checkpoints, tuple(margins), self.top))
        scores, n_threads = self._scores(model), self.evaluator.n_threads
        trees = model.trees_evaluated(self.X, qid=self.index, n_threads=n_threads)
        share = float(trees.sum(dtype=np.int64)) / max(1, model.n_trees * len(trees))
        return _Candidate(model, self.reference - float(self.evaluator.means(scores)[0]), share)

    def _scores(self, model: Ensemble) -> FloatArray:
        return model.score(self.X, qid=self.index, n_threads=self.evaluator.n_threads)

    def _by_query(self, scores: FloatArray) -> tuple[Any, Any]:
        """Rows query by query, the best first, and where queries of more than `top` documents start among them."""
        order, data = np.lexsort((-scores, self.index)), self.evaluator.data
        sizes = np.diff(data.offsets)
        return order, data.offsets[:-1][sizes > self.top]

    def _best(self, scores: FloatArray) -> Any:
        """Rows of the best documents of every query from which somebody may stop."""
        order, starts = self._by_query(scores)
        return order[(starts[:, None] + np.arange(self.top)).ravel()]

    def _gaps(self, partial: FloatArray) -> FloatArray:
        """How far every document is behind the `top`-th best of its query."""
        order, starts = self._by_query(partial)
        at_top = np.full(self.evaluator.data.n_queries, -np.inf)
        at_top[self.index[order[starts]]] = partial[order[starts + self.top - 1]]
        return at_top[self.index] - partial
