"""Facts of the machine: threads that a call may use, instruction sets, processor, caches, memory."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from rankwood import _native
from rankwood.errors import RankwoodError

# Threads.


def resolve_threads(n_threads: int | None) -> int:
    """Number of threads to use: `n_threads`, or one for every CPU that this process may run on when it is None.

    Examples
    --------
    >>> resolve_threads(3)
    3
    """
    if type(n_threads) is int and n_threads >= 1:  # the usual case first: a call for one document must cost little
        return n_threads
    if n_threads is None:
        if hasattr(os, "sched_getaffinity"):  # respects taskset and container limits
            return max(1, len(os.sched_getaffinity(0)))
        return os.cpu_count() or 1
    if isinstance(n_threads, bool) or not hasattr(n_threads, "__index__"):
        raise RankwoodError(f"n_threads must be a whole number, got {n_threads!r}; None uses every CPU")
    if n_threads < 1:
        raise RankwoodError(f"n_threads must be at least 1, got {n_threads}; None uses every CPU")
    return int(n_threads)


# Instruction sets of the kernels; the environment variable RANKWOOD_ISA forces one.


def active_isa() -> str:
    """Name of the instruction set in use: the widest that this CPU has, or the one that RANKWOOD_ISA names."""
    try:
        return _native.active_isa()
    except ValueError as error:
        raise RankwoodError(str(error)) from None


def available_isas() -> list[str]:
    """Instruction sets of this build that this CPU can run, widest first.

    Examples
    --------
    >>> available_isas()[-1]
    'baseline'
    """
    return _native.available_isas()


# Processor, caches and memory.

_MEMINFO = Path("/proc/meminfo")
_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cpu_name() -> str:
    """Name of the processor; on systems other than Linux, whatever Python knows of it.

    Examples
    --------
    >>> cpu_name() != ""
    True
    """
    try:
        name = re.search(r"^model name\s*:\s*(.+)$", _CPUINFO.read_text(), re.MULTILINE)
    except OSError:
        name = None
    return name[1].strip() if name else platform.processor() or platform.machine() or "unknown"


def largest_cache() -> int | None:
    """Size in bytes of the largest cache of the first CPU; None when the system does not tell."""
    sizes = []
    for path in _CACHES.glob("index*/size"):
        try:
            size = re.fullmatch(r"(\d+)([KMG]?)", path.read_text().strip())
        except OSError:
            continue
        if size:
            sizes.append(int(size[1]) * _UNITS[size[2]])
    return max(sizes, default=None)


def available_memory() -> int | None:
    """Bytes of memory that programs can still take without swapping; None when the system does not tell."""
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB$", _MEMINFO.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) << 10
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


# All of it, to note beside a result.


def environment(n_threads: int | None = None, n_workers: int | None = None) -> dict[str, Any]:
    """Versions, machine and threads with which a result was made; times depend on them, results do not.

    Parameters
    ----------
    n_threads : int, optional
        Threads of each process, as in `resolve_threads`.
    n_workers : int, optional
        Number of processes; noted if given.

    Examples
    --------
    >>> environment(1)["threads"]
    1
    """
    import numpy
    import scipy
    import sklearn

    from rankwood._version import __version__

    return {
        "rankwood": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "system": f"{platform.system()} {platform.release()}",
        "cpu": cpu_name(),
        "cpus": os.cpu_count(),
        "instruction_set": active_isa(),
        "threads": resolve_threads(n_threads),
        **({} if n_workers is None else {"workers": n_workers}),
    }
