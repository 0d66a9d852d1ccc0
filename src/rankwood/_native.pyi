"""Types of the C++ kernels that `native/bindings` exports."""

import enum
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import AnyArray, FloatArray, IndexArray, OffsetArray

def active_isa() -> str: ...
def available_isas() -> list[str]: ...
def needed_features(isa: str) -> list[str]: ...

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
    set_offsets: AnyArray,
    set_thresholds: AnyArray,
    n_features: int,
) -> None: ...

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
        set_offsets: AnyArray,
        set_thresholds: AnyArray,
        n_features: int,
    ) -> None: ...
    @property
    def n_bytes(self) -> int: ...
    def score(
        self, X: AnyArray, tree_weights: AnyArray, base: float, scores: AnyArray, single: bool, n_threads: int
    ) -> None: ...
    def leaves(self, X: AnyArray, leaves: AnyArray, n_threads: int) -> None: ...

# bind_model_file.cpp
def header_end(start: bytes, n_file: int) -> int: ...

class ModelHeader:
    def __init__(self, text: bytes, n_data: int) -> None: ...
    @property
    def n_features(self) -> int: ...
    @property
    def base(self) -> float: ...
    @property
    def feature_names(self) -> list[str] | None: ...
    @property
    def metadata(self) -> str: ...
    @property
    def exit(self) -> tuple[tuple[int, ...], tuple[float, ...], int] | None: ...
    @property
    def checksum(self) -> str | None: ...
    @property
    def arrays(self) -> list[tuple[str, int]]: ...

def check_booleans(name: str, bytes: AnyArray) -> None: ...
def check_notes(name: str, notes: AnyArray, n_expected: int, per_leaf: bool, counts: bool) -> None: ...
def check_sums(leaf_value: AnyArray, node_offsets: AnyArray, tree_weights: AnyArray, base: float) -> None: ...
def check_exit(
    leaf_value: AnyArray, node_offsets: AnyArray, tree_weights: AnyArray, base: float, last_checkpoint: int
) -> None: ...
def fits_single(leaf_value: AnyArray, node_offsets: AnyArray, tree_weights: AnyArray) -> bool: ...

# bind_engines.cpp
class Codes:
    def __init__(
        self,
        feature: AnyArray,
        threshold: AnyArray,
        left: AnyArray,
        right: AnyArray,
        missing_left: AnyArray,
        leaf_value: AnyArray,
        node_offsets: AnyArray,
        set_offsets: AnyArray,
        set_thresholds: AnyArray,
        n_features: int,
        max_code: int,
    ) -> None: ...
    @property
    def n_columns(self) -> int: ...
    def node(self, i: int) -> tuple[int, int]: ...
    def by_column(self, X: AnyArray, codes: AnyArray) -> None: ...
    def by_row(self, X: AnyArray, codes: AnyArray) -> None: ...

class Bitslice:
    def __init__(
        self,
        feature: AnyArray,
        threshold: AnyArray,
        left: AnyArray,
        right: AnyArray,
        missing_left: AnyArray,
        leaf_value: AnyArray,
        node_offsets: AnyArray,
        set_offsets: AnyArray,
        set_thresholds: AnyArray,
        n_features: int,
        tree_weights: AnyArray,
        base: float,
    ) -> None: ...
    @property
    def n_bytes(self) -> int: ...
    def score(self, X: AnyArray, scores: AnyArray, single: bool, n_threads: int) -> None: ...
    def leaves(self, X: AnyArray, leaves: AnyArray, n_threads: int) -> None: ...

class BitsliceExit:
    def __init__(self, engine: Bitslice, checkpoints: AnyArray, margins: AnyArray, top: int) -> None: ...
    @property
    def n_bytes(self) -> int: ...
    def score(
        self,
        X: AnyArray,
        offsets: AnyArray,
        order: AnyArray | None,
        scores: AnyArray,
        trees: AnyArray,
        single: bool,
        n_threads: int,
    ) -> None: ...

