"""`rankwood demo`: the main job on built-in data, start to end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwood.cli.console import Advance, print_table, progress, tell
from rankwood.data.dataset import Dataset
from rankwood.ensemble import Ensemble

MEASURES = ("nDCG@10", "ERR", "AP")


@dataclass(frozen=True)
class Size:
    """How much the demo does."""

    n_queries: int
    docs_per_query: int
    n_features: int
    n_trees: int
    n_leaves: int


FULL = Size(n_queries=800, docs_per_query=80, n_features=136, n_trees=200, n_leaves=32)
QUICK = Size(n_queries=200, docs_per_query=30, n_features=20, n_trees=40, n_leaves=16)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for data and models.")] = Path("rankwood-demo"),
    quick: Annotated[bool, typer.Option("--quick", help="Less data, fewer trees: a few seconds.")] = False,
) -> None:
    """Make ranking data, train rankers on it, compare them query by query, and look at what they cost."""
    out.mkdir(parents=True, exist_ok=True)
    size = QUICK if quick else FULL
    train, valid, test = _make_data(size, out)
    models = _train(size, train, valid, out)
    _report_quality(models, test)
    _report_cost(models, test)
    tell(f"\nData and models are in {out}. Go on with, for instance:")
    names = [str(out / f"{name}.rw") for name in models]
    tell(f"  rankwood evaluate {' '.join(names)} --data {out / 'test.txt'} --measure nDCG@5 --convention lightgbm")
    tell(f"  rankwood inspect {names[-1]}")


def _make_data(size: Size, out: Path) -> tuple[Dataset, Dataset, Dataset]:
    """Synthetic data, written as LETOR files and read back as a user would read theirs."""
    from rankwood.data.svmlight import read_svmlight
    from rankwood.data.svmlight_write import write_svmlight
    from rankwood.data.synthetic import make_ranking

    data = make_ranking(size.n_queries, size.docs_per_query, size.n_features, seed=0)
    train, rest = data.split(0.6, seed=0)
    parts = dict(zip(("train", "valid", "test"), (train, *rest.split(0.5, seed=0)), strict=True))
    for name, part in parts.items():
        write_svmlight(part, out / f"{name}.txt")
    start = time.perf_counter()
    read = [read_svmlight(out / f"{name}.txt", n_features=data.n_features) for name in parts]
    seconds = time.perf_counter() - start
    megabytes = sum((out / f"{name}.txt").stat().st_size for name in parts) / 1e6
    tell(f"made {data.n_docs:,} documents of {data.n_queries:,} queries")
    tell(f"read {megabytes:,.1f} MB back in {seconds:.2f} s")
    return read[0], read[1], read[2]


def _train(size: Size, train: Dataset, valid: Dataset, out: Path) -> dict[str, Ensemble]:
    """Plain LambdaMART, and the cheaper trees of Asadi & Lin: grown shallow, or pruned while boosting."""
    from rankwood.data.binning import BinnedDataset
    from rankwood.learners.presets import LambdaMART

    binned = BinnedDataset.make(train)
    variants: dict[str, dict[str, Any]] = {
        "lambdamart": {},
        "shallow": {"depth_relaxation": 0.8},
        "balanced": {"balance": 0.2},
    }
    models: dict[str, Ensemble] = {}
    for name, parameters in variants.items():
        ranker = LambdaMART(size.n_trees, size.n_leaves, 0.1, early_stopping_rounds=size.n_trees // 4, **parameters)
        start = time.perf_counter()
        with progress(f"training {name}", unit="trees") as advance:
            ranker.fit(binned, valid=valid, callbacks=[_advance(advance)])
        models[name] = ranker.ensemble_
        models[name].save(out / f"{name}.rw")
        tell(f"trained {name}: {ranker.n_trees_} trees in {time.perf_counter() - start:.1f} s")
    return models


def _advance(advance: Advance) -> Callable[[Any], None]:
    return lambda env: advance(env.iteration + 1, env.end_iteration)


def _report_quality(models: dict[str, Ensemble], test: Dataset) -> None:
    from rankwood.evaluation.evaluate import compare_values, evaluate

    results = {name: evaluate(model, test, MEASURES) for name, model in models.items()}
    baseline = results["lambdamart"]
    rows = []
    for name, result in results.items():
        row = [name, *(f"{value:.4f}" for value in result.values())]
        comparison = compare_values(baseline, result, MEASURES[0])
        low, high = comparison.interval
        verdict = f"{comparison.difference:+.4f} ({low:+.4f} .. {high:+.4f})"
        rows.append([*row, *(("", "") if result is baseline else (verdict, f"{comparison.p_randomisation:.3f}"))])
    print_table(
        f"Quality on {test.n_queries:,} held-out queries",
        ["model", *MEASURES, f"{MEASURES[0]} against lambdamart (95 %)", "p (randomisation)"],
        rows,
        caption=f"convention {baseline.convention.describe()}",
    )


def _report_cost(models: dict[str, Ensemble], test: Dataset) -> None:
    rows = []
    for name, model in models.items():
        topology = model.topology()
        model.score(test.X)  # prepares the engine
        start = time.perf_counter()
        model.score(test.X)
        microseconds = 1e6 * (time.perf_counter() - start) / test.n_docs
        facts = (f"{topology.n_trees:,}", f"{topology.n_leaves:,}", f"{topology.mean_depth:.1f}")
        rows.append([name, *facts, f"{topology.path_length:,}", f"{microseconds:.2f}"])
    columns = ["model", "trees", "leaves", "mean depth", "longest paths", "us per document"]
    print_table("Cost", columns, rows, caption="Scored on one thread.")
