"""Fingerprints of all that the package computes, writes and prints, to be taken before and after its modules move.

    python tools/fingerprints.py record FILE.json [--only PATTERN]
    python tools/fingerprints.py compare FILE.json [--only PATTERN]

A case is a name and a function. What it returns becomes a text in which arrays, models and files stand as digests of
their bits; the digest of the text is kept and, if it is short, the text itself, to show what differs. Cases use public
names of `rankwood` and its command line alone, so no module can move from under them. Times, versions and facts of the
machine are masked; compiler and other libraries must be the same in both runs.
"""

from __future__ import annotations

import argparse
import atexit
import dataclasses
import difflib
import fnmatch
import hashlib
import importlib.util
import inspect
import itertools
import json
import multiprocessing
import os
import re
import runpy
import shlex
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import rankwood as rw

Cases = Iterator[tuple[str, Callable[[], Any]]]
ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "tests" / "formats" / "data"  # models that other tools wrote
LONGEST_TEXT = 20_000  # that is kept beside its digest


def plain(value: Any) -> Any:
    """What a case returns, as JSON can hold it: bits as digests, other objects by their class's name and fields."""
    if isinstance(value, rw.Ensemble):
        value.save(path := fresh() / "model.rw")
        return f"model {sha(path.read_bytes())}"
    if isinstance(value, rw.Dataset):
        names = ("X", "y", "qid", "offsets", "order", "weights", "query_weights", "doc_ids", "feature_names")
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype}{list(value.shape)} {sha(value.tobytes())}"
    if isinstance(value, bytes):
        return f"{len(value)} bytes {sha(value)}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {"class": type(value).__name__, **{f.name: getattr(value, f.name) for f in dataclasses.fields(value)}}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float, np.generic)):
        return value.item() if isinstance(value, np.generic) else value
    text = str(value) if isinstance(value, (str, Path)) else f"{type(value).__name__} {getattr(value, '__name__', '')}"
    return re.sub(rf" at 0x[0-9a-f]+|{work()}/\w+/|{ROOT}/", "", text)


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@cache
def work() -> Path:
    """The folder of a run, which is gone in the end."""
    folder = tempfile.mkdtemp(prefix="fingerprints-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def fresh() -> Path:
    return Path(tempfile.mkdtemp(dir=work()))


# ---- What differs from run to run: times, what was chosen by times, and what is said of the machine

NUMBER = re.compile(r"[-+−]?\d[\d.,:]*")
TIMED = re.compile(  # sentences, and names of columns
    r"us/doc|us per doc|µs|speed-up|\dx\b|×|as fast|latency|training s|(^|, )s$|the same, \d+ trees|\d (s|min|kB)\b"
)
TIMED_KEYS = re.compile(
    r"(.*_)?(us|us_per_doc|seconds|prepare_s|speed_up)|speedUp|finished|made|calls|front|on_front|busy"
)
PROGRESS = re.compile(
    r"[\d,]+ of [\d,]+ trees: .* left|[\w -]+: [\d,.]+( \w+)?( \(\d+ %\))?|warning: the machine was busy while .*"
)


def masked(value: Any) -> Any:
    """A value of JSON without times and facts of the machine."""
    if isinstance(value, str):
        return NUMBER.sub("#", value) if TIMED.search(value) else plain(value)
    if isinstance(value, list):
        return [masked(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if "columns" in value and "rows" in value:
        hidden = [TIMED.search(name) for name in value["columns"]]
        rows = [
            ["#" if hide else masked(cell) for cell, hide in zip(row, hidden, strict=True)] for row in value["rows"]
        ]
        return {**value, "rows": rows, "note": masked(value["note"])}
    hidden = ("low", "high", "engine") if "us" in value else ()  # its interval, and the engine that was fastest
    hidden = ("result",) if "'kind': 'timing'" in str(value.get("config")) else hidden
    return {
        key: "#" if TIMED_KEYS.fullmatch(key) or key in hidden
        else sorted(entry) if key == "environment" else masked(entry)
        for key, entry in value.items()
    }  # fmt: skip


def kinds(value: Any) -> Any:
    """Keys and types alone."""
    if isinstance(value, dict):
        return {key: kinds(entry) for key, entry in value.items()}
    return [kinds(entry) for entry in value] if isinstance(value, list) else type(value).__name__


def printed(text: str, exact: bool) -> Any:
    """What a command printed: JSON, or lines; unless `exact` these without numbers and padding."""
    if text.startswith("{"):
        value = json.loads(text)
        return kinds(value) if "available_isas" in value else masked(value)  # `bench` has times and the machine's facts
    lines = [line.rstrip() for line in text.split("\n") if not PROGRESS.fullmatch(line.strip())]
    return [masked(line) if exact else re.sub(r"[ ━─:-]+", " ", NUMBER.sub("#", line)) for line in lines]


def file_facts(path: Path) -> Any:
    """What is compared of a file that a command wrote."""
    content = path.read_bytes()
    if path.suffix in (".png", ".svg", ".sqlite"):
        return "there"
    if path.suffix == ".html":
        inside = r'(?<=id="report-data">)(.*?)(?=</script>)'
        before, data, after = re.split(inside, content.decode(), maxsplit=1, flags=re.DOTALL)
        return {"page": sha((before + after).encode()), "data": masked(json.loads(data))}
    if path.suffix in (".json", ".jsonl"):
        return [masked(json.loads(part)) for part in (content.splitlines() if path.suffix == ".jsonl" else [content])]
    if path.suffix in (".csv", ".md", ".tex"):  # their numbers are in a JSON file beside
        return printed(content.decode().partition("This page: ")[0], exact=False)
    if path.suffix == ".rw" and b"us_per_doc" in content:
        one = rw.load_model(path)
        return plain(one.replace(metadata=masked(one.metadata)))
    return plain(content)


# ---- Data and models that cases share


@cache
def parts() -> tuple[rw.Dataset, rw.Dataset, rw.Dataset]:
    """Training, validation and test data; some values are missing."""
    data = rw.make_ranking(n_queries=90, docs_per_query=12, n_features=8, seed=3, n_threads=2)
    return tuple(data.select_queries(range(*limits)) for limits in ((0, 30), (30, 75), (75, 90)))


@cache
def model(name: str = "boosted") -> rw.Ensemble:
    train, valid, _ = parts()
    if name == "imported":
        return rw.load_model(SAMPLES / "xgboost-3.2.0.json")
    if name == "named":  # its features stand in another order than in the data
        return model().replace(base=0.25, feature_names=train.feature_names[::-1]).reweigh(np.linspace(-0.1, 0.2, 16))
    ranker = {
        "boosted": rw.LambdaMART(n_trees=16, n_leaves=8, learning_rate=0.2),
        "zero": rw.LambdaMART(n_trees=8, n_leaves=8, missing="zero"),
        "dropped": rw.XDART(n_trees=12, n_leaves=8),
        "forest": rw.RandomForest(n_trees=10, queries_per_tree=0.5, criterion="entropy"),
        "grades": rw.MART(n_trees=3, n_leaves=5, task="ordinal"),
        "constant": rw.MART(n_trees=2, min_docs_per_leaf=10_000),
    }[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a constant is one
        return ranker.set_params(n_jobs=2).fit(train, valid=valid).ensemble_


def rows_for(one: rw.Ensemble, n_rows: int = 300) -> np.ndarray:
    """Rows at the thresholds of a model and beside them; every tenth value is missing."""
    rng = np.random.default_rng(5)
    rows = rng.choice([*one.threshold, 0.0], (n_rows, one.n_features)) + rng.integers(-1, 2, (n_rows, one.n_features))
    return np.where(rng.random(rows.shape) < 0.1, np.nan, rows)


# ---- Cases: names, data, learners


def api_cases() -> Cases:
    """Public names, and parameters with their defaults; of classes also their methods and properties."""

    def parameters(thing: Any) -> Any:
        try:
            found = inspect.signature(getattr(thing, "__func__", thing)).parameters.values()
        except (TypeError, ValueError):
            return type(thing).__name__
        return [f"{p.kind.name} {p.name}" + ("" if p.default is p.empty else f" = {p.default!r}") for p in found]

    def described(name: str) -> Any:
        thing = getattr(rw, name)
        own = [attribute for attribute in dir(thing) if inspect.isclass(thing) and not attribute.startswith("_")]
        return {name: parameters(thing), **{attribute: parameters(getattr(thing, attribute)) for attribute in own}}

    yield "api/names", lambda: sorted(rw.__all__)
    for name in rw.__all__:
        yield f"api/{name}", partial(described, name)


def data_cases() -> Cases:
    train = parts()[0]
    given = {"doc_ids": [f"d{i}" for i in range(train.n_docs)], "weights": np.linspace(0.5, 2, train.n_docs)}
    full = rw.Dataset(train.X, train.y, qid=train.qid, feature_names=train.feature_names, **given)

    def there_and_back(name: str, write: Any, read: Any, **options: Any) -> Any:
        write(full, path := fresh() / name, **options)
        return {one.name: one.read_bytes() for one in sorted(path.parent.iterdir())}, read(path, **options)

    other = {"seed": 9, "missing": 0.3, "noise": 0.1, "fixed_size": True, "return_relevance": True}
    svmlight = partial(there_and_back, "a.txt", rw.write_svmlight)
    yield from {
        "data/synthetic": partial(rw.make_ranking, 20, 15, 12, n_threads=2),
        "data/synthetic-other": partial(rw.make_ranking, 20, 15, 12, **other),
        "data/svmlight": partial(svmlight, rw.read_svmlight),
        "data/svmlight-absent": partial(svmlight, rw.read_data, absent=np.nan, zero_based=True),
        "data/svmlight-gz": partial(there_and_back, "a.txt.gz", rw.write_svmlight, rw.read_data, absent=0.0),
        "data/csv": partial(there_and_back, "a.csv", rw.write_csv, rw.read_csv),
        "data/parquet": partial(there_and_back, "a.parquet", rw.write_parquet, rw.read_parquet),
        "data/qrels": partial(there_and_back, "a.txt", rw.write_qrels, str),
        "data/run": partial(there_and_back, "a.txt", lambda data, path: rw.write_run(data, data.y, path), str),
        "data/split": lambda: [full.split(0.3, seed=4), list(full.folds(3)), full.query(2)],
        "data/select": lambda: [full.select_queries([4, 1]), full.select_features([3, 0])],
        "data/bins": lambda: [rw.BinnedDataset.make(train, n).bins for n in (4, 255)],
        "data/blocks": lambda: [
            plain(block) for block in rw.iter_svmlight(inputs() / "train.txt", n_features=8, rows_per_block=100)
        ],
    }.items()  # fmt: skip


# fmt: off
SETTINGS: dict[str, dict[str, Any]] = {  # of every boosted learner
    "plain": {}, "one-thread": {"n_jobs": 1}, "missing-zero": {"missing": "zero"}, "seed": {"random_state": 5},
    "queries-sampled": {"query_fraction": 0.5}, "features-sampled": {"feature_fraction": 0.5},
    "split-sampled": {"feature_fraction": 0.5, "feature_sampling": "split"}, "lambda": {"depth_relaxation": 0.7},
    "alpha": {"balance": 0.3}, "lambda-alpha": {"depth_relaxation": 0.5, "balance": 0.2}, "bins": {"max_bins": 16},
    "limits": {"max_depth": 3, "min_docs_per_leaf": 0.02, "min_gain": 0.01, "l2": 0.5}, "gain": {"gain": "variance"},
    "measures": {"measure": ["ERR", "AP"], "convention": "letor", "importance_type": "split"},
    "early": {"n_trees": 60, "early_stopping_rounds": 4},
    "objective": {"objective": lambda y, scores, *_: (scores - y, np.ones_like(y))},
}
OWN: dict[str, dict[str, dict[str, Any]]] = {
    "LambdaMART": {
        "schedule": {"learning_rate_schedule": "adaptive", "learning_rate": 1.0}, "gains": {"gains": [0, 1, 2, 4, 8]},
        "loss": {"truncation": 5, "sigma": 2.0, "normalize": False, "gains": "linear", "cut_discounts": True},
    },
    "MART": {"ordinal": {"task": "ordinal"}, "ordinal-early": {"task": "ordinal", "early_stopping_rounds": 2}},
    "DART": {
        "rate": {"rate": 0.3}, "skip": {"rate": 0.3, "skip": 0.5}, "lightgbm": {"rate": 0.3, "weighting": "lightgbm"},
        "mart": {"rate": 0.3, "loss": "mart"}, "sizes": {"rate": 0.3, "record_sizes": [2, 5]},
    },
    "XDART": {
        "ratio": {"strategy": "ratio", "rate": 0.3}, "fixed": {"strategy": "fixed", "k": 3},
        "adaptive": {"strategy": "adaptive", "upper_bound": 3}, "share": {"upper_bound": 0.5},
        "previous": {"reference": "previous"}, "train": {"judge": "train"}, "iterations": {"max_iterations": 9},
    },
    "InitializedMART": {"ordinal": {"task": "ordinal"}},
    "RandomForest": {
        "plain": {}, "one-thread": {"n_jobs": 1}, "entropy": {"criterion": "entropy"}, "zero": {"missing": "zero"},
        "queries": {"queries_per_tree": 0.3}, "queries-twice": {"queries_per_tree": 9, "replace": True},
        "docs": {"docs_per_tree": 0.4, "replace": False}, "features": {"max_features": 0.5}, "bins": {"max_bins": 9},
        "limits": {"max_depth": 4, "n_leaves": 9, "min_docs_per_leaf": 3, "min_gain": 1e-4, "max_features": None},
        "ordinal": {"task": "ordinal"}, "out-of-bag": {"out_of_bag": True, "queries_per_tree": 0.3},
        "ordinal-out-of-bag": {"task": "ordinal", "out_of_bag": True}, "measures": {"measure": ["AP", "RR"]},
    },
}
# fmt: on


def learner_cases() -> Cases:
    train, valid, test = parts()
    pairs = {"eval_set": [(valid.X, valid.y)], "eval_qid": [valid.qid], "eval_names": ["v"]}
    weights = {"weights": 1 + train.y, "query_weights": 1 + np.arange(30) % 3}

    def callbacks(ranker: Any) -> Any:
        lines, history = [], {}
        called = [rw.log_evaluation(3, write=lines.append), rw.record_evaluation(history), rw.early_stopping(5)]
        if not isinstance(ranker, rw.RandomForest):
            called.append(rw.reset_parameter(learning_rate=lambda tree: 0.3 * 0.9**tree))
        ranker.fit(train, eval_set=[train, valid], callbacks=called)
        return lines, history

    def resumed(ranker: Any) -> Any:
        checkpoint = rw.Checkpoint(fresh() / "training.rw", every=2)
        for n_trees in (5, 8):
            ranker.set_params(n_trees=n_trees).fit(train, valid=valid, checkpoint=checkpoint)
        return {path.name: path.read_bytes() for path in sorted(checkpoint.path.parent.iterdir())}

    def frame(ranker: Any) -> Any:
        import pandas

        ranker.fit(pandas.DataFrame(train.X, columns=train.feature_names).assign(qid=train.qid), train.y)

    fits = {
        "valid": lambda ranker: ranker.fit(train, valid=valid),
        "arrays": lambda ranker: ranker.fit(train.X, train.y, qid=train.qid, eval_metric="AP", **pairs),
        "group": lambda ranker: ranker.fit(train.X.astype(float), train.y, group=np.diff(train.offsets)),
        "binned": lambda ranker: ranker.fit(rw.BinnedDataset.make(train, 32)),
        "weights": lambda ranker: ranker.fit(rw.Dataset(train.X, train.y, qid=train.qid, **weights), valid=valid),
        "init_model": lambda ranker: ranker.fit(train, valid=valid, init_model=model("zero")),
        "frame": frame, "callbacks": callbacks, "checkpoint": resumed,
    }  # fmt: skip

    def fitted(kind: str, fit: str = "valid", **settings: Any) -> Any:
        """All that a ranker has once it is fitted, and what it then says of test data."""
        small = {"n_trees": 8, "n_jobs": 2} | ({} if kind == "RandomForest" else {"n_leaves": 6})
        small |= {"forest": rw.RandomForest(5, n_jobs=2)} if kind == "InitializedMART" else {}
        ranker = getattr(rw, kind)(**small | settings)
        returned, names = fits[fit](ranker), {name for name in vars(ranker) if name.endswith("_")}
        found = {name: getattr(ranker, name) for name in sorted(names | {"n_trees_", "feature_importances_"})}
        grades = ranker.predict_proba(test) if settings.get("task") == "ordinal" else None
        return found, ranker.predict(test), ranker.score(test), grades, None if returned is ranker else returned

    for kind, own in OWN.items():
        for name, settings in (own if kind == "RandomForest" else SETTINGS | own).items():
            yield f"learner/{kind}/{name}", partial(fitted, kind, **settings)
        for fit in fits:
            if fit != "init_model" or kind != "RandomForest":
                yield f"learner/{kind}/fit-{fit}", partial(fitted, kind, fit)
    yield "learner/InitializedMART/model", lambda: fitted("InitializedMART", forest=model("forest"))
    yield "learner/grade_probabilities", lambda: rw.grade_probabilities(model("grades"), test.X)


# ---- Cases: models of other tools

JFORESTS = """<Ensemble><Tree leaves="3" weight="0.5"><SplitFeatures>2 0</SplitFeatures>
<LeftChildren>1 -1</LeftChildren><RightChildren>-2 -3</RightChildren>
<OriginalThresholds>0.1 -2.5E-3</OriginalThresholds><LeafOutputs>1.0 2.0 3.0</LeafOutputs></Tree></Ensemble>"""


def import_cases() -> Cases:
    def imported(make: Callable[[], Any], **options: Any) -> Any:
        one = rw.load_model(make(), **options)
        return one, one.metadata, one.feature_names, one.score(rows_for(one)), one.leaves(rows_for(one))

    def text(content: str) -> Path:
        (path := fresh() / "model").write_text(content)
        return path

    def of_library(name: str, file: str) -> Any:
        library = importlib.import_module(name)
        path = str(SAMPLES / file)
        return library.CatBoost().load_model(path) if name == "catboost" else library.Booster(model_file=path)

    def of_sklearn(name: str) -> Any:
        estimator = getattr(importlib.import_module("sklearn.ensemble"), name)(random_state=0)
        size = {"max_iter": 4} if name.startswith("Hist") else {"n_estimators": 4}
        return estimator.set_params(**size).fit(np.nan_to_num(parts()[0].X), parts()[0].y > 1)

    for path in sorted(SAMPLES.iterdir()):
        if not path.name.endswith(".scores.json"):
            yield f"import/file/{path.name}", partial(imported, partial(Path, path))
    for name in ("rankwood", "lightgbm-json", "xgboost-dump", "ranklib", "quickrank", "onnx"):
        yield f"import/file/{name}", partial(imported, lambda name=name: exported("zero", name)[0], format=name)
    yield "import/file/jforests", partial(imported, partial(text, JFORESTS), n_features=9)
    for number, content in enumerate(("", "model", "{}", "<ensemble>", "## LambdaMART", "tree\nversion=v4\n")):
        yield f"import/wrong/{number}", partial(imported, partial(text, content))
    files = {"lightgbm": "lightgbm-4.7.0.txt", "xgboost": "xgboost-3.2.0.ubj", "catboost": "catboost-1.2.10.cbm"}
    for name in filter(importlib.util.find_spec, files):
        yield f"import/object/{name}", partial(imported, partial(of_library, name, files[name]))
    for kind, what in itertools.product(("RandomForest", "ExtraTrees", "GradientBoosting", "HistGradientBoosting"),
                                        ("Regressor", "Classifier")):  # fmt: skip
        yield f"import/object/{kind}{what}", partial(imported, partial(of_sklearn, kind + what))


EXPORTS: dict[str, tuple[str, dict[str, Any]]] = {
    "rankwood": (".rw", {}), "lightgbm": (".txt", {"objective": "rank_xendcg"}), "lightgbm-json": (".json", {}),
    "vespa": (".json", {}), "xgboost": (".ubj", {"objective": "reg:squarederror"}), "xgboost-dump": (".json", {}),
    "elasticsearch": (".json", {"definition_only": True}), "ranklib": (".txt", {}), "quickrank": (".xml", {}),
    "solr": (".json", {"name": "a", "store": "b"}), "onnx": (".onnx", {"version": 5}), "c": (".c", {"name": "f"}),
    "so": (".so", {"name": "f"}), "python": (".py", {}), "numpy": (".py", {}),
}  # fmt: skip


def exported(of: str, format: str, **options: Any) -> list[Path]:
    """The files of a model in a format, the model first."""
    rw.save_as(model(of), path := fresh() / f"model{EXPORTS[format][0]}", format, **options)
    return [path, *sorted(set(path.parent.iterdir()) - {path})]


def export_cases() -> Cases:
    def content(of: str, format: str, **options: Any) -> Any:
        return {path.name: path.read_bytes() for path in exported(of, format, **options)}

    for format, (_, options) in EXPORTS.items():
        for of in ("boosted", "zero", "named", "forest", "grades", "constant", "imported"):
            if format != "so" or of == "boosted":
                yield f"export/{format}/{of}", partial(content, of, format)
            if format in ("ranklib", "quickrank", "solr"):
                yield f"export/{format}/{of}-ignore", partial(content, of, format, missing="ignore")
        if options:
            yield f"export/{format}/options", partial(content, "zero", format, **options)
    yield "export/wrong-option", partial(content, "zero", "solr", version=3)
    yield "export/wrong-suffix", lambda: rw.save_as(model(), fresh() / "model.unknown")


# ---- Cases: scoring, pruning, evaluation, tuning


def engine_cases() -> Cases:
    def scores(of: str, engine: str) -> Any:
        one, found = model(of), {}
        prepared = one if engine == "auto" else rw.get_engine(engine).prepare(one)
        for dtype, n_rows, threads in itertools.product(("float32", "float64"), (1, 300), (1, 2)):
            rows, case = rows_for(one, n_rows).astype(dtype), f"{dtype}, {n_rows} rows, {threads} threads"
            for precision in ("single", "double"):
                how = {"precision": precision, "n_threads": threads}
                found[f"{case}, {precision}"] = one.score(rows, engine=engine, **how), prepared.score(rows, **how)
            found[f"{case}, leaves"] = one.leaves(rows, engine=engine, n_threads=threads), prepared.leaves(rows)
        return found, one.score(rows_for(one, 2).tolist(), engine=engine)

    for of in ("boosted", "named", "forest", "imported", "constant"):
        for engine in ("auto", *rw.available_engines(model(of))):
            yield f"engine/{engine}/{of}", partial(scores, of, engine)
    for engine in map(rw.get_engine, rw.available_engines(model())):
        yield f"engine/{engine.name}/facts", partial(list, [engine.name, engine.purpose, engine.limits])
    yield "engine/wrong", partial(rw.get_engine, "fast")


def prune_cases() -> Cases:
    train, valid, test = parts()
    short = {"search": rw.LineSearch(iterations=4), "measure_speed": False}

    def pruned(of: str = "boosted", settings: dict[str, Any] | None = None, **options: Any) -> Any:
        how = {"rates": (0.3, 0.6), "n_threads": 2, "settings": rw.PruningSettings(**short | (settings or {}))}
        result = rw.cleaver(model(of), train, valid, **how | options)
        rows = [[row.ensemble, row.as_dict() | {"speed_up": row.speed_up is None}] for row in result.rows]
        how = [result.accepted, result.measure, result.convention, result.strategy, result.rule, result.needed_bytes]
        return result.ensemble, rows, how, masked(result.summary())

    for name in ("quality-loss", "quality-loss-greedy", "score-loss", "low-weights", "skip", "last", "random"):
        yield f"prune/strategy/{name}", partial(pruned, strategy=name)
        as_the_paper = partial(pruned, judge=None, settings={"victims": "train", "seed": 3})
        yield f"prune/strategy/{name}-train", partial(as_the_paper, strategy=name)
    for name, options in {
        "function": {"strategy": lambda outputs, weights, queries, k: np.arange(len(weights) - k)},
        "judge": {"judge": test}, "share": {"judge": 0.3}, "test": {"test": test},
        "speed": {"settings": {"measure_speed": True}}, "sample": {"settings": {"max_queries": 15}},
        "one-thread": {"n_threads": 1}, "wrong": {"strategy": "quality"},
        "measure": {"measure": "ERR", "convention": "yahoo"},
        "search": {"settings": {"search": rw.LineSearch(0.3, 5, 0.8, 6, 2)}},
        **{variant: {"variants": variant} for variant in ("line-search", "refit", "distil", "gradient")},
        "fits": {"settings": {"refit": rw.Refit(5, 0.5), "distil": rw.Distil(4)}},
        "not-significant": {"accept": rw.Acceptance("not-significant", alpha=0.1)},
        "non-inferior": {"accept": rw.Acceptance("non-inferior", margin=0.05)},
        **{of: {"of": of} for of in ("forest", "named", "dropped")},
    }.items():  # fmt: skip
        yield f"prune/{name}", partial(pruned, **options)
    settings = rw.PruningSettings(**short)
    grow = partial(rw.grow_and_prune, train=train, valid=valid, size=7, grow=6, keep=3, settings=settings)
    for ranker in (rw.LambdaMART(n_leaves=5), rw.MART(n_leaves=5)):
        yield f"prune/grow_and_prune/{type(ranker).__name__}", partial(grow, ranker)


MEASURES = ["nDCG@10", "nDCG", "DCG@5", "ERR", "ERR@20", "AP", "RR", "P@5", "P(rel=2)@5", "R@5", "RBP"]
CONVENTIONS = ("rankwood", "lightgbm", "xgboost", "quickrank", "ranklib", "letor", "yahoo", "trec", "sklearn")


def evaluation_cases() -> Cases:
    (train, _, test), one, other, forest = parts(), model(), model("dropped"), model("forest")
    a, b = (rw.evaluate(each, test).per_query["nDCG@10"] for each in (one, other))
    for name in CONVENTIONS:
        yield f"evaluate/{name}", partial(rw.evaluate, one, test, MEASURES, convention=name, n_threads=2)
        yield f"evaluate/compare/{name}", partial(rw.compare, one, other, test, convention=name)
        yield (
            f"evaluate/describe/{name}",
            lambda name=name: (rw.Convention.get(name), rw.Convention.get(name).describe()),
        )
    for name in (*MEASURES, "ndcg@5", "MAP", "mrr@3", "NDCG@x"):
        yield f"evaluate/measure/{name}", lambda name=name: (rw.parse_measure(name), str(rw.parse_measure(name)))
    for test_of in (rw.paired_t_test, rw.randomisation_test, rw.wilcoxon_test, rw.bootstrap_interval):
        yield f"evaluate/significance/{test_of.__name__}", partial(test_of, a, b)
    for test_of, method in itertools.product((rw.equivalence_test, rw.non_inferiority_test), ("t", "randomisation")):
        yield f"evaluate/significance/{test_of.__name__}-{method}", partial(test_of, a, b, margin=0.02, method=method)
    for within in ("query", "data"):
        yield f"evaluate/diagnose/permutation-{within}", partial(rw.permutation_importance, one, test, within=within)
        correlated = partial(rw.tree_correlation, forest, test, within_queries=within == "query")
        yield f"evaluate/diagnose/correlation-{within}", correlated
    bagged = rw.RandomForest(12, queries_per_tree=0.3, n_jobs=2)
    yield from {
        "evaluate/significance/bca": partial(rw.bootstrap_interval, a, b, method="bca", confidence=0.9),
        "evaluate/significance/holm": partial(rw.holm, [0.01, 0.04, 0.03]),
        "evaluate/diagnose/impurity": partial(rw.impurity_importance, one),
        "evaluate/diagnose/strength": partial(rw.tree_strength, forest, test, ["nDCG@10", "AP"]),
        "evaluate/diagnose/curve": partial(rw.measure_curve, one, test, ["nDCG@10", "AP"], sizes=[1, 5, 16]),
        "evaluate/diagnose/out-of-bag": lambda: rw.out_of_bag_curve(bagged.fit(train), train, ["nDCG@10", "AP"]),
        "evaluate/ensemble/parts": lambda: [
            one.concat(other),
            one.select([3, 1]),
            one.reweigh(np.ones(16)),
            one.tree(2),
        ],
        "evaluate/ensemble/facts": lambda: [one.fingerprint(), repr(one), one.metadata, one.leaf_offsets, one == other],
        "evaluate/ensemble/nested": lambda: rw.Ensemble.from_trees(
            [(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0)), 7.0], n_features=3
        ),
    }.items()
    for of in ("boosted", "forest", "imported", "constant"):
        yield f"evaluate/diagnose/topology-{of}", lambda of=of: (model(of).topology(), model(of).topology().as_dict())
        yield (
            f"evaluate/diagnose/usage-{of}",
            lambda of=of: (u := rw.usage(model(of), rows_for(model(of))), u.as_dict()),
        )


def verify_cases() -> Cases:
    def verified(*models: Any, **options: Any) -> Any:
        found = rw.verify(*models, n_threads=2, **options)
        return str(found), found.as_dict()

    one, test = model(), parts()[2]
    yield "verify/same", partial(verified, one, one, test)
    yield "verify/other", partial(verified, one, model("dropped"), max_rows=2000, seed=4, names=("one", "other"))
    yield "verify/reordered", partial(verified, one, one.select(range(15, -1, -1)), tolerance=0.0)
    yield "verify/function", partial(verified, one, lambda X: one.score(X).astype(np.float32), test.X)
    for format, dtype in itertools.product(("lightgbm", "xgboost", "onnx"), (None, "float32")):
        yield f"verify/{format}-{dtype}", lambda f=format, d=dtype: verified(one, exported("boosted", f)[0], dtype=d)


def tune_cases() -> Cases:
    (train, valid, test), path = parts(), fresh() / "study.db"
    space = rw.SearchSpace(n_trees=(4, 10), n_leaves=(4, 8), min_docs_per_leaf=(5, 20))
    fixed = {"n_trials": 5, "rates": (0.4, 0.7), "space": space, "latency": lambda one, rows: one.n_nodes / 10}

    def tuned(**options: Any) -> Any:
        result = rw.tune(train, valid, n_threads=2, **fixed, **options)
        return result.ensemble, result.models, result.as_dict(), result.summary(), result.curves()

    if importlib.util.find_spec("optuna"):
        yield "tune/within", partial(tuned, budget_us=4.0, test=test)
        yield "tune/beyond", partial(tuned, budget_us=0.01, measure="ERR", seed=2)
        yield "tune/study", lambda: [tuned(budget_us=budget, study=path) for budget in (2.0, 4.0)]


# ---- Cases: the command line

DATA = "--train ../in/train.txt --valid ../in/valid.txt --threads 2"
TEST = "--data ../in/test.txt --threads 2"
LITTLE = "-p n_trees=6 -p n_leaves=5"
STUDY = "--quick --folds 1 --threads 2 --out study"
COMMANDS = f"""
train/lambdamart: train lambdamart {DATA} --test ../in/test.txt {LITTLE} -o a.rw
train/lambdamart-json: train lambdamart {DATA} --test ../in/test.txt {LITTLE} -m ERR -m AP -o a.rw --json
train/mart: train mart {DATA} {LITTLE} --task ordinal -p balance=0.2 -o a.rw --json
train/dart: train dart {DATA} {LITTLE} -p rate=0.3 -p missing=zero -o a.rw --json
train/xdart: train xdart {DATA} {LITTLE} --seed 3 -o a.rw
train/igbrt: train igbrt {DATA} {LITTLE} --initial-trees 4 -o a.rw
train/igbrt-from: train igbrt {DATA} {LITTLE} --forest ../in/other.rw -o a.rw --json
train/forest: train forest {DATA} -p n_trees=6 -p queries_per_tree=0.5 -o a.rw --json
train/early: train lambdamart {DATA} -p n_trees=50 -p early_stopping_rounds=3 -o a.rw --json
train/checkpoint: train mart {DATA} {LITTLE} --checkpoint c.rw --every 2 -o a.rw
train/wrong-parameter: train mart {DATA} -p n_tree=6 -o a.rw
train/wrong-file: train mart --train nowhere.txt -o a.rw
train/wrong-learner: train boost {DATA} -o a.rw
evaluate/one: evaluate ../in/model.rw {TEST} -m nDCG@10 -m ERR --convention letor
evaluate/two: evaluate ../in/model.rw ../in/other.rw {TEST}
evaluate/json: evaluate ../in/model.rw ../in/other.rw {TEST} -m AP -m P(rel=2)@5 --json
evaluate/wrong: evaluate ../in/model.rw {TEST} -m nDCGG
inspect/text: inspect ../in/model.rw {TEST}
inspect/json: inspect ../in/model.rw {TEST} --json
inspect/imported: inspect ../in/lightgbm.txt
score/text: score ../in/model.rw {TEST}
score/file: score ../in/lightgbm.txt {TEST} --engine traverse --precision single -o scores.txt
prune/text: prune ../in/model.rw {DATA} --iterations 2 --rates 0.3,0.6 -o a.rw
prune/json: prune ../in/model.rw {DATA} --test ../in/test.txt --iterations 2 --rates 0.5 -o a.rw --json
prune/lightgbm: prune ../in/lightgbm.txt {DATA} --rates 0.5 --accept non-inferior --margin 0.1 -o a.txt --json
convert/xgboost: convert ../in/model.rw a.ubj
convert/solr: convert ../in/lightgbm.txt a.json --to solr --missing ignore --option name=x
convert/refused: convert ../in/model.rw a.xml
convert/wrong: convert ../in/model.rw a.rw --from lightgbm
compile/c: compile ../in/model.rw -o a.c --name ranker
compile/so: compile ../in/model.rw -o a.so
verify/agree: verify ../in/model.rw ../in/lightgbm.txt {TEST} --rows 2000
verify/json: verify ../in/model.rw ../in/other.rw --rows 1000 --json
bench/json: bench ../in/model.rw --data ../in/test.txt --repeats 6 --batch 10 --json
tune/json: tune {DATA} --budget-us 1000000 --trials 2 --max-trees 8 -o a.rw --json
sweep/json: sweep ../in/sweep.toml --threads 2 --out sweep --json
report/page: report ../in/model.rw ../in/other.rw {TEST} -o a.html
datasets/list: datasets list
datasets/json: datasets list --json
reproduce/subsampling: reproduce subsampling {STUDY} --trees 5 --seeds 1
reproduce/igbrt: reproduce igbrt {STUDY} --trees 5 --boosted-trees 5 --learning-rates 0.3 --initial-trees 3
reproduce/xdart: reproduce xdart {STUDY} --trees 5 --full-trees 6 --methods 'LambdaMART,X-DART adaptive 5'
reproduce/cleaver: reproduce cleaver {STUDY} --trees 9 --leaves 4 --sizes 4,6 --rates 0.5 --iterations 1
"""
TIMED_COMMANDS = ("prune", "report", "reproduce")  # whose tables have times in them
STUDIES = ("subsampling", "igbrt", "xdart", "cleaver", "asadi-lin")
SWEEP = """learner = "lambdamart"\ngrid.n_leaves = [4, 6]\nparameters.n_trees = 6
data = { train = ["train.txt"], valid = ["valid.txt"], test = ["test.txt"] }"""
SLOW_IMPORTS = ("scipy.stats", "sklearn.utils.validation", "typer.main", "pydantic.main", "rich.markdown", "optuna",
                "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg")  # fmt: skip


@cache
def inputs() -> Path:
    """Files that commands read, in a folder beside theirs."""
    (folder := work() / "in").mkdir()
    for name, data in zip(("train", "valid", "test"), parts(), strict=True):
        rw.write_svmlight(data, folder / f"{name}.txt")
    model().save(folder / "model.rw")
    model("dropped").save(folder / "other.rw")
    rw.save_as(model(), folder / "lightgbm.txt")
    (folder / "sweep.toml").write_text(SWEEP)
    return folder


def done(line: str) -> Any:
    """What a command printed and wrote."""
    exact = line.endswith("--help") or line.split()[0] not in TIMED_COMMANDS
    # Where a line is folded depends on the numbers before.
    status, out, err = run(shlex.split(line), folder := fresh(), width=100 if exact else 9999)
    if "Traceback" in err:
        tell(f"rankwood {line} fails: {err}")
    written = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = {str(path.relative_to(folder)): file_facts(path) for path in written}
    return {"status": status, "out": printed(out, exact), "err": printed(err, True), "files": files}


def command_cases() -> Cases:
    for line in COMMANDS.strip().split("\n"):
        name, _, command = line.partition(": ")
        yield f"command/{name}", partial(done, command)


def help_cases() -> Cases:
    names = dict.fromkeys(line.partition("/")[0] for line in COMMANDS.strip().split("\n"))
    nested = ["datasets list", "datasets fetch", *(f"reproduce {study}" for study in STUDIES)]
    for name in ("", "demo", *names, *nested):
        yield f"help/{name or 'rankwood'}", partial(done, f"{name} --help")


def run(arguments: list[str], folder: Path, width: int) -> tuple[int, str, str]:
    """`python -m rankwood`, in a fork of a process that has slow imports behind it; status and what was printed."""
    paths = [fresh() / name for name in ("out", "err")]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([name for name in SLOW_IMPORTS if importlib.util.find_spec(name.split(".")[0])])
    process = context.Process(target=run_here, args=(arguments, folder, width, paths))
    process.start()
    process.join(timeout=300)
    process.kill()  # nothing happens to one that has ended
    process.join()
    return int(process.exitcode or 0), *(path.read_text(encoding="utf-8") for path in paths)


def run_here(arguments: list[str], folder: Path, width: int, paths: list[Path]) -> None:
    for number, path in enumerate(paths, start=1):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), number)
    os.chdir(folder)
    os.environ["COLUMNS"] = str(width)
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(paths[0].parents[1] / "bytecode")  # compiled once
    if arguments[:2] != ["reproduce", "subsampling"]:  # figures take long: one study draws them
        sys.modules["matplotlib"] = None  # type: ignore[assignment]
    sys.argv = ["rankwood", *arguments]
    runpy.run_module("rankwood", run_name="__main__", alter_sys=True)


# ---- Recording and comparing


def text_of(name: str, case: Callable[[], Any]) -> str:
    """What a case returns or raises, as text."""
    try:
        value = case()
    except Exception as error:
        value = f"{type(error).__name__}: {error}"
        if not isinstance(error, rw.RankwoodError):
            tell(f"{name} fails: {value}")
    return json.dumps(plain(value), indent=1, ensure_ascii=False)


def with_warnings(name: str, case: Callable[[], Any]) -> str:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        text = text_of(name, case)
    # Other libraries deprecate things when they are first imported, whatever the case is about.
    ours = [one for one in said if issubclass(one.category, (UserWarning, RuntimeWarning))]
    ours = [one for one in ours if not PROGRESS.fullmatch(f"warning: {one.message}")]
    return "\n".join([text, *(plain(f"{one.category.__name__}: {one.message}") for one in ours)])


FAMILIES = {
    "api": api_cases, "data": data_cases, "learner": learner_cases, "import": import_cases, "export": export_cases,
    "engine": engine_cases, "prune": prune_cases, "evaluate": evaluation_cases, "verify": verify_cases,
    "tune": tune_cases, "command": command_cases, "help": help_cases,
}  # fmt: skip


def take(only: str) -> dict[str, str]:
    """The texts of all cases whose names fit a pattern."""
    source = os.pathsep.join(filter(None, [str(Path(rw.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    os.environ |= {"RANKWOOD_CACHE": str(work() / "cache"), "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}
    os.environ["PYTHONPATH"] = source
    found: dict[str, str] = {}
    for family, cases in FAMILIES.items():
        if not fnmatch.fnmatchcase(family, only.partition("/")[0]):
            continue
        start, chosen = time.monotonic(), {name: case for name, case in cases() if fnmatch.fnmatchcase(name, only)}
        if family in ("command", "help"):  # processes of their own
            inputs()
            with ThreadPoolExecutor(2) as pool:
                found |= zip(chosen, pool.map(text_of, chosen, chosen.values()), strict=True)
        else:
            found |= {name: with_warnings(name, case) for name, case in chosen.items()}
        tell(f"{family}: {len(chosen)} in {time.monotonic() - start:.1f} s")
    return found


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def record(path: Path, only: str) -> int:
    texts = take(only)
    digests = {name: sha(text.encode()) for name, text in texts.items()}
    kept = {"digests": digests, "texts": {name: text for name, text in texts.items() if len(text) <= LONGEST_TEXT}}
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"recorded {len(texts)} fingerprints in {path}")
    return 0


def compare(path: Path, only: str) -> int:
    kept, texts = json.loads(path.read_text(encoding="utf-8")), take(only)
    before = {name: digest for name, digest in kept["digests"].items() if fnmatch.fnmatchcase(name, only)}
    now = {name: sha(text.encode()) for name, text in texts.items()}
    differ = [name for name in before | now if before.get(name) != now.get(name)]
    for name in differ:
        print(f"{name}: {'is new' if name not in before else 'is gone' if name not in now else 'differs'}")
        if name in kept["texts"] and name in now:
            lines = difflib.unified_diff(kept["texts"][name].split("\n"), texts[name].split("\n"), "before", "now", n=2)
            print(*(f"    {line.rstrip()}" for line in itertools.islice(lines, 60)), sep="\n")
    print(f"compared {len(before | now)} fingerprints: {len(differ)} differ")
    return 1 if differ else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of cases, such as 'learner/*'")
    arguments = parser.parse_args()
    return {"record": record, "compare": compare}[arguments.action](arguments.file, arguments.only)


if __name__ == "__main__":
    sys.exit(main())
