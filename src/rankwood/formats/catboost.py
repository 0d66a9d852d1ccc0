"""CatBoost's models, read: the JSON of `save_model(format="json")`, and the binary `.cbm` with CatBoost's help.

CatBoost rounds a value to float32 and sends it right when it is greater than the border. Leaf values are multiplied by
a scale, and a bias is added. Missing values go below or above all borders of a feature, as its treatment says.

A one-hot split sends one category right. Files know categories by the hash of their text; the texts are there when the
model was saved with its pool. Texts that are all whole numbers are these numbers here; others are codes, numbered as
the file lists the categories.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.errors import MissingPackageError, ModelError, one_line
from rankwood.formats.reading import (
    NUMBER,
    UNLIMITED,
    Budget,
    Pieces,
    Splits,
    TreeBuilder,
    as_column,
    at_most_of_float32,
    check_one_score,
    ensemble_of,
    entry,
    less_than,
    number,
    parse_json,
    with_categories,
    with_covers,
)
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import MAX_FEATURES, NEEDED, Trees, offsets_of

TO_JSON = """import sys
from catboost import CatBoost
try:
    import resource
    with open("/proc/self/statm") as facts:
        used = int(facts.read().split()[0]) * resource.getpagesize()
    for kind, limit in ((resource.RLIMIT_AS, used + int(sys.argv[3])), (resource.RLIMIT_FSIZE, int(sys.argv[4]))):
        resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
except (ImportError, OSError, ValueError):  # not on this system
    pass
model = CatBoost()
model.load_model(sys.argv[1])
model.save_model(sys.argv[2], format="json")
"""
READING_SECONDS = 300
# Bytes of memory that CatBoost may take to read a file, and bytes of JSON that it may write: so many, and so many more
# for each byte of the file.
MEMORY = 2 << 30, 64
JSON_SIZE = 64 << 20, 100
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}")
MAX_DEPTH = 16  # CatBoost's limit for oblivious trees
# "AsIs": a NaN is compared as it is, and it is not greater than any border.
MISSING_LEFT = {"AsIs": True, "AsFalse": True, "AsTrue": False}


def is_cbm(start: bytes) -> bool:
    """Whether a file that begins so is a `.cbm`."""
    return start.startswith(b"CBM1")


def is_catboost_json(value: Any) -> bool:
    """Whether a JSON value is a model of CatBoost."""
    return isinstance(value, dict) and "features_info" in value and ("oblivious_trees" in value or "trees" in value)


def from_catboost_model(model: Any) -> Ensemble:
    """Ensemble of a CatBoost model object such as a `CatBoostRanker`."""
    with tempfile.TemporaryDirectory(prefix="rankwood-") as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        content = path.read_bytes()
        return from_catboost_json(parse_json(content), Budget(len(content)))


def parse_cbm(content: bytes, budget: Budget = UNLIMITED) -> Ensemble:
    """Ensemble of a `.cbm` file, which CatBoost turns into JSON.

    It does so in a process of its own, because a damaged file can crash it.
    """
    if find_spec("catboost") is None:
        raise MissingPackageError("catboost", "reading a .cbm model", "formats")
    with tempfile.TemporaryDirectory(prefix="rankwood-") as folder:
        source, target = Path(folder) / "model.cbm", Path(folder) / "model.json"
        source.write_bytes(content)
        limits = [str(least + each * len(content)) for least, each in (MEMORY, JSON_SIZE)]
        command = [sys.executable, "-c", TO_JSON, str(source), str(target), *limits]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=READING_SECONDS)
        except subprocess.TimeoutExpired:
            raise ModelError(f"CatBoost did not read the file within {READING_SECONDS} seconds") from None
        if done.returncode or not target.exists():
            reason = done.stderr.strip().splitlines()[-1:] or ["it crashed"]
            raise ModelError(f"CatBoost cannot read the file: {one_line(reason[0])}")
        return from_catboost_json(parse_json(target.read_bytes()), budget)


def from_catboost_json(value: Any, budget: Budget = UNLIMITED) -> Ensemble:
    """Ensemble of a model in CatBoost's JSON, given as the parsed value."""
    features = _Features(value)
    scale, bias = _scale_and_bias(value)
    oblivious = value.get("oblivious_trees")
    if oblivious is not None:
        trees, splits = _oblivious_trees(oblivious, features)
    else:
        trees, splits = _nested_trees(entry(value, "trees", kind=list), features)
    model = ensemble_of(
        trees,
        splits,
        source={"format": "catboost"},
        n_features=features.n_features,
        tree_weights=np.full(trees.n_trees, scale),
        base=bias,
        feature_names=features.names,
        budget=budget,
    )
    lists = {feature.column: feature.listed for feature in features.categories.values() if not feature.are_numbers}
    columns = sorted(lists)
    return with_categories(model, [lists[column] for column in columns], columns) if columns else model


# A border, or what a split on one category is in thresholds.
Split: TypeAlias = tuple[int, float | Pieces, bool]