class TraverseExit(BitsliceExit):
    def __init__(self, engine: Traverse, checkpoints: AnyArray, margins: AnyArray, top: int) -> None: ...

class ReferenceExit:
    def __init__(
        self,
        feature: AnyArray,
        threshold: AnyArray,
        left: AnyArray,
        right: AnyArray,
        missing_left: AnyArray,
        leaf_value: AnyArray,
        node_offsets: AnyArray,
        set_offsets: AnyArray,
        set_thresholds: AnyArray,
        n_features: int,
        tree_weights: AnyArray,
        base: float,
        checkpoints: AnyArray,
        margins: AnyArray,
        top: int,
    ) -> None: ...
    @property
    def n_bytes(self) -> int: ...
    def score(
        self,
        X: AnyArray,
        offsets: AnyArray,
        order: AnyArray | None,
        scores: AnyArray,
        trees: AnyArray,
        single: bool,
        n_threads: int,
    ) -> None: ...

class Scorer:
    def __init__(
        self,
        feature: AnyArray,
        threshold: AnyArray,
        left: AnyArray,
        right: AnyArray,
        missing_left: AnyArray,
        leaf_value: AnyArray,
        node_offsets: AnyArray,
        set_offsets: AnyArray,
        set_thresholds: AnyArray,
        n_features: int,
        tree_weights: AnyArray,
        base: float,
        checkpoints: AnyArray,
        margins: AnyArray,
        top: int,
        max_query_rows: int,
    ) -> None: ...
    @property
    def n_bytes(self) -> int: ...
    def is_bitsliced(self, n_rows: int) -> bool: ...
    def score(self, X: AnyArray, scores: AnyArray, single: bool) -> None: ...
    def score_queries(
        self, X: AnyArray, offsets: AnyArray, scores: AnyArray, trees: AnyArray | None, single: bool
    ) -> None: ...

def smallest_bitslice_batch(n_trees: int, n_leaves: int, most_leaves: int) -> int | None: ...

MAX_BITSLICE_LEAVES: int

# bind_compiled.cpp
class CompiledTrees:
    def __init__(
        self, score_f32: int, score_f64: int, leaves_f32: int, leaves_f64: int, n_features: int, n_trees: int
    ) -> None: ...
    def score(self, X: AnyArray, scores: FloatArray, single: bool, n_threads: int) -> None: ...
    def leaves(self, X: AnyArray, leaves: AnyArray, n_threads: int) -> None: ...

class Traverse:
    def __init__(
        self,
        feature: AnyArray,
        threshold: AnyArray,
        left: AnyArray,
        right: AnyArray,
        missing_left: AnyArray,
        leaf_value: AnyArray,
        node_offsets: AnyArray,
        set_offsets: AnyArray,
        set_thresholds: AnyArray,
        n_features: int,
        tree_weights: AnyArray,
        base: float,
    ) -> None: ...
    @property
    def n_bytes(self) -> int: ...
    def score(self, X: AnyArray, scores: AnyArray, single: bool, n_threads: int) -> None: ...
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

EXACT_DIGITS: int
EXACT_WIDTH: int

def exact_sums(values: FloatArray, weights: FloatArray | None, sums: OffsetArray) -> None: ...

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

# bind_svmlight.cpp
TEXT_PADDING: int

class SvmlightReader:
    def __init__(
        self,
        n_features: int | None,
        *,
        ignore_beyond: bool,
        absent: float,
        zero_based: bool,
        document_ids: bool,
        max_bytes: int,
        max_text: str,
        max_rows: int | None,
        chunk_bytes: int,
        careful_only: bool,
    ) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def has_qid(self) -> bool: ...
    def start_file(self) -> None: ...
    def parse(self, buffer: NDArray[np.uint8], size: int, last: bool, text_left: int, n_threads: int) -> int: ...
    def take(
        self,
    ) -> tuple[
        NDArray[np.float32], NDArray[np.float64], NDArray[np.int64] | list[str], NDArray[np.int64], list[str] | None
    ]: ...

