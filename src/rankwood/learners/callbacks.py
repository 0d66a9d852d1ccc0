"""Callbacks in LightGBM's style: called before or after each tree, with what there is to know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankwood.errors import RankwoodError

Result = tuple[str, str, float, bool]  # data set, measure, value, whether higher is better


@dataclass
class CallbackEnv:
    """What a callback is told. The fields are LightGBM's; `params` may be changed by a callback before a tree."""

    model: Any
    params: dict[str, Any]
    iteration: int
    begin_iteration: int
    end_iteration: int
    evaluation_result_list: list[Result] = field(default_factory=list)


Callback = Callable[[CallbackEnv], None]


class EarlyStopException(Exception):
    """Raised by a callback to end training; `best_iteration` counts from 0."""

    def __init__(self, best_iteration: int, best_score: Sequence[Result]) -> None:
        super().__init__()
        self.best_iteration = best_iteration
        self.best_score = list(best_score)


def early_stopping(stopping_rounds: int, first_metric_only: bool = False, min_delta: float = 0.0) -> Callback:
    """Stop when no measure on validation data has improved for `stopping_rounds` trees; the best size is restored.

    Measures on the training data (named "train") are not watched. With several measures or data sets, the first that
    has not improved for so long ends the training.
    """
    if stopping_rounds < 1:
        raise RankwoodError(f"stopping_rounds must be at least 1, got {stopping_rounds}")
    return _EarlyStopping(stopping_rounds, first_metric_only, min_delta)


class _EarlyStopping:
    order = 30

    def __init__(self, stopping_rounds: int, first_metric_only: bool, min_delta: float) -> None:
        self.stopping_rounds, self.first_metric_only, self.min_delta = stopping_rounds, first_metric_only, min_delta
        self.best: dict[tuple[str, str], tuple[float, int, list[Result]]] = {}

    def __call__(self, env: CallbackEnv) -> None:
        if env.iteration == env.begin_iteration:
            self.best = {}
        watched = [result for result in env.evaluation_result_list if result[0] != "train"]
        if not watched:
            raise RankwoodError("early stopping needs validation data: give valid, or eval_set")
        first_measure = watched[0][1]
        for data, measure, value, higher_is_better in watched:
            if self.first_metric_only and measure != first_measure:
                continue
            sign = 1.0 if higher_is_better else -1.0
            best = self.best.get((data, measure))
            if best is None or sign * value > sign * best[0] + self.min_delta:
                best = self.best[data, measure] = (value, env.iteration, env.evaluation_result_list)
            if env.iteration - best[1] >= self.stopping_rounds:
                raise EarlyStopException(best[1], best[2])
        if env.iteration == env.end_iteration - 1:  # the end came first: the best size is restored all the same
            value, iteration, results = self.best[watched[0][0], first_measure]
            raise EarlyStopException(iteration, results)


def log_evaluation(period: int = 1, write: Callable[[str], Any] = print) -> Callback:
    """Write the measures every `period` trees."""

    def log(env: CallbackEnv) -> None:
        if period > 0 and env.evaluation_result_list and (env.iteration + 1) % period == 0:
            values = "\t".join(
                f"{data}'s {measure}: {value:g}" for data, measure, value, _ in env.evaluation_result_list
            )
            write(f"[{env.iteration + 1}]\t{values}")

    log.order = 10  # type: ignore[attr-defined]
    return log


def record_evaluation(eval_result: dict[str, dict[str, list[float]]]) -> Callback:
    """Keep every measure of every tree in `eval_result`: data set, then measure, then a list."""

    def record(env: CallbackEnv) -> None:
        if env.iteration == env.begin_iteration:
            eval_result.clear()
        for data, measure, value, _ in env.evaluation_result_list:
            eval_result.setdefault(data, {}).setdefault(measure, []).append(value)

    record.order = 20  # type: ignore[attr-defined]
    return record


def reset_parameter(**schedules: Sequence[float] | Callable[[int], float]) -> Callback:
    """Change parameters before each tree: a list with a value per tree, or a function of the tree's number.

    `learning_rate` is what can be changed.
    """
    unknown = set(schedules) - {"learning_rate"}
    if unknown:
        raise RankwoodError(f"reset_parameter can change learning_rate only, not {', '.join(sorted(unknown))}")

    def reset(env: CallbackEnv) -> None:
        number = env.iteration - env.begin_iteration
        for name, schedule in schedules.items():
            if callable(schedule):
                env.params[name] = schedule(number)
            elif len(schedule) == env.end_iteration - env.begin_iteration:
                env.params[name] = schedule[number]
            else:
                expected = env.end_iteration - env.begin_iteration
                raise RankwoodError(f"the schedule of {name} has {len(schedule)} values for {expected} trees")

    reset.before_iteration = True  # type: ignore[attr-defined]
    reset.order = 10  # type: ignore[attr-defined]
    return reset


def in_order(callbacks: Sequence[Callback]) -> tuple[list[Callback], list[Callback]]:
    """Callbacks to call before a tree and after it, each in the order that they ask for."""
    ranked = sorted(callbacks, key=lambda callback: getattr(callback, "order", 0))
    before = [callback for callback in ranked if getattr(callback, "before_iteration", False)]
    return before, [callback for callback in ranked if callback not in before]


def as_mapping(results: Sequence[Result]) -> Mapping[str, Mapping[str, float]]:
    """Results of one iteration by data set and measure."""
    nested: dict[str, dict[str, float]] = {}
    for data, measure, value, _ in results:
        nested.setdefault(data, {})[measure] = value
    return nested