class _Features:
    """Columns, names and treatment of missing values of the features; splits know float features by another number."""

    def __init__(self, value: Any) -> None:
        info = entry(value, "features_info", kind=dict)
        self.column: dict[int, int] = {}
        self.missing_left: dict[int, bool] = {}
        self.categories: dict[int, _Categories] = {}
        texts = _texts(info)
        names: dict[int, str] = {}
        for kind in ("float_features", "categorical_features", "text_features", "embedding_features"):
            for feature in entry(info, kind, kind=list) if kind in info else ():
                column = entry(feature, "flat_feature_index", kind=int, where="a feature")
                names[column] = str(feature.get("feature_id") or "")
                if kind == "float_features":
                    self._add(feature, column)
                elif kind == "categorical_features":
                    index = entry(feature, "feature_index", kind=int, where="a feature")
                    self.categories[index] = _Categories(column, names[column], feature.get("values"), texts)
        self.statistics = _statistics(info, self.categories)
        self.n_features = 1 + max(names, default=-1)
        if min(names, default=0) < 0 or self.n_features > MAX_FEATURES:
            raise ModelError("the file is damaged: a feature has an impossible number")
        # Names count only if every column has one: a damaged file may give one feature a huge number.
        known = [names[column] for column in sorted(names)] if len(names) == self.n_features else []
        self.names = known if known and all(known) else None

    def _add(self, feature: dict[str, Any], column: int) -> None:
        index = entry(feature, "feature_index", kind=int, where="a feature")
        treatment = feature.get("nan_value_treatment", "AsIs")
        if not isinstance(treatment, str) or treatment not in MISSING_LEFT:
            raise ModelError(f"feature {column}: treatment of missing values {one_line(treatment)} is not known")
        self.column[index] = column
        self.missing_left[index] = MISSING_LEFT[treatment]

    def split(self, split: Any, where: str) -> Split:
        """Column, border, and whether missing values go left, of a split."""
        kind = entry(split, "split_type", kind=str, where=where)
        if kind == "OneHotFeature":
            index = entry(split, "cat_feature_index", kind=int, where=where)
            if index not in self.categories:
                raise ModelError(f"{where}: there is no categorical feature {one_line(index)}")
            return self._one_hot(self.categories[index], entry(split, "value", kind=int, where=where), where)
        if kind == "OnlineCtr":
            raise ModelError(
                f"{where} splits by statistics of categories ({self.statistics}), which only CatBoost computes: train "
                "with one_hot_max_size=255, or encode such features as numbers"
            )
        if kind != "FloatFeature":
            raise ModelError(f"{where} splits by {one_line(kind)}: only numeric and one-hot features can be imported")
        index = entry(split, "float_feature_index", kind=int, where=where)
        if index not in self.column:
            raise ModelError(f"{where}: there is no float feature {index}")
        border = number(entry(split, "border", where=where), f"{where}: a border")
        return self.column[index], border, self.missing_left[index]

    def _one_hot(self, categories: _Categories, value: int, where: str) -> Split:
        if categories.texts is None:
            raise ModelError(
                f"{where} splits by a category of feature {one_line(categories.name)}, whose texts the file does not "
                "have: save the model with its pool, model.save_model('model.json', format='json', pool=pool)"
            )
        text = categories.texts.get(value & 0xFFFFFFFF)
        if text is None:
            raise ModelError(f"{where}: feature {one_line(categories.name)} has no category {one_line(value)}")
        if categories.are_numbers:
            point = float(text)
        else:
            point = float(categories.listed.index(text))
        cuts = [float(less_than(point)[0]), point]
        return categories.column, Pieces(cuts, [True, False, True], True), True


class _Categories:
    """Categories of a feature: their texts by hash, or None when the file lacks some."""

    def __init__(self, column: int, name: str, hashes: Any, texts: dict[int, str]) -> None:
        self.column, self.name = column, name or str(column)
        listed = as_column([] if hashes is None else hashes, np.int64, f"values of feature {one_line(self.name)}")
        unsigned = [value & 0xFFFFFFFF for value in listed.tolist()]
        known = all(value in texts for value in unsigned)
        self.texts = {value: texts[value] for value in unsigned} if known and unsigned else None
        self.listed = list((self.texts or {}).values())
        self.are_numbers = bool(self.texts) and all(WHOLE.fullmatch(text) for text in (self.texts or {}).values())


def _texts(info: dict[str, Any]) -> dict[int, str]:
    """Texts of categories by hash, which a file has that was saved with its pool."""
    pairs = info.get("cat_features_hash", [])
    if not isinstance(pairs, list):
        raise ModelError(f"cat_features_hash is {one_line(pairs)}, not a list")
    where = "cat_features_hash"
    return {
        entry(pair, "hash", kind=int, where=where) & 0xFFFFFFFF: entry(pair, "value", kind=str, where=where)
        for pair in pairs
    }