def format_svmlight(
    X: NDArray[np.float32],
    labels: NDArray[np.float64],
    query: NDArray[np.int64],
    id_text: bytes,
    id_ends: NDArray[np.int64],
    comment_text: bytes,
    comment_ends: NDArray[np.int64] | None,
    *,
    zero_based: bool,
    absent: float | None,
    n_threads: int,
) -> list[bytes]: ...
def read_at(file: int, offset: int, to: NDArray[np.uint8], n_threads: int) -> int: ...

# bind_losses.cpp
class PairMeasure(enum.Enum):
    NDCG = ...
    MAP = ...
    MRR = ...
    ERR = ...
    EQUAL = ...

class LambdaGradients:
    def __init__(
        self,
        gains: FloatArray,
        offsets: OffsetArray,
        weights: FloatArray | None,
        query_weights: FloatArray | None,
        truncation: int,
        sigma: float,
        normalize: bool,
        cut_discounts: bool,
        n_threads: int,
        measure: PairMeasure = ...,
        largest_gain: float = 0.0,
    ) -> None: ...
    def compute(self, scores: FloatArray, gradient: FloatArray, hessian: FloatArray) -> None: ...

class CrossEntropyGradients:
    def __init__(
        self,
        gains: FloatArray,
        offsets: OffsetArray,
        weights: FloatArray | None,
        query_weights: FloatArray | None,
        seed: int,
        first_query: int,
        n_threads: int,
    ) -> None: ...
    def compute(self, scores: FloatArray, gradient: FloatArray, hessian: FloatArray, draw: int) -> None: ...

class StochasticGradients:
    def __init__(
        self,
        gains: FloatArray,
        offsets: OffsetArray,
        weights: FloatArray | None,
        query_weights: FloatArray | None,
        seed: int,
        first_query: int,
        truncation: int,
        sigma: float,
        normalize: bool,
        cut_discounts: bool,
        measure: PairMeasure,
        largest_gain: float,
        n_rankings: int,
        noise: float,
        n_threads: int,
    ) -> None: ...
    def compute(self, scores: FloatArray, gradient: FloatArray, hessian: FloatArray, draw: int) -> None: ...

def squared_gradients(
    y: FloatArray,
    weights: FloatArray | None,
    scores: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    n_threads: int,
) -> None: ...

# bind_learner.cpp
BIN_GROUP: int
BIN_SAMPLE_ROWS: int

def find_bin_edges(X: NDArray[np.float32], max_bins: int, n_threads: int) -> list[list[float]]: ...
def find_few_values(
    X: NDArray[np.float32], max_bins: int, n_threads: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]: ...
def find_sketched_edges(
    counts: NDArray[np.int64],
    values: NDArray[np.float32],
    sample: NDArray[np.float32],
    max_bins: int,
    n_threads: int,
) -> list[list[float]]: ...
def encode_bins(
    X: NDArray[np.float32],
    edges: FloatArray,
    edge_offsets: OffsetArray,
    bins: NDArray[np.uint8] | NDArray[np.uint16],
    has_missing: NDArray[np.uint8],
    n_threads: int,
) -> None: ...

