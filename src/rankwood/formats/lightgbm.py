"""LightGBM's models, as text and as JSON dump, and Vespa's, which are such dumps: read and written.

LightGBM takes values within float32(1e-35) of zero for zero, then sends a value left when it is at most the threshold.
The missing type of a node tells what is missing there: "None", nothing, so that a NaN is taken for 0; "Zero", zero and
NaN; "NaN", NaN alone. Missing values go the node's default way. A category goes left when it is in the node's set, in
which negative and missing ones never are.

Vespa sends a value left when it is less than the threshold. Dumps that rankwood writes for Vespa carry a mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.errors import ModelError, one_line
from rankwood.formats.reading import (
    NUMBER,
    UNLIMITED,
    Budget,
    Pieces,
    Splits,
    TreeBuilder,
    as_column,
    category_pieces,
    check_one_score,
    ensemble_of,
    entry,
    less_than,
    mean_weights,
    members_of_bitset,
    never_left,
    numbers,
    renumbered,
    texts,
    whole,
    with_categories,
    with_covers,
)
from rankwood.formats.writing import (
    LARGEST_DOUBLE,
    OTHER_NAMES,
    below_double,
    categories_of,
    check_objective,
    finite,
    names_of,
    nested,
    on_thresholds,
    plain,
    refuse_names,
    tell_fractions,
    warn,
    whole_covers,
)
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Trees, offsets_of

ZERO = float(np.float32(1e-35))
BELOW_ZERO = float(np.nextafter(-ZERO, -np.inf))  # largest value that LightGBM takes for negative
MISSING_TYPES = {"None": 0, "Zero": 1, "NaN": 2}
MISSING_ZERO, MISSING_NAN = MISSING_TYPES["Zero"], MISSING_TYPES["NaN"]
IS_CATEGORY, DEFAULT_LEFT, MISSING_SHIFT = 1, 2, 2  # two bits of decision_type; the missing type is shifted by two
MAX_CATEGORY = 1 << 24
VERSIONS = ("v2", "v3", "v4")
MAX_COUNT = 2**53  # largest count of features, classes or leaves that is believed
ENDS = (b"\nend of trees", b"\nfeature importances:", b"\nfeature_importances:")
INFINITE_FROM = 1e300  # a dump writes infinity as a number of this size or larger
VESPA_MARK = {"rankwood": "vespa"}  # an entry of the dump that Vespa ignores
FORBIDDEN = '",:[]{}\\'  # LightGBM refuses the first seven in training; the last would break its JSON dumps
# What Vespa takes for a feature, as `f1` or `fieldMatch(title).proximity`. It puts names into an expression, in which
# `a-b` is a difference and `7` a number.
RANK_FEATURE = re.compile(
    r"(?!(\d+\.?\d*(e\d+)?|true|false)$)[\w@]+(\.[\w@]+)*"
    r"(\(([\w@.{},\s()]|-(?=[\d.])|\"[^\"]*\")*\)(\.[\w@]+)*)?",
    re.ASCII | re.IGNORECASE,
)
# Objectives whose predictions are the raw scores.
OBJECTIVES = ("lambdarank", "rank_xendcg", "regression", "regression_l1", "huber", "fair", "quantile", "mape")

Lines = dict[bytes, bytes]


# Reading the text (`Booster.save_model`), versions v2 to v4.


def is_lightgbm_text(start: bytes) -> bool:
    """Whether a file that begins so is LightGBM's text."""
    return start.lstrip().startswith((b"tree\n", b"tree\r\n"))


def from_booster(model: Any) -> Ensemble:
    """Ensemble of a `lightgbm.Booster` or an estimator such as `LGBMRanker`, up to its best iteration."""
    booster = getattr(model, "booster_", model)
    if not hasattr(booster, "model_to_string"):
        raise ModelError(f"the {type(model).__name__} is not fitted")
    text = booster.model_to_string().encode()
    return parse_lightgbm_text(text, Budget(len(text)))


