"""A Dask cluster as its client sees it: how to get one, who works there, and how much fits."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import signal
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwood.errors import ClusterError, one_line
from rankwood.tasks import import_distributed

if TYPE_CHECKING:
    from distributed import Client

USABLE = 0.8  # part of its limit at which a worker is paused by Dask

CONNECT_SECONDS = 5.0
# For workers of this machine: a terminal sends Ctrl-C to all processes, and it is we who end them.
IGNORE_CTRL_C = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
FORMS = "give tcp://HOST:PORT, tls://HOST:PORT, HOST:PORT, the file that the scheduler wrote, or local:N"
_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s/:\[\]]+):[0-9]{1,5}/?")


@contextlib.contextmanager
def open_client(text: str) -> Iterator[Client]:
    """Context manager of a Dask client; what was started for it is closed at the end, also after an error.

    Parameters
    ----------
    text : str
        `tcp://HOST:PORT`, `tls://HOST:PORT` (with the keys of Dask's own configuration) or `HOST:PORT` of a scheduler,
        the path of a scheduler file, or `local:N`: N processes of this machine with one thread each.

    Yields
    ------
    distributed.Client
        It is not made Dask's default client.

    Raises
    ------
    MissingPackageError
        When `distributed` is not installed.
    ClusterError
        When the text is none of these, or no scheduler answers.

    Examples
    --------
    >>> with open_client("local:none"):
    ...     pass
    Traceback (most recent call last):
        ...
    rankwood.errors.ClusterError: --dask local:N takes the number of processes, 1 or more, got 'local:none'
    """
    n_processes = _n_processes(text)
    where = "" if n_processes else _address(text)
    distributed = import_distributed("--dask")
    with contextlib.ExitStack() as stack:
        stack.enter_context(quiet_logs())
        if n_processes:
            where = stack.enter_context(_local(distributed, n_processes))
        try:
            asyncio.run(_knock(distributed, where))  # a client that cannot connect is slow to go away
            client = distributed.Client(where, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
            reason = one_line(error, 200) or type(error).__name__
            raise ClusterError(f"no Dask scheduler answers at {text}: {reason}") from None
        stack.callback(client.close)
        yield client


async def _knock(distributed: Any, address: str) -> None:
    """Connect to a scheduler and hang up."""
    security = distributed.Security().get_connection_args("client")
    comm = await distributed.comm.connect(address, timeout=CONNECT_SECONDS, **security)
    await comm.close()


def _n_processes(text: str) -> int:
    """The N of `local:N`; 0 of any other text."""
    if text.partition(":")[0] != "local":
        return 0
    number = text.partition(":")[2]
    if not number.isdecimal() or int(number) < 1:
        raise ClusterError(f"--dask local:N takes the number of processes, 1 or more, got {text!r}")
    return int(number)


def _address(text: str) -> str:
    """The address of the scheduler that a text names, or that stands in the file which it names."""
    if _ADDRESS.fullmatch(text):
        return text
    path = Path(text)
    if not path.is_file():
        raise ClusterError(f"--dask {text!r} is neither an address nor a scheduler file: {FORMS}")
    import json

    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ClusterError(f"--dask {text}: this is no file of a Dask scheduler: {FORMS}") from None


@contextlib.contextmanager
def _local(distributed: Any, n_processes: int) -> Iterator[str]:
    """The address of a new cluster of this machine's processes."""
    with tempfile.TemporaryDirectory(prefix="rankwood-dask-", ignore_cleanup_errors=True) as folder:
        with _ctrl_c_later():
            cluster = distributed.LocalCluster(
                n_workers=n_processes,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # a port that is free; with `dashboard` False nothing is shown there
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL,
                local_directory=folder,
                preload=IGNORE_CTRL_C,
            )
        try:
            yield cluster.scheduler_address
        finally:
            cluster.close(timeout=10)


@contextlib.contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Hold Ctrl-C back until the block ends: half a cluster is hard to close."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def quiet_logs() -> Iterator[None]:
    """Silence Dask's own log while the block runs: what matters reaches the user as an error."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado.application")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def workers_of(client: Client, without: Collection[str] = ()) -> list[str]:
    """Addresses of the cluster's workers, in order.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    without : collection of str
        Addresses to leave out.
    """
    return sorted(address for address in client.nthreads() if address not in without)


def threads_of_worker() -> int:
    """Number of threads of the worker that this runs on."""
    from distributed import get_worker

    return int(get_worker().state.nthreads)


def check_memory(client: Client, needed: Mapping[str, int]) -> None:
    """Refuse work for which a worker has too little memory.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    needed : mapping from str to int
        Bytes that the work takes on every worker, by address. A worker without a limit is not checked.
    """
    known = client.scheduler_info(n_workers=-1)["workers"]
    for address, n_bytes in needed.items():
        worker = known.get(address, {})
        limit, held = worker.get("memory_limit") or 0, worker.get("metrics", {}).get("memory", 0)
        if limit and n_bytes > USABLE * limit - held:
            raise ClusterError(
                f"worker {address} has too little memory: the work takes {_size(n_bytes)}, but of its limit of "
                f"{_size(limit)} Dask lets it use {USABLE:.0%}, and it holds {_size(held)} already; "
                "use more workers, or workers with a higher memory limit"
            )


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.2f} GB" if n_bytes >= 1e7 else f"{n_bytes / 1e6:.2f} MB"
