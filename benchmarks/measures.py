"""nDCG@10 over 6,000 queries of 120 documents: rankwood and the tools people use for it, in one run.

    python benchmarks/measures.py [--quick] [--json] [--tools rankwood,ranx,...]

Every tool gets the same labels and scores. What it needs done to them first (dictionaries, matrices, its own data
set) is timed apart as "prepare". The first call is timed apart too: that is where just-in-time compilers work.
Before a time counts, the tool's mean must equal rankwood's under the convention named in the table.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwood import Measure, __version__, _native
from rankwood.evaluation.per_query import mean, per_query


@dataclass
class Task:
    """The data, and how often to repeat."""

    n_queries: int
    n_docs: int
    repeats: int

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        n = self.n_queries * self.n_docs
        self.y = rng.choice(5, n, p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(np.float64)  # about MSLR-WEB30K's
        noisy = (self.y * 0.3 + rng.normal(size=n)).reshape(self.n_queries, self.n_docs)
        # Distinct within a query, in 32 bits too, so that no tool's order of ties matters.
        self.scores = noisy.argsort(axis=1).argsort(axis=1).ravel() / 8.0 - 7.0
        self.offsets = np.arange(self.n_queries + 1) * self.n_docs

    def rows(self) -> Iterator[tuple[str, range]]:
        for query in range(self.n_queries):
            yield f"q{query}", range(query * self.n_docs, (query + 1) * self.n_docs)


@dataclass
class Result:
    tool: str
    n_threads: int
    prepare_ms: float
    first_ms: float
    median_ms: float
    agrees_with: str
    ratio: float = float("nan")


def clock(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return (time.perf_counter() - start) * 1e3, result


def measure_tool(
    task: Task, tool: str, n_threads: int, prepare: Callable[[], Any], call: Callable[[Any], float], agrees_with: str
) -> Result:
    """Time one tool; its answer must be rankwood's for the measure and convention in `agrees_with`."""
    print(f"  {tool}, {n_threads} thread(s) ...", file=sys.stderr)
    prepare_ms, prepared = clock(prepare)
    first_ms, answer = clock(lambda: call(prepared))
    times, started = [], time.perf_counter()
    while len(times) < task.repeats and (len(times) < 3 or time.perf_counter() - started < 20):
        times.append(clock(lambda: call(prepared))[0])
    measure, convention = agrees_with.split()
    ours = mean(per_query(Measure.parse(measure), task.y, task.scores, task.offsets, convention=convention)[0])
    if abs(answer - ours) > 1e-6:
        raise SystemExit(f"{tool} gives {answer}, rankwood {ours} for {agrees_with}: the comparison is not fair")
    return Result(tool, n_threads, prepare_ms, first_ms, statistics.median(times), agrees_with)


def bench_rankwood(task: Task) -> Iterator[Result]:
    for n_threads in (1, 2):

        def call(_: Any, n_threads: int = n_threads) -> float:
            return float(mean(per_query("nDCG@10", task.y, task.scores, task.offsets, n_threads=n_threads)[0]))

        yield measure_tool(task, "rankwood", n_threads, lambda: None, call, "nDCG@10 rankwood")


def bench_sklearn(task: Task) -> Iterator[Result]:
    from sklearn.metrics import ndcg_score

    def prepare() -> Any:
        shape = (task.n_queries, task.n_docs)  # possible because all queries are of one size
        return task.y.reshape(shape), task.scores.reshape(shape)

    for name, ignore_ties in (("scikit-learn, ties ignored", True), ("scikit-learn", False)):

        def call(prepared: Any, ignore_ties: bool = ignore_ties) -> float:
            return float(ndcg_score(*prepared, k=10, ignore_ties=ignore_ties))

        yield measure_tool(task, name, 1, prepare, call, "nDCG@10 sklearn")


def bench_ir_measures(task: Task) -> Iterator[Result]:
    import ir_measures

    def prepare() -> Any:
        names = [f"d{row}" for row in range(len(task.y))]
        qrels = {query: {names[row]: int(task.y[row]) for row in rows} for query, rows in task.rows()}
        run = {query: {names[row]: float(task.scores[row]) for row in rows} for query, rows in task.rows()}
        return ir_measures.pytrec_eval.evaluator([ir_measures.nDCG @ 10], qrels), run

    def call(prepared: Any) -> float:
        evaluator, run = prepared
        return float(evaluator.calc_aggregate(run)[ir_measures.nDCG @ 10])

    yield measure_tool(task, "ir-measures (pytrec_eval)", 1, prepare, call, "nDCG@10 trec")