def parse_lightgbm_text(content: bytes, budget: Budget = UNLIMITED) -> Ensemble:
    """Ensemble of LightGBM's text; scores are raw, as before a sigmoid or an exponential."""
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n")
    if not is_lightgbm_text(content):
        raise ModelError("this is not the text of a LightGBM model: it does not begin with 'tree'")
    ends = [place for place in map(content.find, ENDS) if place >= 0]
    if not ends:
        raise ModelError("the file is cut off: LightGBM's 'end of trees' is not there")
    head, *blocks = content[: min(ends)].split(b"\nTree=")
    header = _lines(head)
    n_features, names = _check_header(header, len(blocks))
    lines = [_lines(block) for block in blocks]
    trees = _trees(lines)
    _refuse_linear(lines)
    decision = _required(lines, b"decision_type", trees.sizes, np.int64)
    categories = _categories(lines, trees, decision & IS_CATEGORY != 0)
    trees, splits = decide(trees, (decision >> MISSING_SHIFT) & 3, decision & DEFAULT_LEFT != 0, categories)
    is_average = b"average_output" in header
    model = ensemble_of(
        trees,
        splits,
        source={"format": "lightgbm", "objective": _text(header.get(b"objective", b""))},
        n_features=n_features,
        tree_weights=mean_weights(len(lines)) if is_average else None,
        feature_names=real_names(names),
        budget=budget,
    )
    after = _lines(content[min(ends) :])
    infos = [info.split(b":") if info[:1] != b"[" else [] for info in header.get(b"feature_infos", b"").split(b" ")]
    told = next((line[22:-1].split(b",") for line in after if line.startswith(b"[categorical_feature: ")), [])
    columns = [_code(number) for number in told] or None
    largest = [max(map(_code, info), default=-1) for info in infos]
    return _with_pandas(model, _pandas_lists(after), largest, columns)


def _pandas_lists(after: Lines) -> Any:
    """Categories of pandas that are noted at the end of the text; None if there are none, or if they are damaged."""
    for line in after:
        if line.startswith(b"pandas_categorical:"):
            try:
                return json.loads(line.removeprefix(b"pandas_categorical:"))
            except (ValueError, RecursionError):
                return None
    return None


def _code(text: bytes) -> int:
    return int(text) if text.isdigit() and len(text) < 9 else -1


def _with_pandas(model: Ensemble, lists: Any, largest: Sequence[int], columns: Sequence[int] | None = None) -> Ensemble:
    """Model that knows the categories of the DataFrame it was trained on.

    LightGBM lists them without saying whose they are: it has a list for every column of categories, also for ordered
    ones, whose codes are plain numbers to it, and takes other columns for categories when it is told to. If there are
    as many lists as features with categories, and no code is beyond its list, they belong together in order.

    Parameters
    ----------
    model : Ensemble
    lists : object
        `pandas_categorical` of the file.
    largest : sequence of int
        Largest code that each feature has as a category in training; -1 for features that have none.
    columns : sequence of int, optional
        Features with categories, where the file tells.
    """
    if not isinstance(lists, list) or not lists or not all(isinstance(known, list) for known in lists):
        return model
    if not all(isinstance(value, (str, int, float)) for known in lists for value in known):
        return model
    if columns is None:
        columns = [number for number, code in enumerate(largest) if code >= 0]
    fits = len(columns) == len(lists) and all(
        0 <= column < len(largest) and largest[column] < len(known)
        for column, known in zip(columns, lists, strict=True)
    )
    return with_categories(model, lists, columns if fits else None)


def _lines(block: bytes) -> Lines:
    """Values of the `name=value` lines of a block; a line without a value, such as `average_output`, is its own."""
    return {line[0]: line[-1] for line in (text.split(b"=", 1) for text in block.split(b"\n"))}


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ModelError(f"{one_line(value)} is not UTF-8 text") from None


def _count(header: Lines, name: bytes, default: bytes | None = None, where: str = "") -> int:
    value = header.get(name, default)
    what = f"{where}LightGBM's {name.decode()} is"
    if value is None:
        raise ModelError(f"{what} missing, not a whole number")
    try:
        count = int(value)
    except ValueError:
        raise ModelError(f"{what} {one_line(value)}, not a whole number") from None
    if abs(count) > MAX_COUNT:
        raise ModelError(f"{what} {one_line(value.decode())}, more than it can be")
    return count


def _check_header(header: Lines, n_trees: int) -> tuple[int, list[str]]:
    """Number and names of the features, after checking what else the header says."""
    version = _text(header.get(b"version", b"missing"))
    if version not in VERSIONS:
        raise ModelError(
            f"version {one_line(version)} of LightGBM's text is not known; known are {', '.join(VERSIONS)}"
        )
    for name in (b"num_class", b"num_tree_per_iteration"):
        check_one_score(_count(header, name, b"1"), "classes")
    sizes = header.get(b"tree_sizes")
    if sizes is not None and len(sizes.split()) != n_trees:
        raise ModelError(f"the file is damaged: it announces {len(sizes.split())} trees but has {n_trees}")
    n_features = _count(header, b"max_feature_idx") + 1
    names = _text(header.get(b"feature_names", b"")).split(" ")
    if len(names) != n_features:
        raise ModelError(f"the file is damaged: {n_features} features have {len(names)} names")
    return n_features, names


