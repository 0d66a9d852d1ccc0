"""Who does the runs of a study: this process, several processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import inspect
import os
import pickle
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from rankwood.errors import RankwoodError
from rankwood.lab.extra import need
from rankwood.system import environment, resolve_threads
from rankwood.tasks import WorkerLost, import_distributed, result_of

Config = Mapping[str, Any]  # what JSON can hold; all that a result depends on
Run = Callable[[Config], Any]


@dataclass(frozen=True)
class Done:
    """What a run returned, the seconds it took, and what is to be noted of the machine if it was another."""

    value: Any
    seconds: float
    environment: Mapping[str, Any] = field(default_factory=dict)


Finished = Generator[tuple[Config, Done], None, None]


class Workers(ABC):
    """Somebody who does runs."""

    @abstractmethod
    def finished(self, run: Run, configs: Iterable[Config]) -> Finished:
        """Do runs, and yield each configuration with its outcome as soon as it is done, in any order.

        Closing the generator, which Ctrl-C and errors do, ends or forgets what is not done.

        Parameters
        ----------
        run : callable
            What to do with a configuration.
        configs : iterable of mappings
            Taken one by one, as workers become free. Runs that share data should follow each other.

        Raises
        ------
        RankwoodError
            When a run fails; the message names its configuration.
        WorkerLost
            When a worker is gone and the run cannot be done again.
        """


def workers_of(n_workers: int, client: Any = None) -> Workers:
    """The workers that these arguments of a study mean: processes of this machine, or a Dask cluster.

    Parameters
    ----------
    n_workers : int
        Number of processes.
    client : distributed.Client, optional
        Client of a Dask cluster.
    """
    if n_workers < 1:
        raise RankwoodError(f"n_workers must be at least 1, got {n_workers}")
    if client is not None and n_workers > 1:
        raise RankwoodError(f"n_workers={n_workers} and client both say where runs are done: give one of them")
    if client is not None:
        return DaskWorkers(client)
    return Here() if n_workers == 1 else Processes(n_workers)


def share_threads(n_threads: int | None, n_workers: int) -> int | None:
    """Return the threads of each worker: those asked for, or else an equal share of the CPUs.

    Examples
    --------
    >>> share_threads(3, 2), share_threads(None, 10_000)
    (3, 1)
    """
    if n_workers <= 1 or n_threads is not None:
        return n_threads
    return max(1, resolve_threads(None) // n_workers)


def perform(run: Run, config: Config) -> Done:
    """Do one run, here."""
    start = time.perf_counter()
    with named_after(config):
        value = run(config)
    return Done(value, time.perf_counter() - start)


@contextlib.contextmanager
def named_after(config: Config) -> Iterator[None]:
    """Have errors in the block name the run that they come from."""
    try:
        yield
    except Exception as error:
        what = "out of memory" if isinstance(error, MemoryError) else str(error)
        kind = "" if isinstance(error, (RankwoodError, MemoryError)) else f"{type(error).__name__}: "
        raise RankwoodError(f"{kind}{what} (the run with {in_words(config)})") from error


def in_words(config: Mapping[str, Any]) -> str:
    """Return a configuration as one line of names and values.

    Examples
    --------
    >>> in_words({"fold": 1, "parameters": {"n_trees": 5, "measure": None}})
    'fold 1, n_trees 5, measure none'
    """
    parts = []
    for name, value in config.items():
        if isinstance(value, Mapping):
            parts.append(in_words(value))
        elif name != "digest":
            parts.append(f"{name} {'none' if value is None else value}")
    return ", ".join(filter(None, parts))


class Here(Workers):
    """Runs in this process, one after the other."""

    def finished(self, run: Run, configs: Iterable[Config]) -> Finished:
        for config in configs:
            yield config, perform(run, config)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Run:
    """Unpickle the function once for all runs of a worker, so that what it keeps (see `Kept`) stays."""
    run: Run = pickle.loads(packed)
    return run


# Processes of this machine.


@dataclass(frozen=True)
class Processes(Workers):
    """Several processes of this machine, by joblib.

    Parameters
    ----------
    n_workers : int
        Number of processes.
    """

    n_workers: int

    def finished(self, run: Run, configs: Iterable[Config]) -> Finished:
        joblib = need("joblib", "doing runs in several processes")
        packed = pickle.dumps(joblib.wrap_non_picklable_objects(run))  # functions of a notebook are not picklable
        how: dict[str, Any] = {"backend": "loky", "batch_size": 1, "return_as": "generator_unordered"}
        if "backend_kwargs" in inspect.signature(joblib.Parallel).parameters:  # else with its first run
            how |= {"initializer": end_with, "initargs": (os.getpid(),)}
        parallel = joblib.Parallel(n_jobs=self.n_workers, **how)
        same = (packed, os.getpid(), os.getcwd())
        try:
            yield from parallel(joblib.delayed(_in_process)(config, *same) for config in configs)
        except BrokenExecutor:
            raise WorkerLost("a worker was killed, perhaps for want of memory", "go on with fewer workers") from None


def _in_process(config: Config, packed: bytes, parent: int, folder: str) -> tuple[Config, Done]:
    """Do one run in a process of joblib's."""
    end_with(parent)
    os.chdir(folder)  # joblib uses workers again, which may have been started in another folder
    with _ctrl_c_left_to_the_parent():
        return config, perform(_unpacked(packed), config)


