"""The search of `tune`: what may be tried, which trial comes next (Optuna), and the models found as points."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.errors import ModelError, RankwoodError
from rankwood.lab.drawing import pareto_front
from rankwood.lab.extra import Held, locked, need
from rankwood.model.ensemble import Ensemble
from rankwood.training.driver import deferred_interrupt

if TYPE_CHECKING:
    from optuna.trial import Trial


# What a search may try: learners, the shape and number of their trees, and how fast they learn.


LEARNERS = ("lambdamart", "xdart")
SHAPES = ("plain", "shallow", "balanced")  # of trees: as they come; Asadi & Lin's lambda; their alpha

Range = tuple[float, float]


@dataclass(frozen=True)
class SearchSpace:
    """Ranges of what is searched, ends included. Numbers of trees and leaves and learning rates are drawn by ratio.

    learners               "lambdamart", "xdart" or both
    n_trees                trees at most; training stops early after `patience` trees that did not help
    learning_rate          of LambdaMART; X-DART, which drops trees, needs a larger one: `xdart_learning_rate`
    depth_relaxation       of trees that are grown shallow; `balance` of those that are pruned while boosting
                           (Asadi & Lin 2013). A trial does one of the two, or neither

    >>> SearchSpace(n_trees=(50, 200)).defaults()[0]["n_trees"]
    200
    """

    learners: tuple[str, ...] = LEARNERS
    n_trees: Range = (50, 1000)
    n_leaves: Range = (8, 128)
    learning_rate: Range = (0.03, 0.3)
    xdart_learning_rate: Range = (0.1, 1.0)
    min_docs_per_leaf: Range = (5, 200)
    depth_relaxation: Range = (0.2, 0.9)
    balance: Range = (0.05, 0.5)
    patience: int = 50

    def __post_init__(self) -> None:
        object.__setattr__(self, "learners", tuple(dict.fromkeys(self.learners)))
        unknown = [name for name in self.learners if name not in LEARNERS]
        if unknown or not self.learners:
            raise RankwoodError(f"learners to search are {' and '.join(LEARNERS)}, got {list(self.learners)}")
        for name in ("n_trees", "n_leaves", "min_docs_per_leaf", "learning_rate", "xdart_learning_rate",
                     "depth_relaxation", "balance"):  # fmt: skip
            low, high = getattr(self, name)
            if not 0 < low <= high:
                raise RankwoodError(f"{name} must be a range (lowest, highest) of numbers above 0, got {(low, high)}")

    def suggest(self, trial: Trial) -> dict[str, Any]:
        """The parameters of a trial."""
        learner = trial.suggest_categorical("learner", list(self.learners))
        shape = trial.suggest_categorical("shape", list(SHAPES))
        found: dict[str, Any] = {"learner": learner, "shape": shape}
        for name in ("n_trees", "n_leaves", "min_docs_per_leaf"):
            low, high = getattr(self, name)
            found[name] = trial.suggest_int(name, int(low), int(high), log=True)
        rate = "learning_rate" if learner == "lambdamart" else "xdart_learning_rate"
        found[rate] = trial.suggest_float(rate, *getattr(self, rate), log=True)
        if shape != "plain":
            name = "depth_relaxation" if shape == "shallow" else "balance"
            found[name] = trial.suggest_float(name, *getattr(self, name))
        return found

    def defaults(self) -> list[dict[str, Any]]:
        """Tried first: the defaults of every learner, as far as they lie within the ranges."""
        from rankwood.training.estimators import XDART, LambdaMART

        found = []
        for learner in self.learners:
            ranker = LambdaMART() if learner == "lambdamart" else XDART()
            rate = "learning_rate" if learner == "lambdamart" else "xdart_learning_rate"
            parameters: dict[str, Any] = {"learner": learner, "shape": "plain"}
            for name in ("n_trees", "n_leaves", "min_docs_per_leaf"):
                parameters[name] = int(_within(getattr(ranker, name), getattr(self, name)))
            parameters[rate] = _within(ranker.learning_rate, getattr(self, rate))
            found.append(parameters)
        return found

    def ranker(self, parameters: Mapping[str, Any], **fixed: Any) -> Any:
        """The learner that the parameters of a trial mean.

        >>> SearchSpace().ranker(SearchSpace().defaults()[0]).n_leaves
        64
        """
        from rankwood.training.estimators import XDART, LambdaMART

        given = {name: value for name, value in parameters.items() if name not in ("learner", "shape")}
        learner = LambdaMART if parameters["learner"] == "lambdamart" else XDART
        if learner is XDART:
            given["learning_rate"] = given.pop("xdart_learning_rate")
        return learner(**given, early_stopping_rounds=self.patience, **fixed)


def _within(value: float, limits: Range) -> float:
    return min(max(value, limits[0]), limits[1])


# Models that a search found, as points: what they are worth, and what they cost.


@dataclass(frozen=True)
class Point:
    """One model of a search.

    trial, parameters    the training that it comes from
    rate, variant        share of the trees that CLEaVER took out, and how the rest was re-weighed; 0 and "whole": none
    valid, test          the measure on validation data; on test data, None when not measured
    us_per_doc           microseconds per document, as measured
    """

    trial: int
    parameters: Mapping[str, Any]
    rate: float
    variant: str
    n_trees: int
    n_nodes: int
    valid: float
    us_per_doc: float
    test: float | None = None

    @property
    def name(self) -> str:
        """Of its file, and in tables; other rates, other names.

        >>> [Point(3, {}, rate, "refit", 1, 1, 0.5, 1.0).name for rate in (0.05, 0.5, 0.504)]
        ['trial-003-05', 'trial-003-50', 'trial-003-50.4']
        """
        if not self.rate:
            return f"trial-{self.trial:03d}"
        whole, dot, rest = self.percent.partition(".")
        return f"trial-{self.trial:03d}-{whole:0>2}{dot}{rest}"

    @property
    def percent(self) -> str:
        """The rate in percent with all its digits, and no more: 7 for 0.07, which floats would make
        7.000000000000001."""
        return f"{(100 * Decimal(repr(float(self.rate)))).normalize():f}"

    def with_(self, **changes: Any) -> Point:
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "parameters": dict(self.parameters)}


def front_of(points: Sequence[Point]) -> list[Point]:
    """The points that no other beats in measure and time at once, the fastest first.

    >>> def point(valid, us):
    ...     return Point(0, {}, 0.0, "whole", 1, 1, valid, us)
    >>> [p.us_per_doc for p in front_of([point(0.5, 3.0), point(0.4, 1.0), point(0.4, 2.0), point(0.6, 3.0)])]
    [1.0, 3.0]
    """
    places = pareto_front([one.us_per_doc for one in points], [one.valid for one in points])
    return [points[place] for place in places]


def best_within(points: Sequence[Point], budget_us: float) -> Point:
    """The best point within the budget; the fastest of all when there is none."""
    within = [point for point in points if point.us_per_doc <= budget_us]
    if within:
        return max(within, key=lambda one: (one.valid, -one.us_per_doc))
    return min(points, key=lambda one: one.us_per_doc)


# The trials of a search: which parameters come next (Optuna), and what is kept of those that are done.


STUDY_NAME = "rankwood"
TUNING, STUDY_FILES = "tuning", "keeping a study in a file"  # what needs packages of the extra
RANDOM_TRIALS = 10  # before the sampler learns from what it saw, the defaults among them
_POINTS, _IDENTITY = "points", "rankwood"


@contextmanager
def only_search_in(study: Path | None) -> Iterator[None]:
    """Have the file of a study for oneself while the block runs; None is in memory, and nobody else's.

    Two searches would delete each other's models. The lock lies among the models: Optuna locks the file of the study
    itself, by a file FILE.lock beside it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "study.log"
    >>> with only_search_in(path), only_search_in(path):
    ...     pass  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    rankwood.errors.RankwoodError: another search is using the study ...: wait for it, or choose another file
    """
    if study is None:
        yield
        return
    folder = models_of(study.resolve())  # links are other names of the same study
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / "search.lock", STUDY_FILES))
        except Held:
            raise RankwoodError(
                f"another search is using the study {study}: wait for it, or choose another file"
            ) from None
        except OSError as error:
            raise RankwoodError(
                f"the study {study} cannot be locked ({error.strerror}): choose a file on another file system"
            ) from None
        yield


def models_of(study: Path) -> Path:
    """The folder of the models of a study that is kept in a file."""
    return study.with_name(study.name + ".models")


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna's log and its warnings of experimental features are not for users of rankwood."""
    optuna = need("optuna", TUNING)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