def _trees(lines: list[Lines]) -> Trees:
    """Trees with LightGBM's own thresholds, and with gains, counts and covers where the text has them."""
    counts = [_count(tree, b"num_leaves", where=f"tree {number}: ") for number, tree in enumerate(lines)]
    sizes = np.array(counts, dtype=np.int64) - 1
    if (sizes < 0).any():
        raise ModelError(f"tree {int(np.flatnonzero(sizes < 0)[0])} has no leaves")
    columns = {
        "feature": _required(lines, b"split_feature", sizes, np.int64),
        "threshold": _required(lines, b"threshold", sizes, np.float64),
        "left": _required(lines, b"left_child", sizes, np.int64),
        "right": _required(lines, b"right_child", sizes, np.int64),
        "missing_left": np.zeros(int(sizes.sum()), dtype=bool),
        "leaf_value": _required(lines, b"leaf_value", sizes + 1, np.float64),
        "split_gain": _fact(lines, b"split_gain", sizes, np.float64),
        "node_count": _fact(lines, b"internal_count", sizes, np.int64),
    }
    return with_covers(Trees.from_columns(columns, offsets_of(sizes)), _leaf_counts(lines, sizes + 1))


def _fact(lines: list[Lines], name: bytes, sizes: AnyArray, dtype: Any) -> AnyArray | None:
    """Numbers of one line of every tree; None unless all trees have it and all numbers are finite and not negative."""
    try:
        values = _required(lines, name, sizes, dtype)
    except ModelError:
        return None
    return values if np.isfinite(values).all() and (values >= 0).all() else None


def _leaf_counts(lines: list[Lines], sizes: AnyArray) -> AnyArray | None:
    """Number of documents at each leaf; some versions omit it for a tree of one leaf, where it is 0 here."""
    name = b"leaf_count"
    counted = [tree if size > 1 else {name: tree.get(name) or b"0"} for tree, size in zip(lines, sizes, strict=True)]
    return _fact(counted, name, sizes, np.float64)


def _required(lines: list[Lines], name: bytes, sizes: AnyArray, dtype: Any) -> AnyArray:
    """Numbers of one line of every tree, joined; `sizes` is how many each tree must have."""
    texts = [tree.get(name, b"") for tree in lines]
    for number, (text, size) in enumerate(zip(texts, sizes.tolist(), strict=True)):
        n_there = text.count(b" ") + 1 if text else 0
        if n_there != size:
            if name not in lines[number] and size:
                raise ModelError(f"tree {number} has no line {name.decode()}")
            if size or text.strip():  # a tree of one leaf may have an empty line
                raise ModelError(f"tree {number} has {n_there} entries of {name.decode()}, not {size}")
    values = numbers(b" ".join(text for text in texts if text), dtype, name.decode())
    if len(values) != sizes.sum():
        raise ModelError(f"LightGBM's {name.decode()} has {len(values)} numbers, not {sizes.sum()}")
    return values


def _refuse_linear(lines: list[Lines]) -> None:
    for number, tree in enumerate(lines):
        if tree.get(b"is_linear", b"0").strip() not in (b"0", b""):
            raise ModelError(f"tree {number} has linear models in its leaves: train with linear_tree=false")


def _categories(lines: list[Lines], trees: Trees, is_category: AnyArray) -> dict[int, AnyArray]:
    """Set of categories of every node that splits on categories, by number of the node."""
    sets: dict[int, AnyArray] = {}
    if not is_category.any():
        return sets
    for number, tree in enumerate(lines):
        here = trees.nodes_of(number)
        nodes = here.start + np.flatnonzero(is_category[here])
        if len(nodes) == 0:
            continue
        bounds = numbers(tree.get(b"cat_boundaries", b""), np.int64, "cat_boundaries")
        words = numbers(tree.get(b"cat_threshold", b""), np.int64, "cat_threshold")
        if (words < 0).any() or (words > 0xFFFFFFFF).any():
            raise ModelError(f"tree {number}: cat_threshold holds a number of more than 32 bits")
        if len(bounds) and (bounds[0] < 0 or bounds[-1] > len(words) or (np.diff(bounds) < 0).any()):
            raise ModelError(f"tree {number}: cat_boundaries are not in order, or lead outside of cat_threshold")
        known: dict[int, AnyArray] = {}  # by number of the set: nodes may share one
        for node in nodes.tolist():
            place = trees.threshold[node]
            if not (place == int(place) if np.isfinite(place) else False) or not 0 <= place < len(bounds) - 1:
                raise ModelError(f"tree {number}: a split on categories has no set of them")
            which = int(place)
            if which not in known:
                known[which] = members_of_bitset(words[bounds[which] : bounds[which + 1]].astype(np.uint32))
            sets[node] = known[which]
    return sets


