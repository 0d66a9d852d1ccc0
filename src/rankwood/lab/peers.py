"""Learners of other libraries, as a sweep trains them: LightGBM, XGBoost, CatBoost and ydf.

    Task ── ready ──> a function that trains ── called ──> the peer's model ── imported ──> Ensemble
            the data in the peer's own form    what is timed                └── own ──> the peer's own predict

Parameters have the peer's own names and are handed on as they are. The sweep adds the seed, the threads and what is
watched on validation data: nDCG with gain 2^label - 1, which all four can compute. Models are imported exactly, so
quality, trees, leaves and scoring are of the same trees that the peer predicts with.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.data.synthetic import make_ranking
from rankwood.errors import DataError, RankwoodError, one_line
from rankwood.formats.registry import load_model
from rankwood.model.ensemble import Ensemble
from rankwood.scoring.timing import OtherModel
from rankwood.system import resolve_threads


@dataclass(frozen=True)
class Task:
    """A training that a sweep asks a peer for.

    Parameters
    ----------
    train, valid : Dataset
        Validation data stops the training early where the parameters say so.
    parameters : mapping
        By the peer's own names.
    seed : int
    n_threads : int, optional
        All CPUs unless given.
    cutoff : int, default 10
        Ranks of nDCG that count on validation data.
    quiet : bool, default True
        Without it a peer prints warnings, of unknown parameters for instance.
    """

    train: Dataset
    valid: Dataset
    parameters: Mapping[str, Any]
    seed: int = 0
    n_threads: int | None = None
    cutoff: int = 10
    quiet: bool = True

    @property
    def threads(self) -> int:
        """Number of threads."""
        return resolve_threads(self.n_threads)


@dataclass(frozen=True)
class Peer:
    """A library with rankers of its own.

    Parameters
    ----------
    package : str
        What is imported and installed.
    ready : callable
        Takes the package and a `Task`, converts the data, and returns the function that trains.
    predict : callable
        Takes the peer's model, a matrix and a number of threads.
    trees : (str, int)
        The parameter that says how many trees there are, and its default.
    seed, threads, watched : tuple of str
        Names of parameters that the sweep gives itself.
    """

    package: str
    ready: Callable[[Any, Task], Callable[[], Any]]
    predict: Callable[[Any, Any, int], Any]
    trees: tuple[str, int]
    seed: tuple[str, ...]
    threads: tuple[str, ...]
    watched: tuple[str, ...] = field(default=())

    @property
    def elsewhere(self) -> dict[str, str]:
        """Where the parameters are given that are not the peer's."""
        places = {"seeds": self.seed, "the option --threads": self.threads, "measures": self.watched}
        return {name: place for place, names in places.items() for name in names}

    def load(self) -> Any:
        """Import the package, or say in a sentence that it is missing."""
        try:
            return importlib.import_module(self.package)
        except ImportError:
            raise RankwoodError(
                f"the learner {self.package} of a sweep needs the package {self.package}: pip install {self.package}"
            ) from None

    @property
    def version(self) -> str:
        """Version of the package."""
        return str(self.load().__version__)

    def training(self, task: Task) -> Callable[[], Any]:
        """Convert the data to the peer's own form, and return the function that trains on them.

        Parameters
        ----------
        task : Task
        """
        for data in (task.train, task.valid):
            if data.weights is not None or data.query_weights is not None:
                raise DataError("the data have weights, which each peer takes otherwise: compare peers without them")
        return self.ready(self.load(), task)

    def imported(self, model: Any, data: Dataset) -> Ensemble:
        """Return the peer's model as an Ensemble for data with these features."""
        # Peers count the features from the left; names that they made up must not be taken for those of the data.
        found = load_model(model, n_features=data.n_features)
        return found.replace(feature_names=data.feature_names)

    def own(self, model: Any) -> OtherModel:
        """Return the peer's model to be timed by its own predict."""
        return OtherModel(self.package, partial(self.predict, model))

    def check(self, parameters: Mapping[str, Any]) -> None:
        """Refuse parameters that the peer does not know or take, by a training of one tree on few documents.

        Parameters
        ----------
        parameters : mapping
        """
        few = make_ranking(n_queries=20, docs_per_query=10, n_features=4, seed=0)
        task = Task(few, few, {**parameters, self.trees[0]: 1}, n_threads=1, quiet=False)
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                self.training(task)()
        except RankwoodError:
            raise
        except Exception as error:  # whatever the peer raises
            raise RankwoodError(f"{self.package} refuses its parameters: {one_line(error, 300)}") from None
        text = said.getvalue() + "".join(str(warning.message) for warning in warned)
        unknown = re.search(r'Unknown parameter: (\S+)|Parameters: \{ (".*?) \} are not used', text)
        if unknown is not None:
            name = unknown[1] or unknown[2].replace('"', "")
            raise RankwoodError(f"{self.package} has no parameter {name}")


