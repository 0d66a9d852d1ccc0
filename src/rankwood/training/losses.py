"""What boosting minimises: squared error, LambdaMART's measures, other losses of rankings, or a function of your own.

A loss gives every document two numbers at the current scores. The *gradient* is the direction in which its score
should go: MINUS the derivative of the loss, the residual or lambda that a tree is fitted to as pseudo-response. The
*hessian* is the second derivative, never negative. A leaf's value is `sum(gradient) / (sum(hessian) + l2)`.

Rows are grouped by query here: query q holds the rows `offsets[q]` to `offsets[q + 1]`.

A loss may draw random numbers. They belong to a seed, the number of the *draw* (the round, say) and the query, counted
over all processes: never to a thread or a process, and not to what was drawn before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from rankwood import _native
from rankwood.dtypes import LABEL, OFFSET, SCORE, WEIGHT, FloatArray, OffsetArray
from rankwood.errors import DataError, RankwoodError
from rankwood.exact import exact_mean
from rankwood.group import ALONE, Group
from rankwood.system import resolve_threads


class Gradients(Protocol):
    """A loss bound to the training data."""

    def gradients(self, scores: FloatArray, out_gradient: FloatArray, out_hessian: FloatArray, draw: int = 0) -> None:
        """Write gradient and hessian of every document at `scores` into the given arrays.

        Parameters
        ----------
        scores : array of float
            Score of every document.
        out_gradient, out_hessian : array of float
            Where to.
        draw : int, default 0
            Which random numbers are taken by a loss that needs some; others do not look at it.
        """


@dataclass(frozen=True)
class Setting:
    """Where the documents that a loss is bound to stand among all, and what its random numbers come from.

    Parameters
    ----------
    seed : int, default 0
        Seed of the random numbers.
    first_query : int, default 0
        Number of the first query here among those of all processes.
    group : Group
        The processes that have other queries.
    """

    seed: int = 0
    first_query: int = 0
    group: Group = ALONE


ALL = Setting()  # of one process that has everything


class Loss(Protocol):
    """What the boosting loop asks of a loss."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def constant_hessian(self) -> bool:
        """Whether a document's hessian is its weight (1 without weights), whatever the scores."""

    def base_score(self, y: FloatArray, weights: FloatArray | None, group: Group = ALONE) -> float:
        """The score of all documents before the first tree; `weights` are those of `document_weights`.

        `group` are the processes that have other documents.
        """

    def prepare(
        self,
        y: FloatArray,
        offsets: OffsetArray,
        weights: FloatArray | None = None,
        query_weights: FloatArray | None = None,
        *,
        setting: Setting = ALL,
        n_threads: int | None = None,
    ) -> Gradients:
        """The loss bound to labels, queries and weights: what does not depend on scores is computed once, here."""


def document_weights(
    offsets: OffsetArray, weights: FloatArray | None, query_weights: FloatArray | None
) -> FloatArray | None:
    """Weight of every document, its query's weight included; None when there are no weights.

    Examples
    --------
    >>> document_weights(np.array([0, 1, 3]), None, np.array([1.0, 5.0])).tolist()
    [1.0, 5.0, 5.0]
    """
    if query_weights is None:
        return weights
    of_query: FloatArray = np.repeat(query_weights, np.diff(offsets))
    return of_query if weights is None else weights * of_query


