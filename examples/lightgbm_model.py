"""A LightGBM ranker, from import to export: does it score the same, how small can it be, is it as good?

python examples/lightgbm_model.py [FOLDER]

FOLDER has train.parquet, vali.parquet and test.parquet of real text, made by
`rankwood datasets make WordNet-LTR --queries 6400 --to FOLDER`; without it the data is synthetic.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import lightgbm as lgb

import rankwood as rw


def main(folder: str | None = None, n_queries: int = 600, n_trees: int = 200, margin: float = 0.02) -> None:
    if folder:
        train, valid, test = (rw.read_data(f"{folder}/{part}.parquet") for part in ("train", "vali", "test"))
    else:
        data = rw.make_ranking(n_queries, docs_per_query=40, n_features=30, seed=0)
        train, rest = data.split(0.6)
        valid, test = rest.split(0.5)
    settings = {"objective": "lambdarank", "num_leaves": 31, "learning_rate": 0.1, "seed": 0, "verbose": -1}
    settings["num_threads"] = 1  # of this small data
    booster = lgb.train(settings, lgb.Dataset(train.X, train.y, group=train.queries.sizes), num_boost_round=n_trees)

    model = rw.load_model(booster)
    print(rw.verify(model, booster), end="\n\n")

    result = rw.shrink(model, train, valid, test=test, margin=margin)
    print(result.summary())
    before, after = (rw.evaluate(each, test).per_query["nDCG@10"] for each in (model, result.ensemble))
    print(f"nDCG@10 on test data: {before.mean():.4f} becomes {after.mean():.4f}")
    for loss in (0.01, 0.02):
        p = rw.non_inferiority_test(before, after, margin=loss).p_value
        print(f"  that it loses {loss} or more: p {p:.4f}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.txt"
        rw.save_as(result.ensemble, path, "lightgbm")
        print("\nin LightGBM again:", rw.verify(result.ensemble, lgb.Booster(model_file=path), test))


if __name__ == "__main__":
    main(*sys.argv[1:2])
