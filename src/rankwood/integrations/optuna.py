"""Optuna: trials that are given up early."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankwood.errors import RankwoodError
from rankwood.packages import need

if TYPE_CHECKING:
    from rankwood.training.callbacks import CallbackEnv, Result


class OptunaPruningCallback:
    """A callback that tells an Optuna trial of every round, and ends it when its pruner sees no chance.

    Parameters
    ----------
    trial : optuna.Trial
        The trial that the training belongs to, of a study with one objective.
    measure : str, optional
        Name of the measure to report, such as "nDCG@10"; the first one unless given.
    data : str, optional
        Name of the data that it is of; the first that is not the training data unless given.

    Raises
    ------
    optuna.TrialPruned
        By `fit`, when the pruner says so; Optuna notes the trial as pruned.

    Examples
    --------
    >>> import rankwood as rw, optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> train, valid = rw.make_ranking(n_queries=40, docs_per_query=10, n_features=5).split(0.5)
    >>> def objective(trial):
    ...     ranker = rw.MART(n_trees=5, n_leaves=trial.suggest_int("n_leaves", 2, 8))
    ...     ranker.fit(train, valid=valid, callbacks=[rw.OptunaPruningCallback(trial)])
    ...     return ranker.best_score_["valid"]["nDCG@10"]
    >>> study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(0))
    >>> study.optimize(objective, n_trials=2)
    >>> [len(trial.intermediate_values) for trial in study.trials]
    [5, 5]
    """

    order = 20  # before early stopping, which may end the call

    def __init__(self, trial: Any, measure: str | None = None, data: str | None = None) -> None:
        self._pruned = need("optuna", "pruning trials").TrialPruned
        self.trial, self.measure, self.data = trial, measure, data

    def __call__(self, env: CallbackEnv) -> None:
        result = self._watched(env)
        self._check_direction(result)
        self.trial.report(result.metric_value, env.iteration)
        if self.trial.should_prune():
            reported = f"{result.dataset_name}'s {result.metric_name} was {result.metric_value:g}"
            raise self._pruned(f"pruned after {env.iteration + 1} rounds: {reported}")

    def _watched(self, env: CallbackEnv) -> Result:
        """The result to report."""
        there = env.evaluation_result_list
        for result in there:
            if self.data is None and result.dataset_name == env.train_name:
                continue
            if self.data in (None, result.dataset_name) and self._is_measure(result.metric_name):
                return result
        names = ", ".join(f"{one.dataset_name}'s {one.metric_name}" for one in there) or "nothing"
        wanted = f"{self.data or 'validation data'}'s {self.measure or 'measure'}"
        raise RankwoodError(f"pruning needs {wanted} after every round, but {names} is measured: give valid to fit")

    def _is_measure(self, name: str) -> bool:
        return self.measure is None or self.measure.casefold() == name.casefold()

    def _check_direction(self, result: Result) -> None:
        study = getattr(self.trial, "study", None)  # a FixedTrial has none
        wanted = "maximize" if result.maximize else "minimize"
        if study is not None and study.direction.name.lower() != wanted:
            better = "higher" if result.maximize else "lower"
            given = f"create_study(direction={wanted!r})"
            raise RankwoodError(
                f"{better} is better for {result.metric_name}, but the study goes the other way: {given}"
            )
