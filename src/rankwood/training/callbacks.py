"""Callbacks in LightGBM's style, and what they are told: measures and what became of every tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rankwood.errors import RankwoodError


class Step(NamedTuple):
    """What happened in one iteration of boosting. Trees are numbered by the iteration that grew them, from 0.

    Parameters
    ----------
    iteration : int
        Number of the iteration.
    k : float
        Trees to be dropped by the strategy, before it is rounded and kept below half of the trees.
    dropped : tuple of int
        Trees that were left out of the scores while the new tree was grown.
    removed : bool
        Whether they were then removed for good.
    weight : float
        Weight of the new tree.
    factor : float
        What the weights of the dropped trees were multiplied by, unless they were removed.
    candidate : float or None
        Measure of the model without the dropped trees, where it decided on their removal.
    value : float or None
        Measure of the model after the iteration, on the data that judges removals; None when there is none.
    best : float or None
        The best value so far, this one included.
    improved : bool
        Whether this value is the best so far.
    n_trees : int
        Live trees after the iteration.
    """

    iteration: int
    k: float = 0.0
    dropped: tuple[int, ...] = ()
    removed: bool = False
    weight: float = 1.0
    factor: float = 1.0
    candidate: float | None = None
    value: float | None = None
    best: float | None = None
    improved: bool = False
    n_trees: int = 0


Live = dict[int, float]  # weight of every live tree by its number, the oldest first


def apply(step: Step, live: Live) -> None:
    """Change the live trees as the step did.

    Examples
    --------
    >>> live = {0: 1.0, 1: 1.0}
    >>> apply(Step(2, dropped=(0,), weight=0.5, factor=0.5), live)
    >>> live
    {0: 0.5, 1: 1.0, 2: 0.5}
    >>> apply(Step(3, dropped=(1,), removed=True), live)
    >>> live
    {0: 0.5, 2: 0.5, 3: 1.0}
    """
    for tree in step.dropped:
        if step.removed:
            del live[tree]
        else:
            live[tree] *= step.factor
    live[step.iteration] = step.weight


def live_after(steps: Iterable[Step]) -> Live:
    """The live trees and their weights after some steps, bit for bit what they were in training."""
    live: Live = {}
    for step in steps:
        apply(step, live)
    return live


# LightGBM's own callback objects work too: what they are told has the same names.


class Result(NamedTuple):
    """Value of one measure on one data set after one iteration; the names are LightGBM's."""

    dataset_name: str
    metric_name: str
    metric_value: float
    maximize: bool  # whether higher is better

    @property
    def metric_std_dev(self) -> None:
        """None: LightGBM has a value here when it cross-validates."""

    def is_cv_result(self) -> bool:
        """False: LightGBM asks whether the value comes from cross-validation."""
        return False


@dataclass
class CallbackEnv:
    """What a callback is told. The first six fields are LightGBM's.

    Parameters
    ----------
    model : object
        The ensemble so far: `env.model.whole()` is an Ensemble.
    params : dict
        A callback before an iteration may change `learning_rate`.
    iteration : int
        Number of the iteration, from 0.
    begin_iteration, end_iteration : int
        The first iteration, and the one at which training ends at the latest.
    evaluation_result_list : list of Result
        Measures after the iteration.
    train_name : str or None
        Name under which the training data is measured, if it is.
    step : Step or None
        What became of the trees, once the iteration is over.
    n_trees : int or None
        Trees at which training ends, which takes more iterations when some are removed again.
    replayed : bool
        Whether the trees come from a checkpoint; callbacks see them again, so that they know what went before.
    best : tuple or None
        Set by early stopping: the iteration to end with, and the measures after it.
    learner : mapping
        What the model will remember of its learner: name, parameters, seed and version.
    """

    model: Any
    params: dict[str, Any]
    iteration: int
    begin_iteration: int
    end_iteration: int
    evaluation_result_list: list[Result] = field(default_factory=list)
    train_name: str | None = None
    step: Step | None = None
    n_trees: int | None = None
    replayed: bool = False
    best: tuple[int, list[Result]] | None = None
    learner: Mapping[str, Any] = field(default_factory=dict)


Callback = Callable[[CallbackEnv], None]


class EarlyStopException(Exception):
    """Raised by a callback to end training at `best_iteration`, counted from 0."""

    def __init__(self, best_iteration: int, best_score: Iterable[Result]) -> None:
        super().__init__()
        self.best_iteration = best_iteration
        self.best_score = list(best_score)


def stopped_at(error: Exception) -> tuple[int, list[Result]] | None:
    """The best iteration and its measures, if the error is rankwood's or LightGBM's early stop; else None."""
    if type(error).__name__ != "EarlyStopException":
        return None
    stop: Any = error
    return int(stop.best_iteration), [Result(*result[:4]) for result in stop.best_score]


