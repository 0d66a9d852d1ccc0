"""Compare rankers over folds, query by query, and correct for the number of comparisons.

python examples/significance.py
"""

from __future__ import annotations

import numpy as np

import rankwood as rw

RANKERS = {
    "LambdaMART": rw.LambdaMART(n_leaves=16),
    "MART": rw.MART(n_leaves=16),
    "DART": rw.DART(n_leaves=16, learning_rate=0.3),
    "forest": rw.RandomForest(queries_per_tree=0.1),
}


def main(n_queries: int = 250, n_trees: int = 60, folds: int = 5) -> None:
    data = rw.make_ranking(n_queries, docs_per_query=30, n_features=20, seed=0)
    values: dict[str, list[np.ndarray]] = {name: [] for name in RANKERS}
    for train, test in data.folds(folds, seed=0):
        for name, ranker in RANKERS.items():
            ranker.set_params(n_trees=n_trees).fit(train)
            values[name].append(rw.evaluate(ranker, test).per_query["nDCG@10"])
    joined = {name: np.concatenate(parts) for name, parts in values.items()}

    first = joined.pop("LambdaMART")
    tests = {name: rw.randomisation_test(first, other) for name, other in joined.items()}
    adjusted = rw.holm([test.p_value for test in tests.values()])
    print(f"LambdaMART: nDCG@10 {first.mean():.4f} over {len(first)} queries of {folds} folds")
    for (name, test), p in zip(tests.items(), adjusted, strict=True):
        interval = rw.bootstrap_interval(first, joined[name])
        shown = f"{test.mean_difference:+.4f} (95 %: {interval.low:+.4f} to {interval.high:+.4f})"
        print(f"{name:10} {shown}, p {test.p_value:.4f}, Holm {p:.4f}")


if __name__ == "__main__":
    main()