# Reading the JSON dump (`Booster.dump_model`).


def is_lightgbm_json(value: Any) -> bool:
    """Whether a JSON value is a dump of LightGBM."""
    return isinstance(value, dict) and "tree_info" in value and not _has_mark(value)


def is_vespa(value: Any) -> bool:
    """Whether a JSON value is a dump that rankwood wrote for Vespa."""
    return isinstance(value, dict) and "tree_info" in value and _has_mark(value)


def _has_mark(value: dict[str, Any]) -> bool:
    return VESPA_MARK.items() <= value.items()


def from_lightgbm_json(dump: Any, budget: Budget = UNLIMITED) -> Ensemble:
    """Ensemble of the dictionary that `dump_model` returns; scores are raw."""
    if is_vespa(dump):
        raise ModelError("the file is for Vespa: its thresholds are not LightGBM's")
    return _from_dump(dump, "lightgbm-json", _Reader(), budget)


def from_vespa(dump: Any, budget: Budget = UNLIMITED) -> Ensemble:
    """Ensemble of such a dictionary as Vespa reads it, with or without the mark."""
    return _from_dump(dump, "vespa", _VespaReader(), budget)


def _from_dump(dump: Any, format: str, reader: _Reader, budget: Budget) -> Ensemble:
    names = texts(entry(dump, "feature_names", kind=list), "feature_names")
    n_features = whole(entry(dump, "max_feature_idx"), "max_feature_idx") + 1
    for name in ("num_class", "num_tree_per_iteration"):
        check_one_score(whole(dump.get(name), name, 1), "classes")
    infos = entry(dump, "tree_info", kind=list)
    for number, info in enumerate(infos):
        reader.where = f"tree {number}"
        reader.builder.add(entry(info, "tree_structure", kind=dict, where=reader.where), reader.read)
    trees, splits = reader.trees()
    nodes, leaves = (
        as_column(column, np.int64, "numbers of nodes") for column in (reader.node_index, reader.leaf_index)
    )
    trees, splits = renumbered(with_covers(trees, reader.leaf_count), splits, nodes, leaves)
    is_average = bool(dump.get("average_output", False)) and format != "vespa"  # Vespa sums
    model = ensemble_of(
        trees,
        splits,
        source={"format": format, "objective": one_line(dump.get("objective", ""))},
        n_features=n_features,
        tree_weights=mean_weights(len(infos)) if is_average else None,
        feature_names=real_names(names),
        budget=budget,
    )
    known = dump.get("feature_infos")
    values = [known.get(name) for name in names] if isinstance(known, dict) else []
    listed = [info.get("values") if isinstance(info, dict) else None for info in values]
    codes = [[code for code in part if isinstance(code, int)] if isinstance(part, list) else [] for part in listed]
    return _with_pandas(model, dump.get("pandas_categorical"), [max(part, default=-1) for part in codes])