class TreeGrower:
    def __init__(
        self, bins: NDArray[np.uint8], n_values: NDArray[np.int32], has_missing: NDArray[np.uint8], n_threads: int
    ) -> None: ...
    def constrain(self, directions: NDArray[np.int8] | None, groups: NDArray[np.uint8]) -> None: ...
    def categorise(self, marks: NDArray[np.uint8], smoothing: float, l2: float, most: int) -> None: ...
    def left_bins(self, number: int) -> bytes: ...
    def price(self, costs: FloatArray) -> None: ...
    def reprice(self, costs: FloatArray) -> None: ...
    def reopen(self, costs: FloatArray) -> None: ...
    def start(
        self,
        gradient: FloatArray,
        hessian: FloatArray,
        rows: NDArray[np.uint32] | None,
        features: NDArray[np.uint8],
        l2: float,
        min_hessian: float,
        min_gain: float,
        min_docs: int,
        hessian_is_count: bool,
        want_splits: bool,
    ) -> float: ...
    def split(self, node: int, want_splits: bool, features: NDArray[np.uint8] | None = None) -> tuple[float, float]: ...
    def take_rows(
        self, gradient: FloatArray, hessian: FloatArray, rows: NDArray[np.uint32] | None
    ) -> tuple[float, float]: ...
    def weigh(self, gradient: FloatArray, hessian: FloatArray, extremes: Sequence[float]) -> list[int]: ...
    def open(
        self,
        gradient: FloatArray,
        hessian: FloatArray,
        extremes: Sequence[float],
        masses: Sequence[int],
        features: NDArray[np.uint8],
        l2: float,
        min_hessian: float,
        min_gain: float,
        min_docs: int,
        hessian_is_count: bool,
    ) -> list[int]: ...
    def settle_root(self, sums: Sequence[int]) -> None: ...
    def divide(self, nodes: Sequence[int]) -> list[int]: ...
    def conclude(self, node: int, n_left: int) -> None: ...
    def exchanged(self, nodes: Sequence[int]) -> int: ...
    def build(
        self,
        nodes: Sequence[int],
        n_left: Sequence[int],
        features: NDArray[np.uint8] | None,
        out: NDArray[np.int64],
    ) -> None: ...
    def settle(self, nodes: Sequence[int], sums: NDArray[np.int64]) -> None: ...
    def unchecked(self) -> list[tuple[int, int]]: ...
    def count(self, node: int, feature: int, counts: NDArray[np.uint32]) -> None: ...
    def recheck(self, node: int, feature: int, counts: NDArray[np.uint32]) -> None: ...
    def settled(self) -> None: ...
    @property
    def extremes(self) -> tuple[float, float]: ...
    @property
    def units(self) -> tuple[float, float]: ...
    def gain(self, node: int) -> float: ...
    def first_child(self, node: int) -> int: ...
    def node(self, number: int) -> tuple[int, int, bool, int]: ...
    def sums(
        self,
        nodes: Sequence[int],
        gradient: FloatArray,
        hessian: FloatArray,
        extremes: Sequence[float],
        sums: NDArray[np.int64],
    ) -> tuple[float, float]: ...
    def mark(self, nodes: Sequence[int], leaf_of_row: NDArray[np.uint16]) -> None: ...

def reach_leaves(
    bins: NDArray[np.uint8],
    n_values: NDArray[np.int32],
    feature: NDArray[np.int32],
    bin: NDArray[np.int32],
    missing_left: NDArray[np.uint8],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    left_bins: NDArray[np.uint8] | None,
    leaf_of_row: NDArray[np.uint16],
    n_threads: int,
) -> None: ...
def add_leaf_values(
    leaf_of_row: NDArray[np.uint16], values: FloatArray, weight: float, scores: FloatArray, n_threads: int
) -> None: ...
def add_trees(
    leaves: list[AnyArray],
    values: list[FloatArray],
    weights: list[float],
    scores: FloatArray,
    rests: FloatArray,
    n_threads: int,
) -> None: ...
def sum_over_leaves(
    leaves: list[AnyArray], x: OffsetArray, y: OffsetArray, n_threads: int, sums: list[OffsetArray]
) -> None: ...

# bind_forest.cpp
MAX_VALUE_CODES: int

