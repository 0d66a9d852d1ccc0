"""Hypothesis strategies: ensembles of every shape, and rows that sit on their thresholds or one step beside them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from rankwood import Ensemble, Tree
from rankwood.model.trees import sets_of

# Zeros of both signs, infinities, values beyond float32 and between two float32, denormals of both types.
AWKWARD_THRESHOLDS = [
    0.0, -0.0, 1.0, -1.0, 0.1, 1e-3, 16777217.0, np.inf, -np.inf, 5e-324, -5e-324, 1.4e-45, -1e-40, 1e-310,
    2.2250738585072014e-308, 3.4028234663852886e38, 3.4028235677973366e38, -3.5e38, 1e300, 1.7976931348623157e308,
]  # fmt: skip
SHAPES = ["random", "random", "chain", "full", "leaf"]
LEAF_VALUES = st.one_of(st.integers(-9, 9).map(float), st.floats(-1e6, 1e6))


@st.composite
def ensembles(
    draw, *, min_trees=1, max_trees=5, max_leaves=12, max_features=4, missing=True, infinite_thresholds=True, sets=True
) -> Ensemble:
    """Ensembles of small trees: random, chains, full, single leaves; nodes and leaves numbered in any order.

    Thresholds come from a small pool, so that they repeat within and across trees. Without `missing` every
    missing_left is False; `infinite_thresholds=False` leaves infinities out; without `sets` no split is on a set.
    """
    n_features = draw(st.integers(1, max_features))
    threshold = st.one_of(st.sampled_from(AWKWARD_THRESHOLDS), st.floats(allow_nan=False))
    if not infinite_thresholds:
        threshold = threshold.filter(np.isfinite)
    pool = np.array(draw(st.lists(threshold, min_size=1, max_size=6)))
    sets = sets and draw(st.booleans())
    trees = [
        draw(_trees(n_features, pool, max_leaves, missing, sets))
        for _ in range(draw(st.integers(min_trees, max_trees)))
    ]
    weights = st.one_of(st.sampled_from([1.0, 0.1, 0.0, -1.0]), st.floats(-10, 10))
    return Ensemble.from_trees(
        trees,
        n_features=n_features,
        tree_weights=draw(st.lists(weights, min_size=len(trees), max_size=len(trees))),
        base=draw(LEAF_VALUES),
    )


@st.composite
def _trees(draw, n_features: int, pool: np.ndarray, max_leaves: int, missing: bool, sets: bool) -> Tree:
    shape = draw(st.sampled_from(SHAPES))
    n_nodes = 0 if shape == "leaf" else draw(st.integers(1, max_leaves - 1))
    each_node = {"min_size": n_nodes, "max_size": n_nodes}
    splits = draw(st.lists(st.integers(0, 2**16), **each_node)) if shape == "random" else None
    left, right = grow(shape, n_nodes, splits)
    if draw(st.booleans()):
        left, right = renumber(left, right, np.random.default_rng(draw(st.integers(0, 2**16))))
    threshold = pool[draw(st.lists(st.integers(0, len(pool) - 1), **each_node))] if n_nodes else pool[:0]
    rng = np.random.default_rng(draw(st.integers(0, 2**16))) if sets else None
    return Tree(
        feature=np.array(draw(st.lists(st.integers(0, n_features - 1), **each_node)), dtype=np.int32),
        threshold=threshold,
        left=left,
        right=right,
        leaf_value=np.array(draw(st.lists(LEAF_VALUES, min_size=n_nodes + 1, max_size=n_nodes + 1))),
        missing_left=np.array(draw(st.lists(st.booleans(), **each_node)), dtype=bool) if missing else None,
        **(sets_of([_further(rng, above, pool) for above in threshold]) if sets else {}),
    )


def _further(rng: np.random.Generator, above: float, pool: np.ndarray) -> list[float]:
    """Further thresholds of a node, from the same pool and its neighbours; often none."""
    with np.errstate(all="ignore"):
        near = np.unique(np.concatenate([pool, np.nextafter(pool, np.inf), pool + 1.0]))
    near = near[np.isfinite(near) & (near > above)]
    return near[rng.random(len(near)) < rng.choice([0.0, 0.3, 0.8])].tolist()


def with_sets(model: Ensemble, seed: int, *, share: float = 0.5, n_values: int = 12) -> Ensemble:
    """The model with sets of whole numbers and intervals at a share of its nodes, some of them several times."""
    rng = np.random.default_rng(seed)
    pool = [np.unique(rng.integers(-n_values, n_values, 2 * n) / 2) for n in rng.integers(1, n_values, 40)]
    threshold, further = model.threshold.copy(), [()] * model.n_nodes
    for node in np.flatnonzero(rng.random(model.n_nodes) < share).tolist():
        first, *more = pool[rng.integers(len(pool))].tolist()
        threshold[node], further[node] = first, more
    return model.replace(threshold=threshold, **sets_of(further))


def grow(shape: str, n_nodes: int, splits: list[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Children of a tree grown by splitting one leaf after another: the left child keeps the leaf's number.

    "chain" splits the newest leaf or, every third time, its sibling; "full" the oldest; "random" the one that `splits`
    says, or a seeded random one.
    """
    left, right = np.zeros(n_nodes, dtype=np.int32), np.zeros(n_nodes, dtype=np.int32)
    place: list[tuple[np.ndarray, int]] = []  # of each leaf: which side of which node
    order = [0]  # leaves, oldest first
    picks = splits if splits is not None else np.random.default_rng(n_nodes).integers(0, 2**16, n_nodes).tolist()
    for node in range(n_nodes):
        new = node + 1
        if shape == "chain":
            leaf = order[-1] if node % 3 else order[-2:][0]
        elif shape == "full":
            leaf = order[0]
        else:
            leaf = order[picks[node] % len(order)]
        if node:
            side, parent = place[leaf]
            side[parent] = node
        left[node], right[node] = ~leaf, ~new
        place[leaf : leaf + 1] = [(left, node)]
        place.append((right, node))
        order.remove(leaf)
        order += [leaf, new]
    return left, right


