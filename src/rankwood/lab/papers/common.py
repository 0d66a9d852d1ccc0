"""What the studies of several papers share."""

from __future__ import annotations

import dataclasses
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.lab.runs import Config, Result, run_key
from rankwood.lab.study import FoldData, Runs, Study
from rankwood.model.ensemble import Ensemble
from rankwood.training.estimators import RandomForest

# Runs as frozen dataclasses, and their results by what they are of.


@dataclass(frozen=True)
class PaperStudy(Study):
    """A study whose runs are frozen dataclasses of its own, each with the number of its fold in `fold`.

    `plan` lists the runs, and `perform` does one. The fields of a run, with what identifies the data of its fold, are
    all that its result depends on.
    """

    @abstractmethod
    def plan(self) -> list[Any]:
        """The runs, in an order in which those that share data follow each other."""

    @abstractmethod
    def perform(self, run: Any) -> Result:
        """Do one of them; the result is what JSON can hold."""

    def config(self, run: Any) -> Config:
        """A run as the table of runs keeps it."""
        return {"study": self.name, **self.source.identify(run.fold), **dataclasses.asdict(run)}

    def configs(self) -> list[Config]:
        return [self.config(run) for run in self.plan()]

    def run(self, config: Config) -> Result:
        planned = self._kept.get("plan", None, lambda: {run_key(self.config(run)): run for run in self.plan()})
        return self.perform(planned[run_key(config)])

    def fold_data(self, fold: int) -> FoldData:
        """The data of a fold; the latest stays in memory."""
        return self._kept.get("data", fold, lambda: self.source.load(fold))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class PaperResults:
    """All runs of a study, to be found by what they are of."""

    study: Any  # a PaperStudy
    runs: Runs

    def result(self, run: Any) -> Mapping[str, Any]:
        """The result of a run of the plan."""
        return self._by_key[run_key(self.study.config(run))]

    @cached_property
    def _by_key(self) -> dict[str, Mapping[str, Any]]:
        return {run_key(config): result for config, result in self.runs}


# What several figures need.


SMOOTHED_FROM = 5  # points that a smoothing spline needs


def legend_below(canvas: Any, axes: Any, n_columns: int = 4) -> None:
    """One legend for all panels of a figure, below them, where it hides nothing."""
    canvas.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=n_columns, fontsize=8)


def apart(values: Sequence[float], distance: float) -> list[float]:
    """Where labels of these values may stand: as near to them as can be, but `distance` from each other.

    >>> apart([0.5, 0.52, 1.0], 0.1)
    [0.46, 0.56, 1.0]
    """
    order = np.argsort(values, kind="stable")
    groups: list[list[int]] = [[int(place)] for place in order]

    def start(group: list[int]) -> float:  # the lowest label of labels that stand as close as they may
        return float(np.mean([values[place] for place in group])) - distance * (len(group) - 1) / 2

    number = 1
    while number < len(groups):
        below, above = groups[number - 1], groups[number]
        if start(above) < start(below) + distance * len(below) - 1e-12:
            groups[number - 1 : number + 1] = [below + above]
            number = max(1, number - 1)
        else:
            number += 1
    found = {place: start(group) + distance * step for group in groups for step, place in enumerate(group)}
    return [round(found[place], 9) for place in range(len(values))]


def smooth(x: Sequence[float], y: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """A smooth curve through points, over the logarithm of x; with fewer than five, straight lines.

    A cubic smoothing spline, its penalty chosen by generalised cross-validation.

    >>> curve_x, curve_y = smooth([1, 10, 100], [0.0, 1.0, 0.0])
    >>> curve_y.max().round(2).item(), len(curve_x) == len(curve_y)
    (1.0, True)
    """
    order = np.argsort(x, kind="stable")
    at, values = np.log(np.asarray(x, dtype=np.float64)[order]), np.asarray(y, dtype=np.float64)[order]
    at, first = np.unique(at, return_index=True)
    values = values[first]
    dense = np.linspace(at[0], at[-1], 201)
    if len(at) < SMOOTHED_FROM:
        return np.exp(dense), np.interp(dense, at, values)
    from scipy.interpolate import make_smoothing_spline

    return np.exp(dense), make_smoothing_spline(at, values)(dense)


# Training, with its time.


def fit_timed(ranker: Any, *data: Any, **more: Any) -> float:
    """Fit a ranker; the seconds that took."""
    start = time.perf_counter()
    ranker.fit(*data, **more)
    return time.perf_counter() - start


TaskName = Literal["regression", "ordinal"]


def grow(data: Dataset, *, task: TaskName = "regression", **parameters: Any) -> tuple[Ensemble, float]:
    """A forest fitted to `data`, and the seconds that took. With task="ordinal" the forests of all grades are one."""
    forest = RandomForest(task=task, **parameters)
    seconds = fit_timed(forest, data)
    return forest.ensemble_, seconds
