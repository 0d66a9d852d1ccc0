"""Features, nodes and sides of splits that documents visit when a model scores them, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import AnyArray, IndexArray
from rankwood.errors import DataError
from rankwood.lazily import cached_property
from rankwood.matrix import row_blocks
from rankwood.system import resolve_threads

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble


_ROWS_AT_ONCE = 8192  # whose sets of features stay in the processor's cache
_WORD = 64  # bits


@dataclass(frozen=True)
class HotNode:
    """A node that many documents meet.

    Attributes
    ----------
    tree, node : int
        Number of the tree, and of the node in it.
    feature : int
        Number of the feature that it looks at, counted from 0.
    threshold : float
        What it compares the feature with; the lowest threshold of a set.
    further : int
        Number of further thresholds, where it splits on a set.
    share : float
        Share of the documents that meet it.
    left_share : float
        Share of these that go left.
    """

    tree: int
    node: int
    feature: int
    threshold: float
    further: int
    share: float
    left_share: float


@dataclass(frozen=True, eq=False)
class Usage:
    """Visits of documents to the nodes and features of a model: what `usage` returns.

    A document meets a split when its path through a tree leads there.

    Attributes
    ----------
    model : Ensemble
    features_touched : array of int
        Number of different features that scoring each document looks at.
    node_visits : array of int
        Number of documents that meet each inner node of the model.
    left_visits : array of int
        Number of documents that go left from there.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0)), (1, 0.0, 10.0, 20.0)], n_features=4)
    >>> found = rw.usage(model, [[0.0, 5.0, 0.0, 0.0], [1.0, 5.0, 0.0, 0.0], [2.0, 1.0, 0.0, 0.0]])
    >>> found.node_visits, found.left_visits
    (array([3, 2, 3]), array([1, 1, 0]))
    >>> found.features_touched, found.features_touched_share
    (array([2, 2, 2]), 0.5)
    """

    model: Ensemble
    features_touched: IndexArray
    node_visits: IndexArray
    left_visits: IndexArray

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return len(self.features_touched)

    @property
    def features_touched_share(self) -> float:
        """Mean share of all features that scoring a document looks at (Asadi and Lin report 95.6 %)."""
        return float(self.features_touched.mean()) / max(1, self.model.n_features)

    @property
    def features_touched_share_of_used(self) -> float:
        """Mean share that scoring a document looks at, of the features that occur in the model."""
        return float(self.features_touched.mean()) / max(1, len(np.unique(self.model.feature)))

    @property
    def features_touched_std(self) -> float:
        """Standard deviation, between documents, of the number of features that scoring looks at."""
        return float(self.features_touched.std())

    @property
    def splits_per_doc(self) -> float:
        """Mean number of splits that a document meets in all trees; `Topology.path_length` is the most it can meet."""
        return int(self.node_visits.sum()) / self.n_docs

    @property
    def splits_per_tree(self) -> float:
        """Mean number of splits that a document meets in one tree; `Topology.mean_depth` is the most it can meet."""
        return self.splits_per_doc / max(1, self.model.n_trees)

    @property
    def n_nodes_met(self) -> int:
        """Number of inner nodes that some document meets."""
        return int(np.count_nonzero(self.node_visits))

    @property
    def left_share(self) -> float:
        """Share of visits to inner nodes from which the document goes left."""
        return int(self.left_visits.sum()) / max(1, int(self.node_visits.sum()))

    @property
    def likelier_share(self) -> float:
        """Share of visits to inner nodes from which the document goes to the more frequent side of that node.

        A branch predictor that only knew the favourite side of each node would be right so often.
        """
        likelier = np.maximum(self.left_visits, self.node_visits - self.left_visits)
        return int(likelier.sum()) / max(1, int(self.node_visits.sum()))

    def share_of_hottest(self, share_of_nodes: float) -> float:
        """Share of all visits that fall on the most visited nodes.

        Parameters
        ----------
        share_of_nodes : float
            How many nodes are taken, as a share of all inner nodes.
        """
        n_hottest = int(np.ceil(share_of_nodes * len(self.node_visits)))
        hottest = self._by_heat[:n_hottest]
        return int(self.node_visits[hottest].sum()) / max(1, int(self.node_visits.sum()))

    def hot_nodes(self, n: int = 10) -> list[HotNode]:
        """The nodes that most documents meet, most visited first.

        Parameters
        ----------
        n : int, default 10
            How many nodes at most.

        Returns
        -------
        list of HotNode
            Without roots, as every document meets them, and without nodes that no document meets.
        """
        model = self.model
        is_root = np.zeros(model.n_nodes, dtype=bool)
        is_root[model.node_offsets[:-1][np.diff(model.node_offsets) > 0]] = True
        nodes = self._by_heat[~is_root[self._by_heat] & (self.node_visits[self._by_heat] > 0)][:n]
        trees = np.searchsorted(model.node_offsets, nodes, side="right") - 1
        further = model.trees.set_sizes
        return [
            HotNode(
                tree=int(tree),
                node=int(node - model.node_offsets[tree]),
                feature=int(model.feature[node]),
                threshold=float(model.threshold[node]),
                further=int(further[node]),
                share=int(self.node_visits[node]) / self.n_docs,
                left_share=int(self.left_visits[node]) / int(self.node_visits[node]),
            )
            for tree, node in zip(trees, nodes, strict=True)
        ]

    @cached_property
    def _by_heat(self) -> IndexArray:
        return np.argsort(-self.node_visits, kind="stable")

    def as_dict(self) -> dict[str, Any]:
        """Summary as plain numbers: what `rankwood inspect --data --json` prints. Infinite thresholds are texts."""
        hot = [asdict(node) for node in self.hot_nodes()]
        for node in hot:
            if self.model.feature_names is not None:
                node["name"] = self.model.feature_names[node["feature"]]
            if not np.isfinite(node["threshold"]):
                node["threshold"] = str(node["threshold"])
        return {
            "n_docs": self.n_docs,
            "features_touched": float(self.features_touched.mean()),
            **{name: getattr(self, name) for name in SUMMARY},
            "share_of_hottest_1_percent": self.share_of_hottest(0.01),
            "share_of_hottest_10_percent": self.share_of_hottest(0.1),
            "hot_nodes": hot,
        }


SUMMARY = (
    "features_touched_std", "features_touched_share", "features_touched_share_of_used", "splits_per_doc",
    "splits_per_tree", "n_nodes_met", "left_share", "likelier_share",
)  # fmt: skip


def usage(model: Ensemble, X: Any, *, n_threads: int | None = None) -> Usage:
    """Features and nodes of a model that scoring the rows of `X` looks at.

    Parameters
    ----------
    model : Ensemble
    X : matrix of documents x features
        At least one row.
    n_threads : int, optional
        Every CPU is used unless given.

    Returns
    -------
    Usage
        Visits per document, feature and node.

    Notes ----- It takes one pass over the leaves that documents reach. A node is visited as often as the leaves below
    it; a leaf stands for the set of features above it, and a document looks at the union of the sets of its leaves.
    """
    threads = resolve_threads(n_threads)
    n_rows, blocks = row_blocks(X, model.n_features, model.feature_names, coding=lambda: model.coding)
    if n_rows == 0:
        raise DataError("X has no rows: there is nothing to tell about how they use the model")
    shape = _Shape(model)
    leaf_visits = np.zeros(model.n_leaves, dtype=np.int64)
    touched = np.empty(n_rows, dtype=np.int64)
    for first, rows in _small_blocks(blocks):
        leaves = np.ascontiguousarray(model.leaves(rows, n_threads=threads).T)  # trees x documents
        touched[first : first + len(rows)] = _count_features(shape.sets, model.leaf_offsets, leaves, leaf_visits)
    visits = shape.add_up(leaf_visits)
    return Usage(model, touched, visits[: model.n_nodes], visits[shape.left])


def leaf_visits(model: Ensemble, blocks: Iterator[tuple[slice, AnyArray]], n_threads: int) -> IndexArray:
    """Number of documents that reach each leaf.

    Parameters
    ----------
    model : Ensemble
    blocks : iterator
        Rows of the documents, as `row_blocks` gives them.
    n_threads : int
    """
    visits, sizes = np.zeros(model.n_leaves, dtype=np.int64), model.trees.sizes + 1
    for _, rows in _small_blocks(blocks):
        leaves = np.ascontiguousarray(model.leaves(rows, n_threads=n_threads).T)
        for tree, leaf in enumerate(leaves):
            visits[model.trees.leaves_of(tree)] += np.bincount(leaf, minlength=sizes[tree])
    return visits


def _small_blocks(blocks: Iterator[tuple[slice, AnyArray]]) -> Iterator[tuple[int, AnyArray]]:
    for place, block in blocks:
        for first in range(0, len(block), _ROWS_AT_ONCE):
            yield place.start + first, block[first : first + _ROWS_AT_ONCE]


def _count_features(
    sets: NDArray[np.uint64], leaf_offsets: IndexArray, leaves: AnyArray, leaf_visits: IndexArray
) -> IndexArray:
    """Number of features that each document looks at; its leaves are added to `leaf_visits`."""
    union = np.zeros((leaves.shape[1], sets.shape[1]), dtype=np.uint64)
    reached = np.empty_like(union)
    for tree, leaf in enumerate(leaves):
        of_tree = slice(leaf_offsets[tree], leaf_offsets[tree + 1])
        leaf_visits[of_tree] += np.bincount(leaf, minlength=of_tree.stop - of_tree.start)
        np.take(sets[of_tree], leaf, axis=0, out=reached, mode="clip")
        union |= reached
    n_features: IndexArray = np.unpackbits(union.view(np.uint8), axis=1).sum(axis=1, dtype=np.int64)
    return n_features


class _Shape:
    """All trees as one forest of places: inner nodes first, numbered as in the model, then the leaves.

    Attributes
    ----------
    left, right : array of int64
        Places of the children of every inner node.
    sets : array of uint64
        For every leaf, the features on the way there: one bit for each feature that the model uses.
    """

    def __init__(self, model: Ensemble) -> None:
        n_nodes, tree_of = model.n_nodes, np.repeat(np.arange(model.n_trees), np.diff(model.node_offsets))
        first_node, first_leaf = model.node_offsets[tree_of], n_nodes + model.leaf_offsets[tree_of]
        self.left, self.right = (
            np.where(child >= 0, first_node + child, first_leaf + ~child) for child in (model.left, model.right)
        )
        roots = model.node_offsets[:-1][np.diff(model.node_offsets) > 0]
        self._levels = list(self._by_depth(roots, n_nodes))
        self.sets = self._feature_sets(model)

    def _by_depth(self, nodes: IndexArray, n_nodes: int) -> Iterator[IndexArray]:
        """Inner nodes of equal depth, the roots first."""
        while len(nodes):
            yield nodes
            children = np.concatenate([self.left[nodes], self.right[nodes]])
            nodes = children[children < n_nodes]

    def _feature_sets(self, model: Ensemble) -> NDArray[np.uint64]:
        used, bit = np.unique(model.feature, return_inverse=True)
        n_words = max(1, -(-len(used) // _WORD))
        sets = np.zeros((model.n_nodes + model.n_leaves, n_words), dtype=np.uint64)
        word, mask = bit // _WORD, np.uint64(1) << (bit % _WORD).astype(np.uint64)
        for nodes in self._levels:
            below = sets[nodes]
            below[np.arange(len(nodes)), word[nodes]] |= mask[nodes]
            sets[self.left[nodes]] = sets[self.right[nodes]] = below
        return sets[model.n_nodes :]

    def add_up(self, leaf_visits: IndexArray) -> IndexArray:
        """Visits to every place: as many as to the leaves below it."""
        visits = np.concatenate([np.zeros(len(self.left), dtype=np.int64), leaf_visits])
        for nodes in reversed(self._levels):
            visits[nodes] = visits[self.left[nodes]] + visits[self.right[nodes]]
        return visits
