"""Update rules: with what weight a new tree joins the ensemble."""

from __future__ import annotations

from dataclasses import dataclass

from rankwood.errors import RankwoodError


@dataclass(frozen=True)
class Plain:
    """Every tree joins with the learning rate as its weight, and the others stay as they are."""

    learning_rate: float = 0.1

    def __post_init__(self) -> None:
        self.weight(self.learning_rate)

    def weight(self, learning_rate: float) -> float:
        """Weight of a new tree at the learning rate of its iteration."""
        if not 0.0 < learning_rate < float("inf"):
            raise RankwoodError(f"learning_rate must be above 0, got {learning_rate}")
        return float(learning_rate)
