"""Search for the best ranker that scores a document within so many microseconds."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from rankwood._version import __version__
from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import (
    Comparison,
    Evaluation,
    aligned_features,
    compare_values,
    evaluate,
    weighted_values,
)
from rankwood.evaluation.measures import Measure, parse_measure
from rankwood.lab.search import Point, SearchSpace, Trials, front_of, only_search_in, quiet_optuna
from rankwood.lab.study import counted
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import MARGIN, Acceptance, Proof
from rankwood.pruning.cleaver import PLENTY, checked_rates, cleaver
from rankwood.pruning.pruner import PruningSettings
from rankwood.scoring.timing import Timing, time_models, warn_if_busy
from rankwood.shrinking.path import ShrinkSettings
from rankwood.shrinking.result import ShrinkResult, ShrinkRow
from rankwood.shrinking.shrink import shrink
from rankwood.system import cpu_name
from rankwood.tasks import on_worker

RATES = (0.3, 0.5, 0.7, 0.85)
BATCH = 1000
TRIALS = 30
PRUNING_QUERIES = 1000  # at most, for pruning; pruned models are measured on all queries
FEWEST_TO_PRUNE_BY_HALF = 40  # validation queries; pruning is less favoured where half of them do not choose weights

REPORTERS = {"test": "test queries", "aside": "validation queries that chose nothing"}

Latency = Callable[[Ensemble, Any], float]  # (model, rows) -> microseconds per document
OnShare = Callable[[float], None]  # share of a trial that is done
Models = list[tuple[float, str, Ensemble, float]]  # rate, variant, model, and its measure on validation data


@dataclass(frozen=True)
class TuneResult:
    """The outcome of `tune`: the best model within the budget, and all that were tried.

    Attributes
    ----------
    ensemble : Ensemble
        The best model within the budget by validation data; the fastest of all when none is within it. Of a given
        model: what `shrink` chose, the largest within the budget that is shown to be good enough.
    within_budget : bool
        Whether a model is within the budget.
    chosen : Point
        The point of `ensemble`.
    front : tuple of Point
        The Pareto-optimal points, fastest first: no other point is at least as good in less time.
    models : mapping of str to Ensemble
        The models of the front, by name of the point.
    points : tuple of Point
        Every model that was tried.
    comparisons : mapping of str to Comparison
        The chosen model on the queries that report, query by query, against the "default" LambdaMART (the first trial)
        and against the "best" of all whatever its time, where these are other models; or against the "input", the
        model that was given. Empty when no queries report.
    proofs : mapping of str to Proof
        Whether the chosen model is shown there to lose less than the margin against either, which is not corrected:
        one model was looked at. Against the "input" it is what the queries that judged show when there is no test data.
    reported : float or None
        Measure of the chosen model on the queries that report, which chose nothing.
    reported_on : {"test", "aside"} or None
        What these are: test data; validation queries that were set aside; or none, because there are too few, so that
        only the validation queries that chose the model say how good it is, too kindly.
    budget_us : float
        Microseconds per document that a model may take.
    batch : int
        Documents per call of the timing.
    measure : str
        What was maximised.
    convention : Convention
        The convention of the measure.
    n_trials : int
        Finished trials, those of a resumed study included; 0 when a model was given.
    interrupted : bool
        Whether Ctrl-C ended the search.
    timings : tuple of Timing
        Every timing of a model, with its engine, precision and threads. Empty with a `latency` function.
    n_reporting : int
        Number of queries that report.
    shrunk : ShrinkResult or None
        The outcome of `shrink` when a model was given: the whole path, and what was shown of every size.
    """

    ensemble: Ensemble
    within_budget: bool
    chosen: Point
    front: tuple[Point, ...]
    models: Mapping[str, Ensemble]
    points: tuple[Point, ...]
    comparisons: Mapping[str, Comparison]
    budget_us: float
    batch: int
    measure: str
    convention: Convention
    n_trials: int
    interrupted: bool
    timings: tuple[Timing, ...] = ()
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    reported: float | None = None
    reported_on: Literal["test", "aside"] | None = None
    n_reporting: int = 0
    shrunk: ShrinkResult | None = None

    @property
    def trials(self) -> list[dict[str, Any]]:
        """Every model that was tried as a dict, with whether it is on the front, within the budget, and chosen."""
        names = {point.name for point in self.front}
        return [
            {
                **point.as_dict(),
                "on_front": point.name in names,
                "within_budget": point.us_per_doc <= self.budget_us,
                "chosen": self.within_budget and point.name == self.chosen.name,
            }
            for point in self.points
        ]

    def curves(self) -> dict[str, dict[str, list[Any]]]:
        """Return columns for plots.

        Returns
        -------
        dict of dict of list
            The columns `us_per_doc`, `valid`, `test` and `n_trees` of the points of the "front", and of all points by
            learner.
        """
        groups = {"front": list(self.front)}
        for point in self.points:
            groups.setdefault(point.parameters["learner"], []).append(point)
        names = ("us_per_doc", "valid", "test", "n_trees")
        return {group: {name: [getattr(p, name) for p in points] for name in names} for group, points in groups.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the models, ready for JSON."""
        return {
            "within_budget": self.within_budget,
            "budget_us": self.budget_us,
            "batch": self.batch,
            "precision": self.timings[0].precision if self.timings else None,
            "busy": any(timing.busy for timing in self.timings),
            "measure": self.measure,
            "convention": self.convention.name,
            "n_trials": self.n_trials,
            "interrupted": self.interrupted,
            "chosen": self.chosen.as_dict(),
            "front": [point.as_dict() for point in self.front],
            "reported": self.reported,
            "reported_on": self.reported_on,
            "n_reporting": self.n_reporting,
            "comparisons": {name: one.as_dict() for name, one in self.comparisons.items()},
            "proofs": {name: one.as_dict() for name, one in self.proofs.items()},
            "trials": self.trials,
            "path": None if self.shrunk is None else self.shrunk.table,
        }

    def summary(self) -> str:
        """Return the outcome as a sentence."""
        chosen = self.chosen
        if self.shrunk is not None:
            taken = f"{chosen.us_per_doc:.3g} us per document (budget {self.budget_us:g})"
            missed = f"no model within {self.budget_us:g} us per document was shown to be good enough"
            return f"{taken if self.within_budget else missed}: {self.shrunk.summary()}"
        trees = counted(chosen.n_trees, "tree")
        if not self.within_budget:
            return (
                f"no model scores a document within {self.budget_us:g} us: the fastest of {len(self.points):,} takes "
                f"{chosen.us_per_doc:.3g} us ({trees}, {self.measure} {self.quality()})"
            )
        return (
            f"{trees}, {chosen.us_per_doc:.3g} us per document (budget {self.budget_us:g}), the best on validation "
            f"data of {len(self.points):,} models of {counted(self.n_trials, 'trial')}: {self.measure} {self.quality()}"
        )

    def quality(self) -> str:
        """Return the measure of the chosen model and what it was measured on: queries that chose nothing, if any."""
        if self.reported is None or self.reported_on is None:
            return f"{self.chosen.valid:.4f} on the validation queries that chose it, so expect less elsewhere"
        return f"{self.reported:.4f} on {self.n_reporting:,} {REPORTERS[self.reported_on]}"

    def __repr__(self) -> str:
        return f"TuneResult({self.summary()})"


