"""Forests whose trees see few queries: how good, how alike, and what boosting adds.

python examples/forests_on_few_queries.py [FOLDER]

FOLDER has train.parquet, vali.parquet and test.parquet of real text, made by
`rankwood datasets make WordNet-LTR --queries 6400 --to FOLDER`; without it the data is synthetic.
"""

from __future__ import annotations

import sys

import rankwood as rw


def main(folder: str | None = None, n_queries: int = 300, n_trees: int = 200) -> None:
    if folder:
        train, valid, test = (rw.read_data(f"{folder}/{part}.parquet") for part in ("train", "vali", "test"))
    else:
        data = rw.make_ranking(n_queries, docs_per_query=30, n_features=30, seed=0)
        train, rest = data.split(0.6)
        valid, test = rest.split(0.5)
    print("queries per tree  out of the bag    test  correlation of trees")
    for share in (0.02, 0.1, 0.3, 0.63):
        forest = rw.RandomForest(n_trees, queries_per_tree=share, criterion="entropy", out_of_bag=True).fit(train)
        value = rw.evaluate(forest, test)["nDCG@10"]
        alike = rw.tree_correlation(forest.ensemble_, valid, within_queries=True).mean
        print(f"{share:16.0%}  {forest.oob_score_:14.4f}  {value:.4f}  {alike:20.2f}")

    boosted = rw.InitializedMART(n_trees, forest=forest, early_stopping_rounds=20, learning_rate=0.1)
    boosted.fit(train, valid=valid)
    print(f"boosted from the last one: {rw.evaluate(boosted, test)['nDCG@10']:.4f} ({boosted.n_trees_} trees in all)")


if __name__ == "__main__":
    main(*sys.argv[1:2])
