"""The search of `tune`: the space of parameters, the models found as points, and the trials (Optuna)."""

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
from rankwood.training.names import learner_class

if TYPE_CHECKING:
    from optuna.trial import Trial

# The space of parameters: learners, the number and shape of their trees, and how fast they learn.


LEARNERS = ("lambdamart", "xdart")
SHAPES = ("plain", "shallow", "balanced")  # of trees: as they grow; by Asadi & Lin's lambda; by their alpha

Range = tuple[float, float]


@dataclass(frozen=True)
class SearchSpace:
    """Ranges of the parameters that `tune` searches, each (lowest, highest) with both ends included.

    Numbers of trees, leaves and documents and learning rates are drawn on a logarithmic scale.

    Parameters
    ----------
    learners : tuple of str, default ("lambdamart", "xdart")
        Learners to try.
    n_trees : (int, int), default (50, 1000)
        Most trees of a model; training stops early.
    n_leaves : (int, int), default (8, 128)
        Most leaves of a tree.
    learning_rate : (float, float), default (0.03, 0.3)
        Learning rate of LambdaMART.
    xdart_learning_rate : (float, float), default (0.1, 1.0)
        Learning rate of X-DART, which drops trees and so needs a larger one.
    min_docs_per_leaf : (int, int), default (5, 200)
        Fewest documents of a leaf.
    depth_relaxation : (float, float), default (0.2, 0.9)
        Lambda of Asadi & Lin (2013), in trials whose trees are grown shallow.
    balance : (float, float), default (0.05, 0.5)
        Alpha of the same paper, in trials whose trees are pruned while boosting. A trial has one of the two or neither.
    patience : int, default 50
        Trees without improvement on validation data before training stops.

    Examples
    --------
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
        """Return parameters that the sampler of a trial chooses.

        Parameters
        ----------
        trial : optuna.trial.Trial

        Returns
        -------
        dict
            Learner, shape of its trees, and the parameters that go with them.
        """
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
        """Return the parameters that are tried first: the defaults of every learner, moved into the ranges."""
        found = []
        for learner in self.learners:
            ranker = learner_class(learner)()
            rate = "learning_rate" if learner == "lambdamart" else "xdart_learning_rate"
            parameters: dict[str, Any] = {"learner": learner, "shape": "plain"}
            for name in ("n_trees", "n_leaves", "min_docs_per_leaf"):
                parameters[name] = int(_within(getattr(ranker, name), getattr(self, name)))
            parameters[rate] = _within(ranker.learning_rate, getattr(self, rate))
            found.append(parameters)
        return found

    def ranker(self, parameters: Mapping[str, Any], **fixed: Any) -> Any:
        """Return the learner that has the parameters of a trial.

        Parameters
        ----------
        parameters : mapping
            As `suggest` and `defaults` return them.
        **fixed
            Further parameters of the learner.

        Examples
        --------
        >>> SearchSpace().ranker(SearchSpace().defaults()[0]).n_leaves
        64
        """
        given = {name: value for name, value in parameters.items() if name not in ("learner", "shape")}
        if "xdart_learning_rate" in given:
            given["learning_rate"] = given.pop("xdart_learning_rate")
        return learner_class(parameters["learner"])(**given, early_stopping_rounds=self.patience, **fixed)


def _within(value: float, limits: Range) -> float:
    return min(max(value, limits[0]), limits[1])


# The models that a search found, as points of measure and time.


@dataclass(frozen=True)
class Point:
    """One model of a search.

    Parameters
    ----------
    trial : int
        Number of the trial that trained it.
    parameters : mapping
        Parameters of the trial.
    rate : float
        Share of the trees that CLEaVER pruned; 0 for the whole model.
    variant : str
        How CLEaVER re-weighed the rest; "whole" for the whole model.
    n_trees, n_nodes : int
        Size.
    valid : float
        The measure on validation data.
    us_per_doc : float
        Measured microseconds per document.
    test : float, optional
        The measure on test data.
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
        """Name in tables and of the model's file, different for different rates.

        Examples
        --------
        >>> [Point(3, {}, rate, "refit", 1, 1, 0.5, 1.0).name for rate in (0.05, 0.5, 0.504)]
        ['trial-003-05', 'trial-003-50', 'trial-003-50.4']
        """
        if not self.rate:
            return f"trial-{self.trial:03d}"
        whole, dot, rest = self.percent.partition(".")
        return f"trial-{self.trial:03d}-{whole:0>2}{dot}{rest}"

    @property
    def percent(self) -> str:
        """The rate in percent, with all its digits and no more."""
        # Floats would make 7.000000000000001 of 0.07.
        return f"{(100 * Decimal(repr(float(self.rate)))).normalize():f}"

    def with_(self, **changes: Any) -> Point:
        """Return a copy with other values of some fields."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "parameters": dict(self.parameters)}


def front_of(points: Sequence[Point]) -> list[Point]:
    """Return the Pareto-optimal points, fastest first: no other point is at least as good in less time.

    Examples
    --------
    >>> def point(valid, us):
    ...     return Point(0, {}, 0.0, "whole", 1, 1, valid, us)
    >>> [p.us_per_doc for p in front_of([point(0.5, 3.0), point(0.4, 1.0), point(0.4, 2.0), point(0.6, 3.0)])]
    [1.0, 3.0]
    """
    places = pareto_front([one.us_per_doc for one in points], [one.valid for one in points])
    return [points[place] for place in places]


def best_within(points: Sequence[Point], budget_us: float) -> Point:
    """Return the best point within the budget; the fastest of all when there is none."""
    within = [point for point in points if point.us_per_doc <= budget_us]
    if within:
        return max(within, key=lambda one: (one.valid, -one.us_per_doc))
    return min(points, key=lambda one: one.us_per_doc)


# The trials: Optuna says which parameters come next; points and models of finished trials are kept, perhaps in a file.


STUDY_NAME = "rankwood"
TUNING, STUDY_FILES = "tuning", "keeping a study in a file"  # what needs packages of the extra
RANDOM_TRIALS = 10  # before the sampler learns from what it saw, the defaults among them
_POINTS, _IDENTITY = "points", "rankwood"


@contextmanager
def only_search_in(study: Path | None) -> Iterator[None]:
    """Lock the file of a study while the block runs, as two searches would delete each other's models.

    The lock lies among the models, since Optuna uses FILE.lock to lock the file itself.

    Parameters
    ----------
    study : Path or None
        The file; None is a study in memory, which needs no lock.

    Examples
    --------
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
    """Return the folder of the models of a study that is kept in a file."""
    return study.with_name(study.name + ".models")


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Silence Optuna's log and its warnings of experimental features while the block runs."""
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