class _Reader:
    """Reads nodes of a dump into a `TreeBuilder`, and lists in the same order what only LightGBM knows of them."""

    largest = INFINITE_FROM

    def __init__(self) -> None:
        self.builder = TreeBuilder()
        self.missing_type: list[int] = []
        self.default_left: list[bool] = []
        self.categories: dict[int, Any] = {}
        self.node_index: list[Any] = []
        self.leaf_index: list[Any] = []
        self.leaf_count: list[Any] = []
        self.where = ""

    def read(self, node: Any) -> Any:
        if not isinstance(node, dict):
            raise ModelError(f"{self.where}: a node is {one_line(node)}")
        if "split_feature" not in node:
            if "leaf_coeff" in node or "leaf_const" in node:
                raise ModelError(f"{self.where} has linear models in its leaves: train with linear_tree=false")
            self.leaf_index.append(whole(node.get("leaf_index"), "leaf_index", 0))
            self.leaf_count.append(node.get("leaf_count"))
            return _finite_or_inf(entry(node, "leaf_value", kind=NUMBER, where=self.where))
        missing_type = entry(node, "missing_type", kind=str, where=self.where)
        if missing_type not in MISSING_TYPES:
            raise ModelError(f"{self.where}: LightGBM has no missing type {one_line(missing_type)!r}")
        feature = entry(node, "split_feature", kind=int, where=self.where)
        threshold, kind = node.get("threshold"), node.get("decision_type")
        if kind == "==":
            self.categories[len(self.missing_type)] = _members(threshold, self.where)
            threshold = 0.0
        elif kind != "<=":
            raise ModelError(f"{self.where}: LightGBM has no decision type {one_line(kind)!r}")
        if isinstance(threshold, bool) or not isinstance(threshold, NUMBER):
            raise ModelError(f"{self.where}: a threshold is {one_line(threshold)}")
        self.node_index.append(whole(node.get("split_index"), "split_index", 0))
        self.missing_type.append(MISSING_TYPES[missing_type])
        self.default_left.append(entry(node, "default_left", where=self.where) is True)
        children = (entry(node, name, where=self.where) for name in ("left_child", "right_child"))
        return (feature, _finite_or_inf(threshold, self.largest), *children, False)

    def trees(self) -> tuple[Trees, Splits]:
        """Trees with thresholds that compare as rankwood does, and the splits that are no single threshold."""
        missing_type = np.array(self.missing_type, dtype=np.int64)
        return decide(self.builder.trees(), missing_type, np.array(self.default_left, dtype=bool), self.categories)


class _VespaReader(_Reader):
    """Reads as Vespa does: less than the threshold goes left, and only NaN is missing."""

    largest = np.inf

    def trees(self) -> tuple[Trees, Splits]:
        trees = self.builder.trees(less_than).replace(missing_left=np.array(self.default_left, dtype=bool))
        # Vespa knows categories by name; here they have the numbers that LightGBM gives them.
        splits = {
            node: category_pieces(members, less_than, members_left=True, missing_left=self.default_left[node])
            for node, members in self.categories.items()
        }
        return never_left(trees), splits


def _finite_or_inf(value: float, largest: float = INFINITE_FROM) -> float:
    """Value as a float, infinite if its size is `largest` or more."""
    try:
        return float(value) if abs(value) < largest else float("inf") if value > 0 else float("-inf")
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _members(threshold: Any, where: str) -> Any:
    """Set of categories that a dump writes as "0||3||7"."""
    try:
        parts = str(threshold).split("||")
        members = [int(part) for part in parts if part]
    except ValueError:
        members = [-1]
    if any(not 0 <= member < MAX_CATEGORY for member in members):
        raise ModelError(f"{where}: a set of categories is {one_line(threshold)}")
    return as_column(members, np.int64, "categories")


# LightGBM's decisions as thresholds.


def decide(
    trees: Trees, missing_type: AnyArray, default_left: AnyArray, categories: dict[int, AnyArray]
) -> tuple[Trees, Splits]:
    """Trees with thresholds that compare as rankwood does, and the splits that are no single threshold.

    Parameters
    ----------
    trees : Trees
        Trees with LightGBM's own thresholds.
    missing_type : array of int
        Missing type of each inner node, a value of `MISSING_TYPES`.
    default_left : array of bool
        Whether missing values go left at each inner node.
    categories : dict of int to array of int
        Set of categories of each node that has one.
    """
    if (missing_type > MISSING_NAN).any():
        node = int(np.flatnonzero(missing_type > MISSING_NAN)[0])
        raise ModelError(f"node {node} has missing type {missing_type[node]}, which LightGBM does not have")
    zero_left = trees.threshold >= 0.0
    near_zero = np.abs(trees.threshold) <= ZERO
    side = np.where(missing_type == MISSING_ZERO, default_left, zero_left)  # where zero goes
    threshold = np.where(near_zero, np.where(side, ZERO, BELOW_ZERO), trees.threshold)
    threshold[list(categories)] = 0.0  # LightGBM has the number of the set there
    splits: dict[int, Pieces] = {}
    for node in np.flatnonzero((side != zero_left) & ~near_zero).tolist():
        if node not in categories:
            splits[node] = _zero_window(float(threshold[node]), bool(side[node]))
    known: dict[int, Pieces] = {}
    for node, members in categories.items():
        if id(members) not in known:  # nodes may share a set
            known[id(members)] = category_pieces(members, _below_category, members_left=True, missing_left=False)
        splits[node] = known[id(members)]
    missing_left = np.where(missing_type == MISSING_NAN, default_left, side).astype(bool)
    return trees.replace(threshold=threshold, missing_left=missing_left), splits