@dataclass(frozen=True)
class SquaredLoss:
    """Half the squared error, `w (y - score)^2 / 2`: trees are fitted to residuals (MART).

    Examples
    --------
    >>> data = SquaredLoss().prepare(np.array([3.0, 1.0]), np.array([0, 2]))
    >>> gradient, hessian = np.empty(2), np.empty(2)
    >>> data.gradients(np.array([2.0, 2.0]), gradient, hessian)
    >>> gradient.tolist(), hessian.tolist()
    ([1.0, -1.0], [1.0, 1.0])
    """

    name: ClassVar[str] = "squared"
    constant_hessian: ClassVar[bool] = True

    def base_score(self, y: FloatArray, weights: FloatArray | None, group: Group = ALONE) -> float:
        """The mean label, which is the best constant; 0 where no document weighs anything."""
        mean = exact_mean(y, weights, group)
        return 0.0 if math.isnan(mean) else mean

    def prepare(
        self,
        y: FloatArray,
        offsets: OffsetArray,
        weights: FloatArray | None = None,
        query_weights: FloatArray | None = None,
        *,
        setting: Setting = ALL,
        n_threads: int | None = None,
    ) -> Gradients:
        of_documents = _contiguous(document_weights(offsets, weights, query_weights))
        return _SquaredGradients(np.ascontiguousarray(y, dtype=LABEL), of_documents, resolve_threads(n_threads))


@dataclass(frozen=True)
class _SquaredGradients:
    y: FloatArray
    weights: FloatArray | None
    n_threads: int

    def gradients(self, scores: FloatArray, out_gradient: FloatArray, out_hessian: FloatArray, draw: int = 0) -> None:
        scores = np.ascontiguousarray(scores, dtype=SCORE)
        _native.squared_gradients(self.y, self.weights, scores, out_gradient, out_hessian, self.n_threads)


LossMeasure: TypeAlias = Literal["nDCG", "MAP", "MRR", "ERR"]
MEASURES = {
    "nDCG": _native.PairMeasure.NDCG,
    "MAP": _native.PairMeasure.MAP,
    "MRR": _native.PairMeasure.MRR,
    "ERR": _native.PairMeasure.ERR,
}


class RankingLoss:
    """What losses of rankings have in common: labels count by their gains, scores by their differences."""

    gains: Literal["linear"] | tuple[float, ...] | None
    constant_hessian: ClassVar[bool] = False
    draws: ClassVar[bool] = False  # whether the kernel draws random numbers

    def __post_init__(self) -> None:
        object.__setattr__(self, "gains", _checked_gains(self.gains))

    def base_score(self, y: FloatArray, weights: FloatArray | None, group: Group = ALONE) -> float:
        """0, since the loss depends on differences of scores only."""
        return 0.0

    def prepare(
        self,
        y: FloatArray,
        offsets: OffsetArray,
        weights: FloatArray | None = None,
        query_weights: FloatArray | None = None,
        *,
        setting: Setting = ALL,
        n_threads: int | None = None,
    ) -> Gradients:
        gains = label_gains(np.asarray(y, dtype=LABEL), self.gains)
        make = self._kernel(gains, setting)
        try:
            kernel = make(
                gains=gains,
                offsets=np.ascontiguousarray(offsets, dtype=OFFSET),
                weights=_contiguous(weights),
                query_weights=_contiguous(query_weights),
                n_threads=resolve_threads(n_threads),
            )
        except ValueError as error:
            raise DataError(str(error)) from None
        return _KernelGradients(kernel, self.draws)

    def _kernel(self, gains: FloatArray, setting: Setting) -> Callable[..., Any]:
        """The kernel, told all but gains, queries, weights and threads, which it checks."""
        raise NotImplementedError


@dataclass(frozen=True)
class _KernelGradients:
    kernel: Any
    draws: bool

    def gradients(self, scores: FloatArray, out_gradient: FloatArray, out_hessian: FloatArray, draw: int = 0) -> None:
        drawn = (draw,) if self.draws else ()
        self.kernel.compute(np.ascontiguousarray(scores, dtype=SCORE), out_gradient, out_hessian, *drawn)


