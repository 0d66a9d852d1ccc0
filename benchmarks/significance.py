"""Time the resampling tests against scipy: python benchmarks/significance.py [--queries 30000] [--permutations 10000]

scipy is run with fewer permutations, in batches that fit the memory, and its time scaled up.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

import rankwood as rw


def report(name: str, run: Callable[[], Any], repeats: int = 5, scale: float = 1.0) -> None:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    if hasattr(result, "low"):
        answer = f"[{result.low:.5f}, {result.high:.5f}]"
    else:
        answer = f"p = {getattr(result, 'p_value', getattr(result, 'pvalue', None)):.4f}"
    print(f"{name:42s} {min(times) * scale:9.4f} s   {answer}")


def mean_difference(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return np.mean(x - y, axis=axis)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=30_000)
    parser.add_argument("--permutations", type=int, default=10_000)
    parser.add_argument("--scipy-permutations", type=int, default=500)
    options = parser.parse_args()
    n, n_permutations, n_scipy = options.queries, options.permutations, options.scipy_permutations
    rng = np.random.default_rng(0)
    a = rng.beta(1.2, 1.5, n)
    b = np.clip(a + rng.normal(0.0, 0.15, n), 0, 1)
    print(f"{n} queries, {n_permutations} permutations or resamples; best of 5 (scipy resampling: one run, scaled)")

    for k in (1, 2):
        run = partial(rw.randomisation_test, a, b, n_permutations=n_permutations, n_threads=k)
        report(f"randomisation_test, {k} thread(s)", run)
    arguments = {"permutation_type": "samples", "n_resamples": n_scipy, "vectorized": True, "batch": 100, "rng": 0}
    run = partial(stats.permutation_test, (b, a), mean_difference, **arguments)
    report("scipy.stats.permutation_test", run, 1, n_permutations / n_scipy)

    for k in (1, 2):
        run = partial(rw.bootstrap_interval, a, b, n_resamples=n_permutations, n_threads=k)
        report(f"bootstrap_interval, {k} thread(s)", run)
    arguments = {"n_resamples": n_scipy, "method": "percentile", "batch": 100, "rng": 0}
    run = partial(lambda **kwargs: stats.bootstrap((b - a,), np.mean, **kwargs).confidence_interval, **arguments)
    report("scipy.stats.bootstrap", run, 1, n_permutations / n_scipy)

    report("wilcoxon_test", partial(rw.wilcoxon_test, a, b))
    report("scipy.stats.wilcoxon", partial(stats.wilcoxon, b, a))
    report("paired_t_test", partial(rw.paired_t_test, a, b))
    report("scipy.stats.ttest_rel", partial(stats.ttest_rel, b, a))


if __name__ == "__main__":
    main()
