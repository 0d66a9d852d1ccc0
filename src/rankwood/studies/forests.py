"""The forests that studies grow."""

from __future__ import annotations

import time
from typing import Any, Literal

from rankwood.data.dataset import Dataset
from rankwood.ensemble import Ensemble
from rankwood.learners.random_forest import RandomForest

TaskName = Literal["regression", "ordinal"]


def grow(data: Dataset, *, task: TaskName = "regression", **parameters: Any) -> tuple[Ensemble, float]:
    """A forest fitted to `data`, and the seconds that took. With task="ordinal" the forests of all grades are one."""
    start = time.perf_counter()
    model = RandomForest(task=task, **parameters).fit(data).ensemble_
    return model, time.perf_counter() - start