def _zero_window(threshold: float, zero_left: bool) -> Pieces:
    """Split of a node that sends zero to the other side than its threshold would."""
    if zero_left:  # so the threshold is negative: left up to it, and left again around zero
        return Pieces([threshold, BELOW_ZERO, ZERO], [True, False, True, False], True)
    return Pieces([BELOW_ZERO, ZERO, threshold], [True, False, True, False], False)


def _below_category(values: FloatArray) -> FloatArray:
    """Thresholds below which whole parts are less: 2.7 is category 2, and all between -1 and 1 is category 0."""
    return np.where(values == 0, -1.0, less_than(values))


def real_names(names: Sequence[str]) -> list[str] | None:
    """Names of the features; None when LightGBM has invented them (Column_0, Column_1, ...)."""
    given = list(names)
    return None if given == [f"Column_{number}" for number in range(len(given))] else given


# Writing the text, which `lightgbm.Booster(model_file=...)` reads.


@dataclass(frozen=True, eq=False)
class _Form:
    """A model as LightGBM has it.

    Parameters
    ----------
    model : Ensemble
        Trees with LightGBM's own children and thresholds, and without sets.
    decision : array of int
        LightGBM's decision_type of each inner node.
    categories : dict of int to array of int
        Set of categories of each node that has one, which goes left.
    """

    model: Ensemble
    decision: IndexArray
    categories: dict[int, AnyArray]


def _form(model: Ensemble, target: str) -> _Form:
    """The form of a model, whose sets are those of categories and of zero-as-missing; others become thresholds."""
    categories, windows, _ = _held(model)
    keep = np.zeros(model.n_nodes, dtype=bool)
    keep[[*categories, *windows]] = True
    model = plain(on_thresholds(model, target, keep, level=6))
    categories, windows, n_inexact = _held(model)
    tell_fractions(target, len(categories), n_inexact)
    threshold, missing_left = model.threshold.copy(), model.missing_left.copy()
    decision = (MISSING_NAN << MISSING_SHIFT) + DEFAULT_LEFT * missing_left.astype(np.int64)
    for node, at in windows.items():
        threshold[node] = at
        decision[node] += (MISSING_ZERO - MISSING_NAN) << MISSING_SHIFT
    swapped = np.zeros(model.n_nodes, dtype=bool)
    swapped[list(categories)] = True
    threshold[swapped], missing_left[swapped] = 0.0, False
    decision[swapped] = (MISSING_NAN << MISSING_SHIFT) + IS_CATEGORY
    left, right = np.where(swapped, model.right, model.left), np.where(swapped, model.left, model.right)
    return _Form(
        model.replace(
            threshold=threshold,
            left=left,
            right=right,
            missing_left=missing_left,
            set_offsets=None,
            set_thresholds=None,
        ),
        decision,
        categories,
    )


def _held(model: Ensemble) -> tuple[dict[int, AnyArray], dict[int, float], int]:
    """Categories by node; thresholds of nodes with zero-as-missing; number of the former that are not just alike."""
    categories: dict[int, AnyArray] = {}
    windows: dict[int, float] = {}
    n_inexact = 0
    for node in model.trees.set_nodes.tolist():
        thresholds, missing_left = model.trees.thresholds_of(node), bool(model.missing_left[node])
        found = categories_of(thresholds) if missing_left else None  # missing values are in no set of LightGBM's
        if found is not None:
            categories[node] = found
            again = category_pieces(found, _below_category, members_left=True, missing_left=False)
            n_inexact += not np.array_equal(again.cuts, thresholds)
        elif len(thresholds) == 3:
            at = float(thresholds[0] if missing_left else thresholds[2])
            if np.array_equal(_zero_window(at, missing_left).cuts, thresholds):
                windows[node] = at
    return categories, windows, n_inexact