# The data as all peers take them: query by query.


def _in_order(data: Dataset) -> tuple[Any, Any, Any]:
    """Features, labels, and sizes of queries, one query after the other."""
    data = data.in_memory()
    X, y = (data.X, data.y) if data.order is None else (data.X[data.order], data.y[data.order])
    return X, y, np.diff(data.offsets)


# LightGBM. It looks at validation data only to stop early, which its DART cannot.

_LIGHTGBM_STOPS = ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change")


def _lightgbm(lgb: Any, task: Task) -> Callable[[], Any]:
    parameters = {
        "objective": "lambdarank",
        **task.parameters,
        "metric": "ndcg",
        "eval_at": [task.cutoff],
        "seed": task.seed,
        "num_threads": task.threads,
        "verbosity": -1 if task.quiet else 0,
    }
    X, y, sizes = _in_order(task.train)
    train = lgb.Dataset(X, y, group=sizes, params=parameters).construct()
    watched = []
    if any(name in parameters for name in _LIGHTGBM_STOPS):
        X, y, sizes = _in_order(task.valid)
        watched = [lgb.Dataset(X, y, group=sizes, reference=train, params=parameters).construct()]
    return lambda: lgb.train(parameters, train, valid_sets=watched)


def _lightgbm_scores(model: Any, X: Any, n_threads: int) -> Any:
    return model.predict(X, num_threads=n_threads)


# XGBoost. The number of trees and of rounds without improvement are arguments of its function `train`.


def _xgboost(xgb: Any, task: Task) -> Callable[[], Any]:
    parameters = {"objective": "rank:ndcg", **task.parameters, "seed": task.seed, "nthread": task.threads}
    n_rounds = parameters.pop("num_boost_round", 10)
    patience = parameters.pop("early_stopping_rounds", None)
    parameters["eval_metric"] = f"ndcg@{task.cutoff}"
    parameters["verbosity"] = 0 if task.quiet else 1
    X, y, sizes = _in_order(task.train)
    # Only the method of histograms takes data that are in bins already.
    in_bins = parameters.get("tree_method", "auto") in ("auto", "hist")
    kind = xgb.QuantileDMatrix if in_bins else xgb.DMatrix
    how = {"max_bin": parameters.get("max_bin", 256)} if in_bins else {}
    train = kind(X, y, group=sizes, nthread=task.threads, **how)
    watched = []
    if patience is not None:
        X, y, sizes = _in_order(task.valid)
        if in_bins:
            how["ref"] = train
        watched = [(kind(X, y, group=sizes, nthread=task.threads, **how), "valid")]

    def run() -> Any:
        model = xgb.train(
            parameters, train, n_rounds, evals=watched, early_stopping_rounds=patience, verbose_eval=False
        )
        return model if patience is None else model[: model.best_iteration + 1]

    return run


def _xgboost_scores(model: Any, X: Any, n_threads: int) -> Any:
    model.set_param({"nthread": n_threads})
    return model.inplace_predict(X)


# CatBoost. Its trees are oblivious: all nodes of a level ask the same.

_CATBOOST_STOPS = ("early_stopping_rounds", "od_type", "od_wait", "od_pval", "use_best_model")