def tune(
    train: Dataset,
    valid: Dataset,
    *,
    budget_us: float,
    model: Any = None,
    test: Dataset | None = None,
    judge: float | Literal["auto"] | None = "auto",
    margin: float = MARGIN,
    n_trials: int = TRIALS,
    timeout: float | None = None,
    measure: str | Measure = "nDCG@10",
    convention: str | Convention = "rankwood",
    space: SearchSpace | None = None,
    rates: Sequence[float] = RATES,
    batch: int = BATCH,
    study: str | os.PathLike[str] | None = None,
    latency: Latency | None = None,
    on_interrupt: Literal["raise", "keep"] = "raise",
    seed: int = 0,
    n_threads: int | None = None,
    client: Any = None,
    progress: Callable[[float, float], None] | None = None,
) -> TuneResult:
    """Find the best ranker that scores a document within `budget_us` microseconds, and the Pareto front of the search.

    The front is of measure and time: no other model that was tried is at least as good in less time. Tuning needs the
    packages of the extra `lab`: `pip install 'rankwood[lab]'`.

    Every trial trains a ranker with early stopping and prunes it with CLEaVER at several rates, which gives several
    models. The defaults of the learners are tried first; then Optuna's TPE sampler, with two objectives and the budget
    as a constraint, looks where it is promising. The winner is chosen on validation data and timed once more. What is
    said of its quality is of queries that chose nothing: test data, or validation queries that were set aside.

    A given `model` is made smaller instead, by `shrink`, until it is within the budget: no other is trained, and no
    package of the extra is needed.

    Parameters
    ----------
    train : Dataset
        Data to learn from.
    valid : Dataset
        Data to stop training by and to choose the model by.
    budget_us : float
        Microseconds that scoring a document may take, on one thread.
    model : Ensemble or fitted ranker, optional
        A model to bring within the budget. `n_trials`, `timeout`, `space`, `rates`, `batch`, `latency` and `client` are
        of the search among trainings and are refused with it.
    test : Dataset, optional
        Data to measure the winner on, against the default and the best of all. It decides nothing.
    judge : float, "auto" or None, default "auto"
        Share of the validation queries that is set aside for that when there is no test data; "auto" is half when
        there are 1,000 or more, else none. None sets none aside. With a `model` it is the `judge` of `shrink`.
    margin : float, default 0.005
        Loss of the measure, against the default and the best of all, that is ruled out or not (`proofs`). With a
        `model`: the loss against it that must be ruled out.
    n_trials : int, default 30
        Trials in all, those of a resumed study included.
    timeout : float, optional
        Seconds after which no trial begins; at least one is made.
    measure : str or Measure, default "nDCG@10"
        What to maximise.
    convention : str or Convention, default "rankwood"
        The convention of the measure.
    space : SearchSpace, optional
        Ranges of the parameters to search.
    rates : sequence of float, default (0.3, 0.5, 0.7, 0.85)
        Shares of the trees that are pruned; empty leaves models whole.
    batch : int, default 1000
        Documents per call when a model is timed, on one thread of the fastest engine.
    study : path-like, optional
        A file to keep trials in, and to go on from; models of the front are kept in the folder FILE.models. Only one
        search may use it at a time. With a `model`: the file for finished steps, the `checkpoint` of `shrink`.
    latency : callable, optional
        A function (model, rows) -> microseconds per document, instead of measuring them here.
    on_interrupt : "raise" or "keep", default "raise"
        After Ctrl-C raise KeyboardInterrupt, or keep what the trials before it found.
    seed : int, default 0
        Seed of training and search. The same parameters and seed give the same model; but times are measured, so they
        vary, and with them what the search tries next.
    n_threads : int, optional
        Threads of training and pruning; all CPUs unless given.
    client : distributed.Client, optional
        Client of a Dask cluster, one of whose workers trains and prunes each model, with its own threads. Trials follow
        each other, as each is chosen by what those before it found; models are timed here.
    progress : callable, optional
        Called with the number of trials done, fractions included, and of all; with a `model`, with work instead.

    Returns
    -------
    TuneResult
        `ensemble`, the model, and `within_budget`, whether there is one within the budget; `chosen`, its point;
        `front` and `models`, the Pareto front and its models; `points` and `trials`, all that was tried; `reported`,
        `comparisons` and `proofs` on queries that chose nothing; `budget_us`, `batch`, `measure`, `convention`,
        `n_trials`, `interrupted` and `timings`; `shrunk`, the outcome of `shrink`, with a `model`.

    Raises
    ------
    MissingPackageError
        When a package of the extra `lab` is missing.
    RankwoodError
        When the file of the study was made with other data or settings, or another search is using it.

    See Also
    --------
    shrink : What a given model goes through, with all its settings.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.make_ranking(n_queries=60, docs_per_query=12, n_features=6)
    >>> train, valid = data.split(0.6)
    >>> space = rw.SearchSpace(n_trees=(5, 10), n_leaves=(4, 8))
    >>> result = rw.tune(train, valid, budget_us=100, n_trials=2, space=space)
    >>> result.within_budget, result.ensemble.n_trees == result.chosen.n_trees, len(result.front) > 0
    (True, True, True)
    """
    _check(train, valid, test, budget_us, n_trials, timeout, batch)
    if model is not None:
        _refuse(
            n_trials=n_trials, timeout=timeout, space=space, rates=rates, batch=batch, latency=latency, client=client
        )
        shrunk = shrink(
            model, train, valid, test=test, judge=judge, measure=measure, convention=convention, margin=margin,
            budget_us=budget_us, cost="us", settings=ShrinkSettings(seed=seed), checkpoint=study,
            on_interrupt=on_interrupt, n_threads=n_threads, progress=progress,
        )  # fmt: skip
        return _of_path(shrunk, test, budget_us)
    chosen_rates = tuple(checked_rates(rates)) if len(rates) else ()
    if 0.0 in chosen_rates:
        raise RankwoodError("a pruning rate of 0 is the whole model, which is always there: leave it out")
    rule, (valid, reporters) = Acceptance(margin=margin), _reporters(valid, test, judge, seed)
    wanted, how = parse_measure(measure), Convention.get(convention)
    path = None if study is None else Path(study)
    measured = MeasuredLatency(batch)
    with quiet_optuna(), only_search_in(path):
        setup = TrialSetup(
            train=BinnedDataset.make(train, n_threads=n_threads),
            valid=valid,
            space=space or SearchSpace(),
            rates=chosen_rates,
            measure=wanted,
            convention=how,
            latency=latency or measured,
            seed=seed,
            n_threads=n_threads,
        )
        trials = Trials(path, _identity(setup, batch, latency), budget_us, seed)
        setup = setup if client is None else ClusterSetup.of(setup, client)
        interrupted = _search(setup, trials, n_trials, timeout, on_interrupt, progress)
        result = _result(setup, trials, reporters, rule, budget_us, batch, interrupted)
    warn_if_busy(measured.timings)
    return replace(result, timings=tuple(measured.timings))