def early_stopping(
    stopping_rounds: int,
    first_metric_only: bool = False,
    verbose: bool = False,
    min_delta: float = 0.0,
    relative: bool = False,
) -> Callback:
    """A callback that stops training when a measure on validation data no longer improves, and keeps the best size.

    Measures on the training data do not count. When the last tree comes before that, the best size for the first
    measure on the first data set is kept.

    Parameters
    ----------
    stopping_rounds : int
        Stop when there was no improvement for so many trees. With several measures or data sets, the first that has
        not improved for so long ends the training.
    first_metric_only : bool, default False
        Whether the first measure alone counts, on every data set.
    verbose : bool, default False
        Whether to print a line at the end.
    min_delta : float, default 0.0
        An improvement must be larger than this.
    relative : bool, default False
        Whether `min_delta` is a share of the best value so far: with 0.0005 and 50 trees, training ends when 50 trees
        did not gain half a per mille (Lucchese et al. 2016).

    Returns
    -------
    callable
        To be given to `fit` in `callbacks`.

    Examples
    --------
    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=40, docs_per_query=10, n_features=5).split(0.5)
    >>> ranker = rw.LambdaMART(n_trees=100, n_leaves=4).fit(train, valid=valid, callbacks=[early_stopping(5)])
    >>> ranker.n_trees_ == ranker.best_iteration_ < 100
    True
    """
    _check_rounds(stopping_rounds)
    if not min_delta >= 0.0:
        raise RankwoodError(f"min_delta must be a number from 0 up, got {min_delta!r}")
    return _EarlyStopping(stopping_rounds, first_metric_only, verbose, min_delta, relative)


def first_stops(stopping_rounds: int) -> Callback:
    """A callback like `early_stopping`, by the first measure on the first data set alone."""
    _check_rounds(stopping_rounds)
    return _EarlyStopping(stopping_rounds, True, False, 0.0, False, first_set_only=True)


def _check_rounds(stopping_rounds: Any) -> None:
    if isinstance(stopping_rounds, bool) or not hasattr(stopping_rounds, "__index__") or stopping_rounds < 1:
        raise RankwoodError(f"stopping_rounds must be a whole number from 1 up, got {stopping_rounds!r}")


class _EarlyStopping:
    order = 30  # after all that look at the iteration, since it may end the call

    def __init__(
        self,
        stopping_rounds: int,
        first_metric_only: bool,
        verbose: bool,
        min_delta: float,
        relative: bool,
        *,
        first_set_only: bool = False,
    ) -> None:
        self.stopping_rounds, self.first_metric_only = stopping_rounds, first_metric_only
        self.first_set_only = first_set_only
        self.verbose, self.min_delta, self.relative = verbose, min_delta, relative
        self.best: dict[tuple[str, str], tuple[float, int, list[Result]]] = {}

    def __call__(self, env: CallbackEnv) -> None:
        if env.iteration == env.begin_iteration:
            self.best = {}
        watched = [result for result in env.evaluation_result_list if result.dataset_name != env.train_name]
        if not watched:
            raise RankwoodError(NO_VALIDATION_DATA)
        if self.first_metric_only:
            watched = [result for result in watched if result.metric_name == watched[0].metric_name]
        if self.first_set_only:
            watched = watched[:1]
        for data, measure, value, higher_is_better in watched:
            sign = 1.0 if higher_is_better else -1.0
            best = self.best.get((data, measure))
            needed = self.min_delta * (abs(best[0]) if self.relative and best is not None else 1.0)
            if best is None or sign * value > sign * best[0] + needed:
                self.best[data, measure] = (value, env.iteration, env.evaluation_result_list)
        env.best = self.best[watched[0][:2]][1:]
        for data, measure, *_ in watched:
            _, iteration, results = self.best[data, measure]
            if env.iteration - iteration >= self.stopping_rounds:
                env.best = (iteration, results)
                self._say(env)
                raise EarlyStopException(iteration, results)
        if env.iteration == env.end_iteration - 1:
            self._say(env)

    def _say(self, env: CallbackEnv) -> None:
        if self.verbose and env.best is not None:
            print(f"best of {env.iteration + 1} trees: {_line(env.best[0], env.best[1])}")


NO_VALIDATION_DATA = "early stopping needs validation data other than the training data: give valid, or eval_set"


