"""How many threads a call may use."""

from __future__ import annotations

import os

from rankwood.errors import RankwoodError


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