class Trials:
    """The finished trials and the models of the front, in memory or in a file that a later search goes on from.

    The file is an Optuna journal with a study named "rankwood"; models are in the folder FILE.models. The sampler sees
    of a trial its best point within the budget, or its fastest point when none is.

    Parameters
    ----------
    path : Path or None
        The file; None keeps everything in memory.
    identity : mapping of str
        What all trials have in common; a file with another identity is refused.
    budget_us : float
        Microseconds per document.
    seed : int
        Seed of the sampler.

    Attributes
    ----------
    points : list of Point
        The points of all finished trials.
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
        """Number of finished trials."""
        return len(self._done())

    def ask(self, space: SearchSpace) -> tuple[Any, dict[str, Any]]:
        """Return the next trial and its parameters: the defaults first, then what the sampler finds promising."""
        n_done = self.n_done
        self._study.sampler = self._sampler(n_done)
        defaults = space.defaults()
        if n_done < len(defaults):
            trial = self._fixed(defaults[n_done])
        else:
            trial = self._study.ask()
        return trial, space.suggest(trial)

    def tell(self, trial: Any, found: Sequence[tuple[Point, Ensemble]]) -> None:
        """Keep the points and models of a trial; Ctrl-C waits meanwhile, so that file and models agree."""
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
        """Mark a trial as not finished."""
        self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)

    def model(self, point: Point) -> Ensemble:
        """Return the model of a point of the front, or of the first point of all."""
        return self._models.get(point.name)

    def _done(self) -> list[Any]:
        """Finished trials."""
        complete = (self._optuna.trial.TrialState.COMPLETE,)
        return [trial for trial in self._study.get_trials(deepcopy=False, states=complete)
                if _POINTS in trial.user_attrs]  # fmt: skip

    def _fixed(self, parameters: dict[str, Any]) -> Any:
        """Return a trial with given parameters."""
        # A kill may have left it waiting in the file: then it is not queued twice.
        waiting = (self._optuna.trial.TrialState.WAITING,)
        if not self._study.get_trials(deepcopy=False, states=waiting):
            self._study.enqueue_trial(parameters)
        return self._study.ask()

    def _sampler(self, n_done: int) -> Any:
        """Return the TPE sampler, seeded by the number of finished trials, so that a search can be resumed."""
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
        """Return how far the best point of a trial is beyond the budget, which is Optuna's form of a constraint."""
        points = [Point(**point) for point in trial.user_attrs.get(_POINTS, [])]
        return (best_within(points, self._budget).us_per_doc / self._budget - 1.0 if points else 0.0,)

    def _open(self, path: Path | None) -> Any:
        """Open or make the Optuna study."""
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
        """Note the identity in a new study, or raise an error when that of a resumed one is another."""
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
    """Models by name, in memory and, with a folder, as files in it."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._held: dict[str, Ensemble] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def add(self, name: str, model: Ensemble) -> None:
        """Keep a model."""
        self._held[name] = model
        if self.folder is not None:
            model.save(self.folder / f"{name}.rw")

    def get(self, name: str) -> Ensemble:
        """Return a model."""
        if name not in self._held and self.folder is not None:
            path = self.folder / f"{name}.rw"
            if not path.exists():
                raise ModelError(f"{path}, a model of the study, is gone: delete study and models to start anew")
            self._held[name] = Ensemble.load(path)
        return self._held[name]

    def keep_only(self, names: set[str]) -> None:
        """Drop all models but these."""
        self._held = {name: model for name, model in self._held.items() if name in names}
        if self.folder is not None:
            for path in self.folder.glob("trial-*.rw"):
                if path.stem not in names:
                    path.unlink()


def _is_journal(path: Path) -> bool:
    """Whether a file is empty or begins like a journal of Optuna."""
    with open(path, "rb") as file:
        start = file.read(16)
    return not start or start.startswith(b'{"op_code"')
