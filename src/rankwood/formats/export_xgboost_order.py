"""Node numbers as XGBoost has them: level by level, siblings side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwood.dtypes import IndexArray
from rankwood.ensemble import Ensemble


@dataclass(frozen=True, eq=False)
class NodeOrder:
    """XGBoost's number of each inner node and of each leaf of one tree, and how deep each inner node lies."""

    nodes: IndexArray
    leaves: IndexArray
    depths: IndexArray


def xgboost_order(model: Ensemble, tree: int) -> NodeOrder:
    """Number the nodes of a tree. XGBoost takes the right child to be the one after the left, whatever the file says.

    >>> import rankwood as rw
    >>> order = xgboost_order(rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0))]), 0)
    >>> order.nodes.tolist(), order.leaves.tolist(), order.depths.tolist()
    ([0, 2], [1, 3, 4], [0, 1])
    """
    here = slice(*model.node_offsets[tree : tree + 2])
    left, right = model.left[here].tolist(), model.right[here].tolist()
    nodes, leaves, depths = [0] * len(left), [0] * (len(left) + 1), [0] * len(left)
    level = [0] if left else []
    number = 1
    while level:
        below = []
        for node in level:
            for child in (left[node], right[node]):
                if child < 0:
                    leaves[~child] = number
                else:
                    nodes[child], depths[child] = number, depths[node] + 1
                    below.append(child)
                number += 1
        level = below
    return NodeOrder(*(np.array(part, dtype=np.int64) for part in (nodes, leaves, depths)))