def encode_exactly(
    X: NDArray[np.float32], codes: NDArray[np.uint16], has_missing: NDArray[np.uint8], n_threads: int
) -> tuple[OffsetArray, NDArray[np.float32]]: ...
def find_code_ranges(
    X: NDArray[np.float32],
    codes: AnyArray,
    offsets: OffsetArray,
    low: NDArray[np.float32],
    high: NDArray[np.float32],
    n_threads: int,
) -> None: ...

class SampleRules:
    def __init__(self, whole_queries: bool, replace: bool, n_drawn: int, of_each_query: float) -> None: ...

class FullDepthRules:
    def __init__(
        self,
        n_tried: int,
        min_docs: float,
        max_depth: int | None,
        max_leaves: int | None,
        min_gain: float,
        until_gain: bool,
        random_cuts: bool,
        in_three: bool,
    ) -> None: ...

class ForestTrees:
    def __init__(
        self,
        offsets: OffsetArray,
        feature: AnyArray,
        threshold: AnyArray,
        left: AnyArray,
        right: AnyArray,
        missing_left: AnyArray,
        leaf_value: AnyArray,
    ) -> None: ...

class ForestGrower:
    def __init__(
        self,
        codes: NDArray[np.uint8] | NDArray[np.uint16],
        has_missing: NDArray[np.uint8],
        value_offsets: OffsetArray,
        low: NDArray[np.float32],
        high: NDArray[np.float32],
        query_offsets: OffsetArray,
        label: FloatArray,
        weight: FloatArray | None,
        entropy: bool,
    ) -> None: ...
    def grow(
        self,
        seed: int,
        first: int,
        n_trees: int,
        sampling: SampleRules,
        rules: FullDepthRules,
        stop: Callable[[], bool] | None,
        n_threads: int,
    ) -> tuple[AnyArray, ...]: ...
    def sample(self, seed: int, tree: int, sampling: SampleRules) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]: ...
    def add_out_of_bag(
        self,
        trees: ForestTrees,
        seed: int,
        first: int,
        sampling: SampleRules,
        X: NDArray[np.float32],
        sums: FloatArray,
        counts: NDArray[np.uint32],
        n_threads: int,
    ) -> None: ...

def running_sums(
    trees: ForestTrees, X: NDArray[np.float32], sums: FloatArray, scores: FloatArray, n_threads: int
) -> None: ...

# bind_pruning.cpp
class LineMeasure:
    def __init__(
        self,
        spec: MeasureSpec,
        labels: FloatArray,
        offsets: OffsetArray,
        weights: FloatArray | None,
        ties: Ties,
        docnos: AnyArray | None,
        single: bool,
    ) -> None: ...
    @property
    def fast(self) -> bool: ...
    def set_scores(self, scores: FloatArray, rests: FloatArray | None, n_threads: int) -> None: ...
    def bound(self) -> float: ...
    def set_scale(self, scale: float) -> None: ...
    def standing(self) -> int: ...
    def sums(
        self,
        codes: AnyArray,
        values: FloatArray,
        leaf_offsets: OffsetArray,
        trees: OffsetArray,
        deltas: FloatArray,
        weights: FloatArray | None,
        n_threads: int,
        out: OffsetArray,
    ) -> None: ...

