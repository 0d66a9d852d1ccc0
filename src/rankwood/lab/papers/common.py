"""Runs of the studies of papers as frozen dataclasses, and their results, found by the run."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from rankwood.data.bins import BinnedDataset
from rankwood.lab.runs import Config, Result, run_key
from rankwood.lab.study import Runs, Study


def gradient_parameters(normalize: bool) -> dict[str, Any]:
    """Return the parameters of LambdaMART's gradients: the papers' plain ones, or scaled and truncated as LightGBM's.

    Examples
    --------
    >>> gradient_parameters(False)
    {'normalize': False, 'truncation': None}
    """
    return {"normalize": normalize, "truncation": 30 if normalize else None}


@dataclass(frozen=True)
class PaperStudy(Study):
    """A study whose runs are frozen dataclasses of its own, each with the number of its fold as `fold`.

    The fields of a run, and what identifies the data of its fold, are all that its result depends on.
    """

    @abstractmethod
    def plan(self) -> list[Any]:
        """Return the runs that may be done at the same time; runs that share data follow each other."""

    def timings(self) -> list[Any]:
        """Return the runs that time models, which are done last and one after the other."""
        return []

    @abstractmethod
    def perform(self, run: Any) -> Result:
        """Do one run and return its result, which JSON can hold."""

    def config(self, run: Any) -> Config:
        """Return the configuration of a run, which the table of runs keeps."""
        return {"study": self.name, **self.source.identify(run.fold), **dataclasses.asdict(run)}

    def side_by_side(self) -> list[Config]:
        return [self.config(run) for run in self.plan()]

    def alone(self) -> list[Config]:
        return [self.config(run) for run in self.timings()]

    def run(self, config: Config) -> Result:
        runs = self._kept.get("plan", None, self._runs_by_key)
        return self.perform(runs[run_key(config)])

    def binned_train(self, fold: int) -> BinnedDataset:
        """Return the training data of a fold in bins; the latest stays in memory."""
        make = partial(BinnedDataset.make, self.fold_data(fold).train, n_threads=self.n_threads)
        return self._kept.get("binned", fold, make)  # type: ignore[no-any-return]

    def _runs_by_key(self) -> dict[str, Any]:
        return {run_key(self.config(run)): run for run in [*self.plan(), *self.timings()]}


@dataclass(frozen=True)
class PaperResults:
    """The results of all runs of a study."""

    study: Any  # a PaperStudy
    runs: Runs

    def result(self, run: Any) -> Mapping[str, Any]:
        """Return the result of a run."""
        return self._by_key[run_key(self.study.config(run))]

    @cached_property
    def _by_key(self) -> dict[str, Mapping[str, Any]]:
        return {run_key(config): result for config, result in self.runs}