def _check(
    train: Any, valid: Any, test: Any, budget_us: float, n_trials: int, timeout: float | None, batch: int
) -> None:
    """Raise an error for an argument of `tune` that makes no sense."""
    for name, data in (("train", train), ("valid", valid), ("test", test)):
        if not isinstance(data, Dataset) and not (name == "test" and data is None):
            raise DataError(f"{name} must be a Dataset, with labels and queries, got {type(data).__name__}")
    if not 0 < budget_us < np.inf:
        raise RankwoodError(f"the budget is a number of microseconds per document above 0, got {budget_us}")
    if n_trials < 1:
        raise RankwoodError(f"n_trials must be at least 1, got {n_trials}")
    if timeout is not None and not timeout > 0:
        raise RankwoodError(f"timeout is a number of seconds above 0, got {timeout}")
    if batch < 1:
        raise RankwoodError(f"a batch is at least 1 document, got {batch}")


# A model that is given: no trials, but the path of `shrink`, in the same form.


def _refuse(**given: Any) -> None:
    """Raise an error for arguments of the search among trainings, which has no part in bringing a model down."""
    defaults = {name: one.default for name, one in signature(tune).parameters.items()}
    others = [name for name, value in given.items() if value is not defaults[name] and value != defaults[name]]
    if others:
        raise RankwoodError(f"{' and '.join(others)} say how models are trained and pruned: leave out with model=")


