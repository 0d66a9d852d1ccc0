"""The forests that studies grow."""

from __future__ import annotations

import time
from typing import Any, Literal

from rankwood.data.dataset import Dataset
from rankwood.ensemble import Ensemble
from rankwood.learners.inputs import relabelled
from rankwood.learners.random_forest import RandomForest
from rankwood.learners.tasks import Ordinal

TaskName = Literal["regression", "ordinal"]


def grow(data: Dataset, *, task: TaskName = "regression", **parameters: Any) -> tuple[Ensemble, float]:
    """A forest fitted to `data`, and the seconds that took. With task="ordinal" the forests of all grades are one."""
    start = time.perf_counter()
    forest = RandomForest(**parameters)
    if task == "ordinal" and "task" not in forest.get_params(deep=False):
        ordinal = Ordinal.of(data.y)
        targets = ordinal.targets(data.y)
        model = ordinal.combine([RandomForest(**parameters).fit(relabelled(data, y)).ensemble_ for y in targets])
    else:
        model = (forest if task == "regression" else forest.set_params(task=task)).fit(data).ensemble_
    return model, time.perf_counter() - start
