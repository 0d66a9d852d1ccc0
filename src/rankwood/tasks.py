"""Functions called on the workers of a Dask cluster, and what comes of workers that die."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from rankwood.errors import MissingPackageError, RankwoodError


class WorkerLost(RankwoodError):
    """Workers of a cluster went away, and with them what they were to do.

    Parameters
    ----------
    message : str
        What happened.
    advice : str
        How to go on.
    """

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.advice}"


def import_distributed(needed_for: str) -> Any:
    """The package `distributed`, or an error that says what needs it and how to install it.

    Parameters
    ----------
    needed_for : str
        What needs it, as the subject of the sentence.
    """
    try:
        import distributed
    except ImportError:
        raise MissingPackageError("distributed", needed_for, "dask") from None
    return distributed


def sees_all(client: Any, paths: Sequence[Path]) -> bool:
    """Whether every worker of a Dask cluster sees these files at the same place, with the same sizes.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    paths : sequence of Path
        Absolute paths.
    """
    sizes = _sizes(paths)
    return all(found == sizes for found in client.run(_sizes, paths).values())


def _sizes(paths: Sequence[Path]) -> list[int | None]:
    """Sizes of files; None where there is none."""
    return [path.stat().st_size if path.is_file() else None for path in paths]


def on_worker(client: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns on some worker of a Dask cluster; it is called again elsewhere when the worker dies.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    function : callable
        What is called.
    *arguments
        Its arguments; futures of the cluster are replaced by what they hold.
    """
    future = client.submit(function, *arguments, pure=False)
    try:
        return result_of(future)
    finally:
        client.cancel([future], force=True)  # which matters after Ctrl-C


def in_order(
    client: Any, function: Callable[..., Any], items: Iterable[Any], *shared: Any
) -> Generator[Any, None, None]:
    """What a function returns for every item, in the order of the items, called on the workers of a Dask cluster.

    Closing the generator, which errors and Ctrl-C do, cancels what is not done.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    function : callable
        Called with an item and what is shared.
    items : iterable
        What differs from call to call.
    *shared
        What is the same for all, such as a model: it is sent once, not with every item.
    """
    common = client.submit(_as_given, *shared, pure=False)  # no scattered data: this is made again if a worker dies
    futures = deque(client.submit(_called, function, item, common, pure=False) for item in items)
    try:
        while futures:
            yield result_of(futures[0])
            futures.popleft().release()
    finally:
        client.cancel([common, *futures], force=True)


def _as_given(*shared: Any) -> tuple[Any, ...]:
    return shared


def _called(function: Callable[..., Any], item: Any, shared: tuple[Any, ...]) -> Any:
    return function(item, *shared)


def result_of(future: Any) -> Any:
    """What a task returned; its errors as they are, and the loss of workers in words.

    Parameters
    ----------
    future : distributed.Future
        The task; waited for.
    """
    distributed = import_distributed("a Dask client")
    try:
        return future.result()
    except distributed.KilledWorker:
        raise WorkerLost(
            "several Dask workers died one after the other with the same task, perhaps for want of memory",
            "go on with larger workers",
        ) from None
    except (CancelledError, distributed.CancelledError):
        raise WorkerLost("the Dask cluster has dropped a task", "look after the scheduler, and do it again") from None
