"""Types of the C++ kernels (native/bindings)."""

from typing import Any

from numpy.typing import NDArray

def active_isa() -> str: ...
def available_isas() -> list[str]: ...
def check_trees(
    depths: NDArray[Any],
    feature: NDArray[Any],
    threshold: NDArray[Any],
    left: NDArray[Any],
    right: NDArray[Any],
    missing_left: NDArray[Any],
    leaf_value: NDArray[Any],
    node_offsets: NDArray[Any],
    n_features: int,
) -> None: ...
def check_sums(
    leaf_value: NDArray[Any], node_offsets: NDArray[Any], tree_weights: NDArray[Any], base: float
) -> None: ...

class ReferenceTraversal:
    def __init__(
        self,
        feature: NDArray[Any],
        threshold: NDArray[Any],
        left: NDArray[Any],
        right: NDArray[Any],
        missing_left: NDArray[Any],
        leaf_value: NDArray[Any],
        node_offsets: NDArray[Any],
        n_features: int,
    ) -> None: ...
    def score(
        self, X: NDArray[Any], tree_weights: NDArray[Any], base: float, scores: NDArray[Any], n_threads: int
    ) -> None: ...
    def leaves(self, X: NDArray[Any], leaves: NDArray[Any], n_threads: int) -> None: ...
