"""Time the resampling tests against scipy: python benchmarks/significance.py [--queries 30000] [--permutations 10000]

scipy's randomisation test is run with fewer permutations, in batches that fit the memory, and scaled up.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

import rankwood as rw


def best_of(n: int, run: Callable[[], Any]) -> tuple[float, Any]:
    times = []
    for _ in range(n):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return min(times), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=30_000)
    parser.add_argument("--permutations", type=int, default=10_000)
    parser.add_argument("--scipy-permutations", type=int, default=500)
    options = parser.parse_args()
    n, n_permutations = options.queries, options.permutations
    rng = np.random.default_rng(0)
    a = rng.beta(1.2, 1.5, n)
    b = np.clip(a + rng.normal(0.0015, 0.15, n), 0, 1)
    print(f"{n} queries, {n_permutations} permutations or resamples; best of 5 (scipy: one run, scaled)")

    for threads in (1, 2):
        seconds, result = best_of(
            5, lambda k=threads: rw.randomisation_test(a, b, n_permutations=n_permutations, n_threads=k)
        )
        print(f"rankwood randomisation_test, {threads} thread(s)  {seconds:8.3f} s   p = {result.p_value:.4f}")
    scale = n_permutations / options.scipy_permutations
    seconds, result = best_of(
        1,
        lambda: stats.permutation_test(
            (b, a),
            lambda x, y, axis: np.mean(x - y, axis=axis),
            permutation_type="samples",
            n_resamples=options.scipy_permutations,
            vectorized=True,
            batch=100,
            rng=0,
        ),
    )
    print(f"scipy.stats.permutation_test               {seconds * scale:8.3f} s   p = {result.pvalue:.4f}")

    for threads in (1, 2):
        seconds, result = best_of(
            3, lambda k=threads: rw.bootstrap_interval(a, b, n_resamples=n_permutations, n_threads=k)
        )
        print(
            f"rankwood bootstrap_interval, {threads} thread(s)  {seconds:8.3f} s   [{result.low:.5f}, {result.high:.5f}]"
        )
    seconds, result = best_of(
        1,
        lambda: (
            stats.bootstrap(
                (b - a,), np.mean, n_resamples=options.scipy_permutations, method="percentile", batch=100, rng=0
            ).confidence_interval
        ),
    )
    print(
        f"scipy.stats.bootstrap                      {seconds * scale:8.3f} s   [{interval.low:.5f}, {interval.high:.5f}]"
    )

    for name, run in (
        ("wilcoxon_test", lambda: rw.wilcoxon_test(a, b)),
        ("scipy wilcoxon", lambda: stats.wilcoxon(b, a)),
        ("paired_t_test", lambda: rw.paired_t_test(a, b)),
        ("scipy ttest_rel", lambda: stats.ttest_rel(b, a)),
    ):
        print(f"{name:42s} {best_of(5, run)[0]:8.4f} s")


if __name__ == "__main__":
    main()