@dataclass(frozen=True)
class PairLoss(RankingLoss):
    """What losses of pairs have in common; `LambdaLoss` explains the parameters."""

    truncation: int | None = 30
    sigma: float = 1.0
    normalize: bool = True
    gains: Literal["linear"] | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.truncation is not None and not (
            isinstance(self.truncation, (int, np.integer)) and self.truncation >= 1
        ):
            raise RankwoodError(
                f"truncation must be a rank from 1 on, got {self.truncation}; None takes the whole list"
            )
        if not 1e-6 <= self.sigma <= 1e6:
            raise RankwoodError(f"sigma must lie between 1e-6 and 1e6, got {self.sigma}")
        super().__post_init__()

    def _rules(self, gains: FloatArray, setting: Setting) -> dict[str, Any]:
        """The parameters as kernels take them."""
        n_docs = len(gains)
        depth = max(1, n_docs if self.truncation is None else min(self.truncation, n_docs))
        return {"truncation": depth, "sigma": self.sigma, "normalize": self.normalize}


@dataclass(frozen=True)
class MeasuredPairLoss(PairLoss):
    """Losses whose pairs are weighed by what their exchange does to a measure; `LambdaLoss` explains the parameters."""

    cut_discounts: bool = False
    measure: LossMeasure = "nDCG"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.measure not in MEASURES:
            raise RankwoodError(f"the measure of a loss must be one of {', '.join(MEASURES)}, got {self.measure!r}")

    def _rules(self, gains: FloatArray, setting: Setting) -> dict[str, Any]:
        """The parameters as kernels take them; the largest gain is that of all processes."""
        largest = setting.group.max(np.array([gains.max(initial=0.0)]))[0] if self.measure == "ERR" else 0.0
        of_measure = {"measure": MEASURES[self.measure], "largest_gain": float(largest)}
        return {**super()._rules(gains, setting), "cut_discounts": self.cut_discounts, **of_measure}


@dataclass(frozen=True)
class LambdaLoss(MeasuredPairLoss):
    """LambdaMART's loss: pairs of documents of a query, weighed by what their exchange does to a measure.

    For each pair of a query in which document i is better than j,

        rho = 1 / (1 + exp(sigma (s_i - s_j))),     d = |change of the measure if i and j changed places|,
        lambda_i += sigma rho d,    lambda_j -= sigma rho d,    w += sigma^2 rho (1 - rho) d for both.

    Gradient and hessian are lambda and w. Documents are ranked by score, ties in document order. For nDCG,
    d = |gain_i - gain_j| |discount_i - discount_j| / ideal DCG, and the discount of rank r is 1 / log2(1 + r). A
    document's weight multiplies its lambda and w, a query's weight those of its documents. A query of n documents costs
    O(n log n + n truncation).

    Parameters
    ----------
    truncation : int or None, default 30
        Pairs with both ranks beyond it do not count, and the ideal DCG ends there. None takes the whole list.
    sigma : float, default 1.0
        Steepness of rho.
    normalize : bool, default True
        As LightGBM's lambdarank_norm: d is divided by 0.01 + |s_i - s_j|, unless all scores of the query are equal;
        then lambda and w are scaled by log2(1 + S) / S, S being the sum of |lambda| over both documents of every pair.
    gains : "linear", tuple of float or None, default None
        Gain of a label: None for 2^label - 1; "linear" for the label itself; or a table whose entry k is the gain of
        label k. MAP and MRR hold a document for relevant when its gain is above 0; with ERR a reader stops at a
        document with probability gain / (1 + largest gain of the data).
    cut_discounts : bool, default False
        Whether ranks beyond the truncation count nothing, so that d is exactly the change of nDCG@truncation (or
        AP@truncation, and so on). False goes through the whole list, as LightGBM does.
    measure : {"nDCG", "MAP", "MRR", "ERR"}, default "nDCG"
        The measure.

    Examples
    --------
    >>> data = LambdaLoss(normalize=False).prepare(np.array([0.0, 1.0]), np.array([0, 2]))
    >>> gradient, hessian = np.empty(2), np.empty(2)
    >>> data.gradients(np.zeros(2), gradient, hessian)
    >>> gradient.round(3).tolist(), hessian.round(3).tolist()
    ([-0.185, 0.185], [0.092, 0.092])
    """

    name: ClassVar[str] = "lambda"

    def _kernel(self, gains: FloatArray, setting: Setting) -> Callable[..., Any]:
        return partial(_native.LambdaGradients, **self._rules(gains, setting))


