"""CLEaVER on the workers of a Dask cluster: each has a share of the queries, and all prune the model together.

::

    client                                       worker (rank 0, 1, ...)
    place the data with its features ─────────>  its share: consecutive whole queries
    prune_share on all workers       ─────────>  the `cleaver` of one process, on the share, with a group
    progress, checkpoints            <─ rank 0 ─ now and then
    result                           <─ rank 0 ─ at the end

A worker that is lost ends the attempt; the next one, on the workers that remain, goes on from the checkpoint, or starts
anew where none is asked for. The result does not depend on any of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.cluster.channel import Channel
from rankwood.cluster.client import check_memory, threads_of_worker
from rankwood.cluster.launch import run_on_workers, supervise
from rankwood.cluster.placement import Placed, place_features
from rankwood.cluster.sources import Here, Source, Spread, open_source
from rankwood.coding import Coding
from rankwood.data.dataset import Dataset
from rankwood.data.share import Share
from rankwood.fitting.outputs import needed_bytes
from rankwood.group import Group
from rankwood.pruning.checkpoint import KeptBytes
from rankwood.pruning.result import CleaverResult
from rankwood.scoring.timing import BATCH
from rankwood.tasks import import_distributed

if TYPE_CHECKING:
    from distributed import Client

Progress = Callable[[float, float], None]
SECONDS = 0.2  # between two words on progress


@dataclass(frozen=True)
class Order:
    """What is to be pruned, on what, and who is told.

    Parameters
    ----------
    prune : callable
        What runs on every worker: takes data sets by their roles, `n_threads`, `progress` and `group`.
    model : Ensemble or AdditiveModel
        What it prunes.
    data : mapping from str to object
        Data by its role, "train" and "valid" and maybe "judge" and "test", in any form that `open_source` takes, or as
        a tuple of features, labels, query ids and maybe weights.
    copies : int
        How often validation data is copied to be cut into what chooses and what judges.
    n_threads : int or None
        Threads of every worker; None: as many as it has.
    progress, time_left : callable or None
        Called in the client's process.
    kept : KeptBytes or None
        The checkpoint, of the client.
    deadline : float or None
        When the time is up, by the client's `time.monotonic`.
    shuffle : bool
        Whether rows of a query may stand apart.
    """

    prune: Callable[..., CleaverResult]
    model: Any
    data: Mapping[str, Any]
    copies: int = 1
    n_threads: int | None = None
    progress: Progress | None = None
    time_left: Callable[[float | None], None] | None = None
    kept: KeptBytes | None = None
    deadline: float | None = None
    shuffle: bool = False

    def hear(self, kind: str, *content: Any) -> None:
        """Take a message of rank 0: of progress, or a checkpoint."""
        if kind == "checkpoint" and self.kept is not None:
            self.kept.write(*content)
        elif kind == "time left" and self.time_left is not None:
            self.time_left(*content)
        elif kind == "progress" and self.progress is not None:
            self.progress(*content)


def prune_on_cluster(client: Client, order: Order) -> tuple[CleaverResult, Dataset]:
    """The result, and some of the validation data, which models can be timed with.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    order : Order
        What is to be pruned.
    """
    coding = getattr(order.model, "coding", None)
    sources = {role: _opened(data, client, coding) for role, data in order.data.items()}

    def attempt(workers: list[str]) -> tuple[CleaverResult, Dataset]:
        with ExitStack() as stack:
            placed: dict[str, Placed] = {}
            for role, source in sources.items():
                placed[role] = place_features(client, workers, source, shuffle=order.shuffle)
                stack.callback(placed[role].release)
            check_memory(client, {worker: _needed_bytes(order, placed, worker) for worker in workers})
            told = SharePruning(
                order.prune,
                tuple(placed),
                order.n_threads,
                order.progress is not None or order.time_left is not None,
                None if order.kept is None else SentBytes(order.kept.name, order.kept.read()),
                None if order.deadline is None else max(order.deadline - time.monotonic(), 1e-3),
            )
            found = run_on_workers(
                client,
                prune_share,
                {worker: [one.shares[worker] for one in placed.values()] for worker in workers},
                arguments=(told,),
                on_message=lambda rank, message: order.hear(*message),
                name="prune",
            )
        (result,) = (result for result, _ in found if result is not None)
        (some,) = (some for _, some in found if some is not None)
        return result, some

    return supervise(client, attempt)


def _opened(data: Any, client: Client, coding: Coding | None) -> Source:
    """Data in any form as what can be placed; a tuple that is not of files or partitions is of columns."""
    if isinstance(data, (Spread, Here)):
        return data
    distributed = import_distributed("data on a Dask cluster")
    from dask.delayed import Delayed

    if isinstance(data, tuple) and data and not isinstance(data[0], (str, os.PathLike, Delayed, distributed.Future)):
        X, y, qid, weights = (*data, None, None, None)[:4]
        return open_source(X, y, qid=qid, sample_weight=weights, client=client)
    return open_source(data, client=client, coding=coding)


def _needed_bytes(order: Order, placed: Mapping[str, Placed], worker: str) -> int:
    """Memory that pruning takes of a worker besides its share: leaf numbers, and copies of validation data."""
    n_docs = {role: one.n_bytes[worker] // (4 * max(one.n_features, 1)) for role, one in placed.items()}
    leaves = needed_bytes(order.model, n_docs["train"] + 2 * n_docs["valid"])
    return leaves + order.copies * placed["valid"].n_bytes[worker]


# On the workers.


@dataclass
class SentBytes(KeptBytes):
    """A checkpoint that the client keeps: rank 0 sends it there.

    Parameters
    ----------
    name : str
        The client's name for it.
    content : bytes or None
        What the client had when the work began.
    channel : Channel or None, default None
        Way to the client.
    """

    name: str
    content: bytes | None
    channel: Channel | None = None

    def read(self) -> bytes | None:
        return self.content

    def write(self, content: bytes) -> None:
        assert self.channel is not None
        self.channel.tell(("checkpoint", content))


@dataclass(frozen=True)
class SharePruning:
    """What every rank is told.

    Parameters
    ----------
    prune : callable
        What to run.
    roles : tuple of str
        Roles of its data sets.
    n_threads : int or None
        Threads.
    tells : bool
        Whether to tell of progress.
    kept : SentBytes or None
        The checkpoint.
    timeout : float or None
        Seconds that are left.
    """

    prune: Callable[..., CleaverResult]
    roles: tuple[str, ...]
    n_threads: int | None
    tells: bool
    kept: SentBytes | None = None
    timeout: float | None = None


def prune_share(
    group: Group, channel: Channel, share: Sequence[Dataset], told: SharePruning
) -> tuple[CleaverResult | None, Dataset | None]:
    """Prune on the share of this rank; rank 0 returns the result, the first that has any some validation data."""
    data = dict(zip(told.roles, share, strict=True))
    valid, speaker = data["valid"], Speaker(channel) if told.tells and group.rank == 0 else None
    result = told.prune(
        **data,
        n_threads=told.n_threads or threads_of_worker(),
        progress=None if speaker is None else speaker.progress,
        time_left=None if speaker is None else speaker.time_left,
        checkpoint=None if told.kept is None else replace(told.kept, channel=channel),
        timeout=told.timeout,
        group=group,
    )
    is_first = valid.n_docs > 0 and Share.of(valid, group).first_query == 0
    n_queries = max(int(np.searchsorted(valid.offsets, BATCH, side="right")) - 1, 1)
    some = valid.select_queries(np.arange(min(n_queries, valid.n_queries))) if is_first else None
    return result if group.rank == 0 else None, some


class Speaker:
    """Tells the client of progress and of the time left, but not too often."""

    def __init__(self, channel: Channel) -> None:
        self.channel, self.told_at = channel, -np.inf
        self.left: float | None = None

    def time_left(self, seconds: float | None) -> None:
        """Remember it until there is something to tell."""
        self.left = seconds

    def progress(self, done: float, total: float) -> None:
        """Tell of both, if it is time."""
        if done == total or time.monotonic() - self.told_at >= SECONDS:
            self.channel.tell(("time left", self.left))
            self.channel.tell(("progress", done, total))
            self.told_at = time.monotonic()
