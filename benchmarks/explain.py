"""Contributions of features (SHAP) of a LightGBM ranker: rankwood, LightGBM and shap, in one run.

    python benchmarks/explain.py [--trees 300] [--leaves 64] [--rows 1000] [--background 100] [--json]

One thread each; tools take turns, and the least time of several turns counts: processor time, so that other work on the
machine weighs less. Rows are fewer for tools that are slow. Before a time counts, the tool's contributions must be
rankwood's to 1e-10 of the largest one; those of shap against background
documents to 1e-6, as its weights are in single precision.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rankwood as rw
from rankwood.dtypes import FloatArray

sys.path.insert(0, str(Path(__file__).parent))
from scoring.machine import describe_machine, versions


@dataclass
class Result:
    kind: str
    tool: str
    n_rows: int
    us_per_doc: float
    ratio: float = float("nan")


@dataclass
class Tool:
    """A way to explain rows, at most `n_rows` of them, and how far its contributions may be from rankwood's."""

    kind: str
    name: str
    call: Callable[[FloatArray], FloatArray]
    n_rows: int
    tolerance: float = 0.0


def train(n_trees: int, n_leaves: int, n_features: int) -> tuple[Any, FloatArray]:
    import lightgbm

    data = rw.make_ranking(n_queries=300, docs_per_query=60, n_features=n_features, seed=1)
    options = {
        "objective": "lambdarank",
        "num_leaves": n_leaves,
        "verbose": -1,
        "num_threads": 2,
        "min_data_in_leaf": 20,
    }
    return lightgbm.train(options, lightgbm.Dataset(data.X, data.y, group=data.queries.sizes), n_trees), data.X.astype(
        float
    )


def tools_of(booster: Any, model: rw.Ensemble, background: FloatArray, n_rows: int) -> list[Tool]:
    import shap

    by_cover = shap.TreeExplainer(booster, feature_perturbation="tree_path_dependent")
    by_cover.model.model_type = "internal"  # or it would call LightGBM
    against = shap.TreeExplainer(booster, background, feature_perturbation="interventional")
    cover, others, few = "by cover", f"against {len(background)} documents", max(1, n_rows // 10)
    return [
        Tool(cover, "rankwood", lambda X: rw.explain(model, X, n_threads=1).values, n_rows),
        Tool(cover, "LightGBM", lambda X: booster.predict(X, pred_contrib=True, num_threads=1)[:, :-1], few, 1e-10),
        Tool(cover, "shap", lambda X: by_cover.shap_values(X, check_additivity=False), few, 1e-10),
        Tool(others, "rankwood", lambda X: rw.explain(model, X, background=background, n_threads=1).values, n_rows),
        Tool(others, "shap", lambda X: against.shap_values(X, check_additivity=False), few, 1e-6),
    ]


def check(tool: Tool, X: FloatArray, expected: FloatArray) -> None:
    """Refuse a tool that does not say what rankwood says."""
    found = tool.call(X)
    far = np.abs(found - expected).max() / np.abs(expected).max()
    if not far <= tool.tolerance:
        raise SystemExit(f"{tool.name}, {tool.kind}: contributions differ by {far:.3g} of the largest")
    print(f"  {tool.name}, {tool.kind}: equal to {far:.1g} of the largest", file=sys.stderr)


def cpu_us_per_doc(tool: Tool, X: FloatArray) -> float:
    start = time.process_time()
    tool.call(X[: tool.n_rows])
    return (time.process_time() - start) / len(X[: tool.n_rows]) * 1e6


def run(tools: list[Tool], X: FloatArray, turns: int) -> list[Result]:
    least = [float("inf")] * len(tools)
    expected = {tool.kind: tool.call(X[:20]) for tool in tools if tool.name == "rankwood"}
    for tool in tools:
        check(tool, X[:20], expected[tool.kind])
    for _ in range(turns):
        least = [min(time, cpu_us_per_doc(tool, X)) for tool, time in zip(tools, least, strict=True)]
    results = [Result(t.kind, t.name, t.n_rows, us) for t, us in zip(tools, least, strict=True)]
    ours = {result.kind: result.us_per_doc for result in results if result.tool == "rankwood"}
    for result in results:
        result.ratio = result.us_per_doc / ours[result.kind]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("trees", 300), ("leaves", 64), ("features", 136), ("rows", 1000), ("background", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    booster, X = train(given.trees, given.leaves, given.features)
    model = rw.load_model(booster)
    rng = np.random.default_rng(0)
    background = X[rng.choice(len(X), given.background, replace=False)]
    tools = tools_of(booster, model, background, given.rows)
    results = run(tools, X[rng.choice(len(X), given.rows, replace=False)], given.turns)
    machine, packages = describe_machine(), {"rankwood": rw.__version__} | versions(["lightgbm", "shap", "numpy"])
    if given.json:
        print(json.dumps({"machine": machine, "versions": packages, "results": [asdict(r) for r in results]}, indent=1))
        return
    print(f"{model.n_trees} trees of {given.leaves} leaves, depth up to {model.topology().max_depth}, one thread")
    print(f"{machine['cpu']}, {' '.join(machine['flags'])}; kernels: {machine['isa']}; load {machine['load']}")
    print(", ".join(f"{name} {version}" for name, version in packages.items()))
    for r in results:
        print(f"{r.kind:24} {r.tool:10} {r.n_rows:6,} rows {r.us_per_doc:10,.1f} us/doc {r.ratio:6.1f} x")


if __name__ == "__main__":
    main()