def check_leaf_codes(codes: AnyArray, values: FloatArray, leaf_offsets: OffsetArray, n_threads: int) -> None: ...
def add_outputs(
    codes: AnyArray,
    values: FloatArray,
    leaf_offsets: OffsetArray,
    weights: FloatArray,
    base: float,
    n_threads: int,
    scores: FloatArray,
    rests: FloatArray | None,
) -> None: ...
def leaf_sums(
    codes: AnyArray,
    values: FloatArray,
    leaf_offsets: OffsetArray,
    trees: OffsetArray,
    x: OffsetArray,
    n_threads: int,
    sums: OffsetArray,
) -> None: ...
def leaf_pair_sums(
    codes: AnyArray,
    values: FloatArray,
    leaf_offsets: OffsetArray,
    trees: OffsetArray,
    x: OffsetArray,
    y: OffsetArray,
    n_threads: int,
    x_sums: OffsetArray,
    y_sums: OffsetArray,
) -> None: ...
def share_sums(
    codes: AnyArray,
    values: FloatArray,
    leaf_offsets: OffsetArray,
    totals: FloatArray,
    n_threads: int,
    sums: OffsetArray,
) -> None: ...
def joint_ridge(
    codes: AnyArray,
    values: FloatArray,
    leaf_offsets: OffsetArray,
    trees: OffsetArray,
    offsets: OffsetArray | None,
    counts: FloatArray,
    target: FloatArray,
    l2: float,
    iterations: int,
    tolerance: float,
    n_threads: int,
    residual: FloatArray,
) -> None: ...
def tree_gains(
    codes: AnyArray,
    values: FloatArray,
    leaf_offsets: OffsetArray,
    trees: OffsetArray,
    residual: FloatArray,
    counts: FloatArray,
    l2: float,
    n_threads: int,
    gains: FloatArray,
) -> None: ...
def node_importance(
    feature: AnyArray,
    threshold: AnyArray,
    left: AnyArray,
    right: AnyArray,
    missing_left: AnyArray,
    leaf_value: AnyArray,
    node_offsets: AnyArray,
    set_offsets: AnyArray,
    set_thresholds: AnyArray,
    n_features: int,
    tree_weights: FloatArray,
    counts: FloatArray,
    importance: FloatArray,
    right_is_heavier: AnyArray,
) -> None: ...
def project_monotone(
    feature: AnyArray,
    threshold: AnyArray,
    left: AnyArray,
    right: AnyArray,
    missing_left: AnyArray,
    leaf_value: AnyArray,
    node_offsets: AnyArray,
    set_offsets: AnyArray,
    set_thresholds: AnyArray,
    n_features: int,
    weights: FloatArray,
    directions: NDArray[np.int8],
    values: FloatArray,
) -> None: ...
def merge_leaves(
    feature: AnyArray,
    threshold: AnyArray,
    left: AnyArray,
    right: AnyArray,
    missing_left: AnyArray,
    leaf_value: AnyArray,
    node_offsets: AnyArray,
    set_offsets: AnyArray,
    set_thresholds: AnyArray,
    n_features: int,
    tree_weights: FloatArray,
    counts: FloatArray,
    n_leaves: int,
    instead: IndexArray,
) -> list[float]: ...

# bind_explain.cpp
def contributions_by_cover(
    feature: AnyArray,
    threshold: AnyArray,
    left: AnyArray,
    right: AnyArray,
    missing_left: AnyArray,
    leaf_value: AnyArray,
    node_offsets: AnyArray,
    set_offsets: AnyArray,
    set_thresholds: AnyArray,
    n_features: int,
    tree_weights: FloatArray,
    X: AnyArray,
    values: FloatArray,
    n_threads: int,
    leaf_cover: FloatArray,
    expected: FloatArray,
) -> None: ...
def contributions_by_background(
    feature: AnyArray,
    threshold: AnyArray,
    left: AnyArray,
    right: AnyArray,
    missing_left: AnyArray,
    leaf_value: AnyArray,
    node_offsets: AnyArray,
    set_offsets: AnyArray,
    set_thresholds: AnyArray,
    n_features: int,
    tree_weights: FloatArray,
    X: AnyArray,
    values: FloatArray,
    n_threads: int,
    background: FloatArray,
) -> None: ...

# bind_task_record.cpp
def record_tasks(on: bool) -> None: ...
def recorded_tasks() -> list[tuple[str, str, int, bool, float, float, float, float, list[float]]]: ...
def region_seconds(n_threads: int, n_tasks: int, task_seconds: float) -> float: ...

# bind_serving.cpp
def json_rows(text: bytes, width: int, max_rows: int) -> tuple[FloatArray, int, int] | None: ...
