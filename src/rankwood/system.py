"""The machine and how much of it a call may use: threads, instruction sets, processor, caches, memory."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from rankwood import _native
from rankwood.errors import RankwoodError

# How many threads a call may use.


def resolve_threads(n_threads: int | None) -> int:
    """Return the number of threads to use: `n_threads`, or every CPU this process may run on when it is None.

    >>> resolve_threads(3)
    3
    """
    if type(n_threads) is int and n_threads >= 1:  # nearly always; a call for one document must cost little
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


# Which instruction set the kernels use. The environment variable RANKWOOD_ISA forces one.


def active_isa() -> str:
    """Name of the instruction set in use: the widest that this CPU has, or what RANKWOOD_ISA names."""
    try:
        return _native.active_isa()
    except ValueError as error:
        raise RankwoodError(str(error)) from None


def available_isas() -> list[str]:
    """Instruction sets of this build that this CPU can run, widest first.

    >>> available_isas()[-1]
    'baseline'
    """
    return _native.available_isas()


# What is known of the machine: the name of its processor, the size of its caches, the memory that is free.


_MEMINFO = Path("/proc/meminfo")
_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cpu_name() -> str:
    """The processor as it calls itself; as much as Python knows of it elsewhere than on Linux.

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
    """Bytes that programs may still take without swapping; None when the system does not tell."""
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


# What a result was made with.


def environment(n_threads: int | None = None, n_workers: int | None = None) -> dict[str, Any]:
    """What a result was made with: versions, machine, threads of each process. Results do not depend on it, times do.

    >>> environment(1)["threads"]
    1
    """
    import platform

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
