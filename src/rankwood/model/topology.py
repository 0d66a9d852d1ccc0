"""Size and shape of an ensemble, on which the cost of scoring depends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.dtypes import FloatArray, IndexArray, NodeArray

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble


@dataclass(frozen=True, eq=False)
class Topology:
    """Size and shape of an ensemble: what `Ensemble.topology` returns.

    The depth of a tree is its longest path in splits: 0 for a lone leaf.

    Attributes
    ----------
    depths : array of int32
        Depth of every tree.
    nodes, leaves : array of int64
        Inner nodes and leaves of every tree.
    splits_per_feature : array of int64
        Inner nodes that look at each feature.
    thresholds_per_feature : array of int64
        Different thresholds of each feature.
    gain_per_feature : array of float64 or None
        Gain of the splits on each feature, summed; None when the model does not know its gains.
    n_bytes : int
        Size of the model's arrays.
    n_sets : int
        Inner nodes that split on a set, such as categories: those with several thresholds.

    Examples
    --------
    >>> from rankwood import Ensemble
    >>> topology = Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0)), (1, 0.0, 10.0, 20.0)]).topology()
    >>> topology.depths, topology.mean_depth, topology.path_length
    (array([2, 1], dtype=int32), 1.5, 3)
    >>> topology.splits_per_feature
    array([1, 2])
    """

    depths: NodeArray
    nodes: IndexArray
    leaves: IndexArray
    splits_per_feature: IndexArray
    thresholds_per_feature: IndexArray
    gain_per_feature: FloatArray | None
    n_bytes: int
    n_sets: int = 0

    @property
    def n_trees(self) -> int:
        return len(self.depths)

    @property
    def n_nodes(self) -> int:
        """Inner nodes of all trees."""
        return int(self.nodes.sum())

    @property
    def n_leaves(self) -> int:
        return int(self.leaves.sum())

    @property
    def mean_depth(self) -> float:
        """Mean depth of the trees (d_avg of Asadi and Lin, ECIR 2013)."""
        return float(self.depths.mean()) if self.n_trees else 0.0

    @property
    def max_depth(self) -> int:
        return int(self.depths.max(initial=0))

    @property
    def path_length(self) -> int:
        """Mean depth times number of trees: the most splits that a document can meet (p_avg of Asadi and Lin)."""
        return int(self.depths.sum(dtype=np.int64))

    @property
    def mean_leaves(self) -> float:
        return self.n_leaves / self.n_trees if self.n_trees else 0.0

    @property
    def max_leaves(self) -> int:
        return int(self.leaves.max(initial=0))

    @property
    def n_features(self) -> int:
        return len(self.splits_per_feature)

    @property
    def n_features_used(self) -> int:
        return int(np.count_nonzero(self.splits_per_feature))

    @property
    def n_thresholds(self) -> int:
        """Different thresholds, summed over features."""
        return int(self.thresholds_per_feature.sum())

    def as_dict(self) -> dict[str, Any]:
        """Everything but the arrays per tree, as plain numbers and lists: what `rankwood inspect --json` prints."""
        facts: dict[str, Any] = {name: getattr(self, name) for name in SUMMARY}
        for name in ("splits_per_feature", "thresholds_per_feature", "gain_per_feature"):
            values = getattr(self, name)
            facts[name] = None if values is None else values.tolist()
        return facts


SUMMARY = (
    "n_trees", "n_leaves", "n_nodes", "mean_depth", "max_depth", "path_length", "mean_leaves", "max_leaves",
    "n_features", "n_features_used", "n_thresholds", "n_sets", "n_bytes",
)  # fmt: skip


def describe(model: Ensemble) -> Topology:
    """Size and shape of a model."""
    nodes = np.diff(model.node_offsets)
    n_features = model.n_features
    gain: FloatArray | None = None
    if model.split_gain is not None:
        gain = np.bincount(model.feature, weights=model.split_gain, minlength=n_features).astype(np.float64)
    return Topology(
        depths=model.trees.depths,
        nodes=nodes,
        leaves=nodes + 1,
        splits_per_feature=np.bincount(model.feature, minlength=n_features),
        thresholds_per_feature=_count_distinct(*model.trees.all_thresholds(), n_features),
        gain_per_feature=gain,
        n_bytes=model.trees.n_bytes + model.tree_weights.nbytes,
        n_sets=len(model.trees.set_nodes),
    )


def _count_distinct(feature: NodeArray, threshold: FloatArray, n_features: int) -> IndexArray:
    order = np.lexsort((threshold, feature))
    feature, threshold = feature[order], threshold[order]
    is_new = np.ones(len(feature), dtype=bool)
    is_new[1:] = (feature[1:] != feature[:-1]) | (threshold[1:] != threshold[:-1])
    return np.bincount(feature[is_new], minlength=n_features)