def _of_path(shrunk: ShrinkResult, test: Dataset | None, budget_us: float) -> TuneResult:
    """The models of a path as points, and what `shrink` chose among them."""
    points = tuple(_point(number, row) for number, row in enumerate(shrunk.rows))
    (chosen,) = (point for point, row in zip(points, shrunk.rows, strict=True) if row is shrunk.chosen)
    front = front_of(points)
    proof = shrunk.test_proof or shrunk.proof
    note = {**chosen.as_dict(), "budget_us": budget_us, "measure": shrunk.measure}
    return TuneResult(
        ensemble=shrunk.ensemble.with_metadata(tune=note),
        within_budget=shrunk.reached,
        chosen=chosen,
        front=tuple(front),
        models={point.name: shrunk.rows[point.trial].ensemble for point in [*front, chosen]},
        points=points,
        comparisons={} if shrunk.test is None else {"input": shrunk.test},
        budget_us=budget_us,
        batch=shrunk.timings[0].batch,
        measure=shrunk.measure,
        convention=shrunk.convention,
        n_trials=0,
        interrupted=shrunk.interrupted,
        timings=shrunk.timings,
        proofs={"input": proof} if shrunk.accepted and proof is not None else {},
        reported=shrunk.chosen.test,
        reported_on=None if test is None else "test",
        n_reporting=0 if test is None else test.n_queries,
        shrunk=shrunk,
    )


