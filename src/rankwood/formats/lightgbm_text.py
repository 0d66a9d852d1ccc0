"""LightGBM's model text (`Booster.save_model`), versions v2 to v4."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError, one_line
from rankwood.formats.budget import UNLIMITED, Budget
from rankwood.formats.lightgbm_decisions import decide, members_of_bitset, real_names
from rankwood.formats.node_tables import Forest
from rankwood.model_arrays import offsets_of

VERSIONS = ("v2", "v3", "v4")
MAX_COUNT = 2**53  # of anything
ENDS = (b"\nend of trees", b"\nfeature importances:", b"\nfeature_importances:")

Lines = dict[bytes, bytes]


def is_lightgbm_text(start: bytes) -> bool:
    return start.lstrip().startswith((b"tree\n", b"tree\r\n"))


def from_booster(model: Any) -> Ensemble:
    """From a `lightgbm.Booster`, or an estimator such as `LGBMRanker`; up to its best iteration when it stopped early,
    as its own predictions are."""
    booster = getattr(model, "booster_", model)
    if not hasattr(booster, "model_to_string"):
        raise ModelError(f"the {type(model).__name__} is not fitted")
    text = booster.model_to_string().encode()
    return parse_lightgbm_text(text, Budget(len(text)))


def parse_lightgbm_text(content: bytes, budget: Budget = UNLIMITED) -> Ensemble:
    """Scores are raw: no sigmoid, no exponential."""
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
    trees = [_lines(block) for block in blocks]
    forest = _forest(trees)
    _refuse_linear(trees)
    forest.split_gain = _fact(trees, b"split_gain", forest.n_nodes, np.float64)
    forest.node_count = _fact(trees, b"internal_count", forest.n_nodes, np.int64)
    forest.note_covers(_leaf_counts(trees, forest.n_nodes + 1))
    decision = _required(trees, b"decision_type", forest.n_nodes, np.int64)
    categories = _categories(trees, forest, decision & 1 != 0)
    decide(forest, (decision >> 2) & 3, decision & 2 != 0, categories)
    is_average = b"average_output" in header
    return forest.ensemble(
        source={"format": "lightgbm", "objective": _text(header.get(b"objective", b""))},
        n_features=n_features,
        tree_weights=np.full(len(trees), 1.0 / len(trees)) if is_average and trees else None,
        feature_names=real_names(names),
        budget=budget,
    )


def _lines(block: bytes) -> Lines:
    """The `name=value` lines of a block, and bare names such as `average_output`."""
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
    version = _text(header.get(b"version", b"missing"))
    if version not in VERSIONS:
        raise ModelError(
            f"version {one_line(version)} of LightGBM's text is not known; known are {', '.join(VERSIONS)}"
        )
    n_classes = max(_count(header, b"num_class", b"1"), _count(header, b"num_tree_per_iteration", b"1"))
    if n_classes > 1:
        raise ModelError(f"the model has {n_classes} classes: a ranker has one score per document")
    sizes = header.get(b"tree_sizes")
    if sizes is not None and len(sizes.split()) != n_trees:
        raise ModelError(f"the file is damaged: it announces {len(sizes.split())} trees but has {n_trees}")
    n_features = _count(header, b"max_feature_idx") + 1
    names = _text(header.get(b"feature_names", b"")).split(" ")
    if len(names) != n_features:
        raise ModelError(f"the file is damaged: {n_features} features have {len(names)} names")
    return n_features, names


def _forest(trees: list[Lines]) -> Forest:
    counts = [_count(tree, b"num_leaves", where=f"tree {number}: ") for number, tree in enumerate(trees)]
    n_nodes = np.array(counts, dtype=np.int64) - 1
    if (n_nodes < 0).any():
        raise ModelError(f"tree {int(np.flatnonzero(n_nodes < 0)[0])} has no leaves")
    return Forest(
        feature=_required(trees, b"split_feature", n_nodes, np.int64),
        threshold=_required(trees, b"threshold", n_nodes, np.float64),
        left=_required(trees, b"left_child", n_nodes, np.int64),
        right=_required(trees, b"right_child", n_nodes, np.int64),
        missing_left=np.zeros(int(n_nodes.sum()), dtype=bool),
        leaf_value=_required(trees, b"leaf_value", n_nodes + 1, np.float64),
        n_nodes=n_nodes,
    )


def _fact(trees: list[Lines], name: bytes, sizes: AnyArray, dtype: Any) -> AnyArray | None:
    """One line of every tree, read together; None when they are not all there or hold other than finite numbers."""
    try:
        values = _required(trees, name, sizes, dtype)
    except ModelError:
        return None
    return values if np.isfinite(values).all() and (values >= 0).all() else None


def _leaf_counts(trees: list[Lines], sizes: AnyArray) -> AnyArray | None:
    """Documents at every leaf; not every version counts those of a tree of one leaf."""
    name = b"leaf_count"
    counted = [tree if size > 1 else {name: tree.get(name) or b"0"} for tree, size in zip(trees, sizes, strict=True)]
    return _fact(counted, name, sizes, np.float64)


def _required(trees: list[Lines], name: bytes, sizes: AnyArray, dtype: Any) -> AnyArray:
    texts = [tree.get(name, b"") for tree in trees]
    for number, (text, size) in enumerate(zip(texts, sizes.tolist(), strict=True)):
        n_there = text.count(b" ") + 1 if text else 0
        if n_there != size:
            if name not in trees[number] and size:
                raise ModelError(f"tree {number} has no line {name.decode()}")
            if size or text.strip():  # a lone leaf may carry anything that is empty
                raise ModelError(f"tree {number} has {n_there} entries of {name.decode()}, not {size}")
    values = numbers(b" ".join(text for text in texts if text), dtype, name.decode())
    if len(values) != sizes.sum():
        raise ModelError(f"LightGBM's {name.decode()} has {len(values)} numbers, not {sizes.sum()}")
    return values


def numbers(text: bytes, dtype: Any, what: str) -> AnyArray:
    """Numbers between spaces, all at once: a model has millions."""
    if not text.strip():
        return np.zeros(0, dtype=dtype)
    try:
        values: AnyArray = np.fromstring(text, dtype=dtype, sep=" ")
    except ValueError:
        raise ModelError(f"{what} holds something that is not a number") from None
    return values


def _refuse_linear(trees: list[Lines]) -> None:
    for number, tree in enumerate(trees):
        if tree.get(b"is_linear", b"0").strip() not in (b"0", b""):
            raise ModelError(f"tree {number} has linear models in its leaves: train with linear_tree=false")


def _categories(trees: list[Lines], forest: Forest, is_category: AnyArray) -> dict[int, AnyArray]:
    """The set of categories of every node that has one."""
    sets: dict[int, AnyArray] = {}
    if not is_category.any():
        return sets
    offsets = offsets_of(forest.n_nodes)
    for number, tree in enumerate(trees):
        nodes = offsets[number] + np.flatnonzero(is_category[offsets[number] : offsets[number + 1]])
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
            place = forest.threshold[node]
            if not (place == int(place) if np.isfinite(place) else False) or not 0 <= place < len(bounds) - 1:
                raise ModelError(f"tree {number}: a split on categories has no set of them")
            which = int(place)
            if which not in known:
                known[which] = members_of_bitset(words[bounds[which] : bounds[which + 1]].astype(np.uint32))
            sets[node] = known[which]
    return sets
