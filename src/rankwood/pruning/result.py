"""Result of CLEaVER: a table of every model that it tried, and the model that it chose."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Comparison
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance
from rankwood.scoring.timing import Timing


@dataclass(frozen=True)
class Row:
    """One model of the table; None stands for what was not measured.

    Parameters
    ----------
    rate : float
        Share of the trees that was removed; trees driven to weight 0 are gone besides.
    variant : str
        How the rest was re-weighed; "input" is the full model.
    n_trees : int
        Trees that are left.
    train : float
        Measure on the training queries that were searched.
    valid : float
        Measure on all of the validation data.
    ensemble : Ensemble
        The model.
    judged : float or None
        Measure on the data that judges, when some is set aside for that.
    test : float or None
        Measure on test data.
    speed_up : float or None
        Scoring time of the full model divided by that of this one (`CleaverResult.timings`).
    p_valid, p_test : float or None
        p-values of the randomisation test that it differs from the full model, on the data that judges and on test
        data.
    p_holm : float or None
        `p_valid` corrected for the number of models tried (Holm).
    p_inferior : float or None
        p-value of the test against a loss of the margin or more: small is good.
    accepted : bool
        Whether it passes the rule.
    """

    rate: float
    variant: str
    n_trees: int
    train: float
    valid: float
    ensemble: Ensemble
    judged: float | None = None
    test: float | None = None
    speed_up: float | None = None
    p_valid: float | None = None
    p_holm: float | None = None
    p_test: float | None = None
    p_inferior: float | None = None
    accepted: bool = True

    @property
    def worth(self) -> float:
        """Measure on the data that judges, which is the validation data unless some is set aside."""
        return self.valid if self.judged is None else self.judged

    def as_dict(self) -> dict[str, Any]:
        """All fields but the model, as JSON can hold them."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "ensemble"}


@dataclass(frozen=True)
class CleaverResult:
    """Result of `cleaver`: the smallest accepted model, and the table of all models that were tried.

    Parameters
    ----------
    ensemble : Ensemble
        The smallest accepted model; the input itself when none was accepted.
    accepted : bool
        Whether a smaller model was accepted.
    chosen : Row
        Row of the model that was chosen, the first one when none was accepted.
    rows : tuple of Row
        The full model, then every model tried. A row has `rate`, `variant`, `n_trees`, `train`, `valid`, `ensemble`,
        `judged`, `test`, `speed_up`, `p_valid`, `p_holm`, `p_test`, `p_inferior` and `accepted`; None stands for what
        was not measured.
    measure : str
        Name of the measure.
    convention : Convention
        Convention of the measure.
    strategy : str
        Name of the strategy.
    rule : Acceptance
        Rule that a smaller model had to pass.
    needed_bytes : int
        Memory that the leaf numbers took.
    test : Comparison or None
        The chosen model against the input on test data. None without test data, when it has too few queries for a
        test, and when the input stays.
    timings : tuple of Timing
        Scoring time of every row, with what was measured: engine, batch, precision, threads. Empty unless speed was
        measured.
    """

    ensemble: Ensemble
    accepted: bool
    chosen: Row
    rows: tuple[Row, ...]
    measure: str
    convention: Convention
    strategy: str
    rule: Acceptance
    needed_bytes: int
    test: Comparison | None = None
    timings: tuple[Timing, ...] = ()

    @property
    def table(self) -> list[dict[str, Any]]:
        """The rows as dicts that JSON can hold, without the models."""
        return [row.as_dict() for row in self.rows]

    @property
    def valid_before(self) -> float:
        """Validation measure of the input."""
        return self.rows[0].valid

    @property
    def valid_after(self) -> float:
        """Validation measure of the chosen model."""
        return self.chosen.valid

    @property
    def is_loss(self) -> bool:
        """Whether the chosen model is significantly worse on test data, at the level of the rule."""
        return self.test is not None and self.test.difference < 0 and self.test.p_randomisation <= self.rule.alpha

    def curves(self) -> dict[str, dict[str, list[Any]]]:
        """Columns of the table for plots, ordered by rate.

        Returns
        -------
        dict
            For every variant, its columns `rate`, `n_trees`, `train`, `valid`, `test` and `speed_up`, each a list.
        """
        names = ("rate", "n_trees", "train", "valid", "test", "speed_up")
        variants = dict.fromkeys(row.variant for row in self.rows[1:])
        return {
            variant: {name: [getattr(row, name) for row in self.rows[1:] if row.variant == variant] for name in names}
            for variant in variants
        }

    def summary(self) -> str:
        """The outcome in a sentence: sizes, speed-up, validation measure, and the verdict of test data if there is any.

        Returns
        -------
        str
            A sentence without a full stop.
        """
        full, chosen = self.rows[0], self.chosen
        if not self.accepted:
            return (
                f"no smaller model was accepted (rule {self.rule.rule!r}): the model keeps its {full.n_trees:,} trees"
            )
        faster = "" if chosen.speed_up is None else f", {chosen.speed_up:.1f}x as fast"
        tested = "" if chosen.test is None else f", on test data {self.verdict()}"
        lost = ", a significant loss" if self.is_loss else ""
        return (
            f"{chosen.n_trees:,} of {full.n_trees:,} trees ({chosen.variant}){faster}, {self.measure} on validation "
            f"data {chosen.valid:.4f} (before: {full.valid:.4f}){tested}{lost}"
        )

    def verdict(self) -> str:
        """Measure of the chosen model on test data, and its difference from the input with interval and p-value.

        Returns
        -------
        str
            Part of a sentence; empty without test data.
        """
        if self.chosen.test is None:
            return ""
        values = f"{self.chosen.test:.4f} (before: {self.rows[0].test:.4f})"
        if self.test is None:
            return f"{values}, too few queries for a test" if self.accepted else values
        low, high = self.test.interval
        tested = f"95 % interval {low:+.4f} .. {high:+.4f}, p = {self.test.p_randomisation:.4f}"
        return f"{values}: {self.test.difference:+.4f} ({tested})"

    def __repr__(self) -> str:
        return f"CleaverResult({self.summary()})"
