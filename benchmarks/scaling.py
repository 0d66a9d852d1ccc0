"""Training time on up to 64 cores, computed from the tasks of a run on one.

    python benchmarks/scaling.py [--rows 2300000] [--trees 5] [--cores 1,2,4,8,16,32,64] [--repeats 2] [--json FILE]

For every number of cores, training runs once in one thread while the parallel regions are recorded: the work is cut
into tasks as for so many threads, and every task is timed (`native/task_record.hpp`). The time on P cores is then that
of the same regions, one after the other, each with its tasks handed out in their order to whoever of P threads is free,
plus all that is serial. Added to it:

- a region of the pool: what two threads take here for two equal tasks beyond the time of one, measured, and as much
  again for every doubling of the threads, assumed;
- every task: what handing it out takes here, measured;
- a region that starts threads of its own: the caller starts them one after the other, each as long as starting and
  ending one takes here, measured.

Left out: that cores share memory and caches, and that many busy cores run at a lower clock. So the efficiencies are
upper bounds; the bytes that a tree moves, divided by the computed time, say what memory must deliver for them to hold.
As a check, the computed time on two cores is compared with the measured time of two threads, where there are two. Tasks
and serial work are timed by the processor time of their thread, so that other work on the machine counts little; the
check is by the clock on the wall, and needs an idle machine.

Data and settings are those of `train.py`: synthetic data shaped like MSLR-WEB (136 features), LambdaMART with 64 leaves
and 255 bins, nDCG@10 of validation data (a fifth of it all) after every tree. Times are per tree; the first tree does
not count. Efficiency is the time of one thread, which needs no merging, over P times the computed one.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import os
import platform
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rankwood as rw
from rankwood import _native
from rankwood.system import active_isa, cpu_name

LEAVES, RATE, BINS = 64, 0.05, 255
GROUP = 16  # features whose bins lie side by side: native/isa/kernels.hpp


class Region(NamedTuple):
    """As native/task_record.hpp has it; times in seconds."""

    file: str
    function: str
    n_threads: int
    starts_threads: bool
    start: float
    python: float
    native: float
    native_here: float
    tasks: list[float]

    @property
    def phase(self) -> str:
        if self.file in ("lambdas.hpp", "bucket_ranking.hpp", "squared_gradients.hpp"):
            return "gradients"
        if self.file == "grower.hpp":
            return "partition" if "partition" in self.function else "histograms, splits"
        if self.file in ("binned_tree.hpp", "kept_leaves.hpp", "per_query.hpp"):
            return "scores, validation"
        return "other tasks"


PHASES = ["gradients", "histograms, splits", "partition", "scores, validation", "other tasks", "serial C++", "Python"]


class Costs(NamedTuple):
    """Of keeping threads together, in seconds; measured on two threads."""

    region: float  # one of the pool
    task: float
    start: float  # of one thread

    @classmethod
    def measured(cls) -> Costs:
        task = 20e-6
        together = _native.region_seconds(2, 2, task) - task
        tickets = (_native.region_seconds(1, 2000, 0.0) - _native.region_seconds(1, 0, 0.0)) / 2000
        leaves, values = np.zeros(16385, np.uint16), np.zeros(1)  # two tasks, one of them with a single row
        scores = np.zeros(len(leaves))

        def add(n_threads: int) -> float:
            return least(lambda: _native.add_leaf_values(leaves, values, 1.0, scores, n_threads), 300)

        return cls(max(0.0, together), max(0.0, tickets), max(0.0, add(2) - add(1)))

    def of_pool(self, n_threads: int) -> float:
        return self.region * math.log2(max(2, n_threads))


def least(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def region_time(region: Region, n_cores: int, costs: Costs) -> float:
    """Time of a region: its tasks go, in order, to the thread that is free first."""
    n = min(n_cores, region.n_threads, len(region.tasks))
    begin = 0.0 if region.starts_threads else costs.of_pool(n)
    if region.starts_threads:  # the caller comes last: it starts the others
        free = [begin + min(w + 1, n - 1) * costs.start for w in range(n)]
    else:
        free = [begin] * n
    heapq.heapify(free)
    for task in region.tasks:
        heapq.heapreplace(free, free[0] + task + costs.task)
    return max(free)


def makespan(regions: list[Region], n_cores: int, costs: Costs) -> dict[str, float]:
    """Seconds by phase. Serial time of a binding belongs to the phase of the region that comes next in it."""
    if n_cores == 1:
        costs = Costs(0.0, 0.0, 0.0)
    seconds: dict[str, float] = defaultdict(float)
    for region in regions:
        seconds["Python"] += region.python
        seconds["serial C++"] += region.native - region.native_here
        if region.tasks:
            seconds[region.phase] += region.native_here + region_time(region, n_cores, costs)
        else:
            seconds["serial C++"] += region.native_here
    return seconds


class Data(NamedTuple):
    train: rw.BinnedDataset
    valid: rw.BinnedDataset

    @classmethod
    def make(cls, rows: int) -> Data:
        data = rw.make_ranking(n_queries=max(10, round(rows * 1.25 / 120)), docs_per_query=120, seed=0)
        train, valid = data.split(0.8, seed=0)
        binned = rw.BinnedDataset.make(train, BINS)
        return cls(binned, rw.BinnedDataset.encode(valid, binned.edges))


def fit(
    data: Data, n_trees: int, n_threads: int, clock: Callable[[], float] = time.perf_counter
) -> tuple[rw.Ensemble, list[float]]:
    """The model, and the times at which its trees were done."""
    done: list[float] = []
    ranker = rw.LambdaMART(n_trees, LEAVES, RATE, n_jobs=n_threads)
    ranker.fit(data.train, valid=data.valid, callbacks=[lambda env: done.append(clock())])
    return ranker.ensemble_, done


def measured_time(data: Data, n_trees: int, n_threads: int, repeats: int) -> float:
    """Seconds per tree, in the best of several runs; processor time for one thread, as tasks are timed."""
    clock = time.thread_time if n_threads == 1 else time.perf_counter
    times = (fit(data, n_trees, n_threads, clock)[1] for _ in range(repeats))
    return min(done[-1] - done[0] for done in times) / (n_trees - 1)


def record(data: Data, n_trees: int, n_threads: int) -> list[Region]:
    """Regions of all trees but the first."""
    _native.record_tasks(True)
    began = time.perf_counter()
    try:
        _, done = fit(data, n_trees, n_threads)
    finally:
        _native.record_tasks(False)
    first, last = done[0] - began, done[-1] - began
    regions = [Region(*region) for region in _native.recorded_tasks()]
    kept = [region for region in regions if first < region.start <= last]
    if kept:  # what was before the first tree's end is not of these trees; nor is what comes after the last
        before = min(kept[0].python, kept[0].start - first - kept[0].native)
        kept[0] = kept[0]._replace(python=max(0.0, before))
    return kept


def bytes_per_tree(model: rw.Ensemble, data: Data) -> float:
    """Bytes that the trees after the first read and write, each; caches may keep some of them.

    Histograms: bins, packed gradient and number of every document of a root and of every smaller child. Partition: one
    cache line's share of bins (16 bytes), and the number, read and written. Per document: scores, gains, gradients and
    their packed form twice, the leaf and what is added. Validation: 16 bytes per node visited, scores and labels.
    """
    visits = rw.usage(model, data.train.data.X)
    n_rows, n_valid = data.train.n_docs, data.valid.n_docs
    width = -(-data.train.data.n_features // GROUP) * GROUP
    n_nodes, n_left = visits.node_visits.astype(float), visits.left_visits.astype(float)
    smaller = np.minimum(n_left, n_nodes - n_left).sum() / model.n_trees
    visited = n_nodes.sum() / model.n_trees
    histograms = (n_rows + smaller) * (width + 8 + 4)
    partition = visited * (16 + 4 + 4)
    documents = n_rows * (8 + 4 + 2 * 16 + 2 * 8 + 2 + 16)
    validation = n_valid * (visited / n_rows * 16 + 2 * 2 + 3 * 8)
    return float(histograms + partition + documents + validation)


def copy_bandwidth() -> float:
    """Bytes per second that one core reads and writes when it copies 256 MB."""
    source, target = np.ones(2**25), np.zeros(2**25)
    return 2 * source.nbytes / least(lambda: np.copyto(target, source), 5)


def cpu_flags() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    flags = next((line.split(":")[1].split() for line in lines if line.startswith("flags")), [])
    return " ".join(flag for flag in flags if flag.startswith(("avx", "fma", "bmi"))) or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_300_000)
    parser.add_argument("--trees", type=int, default=5)
    parser.add_argument("--cores", default="1,2,4,8,16,32,64")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.trees < 2:
        parser.error("--trees must be at least 2: the first does not count")
    print(f"rankwood {rw.__version__} ({active_isa()}), numpy {np.__version__}, python {platform.python_version()}")
    print(f"{cpu_name()}, {os.cpu_count()} CPUs, flags {cpu_flags()}; load {os.getloadavg()[0]:.2f}")
    costs = Costs.measured()
    print(f"assumed per region of the pool: {1e6 * costs.region:.1f} us (measured on 2 threads) times log2 of threads; "
          f"per task {1e9 * costs.task:.0f} ns; per thread started {1e6 * costs.start:.1f} us")  # fmt: skip
    data = Data.make(options.rows)
    print(f"{data.train.n_docs:,} x {data.train.data.n_features} rows, {data.valid.n_docs:,} for validation; "
          f"{options.trees - 1} trees of {LEAVES} leaves after the first", flush=True)  # fmt: skip
    model, _ = fit(data, options.trees, 1)
    one = measured_time(data, options.trees, 1, options.repeats)
    moved = bytes_per_tree(model, data)
    found: list[dict[str, Any]] = []
    print(f"one thread: {1000 * one:.1f} ms per tree\n\nms per tree on P cores, computed")
    print(f"{'P':>3}" + "".join(f"{phase:>20}" for phase in PHASES) + f"{'all':>10}{'speed-up':>10}{'efficiency':>12}"
          f"{'GB/s':>8}")  # fmt: skip
    for n_cores in map(int, options.cores.split(",")):
        runs = (record(data, options.trees, max(2, n_cores)) for _ in range(options.repeats))
        spans = (makespan(regions, n_cores, costs) for regions in runs)
        span = {phase: s / (options.trees - 1) for phase, s in min(spans, key=lambda s: sum(s.values())).items()}
        seconds = sum(span.values())
        found.append({"cores": n_cores, "seconds": seconds, "phases": span, "efficiency": one / seconds / n_cores})
        print(f"{n_cores:>3}" + "".join(f"{1000 * span.get(phase, 0.0):>20.2f}" for phase in PHASES)
              + f"{1000 * seconds:>10.1f}{one / seconds:>10.2f}{one / seconds / n_cores:>12.0%}"
              f"{moved / seconds / 1e9:>8.1f}", flush=True)  # fmt: skip
    print("(one core: the tasks for two, one after the other)")
    bandwidth = copy_bandwidth()
    print(f"\nmemory: a tree moves about {moved / 1e9:.2f} GB; GB/s above is what that needs in the computed time. One "
          f"core copies {bandwidth / 1e9:.1f} GB/s here (read and written): alone it could not be faster than "
          f"{1000 * moved / bandwidth:.0f} ms per tree. A machine whose memory delivers less than the column says "
          "stays below the efficiency given.")  # fmt: skip
    computed = next((row["seconds"] for row in found if row["cores"] == 2), None)
    if computed is not None and len(os.sched_getaffinity(0)) >= 2:
        real = measured_time(data, options.trees, 2, options.repeats)
        print(f"check on two cores: computed {1000 * computed:.1f} ms, measured {1000 * real:.1f} ms "
              f"({computed / real - 1:+.0%}); load {os.getloadavg()[0]:.2f}")  # fmt: skip
    if options.json:
        facts = {"rows": data.train.n_docs, "one": one, "bytes": moved, "bandwidth": bandwidth}
        text = json.dumps({**facts, "costs": costs._asdict(), "computed": found}, indent=2)
        options.json.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