def export_lightgbm(model: Ensemble, path: Path, *, objective: str = "lambdarank") -> str:
    """Text of a LightGBM model; weights and base are in the leaves, and leaves keep their numbers."""
    check_objective(objective, OBJECTIVES)
    form = _form(model, "LightGBM")
    model = form.model
    names = names_of(model, "Column_{}")
    refuse_names(names, "LightGBM", FORBIDDEN, spaces=True)
    _tell_tiny_thresholds(model)
    counts = whole_covers(model)
    trees = [f"Tree={tree}\n{_text_tree(form, tree, *counts)}\n\n" for tree in range(model.n_trees)]
    used = np.bincount(model.feature, minlength=model.n_features)
    importances = [f"{names[f]}={used[f]}" for f in np.argsort(-used, kind="stable").tolist() if used[f]]
    head = [
        "tree",
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={model.n_features - 1}",
        f"objective={objective}",
        f"feature_names={' '.join(names)}",
        f"feature_infos={' '.join(_infos(model))}",
        f"tree_sizes={_join(len(tree.encode()) for tree in trees)}",
    ]
    tail = ["end of trees", "", "feature_importances:", *importances, "", "parameters:", "[boosting: gbdt]",
            f"[objective: {objective}]", "end of parameters", "",
            f"pandas_categorical:{json.dumps(_known_lists(model) or None)}"]  # fmt: skip
    return "\n".join(head) + "\n\n" + "".join(trees) + "\n".join(tail) + "\n"


def _tell_tiny_thresholds(model: Ensemble) -> None:
    """Warn of thresholds so near to 0 that LightGBM takes values there for 0."""
    tiny = int(np.count_nonzero((model.threshold != 0) & (model.threshold >= -ZERO) & (model.threshold < ZERO)))
    if tiny:
        warn(
            f"LightGBM reads values within 1e-35 of 0 as 0, and {tiny} thresholds lie there: such values may go the "
            "other way"
        )


def _text_tree(form: _Form, tree: int, leaf_count: IndexArray, node_count: IndexArray) -> str:
    model = form.model
    nodes, leaves = model.trees.nodes_of(tree), model.trees.leaves_of(tree)
    n_nodes = nodes.stop - nodes.start
    values = [
        f"leaf_value={_join(model.leaf_value[leaves].tolist())}",
        f"leaf_count={_join(leaf_count[leaves].tolist())}",
    ]
    if n_nodes == 0:
        return "\n".join(["num_leaves=1", "num_cat=0", *values, "is_linear=0", "shrinkage=1", ""])
    gains = np.zeros(n_nodes) if model.split_gain is None else model.split_gain[nodes]
    thresholds: list[float] = model.threshold[nodes].tolist()
    sets: list[AnyArray] = []
    for node in range(nodes.start, nodes.stop):
        if node in form.categories:
            thresholds[node - nodes.start] = len(sets)
            sets.append(_bitset(form.categories[node]))
    lines = [
        f"num_leaves={n_nodes + 1}",
        f"num_cat={len(sets)}",
        f"split_feature={_join(model.feature[nodes].tolist())}",
        f"split_gain={_join(gains.tolist())}",
        f"threshold={_join(thresholds)}",
        f"decision_type={_join(form.decision[nodes].tolist())}",
        f"left_child={_join(model.left[nodes].tolist())}",
        f"right_child={_join(model.right[nodes].tolist())}",
        *values,
        f"internal_count={_join(node_count[nodes].tolist())}",
    ]
    if sets:
        lines += [
            f"cat_boundaries={_join(offsets_of(list(map(len, sets))).tolist())}",
            f"cat_threshold={_join(np.concatenate(sets).tolist())}",
        ]
    return "\n".join([*lines, "is_linear=0", "shrinkage=1", ""])


