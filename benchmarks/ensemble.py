"""The reference traversal against LightGBM's predict, on one and two threads, and the cost of handling models.

    python benchmarks/ensemble.py [--trees 1000] [--leaves 64] [--docs 10000] [--repeat 5]

Trains a LightGBM model on made-up data shaped like MSLR (136 features), converts it, checks that both give the same
bits, and prints the best of the repeats: microseconds per document, and how many times faster than LightGBM.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import lightgbm
import numpy as np

import rankwood as rw


def train(n_trees: int, n_leaves: int, n_docs: int) -> tuple[lightgbm.Booster, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(n_docs, 136)).astype(np.float32)
    y = X[:, :20] @ rng.normal(size=20) + 2 * (X[:, 20] > 1) * X[:, 21] + rng.normal(size=n_docs)
    options = {"num_leaves": n_leaves, "learning_rate": 0.05, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 2}
    return lightgbm.train(options, lightgbm.Dataset(X, y), n_trees), X


def best(run, repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def scoring(booster: lightgbm.Booster, model: rw.Ensemble, X: np.ndarray, repeat: int) -> None:
    assert np.array_equal(model.score(X), booster.predict(X, raw_score=True)), "scores differ"
    inputs = {
        "float32": X,
        "float64": X.astype(np.float64),
        "float32, column-major": np.asfortranarray(X),
        "float32, 20 % missing": np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.float32(np.nan), X),
    }
    print(f"{'us per document':24}{'threads':>8}{'rankwood':>10}{'LightGBM':>10}{'ratio':>7}")
    for name, rows in inputs.items():
        for n_threads in (1, 2):
            ours = best(lambda rows=rows, n=n_threads: model.score(rows, n_threads=n), repeat)
            theirs = best(lambda rows=rows, n=n_threads: booster.predict(rows, raw_score=True, num_threads=n), 2)
            scale = 1e6 / len(X)
            print(f"{name:24}{n_threads:8}{ours * scale:10.2f}{theirs * scale:10.2f}{theirs / ours:7.1f}")


def handling(model: rw.Ensemble, X: np.ndarray, repeat: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.rw"
        model.save(path)
        size = path.stat().st_size
        few, weights = X[:1000], model.tree_weights * 0.5
        steps = {
            "save": lambda: model.save(path),
            "load": lambda: rw.Ensemble.load(path),
            "prepare, score one row": lambda: model.select(range(len(model))).score(X[:1]),
            "score one row": lambda: model.score(X[:1]),
            "reweigh": lambda: model.reweigh(weights),
            "select half": lambda: model.select(np.arange(0, len(model), 2)),
            "fingerprint": lambda: model.fingerprint(),
            "topology": lambda: model.topology(),
            "leaves of 1,000 rows": lambda: model.leaves(few, n_threads=1),
        }
        print(f"\n{model}, file of {size:,} bytes")
        for name, step in steps.items():
            print(f"{name:24}{1e3 * best(step, repeat):10.3f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--leaves", type=int, default=64)
    parser.add_argument("--docs", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    booster, X = train(arguments.trees, arguments.leaves, arguments.docs)
    model = rw.load_model(booster)
    scoring(booster, model, X, arguments.repeat)
    handling(model, X, arguments.repeat)


if __name__ == "__main__":
    main()