class Study:
    """Trials that are done and the models worth keeping, in memory or in a file that a later search goes on from.

    The file is an Optuna journal with a study named "rankwood"; models of the front lie in the folder FILE.models.
    A trial's values are those of its best point within the budget, or of its fastest: what the sampler goes by.
    """

    def __init__(self, path: Path | None, identity: Mapping[str, str], budget_us: float, seed: int) -> None:
        self._optuna = need("optuna", TUNING)
        self._budget, self._seed, self._path = budget_us, seed, path
        self._models = _Models(None if path is None else models_of(path))
        self._study = self._open(path)
        self._check(identity)
        self.points: list[Point] = []
        for trial in self._done():
            self.points += [Point(**point) for point in trial.user_attrs[_POINTS]]

    @property
    def n_done(self) -> int:
        return len(self._done())

    def ask(self, space: SearchSpace) -> tuple[Any, dict[str, Any]]:
        """The next trial, and its parameters: first the defaults, then what the sampler finds promising."""
        n_done = self.n_done
        self._study.sampler = self._sampler(n_done)
        defaults = space.defaults()
        if n_done < len(defaults):
            trial = self._fixed(defaults[n_done])
        else:
            trial = self._study.ask()
        return trial, space.suggest(trial)

    def tell(self, trial: Any, found: Sequence[tuple[Point, Ensemble]]) -> None:
        """Keep what a trial found. Ctrl-C has to wait, so that file and models agree."""
        points = [point for point, _ in found]
        with deferred_interrupt() as pressed:
            for point, model in found:
                self._models.add(point.name, model)
            trial.set_user_attr(_POINTS, [point.as_dict() for point in points])
            shown = best_within(points, self._budget)
            self._study.tell(trial, [shown.valid, shown.us_per_doc])
            self.points += points
            self._models.keep_only({point.name for point in front_of(self.points)} | {self.points[0].name})
        if pressed():
            raise KeyboardInterrupt

    def give_up(self, trial: Any) -> None:
        """A trial that was not finished."""
        self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)

    def model(self, point: Point) -> Ensemble:
        """Of a point of the front, or of the first of all."""
        return self._models.get(point.name)

    def _done(self) -> list[Any]:
        complete = (self._optuna.trial.TrialState.COMPLETE,)
        return [trial for trial in self._study.get_trials(deepcopy=False, states=complete)
                if _POINTS in trial.user_attrs]  # fmt: skip

    def _fixed(self, parameters: dict[str, Any]) -> Any:
        """A trial of given parameters. A kill may have left one waiting: it is not asked for twice."""
        waiting = (self._optuna.trial.TrialState.WAITING,)
        if not self._study.get_trials(deepcopy=False, states=waiting):
            self._study.enqueue_trial(parameters)
        return self._study.ask()

    def _sampler(self, n_done: int) -> Any:
        """TPE for two objectives. Seeded by the number of trials done, so a resumed search goes on as it would have."""
        seed = int(np.random.SeedSequence([self._seed, n_done]).generate_state(1)[0])
        return self._optuna.samplers.TPESampler(
            n_startup_trials=RANDOM_TRIALS,
            multivariate=True,
            group=True,
            constant_liar=False,
            constraints_func=self._excess,
            seed=seed,
        )

    def _excess(self, trial: Any) -> tuple[float]:
        """How far the best of a trial is beyond the budget."""
        points = [Point(**point) for point in trial.user_attrs.get(_POINTS, [])]
        return (best_within(points, self._budget).us_per_doc / self._budget - 1.0 if points else 0.0,)

    def _open(self, path: Path | None) -> Any:
        storage = None
        if path is not None:
            from optuna.storages import JournalStorage
            from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

            if path.exists() and not _is_journal(path):
                raise RankwoodError(f"{path} is not the file of a study: choose another name, and it will be made")
            storage = JournalStorage(JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path))))
        return self._optuna.create_study(
            study_name=STUDY_NAME, storage=storage, directions=["maximize", "minimize"], load_if_exists=True
        )

    def _check(self, identity: Mapping[str, str]) -> None:
        known = self._study.user_attrs.get(_IDENTITY)
        if known is None:
            self._study.set_user_attr(_IDENTITY, dict(identity))
            return
        other = [name for name in {**identity, **known} if known.get(name) != identity.get(name)]
        if other:
            raise RankwoodError(
                f"the study {self._path} was made with other {', other '.join(other)}: choose another file, or delete "
                f"it and the folder {self._models.folder} to start anew"
            )


class _Models:
    """Models by name, in memory or as files of a folder."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._held: dict[str, Ensemble] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def add(self, name: str, model: Ensemble) -> None:
        self._held[name] = model
        if self.folder is not None:
            model.save(self.folder / f"{name}.rw")

    def get(self, name: str) -> Ensemble:
        if name not in self._held and self.folder is not None:
            path = self.folder / f"{name}.rw"
            if not path.exists():
                raise ModelError(f"{path}, a model of the study, is gone: delete study and models to start anew")
            self._held[name] = Ensemble.load(path)
        return self._held[name]

    def keep_only(self, names: set[str]) -> None:
        self._held = {name: model for name, model in self._held.items() if name in names}
        if self.folder is not None:
            for path in self.folder.glob("trial-*.rw"):
                if path.stem not in names:
                    path.unlink()


def _is_journal(path: Path) -> bool:
    """Whether a file is empty or begins as Optuna's journals do."""
    with open(path, "rb") as file:
        start = file.read(16)
    return not start or start.startswith(b'{"op_code"')
