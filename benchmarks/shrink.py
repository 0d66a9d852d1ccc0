"""How much smaller and faster `shrink` makes LightGBM rankers that were stopped in time, with rivals in the same run.

    python benchmarks/shrink.py synthetic [--seeds 2] [--rivals] [--recipes] [--json FILE]
    python benchmarks/shrink.py parquet FOLDER          train.parquet, vali.parquet, test.parquet with qid and label
    python benchmarks/shrink.py folds FOLDER            LETOR folds, as `rankwood reproduce` finds them

The teacher is LightGBM's lambdarank, 64 leaves (31 on folds), rate 0.05, stopped by validation data after 100 rounds.
Rows: LightGBM's predict; the model here, whole; shrunk to a fifth of the leaves; the smallest that passes; that one
with early exit. Differences are of nDCG@10 on test queries against the teacher, with standard errors. Times are
microseconds per document of one thread, batches of about 4,096 documents, all taken in turn in this run; ratios are to
LightGBM's predict. --rivals: models of a fifth of the leaves made in other ways, the best of several settings by
validation data. --recipes: every route of the path by itself.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
from scoring.machine import describe_machine, versions

import rankwood as rw
from rankwood.data.folds import find_folds

MEASURE = "nDCG@10"
BATCH = 4096
Parts = tuple[rw.Dataset, rw.Dataset, rw.Dataset]


# Data: training, validation and test queries.


def synthetic(options: argparse.Namespace) -> Iterator[tuple[str, Parts]]:
    for seed in range(options.seeds):
        data = rw.make_ranking(n_queries=5000, docs_per_query=120, n_features=136, seed=seed)
        numbers = np.arange(data.n_queries)
        yield (
            f"synthetic, seed {seed}",
            tuple(data.select_queries(part) for part in np.split(numbers, [options.train, options.train + 1500])),
        )


def parquet(options: argparse.Namespace) -> Iterator[tuple[str, Parts]]:
    yield (
        options.folder.name,
        tuple(rw.read_parquet(options.folder / f"{name}.parquet") for name in ("train", "vali", "test")),
    )


def folds(options: argparse.Namespace) -> Iterator[tuple[str, Parts]]:
    for number, fold in enumerate(find_folds(options.folder), start=1):
        yield (
            f"{options.folder.name}, fold {number}",
            tuple(rw.read_svmlight(part) for part in (fold.train, fold.valid, fold.test)),
        )


# Models.


def train_lightgbm(parts: Parts, *, n_leaves: int, rate: float, seed: int = 0, most_trees: int = 2000) -> lgb.Booster:
    train, valid, _ = parts
    parameters = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "num_leaves": n_leaves, "seed": seed,
                  "learning_rate": rate, "min_data_in_leaf": 50, "verbose": -1}  # fmt: skip
    data = lgb.Dataset(train.X, train.y, group=train.queries.sizes)
    held_out = lgb.Dataset(valid.X, valid.y, group=valid.queries.sizes, reference=data)
    stop = lgb.early_stopping(100, verbose=False)
    return lgb.train(parameters, data, most_trees, valid_sets=[held_out], callbacks=[stop])


def of_lightgbm(booster: lgb.Booster) -> rw.Ensemble:
    return rw.load_model(booster).select(np.arange(booster.best_iteration))


def small_rivals(parts: Parts, n_leaves: int) -> Iterator[tuple[str, rw.Ensemble]]:
    """Models with at most so many leaves, trained small from the start or cut down otherwise."""
    train, valid, _ = parts
    for rate in (0.1, 0.15, 0.2):
        for leaves in (16, 32, 64):
            trees = max(1, n_leaves // leaves)
            booster = train_lightgbm(parts, n_leaves=leaves, rate=rate, most_trees=trees)
            yield "LightGBM, small from the start", of_lightgbm(booster)
    common: dict[str, Any] = {"early_stopping_rounds": 100, "min_docs_per_leaf": 50}
    for rate in (0.1, 0.2):
        learner = rw.LambdaMART(max(1, n_leaves // 32), 32, rate, **common)
        yield "LambdaMART, small from the start", learner.fit(train, valid=valid).ensemble_
        learner = rw.LambdaMART(max(1, n_leaves // 20), 64, rate, balance=0.2, **common)
        yield "pruned while boosting (alpha 0.2)", cut(learner.fit(train, valid=valid).ensemble_, n_leaves)
    dropping = rw.XDART(n_trees=max(1, n_leaves // 64), n_leaves=64, min_docs_per_leaf=50)
    yield "X-DART", dropping.fit(train, valid=valid).ensemble_


def cut(model: rw.Ensemble, n_leaves: int) -> rw.Ensemble:
    """The first trees, as many as have so many leaves."""
    return model.select(np.arange(max(1, int((np.cumsum(model.trees.sizes + 1) <= n_leaves).sum()))))


def cleaver_rivals(teacher: rw.Ensemble, parts: Parts, n_leaves: int) -> Iterator[tuple[str, rw.Ensemble]]:
    train, valid, _ = parts
    rate = 1.0 - n_leaves / teacher.n_leaves
    settings = rw.PruningSettings(measure_speed=False, max_queries=500)
    for strategy in ("quality-loss", "score-loss"):
        result = rw.cleaver(teacher, train, valid, judge=None, accept="quality", rates=(rate,), strategy=strategy,
                            settings=settings)  # fmt: skip
        for row in result.rows[1:]:
            yield "CLEaVER", row.ensemble


# Figures.


def differences(model: rw.Ensemble, teacher: rw.Ensemble, data: rw.Dataset) -> np.ndarray:
    return np.subtract(*(rw.evaluate(one, data, MEASURE).per_query[MEASURE] for one in (model, teacher)))


def us_per_document(calls: dict[str, Callable[[], Any]], n_docs: int, rounds: int = 15) -> dict[str, float]:
    """Lower quartile of each call's times, taken in turn, so that a busy moment falls on all of them."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: 1e6 * float(np.quantile(taken, 0.25)) / n_docs for name, taken in times.items()}