def bench_ranx(task: Task) -> Iterator[Result]:
    import numba
    import ranx

    def prepare() -> Any:
        names = [f"d{row}" for row in range(len(task.y))]
        qrels = {query: {names[row]: int(task.y[row]) for row in rows} for query, rows in task.rows()}
        run = {query: {names[row]: float(task.scores[row]) for row in rows} for query, rows in task.rows()}
        return ranx.Qrels(qrels), ranx.Run(run)

    def prepare_lists() -> Any:  # also sorts each run by score, so that only the sums are left to do
        qrels, run = prepare()
        return qrels.to_typed_list(), run.to_typed_list()

    for n_threads in (1, 2):
        if n_threads > numba.config.NUMBA_NUM_THREADS:
            continue

        def call(prepared: Any, n_threads: int = n_threads) -> float:
            return float(ranx.evaluate(*prepared, "ndcg_burges@10", threads=n_threads))

        yield measure_tool(task, "ranx", n_threads, prepare, call, "nDCG@10 rankwood")
        yield measure_tool(task, "ranx, sorted lists", n_threads, prepare_lists, call, "nDCG@10 rankwood")


def bench_lightgbm(task: Task) -> Iterator[Result]:
    import lightgbm

    for n_threads in (1, 2):

        def prepare(n_threads: int = n_threads) -> Any:
            data = lightgbm.Dataset(
                np.zeros((len(task.y), 1)),
                label=task.y,
                group=np.diff(task.offsets),
                init_score=task.scores,
                params={"verbosity": -1, "feature_pre_filter": False},
            )
            parameters = {"objective": "none", "metric": "ndcg", "eval_at": [10], "num_threads": n_threads}
            return lightgbm.Booster(parameters | {"verbosity": -1}, data)

        yield measure_tool(
            task, "LightGBM", n_threads, prepare, lambda booster: booster.eval_train()[0][2], "nDCG@10 lightgbm"
        )


def bench_xgboost(task: Task) -> Iterator[Result]:
    import xgboost

    for n_threads in (1, 2):

        def prepare(n_threads: int = n_threads) -> Any:
            data = xgboost.DMatrix(
                np.zeros((len(task.y), 1)), label=task.y, group=np.diff(task.offsets), nthread=n_threads
            )
            data.set_base_margin(task.scores.astype(np.float32))
            parameters = {"objective": "rank:ndcg", "eval_metric": "ndcg@10", "nthread": n_threads}
            return xgboost.Booster(parameters, [data]), data

        def call(prepared: Any) -> float:
            booster, data = prepared
            return float(booster.eval(data).rsplit(":", 1)[1])

        yield measure_tool(task, "XGBoost", n_threads, prepare, call, "nDCG@10 xgboost")


TOOLS: dict[str, tuple[str, Callable[[Task], Iterator[Result]]]] = {
    "rankwood": ("numpy", bench_rankwood),
    "sklearn": ("scikit-learn", bench_sklearn),
    "ir_measures": ("ir_measures", bench_ir_measures),
    "ranx": ("ranx", bench_ranx),
    "lightgbm": ("lightgbm", bench_lightgbm),
    "xgboost": ("xgboost-cpu", bench_xgboost),
}


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def versions(tools: list[str]) -> dict[str, str]:
    found = {"rankwood": __version__, "python": platform.python_version()}
    for package in (TOOLS[tool][0] for tool in tools):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="600 queries instead of 6,000, fewer repeats")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--tools", default=",".join(TOOLS), help=f"some of {','.join(TOOLS)}")
    options = parser.parse_args()
    tools = options.tools.split(",")
    task = Task(n_queries=600 if options.quick else 6000, n_docs=120, repeats=5 if options.quick else 21)
    results: list[Result] = []
    warnings.simplefilter("ignore")
    for tool in ["rankwood", *(tool for tool in tools if tool != "rankwood")]:
        try:
            results += list(TOOLS[tool][1](task))
        except ImportError as error:
            print(f"  {tool} left out: {error}", file=sys.stderr)
    for result in results:
        result.ratio = result.median_ms / results[0].median_ms
    environment = {"cpu": cpu_name(), "isa": _native.active_isa(), "versions": versions(tools)}
    shape = {"n_queries": task.n_queries, "n_docs": task.n_docs, "repeats": task.repeats}
    if options.json:
        print(json.dumps({**shape, **environment, "results": [asdict(result) for result in results]}))
        return
    print(f"nDCG@10, {task.n_queries} queries x {task.n_docs} documents; times in ms, median of {task.repeats}")
    print(f"{environment['cpu']}, instruction set {environment['isa']}")
    print(", ".join(f"{name} {version}" for name, version in environment["versions"].items()))
    print(f"{'tool':<28}{'threads':>8}{'prepare':>11}{'first call':>12}{'median':>10}{'ratio':>9}  agrees with")
    for r in results:
        print(
            f"{r.tool:<28}{r.n_threads:>8}{r.prepare_ms:>11.1f}{r.first_ms:>12.2f}{r.median_ms:>10.2f}"
            f"{r.ratio:>9.1f}  {r.agrees_with}"
        )


if __name__ == "__main__":
    main()
