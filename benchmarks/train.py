"""Training time per tree against LightGBM, XGBoost and CatBoost, on the same data in the same run.

    python benchmarks/train.py [--rows 180000] [--trees 30] [--peers lightgbm,lightgbm-quantised,xgboost,catboost]
                               [--threads 1,2] [--growth] [--mq2008 FOLDER] [--json FILE]

Synthetic data shaped like MSLR-WEB (136 features), lambdarank with 64 leaves, 255 bins, learning rate 0.05, at least 20
documents per leaf; gradients, score updates and the measure on validation data after every tree are included. The time
is that of a whole training less that of one with a tenth of the trees, so that reading and binning do not count; they
are listed apart. The smallest of several runs is shown: other work on the machine only ever adds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np

import rankwood as rw

SETTINGS = {"n_leaves": 64, "learning_rate": 0.05, "min_docs": 20, "bins": 255, "truncation": 30}


def rankwood_trainer(train: rw.Dataset, valid: rw.Dataset, threads: int) -> tuple[float, Callable[[int], Any]]:
    start = time.perf_counter()
    binned = rw.BinnedDataset.make(train, SETTINGS["bins"], n_threads=threads)
    prepared = time.perf_counter() - start

    def run(n_trees: int) -> Any:
        ranker = rw.LambdaMART(n_trees, SETTINGS["n_leaves"], SETTINGS["learning_rate"], n_jobs=threads)
        return ranker.fit(binned, valid=valid)

    return prepared, run


def lightgbm_trainer(
    train: rw.Dataset, valid: rw.Dataset, threads: int, *, quantised: bool = False
) -> tuple[float, Callable[[int], Any]]:
    import lightgbm as lgb

    parameters = {
        "objective": "lambdarank",
        "num_leaves": SETTINGS["n_leaves"],
        "learning_rate": SETTINGS["learning_rate"],
        "min_data_in_leaf": SETTINGS["min_docs"],
        "max_bin": SETTINGS["bins"],
        "lambdarank_truncation_level": SETTINGS["truncation"],
        "metric": "ndcg",
        "eval_at": [10],
        "num_threads": threads,
        "use_quantized_grad": quantised,
        "verbose": -1,
    }
    start = time.perf_counter()
    data = lgb.Dataset(train.X, train.y, group=train.queries.sizes, params=parameters, free_raw_data=False).construct()
    held_out = lgb.Dataset(
        valid.X, valid.y, group=valid.queries.sizes, reference=data, params=parameters, free_raw_data=False
    ).construct()
    prepared = time.perf_counter() - start
    return prepared, lambda n_trees: lgb.train(parameters, data, n_trees, valid_sets=[held_out])


def xgboost_trainer(train: rw.Dataset, valid: rw.Dataset, threads: int) -> tuple[float, Callable[[int], Any]]:
    import xgboost as xgb

    parameters = {
        "objective": "rank:ndcg",
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": SETTINGS["n_leaves"],
        "max_depth": 0,
        "max_bin": SETTINGS["bins"],
        "eta": SETTINGS["learning_rate"],
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": SETTINGS["truncation"],
        "eval_metric": "ndcg@10",
        "nthread": threads,
        "verbosity": 0,
    }
    start = time.perf_counter()
    data = xgb.QuantileDMatrix(train.X, train.y, group=train.queries.sizes, max_bin=SETTINGS["bins"], nthread=threads)
    held_out = xgb.QuantileDMatrix(
        valid.X, valid.y, group=valid.queries.sizes, ref=data, max_bin=SETTINGS["bins"], nthread=threads
    )
    prepared = time.perf_counter() - start
    evaluation = [(held_out, "valid")]
    return prepared, lambda n_trees: xgb.train(parameters, data, n_trees, evals=evaluation, verbose_eval=False)


def catboost_trainer(train: rw.Dataset, valid: rw.Dataset, threads: int) -> tuple[float, Callable[[int], Any]]:
    import catboost

    def pool(data: rw.Dataset) -> Any:
        return catboost.Pool(data.X, data.y / max(data.y.max(), 1.0), group_id=np.asarray(data.qid))

    start = time.perf_counter()
    data, held_out = pool(train), pool(valid)
    prepared = time.perf_counter() - start

    def run(n_trees: int) -> Any:
        # The nearest CatBoost has: a pairwise ranking loss on trees of as many leaves, grown by loss.
        model = catboost.CatBoost(
            {
                "loss_function": "YetiRank",
                "grow_policy": "Lossguide",
                "max_leaves": SETTINGS["n_leaves"],
                "depth": 16,
                "border_count": SETTINGS["bins"] - 1,
                "learning_rate": SETTINGS["learning_rate"],
                "min_data_in_leaf": SETTINGS["min_docs"],
                "iterations": n_trees,
                "thread_count": threads,
                "eval_metric": "NDCG:top=10",
                "verbose": False,
                "allow_writing_files": False,
            }
        )
        return model.fit(data, eval_set=held_out)

    return prepared, run


TRAINERS: dict[str, Any] = {
    "rankwood": rankwood_trainer,
    "lightgbm": lightgbm_trainer,
    "lightgbm-quantised": lambda *a: lightgbm_trainer(*a, quantised=True),
    "xgboost": xgboost_trainer,
    "catboost": catboost_trainer,
}


def time_per_tree(run: Callable[[int], Any], n_trees: int, repeats: int) -> float:
    """Seconds per tree, the start-up of a training taken out."""
    few = max(1, n_trees // 10)
    run(1)
    best = {}
    for n in (few, n_trees):
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            run(n)
            times.append(time.perf_counter() - start)
        best[n] = min(times)
    return (best[n_trees] - best[few]) / (n_trees - few)


def measure(name: str, rows: int, threads: int, n_trees: int, repeats: int) -> dict[str, Any]:
    """One trainer in this process: it should be a fresh one."""
    data = rw.make_ranking(n_queries=max(2, round(rows * 1.25 / 120)), docs_per_query=120, seed=0)
    train, valid = data.split(0.8, seed=0)
    del data
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    prepared, run = TRAINERS[name](train, valid, threads)
    seconds = time_per_tree(run, n_trees, repeats)
    return {
        "trainer": name,
        "threads": threads,
        "rows": train.n_docs,
        "ms_per_tree": 1000 * seconds,
        "prepare_s": prepared,
        "added_peak_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }


def in_fresh_process(*arguments: Any) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", json.dumps(arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": str(arguments[2])}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if result.returncode:
        raise SystemExit(f"{arguments[0]} failed:\n{result.stderr}")
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def environment_lines() -> list[str]:
    from rankwood.system import active_isa

    packages = ["numpy", "lightgbm", "xgboost-cpu", "xgboost", "catboost"]
    versions = []
    for package in packages:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    model = "unknown CPU"
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), model)
    return [
        f"rankwood {rw.__version__} ({active_isa()}), {', '.join(versions)}, python {platform.python_version()}",
        f"{model}, {os.cpu_count()} CPUs; load {os.getloadavg()[0]:.2f}",
    ]


def small_data(folder: str, n_trees: int = 500, repeats: int = 3) -> list[dict[str, Any]]:
    """MQ2008, first fold: 500 trees of 50 leaves on 9,630 rows, where the cost per node counts."""
    import lightgbm as lgb

    parts = [rw.read_svmlight([f"{folder}/S{i}.txt.gz" for i in numbers]) for numbers in ((1, 2, 3), (4,))]
    train, valid = parts
    rows = []
    for threads in (1, 2):
        ours, theirs = [], []
        for _ in range(repeats):
            start = time.perf_counter()
            rw.LambdaMART(n_trees, 50, 0.05, n_jobs=threads).fit(train, valid=valid)
            ours.append(time.perf_counter() - start)
            parameters = {"objective": "lambdarank", "num_leaves": 50, "learning_rate": 0.05, "metric": "ndcg",
                          "eval_at": [10], "num_threads": threads, "verbose": -1}  # fmt: skip
            start = time.perf_counter()
            data = lgb.Dataset(train.X, train.y, group=train.queries.sizes)
            held_out = lgb.Dataset(valid.X, valid.y, group=valid.queries.sizes, reference=data)
            lgb.train(parameters, data, n_trees, valid_sets=[held_out])
            theirs.append(time.perf_counter() - start)
        rows.append(
            {"threads": threads, "rankwood_s": statistics.median(ours), "lightgbm_s": statistics.median(theirs)}
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=180_000)
    parser.add_argument("--trees", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", default="lightgbm,lightgbm-quantised,xgboost,catboost")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--growth", action="store_true", help="rankwood alone from 100 thousand to 2 million rows")
    parser.add_argument("--mq2008", help="folder with S1.txt.gz ... S5.txt.gz: small data too")
    parser.add_argument("--json", help="file for the figures")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*json.loads(options.one))))
        return

    print(*environment_lines(), sep="\n")
    results = []
    for threads in map(int, options.threads.split(",")):
        for name in ["rankwood", *(peer for peer in options.peers.split(",") if peer)]:
            result = in_fresh_process(name, options.rows, threads, options.trees, options.repeats)
            if name == "rankwood":
                ours = result["ms_per_tree"]
            results.append(result | {"times_rankwood": result["ms_per_tree"] / ours})
            print(
                f"{name:20} {threads} thread(s) {result['rows']:,} rows: {result['ms_per_tree']:8.1f} ms per tree "
                f"({result['ms_per_tree'] / ours:4.2f}x ours), prepared in {result['prepare_s']:.1f} s, "
                f"{result['added_peak_mb']:,.0f} MB added",
                flush=True,
            )
    if options.growth:
        for rows in (100_000, 250_000, 500_000, 1_000_000, 2_000_000):
            result = in_fresh_process("rankwood", rows, 2, 10, 1)
            results.append(result)
            per_million = result["ms_per_tree"] * 1e6 / result["rows"]
            print(
                f"{result['rows']:>10,} rows: {result['ms_per_tree']:8.1f} ms per tree, {per_million:.1f} per million"
            )
    if options.mq2008:
        for row in small_data(options.mq2008):
            ratio = row["lightgbm_s"] / row["rankwood_s"]
            print(f"MQ2008 fold 1, 500 trees, {row['threads']} thread(s): {row['rankwood_s']:.2f} s against "
                  f"{row['lightgbm_s']:.2f} s ({ratio:.2f}x)")  # fmt: skip
            results.append(row)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)


if __name__ == "__main__":
    main()