def batch_of(data: rw.Dataset) -> rw.Dataset:
    """The first whole queries, about 4,096 documents."""
    return data.select_queries(np.arange(max(1, int(np.searchsorted(data.offsets, BATCH, side="right")) - 1)))


def best_by_validation(models: Iterator[tuple[str, rw.Ensemble]], valid: rw.Dataset) -> dict[str, rw.Ensemble]:
    """Of the models of each name the best on validation data."""
    best: dict[str, tuple[float, rw.Ensemble]] = {}
    for name, model in models:
        value = rw.evaluate(model, valid, MEASURE)[MEASURE]
        if name not in best or value > best[name][0]:
            best[name] = (value, model)
    return {name: model for name, (_, model) in best.items()}


def measure(name: str, parts: Parts, options: argparse.Namespace) -> list[dict[str, Any]]:
    train, valid, test = parts
    booster = train_lightgbm(parts, n_leaves=options.leaves, rate=0.05)
    teacher = of_lightgbm(booster)
    factor = 5.0
    models, notes, start = {"whole": teacher}, {}, time.perf_counter()
    path = rw.shrink(teacher, train, valid, measure_speed=False)
    notes["smallest that passes"] = f"{time.perf_counter() - start:.0f} s; {path.summary()}"
    fifth = min(path.rows[2:], key=lambda row: abs(np.log(row.n_leaves * factor / teacher.n_leaves)))
    models[f"a fifth of the leaves ({fifth.route})"] = fifth.ensemble
    notes[f"a fifth of the leaves ({fifth.route})"] = fifth.proof.words()
    if path.accepted:
        models["smallest that passes"] = path.ensemble
        models["smallest, with exit"] = rw.early_exit(path.ensemble, valid)
    if options.recipes:
        for route in rw.ShrinkSettings().routes:
            alone = rw.ShrinkSettings(routes=(route,), factors=(2.5, factor))
            models[f"only: {route.name}"] = (
                rw.shrink(teacher, train, valid, settings=alone, measure_speed=False).rows[-1].ensemble
            )
    if options.rivals:
        models |= best_by_validation(small_rivals(parts, fifth.n_leaves), valid)
        models |= best_by_validation(cleaver_rivals(teacher, parts, fifth.n_leaves), valid)
    some = batch_of(test)
    sizes = np.diff(some.offsets)
    calls: dict[str, Callable[[], Any]] = {
        "LightGBM predict": lambda: booster.predict(some.X, num_threads=1, num_iteration=booster.best_iteration)
    }
    for key, model in models.items():
        group = sizes if model.exit is not None else None
        calls[key] = lambda model=model, group=group: model.score(some.X, group=group, n_threads=1)
    us = us_per_document(calls, some.n_docs)
    rows = [{"data": name, "model": "LightGBM predict", "us": us["LightGBM predict"], "times": 1.0}]
    for key, model in models.items():
        on_test = differences(model, teacher, test)
        rows.append({
            "data": name, "model": key, "trees": model.n_trees, "leaves": model.n_leaves,
            "features": len(np.unique(model.feature)), "valid": float(differences(model, teacher, valid).mean()),
            "test": float(on_test.mean()), "error": float(on_test.std(ddof=1) / len(on_test) ** 0.5),
            "us": us[key], "times": us["LightGBM predict"] / us[key], "note": notes.get(key, ""),
        })  # fmt: skip
        if model.exit is not None:
            share = model.trees_evaluated(some.X, group=sizes).mean() / model.n_trees
            rows[-1]["note"] = f"{share:.0%} of the trees evaluated"
    print(f"\n{name}: {train.n_queries:,} / {valid.n_queries:,} / {test.n_queries:,} queries, teacher "
          f"{rw.evaluate(teacher, test, MEASURE)[MEASURE]:.4f}")  # fmt: skip
    for row in rows:
        show(row)
    return rows


def show(row: dict[str, Any]) -> None:
    if "trees" not in row:
        print(f"{row['model']:62} {'':41} {row['us']:8.3f} us")
        return
    print(
        f"{row['model']:62} {row['trees']:5d} {row['leaves']:6d} {row['features']:4d} {row['test']:+.4f} "
        f"± {row['error']:.4f} {row['us']:8.3f} us {row['times']:6.1f}x  {row['note']}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=("synthetic", "parquet", "folds"))
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=1, help="synthetic: data sets of other seeds")
    parser.add_argument("--train", type=int, default=1500, help="synthetic: training queries")
    parser.add_argument("--leaves", type=int, default=64, help="leaves of the teacher's trees")
    parser.add_argument("--only", type=int, help="folds: this one alone")
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--recipes", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    machine = describe_machine()
    packages = versions(["rankwood", "lightgbm", "numpy"])
    print(f"{machine['cpu']}, {machine['n_cpus']} CPUs, {machine['isa']}, load {machine['load']}")
    print(" ".join(machine["flags"]))
    print(", ".join(f"{name} {version}" for name, version in packages.items()))
    rows = []
    sources = {"synthetic": synthetic, "parquet": parquet, "folds": folds}
    for number, (name, parts) in enumerate(sources[options.data](options), start=1):
        if options.only in (None, number):
            rows += measure(name, parts, options)
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "versions": packages, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