def _point(number: int, row: ShrinkRow) -> Point:
    """A model of the path as a point; its number stands for the trial."""
    assert row.us_per_doc is not None  # a budget has all timed
    parameters = {"learner": "shrink", "route": row.route, "n_leaves": row.n_leaves}
    return Point(
        number, parameters, 0.0, row.route, row.n_trees, row.ensemble.n_nodes, row.valid, row.us_per_doc, row.test
    )


class Reporters(NamedTuple):
    """Data that chooses nothing, on which the winner is measured, and what it is."""

    data: Dataset
    kind: Literal["test", "aside"]


def _reporters(valid: Dataset, test: Dataset | None, judge: Any, seed: int) -> tuple[Dataset, Reporters | None]:
    """Return the validation data that chooses, and the data that reports: test data, or queries set aside, or none."""
    if isinstance(judge, str) and judge == "auto":
        judge = 0.5 if valid.n_queries >= PLENTY else None
    if judge is not None and not (isinstance(judge, (int, float)) and 0.0 < judge < 1.0):
        raise RankwoodError(
            f"judge is a share of the validation queries between 0 and 1, 'auto' or None, got {judge!r}"
        )
    if test is not None or judge is None:
        return valid, None if test is None else Reporters(test, "test")
    chooses, aside = valid.split(1.0 - judge, seed=seed)
    if aside.n_queries < 2:
        raise RankwoodError(f"judge={judge} sets 1 of {valid.n_queries} validation queries aside: that is too few")
    return chooses, Reporters(aside, "aside")


# One trial: train, prune at several rates, measure and time. One training gives several points.


_TRAINING_SHARE = 0.7  # of a trial, for progress


@dataclass(frozen=True)
class MeasuredLatency:
    """A function that times a model on one thread of the fastest engine, and keeps the timings.

    Parameters
    ----------
    batch : int
        Documents per call.
    timings : list of Timing
        All timings so far.
    """

    batch: int
    timings: list[Timing] = field(default_factory=list, compare=False)

    def __call__(self, model: Ensemble, X: Any) -> float:
        self.timings.extend(time_models([(model, X)], batch=self.batch))
        return self.timings[-1].us_per_doc


@dataclass(frozen=True)
class TrialSetup:
    """What all trials have in common: data, search space, pruning rates, measure and stopwatch."""

    train: BinnedDataset
    valid: Dataset
    space: SearchSpace
    rates: tuple[float, ...]
    measure: Measure
    convention: Convention
    latency: Latency
    seed: int
    n_threads: int | None

    def run(self, number: int, parameters: Mapping[str, Any], on_share: OnShare) -> list[tuple[Point, Ensemble]]:
        """Do a trial: return the point and model of the whole training, and of the best pruned model at every rate."""
        models = self.models(parameters, on_share)
        return [
            (
                Point(number, dict(parameters), rate, variant, model.n_trees, model.n_nodes, valid, self.time(model)),
                model,
            )
            for rate, variant, model, valid in models
        ]

    def models(self, parameters: Mapping[str, Any], on_share: OnShare) -> Models:
        """Train and prune: the whole model, and the best pruned one at every rate."""
        whole = self._train(parameters, on_share)
        return [(0.0, "whole", whole, self._quality(whole)), *self._prune(whole, on_share)]

    def time(self, model: Ensemble) -> float:
        """Microseconds per document."""
        return float(self.latency(model, aligned_features(model, self.valid)))

    def _train(self, parameters: Mapping[str, Any], on_share: OnShare) -> Ensemble:
        """Train the learner of a trial."""
        ranker = self.space.ranker(
            parameters,
            measure=self.measure,
            convention=self.convention,
            random_state=self.seed,
            n_jobs=self.n_threads,
        )

        def tell(env: Any) -> None:
            on_share(_TRAINING_SHARE * min(1.0, (env.iteration + 1) / env.end_iteration))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a bad choice of parameters shows in the measure
            ranker.fit(self.train, valid=self.valid, callbacks=[tell])
        model: Ensemble = ranker.ensemble_
        return model

    def _quality(self, model: Ensemble) -> float:
        """The measure on validation data."""
        found = evaluate(model, self.valid, self.measure, convention=self.convention, n_threads=self.n_threads)
        return found[str(self.measure)]

    def _prune(self, whole: Ensemble, on_share: OnShare) -> Models:
        """Prune a model: rate, variant, model and measure of the best at every rate."""
        if not self.rates or whole.n_trees < 2 or whole.n_nodes == 0:
            return []
        result = cleaver(
            whole,
            self.train.data,
            self.valid,
            measure=self.measure,
            convention=self.convention,
            judge=0.5 if self.valid.n_queries >= FEWEST_TO_PRUNE_BY_HALF else None,
            accept="quality",  # every model of the table is looked at, and the search judges
            rates=self.rates,
            settings=PruningSettings(max_queries=PRUNING_QUERIES, measure_speed=False, seed=self.seed),
            n_threads=self.n_threads,
            progress=lambda done, total: on_share(_TRAINING_SHARE + (1 - _TRAINING_SHARE) * done / total),
        )
        by_rate = [[row for row in result.rows[1:] if row.rate == rate] for rate in self.rates]
        best = [max(rows, key=lambda row: row.valid) for rows in by_rate]
        return [(row.rate, row.variant, row.ensemble, row.valid) for row in _of_other_sizes(best, whole.n_trees)]


