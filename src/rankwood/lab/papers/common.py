"""Runs of the studies of papers as frozen dataclasses, their results, found by the run, and statistics of the data."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rankwood.data.bins import BinnedDataset
from rankwood.data.statistics import statistics
from rankwood.lab.runs import Result, run_key
from rankwood.lab.study import Runs, Study, Table
from rankwood.lab.workers import Config
from rankwood.lazily import cached_property

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Describing:
    """A run: documents, queries, labels and gaps of a fold are counted."""

    fold: int
    what: str = "statistics"


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

    def describe(self, run: Describing) -> Result:
        """Do a run that counts: the statistics of every part of a fold."""
        data = self.fold_data(run.fold)
        return {part: statistics(getattr(data, part)).as_dict() for part in PARTS}

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


DATA_COLUMNS = ("data", "queries", "documents", "features", "labels", "documents per query", "relevant per query",
                "0 or missing", "missing")  # fmt: skip


def data_table(found: PaperResults, papers: Sequence[Sequence[str]], note: str) -> Table:
    """Return the table of the data: all of it, every part of every fold, and what the paper says of its own.

    Parameters
    ----------
    found : PaperResults
        With the results of a `Describing` for every fold.
    papers : sequence of sequences of str
        Rows of the paper, in the order of `DATA_COLUMNS`.
    note : str
        Further sentences below the table.
    """
    folds = {fold: found.result(Describing(fold)) for fold in found.study.folds}
    rows = [["all", *_described(list(next(iter(folds.values())).values()))]]
    for fold, parts in folds.items():
        rows += [[f"fold {fold} {part}", *_described([parts[part]])] for part in PARTS]
    return Table(
        "data",
        f"The data: {found.study.source.name}",
        DATA_COLUMNS,
        [*rows, *map(list, papers)],
        "Relevant: of a label above 0. 0 or missing, missing: shares of all values. All: the three parts of "
        f"fold {next(iter(folds))} together. {note}",
    )


def _described(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The cells of parts of the data, taken together."""
    n_docs, n_queries = (sum(part[name] for part in parts) for name in ("n_docs", "n_queries"))
    n_relevant = sum(part["relevant_per_query"] * part["n_queries"] for part in parts)
    labels = sorted({label for part in parts for label in part["labels"]})
    absent, missing = (sum(part[name] * part["n_docs"] for part in parts) for name in ("absent", "missing"))
    return [
        f"{n_queries:,}",
        f"{n_docs:,}",
        f"{parts[0]['n_features']:,}",
        f"{len(labels):,} ({labels[0]:g} to {labels[-1]:g})" if labels else "0",
        f"{n_docs / max(n_queries, 1):.3f}",
        f"{n_relevant / max(n_queries, 1):.1f}",
        f"{absent / max(n_docs, 1):.5f}",
        f"{missing / max(n_docs, 1):.5f}",
    ]