@dataclass(frozen=True)
class PairwiseLoss(PairLoss):
    """The logistic loss of pairs (RankNet): every pair of a query with different labels weighs the same.

    As `LambdaLoss` with d = 1; scores are not divided by. With `truncation=None` and `normalize=False` gradient and
    hessian are the derivatives of `sum(log(1 + exp(-sigma (s_i - s_j))))` over all pairs in which i is better than j.

    Parameters
    ----------
    truncation : int or None, default 30
        Pairs with both ranks beyond it do not count. None takes all.
    sigma : float, default 1.0
        Steepness.
    normalize : bool, default True
        Whether gradients of a query are scaled by log2(1 + S) / S, as by `LambdaLoss`, so that long queries do not
        outweigh the others.
    gains : "linear", tuple of float or None, default None
        As in `LambdaLoss`; only which of two gains is higher matters.
    """

    name: ClassVar[str] = "pairwise"

    def _kernel(self, gains: FloatArray, setting: Setting) -> Callable[..., Any]:
        alike: dict[str, Any] = {"measure": _native.PairMeasure.EQUAL, "cut_discounts": False}
        return partial(_native.LambdaGradients, **self._rules(gains, setting), **alike)


@dataclass(frozen=True)
class StochasticLoss(MeasuredPairLoss):
    """A smoothed loss of pairs: rankings are drawn by adding noise to the scores, and neighbours in them are compared.

    In the spirit of CatBoost's YetiRank (Gulin et al. 2011) and YetiLoss (Lyzhin et al. 2023). In each round
    `permutations` rankings of a query are drawn, by scores to which logistic noise is added. The pairs are the
    neighbours in these rankings, weighed by what their exchange does to the measure there, on average; their loss is
    logistic in the scores without noise, as in `LambdaLoss`. So documents whose order is uncertain count most.

    Parameters
    ----------
    truncation, sigma, gains, cut_discounts, measure
        As in `LambdaLoss`; ranks are those of the drawn rankings.
    normalize : bool, default True
        Whether gradients of a query are scaled by log2(1 + S) / S, as by `LambdaLoss`. Scores are not divided by.
    permutations : int, default 10
        Rankings drawn per query and round.
    noise : float, default 1.0
        Scale of the noise.

    Examples
    --------
    >>> data = StochasticLoss().prepare(np.array([0.0, 1.0]), np.array([0, 2]))
    >>> gradient, hessian = np.empty(2), np.empty(2)
    >>> data.gradients(np.zeros(2), gradient, hessian, draw=7)
    >>> gradient.round(3).tolist()
    [-0.227, 0.227]
    """

    permutations: int = 10
    noise: float = 1.0
    name: ClassVar[str] = "stochastic"
    draws: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.permutations <= 10_000:
            raise RankwoodError(f"permutations must lie between 1 and 10000, got {self.permutations}")
        if not 0.0 <= self.noise <= 1e6:
            raise RankwoodError(f"noise must lie between 0 and 1e6, got {self.noise}")

    def _kernel(self, gains: FloatArray, setting: Setting) -> Callable[..., Any]:
        drawn = {"n_rankings": self.permutations, "noise": self.noise, **_numbers_of(setting)}
        return partial(_native.StochasticGradients, **self._rules(gains, setting), **drawn)


