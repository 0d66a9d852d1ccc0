"""What a tree gets to see: a sample of queries, a sample of features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rankwood.dtypes import OffsetArray
from rankwood.errors import RankwoodError


@dataclass(frozen=True)
class Sampling:
    """Shares drawn without replacement: of the queries for each tree, of the features for each tree or each split."""

    query_fraction: float = 1.0
    feature_fraction: float = 1.0
    per_split: bool = False

    def __post_init__(self) -> None:
        for name in ("query_fraction", "feature_fraction"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise RankwoodError(f"{name} must lie above 0 and be at most 1, got {getattr(self, name)}")

    def rows(self, offsets: OffsetArray, rng: Generator) -> NDArray[np.uint32] | None:
        """Rows of a sample of whole queries, ascending; None for all rows."""
        n_queries = len(offsets) - 1
        if self.query_fraction == 1.0:
            return None
        n_drawn = max(1, round(self.query_fraction * n_queries))
        drawn = np.zeros(n_queries, dtype=bool)
        drawn[rng.choice(n_queries, size=n_drawn, replace=False)] = True
        return np.flatnonzero(np.repeat(drawn, np.diff(offsets))).astype(np.uint32)

    def features(self, n_features: int, rng: Generator) -> NDArray[np.uint8]:
        """Marks of a sample of features."""
        marks = np.zeros(n_features, dtype=np.uint8)
        n_drawn = max(1, round(self.feature_fraction * n_features))
        if n_drawn == n_features:
            marks[:] = 1
        else:
            marks[rng.choice(n_features, size=n_drawn, replace=False)] = 1
        return marks
