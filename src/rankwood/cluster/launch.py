"""One program on all workers of a cluster: how it is started, watched, stopped, and started again without lost workers.

::

    supervise ── attempt(workers) ── shares of the data are placed, as ordinary Dask tasks
        ^             └─ run_on_workers ── one task per worker, all at once: function(group, channel, share, ...)
        │                     │                 └ group: the other ranks; channel: the client
        └──── ClusterError ───┘  a worker died, hangs or lost its network: again, with those that remain
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from queue import Empty
from typing import TYPE_CHECKING, Any, TypeVar

from rankwood.cluster.channel import ClientEnd, RankEnd
from rankwood.cluster.client import workers_of
from rankwood.cluster.comms import PATIENCE, CommGroup
from rankwood.errors import ClusterError, RankwoodError, one_line
from rankwood.tasks import import_distributed

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
Program = Callable[..., T]  # function(group, channel, share, *arguments)
OnMessage = Callable[[int, Any], Any]  # rank, message; gives the answer

TICK = 0.2  # seconds between two looks at Ctrl-C
LOOK = 1.0  # seconds between two looks at the workers
GRACE = 5.0  # seconds in which a rank that lives reports that it stopped
LOGGER = logging.getLogger("rankwood")

_HERE = threading.local()  # `is_rank` in threads that run the program of a rank


def supervise(
    client: Client, attempt: Callable[[list[str]], T], *, retries: int = 3, wait_for_workers: float = 15.0
) -> T:
    """What an attempt gives that no lost worker came in the way of.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    attempt : callable
        Called with addresses of workers, in order. It places the shares and calls `run_on_workers`; when called again,
        it should go on from what it has saved.
    retries : int
        How often to try again with the workers that remain.
    wait_for_workers : float
        Seconds to wait for a first worker; a nanny may be starting one again.

    Raises
    ------
    ClusterError
        When workers were lost more often than that, or none remain. Errors of any other type are those of the attempt.
    """
    distributed = import_distributed("a Dask cluster")
    if not isinstance(client, distributed.Client) or client.status != "running":
        raise ClusterError(f"a distributed.Client that is connected is needed, got {one_line(client)}")
    without: set[str] = set()
    n_left = retries
    while True:
        workers = _some_workers(client, without, wait_for_workers)
        try:
            return attempt(workers)
        except distributed.scheduler.KilledWorker as error:
            raise ClusterError(f"a task of the preparation has ended several workers: {error}") from error
        except (ClusterError, CancelledError) as error:
            sentence, lost = str(error), getattr(error, "workers", None)
            if client.status != "running" or lost == ():  # nothing that fewer workers would cure
                raise
            without |= set(lost or ())
            if n_left == 0:
                raise ClusterError(f"{sentence}; given up (retries={retries})", sorted(without)) from error
            n_left -= 1
            LOGGER.warning("%s; starting again with the workers that remain (retries left: %d)", sentence, n_left)


def _some_workers(client: Client, without: set[str], timeout: float) -> list[str]:
    end = time.monotonic() + timeout
    while not (workers := workers_of(client, without)):
        if time.monotonic() > end:
            lost = f" but those that were lost or silent: {', '.join(sorted(without))}" if without else ""
            raise ClusterError(f"the Dask cluster has no worker{lost}")
        time.sleep(TICK)
    return workers


def run_on_workers(
    client: Client,
    function: Program[T],
    shares: Mapping[str, Any],
    *,
    arguments: Sequence[Any] = (),
    on_message: OnMessage | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    name: str = "fit",
    patience: float = PATIENCE,
) -> list[T]:
    """What `function(group, channel, share, *arguments)` gives on every worker, all of them running at once.

    No other such work runs on a worker at the same time: this waits for it to end.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    function : callable
        The program of every rank. It gets a `Group` of all ranks, a `Channel` to this process, and its share.
    shares : mapping from str to object
        Share of every worker, by address, in order of ranks. Futures are brought to their worker by Dask.
    arguments : sequence
        What else the program gets, the same on all workers: futures, or what is small enough to be sent to each.
    on_message : callable, optional
        Called here with the rank and the message when a rank tells or asks something; gives the answer. What it raises
        ends the work.
    interrupted : callable
        Tells whether Ctrl-C was pressed; the ranks then hear of it from `Channel.interrupted`, and should end soon.
        A KeyboardInterrupt that is raised here ends them at once.
    name : str
        What the tasks are called on the dashboard, `rankwood-{name}-rank0-...`.
    patience : float
        Seconds without a sign of life after which a worker counts as lost.

    Returns
    -------
    list
        What the ranks return.

    Raises
    ------
    ClusterError
        When a worker was lost or silent; `workers` of the error are those to do without.
    KeyboardInterrupt
        When the program of a rank raised one.
    Exception
        What the program of a rank raised, as it is.
    """
    import_distributed("a Dask cluster")
    if getattr(_HERE, "is_rank", False):
        raise ClusterError("work on all workers cannot be started by one of its own ranks: the workers are taken")
    if client.asynchronous:
        raise ClusterError("a Dask client that is not asynchronous is needed: Client(..., asynchronous=False)")
    run = uuid.uuid4().hex
    with _workers_to_itself(client, list(shares), interrupted), ClientEnd(client, run, len(shares)) as post:
        futures = [
            client.submit(
                _serve,
                function,
                share,
                tuple(arguments),
                run,
                rank,
                patience,
                key=f"rankwood-{name}-rank{rank}-{run}",
                workers=[worker],
                allow_other_workers=False,
                pure=False,
                retries=0,
            )
            for rank, (worker, share) in enumerate(shares.items())
        ]
        watch = _Watch(client, list(shares), futures, post, on_message)
        try:
            watch.until_over(interrupted)
        finally:
            with contextlib.suppress(OSError):  # the scheduler is gone
                watch.stop_all("the client has given up the work")
                client.cancel(futures, force=True)
        return watch.results()


@contextlib.contextmanager
def _workers_to_itself(client: Client, workers: Sequence[str], interrupted: Callable[[], bool]) -> Iterator[None]:
    """Hold a lock of every worker, taken in order, so that two who want the same workers do not wait for each other.

    `MultiLock` would hold them all at once, but for ever when the client's process dies; these locks expire then.
    """
    from distributed import Lock

    with contextlib.ExitStack() as stack:
        said = False
        for worker in sorted(workers):
            lock = Lock(f"rankwood-{worker}", scheduler_rpc=client.scheduler, loop=client.loop)
            while not lock.acquire(timeout=LOOK):
                if interrupted():
                    raise KeyboardInterrupt
                if not said:
                    LOGGER.info("waiting for worker %s: other work of rankwood runs there", worker)
                    said = True
            stack.callback(lock.release)
        yield


class _Watch:
    """The client's eye on the ranks of a run: hears what they say and notices when one is lost."""

    def __init__(
        self,
        client: Client,
        workers: Sequence[str],
        futures: Sequence[Future],
        post: ClientEnd,
        on_message: OnMessage | None,
    ) -> None:
        self.client, self.workers, self.futures, self.post, self.on_message = client, workers, futures, post, on_message
        self.addresses: dict[int, str] = {}
        self.ended: dict[int, Any] = {}  # what a rank returned
        self.errors: dict[int, BaseException] = {}  # what a rank raised
        self.lost: set[int] = set()  # ranks whose worker has left the cluster
        self.was_interrupted = False
        self.give_up_at = float("inf")
        self.started_at = time.monotonic()
        self.said = False

    def until_over(self, interrupted: Callable[[], bool]) -> None:
        next_look, told = 0.0, False
        while not self.is_over():
            with contextlib.suppress(Empty):
                self.hear(self.post.inbox.get(timeout=TICK))
            if interrupted() and not told:
                if len(self.addresses) < len(self.workers):  # nothing has begun
                    raise KeyboardInterrupt
                for rank in range(len(self.workers)):
                    self.post.send(rank, "interrupt")
                told = True
            if time.monotonic() > next_look:
                self.look()
                next_look = time.monotonic() + LOOK

    def is_over(self) -> bool:
        """Whether every rank has ended, or has had its time to do so after another one failed."""
        open_ranks = set(range(len(self.workers))) - self.ended.keys() - self.errors.keys() - self.lost
        if not self.errors and not self.lost:
            return not open_ranks
        accused = set(self._accused())
        return all(self.workers[rank] in accused for rank in open_ranks) or time.monotonic() > self.give_up_at

    def hear(self, message: Any) -> None:
        if isinstance(message, ClusterError):
            raise message
        rank, kind, content = message
        if kind == "here":
            self.addresses[rank] = content
            if len(self.addresses) == len(self.workers):
                addresses = [self.addresses[each] for each in range(len(self.workers))]
                for each in range(len(self.workers)):
                    self.post.send(each, "start", (addresses, self.workers))
        elif kind in ("tell", "ask"):
            answer = self.on_message(rank, content) if self.on_message is not None else None
            if kind == "ask":
                self.post.send(rank, "answer", answer)
        elif kind == "result":
            self.ended[rank] = content
        elif kind == "interrupted":
            self.ended[rank], self.was_interrupted = None, True
        elif kind == "error":
            self.fail(rank, *content)

    def look(self) -> None:
        """See which workers are left, and which tasks failed without a word."""
        try:
            present = set(workers_of(self.client))
        except OSError as error:
            raise ClusterError(f"the connection to Dask's scheduler was lost: {error}") from None
        for rank, (worker, future) in enumerate(zip(self.workers, self.futures, strict=True)):
            if rank in self.ended or rank in self.errors or rank in self.lost:
                continue
            if worker not in present:
                self.lost.add(rank)
                self._begin_to_stop(f"worker {worker} has left the cluster")
            elif future.status == "error":  # its share could not be made, or the program not be read there
                self.fail(rank, future.exception(), None)
            elif future.status in ("cancelled", "lost"):
                self.fail(rank, ClusterError(f"the task of worker {worker} was cancelled"), None)
        missing = [worker for rank, worker in enumerate(self.workers) if rank not in self.addresses]
        if missing and not self.said and time.monotonic() - self.started_at > PATIENCE:
            LOGGER.info("waiting for %d of %d workers, such as %s: busy", len(missing), len(self.workers), missing[0])
            self.said = True

    def fail(self, rank: int, error: BaseException, remote_traceback: str | None) -> None:
        if remote_traceback is not None:
            error.__cause__ = RemoteTraceback(f"\n\non worker {self.workers[rank]}:\n{remote_traceback}")
        self.errors[rank] = error
        self._begin_to_stop(f"worker {self.workers[rank]} stopped: {error}")

    def _begin_to_stop(self, sentence: str) -> None:
        if self.give_up_at == float("inf"):
            self.give_up_at = time.monotonic() + GRACE
            self.stop_all(sentence)

    def stop_all(self, sentence: str) -> None:
        for rank in range(len(self.workers)):
            if rank not in self.ended and rank not in self.errors:
                self.post.send(rank, "stop", sentence)

    def _accused(self) -> list[str]:
        return [name for error in self.errors.values() if isinstance(error, ClusterError) for name in error.workers]

    def results(self) -> list[Any]:
        """What all ranks returned; else raise what tells why not: an error of the program, Ctrl-C, lost workers."""
        for _, error in sorted(self.errors.items()):
            if not isinstance(error, ClusterError):
                raise error
        if self.was_interrupted:  # ranks that ended a moment later may have missed the one that ended first
            raise KeyboardInterrupt
        if not self.errors and not self.lost:
            return [self.ended[rank] for rank in range(len(self.workers))]
        silent = {
            worker
            for rank, worker in enumerate(self.workers)
            if rank in self.lost or not (rank in self.ended or rank in self.errors)
        }
        if not silent:  # all could report, but some not hear each other: do without the one that most complain of
            silent = {name for name, _ in Counter(sorted(self._accused())).most_common(1)}
        about = [error for error in self.errors.values() if not silent or silent & set(getattr(error, "workers", ()))]
        left = f"{_named(sorted(silent))} left the cluster"
        raise ClusterError(str(about[0]) if about else left, sorted(silent))


