"""What a result was made with."""

from __future__ import annotations

import os
from typing import Any


def environment(n_threads: int | None = None) -> dict[str, Any]:
    """What a result was made with: versions, machine, threads. Results do not depend on it, times do.

    >>> environment(1)["threads"]
    1
    """
    import platform

    import numpy
    import scipy
    import sklearn

    from rankwood._version import __version__
    from rankwood.isa import active_isa
    from rankwood.machine import cpu_name
    from rankwood.threads import resolve_threads

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
    }
