"""A Dask cluster as its client sees it: how to get one, who works there, and how much fits."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwood.errors import ClusterError, MissingPackageError, one_line

if TYPE_CHECKING:
    from distributed import Client

USABLE = 0.8  # part of its limit at which a worker is paused by Dask
IGNORE_INTERRUPTS = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"


def need_distributed(needed_for: str = "a Dask cluster") -> Any:
    """The package `distributed`, or an error that tells how to install it.

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


@contextlib.contextmanager
def open_client(text: str, *, timeout: float = 30.0) -> Iterator[Client]:
    """A client of the cluster that the text names, closed at the end of the block.

    Parameters
    ----------
    text : str
        Address of a scheduler (`tcp://host:port`, `tls://host:port` or `host:port`), path of a scheduler file, or
        `local:N` for a cluster of N processes on this machine, which ends with the block.
    timeout : float
        Seconds to wait for the scheduler.
    """
    distributed = need_distributed()
    with contextlib.ExitStack() as stack:
        local = re.fullmatch(r"local:(\d+)", text)
        arguments: dict[str, Any] = {"timeout": timeout}
        if local and int(local[1]) > 0:
            arguments["address"] = stack.enter_context(_local_cluster(distributed, int(local[1])))
        elif re.fullmatch(r"(\w+://)?(\[[0-9a-fA-F:]+\]|[^\s:/]+):\d+", text) and not local:
            arguments["address"] = text
        elif Path(text).is_file():
            arguments["scheduler_file"] = text
        else:
            expected = "the address of a scheduler (tcp://host:port), a scheduler file, or local:N with N processes"
            raise ClusterError(f"no Dask cluster {one_line(text)!r}: expected {expected}")
        try:
            client = distributed.Client(**arguments)
        except (OSError, TypeError, ValueError, RuntimeError) as error:  # TypeError: TLS without certificates
            raise ClusterError(f"cannot connect to the Dask cluster {one_line(text)!r}: {one_line(error)}") from None
        yield stack.enter_context(client)


def _local_cluster(distributed: Any, n_workers: int) -> Any:
    """Processes of this machine, which leave Ctrl-C to the client."""
    from dask.system import CPU_COUNT

    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=max(1, CPU_COUNT // n_workers),
        processes=True,
        dashboard_address="127.0.0.1:0",  # none of its pages without bokeh
        preload=IGNORE_INTERRUPTS,
    )


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