def _catboost(catboost: Any, task: Task) -> Callable[[], Any]:
    parameters = {
        "loss_function": "YetiRank",
        "logging_level": "Silent",
        "allow_writing_files": False,
        **task.parameters,
        "eval_metric": f"NDCG:top={task.cutoff};type=Exp",
        "random_seed": task.seed,
        "thread_count": task.threads,
    }

    def pool(data: Dataset) -> Any:
        X, y, sizes = _in_order(data)
        return catboost.Pool(X, y, group_id=np.repeat(np.arange(len(sizes)), sizes))

    train = pool(task.train)
    watched = pool(task.valid) if any(name in parameters for name in _CATBOOST_STOPS) else None
    return lambda: catboost.CatBoost(parameters).fit(train, eval_set=watched)


def _catboost_scores(model: Any, X: Any, n_threads: int) -> Any:
    return model.predict(X, thread_count=n_threads)


# ydf. It always wants validation data, and would take some of the training data otherwise. Early stopping is on unless
# early_stopping = "NONE".

_YDF_BINS = ("discretize_numerical_columns", "num_discretized_numerical_bins")


def _ydf(ydf: Any, task: Task) -> Callable[[], Any]:
    parameters = {"ndcg_truncation": task.cutoff, **task.parameters}
    bins = {name: parameters.pop(name) for name in _YDF_BINS if name in parameters}  # of data, not of learners
    numbers = [(name, ydf.Semantic.NUMERICAL) for name in (*_ydf_names(task.train.n_features), "label")]
    columns = [*numbers, ("query", ydf.Semantic.HASH)]

    def converted(data: Dataset) -> Any:
        X, y, sizes = _in_order(data)
        query = np.repeat(np.arange(len(sizes)), sizes)
        values = {**_ydf_columns(X), "label": y.astype(np.float32), "query": query}
        return ydf.create_vertical_dataset(values, columns=columns, **bins)

    learner = ydf.GradientBoostedTreesLearner(
        label="label",
        task=ydf.Task.RANKING,
        ranking_group="query",
        random_seed=task.seed,
        num_threads=task.threads,
        **parameters,
    )
    train, valid = converted(task.train), converted(task.valid)

    def run() -> Any:
        log = logging.getLogger("absl")  # which says at every training that data in ydf's own form stay as they are
        level, verbosity = log.level, ydf.verbose(0)
        log.setLevel(logging.ERROR)
        try:
            return learner.train(train, valid=valid)
        finally:
            log.setLevel(level)
            ydf.verbose(verbosity)

    return run


def _ydf_names(n_features: int) -> list[str]:
    return [f"f{number}" for number in range(n_features)]


def _ydf_columns(X: Any) -> dict[str, Any]:
    return dict(zip(_ydf_names(X.shape[1]), X.T, strict=True))


def _ydf_scores(model: Any, X: Any, n_threads: int) -> Any:
    return model.predict(_ydf_columns(X), num_threads=n_threads)


# The table of peers.

PEERS = {
    "lightgbm": Peer(
        "lightgbm",
        _lightgbm,
        _lightgbm_scores,
        trees=("num_iterations", 100),
        seed=("seed", "random_seed", "random_state"),
        threads=("num_threads", "num_thread", "nthread", "nthreads", "n_jobs"),
        watched=("metric", "metrics", "metric_types", "eval_at", "ndcg_eval_at", "ndcg_at"),
    ),
    "xgboost": Peer(
        "xgboost",
        _xgboost,
        _xgboost_scores,
        trees=("num_boost_round", 10),
        seed=("seed", "random_state"),
        threads=("nthread", "n_jobs"),
        watched=("eval_metric",),
    ),
    "catboost": Peer(
        "catboost",
        _catboost,
        _catboost_scores,
        trees=("iterations", 1000),
        seed=("random_seed", "random_state"),
        threads=("thread_count",),
        watched=("eval_metric", "custom_metric"),
    ),
    "ydf": Peer(
        "ydf",
        _ydf,
        _ydf_scores,
        trees=("num_trees", 300),
        seed=("random_seed",),
        threads=("num_threads",),
    ),
}