def _named(workers: Sequence[str]) -> str:
    return f"worker{'s' if len(workers) > 1 else ''} {' and '.join(workers)}"


class RemoteTraceback(Exception):
    """Where on a worker an exception was raised: the cause of that exception on the client."""


def _serve(function: Program[T], share: Any, arguments: Sequence[Any], run: str, rank: int, patience: float) -> None:
    """The task of a worker: what the program gives or raises goes to the client over the channel."""
    from distributed import get_client, get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def is_wanted() -> bool:  # by a client that lives and has not cancelled it
        task = worker.state.tasks.get(key)
        return task is not None and task.state in ("executing", "long-running")

    channel = RankEnd(get_client(), run, rank, is_wanted)
    try:
        with contextlib.suppress(ClusterError):  # nobody is there to hear it
            try:
                channel.send("result", _program(function, share, arguments, run, rank, patience, channel))
            except KeyboardInterrupt:
                channel.send("interrupted", None)
            except BaseException as error:
                channel.send("error", (_portable(error), "".join(traceback.format_exception(error))))
    finally:
        channel.close()


def _program(
    function: Program[T],
    share: Any,
    arguments: Sequence[Any],
    run: str,
    rank: int,
    patience: float,
    channel: RankEnd,
) -> T:
    from distributed import get_worker

    with CommGroup(rank, run, get_worker(), patience=patience) as group:
        channel.send("here", group.address)
        addresses, names = channel.wait_for_start(on_over=group.give_up)
        group.connect(addresses, names)
        _HERE.is_rank = True
        try:
            return function(group, channel, share, *arguments)
        finally:
            _HERE.is_rank = False


def _portable(error: BaseException) -> BaseException:
    """The error, or one that says the same when it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RankwoodError(f"{type(error).__name__}: {error}")
    return error