@lru_cache(maxsize=1)
def end_with(parent: int) -> None:
    """End this worker when its parent is gone, as it would wait for another run that never comes."""
    if os.getpid() == parent:  # joblib may do without other processes
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _ctrl_c_left_to_the_parent() -> Iterator[None]:
    """Ignore Ctrl-C, which a terminal sends to workers too, as the parent ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


# Workers of a Dask cluster.


PATIENCE = 60.0  # seconds to wait for a first worker, or another after all are gone
LOOK_AROUND = 1.0  # seconds after which new workers are looked for
_ONE_AT_A_TIME = threading.Lock()  # so that CPU time is a run's own, and data of one fold are in memory


@dataclass(frozen=True)
class DaskWorkers(Workers):
    """The workers of a Dask cluster, each of which does one run at a time, with all its threads.

    A run whose worker dies is done again on another; Dask gives up when that happens too often (`allowed-failures`).
    Workers may come and go.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    """

    client: Any

    def finished(self, run: Run, configs: Iterable[Config]) -> Finished:
        distributed = import_distributed("a Dask client")
        packed, waiting = distributed.protocol.pickle.dumps(run), iter(configs)
        busy: set[Any] = set()  # futures, of no more runs than there are workers
        try:
            more = True
            while more or busy:
                n_workers = self._n_workers()
                while more and len(busy) < n_workers:
                    config = next(waiting, None)
                    if config is None:
                        more = False
                    else:  # for whichever worker is free: Dask may forget a run that was bound to one which died
                        busy.add(self.client.submit(_on_dask, config, packed, pure=False))
                for future in self._done(busy):
                    busy.remove(future)
                    yield result_of(future)
        finally:
            self.client.cancel(list(busy), force=True)

    def _n_workers(self) -> int:
        """Number of workers that are there; waits for one if there is none."""
        deadline = time.monotonic() + PATIENCE
        while not (n_workers := len(self.client.nthreads())):
            if time.monotonic() > deadline:
                raise WorkerLost(f"the Dask cluster has had no worker for {PATIENCE:.0f} s", "start some and go on")
            time.sleep(0.2)
        return n_workers

    def _done(self, busy: Collection[Any]) -> list[Any]:
        """Futures that are finished; none after a while without any."""
        if not busy:
            return []
        distributed = import_distributed("a Dask client")
        with self.client.as_current(), contextlib.suppress(TimeoutError, distributed.TimeoutError):
            distributed.wait(list(busy), timeout=LOOK_AROUND, return_when="FIRST_COMPLETED")
        if self.client.status not in ("running", "connecting"):
            raise WorkerLost("the Dask scheduler is gone", "the same command goes on from them")
        return [future for future in busy if future.done()]


def _on_dask(config: Config, packed: bytes) -> tuple[Config, Done]:
    """Do one run in a Dask worker."""
    with _ONE_AT_A_TIME:
        done = perform(_unpacked(packed), config)
    here = environment()
    del here["threads"]  # the client knows
    return config, Done(done.value, done.seconds, here)
