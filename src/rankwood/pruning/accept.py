"""Rules that decide, from per-query values, whether a smaller model is accepted, and what was shown of its loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np

from rankwood.dtypes import FloatArray
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.significance import (
    holm,
    lower_bound,
    non_inferiority_test,
    queries_needed,
    randomisation_test,
)

Rule = Literal["quality", "not-significant", "non-inferior"]
RULES: tuple[str, ...] = get_args(Rule)
MARGIN = 0.005
MANY = 1_000_000  # queries; when more were needed, the loss that was seen says more

# What the queries that judge a model had to do with it, and how that is said.
Judging = Literal["unseen", "folds", "choosing"]
IN_WORDS: dict[Judging, str] = {
    "unseen": "that chose nothing",
    "folds": "by cross-validation, none of which judged what it chose",
    "choosing": "that also chose it",
}


@dataclass(frozen=True)
class Proof:
    """What queries show of a smaller model's loss: that it is less than a margin, or that they are too few to tell.

    Parameters
    ----------
    measure : str
        Name of the measure.
    margin : float
        Loss of the measure that is to be ruled out.
    alpha : float
        Level of the one-sided test.
    n_queries : int
        Queries with a value of both models.
    difference : float or None
        Mean of the smaller model less that of the full one; None without queries.
    lower : float or None
        One-sided lower confidence bound of the difference at the level `alpha`, for this model alone; None when it is
        not finite, and when there are too few queries for a test.
    p_value : float
        p-value of the test against a loss of the margin or more (`non_inferiority_test`); 1 when there are too few
        queries.
    p_adjusted : float
        The same, corrected for the number of models tried (Holm). It decides.
    n_models : int
        Models that were tried on these queries.
    queries : {"unseen", "folds", "choosing"}
        What the queries had to do with the model: they chose nothing; or they judged, fold by fold, models that the
        other folds chose; or they chose it, in which case nothing is shown.
    needed : int or None
        About how many queries would show it, at the difference and standard deviation seen, with a chance of 80 %,
        corrected likewise. None when the loss seen is the margin or more: no number would do.

    Examples
    --------
    >>> import numpy as np
    >>> full = np.full(200, 0.5)
    >>> smaller = full + np.tile([0.02, -0.022], 100)
    >>> proof = Proof.of(full, smaller, Acceptance(margin=0.005))
    >>> proof.words()
    'it loses less than 0.005 of nDCG@10, 95 % sure, on 200 queries that chose nothing'
    >>> Proof.of(full[:40], smaller[:40], Acceptance(margin=0.005)).words()
    'that it loses less than 0.005 of nDCG@10 cannot be shown with 40 queries that chose nothing; about 180 would do'
    """

    measure: str
    margin: float
    alpha: float
    n_queries: int
    difference: float | None
    lower: float | None
    p_value: float
    p_adjusted: float
    n_models: int = 1
    queries: Judging = "unseen"
    needed: int | None = None

    @classmethod
    def of(
        cls,
        full: FloatArray,
        smaller: FloatArray,
        rule: Acceptance,
        *,
        measure: str = "nDCG@10",
        queries: Judging = "unseen",
    ) -> Proof:
        """What is shown of one smaller model that is tried alone.

        Parameters
        ----------
        full, smaller : array of shape (n_queries,)
            Values of the measure, in the same order of queries; NaN in either leaves a query out.
        rule : Acceptance
            Its margin and level.
        measure : str, default "nDCG@10"
            Name of the measure.
        queries : {"unseen", "folds", "choosing"}, default "unseen"
            What the queries had to do with the model.
        """
        return cls.of_each(full, [smaller], rule, measure=measure, queries=queries)[0]

    @classmethod
    def of_each(
        cls,
        full: FloatArray,
        smaller: Sequence[FloatArray],
        rule: Acceptance,
        *,
        measure: str = "nDCG@10",
        queries: Judging = "unseen",
    ) -> list[Proof]:
        """What is shown of each of several smaller models, corrected for their number (Holm).

        Parameters
        ----------
        full : array of shape (n_queries,)
            Values of the full model.
        smaller : sequence of arrays of shape (n_queries,)
            Values of each smaller model.
        rule, measure, queries
            As in `of`.
        """
        if rule.margin is None:
            raise RankwoodError(f"a proof needs a margin, which the rule {rule.rule!r} has not")
        alone = [_p_inferior(full, values, rule.margin) for values in smaller]
        return [
            cls(
                measure=measure,
                margin=rule.margin,
                alpha=rule.alpha,
                p_value=p,
                p_adjusted=float(adjusted),
                n_models=len(smaller),
                queries=queries,
                **_estimates(full, values, rule.margin, rule.alpha, len(smaller), bool(adjusted <= rule.alpha)),
            )
            for values, p, adjusted in zip(smaller, alone, holm(alone), strict=True)
        ]

    @property
    def holds(self) -> bool:
        """Whether the queries show that the loss is less than the margin."""
        return self.queries != "choosing" and self.p_adjusted <= self.alpha

    def words(self) -> str:
        """What is shown, or not, and how many queries would do.

        Returns
        -------
        str
            Part of a sentence.
        """
        claim = f"it loses less than {self.margin:g} of {self.measure}"
        on = f"{self.n_queries:,} {'query' if self.n_queries == 1 else 'queries'} {IN_WORDS[self.queries]}"
        tried = f", corrected for {self.n_models:,} models tried" if self.n_models > 1 else ""
        if self.holds:
            return f"{claim}, {100 * (1 - self.alpha):g} % sure, on {on}{tried}"
        if self.needed is not None and self.needed <= MANY:
            others = " others" if self.queries == "choosing" else ""
            return f"that {claim} cannot be shown with {on}{tried}; about {_rounded(self.needed)}{others} would do"
        loses = self.difference is not None and (self.needed is not None or self.difference <= -self.margin)
        lost = f": it loses {-(self.difference or 0.0):.4f} there" if loses else ""
        return f"that {claim} cannot be shown with {on}{lost}"

    def as_dict(self) -> dict[str, Any]:
        """All fields and `holds`, as JSON can hold them."""
        return {**asdict(self), "holds": self.holds}


def _estimates(
    full: FloatArray, other: FloatArray, margin: float, alpha: float, n_models: int, passed: bool
) -> dict[str, Any]:
    """Fields of a proof that need no correction: number of queries, difference, its bound, and how many would do."""
    differences = other - full
    n_queries = int(np.count_nonzero(~np.isnan(differences)))
    if n_queries < 2:
        mean = float(np.nanmean(differences)) if n_queries else None
        return {"n_queries": n_queries, "difference": mean, "lower": None, "needed": None}
    needed = queries_needed(full, other, margin=margin, alpha=alpha / n_models)
    lower = lower_bound(full, other, alpha=alpha)
    return {
        "n_queries": n_queries,
        "difference": non_inferiority_test(full, other, margin=margin).mean_difference,
        "lower": lower if math.isfinite(lower) else None,
        "needed": needed if needed is None or passed else max(needed, n_queries + 1),
    }


def _rounded(n: int) -> str:
    """A number of queries, rounded up to two digits."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return f"{-(-n // unit) * unit:,}"


@dataclass(frozen=True)
class Acceptance:
    """A rule that a smaller model must pass to be accepted in place of the full one.

    Parameters
    ----------
    rule : {"non-inferior", "quality", "not-significant"}, default "non-inferior"
        What must hold on the data that judges.

        - "non-inferior": a loss of `margin` or more is ruled out, on queries that did not choose the model: the
          one-sided non-inferiority test, corrected for the number of models tried (Holm), gives p <= `alpha`.
        - "quality": the measure is at least the full model's, as in the paper. That shows nothing where many models
          are tried.
        - "not-significant": or it is lower, but not significantly: the randomisation test gives p > `alpha`. With few
          queries nothing is significant.
    margin : float or None, default None
        Loss of the measure that "non-inferior" must rule out; None is 0.005 there. Refused by the other rules.
    alpha : float, default 0.05
        Level of the tests, between 0 and 1. A significant loss on test data (`CleaverResult.is_loss`) is claimed at
        the same level.

    Examples
    --------
    >>> import rankwood as rw
    >>> rw.Acceptance()
    Acceptance(rule='non-inferior', margin=0.005, alpha=0.05)
    """

    rule: Rule = "non-inferior"
    margin: float | None = None
    alpha: float = 0.05

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise RankwoodError(f"accept must be one of {', '.join(map(repr, RULES))}, got {self.rule!r}")
        if not 0.0 < self.alpha < 1.0:
            raise RankwoodError(f"alpha must lie between 0 and 1, got {self.alpha}")
        if self.rule == "non-inferior" and self.margin is None:
            object.__setattr__(self, "margin", MARGIN)
        if self.rule != "non-inferior" and self.margin is not None:
            raise RankwoodError(f"margin is for accept='non-inferior', not for {self.rule!r}")
        if self.margin is not None and not 0.0 < self.margin < math.inf:
            raise RankwoodError(f"margin must be a positive number, got {self.margin}")

    @classmethod
    def of(cls, accept: Rule | Acceptance) -> Acceptance:
        """The rule itself, or the rule of a name.

        Parameters
        ----------
        accept : Acceptance or str
            A rule, or the name of one.
        """
        return accept if isinstance(accept, Acceptance) else cls(accept)

    def passes(self, better: bool, p: float | None, proof: Proof | None = None) -> bool:
        """Whether one smaller model passes.

        Parameters
        ----------
        better : bool
            Whether its mean is at least the full model's.
        p : float or None
            p-value of the randomisation test that the two models differ; None when there are too few queries for one.
        proof : Proof or None, default None
            What was shown; "non-inferior" goes by it alone.
        """
        if self.rule == "non-inferior":
            return proof is not None and proof.holds
        return better or (self.rule == "not-significant" and p is not None and p > self.alpha)


def p_difference(full: FloatArray, other: FloatArray) -> float | None:
    """p-value of the randomisation test that two models differ; None when there are too few queries for a test."""
    try:
        return randomisation_test(full, other).p_value
    except DataError:
        return None


def _p_inferior(full: FloatArray, other: FloatArray, margin: float) -> float:
    """p-value of the test against a loss of `margin` or more; 1 when there are too few queries for a test."""
    try:
        return non_inferiority_test(full, other, margin=margin).p_value
    except DataError:
        return 1.0
