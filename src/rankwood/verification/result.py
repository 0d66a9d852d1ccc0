"""The result of a verification, as an object, in words and for JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rankwood.verification.routing import RoutingDifference


@dataclass(frozen=True)
class WorstRow:
    """The row on which the scores of A and B differ most; `source` is a key of `Verification.rows`."""

    source: str
    row: int
    score_a: float
    score_b: float


@dataclass(frozen=True)
class Verification:
    """Result of `verify`: where and by how much two models' scores differ; as a condition, true when they agree.

    Parameters
    ----------
    a, b : str
        Names of the models.
    tolerance : float
        Largest relative difference of scores that was accepted.
    rows : dict of str to int
        Number of rows compared by source: "data", and "float32" and "float64" for rows at thresholds and one step of
        that type to either side.
    max_absolute : float
        Largest difference of two scores.
    max_relative : float
        Largest relative difference: relative to the larger score of the row, or to the median size of a score where
        that is larger.
    worst : WorstRow or None
        The row with the largest difference.
    n_disagree : dict of str to int
        Number of rows by source whose relative difference exceeds the tolerance, not counting what sums in float32
        explain.
    same_structure : bool or None
        Whether the trees of both have the same shapes, so that leaves could be compared. None when not both are models
        whose trees are known.
    n_routing : dict of str to int
        Number of pairs of a row and a tree, by source, that the models send to different leaves.
    routing : tuple of RoutingDifference
        The first of these pairs.
    notes : tuple of str
        What was left out, and why.
    rounding : float, default 0
        Largest change of a score that summing in float32 explains, where one of the models sums so.
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
        """Whether no row exceeds the tolerance and none is sent to different leaves."""
        return not any(self.n_disagree.values()) and not any(self.n_routing.values())

    def __bool__(self) -> bool:
        return self.agree

    def as_dict(self) -> dict[str, Any]:
        """All fields and `agree`, for JSON: numbers that are not finite are texts."""
        return {"agree": self.agree, **_plain(asdict(self))}

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The result in words, as `rankwood verify` prints it."""
        n_rows = sum(self.rows.values())
        rows = ", ".join(f"{n:,} {source}" for source, n in self.rows.items())
        lines = [
            f"{self.a} and {self.b} {'agree' if self.agree else 'DISAGREE'} on {n_rows:,} rows ({rows})",
            f"largest difference of scores: {self.max_absolute:.3g}, relative {self.max_relative:.3g} "
            f"(tolerance {self.tolerance:g}{self._why_above()})",
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
            lines.append(
                "they agree on all float32 rows at thresholds: if data is float32, compare with --float32 "
                '(in Python: dtype="float32")'
            )
        return [*lines, *(f"note: {note}" for note in self.notes)]

    def _why_above(self) -> str:
        """Why models agree although the largest relative difference is above the tolerance."""
        if not self.agree or self.max_relative <= self.tolerance:
            return ""
        return f"; no more than sums in float32 explain, which change scores by up to {self.rounding:.2g}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {source}" for source, n in counts.items() if n)


def _plain(value: Any) -> Any:
    """Value for JSON, which lacks infinities and NaN: they become texts."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value
