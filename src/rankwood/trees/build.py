"""From gradients to a finished tree: sample, grow, prune, give the leaves their values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rankwood import _native
from rankwood.data.binning import BinnedDataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.trees.leafwise import GrowthRules, grow_leafwise
from rankwood.trees.prune import prune_to_balance
from rankwood.trees.sampling import Sampling
from rankwood.trees.tree import GrownTree, finish

SMALL = 20_000  # rows below which a second thread costs more than it gives


@dataclass(frozen=True)
class TreeRules:
    """How each tree of an ensemble is made.

    `balance` is Asadi & Lin's alpha: how full a tree must be for its depth, or its deepest leaves are pruned.
    `missing_as_zero` sends missing values where 0 goes; the data to learn from then has none.
    """

    growth: GrowthRules = field(default_factory=GrowthRules)
    sampling: Sampling = field(default_factory=Sampling)
    balance: float = 0.0
    missing_as_zero: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.balance <= 1.0:
            raise RankwoodError(f"balance must lie between 0 and 1, got {self.balance}")


class TreeBuilder:
    """Builds trees on one binned data set, with threads that are kept from tree to tree."""

    def __init__(self, binned: BinnedDataset, rules: TreeRules, *, constant_hessian: bool, n_threads: int) -> None:
        self.binned, self.rules = binned, rules
        self.n_threads = 1 if binned.n_docs < SMALL else n_threads
        self._grower = _native.TreeGrower(binned.bins, binned.edges.n_values, binned.has_missing, self.n_threads)
        self._all_rows = np.arange(binned.n_docs, dtype=np.uint32)
        # Variance gain is Newton gain over documents: every document weighs 1, whatever its hessian.
        self._count_docs = rules.growth.gain == "variance" or constant_hessian
        self._ones = np.ones(binned.n_docs) if rules.growth.gain == "variance" else None

    def build(self, gradient: FloatArray, hessian: FloatArray, rng: Generator) -> tuple[GrownTree, NDArray[np.uint16]]:
        """One tree fitted to the gradients, and the leaf of every document."""
        sampling, n_features = self.rules.sampling, self.binned.data.n_features
        rows = sampling.rows(self.binned.data.offsets, rng)
        features = sampling.features(n_features, rng)
        draw = (
            (lambda: np.stack([sampling.features(n_features, rng) for _ in range(2)])) if sampling.per_split else None
        )
        growing = grow_leafwise(
            self._grower,
            gradient,
            hessian if self._ones is None else self._ones,
            self._all_rows if rows is None else rows,
            features,
            self.rules.growth,
            hessian_is_count=self._count_docs,
            draw_features=draw,
        )
        prune_to_balance(growing, self.rules.balance)
        inner, leaves = growing.walk()
        numbers = np.array(leaves, dtype=np.uint64)
        values = self._leaf_values(numbers, gradient, hessian)
        grown = finish(growing, self._grower, self.binned.edges, inner, leaves, values)
        if self.rules.missing_as_zero:
            grown = replace(grown, tree=replace(grown.tree, missing_left=grown.tree.threshold >= 0.0))
        if rows is not None:
            return grown, grown.leaves_of(self.binned, n_threads=self.n_threads)
        leaf_of_row = np.empty(self.binned.n_docs, dtype=np.uint16)
        self._grower.mark(numbers, leaf_of_row)
        return grown, leaf_of_row

    def _leaf_values(self, leaves: NDArray[np.uint64], gradient: FloatArray, hessian: FloatArray) -> FloatArray:
        """Newton step of every leaf. The denominator has a floor, so that no leaf runs away."""
        g, h = np.empty(len(leaves)), np.empty(len(leaves))
        self._grower.sums(leaves, gradient, hessian, g, h)
        growth = self.rules.growth
        step: FloatArray = g / np.maximum(h + growth.l2, max(growth.min_hessian, 1e-12))
        return step
