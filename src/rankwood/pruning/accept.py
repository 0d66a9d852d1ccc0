"""Rules that decide, from per-query values, whether a smaller model is as good as the full one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rankwood.dtypes import FloatArray
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.significance import holm, non_inferiority_test, randomisation_test

Rule = Literal["quality", "not-significant", "non-inferior"]
RULES: tuple[str, ...] = get_args(Rule)


@dataclass(frozen=True)
class Acceptance:
    """A rule that a smaller model must pass to be accepted in place of the full one.

    Parameters
    ----------
    rule : {"quality", "not-significant", "non-inferior"}, default "quality"
        What must hold on the data that judges.

        - "quality": the measure is at least the full model's, as in the paper.
        - "not-significant": or it is lower, but not significantly: the randomisation test gives p > `alpha`.
        - "non-inferior": a loss of `margin` or more is ruled out: the one-sided non-inferiority test, corrected for
          the number of models tried (Holm), gives p <= `alpha`.
    margin : float or None, default None
        Loss of the measure that "non-inferior" must rule out, for instance 0.005. Required by that rule, refused by
        the others.
    alpha : float, default 0.05
        Level of the tests, between 0 and 1. A significant loss on test data (`CleaverResult.is_loss`) is claimed at
        the same level.

    Examples
    --------
    >>> import rankwood as rw
    >>> rw.Acceptance("non-inferior", margin=0.005)
    Acceptance(rule='non-inferior', margin=0.005, alpha=0.05)
    """

    rule: Rule = "quality"
    margin: float | None = None
    alpha: float = 0.05

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise RankwoodError(f"accept must be one of {', '.join(map(repr, RULES))}, got {self.rule!r}")
        if not 0.0 < self.alpha < 1.0:
            raise RankwoodError(f"alpha must lie between 0 and 1, got {self.alpha}")
        if self.rule == "non-inferior" and self.margin is None:
            raise RankwoodError("accept='non-inferior' needs a margin: how much of the measure may be lost, e.g. 0.005")
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
            A rule, or the name of one that needs no margin.
        """
        if isinstance(accept, Acceptance):
            return accept
        if accept == "non-inferior":
            raise RankwoodError(
                "accept='non-inferior' needs a margin, how much of the measure may be lost: give for instance "
                "accept=Acceptance('non-inferior', margin=0.005)"
            )
        return cls(accept)

    def decide(self, full: FloatArray, others: Sequence[FloatArray], better: Sequence[bool]) -> list[bool]:
        """Whether each smaller model passes.

        Parameters
        ----------
        full : array of shape (n_queries,)
            The full model's values of the measure on the data that judges.
        others : sequence of arrays of shape (n_queries,)
            The same of every smaller model.
        better : sequence of bool
            Whether the mean of each smaller model is at least the full model's.

        Returns
        -------
        list of bool
            One answer for each smaller model.
        """
        if self.rule == "quality":
            return [self.passes(good, None) for good in better]
        if self.rule == "not-significant":
            return [self.passes(good, p_difference(full, one)) for one, good in zip(others, better, strict=True)]
        adjusted = holm([p_inferior(full, values, self.margin or 0.0) for values in others])
        return [bool(p <= self.alpha) for p in adjusted]

    def passes(self, better: bool, p: float | None) -> bool:
        """Whether one smaller model passes "quality" or "not-significant".

        Parameters
        ----------
        better : bool
            Whether its mean is at least the full model's.
        p : float or None
            p-value of the randomisation test that the two models differ; None when there are too few queries for one.
        """
        return better or (self.rule == "not-significant" and p is not None and p > self.alpha)


def p_difference(full: FloatArray, other: FloatArray) -> float | None:
    """p-value of the randomisation test that two models differ; None when there are too few queries for a test."""
    try:
        return randomisation_test(full, other).p_value
    except DataError:
        return None


def p_inferior(full: FloatArray, other: FloatArray, margin: float) -> float:
    """p-value of the test against a loss of `margin` or more; 1 when there are too few queries for a test."""
    try:
        return non_inferiority_test(full, other, margin=margin).p_value
    except DataError:
        return 1.0
