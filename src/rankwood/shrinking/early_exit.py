"""Early exit, learnt: how far behind a document must be at each checkpoint to stop, at a stated loss.

    gap of a document at a checkpoint = (top-th best partial score of its query) - (its own)

The gaps of validation documents that end among the best `top` say what a margin costs: a margin as wide as the largest
stops none of them, one as wide as the next at most one, and so on. The same number for all checkpoints is raised, in
growing steps, until the loss might be larger than is allowed. Who stops wins or loses by chance, and the more stop the
more the two cancel out in the mean: so what counts is the upper end of the interval of the mean loss, not the mean.

A checkpoint takes time, too. Unless checkpoints are given, those that cost more than they save are left out, the worst
first, and margins are learnt anew for those that stay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray, FloatArray, NodeArray
from rankwood.errors import ModelError, RankwoodError, one_line
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Evaluator, aligned_features, weighted_values
from rankwood.evaluation.measures import AnyMeasure
from rankwood.model.early_exit import SUM_GROUP, EarlyExit
from rankwood.model.ensemble import Ensemble

CHECKPOINTS = (0.10, 0.20, 0.30, 0.45, 0.65)
TOP = 10  # where the measure has no cutoff
LOSS = 0.0005
# What a checkpoint takes for every document that comes to it, in leaves of trees that take as long. Measured with
# engine bitslice (AVX-512, one thread, queries of 120 documents, 76 and 126 features): 5 ns where nobody stops and 14
# to 20 ns where most do, as codes of the others are moved together; a leaf takes 0.016 to 0.019 ns.
CHECKPOINT_LEAVES = 700.0


def early_exit(
    model: Any,
    valid: Dataset,
    *,
    measure: AnyMeasure = "nDCG@10",
    loss: float = LOSS,
    level: float = 0.95,
    checkpoints: Sequence[float] | None = None,
    top: int | None = None,
    convention: str | Convention = "rankwood",
    n_threads: int | None = None,
) -> Ensemble:
    """The model with early exit: margins as narrow as validation data shows to lose no more than `loss`.

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
        By how much its mean over queries may fall, at most.
    level : float, default 0.95
        How sure that is to be: the upper end of the one-sided interval of the mean loss on `valid` is at most `loss`.
        With 0.5 the mean itself is, which lets chance decide when queries are few. More queries allow narrower margins.
    checkpoints : sequence of float, optional
        Where documents may stop, as shares of the trees below 1, or as numbers of trees; rounded to multiples of 16.
        Unless given 0.10, 0.20, 0.30, 0.45 and 0.65, without those that would take longer than what they save: for
        models of less than about 1,000 leaves that may be all of them.
    top : int, optional
        How many of the best documents of a query never stop; the cutoff of the measure, or 10, unless given.
    convention : str or Convention, default "rankwood"
        How the measure is computed where tools disagree.
    n_threads : int, optional
        Every CPU is used unless given. Results do not depend on it.

    Returns
    -------
    Ensemble
        `exit` has checkpoints and margins, none or infinite where nobody may stop. The entry `early_exit` of `metadata`
        says what it `lost` on `valid`, the upper end of that (`lost_at_most`), and the share of trees evaluated there.

    See Also
    --------
    EarlyExit : The rule.

    Examples
    --------
    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=40, n_features=5).split(0.5)
    >>> model = rw.LambdaMART(n_trees=60, n_leaves=8).fit(train).ensemble_
    >>> swift = rw.early_exit(model, valid, checkpoints=[16, 32])
    >>> swift.exit.checkpoints, swift.metadata["early_exit"]["lost_at_most"] <= 0.0005
    ((16, 32), True)
    """
    ensemble = getattr(model, "ensemble_", model)
    if not isinstance(ensemble, Ensemble):
        raise ModelError(f"early exit is learnt for an Ensemble or a fitted learner, got {type(model).__name__}")
    check_loss(loss, "loss")
    if not (isinstance(level, (int, float)) and 0.5 <= level < 1):
        raise RankwoodError(f"level must lie between 0.5 and 1, got {one_line(repr(level))}")
    evaluator = Evaluator(valid, measure, convention, n_threads=n_threads)
    if len(evaluator.measures) != 1:
        raise RankwoodError("early exit is learnt for one measure")
    if top is None:
        top = getattr(evaluator.measures[0], "cutoff", None) or TOP
    places = as_checkpoints(CHECKPOINTS if checkpoints is None else checkpoints, ensemble.n_trees)
    search = _Search(ensemble.replace(exit=None), evaluator, top, float(loss), NormalDist().inv_cdf(level))
    found = search.run(places) if checkpoints is None else search.narrowest(places)
    return found.model.with_metadata(
        early_exit={
            "measure": evaluator.names[0],
            "loss": float(loss),
            "level": float(level),
            "lost": found.lost,
            "lost_at_most": found.lost_at_most,
            "trees_evaluated": found.trees_evaluated,
            "queries": valid.n_queries,
        }
    )


def check_loss(loss: Any, name: str) -> None:
    """Refuse what is no loss that may be allowed."""
    if isinstance(loss, bool) or not (isinstance(loss, (int, float)) and 0 <= loss < math.inf):
        raise RankwoodError(f"{name} must be a number of 0 or more, got {one_line(repr(loss))}")


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
            raise RankwoodError(
                f"a checkpoint is a share of the trees or a number of them, got {one_line(repr(given))}"
            )
        n = given * n_trees if given < 1 else given
        places.add(max(SUM_GROUP, math.floor(n / SUM_GROUP + 0.5) * SUM_GROUP))
    return tuple(sorted(place for place in places if place < n_trees))


@dataclass(frozen=True)
class _Candidate:
    """The model with some margins, and what they do on the validation data."""

    model: Ensemble
    rule: EarlyExit
    lost: float
    lost_at_most: float
    trees_evaluated: float  # share


def _without(rule: EarlyExit, number: int) -> EarlyExit:
    """The rule without one of its checkpoints."""
    stay = [place for place in range(len(rule.checkpoints)) if place != number]
    return EarlyExit(tuple(rule.checkpoints[i] for i in stay), tuple(rule.margins[i] for i in stay), rule.top)


class _Search:
    """The narrowest margins that lose no more than is allowed, at `z` standard errors above the mean loss."""

    def __init__(self, model: Ensemble, evaluator: Evaluator, top: int, loss: float, z: float) -> None:
        self.model, self.evaluator, self.top, self.loss, self.z = model, evaluator, top, loss, z
        self.X, self.index = aligned_features(model, evaluator.data), evaluator.data.queries.index
        scores = self._scores(model)
        self.values = evaluator.values(scores)[0]
        self.best = self._best(scores)

    def run(self, checkpoints: tuple[int, ...]) -> _Candidate:
        """The narrowest margins of the checkpoints that are worth their time."""
        found = self.narrowest(checkpoints)
        worth = self.worthwhile(found.rule)
        return found if worth == found.rule or found.rule.never else self.narrowest(worth.checkpoints)

    def worthwhile(self, rule: EarlyExit) -> EarlyExit:
        """The rule without the checkpoints that cost more than they save; the worst goes first."""
        cost = self._cost(rule)
        while rule.checkpoints:
            fewer = [_without(rule, number) for number in range(len(rule.checkpoints))]
            costs = [self._cost(one) for one in fewer]
            best = int(np.argmin(costs))
            if costs[best] >= cost:
                break
            rule, cost = fewer[best], costs[best]
        return rule

    def _cost(self, rule: EarlyExit) -> float:
        """What scoring a document takes on average, in leaves; codes of features are left out."""
        trees = self._trees_evaluated(rule)
        reached = np.searchsorted(rule.checkpoints, trees, side="right")
        return float(np.mean(self.model.leaf_offsets[trees] + CHECKPOINT_LEAVES * reached)) if len(trees) else 0.0

    def narrowest(self, checkpoints: tuple[int, ...]) -> _Candidate:
        """The candidate that stops most of the best documents, while all that stop fewer are fine."""
        widest_first = [np.sort(self._gaps(place)[self.best])[::-1] for place in checkpoints]
        found, n = None, 0
        while checkpoints and n < len(self.best):
            candidate = self._try(checkpoints, [max(0.0, float(gaps[n])) for gaps in widest_first])
            if candidate.lost_at_most > self.loss:
                break
            found, n = candidate, n + max(1, n // 4)
        return found or self._try(checkpoints, [math.inf] * len(checkpoints))

    def _gaps(self, checkpoint: int) -> FloatArray:
        """How far every document is behind the `top`-th best of its query; -infinity where nobody may stop.

        Rounded up, so that a margin as wide as the gap does not stop the document.
        """
        partial = self._scores(self.model.select(np.arange(checkpoint)))
        order, starts = self._by_query(partial)
        at_top = np.full(self.evaluator.data.n_queries, -np.inf)
        at_top[self.index[order[starts]]] = partial[order[starts + self.top - 1]]
        gaps: FloatArray = np.nextafter(at_top[self.index] - partial, np.inf)
        return gaps

    def _try(self, checkpoints: tuple[int, ...], margins: list[float]) -> _Candidate:
        rule = EarlyExit(checkpoints, tuple(margins), self.top)
        model, trees = self.model.replace(exit=rule), self._trees_evaluated(rule)
        share = float(trees.sum(dtype=np.int64)) / max(1, model.n_trees * len(trees))
        losses = self.values - self.evaluator.values(self._scores(model))[0]
        losses = weighted_values(losses, self.evaluator.data.query_weights)
        losses = losses[~np.isnan(losses)]
        lost = float(losses.mean()) if len(losses) else 0.0
        error = float(losses.std(ddof=1)) / math.sqrt(len(losses)) if len(losses) > 1 else 0.0
        return _Candidate(model, rule, lost, lost + self.z * error, share)

    def _trees_evaluated(self, rule: EarlyExit) -> NodeArray:
        model = self.model.replace(exit=rule)
        return model.trees_evaluated(self.X, qid=self.index, n_threads=self.evaluator.n_threads)

    def _scores(self, model: Ensemble) -> FloatArray:
        return model.score(self.X, qid=self.index, n_threads=self.evaluator.n_threads)

    def _by_query(self, scores: FloatArray) -> tuple[AnyArray, AnyArray]:
        """Rows query by query, the best first, and where queries of more than `top` documents start among them."""
        order, data = np.lexsort((-scores, self.index)), self.evaluator.data
        return order, data.offsets[:-1][np.diff(data.offsets) > self.top]

    def _best(self, scores: FloatArray) -> AnyArray:
        """Rows of the best documents of every query from which somebody may stop."""
        order, starts = self._by_query(scores)
        return order[(starts[:, None] + np.arange(self.top)).ravel()]