def _of_other_sizes(rows: Sequence[Any], n_trees: int) -> list[Any]:
    """Return the rows whose number of trees is new: of a small model several rates leave as many trees."""
    seen, found = {n_trees}, []
    for row in rows:
        if row.n_trees not in seen:
            seen.add(row.n_trees)
            found.append(row)
    return found


@dataclass(frozen=True)
class ClusterSetup(TrialSetup):
    """The same, but workers of a Dask cluster train and prune; models are timed here."""

    client: Any
    there: Any  # the future of a setup in the memory of the cluster

    @classmethod
    def of(cls, setup: TrialSetup, client: Any) -> ClusterSetup:
        """Send a setup to a cluster, once for all trials."""
        threads = setup.n_threads or min(client.nthreads().values(), default=1)
        there = client.scatter(replace(setup, latency=_timed_here, n_threads=threads), broadcast=True, hash=False)
        return cls(**{one.name: getattr(setup, one.name) for one in fields(setup)}, client=client, there=there)

    def models(self, parameters: Mapping[str, Any], on_share: OnShare) -> Models:
        found: Models = on_worker(self.client, _models_there, self.there, dict(parameters))
        return found


def _models_there(setup: TrialSetup, parameters: Mapping[str, Any]) -> Models:
    return setup.models(parameters, lambda share: None)


def _timed_here(model: Ensemble, X: Any) -> float:
    raise AssertionError("no worker times models")


# The search: trials until there are enough, and the choice among their points.


def _identity(setup: TrialSetup, batch: int, latency: Latency | None) -> dict[str, str]:
    """Return what trials of one study must have in common to be comparable; the budget may change."""
    return {
        "training data": setup.train.data.fingerprint(),
        "validation data": setup.valid.fingerprint(),
        "measure": str(setup.measure),
        "convention": repr(setup.convention),  # its name may be that of a preset which it was made from
        "search space": repr(setup.space),
        "rates": repr(setup.rates),
        "seed": str(setup.seed),
        "batch": str(batch),
        "CPU": cpu_name() if latency is None else "as the latency function says",
        "version of rankwood": __version__,
    }


def _search(
    setup: TrialSetup,
    trials: Trials,
    n_trials: int,
    timeout: float | None,
    on_interrupt: str,
    progress: Callable[[float, float], None] | None,
) -> bool:
    """Do trials until there are enough, and return whether Ctrl-C ended them."""
    start = time.monotonic()
    while trials.n_done < n_trials and (timeout is None or not trials.n_done or time.monotonic() - start < timeout):
        done = trials.n_done

        def on_share(share: float, done: int = done) -> None:
            if progress is not None:
                progress(done + share, n_trials)

        trial = None
        try:
            trial, parameters = trials.ask(setup.space)
            trials.tell(trial, setup.run(done, parameters, on_share))
        except KeyboardInterrupt:
            if trial is not None and trials.n_done == done:
                trials.give_up(trial)
            if on_interrupt == "raise" or not trials.n_done:
                raise
            return True
        except BaseException:
            if trial is not None:
                trials.give_up(trial)
            raise
        on_share(1.0)
    return False


