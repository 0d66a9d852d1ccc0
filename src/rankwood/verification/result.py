"""What a verification found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rankwood.verification.routing import RoutingDifference


@dataclass(frozen=True)
class WorstRow:
    """The row on which the scores differ most."""

    source: str
    row: int
    score_a: float
    score_b: float


@dataclass(frozen=True)
class Verification:
    """Whether two models score alike; true as a condition when they do.

    rows               number of rows by source: data, float32 and float64 (rows at thresholds, by step)
    max_absolute       largest difference of two scores
    max_relative       the same, relative to the larger score of the row or, when that is larger, to a typical score
    n_disagree         rows whose relative difference, but for the rounding, is above the tolerance, by source
    same_structure     whether their trees have the same shapes, so that routing was compared; None: not both are models
    n_routing          rows and trees that they send to different leaves, by source
    routing            the first of these
    notes              what was left out, and why
    rounding           what sums in float32 alone change a score by, at most, where one of the models sums so
    """

    a: str
    b: str
    tolerance: float
    rows: dict[str, int]
    max_absolute: float
    max_relative: float
    worst: WorstRow | None
    n_disagree: dict[str, int]
    same_structure: bool | None
    n_routing: dict[str, int]
    routing: tuple[RoutingDifference, ...]
    notes: tuple[str, ...] = ()
    rounding: float = 0.0

    @property
    def agree(self) -> bool:
        return not any(self.n_disagree.values()) and not any(self.n_routing.values())

    def __bool__(self) -> bool:
        return self.agree

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"agree": self.agree, **_plain(asdict(self))}

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """What was found, in words."""
        n_rows = sum(self.rows.values())
        rows = ", ".join(f"{n:,} {source}" for source, n in self.rows.items())
        lines = [
            f"{self.a} and {self.b} {'agree' if self.agree else 'DISAGREE'} on {n_rows:,} rows ({rows})",
            f"largest difference of scores: {self.max_absolute:.3g}, relative {self.max_relative:.3g} "
            f"(tolerance {self.tolerance:g})",
        ]
        if self.worst is not None and self.max_absolute > 0:
            w = self.worst
            lines.append(f"it is on {w.source} row {w.row}: A {w.score_a!r}, B {w.score_b!r}")
        if any(self.n_disagree.values()):
            lines.append(f"rows above the tolerance: {_counts(self.n_disagree)}")
        if self.same_structure:
            total = sum(self.n_routing.values())
            lines.append(f"rows and trees sent to different leaves: {_counts(self.n_routing) if total else 'none'}")
        elif self.same_structure is False:
            lines.append("their trees have different shapes, so scores alone were compared")
        lines += [f"  {difference}" for difference in self.routing]
        if not self.agree and not self.n_disagree.get("float32") and not self.n_routing.get("float32"):
            lines.append("they agree on all float32 rows at thresholds: compare with dtype float32 if data is float32")
        return [*lines, *(f"note: {note}" for note in self.notes)]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {source}" for source, n in counts.items() if n)


def _plain(value: Any) -> Any:
    """Numbers that are not finite as text: JSON has no other way."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value
