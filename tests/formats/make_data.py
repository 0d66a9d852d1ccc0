"""Writes tiny models of whichever versions of LightGBM, XGBoost and CatBoost are installed, with the scores that the
library itself gives, into `data/`. Run it in environments with old versions; what it wrote is kept:

    python tests/formats/make_data.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
rng = np.random.default_rng(7)
X = np.round(rng.normal(size=(200, 4)), 2)
X[rng.random(X.shape) < 0.2] = 0.0
X[rng.random(X.shape) < 0.1] = np.nan
y = np.clip(np.nan_to_num(X[:, 0]) * 2 + np.nan_to_num(X[:, 1]) ** 2, 0, 4).astype(int)
GROUP = [20] * 10
ROWS = np.concatenate([X[:40], [[np.nan] * 4, [0.0] * 4, [-0.0] * 4, [1e30, -1e30, 1e-36, -1e-36]]])


def keep(name: str, scores) -> None:
    rows = [[None if np.isnan(value) else value for value in row] for row in ROWS.tolist()]
    text = json.dumps({"rows": rows, "scores": np.asarray(scores, dtype=float).tolist()})
    (DATA / f"{name}.scores.json").write_text(text + "\n")


def make_lightgbm() -> None:
    import lightgbm

    for kind, options in (
        ("", {}),
        ("-zero", {"zero_as_missing": True}),
        ("-dart", {"boosting": "dart", "drop_rate": 0.9, "skip_drop": 0.0}),
    ):
        name = f"lightgbm-{lightgbm.__version__}{kind}"
        parameters = {"objective": "lambdarank", "num_leaves": 6, "verbose": -1, "min_data_in_leaf": 5, **options}
        booster = lightgbm.train(parameters, lightgbm.Dataset(X, y, group=GROUP), 4)
        booster.save_model(str(DATA / f"{name}.txt"))
        (DATA / f"{name}.json").write_text(json.dumps(booster.dump_model()))
        keep(name, booster.predict(ROWS, raw_score=True))


def make_xgboost() -> None:
    import xgboost

    for kind, options in (
        ("", {"objective": "rank:pairwise"}),
        ("-dart", {"objective": "rank:pairwise", "booster": "dart", "rate_drop": 0.5}),
        ("-logistic", {"objective": "binary:logistic", "base_score": 0.3}),
        ("-raw", {"objective": "binary:logitraw", "base_score": 0.3}),
    ):
        name = f"xgboost-{xgboost.__version__}{kind}"
        matrix = xgboost.DMatrix(X, (y > 1).astype(int))
        if "rank" in options["objective"]:
            matrix.set_group(GROUP)
        booster = xgboost.train({"max_depth": 3, "seed": 1, **options}, matrix, 4)
        booster.save_model(str(DATA / f"{name}.json"))
        booster.save_model(str(DATA / f"{name}.ubj"))
        keep(name, booster.predict(xgboost.DMatrix(ROWS), output_margin=True))


def make_catboost() -> None:
    import catboost

    for kind, options in (("", {}), ("-lossguide", {"grow_policy": "Lossguide", "nan_mode": "Max"})):
        name = f"catboost-{catboost.__version__}{kind}"
        model = catboost.CatBoost({"iterations": 4, "depth": 3, "verbose": 0, "allow_writing_files": False, **options})
        model.fit(X, y)
        model.save_model(str(DATA / f"{name}.json"), format="json")
        model.save_model(str(DATA / f"{name}.cbm"))
        keep(name, model.predict(ROWS))


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    for make in (make_lightgbm, make_xgboost, make_catboost):
        try:
            make()
        except ImportError as error:
            print(f"{make.__name__}: {error}")
