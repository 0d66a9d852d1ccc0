"""One tree grown by a group of processes, each on its own documents: the same tree that one process would grow.

Counts and histograms of all processes are added up; from the sums every process finds the same splits. To wait for each
other less often, leaves that will probably be split are divided and searched ahead of their turn, several at a time.
What a leaf's children look like does not depend on when they are looked at, so this changes nothing but the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.dtypes import FloatArray
from rankwood.group import Group

if TYPE_CHECKING:
    from rankwood.training.grow import GrowthRules


AHEAD = 4.0  # the higher, the fewer leaves are searched ahead of their turn


class JointGrower:
    """A kernel that grows trees together with those of other processes; it is called as `TreeGrower` is.

    Nodes are numbered in the order in which they are split, as by one process; the kernel's own numbers are in the
    order in which they were divided.

    Parameters
    ----------
    kernel : TreeGrower
        Over the documents of this process.
    group : Group
        The processes.
    """

    def __init__(self, kernel: _native.TreeGrower, group: Group) -> None:
        self._kernel, self._group = kernel, group
        self._numbers = [0]  # the kernel's, by ours
        self._depths = [0]
        self._n_leaves, self._max_depth, self._ahead = 0, 0, True

    def start(
        self,
        gradient: FloatArray,
        hessian: FloatArray,
        rows: NDArray[np.uint32] | None,
        features: NDArray[np.uint8],
        rules: GrowthRules,
        min_docs: int,
        hessian_is_count: bool,
        *,
        ahead: bool,
    ) -> float:
        """Begin a tree; returns the gain of the root's best split.

        `ahead` says whether leaves may be searched before their turn.
        """
        kernel, group = self._kernel, self._group
        extremes = group.max(np.array(kernel.take_rows(gradient, hessian, rows)))
        masses = group.sum(np.array(kernel.weigh(gradient, hessian, tuple(extremes))))
        limits = rules.l2, rules.min_hessian, rules.min_gain, min_docs, hessian_is_count
        sums = kernel.open(gradient, hessian, tuple(extremes), masses.tolist(), features, *limits)
        kernel.settle_root(group.sum(np.array(sums)).tolist())
        self._numbers, self._depths = [0], [0]
        self._n_leaves, self._max_depth, self._ahead = rules.n_leaves, rules.deepest, ahead
        if self._n_leaves > 1 and self._max_depth > 0:
            self._search([0], [0])
        return kernel.gain(0)

    def constrain(self, directions: NDArray[np.int8] | None, groups: NDArray[np.uint8]) -> None:
        """Say how values must change with features, and which features may be met on one path."""
        self._kernel.constrain(directions, groups)

    def categorise(self, marks: NDArray[np.uint8], smoothing: float, l2: float, most: int) -> None:
        """Say which features are categories, and how they are split."""
        self._kernel.categorise(marks, smoothing, l2, most)

    def left_bins(self, node: int) -> bytes:
        """Marks of the bins that go left at a node's split of categories; none at other splits."""
        return self._kernel.left_bins(self._numbers[node])

    def price(self, costs: FloatArray) -> None:
        """Say what is taken from the gains of features, from the next tree on."""
        self._kernel.price(costs)

    def reprice(self, costs: FloatArray) -> None:
        """Other costs while a tree grows whose leaves are not searched ahead: open ones choose their splits anew."""
        self._kernel.reopen(costs)
        self._choose()

    def gain(self, node: int) -> float:
        """Gain of the best split of a node."""
        return self._kernel.gain(self._numbers[node])

    def split(self, node: int, want_splits: bool, features: NDArray[np.uint8] | None = None) -> tuple[float, float]:
        """Split a node at its best split; returns the gains of its children's."""
        kernel, number = self._kernel, self._numbers[node]
        if kernel.first_child(number) == 0:
            if want_splits:
                self._divide([number, *self._likely(node)], features)
            else:
                kernel.conclude(number, *self._summed(kernel.divide([number])))
        left = kernel.first_child(number)
        self._numbers += [left, left + 1]
        self._depths += [self._depths[node] + 1] * 2
        return kernel.gain(left), kernel.gain(left + 1)

    def node(self, node: int) -> tuple[int, int, bool, int]:
        """Feature, bin and direction of missing values of a node's split, and its documents, of all processes."""
        return self._kernel.node(self._numbers[node])

    @property
    def extremes(self) -> tuple[float, float]:
        return self._kernel.extremes

    def sums(
        self,
        nodes: list[int],
        gradient: FloatArray,
        hessian: FloatArray,
        extremes: tuple[float, float],
        sums: NDArray[np.int64],
    ) -> tuple[float, float]:
        """Sums over the documents of nodes, of all processes, and the value of one step of each."""
        units = self._kernel.sums([self._numbers[node] for node in nodes], gradient, hessian, extremes, sums)
        sums[:] = self._group.sum(sums)
        return units

    def mark(self, nodes: list[int], leaf_of_row: NDArray[np.uint16]) -> None:
        """Say for every document of this process which of the nodes it is in."""
        self._kernel.mark([self._numbers[node] for node in nodes], leaf_of_row)

    def _likely(self, node: int) -> list[int]:
        """Other leaves that will probably be split, too, the best first.

        A split leaves, as a rule of thumb, two that gain half as much. A leaf probably has its turn when all before
        it, with all below them that then gain more than it does, leave room for it.
        """
        kernel, n_nodes = self._kernel, len(self._numbers)
        n_splits = self._n_leaves - (n_nodes + 1) // 2  # that are left
        if not self._ahead or n_splits < 2:
            return []
        open_leaves = sorted(
            (-kernel.gain(number), number)
            for other, number in enumerate(self._numbers)
            if kernel.gain(number) > 0 and kernel.first_child(number) == 0 and self._depths[other] + 1 < self._max_depth
        )
        gains = -np.array([gain for gain, _ in open_leaves])
        n_before = AHEAD * np.cumsum(gains) / gains  # splits before each of them, and it
        likely = [number for (_, number), n in zip(open_leaves, n_before, strict=True) if n <= n_splits]
        return [number for number in likely if number != self._numbers[node]]

    def _divide(self, numbers: list[int], features: NDArray[np.uint8] | None) -> None:
        self._search(numbers, self._summed(self._kernel.divide(numbers)), features)

    def _search(self, numbers: list[int], n_left: list[int], features: NDArray[np.uint8] | None = None) -> None:
        """Find the best splits of the children of nodes that were divided, or of the root."""
        kernel, group = self._kernel, self._group
        histograms = np.empty(kernel.exchanged(numbers), dtype=np.int64)
        kernel.build(numbers, n_left, features, histograms)
        kernel.settle(numbers, group.sum(histograms))
        self._choose()

    def _choose(self) -> None:
        """Choose the splits of nodes that were searched, counting documents where needed."""
        kernel, group = self._kernel, self._group
        while unchecked := kernel.unchecked():
            counts = np.empty((len(unchecked), 256), dtype=np.uint32)
            for (node, feature), of_node in zip(unchecked, counts, strict=True):
                kernel.count(node, feature, of_node)
            for (node, feature), of_node in zip(unchecked, group.sum(counts), strict=True):
                kernel.recheck(node, feature, of_node)
        kernel.settled()

    def _summed(self, counts: list[int]) -> list[int]:
        total: list[int] = self._group.sum(np.array(counts, dtype=np.int64)).tolist()
        return total
