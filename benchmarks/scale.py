"""Training from Parquet files that need not fit into memory, against LightGBM; and one machine against Dask.

    python benchmarks/scale.py write --rows 20000000 --to FOLDER
    python benchmarks/scale.py run --data FOLDER [--trees 10] [--threads 2] [--peers lightgbm,lightgbm-quantised]
                                   [--memory-limit 12] [--address-limit GB] [--json FILE]
    python benchmarks/scale.py dask [--rows 1000000 | --data FOLDER] [--workers 1,2] [--trees 10] [--json FILE]

`write` draws data shaped like MSLR-WEB (136 features, about 120 documents a query, labels 0 to 4) block by block, every
block with its own seed from the same world, and one more block that nobody learns from. A row is about 0.2 KB on disk.

`run` trains on these files: LambdaMART with 64 leaves, 255 bins, at least 20 documents a leaf, rate 0.05, truncation at
30. Every contender has a process of its own, one after the other. LightGBM reads the files through `lightgbm.Sequence`
and rankwood's reader, some thousand rows at a time, so that it need not hold raw values either: once for the sample
that bins are made of, once to encode, as rankwood does. Its other settings, such as how it chooses between columns and
rows, are its defaults. Listed are

- preparation: everything until the first tree begins (reading, binning, setting up);
- time per tree: the median of all but the first, without validation data;
- peak memory: the largest resident size of the process, and what of it was added after imports, also per document;
- nDCG@10 on the held-out block after the last tree, beside that of a random order: whether both have learnt.

Exit status 1: a contender failed, or rankwood took more than --memory-limit. --address-limit is a limit on rankwood's
address space (RLIMIT_AS), which counts what is reserved but never touched, too.

`dask` trains from files with `fit`, on 1 and 2 threads, and with `fit(..., client=...)` on local clusters of as many
threads in all, one worker or several; rounds of all of them, the smallest of each is shown. A tree's time includes the
callback that takes it, which the client is asked for. All models must have the same fingerprint; exit status 1 if not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scoring.machine import describe_machine, versions

import rankwood as rw
from rankwood.data.files import iter_features

LEAVES, RATE, BINS, MIN_DOCS, TRUNCATION = 64, 0.05, 255, 20, 30
DOCS_PER_QUERY, ROWS_PER_BLOCK, BLOCKS_PER_FILE = 120, 2**18, 2
QUERIES_PER_BLOCK = ROWS_PER_BLOCK // DOCS_PER_QUERY
BATCH = 2**15  # rows that LightGBM is handed at a time
HELD_OUT_SEED = 2**31
GB = 1e9

Scorer = Callable[[rw.Dataset], Any]


# ---- the data


def train_files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("train-*.parquet"))
    if not files:
        raise SystemExit(f"{folder} has no train-*.parquet: make them with `write`")
    return files


def count_rows(files: list[Path], n_trees: int) -> int:
    """Number of rows of the files; says what is trained."""
    from pyarrow import parquet

    metadata = [parquet.read_metadata(file) for file in files]
    rows: int = sum(one.num_rows for one in metadata)
    features = metadata[0].num_columns - 2
    print(f"{rows:,} x {features} rows in {len(files)} file(s), raw values {4 * rows * features / GB:.2f} GB; "
          f"{n_trees} trees of {LEAVES} leaves", flush=True)  # fmt: skip
    return rows


def held_out_file(folder: Path) -> Path:
    return folder / "held-out.parquet"


def write(rows: int, folder: Path, threads: int) -> None:
    """Files of `BLOCKS_PER_FILE` blocks, each a group of rows; no more than one block is in memory."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty: name a new folder")
    n_queries = max(2, round(rows / DOCS_PER_QUERY))
    firsts = range(0, n_queries, QUERIES_PER_BLOCK)
    start, n_rows = time.perf_counter(), 0
    for number, first in enumerate(range(0, len(firsts), BLOCKS_PER_FILE)):
        of_file = firsts[first : first + BLOCKS_PER_FILE]
        blocks = ((query, min(QUERIES_PER_BLOCK, n_queries - query), query // QUERIES_PER_BLOCK) for query in of_file)
        n_rows += write_blocks(folder / f"train-{number:04}.parquet", blocks, threads)
        print(f"{n_rows:,} of about {rows:,} rows in {time.perf_counter() - start:.0f} s", flush=True)
    held_out = (n_queries, min(QUERIES_PER_BLOCK, n_queries), HELD_OUT_SEED)
    n_held_out = write_blocks(held_out_file(folder), iter([held_out]), threads)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{n_rows:,} rows of {n_queries:,} queries, and {n_held_out:,} rows held out: {size / GB:.2f} GB")


def write_blocks(file: Path, blocks: Iterator[tuple[int, int, int]], threads: int) -> int:
    """Write blocks, given by first query, number of queries and seed; returns the number of rows."""
    import pyarrow as pa
    from pyarrow import parquet

    n_rows = 0
    with contextlib.ExitStack() as stack:
        writer = None
        for first_query, n_queries, seed in blocks:
            data = rw.make_ranking(n_queries, DOCS_PER_QUERY, seed=seed, n_threads=threads)
            roles = {"qid": first_query + np.asarray(data.qid), "label": data.y.astype(np.float32)}
            names = data.feature_names or ()
            features = {name: np.ascontiguousarray(values) for name, values in zip(names, data.X.T, strict=True)}
            table = pa.table(roles | features)
            writer = writer or stack.enter_context(parquet.ParquetWriter(file, table.schema))
            writer.write_table(table, row_group_size=table.num_rows)
            n_rows += data.n_docs
            del data, features, table
    return n_rows


# ---- one contender, in a process of its own


class Stopwatch:
    """Callbacks of rankwood and of LightGBM that note when the first tree begins and when each one ends."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.times: list[float] = []

    @property
    def callbacks(self) -> list[Callable[[Any], None]]:
        def before(env: Any) -> None:
            if not self.times:
                self.times.append(time.perf_counter())

        def after(env: Any) -> None:
            self.times.append(time.perf_counter())

        before.before_iteration = True  # type: ignore[attr-defined]
        return [before, after]

    @property
    def preparation(self) -> float:
        return self.times[0] - self.start

    @property
    def first_tree(self) -> float:
        return self.times[1] - self.times[0]

    @property
    def per_tree(self) -> float:
        return float(np.median(np.diff(self.times[1:])))


def lambdamart(n_trees: int, threads: int) -> rw.LambdaMART:
    return rw.LambdaMART(
        n_trees, LEAVES, RATE, max_bins=BINS, min_docs_per_leaf=MIN_DOCS, truncation=TRUNCATION, n_jobs=threads
    )


def learn_rankwood(files: list[Path], n_trees: int, threads: int, stopwatch: Stopwatch) -> Scorer:
    ranker = lambdamart(n_trees, threads)
    ranker.fit(files, callbacks=stopwatch.callbacks)
    return ranker.predict


def learn_lightgbm(
    files: list[Path], n_trees: int, threads: int, stopwatch: Stopwatch, *, quantised: bool = False
) -> Scorer:
    import lightgbm as lgb

    class Features(lgb.Sequence):
        """Rows of the files, read forwards: LightGBM asks for the rows of its sample in order, then for all."""

        batch_size = BATCH

        def __init__(self, n_rows: int, n_features: int) -> None:
            self.n_rows, self.n_features = n_rows, n_features
            self.rewind()

        def rewind(self) -> None:
            self.blocks = iter_features(files, n_features=self.n_features, n_threads=threads)
            self.block, self.first = next(self.blocks), 0

        def advance(self) -> None:
            self.first += len(self.block)
            self.block = next(self.blocks)

        def __len__(self) -> int:
            return self.n_rows

        def __getitem__(self, rows: Any) -> Any:
            start, stop = (rows.start, rows.stop) if isinstance(rows, slice) else (rows, rows + 1)
            if start < self.first:
                self.rewind()
            while start >= self.first + len(self.block):
                self.advance()
            parts = [self.block[start - self.first : stop - self.first]]
            while stop > self.first + len(self.block):
                self.advance()
                parts.append(self.block[: stop - self.first])
            found = parts[0] if len(parts) == 1 else np.concatenate(parts)
            return found if isinstance(rows, slice) else found[0].astype(np.float64)  # as its sample must be

    parameters = {
        "objective": "lambdarank",
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "min_data_in_leaf": MIN_DOCS,
        "max_bin": BINS,
        "lambdarank_truncation_level": TRUNCATION,
        "num_threads": threads,
        "use_quantized_grad": quantised,
        "verbose": -1,
    }
    opened = rw.open_data(files, n_threads=threads)  # labels and queries alone
    features = Features(opened.n_docs, opened.n_features)
    data = lgb.Dataset(features, opened.y, group=opened.queries.sizes, params=parameters, free_raw_data=True)
    del opened, features
    data.construct()
    model = lgb.train(parameters, data, n_trees, callbacks=stopwatch.callbacks)
    return lambda held_out: model.predict(held_out.X)


CONTENDERS: dict[str, Callable[..., Scorer]] = {
    "rankwood": learn_rankwood,
    "lightgbm": learn_lightgbm,
    "lightgbm-quantised": lambda *a: learn_lightgbm(*a, quantised=True),
}


def resident() -> int:
    """Bytes of this process in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak() -> int:
    """Bytes of this process in memory at most; kilobytes on Linux."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def import_all(name: str) -> None:
    """Import what a contender needs, which its memory does not include."""
    import pyarrow.parquet  # noqa: F401

    rw.LambdaMART()
    if name != "rankwood":
        import lightgbm  # noqa: F401


def measure(name: str, folder: str, n_trees: int, threads: int, address_limit: float | None) -> dict[str, Any]:
    """One contender in this process: it should be a fresh one."""
    files = train_files(Path(folder))
    import_all(name)
    no_limit = resource.getrlimit(resource.RLIMIT_AS)
    if name == "rankwood" and address_limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (int(address_limit * GB), no_limit[1]))
    before = resident()
    stopwatch = Stopwatch()
    score = CONTENDERS[name](files, n_trees, threads, stopwatch)
    highest = peak()
    resource.setrlimit(resource.RLIMIT_AS, no_limit)
    held_out = rw.read_data(held_out_file(Path(folder)), n_threads=threads)
    rng = np.random.default_rng(0)
    ndcg, random = (
        rw.evaluate(scores, held_out, "nDCG@10").means["nDCG@10"]
        for scores in (score(held_out), rng.random(held_out.n_docs))
    )
    return {
        "contender": name,
        "threads": threads,
        "trees": n_trees,
        "prepare_s": stopwatch.preparation,
        "first_tree_ms": 1000 * stopwatch.first_tree,
        "ms_per_tree": 1000 * stopwatch.per_tree,
        "peak_bytes": highest,
        "added_bytes": highest - before,
        "ndcg": ndcg,
        "ndcg_of_random_order": random,
    }


def in_fresh_process(*arguments: Any) -> dict[str, Any] | None:
    """What `measure` finds, None if it fails: then its error is on the screen."""
    command = [sys.executable, __file__, "one", json.dumps(arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": str(arguments[3])}
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if result.returncode:
        print(f"{arguments[0]} failed: exit status {result.returncode}", flush=True)
        return None
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def run(options: argparse.Namespace) -> tuple[list[dict[str, Any]], bool]:
    """Figures of every contender, and whether all is well."""
    rows = count_rows(train_files(options.data), options.trees)
    results: list[dict[str, Any]] = []
    well, ours = True, None
    for name in ["rankwood", *(peer for peer in options.peers.split(",") if peer)]:
        found = in_fresh_process(name, str(options.data), options.trees, options.threads, options.address_limit)
        if found is None:
            well = False
            continue
        ours = found if name == "rankwood" else ours
        found["rows"], found["bytes_per_doc"] = rows, found["added_bytes"] / rows
        results.append(found)
        print(f"{name:20} {options.threads} thread(s) {found['ms_per_tree']:8.1f} ms per tree"
              f"{times(found, ours, 'ms_per_tree')}, prepared in "
              f"{found['prepare_s']:.1f} s{times(found, ours, 'prepare_s')}, peak {found['peak_bytes'] / GB:.2f} GB, "
              f"{found['added_bytes'] / GB:.2f} added{times(found, ours, 'added_bytes')}, "
              f"{found['bytes_per_doc']:.0f} bytes a document; first tree {found['first_tree_ms']:.0f} ms; nDCG@10 "
              f"{found['ndcg']:.4f} (random order {found['ndcg_of_random_order']:.4f})", flush=True)  # fmt: skip
    if ours is not None and ours["peak_bytes"] > options.memory_limit * GB:
        print(f"rankwood took more than {options.memory_limit} GB")
        well = False
    return results, well


def times(found: dict[str, Any], ours: dict[str, Any] | None, what: str) -> str:
    return "" if ours is None or found is ours else f" ({found[what] / ours[what]:.2f}x ours)"


# ---- one machine against Dask


class Setup(NamedTuple):
    """Workers of a cluster and threads of each; no worker is `fit` without a cluster."""

    workers: int
    threads: int

    @property
    def plain(self) -> Setup:
        """As many threads without a cluster."""
        return Setup(0, max(1, self.workers) * self.threads)

    @property
    def goal(self) -> float:
        """Overhead to stay below."""
        return 0.10 if self.workers == 1 else 0.25

    def __str__(self) -> str:
        where = f"{self.workers} worker(s) of " if self.workers else "plain fit, "
        return f"{where}{self.threads} thread(s)"


def setups(workers: list[int]) -> list[Setup]:
    """Clusters of one worker have one and two threads, others one thread a worker; each after its plain twin."""
    clusters = [Setup(n, threads) for n in workers for threads in ((1, 2) if n == 1 else (1,))]
    return sorted({setup.plain for setup in clusters}) + clusters


def start_cluster(stack: contextlib.ExitStack, setup: Setup) -> Any:
    """Client of a local cluster with a process for each worker."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=setup.workers, threads_per_worker=setup.threads, dashboard_address="127.0.0.1:0", memory_limit=0
    )
    return stack.enter_context(Client(stack.enter_context(cluster)))


def dask(options: argparse.Namespace) -> tuple[list[dict[str, Any]], bool]:
    """Figures of every setup, and whether all models are the same."""
    found: dict[Setup, list[tuple[Stopwatch, float]]] = {}
    fingerprints = set()
    with contextlib.ExitStack() as stack:
        folder = options.data
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "data"
            write(options.rows, folder, options.threads)
        files = train_files(folder)
        n_rows = count_rows(files, options.trees)
        chosen = setups([int(n) for n in options.workers.split(",")])
        clients = {setup: start_cluster(stack, setup) if setup.workers else None for setup in chosen}
        for _ in range(options.repeats):
            for setup, client in clients.items():
                ranker = lambdamart(options.trees, setup.threads)
                given = {} if client is None else {"client": client}
                stopwatch = Stopwatch()
                ranker.fit(files, callbacks=stopwatch.callbacks, **given)
                found.setdefault(setup, []).append((stopwatch, time.perf_counter() - stopwatch.start))
                fingerprints.add(ranker.ensemble_.fingerprint())
    rows = {
        setup: {
            "workers": setup.workers,
            "threads": setup.threads,
            "rows": n_rows,
            "trees": options.trees,
            "ms_per_tree": 1000 * min(stopwatch.per_tree for stopwatch, _ in runs),
            "prepare_s": min(stopwatch.preparation for stopwatch, _ in runs),
            "fit_s": min(seconds for _, seconds in runs),
        }
        for setup, runs in found.items()
    }
    for setup, row in rows.items():
        line = f"{setup!s:28} {row['ms_per_tree']:8.1f} ms per tree, prepared in {row['prepare_s']:.1f} s"
        if setup.workers:
            row["overhead"] = row["ms_per_tree"] / rows[setup.plain]["ms_per_tree"] - 1
            line += f", {row['overhead']:+.1%} over {setup.plain} (goal: below {setup.goal:.0%})"
        print(line)
    same = len(fingerprints) == 1
    print(f"fingerprint {fingerprints.pop()} of all models" if same else f"models differ: {sorted(fingerprints)}")
    return list(rows.values()), same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="draw the data")
    writing.add_argument("--rows", type=int, default=20_000_000)
    writing.add_argument("--to", type=Path, required=True, help="a new folder")
    running = commands.add_parser("run", help="rankwood and LightGBM from files")
    running.add_argument("--data", type=Path, required=True, help="folder that `write` made")
    running.add_argument("--peers", default="lightgbm,lightgbm-quantised")
    running.add_argument("--memory-limit", type=float, default=12.0, help="GB that rankwood may take")
    running.add_argument("--address-limit", type=float, help="GB of address space for rankwood")
    clusters = commands.add_parser("dask", help="plain fit and local clusters")
    clusters.add_argument("--rows", type=int, default=1_000_000)
    clusters.add_argument("--data", type=Path, help="folder that `write` made, instead of new rows")
    clusters.add_argument("--workers", default="1,2")
    clusters.add_argument("--repeats", type=int, default=3)
    for command in (writing, running, clusters):
        command.add_argument("--threads", type=int, default=2)
    for command in (running, clusters):
        command.add_argument("--trees", type=int, default=10)
        command.add_argument("--json", type=Path, help="file for the figures")
    commands.add_parser("one").add_argument("arguments")
    options = parser.parse_args()
    if options.command == "one":
        print(json.dumps(measure(*json.loads(options.arguments))))
        return
    if options.command == "write":
        write(options.rows, options.to, options.threads)
        return
    if options.trees < 2:
        parser.error("--trees must be at least 2: the first does not count")
    machine = describe_machine()
    packages = {"rankwood": rw.__version__} | versions(["numpy", "pyarrow", "lightgbm", "dask", "distributed"])
    print(", ".join(f"{name} {version}" for name, version in packages.items()), f"({machine['isa']})")
    print(f"{machine['cpu']}, {machine['n_cpus']} CPUs, flags {' '.join(machine['flags'])}; load {machine['load']}")
    results, well = (run if options.command == "run" else dask)(options)
    if options.json:
        facts = {"machine": machine, "versions": packages, "results": results}
        options.json.write_text(json.dumps(facts, indent=2), encoding="utf-8")
    if not well:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
