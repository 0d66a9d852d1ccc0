"""A ranker trained on the workers of a Dask cluster: each has a share of the data, and all grow every tree together.

::

    client                                    worker (rank 0, 1, ...)
    place the data in bins       ──────────>  its share: consecutive whole queries
    fit_share on all workers     ──────────>  the `fit` of one process, on the share, with a group
    callbacks, checkpoints       <── rank 0 ─ after every round
    fitted attributes            <── rank 0 ─ at the end

A worker that is lost ends the attempt; the next one goes on from the last checkpoint, which the client has, on the
workers that remain. The model does not depend on any of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from sklearn.base import clone

from rankwood import _native
from rankwood.atomic import check_writable
from rankwood.cluster.channel import Channel
from rankwood.cluster.client import check_memory, threads_of_worker
from rankwood.cluster.launch import run_on_workers, supervise
from rankwood.cluster.placement import Placed, find_categories, place, place_features
from rankwood.cluster.sources import Source, Spread, open_source
from rankwood.coding import Coding
from rankwood.data.bins import BinEdges, BinnedDataset, BinSketch, coded_exactly, forest_bytes
from rankwood.data.categories import coding_of
from rankwood.data.dataset import Dataset
from rankwood.data.share import Share
from rankwood.dtypes import FEATURE, FeatureMatrix
from rankwood.errors import RankwoodError
from rankwood.group import Group
from rankwood.matrix import column_names
from rankwood.model.ensemble import Ensemble
from rankwood.training.callbacks import (
    Callback,
    CallbackEnv,
    EarlyStopException,
    Result,
    in_order,
    stopped_at,
)
from rankwood.training.checkpoint import Checkpoint, Identity, check_identity
from rankwood.training.constraints import numbers_of
from rankwood.training.driver import deferred_interrupt, interrupts_from
from rankwood.training.inputs import filled, in_codes, is_paths, training_coding, wanted_features

if TYPE_CHECKING:
    from distributed import Client

    from rankwood.training.inputs import EvalSets, Rows
    from rankwood.training.tasks import Task

Answer: TypeAlias = "tuple[dict[str, Any], tuple[int, list[Result]] | None]"  # parameters; where to stop, if so
EVERY = 20  # rounds after which trees are safe with the client, unless a checkpoint says otherwise
BYTES_PER_DOC = 72  # of a training besides bins: gradients, scores, labels, rows


@dataclass(frozen=True)
class Order:
    """What is to be trained, on what, and who is told.

    Parameters
    ----------
    ranker : estimator
        With a number as `random_state`; its `fit` runs on every worker.
    train : Rows
        What to learn from.
    valid : mapping from str to Rows or None
        What to measure on, by name; None is the training data.
    max_bins : int
        Most bins of a feature.
    eval_metric : object
        As `fit` takes it.
    callbacks : sequence of callables
        Called in the client's process.
    init_model : Ensemble or None
        Model to go on from.
    checkpoint : Checkpoint or None
        File of the client's.
    shuffle : bool
        Whether rows of a query may stand apart.
    alone : bool
        Whether every row is a query of its own when there are no queries.
    grows_forest : bool
        Whether a forest is grown: its thresholds lie between values, so features stay with the workers.
    """

    ranker: Any
    train: Rows
    valid: dict[str, Rows | None]
    max_bins: int
    eval_metric: Any = None
    callbacks: Sequence[Callback] = ()
    init_model: Ensemble | None = None
    checkpoint: Checkpoint | None = None
    shuffle: bool = False
    alone: bool = False
    grows_forest: bool = False


def fit_on_cluster(client: Client, order: Order) -> dict[str, Any]:
    """The attributes of the fitted ranker.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    order : Order
        What is to be trained.
    """
    with deferred_interrupt() as interrupted:
        training = _Training(client, order, interrupted)
        return supervise(client, training.attempt)


def fit_on(
    client: Any,
    ranker: Any,
    rows: Rows,
    sets: EvalSets,
    eval_metric: Any,
    callbacks: Sequence[Callback] | None,
    checkpoint: Any,
    *,
    shuffle: bool,
    max_bins: int,
    init_model: Ensemble | None = None,
    grows_forest: bool = False,
) -> Any:
    """Fit a ranker on the workers of a Dask cluster, and note on it what came of it; returns the ranker."""
    valid = {name: None if one is None else one.for_workers() for name, one in sets.named(rows).items()}
    order = Order(
        clone(ranker).set_params(random_state=ranker._seed()),
        rows.for_workers(),
        valid,
        max_bins,
        eval_metric,
        tuple(callbacks or ()),
        init_model,
        ranker._checkpoint(checkpoint),
        shuffle,
        alone=not ranker._needs_queries,
        grows_forest=grows_forest,
    )
    for name, value in fit_on_cluster(client, order).items():
        setattr(ranker, name, value)
    return ranker


@dataclass
class _Training:
    """The client's side: places the data, hears the ranks, keeps the trees so far."""

    client: Client
    order: Order
    interrupted: Any
    saved: dict[str, Ensemble] = field(default_factory=dict)
    answers: dict[tuple[bool, int], Answer] = field(default_factory=dict)  # of callbacks, by what they were asked
    sources: dict[str | None, Any] = field(default_factory=dict)
    coding: Coding | None = None  # of the categories in the training data

    def __post_init__(self) -> None:
        checkpoint, order = self.order.checkpoint, self.order
        self.parameters = order.ranker.noted_parameters()
        if checkpoint is not None:
            check_writable(str(checkpoint.path))
            for path in (str(checkpoint.path), f"{checkpoint.path}.forest"):  # iGBRT has one for its forest, too
                if Path(path).exists():
                    self.saved[path] = Ensemble.load(path)
        self.before, self.after = in_order(order.callbacks)

    def _open(self, workers: list[str]) -> None:
        """Open all data sets, with codes in place of categories."""
        order, learns_sets = self.order, hasattr(self.order.ranker, "categorical_features")
        wanted = order.ranker.categorical_features if learns_sets else None
        start = None if order.init_model is None else order.init_model.coding
        if learns_sets and is_table(order.train.X):
            self.coding = training_coding(order.train.X, wanted, start)
        train = self._source(None, order.train)
        if learns_sets and isinstance(train, Spread):
            self.coding = coding_of(find_categories(self.client, workers, train, wanted_features(wanted)), start)
        if self.coding is not None:
            order.ranker.set_params(categorical_features=[*(wanted or ()), *(self.coding.columns or ())])
            train = self._source(None, order.train)
        self.sources[None] = train
        self.sources |= {name: self._source(name, rows) for name, rows in order.valid.items() if rows is not None}

    def _source(self, name: str | None, rows: Rows) -> Source:
        opened = open_source(
            in_codes(rows.X, self.coding) if is_table(rows.X) else rows.X,
            rows.y,
            qid=rows.qid,
            group=rows.group,
            sample_weight=rows.sample_weight,
            query_weight=rows.query_weight,
            alone=self.order.alone and name is None,
            client=self.client,
            coding=self.coding,
        )
        return opened.coded(self.coding) if isinstance(opened, Spread) and self.coding is not None else opened

    def attempt(self, workers: list[str]) -> dict[str, Any]:
        """Train on these workers, from the last checkpoint on."""
        order = self.order
        if not self.sources:
            self._open(workers)
        placed = self._place(workers)
        train = placed[None]
        self._check_memory(placed)
        every = EVERY if order.checkpoint is None else order.checkpoint.every
        settings = ShareFit(
            order.ranker,
            tuple(name for name in order.valid),
            tuple(name for name in placed if name is not None),
            order.eval_metric,
            order.init_model,
            self.saved,
            str(order.checkpoint.path) if order.checkpoint else "",
            every,
            (bool(self.before), bool(self.after)),
            order.max_bins,
            order.grows_forest and not hasattr(order.ranker, "learning_rate"),
            order.shuffle,
        )
        shares = {worker: [one.shares[worker] for one in placed.values()] for worker in train.shares}
        try:
            results = run_on_workers(
                self.client,
                fit_share,
                shares,
                arguments=(settings,),
                on_message=self._hear,
                interrupted=self.interrupted,
                name=f"fit-{type(order.ranker).__name__}",
            )
        finally:
            for one in placed.values():
                one.release()
        assert results[0] is not None
        fitted, said = results[0]
        fitted["ensemble_"] = self._as_on_one_machine(fitted["ensemble_"])
        for category, message in said:
            warnings.warn(message, category, stacklevel=6)
        return fitted

    def _as_on_one_machine(self, model: Ensemble) -> Ensemble:
        """The model with the notes of a training on one machine: codes, and parameters as they were given."""
        start = None if self.order.init_model is None else self.order.init_model.coding
        coding = self.coding or start
        if coding is not None:
            model = model.with_metadata(categories=coding.as_note())
        return model if self.coding is None else model.with_metadata(parameters=self.parameters)

    def _place(self, workers: list[str]) -> dict[str | None, Placed]:
        order = self.order
        placed: dict[str | None, Placed] = {}
        for name, source in self.sources.items():
            train = placed.get(None)
            if order.grows_forest:
                placed[name] = place_features(self.client, workers, source, shuffle=order.shuffle)
                continue
            placed[name] = place(
                self.client,
                workers,
                source,
                edges=None if train is None else train.edges,
                max_bins=order.max_bins,
                categories=getattr(order.ranker, "categorical_features", None),
                shuffle=order.shuffle,
                start=order.init_model,
                missing_as=missing_value(order.ranker.missing),
                feature_names=None if train is None else train.feature_names,
            )
        return placed

    def _check_memory(self, placed: dict[str | None, Placed]) -> None:
        ranker = self.order.ranker
        besides = 16 * 256 * placed[None].n_features * (getattr(ranker, "n_leaves", None) or 1)
        if self.order.grows_forest:
            besides += forest_bytes(placed[None].n_docs, placed[None].n_features)
        needed = {}
        for worker in placed[None].shares:
            n_docs = sum(one.n_bytes[worker] // max(one.n_features, 1) for one in placed.values())
            needed[worker] = BYTES_PER_DOC * n_docs + besides  # the bins are there already
        check_memory(self.client, needed)

    def _hear(self, rank: int, message: tuple[Any, ...]) -> Any:
        if message[0] == "checkpoint":
            _, path, model = message
            self.saved[path] = model
            if self.order.checkpoint is not None:
                model.save(path)
            return None
        _, is_before, task, told = message
        round_ = (is_before, told["iteration"])
        if round_ not in self.answers:  # else an attempt that lost a worker came so far
            self.answers[round_] = self._call(is_before, CallbackEnv(_ModelElsewhere(task), **told))
        return self.answers[round_]

    def _call(self, is_before: bool, env: CallbackEnv) -> Answer:
        try:
            for callback in self.before if is_before else self.after:
                callback(env)
        except Exception as error:
            best = stopped_at(error)
            if best is None:
                raise
            return dict(env.params), best
        return dict(env.params), None


def missing_value(missing: str) -> FeatureMatrix | None:
    """What missing values of all features count as, by the parameter `missing`; None when trees decide."""
    if missing in ("zero", "infinity"):
        return np.array([0.0 if missing == "zero" else np.inf], dtype=FEATURE)
    if missing in ("mean", "median"):
        raise RankwoodError(
            f"missing={missing!r} is for data on one machine: fill the gaps, or leave them to the trees"
        )
    return None


@dataclass(frozen=True)
class _ModelElsewhere:
    """What callbacks find as `env.model` in the client's process: what the labels are learnt as, and no trees."""

    task: Task
    boosters: ClassVar[tuple[Any, ...]] = ()

    def whole(self) -> Ensemble:
        raise RankwoodError("the model so far is with the workers: give fit a checkpoint, and load that file")


# On the workers.


@dataclass(frozen=True)
class ShareFit:
    """What every rank is told: the ranker, the names of the data sets, and where training stands."""

    ranker: Any
    names: tuple[str, ...]  # of all data sets to measure on, in order
    placed: tuple[str, ...]  # those of them that are not the training data
    eval_metric: Any
    init_model: Ensemble | None
    saved: dict[str, Ensemble]
    path: str
    every: int
    callbacks: tuple[bool, bool]  # whether there are any before, and after, a round
    max_bins: int
    codes_exactly: bool  # whether a forest is to have a code for every value, where documents are few
    shuffled: bool


def _in_bins(group: Group, share: Sequence[BinnedDataset] | Sequence[Dataset], told: ShareFit) -> list[BinnedDataset]:
    """The data sets in bins of the first one, each with its share."""
    binned: list[BinnedDataset] = []
    for one in share:
        its_share = Share.of(one if isinstance(one, Dataset) else one.data, group)
        if isinstance(one, Dataset):
            data = filled(one, missing_value(told.ranker.missing))
            found = BinnedDataset.encode(data, binned[0].edges if binned else _found_edges(data, its_share, told))
        else:
            found = one if not binned else replace(one, edges=binned[0].edges)  # one object, as `boost` wants it
        binned.append(replace(found, share=its_share))
    if told.codes_exactly:
        binned[0] = coded_exactly(binned[0], n_threads=threads_of_worker())
    return binned


def is_table(X: Any) -> bool:
    """Whether this is a table in the client's memory, not of Dask's, files or a data set."""
    is_other = is_paths(X) or isinstance(X, (Dataset, BinnedDataset, list, tuple, np.ndarray))
    return not is_other and not hasattr(X, "__dask_graph__") and column_names(X) is not None


def _found_edges(data: Dataset, share: Share, told: ShareFit) -> BinEdges:
    if told.shuffled and share.n_docs > _native.BIN_SAMPLE_ROWS:
        raise RankwoodError("a forest on so many documents needs them query by query: sort the data, without shuffle")
    first_row = sum(share.group.gather(data.n_docs)[: share.group.rank])
    sketch = BinSketch.of(data.X, first_row, share.n_docs, told.max_bins)
    edges = BinSketch.merge(share.group.gather(sketch)).edges()
    codes = getattr(told.ranker, "categorical_features", None) or ()
    numbers = numbers_of(codes, data.n_features, data.feature_names, "categorical_features")
    return edges.with_categories(numbers) if numbers else edges


def fit_share(
    group: Group, channel: Channel, share: Sequence[BinnedDataset] | Sequence[Dataset], told: ShareFit
) -> tuple[dict[str, Any], list[tuple[type[Warning], str]]] | None:
    """Fit the ranker on the share of this rank; rank 0 returns the fitted attributes, and what it warned of."""
    ranker = told.ranker
    train, *others = _in_bins(group, share, told)
    by_name = dict(zip(told.placed, others, strict=True))
    sets = [by_name.get(name, train) for name in told.names]
    if ranker.n_jobs is None:
        ranker.set_params(n_jobs=threads_of_worker())
    asks = [
        AtClient(group, channel, before) for before, some in zip((True, False), told.callbacks, strict=True) if some
    ]
    parameters = set(ranker.get_params(deep=False))
    with (
        warnings.catch_warnings(record=True) as caught,
        interrupts_from(lambda: bool(group.broadcast(channel.interrupted()))),
    ):
        warnings.simplefilter("always")
        ranker.fit(
            train,
            eval_set=sets,
            eval_names=told.names,
            eval_metric=told.eval_metric,
            callbacks=asks,
            **({} if told.init_model is None else {"init_model": told.init_model}),
            checkpoint=SentCheckpoint(told.path, told.every, group, channel, told.saved),
        )
    if group.rank != 0:
        return None
    said: list[tuple[type[Warning], str]] = [
        (one.category, str(one.message)) for one in caught if issubclass(one.category, UserWarning)
    ]
    return {name: value for name, value in vars(ranker).items() if name not in parameters}, said


class AtClient:
    """A callback that has those of the user called in the client's process, and does what they say on every rank."""

    order = 25  # after what is noted of a round, before early stopping

    def __init__(self, group: Group, channel: Channel, before: bool) -> None:
        self.group, self.channel, self.before_iteration = group, channel, before

    def __call__(self, env: CallbackEnv) -> None:
        answer = None
        if self.group.rank == 0:
            told = {name: value for name, value in vars(env).items() if name != "model"}
            answer = self.channel.ask(("callbacks", self.before_iteration, env.model.task, told))
        params, best = self.group.broadcast(answer)
        env.params.update(params)
        if best is not None:
            raise EarlyStopException(best[0], [Result(*result) for result in best[1]])


@dataclass(frozen=True)
class SentCheckpoint(Checkpoint):
    """A checkpoint that the client keeps: rank 0 sends it the trees.

    Parameters
    ----------
    group : Group
        The ranks.
    channel : Channel
        To the client.
    saved : mapping from str to Ensemble
        What it kept last, by path.
    """

    group: Group = None  # type: ignore[assignment]
    channel: Channel = None  # type: ignore[assignment]
    saved: Mapping[str, Ensemble] = field(default_factory=dict)

    def read(self, identity: Identity) -> tuple[Ensemble, dict[str, Any]] | None:
        model = self.saved.get(str(self.path))
        return None if model is None else (model, check_identity(str(self.path), model, identity))

    def write(self, model: Ensemble) -> None:
        if self.group.rank == 0:
            self.channel.tell(("checkpoint", str(self.path), model))
