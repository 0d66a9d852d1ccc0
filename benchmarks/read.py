"""How fast ranking data is read, and how much memory that takes.

An MSLR-shaped text file is made in a temporary folder and read by rankwood, scikit-learn and LightGBM, each in a
process of its own, from the system's file cache. What is compared:

  rankwood            text -> float32 matrix, labels, queries
  scikit-learn        load_svmlight_file(query_id=True): text -> float64 sparse matrix, labels, query ids
  lightgbm            Dataset(path).construct() on the same rows without query ids: text -> binned data. It cannot
                      stop after parsing, so it is also run with as little binning as its parameters allow
                      (2 bins from 1,000 sampled rows, no bundling of features)

    python benchmarks/read.py [--quick] [--json] [--megabytes N] [--repeats N]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np

N_FEATURES = 136
_LEAST_BINNING = {"max_bin": 2, "bin_construct_sample_cnt": 1000, "enable_bundle": False, "feature_pre_filter": False}

# ------------------------------------------------------------------------------------------------ the file

# MSLR has 25 kinds of features for each of the five fields of a page, then 11 of the page itself.
_KINDS = ["small", "ratio", "large", "score", *3 * ["small"], *2 * ["mean"], *5 * ["ratio"]]
_KINDS += [*5 * ["score"], "flag", "ratio", "score", *3 * ["minus"]]
_PRESENT = [0.93, 0.25, 0.97, 0.6, 0.98]  # body, anchor, title, URL, whole document: a field that is not there is 0


def make_lines(n_rows: int, seed: int = 0) -> list[str]:
    """Lines without label and query id, whose values look and repeat like those of MSLR."""
    rng = np.random.default_rng(seed)
    columns: list[list[str]] = []
    present = [rng.random(n_rows) < share for share in _PRESENT]
    makers: dict[str, Callable[[], list[str]]] = {
        "small": lambda: [str(v) for v in np.minimum(rng.geometric(0.4, n_rows) - 1, 50)],
        "flag": lambda: [str(v) for v in rng.integers(0, 2, n_rows)],
        "large": lambda: [str(int(v)) for v in rng.lognormal(5, 2, n_rows)],
        "ratio": lambda: [_decimal(v) for v in np.where(rng.random(n_rows) < 0.1, 1, rng.beta(1, 8, n_rows))],
        "mean": lambda: [_decimal(v) for v in np.where(rng.random(n_rows) < 0.5, 1, rng.gamma(1, 3, n_rows))],
        "score": lambda: [_decimal(v) for v in rng.gamma(2, 8, n_rows)],
        "minus": lambda: [_decimal(-v) for v in rng.gamma(4, 4, n_rows) + 1],
    }
    for kind in _KINDS:
        for field in range(5):
            columns.append([v if here else "0" for v, here in zip(makers[kind](), present[field], strict=True)])
    columns += [makers["large" if number % 2 else "small"]() for number in range(11)]
    return [" ".join(f"{f}:{v}" for f, v in enumerate(row, start=1)) for row in zip(*columns, strict=True)]


def _decimal(value: float) -> str:
    return f"{value:.6f}" if value % 1 else str(int(value))


def make_files(folder: Path, megabytes: int) -> tuple[Path, Path]:
    """Two files of the same rows: with query ids, and without."""
    rng = np.random.default_rng(1)
    lines = make_lines(5000)
    with_ids, without = folder / "mslr.txt", folder / "mslr.noqid.txt"
    row = 0
    with open(with_ids, "w") as a, open(without, "w") as b:
        while a.tell() < megabytes * 1_000_000:
            labels = rng.choice(5, len(lines), p=[0.55, 0.3, 0.12, 0.02, 0.01])
            for label, line in zip(labels, lines, strict=True):
                a.write(f"{label} qid:{row // 120} {line}\n")
                b.write(f"{label} {line}\n")
                row += 1
            a.flush()
    Path(str(without) + ".query").write_text("\n".join(["120"] * (row // 120) + [str(row % 120)] * (row % 120 > 0)))
    return with_ids, without


# ------------------------------------------------------------------------------------------------ what is measured


def read_with(tool: str, path: str, n_threads: int) -> tuple[int, int]:
    """Read the file once; return the shape."""
    if tool == "rankwood":
        import rankwood as rw

        data = rw.read_svmlight(path, n_threads=n_threads)
        return data.shape
    if tool == "scikit-learn":
        from sklearn.datasets import load_svmlight_file

        X, _, _ = load_svmlight_file(path, query_id=True)
        return X.shape
    import lightgbm

    params = {"num_threads": n_threads, "verbose": -1}
    if tool == "lightgbm, least binning":
        params.update(_LEAST_BINNING)
    data = lightgbm.Dataset(path, params=params).construct()
    return data.num_data(), data.num_feature()


def measure_here(tool: str, path: str, n_threads: int, repeats: int) -> dict[str, object]:
    read_with(tool, path.replace("mslr", "tiny"), n_threads)  # imports, and first use of everything
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    shape = (0, 0)
    for _ in range(repeats):
        start = time.perf_counter()
        shape = read_with(tool, path, n_threads)
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kilo = 1 if sys.platform == "darwin" else 1024
    return {"seconds": seconds, "rows": shape[0], "peak_bytes": peak * kilo, "before_bytes": before * kilo}


def measure(tool: str, path: Path, n_threads: int, repeats: int) -> dict[str, object]:
    """As `measure_here`, in a new process: memory of one tool must not count for another."""
    command = [sys.executable, __file__, "--measure", tool, str(path), str(n_threads), str(repeats)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(n_threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{tool} failed:\n{done.stderr}")
    result = json.loads(done.stdout.splitlines()[-1])
    seconds = statistics.median(result["seconds"])
    return {"tool": tool, "threads": n_threads, "median_seconds": seconds, **result}


def machine() -> dict[str, object]:
    from rankwood import _native

    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*:\s*(.*)", info)
    flags = re.search(r"flags\s*:\s*(.*)", info)
    known = set(flags[1].split()) if flags else set()
    packages = ["rankwood", "numpy", "scikit-learn", "lightgbm"]
    return {
        "cpu": model[1] if model else platform.processor(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "flags": sorted(known & {"sse4_2", "avx2", "bmi2", "avx512f", "avx512bw", "avx512vbmi"}),
        "isa": _native.active_isa(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in packages},
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        import rankwood

        return rankwood.__version__ + " (source tree)"


def run(megabytes: int, repeats: int, slow_repeats: int, threads: list[int]) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"making a file of {megabytes} MB ...", file=sys.stderr)
        with_ids, without = make_files(folder, megabytes)
        for path in (with_ids, without):
            with open(path) as lines:
                (folder / path.name.replace("mslr", "tiny")).write_text("".join(next(lines) for _ in range(120)))
        (folder / "tiny.noqid.txt.query").write_text("120\n")
        results = []
        for tool in ("rankwood", "lightgbm", "lightgbm, least binning"):
            path = with_ids if tool == "rankwood" else without
            for n_threads in threads:
                print(f"{tool}, {n_threads} threads ...", file=sys.stderr)
                results.append(measure(tool, path, n_threads, repeats))
        print("scikit-learn ...", file=sys.stderr)
        results.append(measure("scikit-learn", with_ids, 1, slow_repeats))
        size = {"with_ids": with_ids.stat().st_size, "without_ids": without.stat().st_size}
    matrix = results[0]["rows"] * N_FEATURES * 4  # type: ignore[operator]
    return {"machine": machine(), "file_bytes": size, "matrix_bytes": matrix, "results": results}


def show(report: dict[str, object]) -> None:
    host, results = report["machine"], report["results"]
    print(f"{host['cpu']}, {host['cpus']} CPUs ({' '.join(host['flags'])}), rankwood uses {host['isa']}")
    print(", ".join(f"{name} {version}" for name, version in host["versions"].items()), f"python {host['python']}")
    matrix = report["matrix_bytes"]
    print(f"file {report['file_bytes']['with_ids'] / 1e6:.0f} MB, float32 matrix {matrix / 1e6:.0f} MB\n")
    print(f"{'tool':24} {'threads':>7} {'median s':>9} {'min s':>7} {'MB/s':>6} {'peak MB':>8} {'peak / matrix':>13}")
    ours = {}
    for result in results:
        own = result["tool"] in ("rankwood", "scikit-learn")
        size = report["file_bytes"]["with_ids" if own else "without_ids"]
        peak, seconds = result["peak_bytes"], result["median_seconds"]
        print(
            f"{result['tool']:24} {result['threads']:7} {seconds:9.3f} {min(result['seconds']):7.3f} "
            f"{size / seconds / 1e6:6.0f} {peak / 1e6:8.0f} {peak / matrix:13.2f}"
        )
        if result["tool"] == "rankwood":
            ours[result["threads"]] = seconds
    print()
    for n_threads, seconds in ours.items():
        for result in results:
            if result["tool"] == "scikit-learn" or (result["tool"] != "rankwood" and result["threads"] == n_threads):
                ratio = result["median_seconds"] / seconds
                other = f"{result['tool']} ({result['threads']} threads)"
                print(f"rankwood with {n_threads} threads: {ratio:.1f} times as fast as {other}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=320)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="a file of 30 MB, and fewer repeats")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        tool, path, n_threads, repeats = options.measure
        print(json.dumps(measure_here(tool, path, int(n_threads), int(repeats))))
        return
    if options.quick:
        report = run(30, 3, 1, [1, 2])
    else:
        report = run(options.megabytes, options.repeats, min(options.repeats, 3), [1, 2])
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        show(report)


if __name__ == "__main__":
    main()
