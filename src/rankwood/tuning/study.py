"""The trials of a search: which parameters come next (Optuna), and what is kept of those that are done."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.ensemble import Ensemble
from rankwood.errors import MissingPackageError, ModelError, RankwoodError
from rankwood.learners.interrupt import deferred_interrupt
from rankwood.tuning.points import Point, best_within, pareto_front
from rankwood.tuning.space import SearchSpace

STUDY_NAME = "rankwood"
RANDOM_TRIALS = 10  # before the sampler learns from what it saw, the defaults among them
_POINTS, _IDENTITY = "points", "rankwood"


def import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise MissingPackageError("optuna", "tuning", "tune") from None
    return optuna


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna's log and its warnings of experimental features are not for users of rankwood."""
    optuna = import_optuna()
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
        self._optuna = import_optuna()
        self._budget, self._seed, self._path = budget_us, seed, path
        self._models = _Models(None if path is None else path.with_name(path.name + ".models"))
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
            self._models.keep_only({point.name for point in pareto_front(self.points)} | {self.points[0].name})
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


def digest(data: Dataset) -> str:
    """Short name of what is in the data: all that a model or its measure may depend on.

    Every part is announced by its type and shape, so that no two data sets feed the same bytes.
    """
    found = hashlib.sha256()
    for array in (data.X, data.y, data.offsets, data.order, data.weights, data.query_weights):
        if array is None:
            found.update(b"none;")
        else:
            found.update(f"{array.dtype.str} {array.shape};".encode())
            found.update(np.ascontiguousarray(array).data)
    for names in (data.doc_ids, data.feature_names):
        if names is None:
            found.update(b"none;")
        else:
            found.update(f"texts {len(names)};".encode())
            for text in map(str, names):
                found.update(f"{len(text)}:{text}".encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:20]
