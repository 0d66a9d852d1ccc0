"""Trees as tables and as indented text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.explaining.conditions import TreeNotes, condition, short, tree_number, walk
from rankwood.packages import need
from rankwood.printable import printable

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble


def trees_to_dataframe(model: Any) -> Any:
    """All nodes and leaves of a model as a pandas DataFrame, with the columns of LightGBM's function of this name.

    Parameters
    ----------
    model : Ensemble or fitted learner

    Returns
    -------
    pandas.DataFrame
        A row per node, tree after tree, parents before children: `tree_index`, `node_depth` (1 for the root),
        `node_index` (as `0-S2` and `0-L3`: inner node 2 and leaf 3 of tree 0), `left_child`, `right_child`,
        `parent_index`, `split_feature`, `split_gain`, `threshold` (the first one of a set), `decision_type` (`<=`, or
        `set`), `condition` (what goes left, in words), `missing_direction`, `value` (what a leaf adds to the score: the
        weight of the tree is in it) and `cover` (training data there).

    Examples
    --------
    >>> import rankwood as rw
    >>> frame = rw.trees_to_dataframe(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], tree_weights=[0.1]))
    >>> frame[["node_index", "left_child", "split_feature", "condition", "value"]].to_dict("records")[0]
    {'node_index': '0-S0', 'left_child': '0-L0', 'split_feature': 'f0', 'condition': '<= 0.5', 'value': nan}
    """
    pd = need("pandas", "a DataFrame")
    model = getattr(model, "ensemble_", model)
    notes = TreeNotes(model)
    rows = [row for tree in range(model.n_trees) for row in tree_rows(model, tree, notes)]
    return pd.DataFrame(rows, columns=COLUMNS)


COLUMNS = [
    "tree_index", "node_depth", "node_index", "left_child", "right_child", "parent_index", "split_feature",
    "split_gain", "threshold", "decision_type", "condition", "missing_direction", "value", "cover",
]  # fmt: skip


def tree_rows(model: Ensemble, tree: int, notes: TreeNotes) -> list[tuple[Any, ...]]:
    """Nodes and leaves of a tree as rows with the entries `COLUMNS`."""
    nodes, leaves = model.trees.nodes_of(tree), model.trees.leaves_of(tree)

    def name(child: int) -> str:
        return f"{tree}-L{~child}" if child < 0 else f"{tree}-S{child}"

    rows: list[tuple[Any, ...]] = []
    for place in walk(model, tree):
        parent = None if place.parent < 0 else name(place.parent)
        if place.is_leaf:
            at = leaves.start + place.number
            cover = np.nan if notes.leaf_cover is None else float(notes.leaf_cover[at])
            own = None, None, parent, None, np.nan, np.nan, None, None, None, float(notes.values[at]), cover
            rows.append((tree, place.depth + 1, name(~place.number), *own))
            continue
        at = nodes.start + place.number
        cover = np.nan if notes.node_cover is None else float(notes.node_cover[at])
        rows.append(
            (
                tree,
                place.depth + 1,
                name(place.number),
                name(int(model.left[at])),
                name(int(model.right[at])),
                parent,
                notes.names[model.feature[at]],
                np.nan if model.split_gain is None else float(model.split_gain[at]),
                float(model.threshold[at]),
                "set" if model.trees.set_sizes[at] else "<=",
                condition(model, at, notes.categories),
                "left" if model.missing_left[at] else "right",
                np.nan,
                cover,
            )
        )
    return rows


def dump_tree(model: Any, tree: int = 0) -> str:
    """One tree as indented text.

    Parameters
    ----------
    model : Ensemble or fitted learner
    tree : int, default 0
        Counted from 0, or from the end when negative.

    Returns
    -------
    str
        A line per node and leaf: what goes left ("yes"), where missing values go, the training data there (`n`), and
        what a leaf adds to the score.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0))], feature_names=["bm25", "clicks"])
    >>> print(rw.dump_tree(model))
    tree 0: 3 leaves, weight 1
    bm25 <= 0.5 (missing: no)
      yes: 1
      no: clicks <= 2 (missing: no)
        yes: 2
        no: 3
    """
    model = getattr(model, "ensemble_", model)
    tree = tree_number(model, tree)
    notes = TreeNotes(model)
    nodes, leaves = model.trees.nodes_of(tree), model.trees.leaves_of(tree)
    n_leaves = leaves.stop - leaves.start
    words = f"{n_leaves:,} leaves" if n_leaves > 1 else "1 leaf"
    lines = [f"tree {tree}: {words}, weight {short(model.tree_weights[tree])}"]
    for place in walk(model, tree):
        side = "" if place.parent < 0 else "yes: " if place.is_left else "no: "
        if place.is_leaf:
            at, covers = leaves.start + place.number, notes.leaf_cover
            text = short(notes.values[at])
        else:
            at, covers = nodes.start + place.number, notes.node_cover
            missing = "yes" if model.missing_left[at] else "no"
            text = f"{notes.names[model.feature[at]]} {condition(model, at, notes.categories)}"
            text = f"{printable(text)} (missing: {missing})"
        count = "" if covers is None else f", n = {short(covers[at])}"
        lines.append(f"{'  ' * place.depth}{side}{text}{count}")
    return "\n".join(lines)