def _statistics(info: dict[str, Any], categories: dict[int, _Categories]) -> str:
    """Names of the features whose categories have statistics, for a message."""
    ctrs = info.get("ctrs")
    parts = [ctr.get("elements") for ctr in ctrs if isinstance(ctr, dict)] if isinstance(ctrs, list) else []
    elements = [element for part in parts if isinstance(part, list) for element in part]
    used = {element.get("cat_feature_index") for element in elements if isinstance(element, dict)}
    names = [one_line(feature.name) for index, feature in categories.items() if index in used]
    return ", ".join(names[:5]) or "of some feature"


def _scale_and_bias(value: Any) -> tuple[float, float]:
    """Factor of all leaf values, and what is added to their sum."""
    if "scale_and_bias" not in value:  # older files have neither
        return 1.0, 0.0
    scale = entry(value, "scale_and_bias", 0, kind=NUMBER)
    bias = entry(value, "scale_and_bias", 1, kind=(list, int, float))
    biases = bias if isinstance(bias, list) else [bias]
    check_one_score(len(biases), "classes")
    numbers = as_column([scale, *biases], np.float64, "scale_and_bias")
    return float(numbers[0]), float(numbers[1]) if len(numbers) > 1 else 0.0


def _oblivious_trees(trees: Any, features: _Features) -> tuple[Trees, Splits]:
    """Trees with one split per level: bit i of a leaf's number tells on which side of split i the leaf lies."""
    if not isinstance(trees, list):
        raise ModelError(f"the trees are {one_line(trees)}, not a list")
    parts: dict[str, list[AnyArray]] = {name: [] for name in NEEDED}
    one_hot: dict[int, Pieces] = {}
    n_nodes = 0
    for position, tree in enumerate(trees):
        where = f"tree {position}"
        splits = tree.get("splits") if isinstance(tree, dict) else None
        splits = [] if splits is None else entry(tree, "splits", kind=list, where=where)
        depth = len(splits)
        if depth > MAX_DEPTH:
            raise ModelError(f"{where} has {depth} levels: CatBoost's trees have up to {MAX_DEPTH}")
        values = as_column(entry(tree, "leaf_values", kind=list, where=where), np.float64, f"{where}: leaf_values")
        if len(values) != 1 << depth:
            problem = "is damaged" if len(values) % (1 << depth) else "has more than one value per leaf"
            raise ModelError(f"{where} {problem}: {depth} splits and {len(values)} values")
        levels = [features.split(split, where) for split in reversed(splits)]  # the last split is the highest bit
        nodes = np.arange((1 << depth) - 1)
        level = np.floor(np.log2(nodes + 1)).astype(np.int64)
        child = 2 * nodes + 1  # numbered level by level
        last = level == depth - 1
        parts["left"].append(np.where(last, ~(child - len(nodes)), child))
        parts["right"].append(np.where(last, ~(child + 1 - len(nodes)), child + 1))
        pieces = {at: split for at, (_, split, _) in enumerate(levels) if isinstance(split, Pieces)}
        if pieces:
            one_hot |= {n_nodes + node: pieces[at] for node, at in enumerate(level.tolist()) if at in pieces}
            levels = [(column, 0.0 if at in pieces else split, left) for at, (column, split, left) in enumerate(levels)]
        n_nodes += len(nodes)
        for name, place in (("feature", 0), ("threshold", 1), ("missing_left", 2)):
            parts[name].append(np.array([at[place] for at in levels])[level] if depth else np.zeros(0, bool))
        parts["leaf_value"].append(values)
    columns = {name: np.concatenate([np.zeros(0, bool), *arrays]) for name, arrays in parts.items()}
    columns["threshold"] = at_most_of_float32(columns["threshold"])
    oblivious = Trees.from_columns(columns, offsets_of([len(values) - 1 for values in parts["leaf_value"]]))
    weights = [tree.get("leaf_weights") for tree in trees]
    if not all(isinstance(column, list) for column in weights):
        return oblivious, one_hot
    return with_covers(oblivious, [weight for column in weights for weight in column]), one_hot


def _nested_trees(trees: list[Any], features: _Features) -> tuple[Trees, Splits]:
    """Trees that are not oblivious, whose nodes hold their children."""
    builder = TreeBuilder()
    weights: list[Any] = []  # of leaves
    for position, tree in enumerate(trees):
        where = f"tree {position}"

        def read(node: Any, where: str = where) -> Any:
            if not isinstance(node, dict):
                raise ModelError(f"{where}: a node is {one_line(node)}")
            if "split" not in node:
                value = entry(node, "value", kind=(int, float, list), where=where)
                if isinstance(value, list):
                    raise ModelError(f"{where} has more than one value per leaf")
                weights.append(node.get("weight"))
                return number(value, f"{where}: a leaf")
            column, border, missing_left = features.split(entry(node, "split", kind=dict, where=where), where)
            children = entry(node, "left", where=where), entry(node, "right", where=where)
            if isinstance(border, Pieces):
                return column, border, *children
            return column, border, *children, missing_left

        builder.add(tree, read)
    return with_covers(builder.trees(at_most_of_float32), weights), builder.splits
