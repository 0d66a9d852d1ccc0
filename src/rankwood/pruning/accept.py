"""When a smaller model is as good: three rules over per-query values on validation data."""

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
    """What a smaller model must pass on validation data.

    quality          its measure is at least the full model's (the paper)
    not-significant  or it is worse, but not significantly: p of the randomisation test above alpha
    non-inferior     shown to be worse by less than `margin`, if at all: p of the non-inferiority test, corrected for
                     the number of models tried (Holm), at most alpha
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

    def judge(self, full: FloatArray, others: Sequence[FloatArray], better: Sequence[bool]) -> list[bool]:
        """Which of the others pass, by the values of queries; `better`: whose mean is at least the full model's."""
        if self.rule == "quality":
            return [self.passes(good, None) for good in better]
        if self.rule == "not-significant":
            return [self.passes(good, p_difference(full, one)) for one, good in zip(others, better, strict=True)]
        adjusted = holm([p_inferior(full, values, self.margin or 0.0) for values in others])
        return [bool(p <= self.alpha) for p in adjusted]

    def passes(self, better: bool, p: float | None) -> bool:
        """Whether a model passes "quality" or "not-significant".

        Parameters
        ----------
        better
            Whether its mean is at least the full model's.
        p
            Of the randomisation test that the two differ, `p_difference`.
        """
        return better or (self.rule == "not-significant" and p is not None and p > self.alpha)


def p_difference(full: FloatArray, other: FloatArray) -> float | None:
    """p of the randomisation test that two models differ; None when there are too few queries to tell."""
    try:
        return randomisation_test(full, other).p_value
    except DataError:
        return None


def p_inferior(full: FloatArray, other: FloatArray, margin: float) -> float:
    """p of the test that `other` is worse by `margin` or more; 1 when there are too few queries to tell."""
    try:
        return non_inferiority_test(full, other, margin=margin).p_value
    except DataError:
        return 1.0