@dataclass(frozen=True)
class CrossEntropyLoss(RankingLoss):
    """XE-NDCG (Bruch 2021): the cross entropy of two distributions over the documents of a query, a bound on nDCG.

    One is the softmax of the scores. The other is proportional to `gain + 1 - u`, which is `2^label - u` unless `gains`
    says otherwise, with a fresh random u between 0 and 1 for every document in every round. Gradient and hessian are
    those of LightGBM's rank_xendcg, which approximates a Newton step by terms of three orders. Queries whose labels are
    all equal count too, as there. The cost is linear in the documents.

    Parameters
    ----------
    gains : "linear", tuple of float or None, default None
        As in `LambdaLoss`.

    Examples
    --------
    >>> data = CrossEntropyLoss().prepare(np.array([0.0, 3.0]), np.array([0, 2]))
    >>> gradient, hessian = np.empty(2), np.empty(2)
    >>> data.gradients(np.zeros(2), gradient, hessian, draw=7)
    >>> bool(gradient[0] < 0 < gradient[1]), hessian.tolist()
    (True, [0.25, 0.25])
    """

    gains: Literal["linear"] | tuple[float, ...] | None = None
    name: ClassVar[str] = "xendcg"
    draws: ClassVar[bool] = True

    def _kernel(self, gains: FloatArray, setting: Setting) -> Callable[..., Any]:
        return partial(_native.CrossEntropyGradients, **_numbers_of(setting))


def _numbers_of(setting: Setting) -> dict[str, Any]:
    """What random numbers come from, as kernels take it."""
    return {"seed": setting.seed, "first_query": setting.first_query}


def _checked_gains(gains: Any) -> Literal["linear"] | tuple[float, ...] | None:
    """The rule for gains; a table as a tuple."""
    if gains is None:
        return None
    if isinstance(gains, str):
        if gains != "linear":
            raise RankwoodError(f"gains must be None, 'linear' or a table, got {gains!r}")
        return "linear"
    return _gain_table(gains)


def label_gains(y: FloatArray, gains: Literal["linear"] | tuple[float, ...] | None = None) -> FloatArray:
    """Gain of every label, by the rule that `LambdaLoss` calls `gains`.

    Labels may be real numbers unless a table is given.

    Examples
    --------
    >>> label_gains(np.array([0.0, 1.0, 4.0])).tolist(), label_gains(np.array([0.0, 1.0]), (0.0, 0.5)).tolist()
    ([0.0, 1.0, 15.0], [0.0, 0.5])
    """
    if not np.isfinite(y).all():
        raise DataError(f"label {y[~np.isfinite(y)][0]} has no gain: labels must be finite numbers")
    if isinstance(gains, tuple):
        outside = (y < 0) | (y >= len(gains)) | (y != np.floor(y))
        if outside.any():
            raise DataError(
                f"label {y[outside][0]:g} is not in the gain table, which is for 0, 1, ..., {len(gains) - 1}"
            )
        return np.asarray(gains, dtype=LABEL)[y.astype(np.int64)]
    if len(y) and y.min() < 0:
        raise DataError(
            f"label {y.min():g} has a negative gain: NDCG needs labels from 0 upwards; add a constant to all"
        )
    if gains == "linear":
        return np.ascontiguousarray(y)
    with np.errstate(over="ignore"):
        values: FloatArray = np.exp2(y) - 1.0
    if not np.isfinite(values).all():
        raise DataError(f"label {y.max():g} is too large for the gain 2^label - 1: use gains='linear' or a gain table")
    return values


def _gain_table(gains: Sequence[float]) -> tuple[float, ...]:
    table = tuple(float(gain) for gain in gains)
    if not table or not np.isfinite(table).all() or min(table) < 0.0 or list(table) != sorted(table):
        raise RankwoodError(f"a gain table needs finite gains from 0 upwards that never fall, got {table}")
    return table


def _contiguous(weights: FloatArray | None) -> FloatArray | None:
    return None if weights is None else np.ascontiguousarray(weights, dtype=WEIGHT)


GradientFunction: TypeAlias = Callable[[FloatArray, FloatArray, OffsetArray, "FloatArray | None"], tuple[Any, Any]]


