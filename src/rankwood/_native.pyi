"""Types of the C++ kernels (native/bindings)."""

import enum

from rankwood.dtypes import AnyArray, OffsetArray

def active_isa() -> str: ...
def available_isas() -> list[str]: ...

# bind_ensemble.cpp
def check_trees(
    depths: AnyArray,
    feature: AnyArray,
    threshold: AnyArray,
    left: AnyArray,
    right: AnyArray,
    missing_left: AnyArray,
    leaf_value: AnyArray,
    node_offsets: AnyArray,
    n_features: int,
) -> None: ...
def check_sums(leaf_value: AnyArray, node_offsets: AnyArray, tree_weights: AnyArray, base: float) -> None: ...

class ReferenceTraversal:
    def __init__(
        self,
        feature: AnyArray,
        threshold: AnyArray,
        left: AnyArray,
        right: AnyArray,
        missing_left: AnyArray,
        leaf_value: AnyArray,
        node_offsets: AnyArray,
        n_features: int,
    ) -> None: ...
    def score(self, X: AnyArray, tree_weights: AnyArray, base: float, scores: AnyArray, n_threads: int) -> None: ...
    def leaves(self, X: AnyArray, leaves: AnyArray, n_threads: int) -> None: ...

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

# bind_significance.cpp
def count_sign_flips(
    magnitudes: OffsetArray,
    bound: int,
    two_sided: bool,
    n_permutations: int,
    enumerate: bool,
    seed: int,
    n_threads: int,
) -> int: ...
def bootstrap_sums(values: OffsetArray, seed: int, n_threads: int, sums: OffsetArray) -> None: ...
