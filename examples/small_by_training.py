"""Three ways to train a ranker that is cheap to run: trees pruned while boosting, X-DART, and pruning afterwards.

python examples/small_by_training.py [FOLDER]

FOLDER has train.parquet, vali.parquet and test.parquet of real text, made by
`rankwood datasets make WordNet-LTR --queries 6400 --to FOLDER`; without it the data is synthetic.
"""

from __future__ import annotations

import sys

import rankwood as rw


def main(folder: str | None = None, n_queries: int = 800, n_trees: int = 120) -> None:
    if folder:
        train, valid, test = (rw.read_data(f"{folder}/{part}.parquet") for part in ("train", "vali", "test"))
    else:
        data = rw.make_ranking(n_queries, docs_per_query=40, n_features=30, seed=0)
        train, rest = data.split(0.6)
        valid, test = rest.split(0.5)
    rankers = {
        "LambdaMART": rw.LambdaMART(n_trees=n_trees, n_leaves=16),
        "balanced trees": rw.LambdaMART(n_trees=n_trees, n_leaves=16, balance=0.2),
        "X-DART": rw.XDART(n_trees=n_trees // 3, n_leaves=16, learning_rate=0.3),
    }
    models = {name: ranker.fit(train, valid=valid).ensemble_ for name, ranker in rankers.items()}
    pruned = rw.cleaver(models["LambdaMART"], train, valid, rates=(0.3, 0.5, 0.7), accept="not-significant")
    models["pruned"] = pruned.ensemble

    print(f"{'':16} trees  leaves  nDCG@10  against the first (95 %)")
    for name, model in models.items():
        compared = rw.compare(models["LambdaMART"], model, test, "nDCG@10")
        low, high = compared.interval
        sizes = f"{model.n_trees:5}  {model.topology().n_leaves:6}"
        print(f"{name:16} {sizes}   {compared.other_mean:.4f}  {compared.difference:+.4f} ({low:+.4f} .. {high:+.4f})")


if __name__ == "__main__":
    main(*sys.argv[1:2])