@dataclass(frozen=True)
class CustomLoss:
    """A loss given as a function `(scores, labels, offsets, weights) -> (gradient, hessian)`.

    Parameters
    ----------
    function : callable
        As in LightGBM and XGBoost it returns the first and second derivative of the loss to be minimised, by the score
        of each document; the sign is turned here. It sees documents query by query, query q being the rows
        `offsets[q]` to `offsets[q + 1]`, and applies the weights itself: `weights` has one entry per document, the
        weight of its query included, or is None. The arrays it is given are read-only.
    base : float, default 0.0
        Score of all documents before the first tree.
    name : str, default "custom"
        What messages call it.

    Examples
    --------
    >>> loss = CustomLoss(lambda scores, labels, offsets, weights: (scores - labels, np.ones(len(scores))))
    >>> gradient, hessian = np.empty(2), np.empty(2)
    >>> loss.prepare(np.array([3.0, 1.0]), np.array([0, 2])).gradients(np.array([2.0, 2.0]), gradient, hessian)
    >>> gradient.tolist()
    [1.0, -1.0]
    """

    function: GradientFunction
    base: float = 0.0
    name: str = "custom"
    constant_hessian: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise RankwoodError(f"a custom loss needs a function, got {type(self.function).__name__}")
        if not np.isfinite(self.base):
            raise RankwoodError(f"the base score of a custom loss must be finite, got {self.base}")

    def base_score(self, y: FloatArray, weights: FloatArray | None, group: Group = ALONE) -> float:
        return self.base

    def prepare(
        self,
        y: FloatArray,
        offsets: OffsetArray,
        weights: FloatArray | None = None,
        query_weights: FloatArray | None = None,
        *,
        setting: Setting = ALL,
        n_threads: int | None = None,
    ) -> Gradients:
        of_documents = document_weights(offsets, weights, query_weights)
        return _CustomGradients(
            self,
            _read_only(np.asarray(y, dtype=LABEL)),
            _read_only(np.asarray(offsets, dtype=OFFSET)),
            None if of_documents is None else _read_only(of_documents),
        )


@dataclass(frozen=True)
class _CustomGradients:
    loss: CustomLoss
    y: FloatArray
    offsets: OffsetArray
    weights: FloatArray | None

    def gradients(self, scores: FloatArray, out_gradient: FloatArray, out_hessian: FloatArray, draw: int = 0) -> None:
        result = self.loss.function(_read_only(scores), self.y, self.offsets, self.weights)
        if not isinstance(result, tuple) or len(result) != 2:
            raise RankwoodError(f"{self._who} must return a tuple (gradient, hessian), got {type(result).__name__}")
        out_gradient[:] = self._checked(result[0], "gradient")
        np.negative(out_gradient, out=out_gradient)
        hessian = self._checked(result[1], "hessian")
        if len(hessian) and hessian.min() < 0.0:
            where = int(hessian.argmin())
            raise RankwoodError(f"{self._who} returned the hessian {hessian[where]:g} for document {where}: "
                                "it must not be negative")  # fmt: skip
        out_hessian[:] = hessian

    @property
    def _who(self) -> str:
        return f"the function of the loss {self.loss.name!r}"

    def _checked(self, values: Any, what: str) -> FloatArray:
        try:
            array = np.asarray(values, dtype=SCORE)
        except (TypeError, ValueError) as error:
            raise RankwoodError(f"{self._who} returned a {what} that is no array of numbers: {error}") from None
        if array.shape != self.y.shape:
            raise RankwoodError(f"{self._who} returned a {what} of shape {array.shape} for {len(self.y)} documents")
        if not np.isfinite(array).all():
            where = int(np.flatnonzero(~np.isfinite(array))[0])
            raise RankwoodError(f"{self._who} returned the {what} {array[where]} for document {where}")
        return array


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view
