"""How long `import rankwood` takes, and how much of it is numpy.

    python benchmarks/import_time.py

Median of fresh interpreters; the time of an interpreter that imports nothing is subtracted.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 15


def seconds(code: str) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    bare = seconds("")
    for name, code in [
        ("import numpy", "import numpy"),
        ("import rankwood", "import rankwood"),
        ("first Ensemble", "import rankwood; rankwood.Ensemble"),
        (
            "rankwood --version",
            "import sys, rankwood.cli as cli\nsys.argv[1:] = ['--version']\ntry: cli.main()\nexcept SystemExit: pass",
        ),
    ]:
        print(f"{name:20} {1000 * (seconds(code) - bare):7.1f} ms")


if __name__ == "__main__":
    main()