def _bitset(members: AnyArray) -> AnyArray:
    """32-bit words in which the bits of the members are set, lowest first."""
    bits = np.zeros((int(members[-1]) // 32 + 1) * 32, dtype=np.uint8)
    bits[members] = 1
    return np.packbits(bits, bitorder="little").view("<u4")


def _infos(model: Ensemble) -> list[str]:
    """What LightGBM notes of each feature: its range, or its codes of categories."""
    infos = ["[-inf:inf]"] * model.n_features
    coding = model.coding
    if coding is not None and coding.columns is not None:
        for column, known in zip(coding.columns, coding.lists, strict=True):
            infos[column] = ":".join(map(str, range(-1, len(known))))
    return infos


def _known_lists(model: Ensemble) -> list[list[Any]]:
    """Categories that LightGBM is to take codes of when it is given a DataFrame."""
    coding = model.coding
    return [] if coding is None else [list(known) for known in coding.lists]


def _join(values: Iterable[float]) -> str:
    return " ".join(map(repr, values))


# Writing the JSON dump.


def export_lightgbm_json(model: Ensemble, path: Path) -> str:
    """JSON that LightGBM's `dump_model` gives for the same model; weights and base are in the leaves."""
    form = _form(model, "LightGBM's dump")
    _tell_tiny_thresholds(form.model)
    return _dump(form, finite(form.model.threshold, LARGEST_DOUBLE, "JSON"))


def export_vespa(model: Ensemble, path: Path) -> str:
    """JSON dump for Vespa, which compares with `<` where the dump says `<=`."""
    names = names_of(model, "Column_{}")
    for feature in np.unique(model.feature).tolist():
        if not RANK_FEATURE.fullmatch(names[feature]):
            raise ModelError(
                f"Vespa would not take {names[feature]!r} for the name of a feature, as attribute(price) and f1 are: "
                + OTHER_NAMES
            )
    form = _form(model, "Vespa")
    return _dump(form, finite(below_double(form.model.threshold), LARGEST_DOUBLE, "Vespa"), vespa=True)


def _dump(form: _Form, thresholds: FloatArray, *, vespa: bool = False) -> str:
    model = form.model
    names = names_of(model, "Column_{}")
    if not vespa:  # Vespa's rank features are calls such as fieldMatch(title)
        refuse_names(names, "LightGBM", FORBIDDEN, spaces=True)
    infos: dict[str, Any] = {name: {"min_value": None, "max_value": None, "values": []} for name in names}
    head = {
        "name": "tree",
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": model.n_features - 1,
        "objective": "lambdarank",
        "average_output": False,
        "feature_names": names,
        "monotone_constraints": [],
        "feature_infos": infos,
    }
    if vespa:
        head |= VESPA_MARK
    text = [json.dumps(head)[:-1], ', "tree_info": [\n']
    counts = whole_covers(model)
    for tree in range(model.n_trees):
        text.append(_json_tree(form, tree, thresholds, *counts))
        text.append(",\n" if tree + 1 < model.n_trees else "\n")
    text.append(f'], "pandas_categorical": {json.dumps([] if vespa else _known_lists(model))}}}\n')
    return "".join(text)


def _json_tree(form: _Form, tree: int, thresholds: FloatArray, leaf_count: IndexArray, node_count: IndexArray) -> str:
    model = form.model
    nodes, leaves = model.trees.nodes_of(tree), model.trees.leaves_of(tree)
    gains = [0] * int(nodes.stop - nodes.start) if model.split_gain is None else model.split_gain[nodes].tolist()
    counts, leaf_counts = node_count[nodes].tolist(), leaf_count[leaves].tolist()
    features, missing_left = model.feature[nodes].tolist(), model.missing_left[nodes].tolist()
    splits, values = thresholds[nodes].tolist(), model.leaf_value[leaves].tolist()
    missing_types = {number: name for name, number in MISSING_TYPES.items()}

    def opening(node: int) -> str:
        at = node - nodes.start
        members = form.categories.get(node)
        threshold = repr(splits[at]) if members is None else f'"{"||".join(map(str, members.tolist()))}"'
        return (
            f'{{"split_index": {at}, "split_feature": {features[at]}, "split_gain": {gains[at]!r}, '
            f'"threshold": {threshold}, "decision_type": "{"<=" if members is None else "=="}", '
            f'"default_left": {"true" if missing_left[at] else "false"}, '
            f'"missing_type": "{missing_types[int(form.decision[node]) >> MISSING_SHIFT]}", '
            f'"internal_count": {counts[at]}, "left_child": '
        )

    def leaf(number: int) -> str:
        at = number - leaves.start
        return f'{{"leaf_index": {at}, "leaf_value": {values[at]!r}, "leaf_count": {leaf_counts[at]}}}'

    structure = "".join(nested(model, tree, opening, leaf, ', "right_child": ', "}"))
    n_categories = sum(node in form.categories for node in range(nodes.start, nodes.stop))
    head = {"tree_index": tree, "num_leaves": len(values), "num_cat": n_categories, "shrinkage": 1}
    return f'{json.dumps(head)[:-1]}, "tree_structure": {structure}}}'


# Limits of what is written: what is exact and what is not.

LIGHTGBM_LIMITS = (
    "Exact in every bit; sets of categories and zero-as-missing are held as such. LightGBM itself reads values of at "
    "most 1e-35 as 0, whatever their sign. Contributions (SHAP) go by the documents at each leaf where the model knows "
    "them; else every leaf counts alike."
)
LIGHTGBM_JSON_LIMITS = (
    "Exact for readers that compare as LightGBM does, `x <= threshold` in float64. JSON has no infinite thresholds."
)
VESPA_LIMITS = (
    "Exact for Vespa's default evaluation, which compares `x < threshold` in float64: thresholds are one step higher "
    "than in LightGBM, so do not read the file elsewhere; rankwood knows it by a mark. With `fastforest` Vespa rounds "
    "thresholds and leaves to float32."
)
