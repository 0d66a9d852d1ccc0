"""Random forests against scikit-learn, ExtraTrees, LightGBM's rf and ydf: time, memory and quality in one run.

    python benchmarks/forest.py [--data FOLDER] [--rows 100000] [--trees 1000] [--big-trees 100] [--threads 2]
                                [--tools rankwood,...] [--cases mq2008,ohsumed,synthetic] [--growth] [--json FILE]

Trees of full depth, sqrt of the features at every node, on bootstrap samples of documents, by variance and by entropy;
and on samples of few whole queries, entropy (Ibrahim & Carman), which for scikit-learn means one tree after another on
rows that are picked in Python. Real data (FOLDER/mq2008, FOLDER/ohsumed) is learnt on S1 to S3 and measured on S5 in
the `letor` convention; synthetic data is shaped like MSLR-WEB. Every tool runs in a process of its own; memory is the
peak it adds to that of the loaded data. `--growth` times rankwood alone on samples of 1 % of the queries of up to a
million rows.

LightGBM has no entropy and no trees of full depth: it gets as many leaves as rankwood's trees have, at least 1 document
each. ExtraTrees draws thresholds at random: the cheapest forest there is, on all documents.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import rankwood as rw

FEW = {"mq2008": 21, "ohsumed": 1, "synthetic": 0.01}  # queries per tree
FOLDERS = {"mq2008": "mq2008", "ohsumed": "ohsumed/QueryLevelNorm"}


def load(case: str, folder: str | None, rows: int) -> tuple[rw.Dataset, rw.Dataset]:
    if case == "synthetic":
        return rw.make_ranking(n_queries=round(rows * 1.2 / 120), docs_per_query=120, seed=0).split(1 / 1.2, seed=0)
    if folder is None:
        raise SystemExit(f"--data names the folder that holds {FOLDERS[case]}")
    files = [Path(folder) / FOLDERS[case] / f"S{number}.txt.gz" for number in (1, 2, 3, 5)]
    return rw.read_svmlight(files[:3]), rw.read_svmlight(files[3])


def rankwood_forest(train: rw.Dataset, n_trees: int, threads: int, criterion: str, few: float | None) -> Any:
    ranker = rw.RandomForest(n_trees, criterion=criterion, queries_per_tree=few, n_jobs=threads)
    return ranker.fit(train).ensemble_


def sklearn_forest(train: rw.Dataset, n_trees: int, threads: int, criterion: str, few: float | None) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    if few is not None:
        rng = np.random.default_rng(0)
        n_queries = few if isinstance(few, int) else max(1, round(few * train.n_queries))
        trees = []
        for number in range(n_trees):
            rows = train.queries.rows_of(rng.choice(train.n_queries, n_queries, replace=False))
            kind = DecisionTreeClassifier if criterion == "entropy" else DecisionTreeRegressor
            name = "entropy" if criterion == "entropy" else "squared_error"
            tree = kind(criterion=name, max_features="sqrt", random_state=number)
            trees.append(tree.fit(train.X[rows], train.y[rows]))
        return trees
    given = {"n_estimators": n_trees, "max_features": "sqrt", "n_jobs": threads, "random_state": 0}
    if criterion == "entropy":
        return RandomForestClassifier(criterion="entropy", **given).fit(train.X, train.y)
    return RandomForestRegressor(**given).fit(train.X, train.y)


def extra_trees(train: rw.Dataset, n_trees: int, threads: int, criterion: str, few: float | None) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    given = {"n_estimators": n_trees, "max_features": "sqrt", "n_jobs": threads, "random_state": 0}
    if criterion == "entropy":
        return ExtraTreesClassifier(criterion="entropy", **given).fit(train.X, train.y)
    return ExtraTreesRegressor(**given).fit(train.X, train.y)


def lightgbm_forest(train: rw.Dataset, n_trees: int, threads: int, criterion: str, few: float | None) -> Any:
    import lightgbm as lgb

    leaves = rw.RandomForest(2, n_jobs=threads).fit(train).ensemble_.n_leaves // 2
    parameters = {
        "boosting": "rf",
        "objective": "regression",
        "bagging_fraction": 0.632,
        "bagging_freq": 1,
        "feature_fraction_bynode": float(np.floor(np.sqrt(train.n_features))) / train.n_features,
        "num_leaves": min(leaves, 131_072),
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "num_threads": threads,
        "verbose": -1,
    }
    start = time.perf_counter()
    booster = lgb.train(parameters, lgb.Dataset(train.X, train.y), n_trees)
    booster.seconds = time.perf_counter() - start  # without the search for the number of leaves
    return booster


def ydf_forest(train: rw.Dataset, n_trees: int, threads: int, criterion: str, few: float | None) -> Any:
    import ydf

    learner = ydf.RandomForestLearner(
        label="label",
        task=ydf.Task.CLASSIFICATION if criterion == "entropy" else ydf.Task.REGRESSION,
        num_trees=n_trees,
        max_depth=-1,
        min_examples=1,
        num_candidate_attributes=int(np.sqrt(train.n_features)),
        winner_take_all=False,
        compute_oob_performances=False,
        num_threads=threads,
    )
    label = train.y.astype(int) if criterion == "entropy" else train.y
    return learner.train({f"f{f}": train.X[:, f] for f in range(train.n_features)} | {"label": label}, verbose=0)


def predict(model: Any, X: np.ndarray) -> np.ndarray:
    """Mean label of the leaves; of a classifier, the expected class."""
    if isinstance(model, list):
        return np.mean([predict(tree, X) for tree in model], axis=0)
    if isinstance(model, rw.Ensemble):
        return model.score(X)
    if hasattr(model, "classes_"):
        return model.predict_proba(X) @ model.classes_
    if type(model).__module__.startswith("ydf"):
        found = model.predict({f"f{f}": X[:, f] for f in range(X.shape[1])})
        return found @ np.arange(found.shape[1]) if found.ndim == 2 else found
    return model.predict(X)


def model_megabytes(model: Any) -> float | None:
    """The arrays of the trees."""
    if isinstance(model, rw.Ensemble):
        return sum(value.nbytes for value in vars(model).values() if isinstance(value, np.ndarray)) / 2**20
    trees = model if isinstance(model, list) else getattr(model, "estimators_", None)
    if trees is None:
        return None
    return sum(tree.tree_.__getstate__()[name].nbytes for tree in trees for name in ("nodes", "values")) / 2**20


TOOLS = {
    "rankwood": rankwood_forest,
    "scikit-learn": sklearn_forest,
    "ExtraTrees": extra_trees,
    "lightgbm": lightgbm_forest,
    "ydf": ydf_forest,
}
NEEDS = {"scikit-learn": "sklearn", "ExtraTrees": "sklearn", "lightgbm": "lightgbm", "ydf": "ydf"}


def can(tool: str, criterion: str, few: float | None) -> bool:
    if find_spec(NEEDS.get(tool, "rankwood")) is None:
        return False
    if few is not None:
        return tool in ("rankwood", "scikit-learn")
    return criterion == "variance" or tool != "lightgbm"


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(
    tool: str, case: str, folder: str | None, rows: int, n_trees: int, threads: int, criterion: str, few: float | None
) -> dict[str, Any]:
    """One tool in this process: it should be a fresh one."""
    train, test = load(case, folder, rows)
    TOOLS[tool](train.select_queries(range(3)), 2, threads, criterion, None)  # imports and the like
    before, cpu, start = peak_megabytes(), time.process_time(), time.perf_counter()
    model = TOOLS[tool](train, n_trees, threads, criterion, few)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    seconds = getattr(model, "seconds", seconds)
    added = peak_megabytes() - before
    convention = "rankwood" if case == "synthetic" else "letor"
    found = rw.evaluate(predict(model, test.X), test, ["nDCG@10", "AP"], convention=convention)
    return {
        "tool": tool,
        "case": case,
        "criterion": criterion,
        "queries_per_tree": few,
        "rows": train.n_docs,
        "trees": n_trees,
        "threads": threads,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "added_peak_mb": added,
        "model_mb": model_megabytes(model),
        **found.means,
    }


def growth(rows: int, threads: int) -> dict[str, Any]:
    """Forests on 1 % of the queries: time of coding apart, as it is proportional to the data and not to the sample."""
    from rankwood.data.bins import CodedDataset

    data = rw.make_ranking(n_queries=round(rows / 120), docs_per_query=120, seed=0)
    start = time.perf_counter()
    CodedDataset.make(data, n_threads=threads)
    coded = time.perf_counter() - start
    start = time.perf_counter()
    rw.RandomForest(1000, criterion="entropy", queries_per_tree=0.01, n_jobs=threads).fit(data)
    return {"rows": data.n_docs, "coding_s": coded, "fit_s": time.perf_counter() - start}


def in_fresh_process(kind: str, *arguments: Any) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", json.dumps([kind, *arguments])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{arguments} failed:\n{result.stderr}")
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def environment_lines() -> list[str]:
    from rankwood.system import active_isa

    versions = []
    for package in ("numpy", "scikit-learn", "lightgbm", "ydf"):
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {package}")
    return [
        f"rankwood {rw.__version__} ({active_isa()}), {', '.join(versions)}, python {platform.python_version()}",
        f"{os.cpu_count()} CPUs; load {os.getloadavg()[0]:.2f}",
    ]


def show(result: dict[str, Any], ours: dict[str, Any]) -> None:
    model = "" if result["model_mb"] is None else f"{result['model_mb']:8.1f}"
    print(
        f"  {result['tool']:14}{result['seconds']:9.2f} s{result['seconds'] / ours['seconds']:7.1f}x"
        f"{result['cpu_seconds'] / ours['cpu_seconds']:9.1f}x CPU{result['added_peak_mb']:10,.0f} MB added"
        f"{model:>9} MB model   nDCG@10 {result['nDCG@10']:.4f}  AP {result['AP']:.4f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds mq2008/ and ohsumed/")
    parser.add_argument("--rows", type=int, default=100_000, help="of the synthetic data")
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--big-trees", type=int, default=100, help="on the synthetic data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--cases", default="mq2008,ohsumed,synthetic")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--json", help="file for the figures")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, *arguments = json.loads(options.one)
        print(json.dumps({"measure": measure, "growth": growth}[kind](*arguments)))
        return

    print(*environment_lines(), sep="\n")
    results = []
    for case in options.cases.split(","):
        n_trees = options.big_trees if case == "synthetic" else options.trees
        for criterion, few in (("variance", None), ("entropy", None), ("entropy", FEW[case])):
            sample = "bootstrap of documents" if few is None else f"{few} queries per tree"
            print(f"{case}, {criterion}, {sample}, {n_trees} trees, {options.threads} threads")
            ours: dict[str, Any] = {}
            for tool in options.tools.split(","):
                if can(tool, criterion, few):
                    given = (tool, case, options.data, options.rows, n_trees, options.threads, criterion, few)
                    result = in_fresh_process("measure", *given)
                    ours = ours or result
                    results.append(result)
                    show(result, ours)
    if options.growth:
        for rows in (100_000, 300_000, 1_000_000):
            result = in_fresh_process("growth", rows, options.threads)
            results.append(result)
            print(f"{result['rows']:>10,} rows: coded in {result['coding_s']:.1f} s, "
                  f"1,000 trees on 1 % of the queries in {result['fit_s']:.1f} s in all")  # fmt: skip
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)


if __name__ == "__main__":
    main()