def _result(
    setup: TrialSetup,
    trials: Trials,
    reporters: Reporters | None,
    rule: Acceptance,
    budget_us: float,
    batch: int,
    interrupted: bool,
) -> TuneResult:
    """Choose a model, and measure it and the front on data that chose nothing."""
    points, chosen, within = _choose(setup, trials, budget_us)
    front = front_of(points)
    kept = {point.name for point in front} | {chosen.name}
    models = {point.name: trials.model(point) for point in front_of(trials.points) if point.name in kept}
    models.setdefault(chosen.name, trials.model(chosen))
    front = [point for point in front if point.name in models]
    comparisons: dict[str, Comparison] = {}
    proofs: dict[str, Proof] = {}
    tested: dict[str, float] = {}
    if reporters is not None:
        values = _values_on(setup, trials, reporters.data, models)
        others = _others(trials.points[0], chosen, front)
        comparisons = {
            role: compare_values(values[other], values[chosen.name], str(setup.measure), seed=setup.seed)
            for role, other in others.items()
        }
        proofs = {
            role: _proof(values[other], values[chosen.name], rule, str(setup.measure)) for role, other in others.items()
        }
        tested = {name: found[str(setup.measure)] for name, found in values.items()}
    if reporters is not None and reporters.kind == "test":
        front = [point.with_(test=tested[point.name]) for point in front]
        chosen = chosen.with_(test=tested[chosen.name])
        known = {point.name: point for point in front}
        points = [known.get(point.name, point) for point in points]
    note = {**chosen.as_dict(), "budget_us": budget_us, "batch": batch, "measure": str(setup.measure)}
    return TuneResult(
        ensemble=models[chosen.name].with_metadata(tune=note),
        within_budget=within,
        chosen=chosen,
        front=tuple(front),
        models=models,
        points=tuple(points),
        comparisons=comparisons,
        budget_us=budget_us,
        batch=batch,
        measure=str(setup.measure),
        convention=setup.convention,
        n_trials=trials.n_done,
        interrupted=interrupted,
        proofs=proofs,
        reported=tested.get(chosen.name),
        reported_on=None if reporters is None else reporters.kind,
        n_reporting=0 if reporters is None else reporters.data.n_queries,
    )


def _values_on(
    setup: TrialSetup, trials: Trials, data: Dataset, models: Mapping[str, Ensemble]
) -> dict[str, Evaluation]:
    """Return the measures of the models and of the default on a data set, by name."""
    default = trials.points[0]
    measured = {**models, default.name: trials.model(default)}
    return {
        name: evaluate(model, data, setup.measure, convention=setup.convention, n_threads=setup.n_threads)
        for name, model in measured.items()
    }


def _others(default: Point, chosen: Point, front: Sequence[Point]) -> dict[str, str]:
    """Return the names of the default and of the best of all, where these are other models than the chosen one."""
    others = {"default": default.name, "best": max(front, key=lambda point: point.valid).name}
    if others["best"] == default.name:
        del others["best"]
    return {role: name for role, name in others.items() if name != chosen.name}


def _proof(other: Evaluation, chosen: Evaluation, rule: Acceptance, measure: str) -> Proof:
    """Return what the queries show of the loss of the chosen model against another."""
    one, two = (weighted_values(found.per_query[measure], found.query_weights) for found in (other, chosen))
    return Proof.of(one, two, rule, measure=measure)


def _choose(setup: TrialSetup, trials: Trials, budget_us: float) -> tuple[list[Point], Point, bool]:
    """Choose the best model within the budget by times that are taken once more.

    The fastest of many measurements is a lucky one. When the winner is beyond the budget the second time, the next
    best one is tried.

    Returns
    -------
    points : list of Point
        All points, with the new times.
    chosen : Point
        The best within the budget; the fastest when none is.
    within : bool
        Whether it is within the budget.
    """
    points = {point.name: point for point in trials.points}
    front = front_of(trials.points)
    for point in reversed(front):
        if point.us_per_doc <= budget_us:
            again = point.with_(us_per_doc=setup.time(trials.model(point)))
            points[point.name] = again
            if again.us_per_doc <= budget_us:
                return list(points.values()), again, True
    fastest = min((points[point.name] for point in front), key=lambda point: point.us_per_doc)
    return list(points.values()), fastest, False
