"""What an import may ask for, in proportion to its file: no small file takes hours or gigabytes.

Nodes and trees take bytes in every format, so there are no more of them than bytes. Two things do not: the number of
features, which may be a mere number in a header, and the nodes of splits that unfold into several (`unfold.py`).
"""

from __future__ import annotations

import math

from rankwood.errors import ModelError
from rankwood.model_arrays import MAX_FEATURES

MIN_FEATURES = 2**20  # that any file may speak of
MIN_NODES = 2**20  # that the trees of any file may unfold to
NODES_PER_BYTE = 4  # a split has 50 bytes or more in any format, so it may unfold to some hundreds on average


class Budget:
    """What is left for one import. An object in memory, of no known size, may have anything.

    >>> Budget(n_bytes=500).check_features(136)
    """

    def __init__(self, n_bytes: float = math.inf, n_features: int | None = None) -> None:
        """`n_features` is what the user says that the model has, and so may have."""
        self.n_bytes = n_bytes
        self.features = max(MIN_FEATURES, n_bytes, n_features or 0)
        self.unfolded = max(MIN_NODES, NODES_PER_BYTE * n_bytes)

    def check_features(self, n_features: int) -> None:
        """Refuse a number of features that is out of all proportion."""
        if self.features < n_features <= MAX_FEATURES:  # more are refused anyway
            raise ModelError(
                f"the model is of {n_features} features, too many to believe of a file of {self.n_bytes:.0f} bytes: "
                f"if it is, give n_features={n_features}"
            )

    def check_trees(self, n_trees: int, n_nodes: int) -> None:
        """Refuse more trees or inner nodes than a file has bytes."""
        for number, what in ((n_trees, "trees"), (n_nodes, "nodes")):
            if number > self.n_bytes:
                raise ModelError(f"the file is damaged: {number} {what} do not fit in {self.n_bytes:.0f} bytes")

    def take_unfolded(self, n_nodes: int) -> None:
        """Note the nodes that a tree has unfolded to, or the work that it was when that was more."""
        self.unfolded -= n_nodes


UNLIMITED = Budget()