def renumber(left: np.ndarray, right: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same shape with nodes (the root aside) and leaves numbered in random order."""
    n_nodes = len(left)
    if n_nodes == 0:
        return left, right
    node = np.concatenate([[0], 1 + rng.permutation(n_nodes - 1)]).astype(np.int32)
    leaf = rng.permutation(n_nodes + 1).astype(np.int32)
    new_left, new_right = np.empty_like(left), np.empty_like(right)
    for old, new in ((left, new_left), (right, new_right)):
        new[node] = np.where(old >= 0, node[np.maximum(old, 0)], ~leaf[np.where(old < 0, ~old, 0)])
    return new_left, new_right


def big_ensemble(
    seed: int, *, n_trees: int, n_leaves: int, n_features: int = 8, shape: str = "random", decimals: int = 2
) -> Ensemble:
    """Trees with just `n_leaves` leaves and rounded normal thresholds, so that many rows sit on one."""
    rng = np.random.default_rng(seed)
    left, right = grow(shape, n_leaves - 1)
    trees = []
    for _ in range(n_trees):
        children = renumber(left, right, rng)
        trees.append(
            Tree(
                rng.integers(0, n_features, n_leaves - 1),
                rng.normal(size=n_leaves - 1).round(decimals),
                *children,
                leaf_value=rng.normal(size=n_leaves),
                missing_left=rng.random(n_leaves - 1) < 0.5,
            )
        )
    weights = rng.normal(size=n_trees)
    return Ensemble.from_trees(trees, n_features=n_features, tree_weights=weights, base=rng.normal())


@st.composite
def rows_near_thresholds(draw, model: Ensemble, *, dtype=None, max_rows: int = 150) -> np.ndarray:
    """Rows, in float32 or float64, that try every threshold: on it, one step to either side, NaN, infinities, zeros of
    both signs, denormals. Rows lead down to every node and meet its threshold there, as far as that is possible.
    """
    dtype = np.dtype(dtype if dtype is not None else draw(st.sampled_from([np.float32, np.float64])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    features, thresholds = model.trees.all_thresholds()
    near = [values_near(thresholds[features == f], dtype) for f in range(model.n_features)]
    n_rows = min(max(map(len, near), default=1), max_rows)
    # Every value of every feature appears, in random company.
    columns = [np.resize(rng.permutation(values), n_rows) for values in near]
    rows = [np.column_stack(columns) if columns else np.zeros((n_rows, 0), dtype)]
    for tree in range(model.n_trees):
        rows += [_row_down_to(model, path, near, rng)[None] for path in _paths(model, tree)]
    X = np.concatenate(rows).astype(dtype)
    X = X[rng.permutation(len(X))[:max_rows]]
    return X if draw(st.booleans()) else np.asfortranarray(X)


def values_near(thresholds: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Each threshold rounded to `dtype`, its neighbours, and the values that need care anywhere."""
    with np.errstate(all="ignore"):  # beyond the type's range is infinity
        on = np.unique(thresholds).astype(dtype)
        tiny = np.finfo(dtype).smallest_subnormal
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny], dtype=dtype)
        up, down = dtype.type(np.inf), dtype.type(-np.inf)
        return np.concatenate([on, np.nextafter(on, up), np.nextafter(on, down), special])


def _paths(model: Ensemble, tree: int) -> list[list[tuple[int, bool]]]:
    """For every node of a tree: the nodes above it, each with whether the way down is to its left; itself last."""
    first, n_nodes = int(model.node_offsets[tree]), int(np.diff(model.node_offsets)[tree])
    paths, pending = [], [(0, [])] if n_nodes else []
    while pending:
        node, above = pending.pop()
        paths.append([*above, (first + node, True)])
        for child, is_left in ((int(model.left[first + node]), True), (int(model.right[first + node]), False)):
            if child >= 0:
                pending.append((child, [*above, (first + node, is_left)]))
    return paths


def _row_down_to(model: Ensemble, path: list, near: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """A row that meets the last node of the path one step from its threshold, if the splits above let it through."""
    row = np.array([rng.choice(values) for values in near])
    last = path[-1][0]
    fits = [np.ones(len(values), dtype=bool) for values in near]
    for node, is_left in path[:-1]:
        f = model.feature[node]
        values = near[f].astype(np.float64)
        below = np.searchsorted(model.trees.thresholds_of(node), values)
        goes_left = np.where(np.isnan(values), model.missing_left[node], below % 2 == 0)
        fits[f] &= goes_left == is_left
    for f, fit in enumerate(fits):
        if fit.any():
            row[f] = rng.choice(near[f][fit])
    f = model.feature[last]
    thresholds = model.trees.thresholds_of(last)
    close = values_near(rng.choice(thresholds, 1), near[f].dtype)[:3]
    choice = near[f][fits[f] & np.isin(near[f], close)]
    if len(choice):
        row[f] = rng.choice(choice)
    return row