def log_evaluation(period: int = 1, *, write: Callable[[str], Any] = print) -> Callback:
    r"""A callback that writes the measures every so many trees.

    Parameters
    ----------
    period : int, default 1
        Trees between two lines; 0 writes none.
    write : callable, default print
        Called with every line.

    Returns
    -------
    callable
        To be given to `fit` in `callbacks`.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.Dataset([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], group=[2, 2])
    >>> ranker = rw.MART(n_trees=4, n_leaves=2, min_docs_per_leaf=1, measure="RR")
    >>> lines = []
    >>> _ = ranker.fit(data, eval_set=[data], callbacks=[log_evaluation(2, write=lines.append)])
    >>> [line.split("\t") for line in lines]
    [['[2]', "train's RR: 1"], ['[4]', "train's RR: 1"]]
    """

    def log(env: CallbackEnv) -> None:
        if period > 0 and env.evaluation_result_list and (env.iteration + 1) % period == 0 and not env.replayed:
            write(_line(env.iteration, env.evaluation_result_list))

    log.order = 10  # type: ignore[attr-defined]
    return log


def _line(iteration: int, results: Iterable[Result]) -> str:
    return "\t".join([f"[{iteration + 1}]", *(f"{data}'s {measure}: {value:g}" for data, measure, value, _ in results)])


def record_evaluation(eval_result: dict[str, dict[str, list[float]]]) -> Callback:
    """A callback that keeps every measure after every tree.

    Parameters
    ----------
    eval_result : dict
        Filled with lists: data set, then measure, then the value after each tree. What it held before is deleted.

    Returns
    -------
    callable
        To be given to `fit` in `callbacks`.

    Examples
    --------
    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=40, docs_per_query=10, n_features=5).split(0.5)
    >>> history = {}
    >>> _ = rw.MART(n_trees=3, n_leaves=4).fit(train, valid=valid, callbacks=[record_evaluation(history)])
    >>> len(history["valid"]["nDCG@10"])
    3
    """
    if not isinstance(eval_result, dict):
        raise RankwoodError(f"eval_result must be a dict to fill, got {type(eval_result).__name__}")

    def record(env: CallbackEnv) -> None:
        if env.iteration == env.begin_iteration:
            eval_result.clear()
        for data, measure, value, _ in env.evaluation_result_list:
            eval_result.setdefault(data, {}).setdefault(measure, []).append(value)

    record.order = 20  # type: ignore[attr-defined]
    return record


def reset_parameter(**schedules: Sequence[float] | Callable[[int], float]) -> Callback:
    """A callback that changes the learning rate before each tree.

    Parameters
    ----------
    **schedules : sequence of float, or callable
        `learning_rate` as a list with a value per tree, or as a function of the tree's number from 0. Nothing else can
        be changed.

    Returns
    -------
    callable
        To be given to `fit` in `callbacks`.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.make_ranking(n_queries=40, docs_per_query=10, n_features=5)
    >>> slower = reset_parameter(learning_rate=lambda tree: 0.1 * 0.5**tree)
    >>> rw.MART(n_trees=3, n_leaves=4).fit(data, callbacks=[slower]).ensemble_.tree_weights.tolist()
    [0.1, 0.05, 0.025]
    """
    unknown = set(schedules) - {"learning_rate"}
    if unknown:
        raise RankwoodError(f"reset_parameter can change learning_rate only, not {', '.join(sorted(unknown))}")

    def reset(env: CallbackEnv) -> None:
        number, n_trees = env.iteration - env.begin_iteration, env.end_iteration - env.begin_iteration
        for name, schedule in schedules.items():
            if callable(schedule):
                env.params[name] = schedule(number)
            elif len(schedule) == n_trees:
                env.params[name] = schedule[number]
            else:
                raise RankwoodError(f"the schedule of {name} has {len(schedule)} values for {n_trees} trees")

    reset.before_iteration = True  # type: ignore[attr-defined]
    reset.order = 10  # type: ignore[attr-defined]
    return reset


def in_order(callbacks: Iterable[Callback]) -> tuple[list[Callback], list[Callback]]:
    """The callbacks to call before an iteration, and those after it, sorted by their attribute `order`."""
    ranked = sorted(callbacks, key=lambda callback: getattr(callback, "order", 0))
    for callback in ranked:
        if not callable(callback):
            raise RankwoodError(f"a callback is a function of one argument, got {type(callback).__name__}")
    before = [callback for callback in ranked if getattr(callback, "before_iteration", False)]
    return before, [callback for callback in ranked if not getattr(callback, "before_iteration", False)]


def as_mapping(results: Iterable[Result]) -> Mapping[str, Mapping[str, float]]:
    """Results of one iteration by data set and measure."""
    nested: dict[str, dict[str, float]] = {}
    for data, measure, value, _ in results:
        nested.setdefault(data, {})[measure] = value
    return nested
