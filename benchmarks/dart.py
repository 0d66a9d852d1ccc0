"""Training time of DART per iteration: against our own LambdaMART, and against LightGBM's and XGBoost's DART.

    python benchmarks/dart.py [--rows 100000] [--trees 500] [--peers lightgbm,xgboost] [--threads 1,2] [--repeats 3]
                              [--quick] [--json FILE]

Synthetic data shaped like MSLR-WEB (136 features), lambdarank with 50 leaves, 255 bins, learning rate 0.1, 1.5 % of the
trees dropped in every iteration, at least 20 documents per leaf. The time is that of a whole training, without binning,
divided by its iterations; nothing is measured on validation data but for X-DART, which needs some. The smallest of
several runs is shown: other work on the machine only ever adds. --quick has 8,000 rows and 20 trees, to see that it
works.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import rankwood as rw
from rankwood.system import active_isa, cpu_name

LEAVES, RATE, DROP, BINS, MIN_DOCS, TRUNCATION = 50, 0.1, 0.015, 255, 20, 30


def rankwood_trainer(learner: Any, train: rw.Dataset, valid: rw.Dataset | None, threads: int) -> Callable[[int], int]:
    binned = rw.BinnedDataset.make(train, BINS, n_threads=threads)

    def run(n_trees: int) -> int:
        more = {} if learner is rw.LambdaMART else {"l2": 0.0}
        ranker = learner(n_trees, LEAVES, RATE, min_docs_per_leaf=MIN_DOCS, n_jobs=threads, **more)
        ranker.fit(binned, valid=valid)
        return len(getattr(ranker, "log_", range(n_trees)))

    return run


def lightgbm_trainer(train: rw.Dataset, threads: int) -> Callable[[int], int]:
    import lightgbm as lgb

    parameters = {
        "objective": "lambdarank",
        "boosting": "dart",
        "drop_rate": DROP,
        "skip_drop": 0.0,
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "min_data_in_leaf": MIN_DOCS,
        "max_bin": BINS,
        "lambdarank_truncation_level": TRUNCATION,
        "num_threads": threads,
        "verbose": -1,
    }
    data = lgb.Dataset(train.X, train.y, group=train.queries.sizes, params=parameters, free_raw_data=False).construct()

    def run(n_trees: int) -> int:
        lgb.train(parameters, data, n_trees)
        return n_trees

    return run


def xgboost_trainer(train: rw.Dataset, threads: int) -> Callable[[int], int]:
    import xgboost as xgb

    parameters = {
        "objective": "rank:ndcg",
        "booster": "dart",
        "rate_drop": DROP,
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": LEAVES,
        "max_depth": 0,
        "max_bin": BINS,
        "eta": RATE,
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": TRUNCATION,
        "nthread": threads,
        "verbosity": 0,
    }
    data = xgb.QuantileDMatrix(train.X, train.y, group=train.queries.sizes, max_bin=BINS, nthread=threads)

    def run(n_trees: int) -> int:
        xgb.train(parameters, data, n_trees)
        return n_trees

    return run


PEERS: dict[str, Callable[[rw.Dataset, int], Callable[[int], int]]] = {
    "lightgbm": lightgbm_trainer,
    "xgboost": xgboost_trainer,
}


def cpu_flags() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    flags = next((line.split(":")[1].split() for line in lines if line.startswith("flags")), [])
    return " ".join(flag for flag in flags if flag.startswith(("avx", "fma", "bmi"))) or "unknown"


def milliseconds(run: Callable[[int], int], n_trees: int, repeats: int) -> float:
    """Per iteration, of the fastest of several runs."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        iterations = run(n_trees)
        found.append((time.perf_counter() - start) / iterations)
    return 1000 * min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--peers", default="lightgbm,xgboost")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.quick:
        options.rows, options.trees, options.repeats = 8_000, 20, 1
    peers = [peer for peer in options.peers.split(",") if peer]
    versions = ", ".join(f"{peer} {import_module(peer).__version__}" for peer in peers)
    print(f"rankwood {rw.__version__}, {versions}; Python {platform.python_version()}")
    print(f"{cpu_name()}, {active_isa()}; flags {cpu_flags()}")
    train, valid = rw.make_ranking(n_queries=round(options.rows / 100), seed=0).split(5 / 6, seed=0)
    print(f"{train.n_docs:,} x {train.n_features}, {options.trees} trees of {LEAVES} leaves; ms per iteration")
    found = []
    for threads in map(int, options.threads.split(",")):
        runs = {
            "LambdaMART": rankwood_trainer(rw.LambdaMART, train, None, threads),
            "DART": rankwood_trainer(rw.DART, train, None, threads),
            "LambdaMART, valid": rankwood_trainer(rw.LambdaMART, train, valid, threads),
            "X-DART, valid": rankwood_trainer(rw.XDART, train, valid, threads),
            **{f"{peer} dart": PEERS[peer](train, threads) for peer in peers},
        }
        times = {name: milliseconds(run, options.trees, options.repeats) for name, run in runs.items()}
        for name, time_of in times.items():
            by = f"{time_of / times['LambdaMART']:.2f} x LambdaMART, {time_of / times['DART']:.2f} x DART"
            print(f"{threads} thread{'s' * (threads > 1)}  {name:18} {time_of:9.2f}   {by}", flush=True)
        found.append({"threads": threads, "rows": train.n_docs, "trees": options.trees, "milliseconds": times})
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
