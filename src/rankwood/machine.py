"""What is known of the machine: the name of its processor, the size of its caches, the memory that is free."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

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
