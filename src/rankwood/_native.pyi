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
import enum

from rankwood.dtypes import AnyArray

def active_isa() -> str: ...
def available_isas() -> list[str]: ...

# bind_measures.cpp
class MeasureKind(enum.Enum):
    NDCG = ...
    DCG = ...
    ERR = ...
    AP = ...
    RR = ...
    P = ...
    R = ...
    RBP = ...

class GainKind(enum.Enum):
    EXP = ...
    LINEAR = ...
    TABLE = ...

class DiscountKind(enum.Enum):
    LOG2 = ...
    LETOR = ...

class Ties(enum.Enum):
    ORDER = ...
    AVERAGE = ...
    DOCNO = ...

class MeasureSpec:
    kind: MeasureKind
    cutoff: int
    gain: GainKind
    gains: list[float]
    discount: DiscountKind
    relevant: float
    max_grade: float
    persistence: float
    empty: float
    short_counts_zero: bool
    ap_at_most_cutoff: bool
    precision_of_list: bool
    def __init__(self) -> None: ...

def per_query(
    specs: list[MeasureSpec],
    labels: AnyArray,
    scores: AnyArray,
    offsets: AnyArray,
    order: AnyArray | None,
    docnos: AnyArray | None,
    ties: Ties,
    n_threads: int,
    out: AnyArray,
) -> tuple[str, int, int] | None: ...
