"""The small protocol that trainings are logged by: a callback that needs to know how to log two mappings."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankwood.errors import RankwoodError

if TYPE_CHECKING:
    from rankwood.training.callbacks import CallbackEnv


class Logger(ABC):
    """A callback that logs a training; a subclass says where to, with two methods.

    Parameters are logged once, before the measures of the first round. Rounds that a checkpoint holds are logged again,
    as the place that they are logged to may be a new one.

    Parameters
    ----------
    period : int, default 1
        Rounds between two that are logged. Trackers that are far away may take longer than a tree.

    Examples
    --------
    >>> import rankwood as rw
    >>> class Printer(rw.Logger):
    ...     def log_params(self, params):
    ...         print(params["learner"], params["n_trees"])
    ...
    ...     def log_metrics(self, metrics, step):
    ...         print(step, sorted(metrics))
    >>> train, valid = rw.make_ranking(n_queries=40, docs_per_query=10, n_features=5).split(0.5)
    >>> _ = rw.MART(n_trees=4, n_leaves=4).fit(train, valid=valid, callbacks=[Printer(period=2)])
    MART 4
    2 ['valid/nDCG_at_10']
    4 ['valid/nDCG_at_10']
    """

    order = 10  # before early stopping, which may end the call

    def __init__(self, *, period: int = 1) -> None:
        if isinstance(period, bool) or not isinstance(period, int) or period < 1:
            raise RankwoodError(f"period must be a whole number from 1 up, got {period!r}")
        self.period = period

    def __call__(self, env: CallbackEnv) -> None:
        if env.iteration == env.begin_iteration:
            self.log_params(flat(env.learner))
        if env.evaluation_result_list and (env.iteration + 1) % self.period == 0:
            results = env.evaluation_result_list
            self.log_metrics({metric_name(data, name): value for data, name, value, _ in results}, env.iteration + 1)

    @abstractmethod
    def log_params(self, params: Mapping[str, Any]) -> None:
        """Log what the learner was told.

        Parameters
        ----------
        params : mapping from str to anything that JSON can hold
            Name of the learner, seed, version, and every parameter.
        """

    @abstractmethod
    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Log measures after a round.

        Parameters
        ----------
        metrics : mapping from str to float
            Values by names that all trackers take, such as `valid/nDCG_at_10`.
        step : int
            Rounds so far, from 1.
        """


def metric_name(data: str, measure: str) -> str:
    """Name of a measure on a data set, in the characters that all trackers take; MLflow has no `@`.

    Examples
    --------
    >>> metric_name("valid", "nDCG@10"), metric_name("my set", "P(rel=2)@5")
    ('valid/nDCG_at_10', 'my set/P_rel_2_at_5')
    """
    return f"{_plain(data)}/{_plain(measure)}"


def _plain(text: str) -> str:
    kept = re.sub(r"[^\w. -]+", "_", text.replace("@", "_at_"), flags=re.ASCII)
    return re.sub(r"__+", "_", kept).strip("_ ") or "_"


def flat(learner: Mapping[str, Any]) -> dict[str, Any]:
    """Notes on a learner with its parameters beside its name, instead of in it.

    Examples
    --------
    >>> flat({"learner": "MART", "parameters": {"n_trees": 3}, "seed": 0})
    {'learner': 'MART', 'seed': 0, 'n_trees': 3}
    """
    others = {name: value for name, value in learner.items() if name != "parameters"}
    return {**others, **learner.get("parameters", {})}
