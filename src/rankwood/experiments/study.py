"""What all studies have in common: runs to do, and what becomes of them."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from rankwood.environment import environment
from rankwood.experiments.execute import OnRun, run_all, share_threads
from rankwood.experiments.kept import Kept
from rankwood.experiments.report import Report
from rankwood.experiments.sources import Source
from rankwood.experiments.table import Config, Result, RunTable

Runs = Sequence[tuple[Config, Mapping[str, Any]]]
AnyStudy = TypeVar("AnyStudy", bound="Study")


@dataclasses.dataclass(frozen=True)
class Study(ABC):
    """An experiment: a frozen dataclass of its settings.

    A study says which runs it consists of (`configs`), does one of them (`run`), and makes tables and figures of all
    (`report`). A run is a pure function of its configuration: what it keeps for the next is in `_kept`.

    source      the folds
    folds       numbers of those to use
    n_threads   of each run; it changes times, never results
    """

    name: ClassVar[str]

    source: Source
    folds: Sequence[int]
    n_threads: int | None = dataclasses.field(default=None, kw_only=True)
    _kept: Kept = dataclasses.field(default_factory=Kept, repr=False, compare=False, kw_only=True)

    @abstractmethod
    def configs(self) -> list[Config]:
        """The runs, in an order in which those that share data follow each other."""

    @abstractmethod
    def run(self, config: Config) -> Result:
        """Do one of them; the result is what JSON can hold."""

    @abstractmethod
    def report(self, runs: Runs) -> Report:
        """Tables and figures of all runs."""

    def side_by_side(self) -> list[Config]:
        """The runs that workers may do at once: all, unless some measure times and want the machine for themselves."""
        return self.configs()

    def runs(self, table: RunTable, *, n_workers: int = 1, on_run: OnRun | None = None) -> Runs:
        """Do the runs that the table does not have yet, what must be alone last; all of them, in order."""
        configs = self.configs()
        if n_workers > 1:
            study = self.with_threads(share_threads(self.n_threads, n_workers))
            tell: OnRun | None = None if on_run is None else lambda done, _: on_run(done, len(configs))
            noted = environment(study.n_threads, n_workers)
            run_all(study.side_by_side(), study.run, table, n_workers=n_workers, environment=noted, on_run=tell)
        found = run_all(configs, self.run, table, environment=environment(self.n_threads, 1), on_run=on_run)
        self._kept.clear()
        return list(zip(configs, found, strict=True))

    def with_threads(self: AnyStudy, n_threads: int | None) -> AnyStudy:
        """The same study, with so many threads for a run."""
        if n_threads == self.n_threads:
            return self
        source: Any = self.source
        if hasattr(source, "n_threads"):
            source = dataclasses.replace(source, n_threads=n_threads)
        return dataclasses.replace(self, source=source, n_threads=n_threads)
