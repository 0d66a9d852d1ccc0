"""What CLEaVER found: every model it tried, and the one it chose."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from rankwood.ensemble import Ensemble
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluate import Comparison
from rankwood.pruning.accept import Acceptance


@dataclass(frozen=True)
class Row:
    """One model of the table. None: not measured.

    rate        share of the trees that was taken out; trees driven to weight 0 are gone besides
    variant     how the rest was re-weighed; "input" is the full model
    speed_up    time of scoring with the full model over that with this one, each with its fastest engine
    valid       the measure on all of the validation data
    judged      on the data that judges, when some is set aside for that
    p_valid, p_test   of the randomisation test that it differs from the full model, on the data that judges and on test
                data; `p_holm` is p_valid corrected for the number of rows (Holm)
    p_inferior  of the test that it is worse by the margin or more: small is good
    accepted    whether it passes the rule
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
        """The measure on the data that judges."""
        return self.valid if self.judged is None else self.judged

    def with_(self, **changes: Any) -> Row:
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """All but the model, as JSON can hold it."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "ensemble"}


@dataclass(frozen=True)
class CleaverResult:
    """`ensemble` is the smallest accepted model, the input itself when none was.

    accepted      whether a smaller model was accepted; `chosen` is its row
    rows          the full model, then every model tried; `table` has them as dicts
    needed_bytes  memory that the leaf numbers took
    test          the chosen model against the input on test data; None without test data, when it has too few queries
                  to tell, and when the input stays
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

    @property
    def table(self) -> list[dict[str, Any]]:
        return [row.as_dict() for row in self.rows]

    @property
    def valid_before(self) -> float:
        return self.rows[0].valid

    @property
    def valid_after(self) -> float:
        return self.chosen.valid

    @property
    def is_loss(self) -> bool:
        """Whether the chosen model is significantly worse on test data, at the level of the rule."""
        return self.test is not None and self.test.difference < 0 and self.test.p_randomisation <= self.rule.alpha

    def curves(self) -> dict[str, dict[str, list[Any]]]:
        """For plots: by variant, the columns `n_trees`, `rate`, `train`, `valid`, `test` and `speed_up`, by rate."""
        names = ("rate", "n_trees", "train", "valid", "test", "speed_up")
        variants = dict.fromkeys(row.variant for row in self.rows[1:])
        return {
            variant: {name: [getattr(row, name) for row in self.rows[1:] if row.variant == variant] for name in names}
            for variant in variants
        }

    def summary(self) -> str:
        """What came of it, in a sentence; with what test data says of it, if there is any."""
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
        """What test data says of the chosen model: measure, difference, its interval and p; nothing without any."""
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
