"""Weights & Biases: a training as part of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankwood.errors import RankwoodError
from rankwood.integrations.logger import Logger
from rankwood.packages import need


class WandbLogger(Logger):
    """A callback that logs parameters and measures to a run of Weights & Biases, over the number of rounds.

    Parameters
    ----------
    run : wandb.Run, optional
        What `wandb.init` returned; the active run unless given.
    period : int, default 1
        Rounds between two that are logged.
    """

    def __init__(self, run: Any = None, *, period: int = 1) -> None:
        super().__init__(period=period)
        self.run = need("wandb", "logging to Weights & Biases").run if run is None else run
        if self.run is None:
            raise RankwoodError("there is no active run of Weights & Biases: call wandb.init() first")
        self._axes: set[str] = set()  # measures that are drawn over rounds, whatever else the run counts

    def log_params(self, params: Mapping[str, Any]) -> None:
        self.run.config.update(dict(params), allow_val_change=True)

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        for name in metrics.keys() - self._axes:
            self.run.define_metric(name, step_metric="round")
            self._axes.add(name)
        self.run.log({**metrics, "round": step})
