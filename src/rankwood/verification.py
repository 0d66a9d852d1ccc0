"""Comparison of two models: whether they score alike, on data and on rows at every threshold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.errors import DataError, MissingPackageError, ModelError, RankwoodError, one_line
from rankwood.formats.registry import SERVING, load_model, load_served, package_of, source_of, widen
from rankwood.formats.search_engines import solr_thresholds
from rankwood.formats.writing import whole_members
from rankwood.matrix import as_array, column_order, feature_names_of
from rankwood.model.ensemble import Ensemble
from rankwood.model.unfold import without_sets
from rankwood.scoring.agreement import MAX_ROWS, adversarial_rows
from rankwood.scoring.c_source import round_down

# The result of a verification.


@dataclass(frozen=True)
class WorstRow:
    """The row on which the scores of A and B differ most; `source` is a key of `Verification.rows`."""

    source: str
    row: int
    score_a: float
    score_b: float


@dataclass(frozen=True)
class Verification:
    """Result of `verify`: where and by how much two models' scores differ; as a condition, true when they agree.

    Parameters
    ----------
    a, b : str
        Names of the models.
    tolerance : float
        Largest relative difference of scores that was accepted.
    rows : dict of str to int
        Number of rows compared by source: "data", and "float32" and "float64" for rows at thresholds and one step of
        that type to either side.
    max_absolute : float
        Largest difference of two scores.
    max_relative : float
        Largest relative difference: relative to the larger score of the row, or to the median size of a score where
        that is larger.
    worst : WorstRow or None
        The row with the largest difference.
    n_disagree : dict of str to int
        Number of rows by source whose relative difference exceeds the tolerance, not counting what sums in float32
        explain.
    same_structure : bool or None
        Whether the trees of both have the same shapes, so that leaves could be compared. None when not both are models
        whose trees are known.
    n_routing : dict of str to int
        Number of pairs of a row and a tree, by source, that the models send to different leaves.
    routing : tuple of RoutingDifference
        The first of these pairs.
    notes : tuple of str
        What was left out, and why.
    rounding : float, default 0
        Largest change of a score that summing in float32 explains, where one of the models sums so.
    """

    a: str
    b: str
    tolerance: float
    rows: dict[str, int]
    max_absolute: float
    max_relative: float
    worst: WorstRow | None
    n_disagree: dict[str, int]
    same_structure: bool | None
    n_routing: dict[str, int]
    routing: tuple[RoutingDifference, ...]
    notes: tuple[str, ...] = ()
    rounding: float = 0.0

    @property
    def agree(self) -> bool:
        """Whether no row exceeds the tolerance and none is sent to different leaves."""
        return not any(self.n_disagree.values()) and not any(self.n_routing.values())

    def __bool__(self) -> bool:
        return self.agree

    def as_dict(self) -> dict[str, Any]:
        """All fields and `agree`, for JSON: numbers that are not finite are texts."""
        return {"agree": self.agree, **_plain(asdict(self))}

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The result in words, as `rankwood verify` prints it."""
        n_rows = sum(self.rows.values())
        rows = ", ".join(f"{n:,} {source}" for source, n in self.rows.items())
        lines = [
            f"{self.a} and {self.b} {'agree' if self.agree else 'DISAGREE'} on {n_rows:,} rows ({rows})",
            f"largest difference of scores: {self.max_absolute:.3g}, relative {self.max_relative:.3g} "
            f"(tolerance {self.tolerance:g}{self._why_above()})",
        ]
        if self.worst is not None and self.max_absolute > 0:
            w = self.worst
            lines.append(f"it is on {w.source} row {w.row}: A {w.score_a!r}, B {w.score_b!r}")
        if any(self.n_disagree.values()):
            lines.append(f"rows above the tolerance: {_counts(self.n_disagree)}")
        if self.same_structure:
            total = sum(self.n_routing.values())
            lines.append(f"rows and trees sent to different leaves: {_counts(self.n_routing) if total else 'none'}")
        elif self.same_structure is False:
            lines.append("their trees have different shapes, so scores alone were compared")
        lines += [f"  {difference}" for difference in self.routing]
        if not self.agree and not self.n_disagree.get("float32") and not self.n_routing.get("float32"):
            lines.append(
                "they agree on all float32 rows at thresholds: if data is float32, compare with --float32 "
                '(in Python: dtype="float32")'
            )
        return [*lines, *(f"note: {note}" for note in self.notes)]

    def _why_above(self) -> str:
        """Why models agree although the largest relative difference is above the tolerance."""
        if not self.agree or self.max_relative <= self.tolerance:
            return ""
        return f"; no more than sums in float32 explain, which change scores by up to {self.rounding:.2g}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {source}" for source, n in counts.items() if n)


def _plain(value: Any) -> Any:
    """Value for JSON, which lacks infinities and NaN: they become texts."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value


# Sums in float32: what they are, and how far they can lie from the sum in float64.
#
# Libraries that give scores in float32 have mostly summed in it. The scores themselves tell in which order: when at
# least a quarter of them is, bit for bit, the float32 sum of the leaves in some known order, all scores are compared
# with that sum, and no difference can hide in the rounding. Otherwise the order is unknown, and a difference that some
# order can make is accepted.

UNIT = 2.0**-24  # largest relative change of a number that is rounded to float32
SMALLEST = 2.0**-150  # largest absolute change of a number that is too small for that
ENOUGH = 0.25  # share of the scores that tells the order: by chance so many are equal only if orders differ by 1e-7
BLOCK_VALUES = 1 << 22

# Orders of summing: from terms (rows x trees) and base, both in float32, to scores.
WAYS: tuple[Callable[[AnyArray, AnyArray], AnyArray], ...] = (
    lambda terms, base: np.cumsum(np.insert(terms, 0, base, axis=1), axis=1, dtype=np.float32)[:, -1],
    lambda terms, base: np.cumsum(np.insert(terms, 0, 0.0, axis=1), axis=1, dtype=np.float32)[:, -1] + base,
)


@dataclass(frozen=True, eq=False)
class SingleSums:
    """Scores of rows as summing in float32 would give them.

    Parameters
    ----------
    ways : tuple of array
        Scores by each of `WAYS`, then by summing in float64 and rounding once.
    bound : array
        Largest distance of a float32 sum, in any order, from the sum in float64.
    """

    ways: tuple[FloatArray, ...]
    bound: FloatArray


def single_sums(model: Ensemble, X: AnyArray, scores: FloatArray, *, n_threads: int | None = None) -> SingleSums:
    """Scores of the rows as sums in float32 would give them; `scores` are those in float64."""
    ways: list[list[AnyArray]] = [[] for _ in WAYS]
    sizes: list[AnyArray] = []
    base = np.float32(model.base)
    with np.errstate(over="ignore", invalid="ignore"):
        for terms in _terms(model, X, n_threads):
            single = terms.astype(np.float32)
            for sums, way in zip(ways, WAYS, strict=True):
                sums.append(way(single, base))
            sizes.append(np.abs(terms).sum(axis=1) + abs(model.base))
        once = scores.astype(np.float32).astype(np.float64)
        # n terms and a base take n additions. A term may be rounded twice before: as a leaf value and as a product.
        n_roundings = model.n_trees + 2
        relative = n_roundings * UNIT / (1.0 - n_roundings * UNIT) if n_roundings * UNIT < 1.0 else np.inf
        bound = relative * np.concatenate([np.zeros(0), *sizes]) + n_roundings * SMALLEST
    empty = np.zeros(0, dtype=np.float32)
    return SingleSums((*(np.concatenate([empty, *sums]).astype(np.float64) for sums in ways), once), bound)


def way_of(sums: list[SingleSums], scores: list[FloatArray]) -> int | None:
    """Index in `SingleSums.ways` of the way that gave these scores; None when no known way did."""
    n_rows = sum(map(len, scores))
    n_equal = [
        sum(int(np.count_nonzero(part.ways[way] == given)) for part, given in zip(sums, scores, strict=True))
        for way in range(len(WAYS) + 1)
    ]
    best = int(np.argmax(n_equal))
    return best if n_rows and n_equal[best] >= ENOUGH * n_rows else None


def _terms(model: Ensemble, X: AnyArray, n_threads: int | None) -> Iterator[AnyArray]:
    """Blocks of rows x trees: what each tree adds to the score of each row."""
    values = np.repeat(model.tree_weights, np.diff(model.leaf_offsets)) * model.leaf_value
    step = max(1, BLOCK_VALUES // max(1, model.n_trees))
    for first in range(0, len(X), step):
        yield values[model.leaf_offsets[:-1] + model.leaves(X[first : first + step], n_threads=n_threads)]


# Scorers: one interface to models, files, fitted learners, objects of other libraries and functions.


@dataclass(frozen=True, eq=False)
class Scorer:
    """Something that scores rows.

    Parameters
    ----------
    name : str
        Name for messages.
    score : callable
        From a matrix to one score per row, of type float32 if it sums in float32.
    ensemble : Ensemble, optional
        The model itself, when its thresholds and leaves are known.
    single : bool, default False
        Whether it rounds values to float32 before it compares them.
    remake : callable, optional
        From another model to the scorer that scores with it in the same way.
    """

    name: str
    score: Callable[[AnyArray], AnyArray]
    ensemble: Ensemble | None = None
    single: bool = False
    remake: Callable[[Ensemble], Scorer] | None = None

    def of(self, model: Ensemble) -> Scorer:
        """The scorer of this model, if it is another one than its own."""
        return self if model is self.ensemble or self.remake is None else self.remake(model)


def model_scorer(model: Ensemble, name: str, n_threads: int | None) -> Scorer:
    """Scorer of a model as rankwood scores it."""
    return Scorer(
        name,
        lambda X: model.score(X, n_threads=n_threads),
        model,
        remake=lambda other: model_scorer(other, name, n_threads),
    )


def as_scorer(model: Any, name: str, *, n_threads: int | None = None) -> Scorer:
    """Scorer made of anything that `verify` takes as a model."""
    if isinstance(model, (str, os.PathLike)):
        return as_scorer(load_model(model), os.path.basename(model), n_threads=n_threads)
    model = getattr(model, "ensemble_", model)
    if isinstance(model, Ensemble):
        return model_scorer(model, name, n_threads)
    library = package_of(model, LIBRARIES)
    shown = f"{name} ({type(model).__name__})"
    if library is not None:
        score, single = _of_library(model, library, shown)
    elif hasattr(model, "predict"):
        score, single = model.predict, False
    elif callable(model):
        score, single = model, False
    else:
        raise ModelError(f"{name} must be a model, a model file or have a predict method, got {type(model).__name__}")
    return Scorer(shown, lambda X: _as_scores(score(X), len(X), name), single=single)


def as_served(model: Any, engine: str, name: str, *, n_threads: int | None = None) -> Scorer:
    """Scorer that scores with a file, or with the model that `load_served` read from it, as a search engine does."""
    if isinstance(model, (str, os.PathLike)):
        model, name = load_served(model, engine), os.path.basename(model)
    if not isinstance(model, Ensemble):
        raise ModelError(f"{name} must be the file that {engine} serves, got {type(model).__name__}")
    return _served_scorer(model, engine, f"{name} in {SERVING[engine].title}", n_threads)


def _served_scorer(model: Ensemble, engine: str, name: str, n_threads: int | None) -> Scorer:
    """Scorer whose sums are in float32 where the engine's are."""
    source = source_of(model)
    sums_single = source.get("format") in SERVING[engine].sums_single

    def score(X: AnyArray) -> AnyArray:
        if not sums_single:
            return model.score(X, n_threads=n_threads)
        return single_sums(model, X, np.zeros(len(X)), n_threads=n_threads).ways[0].astype(np.float32)

    # Files of XGBoost are made for float32 values, whatever compares them.
    single = sums_single or source.get("tool") == "xgboost"
    return Scorer(name, score, model, single, lambda other: _served_scorer(other, engine, name, n_threads))


def _served_notes(model: Ensemble, engine: str) -> list[str]:
    """What a user must know of the engine, besides the comparison."""
    source = source_of(model)
    if source.get("format") == "solr" and source.get("missing") == "zero":
        return ["Solr takes a missing value for 0 in this model (isNullSameAsZero)"]
    if "ranklib" in (source.get("format"), str(source.get("type")).removeprefix("model/")):
        return [f"{SERVING[engine].title} takes a missing value for 0 in a model of RankLib"]
    if source.get("format") in SERVING[engine].sums_single and engine != "solr":
        return ["plugins from before 2024 take a missing value for 0; here it goes where the file says"]
    return []


Scoring: TypeAlias = tuple[Callable[[AnyArray], Any], bool]


def _of_library(model: Any, library: str, shown: str) -> Scoring:
    """Function that gives raw scores of another library's model, and whether it rounds values to float32."""
    try:
        return LIBRARIES[library](model)
    except MissingPackageError:
        raise
    except Exception as error:  # whatever the library raises, for instance because the model is not fitted
        raise ModelError(f"{shown} cannot score: {one_line(error, 200)}") from error


def _lightgbm(model: Any) -> Scoring:
    booster = getattr(model, "booster_", model)
    if not hasattr(booster, "model_to_string"):
        raise ModelError("it is not fitted")
    divisor = 1
    if "average_output" in booster.model_to_string(num_iteration=1):
        # A forest's raw score is a sum, but it predicts the mean of its trees, up to the best round.
        n_rounds = booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration()
        divisor = n_rounds * booster.num_model_per_iteration()
    return lambda X: booster.predict(X, raw_score=True) / divisor, False


def _xgboost(model: Any) -> Scoring:
    import xgboost

    booster = model.get_booster() if hasattr(model, "get_booster") else model
    # An estimator that stopped early predicts with its best rounds; a booster does not.
    best = None if booster is model else booster.attr("best_iteration")
    rounds = (0, 0) if best is None else (0, int(best) + 1)
    missing = getattr(model, "missing", np.nan)

    def score(X: AnyArray) -> Any:
        names, types = booster.feature_names, booster.feature_types
        matrix = xgboost.DMatrix(X, missing=missing, feature_names=names, feature_types=types)
        return booster.predict(matrix, output_margin=True, iteration_range=rounds)

    return score, True


def _catboost(model: Any) -> Scoring:
    from catboost import CatBoost

    # The base class's method: that of a ranker takes no type of prediction.
    return lambda X: CatBoost.predict(model, X, prediction_type="RawFormulaVal"), True


def _sklearn(model: Any) -> Scoring:
    module = next(base.__module__ for base in type(model).__mro__ if base.__module__.startswith("sklearn"))
    # All trees of scikit-learn except histogram boosting round to float32; estimators of users are not known to.
    single = "hist" not in module and not module.startswith("sklearn.base")
    if hasattr(model, "decision_function"):
        return model.decision_function, single
    if hasattr(model, "predict_proba"):
        n_classes = len(getattr(model, "classes_", (0, 1)))
        if n_classes != 2:
            raise ModelError(f"it has {n_classes} classes, not 2: a ranker has one score per document")
        return lambda X: model.predict_proba(X)[:, 1], single
    if getattr(model, "loss", None) in ("poisson", "gamma"):
        return lambda X: np.log(model.predict(X)), single
    if not hasattr(model, "predict"):
        raise ModelError("it has no predict method")
    return model.predict, single


def _onnxruntime(session: Any) -> Scoring:
    for entries, what in ((session.get_inputs(), "input"), (session.get_outputs(), "output")):
        if len(entries) != 1:
            raise ModelError(f"the ONNX graph has {len(entries)} {what}s, not one: it is no ranker")
    entry = session.get_inputs()[0]
    single = entry.type != "tensor(double)"
    dtype = np.float32 if single else np.float64
    return lambda X: session.run(None, {entry.name: X.astype(dtype)})[0], single


def _onnx(model: Any) -> Scoring:
    try:
        from onnxruntime import InferenceSession
    except ImportError:
        raise MissingPackageError("onnxruntime", "scoring with an ONNX model", "formats") from None
    return _onnxruntime(InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]))


def _ydf(model: Any) -> Scoring:
    raise ModelError("ydf takes named columns, not a matrix: give a function that makes them and calls its predict")


LIBRARIES: dict[str, Callable[[Any], Scoring]] = {
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
    "catboost": _catboost,
    "sklearn": _sklearn,
    "onnxruntime": _onnxruntime,
    "onnx": _onnx,
    "ydf": _ydf,
}


def _as_scores(values: Any, n_rows: int, name: str) -> AnyArray:
    """Scores as an array, one per row; those in float32 stay so, since that tells how they were summed."""
    scores = np.asarray(values)
    if scores.dtype != np.float32:
        scores = scores.astype(np.float64)
    if scores.shape == (n_rows, 1):
        scores = scores[:, 0]
    if scores.shape != (n_rows,):
        raise ModelError(f"{name} must give one score per row ({n_rows}), got shape {scores.shape}")
    return scores


# Routing: where two models with the same shapes of trees send a row to different leaves.

SHOWN = 10  # differences to describe


@dataclass(frozen=True)
class RoutingDifference:
    """A node at which models A and B send a row to different sides.

    Parameters
    ----------
    source, row : str, int
        The row, as in `WorstRow`.
    tree, node : int
        The node inside its tree, numbered as in A.
    feature, value : int, float
        The feature that the node splits on, and the row's value of it.
    threshold_a, threshold_b : float
        Thresholds of the node; of a split on a set the first ones.
    left_a, left_b : bool
        Whether each model sends the row left.
    split_a, split_b : str
        What the node asks, in words: its threshold, or its set.
    name : str or None
        Name of the feature.
    """

    source: str
    row: int
    tree: int
    node: int
    feature: int
    value: float
    threshold_a: float
    threshold_b: float
    left_a: bool
    left_b: bool
    split_a: str = ""
    split_b: str = ""
    name: str | None = None

    def __str__(self) -> str:
        a, b = (("left" if left else "right") for left in (self.left_a, self.left_b))
        feature = f"feature {self.feature + 1} (from 1)" if self.name is None else one_line(self.name)
        return (
            f"{self.source} row {self.row}: tree {self.tree}, node {self.node}: {feature} = {self.value!r}"
            f"; A goes {a} ({self.split_a}), B goes {b} ({self.split_b})"
        )


def _split_in_words(model: Ensemble, node: int) -> str:
    """What an inner node asks: its threshold, or the numbers that its set sends right."""
    thresholds = model.trees.thresholds_of(node)
    if len(thresholds) == 1:
        return f"threshold {float(thresholds[0])!r}"
    members = whole_members(thresholds)
    if members is not None:
        return f"categories {_listed(list(map(str, members.tolist())))} go right"
    ends = [repr(end) for end in thresholds.tolist()] + ["inf"] * (len(thresholds) % 2)
    pieces = [f"above {low} up to {high}" for low, high in zip(ends[::2], ends[1::2], strict=True)]
    return f"a set, {_listed(pieces)}, goes right"


def _listed(words: list[str], most: int = 5) -> str:
    """Words in a row, the first few of many."""
    return ", ".join(words[:most]) + (f" and {len(words) - most:,} more" if len(words) > most else "")


@dataclass(frozen=True, eq=False)
class Routes:
    """Two models whose trees have the same shapes, though nodes and leaves may be numbered differently.

    Parameters
    ----------
    a, b : Ensemble
    partner : array of int
        For each leaf of A, the number inside its tree of the leaf of B at the same place.
    """

    a: Ensemble
    b: Ensemble
    partner: IndexArray

    @classmethod
    def of(cls, a: Ensemble, b: Ensemble) -> Routes | None:
        """Routes of two models; None when the shapes of their trees differ."""
        if a.n_trees != b.n_trees or not np.array_equal(a.node_offsets, b.node_offsets):
            return None
        shape_a, rank_a = _shape(a)
        shape_b, rank_b = _shape(b)
        if shape_a != shape_b:
            return None
        starts = np.repeat(a.leaf_offsets[:-1], np.diff(a.leaf_offsets))
        by_rank = np.empty_like(rank_b)
        by_rank[starts + rank_b] = np.arange(b.n_leaves) - starts
        return cls(a, b, by_rank[starts + rank_a])

    def differences(
        self, X: AnyArray, source: str, *, n_threads: int | None = None
    ) -> tuple[int, list[RoutingDifference]]:
        """Number of pairs of a row and a tree that end in different leaves, and a description of the first few."""
        first, second = (model.leaves(X, n_threads=n_threads) for model in (self.a, self.b))
        starts = self.a.leaf_offsets
        if not np.array_equal(self.partner, np.arange(self.a.n_leaves) - np.repeat(starts[:-1], np.diff(starts))):
            first = first.copy()
            for tree in range(self.a.n_trees):
                first[:, tree] = self.partner[starts[tree] : starts[tree + 1]][first[:, tree]]
        places = np.argwhere(first != second)
        return len(places), [
            self._describe(X[row], int(row), int(tree), source) for row, tree in places[:SHOWN].tolist()
        ]

    def _describe(self, values: AnyArray, row: int, tree: int, source: str) -> RoutingDifference:
        """The node of a tree at which the models send a row to different sides."""
        start = int(self.a.node_offsets[tree])
        here = there = start
        while True:
            left_a, left_b = _goes_left(self.a, here, values), _goes_left(self.b, there, values)
            if left_a != left_b:
                feature, names = int(self.a.feature[here]), self.a.feature_names
                return RoutingDifference(
                    source, row, tree, here - start, feature, float(values[feature]),
                    float(self.a.threshold[here]), float(self.b.threshold[there]), left_a, left_b,
                    _split_in_words(self.a, here), _split_in_words(self.b, there),
                    None if names is None else names[feature],
                )  # fmt: skip
            here = start + int((self.a.left if left_a else self.a.right)[here])
            there = start + int((self.b.left if left_b else self.b.right)[there])


def _goes_left(model: Ensemble, node: int, values: Any) -> bool:
    return model.trees.goes_left(node, float(values[model.feature[node]]))


def _shape(model: Ensemble) -> tuple[bytes, NDArray[np.int64]]:
    """Nodes of all trees in preorder, 1 for a leaf and 0 for others; and the rank of each leaf in its tree."""
    shape, rank = bytearray(), np.zeros(model.n_leaves, dtype=np.int64)
    left, right = model.left.tolist(), model.right.tolist()
    for tree, (start, stop) in enumerate(
        zip(model.node_offsets[:-1].tolist(), model.node_offsets[1:].tolist(), strict=True)
    ):
        pending, met = [0 if stop > start else -1], 0
        while pending:
            child = pending.pop()
            shape.append(child < 0)
            if child < 0:
                rank[start + tree + ~child] = met
                met += 1
            else:
                pending += [right[start + child], left[start + child]]
    return bytes(shape), rank


# `verify` itself.

MAX_VALUES = 2**25  # in a matrix of rows at thresholds
TOLERANCE = 1e-6

Categories: TypeAlias = Literal["auto", "whole", "any"]


def verify(
    a: Any,
    b: Any,
    data: Any = None,
    *,
    tolerance: float = TOLERANCE,
    dtype: Literal["float32"] | None = None,
    max_rows: int = MAX_ROWS,
    seed: int = 0,
    n_threads: int | None = None,
    names: tuple[str, str] = ("A", "B"),
    served_by: str | None = None,
    missing: Literal["compare", "ignore"] = "compare",
    categories: Categories = "auto",
) -> Verification:
    """Compare the scores of two models on data and on rows at their thresholds.

    The rows try every threshold of each feature, one step of float32 and of float64 to either side, NaN, infinities and
    zeros of both signs; and for every node there are rows that reach it with values at its threshold. Libraries that
    round to float32 get float32 rows alone. Rows that a library refuses are left out, with a note.

    Models agree when no two scores differ by more than `tolerance` and, if their trees have the same shapes, every row
    reaches the same leaves. What summing in float32 changes is no difference.

    Parameters
    ----------
    a, b : Ensemble, path, fitted learner or object
        The models. Also taken: models of LightGBM, XGBoost, CatBoost and scikit-learn, ONNX models and onnxruntime
        sessions, anything else with `predict`, and functions of a matrix. Without data, one must be an Ensemble, a
        file or a fitted learner of rankwood, whose thresholds are known.
    data : Dataset or matrix, optional
        Rows to compare on, besides those at thresholds.
    tolerance : float, default 1e-6
        Largest difference of two scores that is accepted, relative to the larger one or, where that is larger, to the
        median size of a score.
    dtype : {"float32"}, optional
        Compare on float32 values only.
    max_rows : int, default 40000
        Largest number of rows at thresholds, of each type.
    seed : int, default 0
        Seed for the values of these rows that are left to chance.
    n_threads : int, optional
        Number of threads; every CPU unless given.
    names : tuple of str, default ("A", "B")
        Names of the models in the result.
    served_by : {"solr", "elasticsearch", "opensearch", "vespa"}, optional
        Search engine that `b` is deployed in: a file, or a model that `load_served` read from it. It is read and scored
        as the engine does that: comparisons, float32 sums and missing values included.
    missing : {"compare", "ignore"}, default "compare"
        Whether rows with missing values are compared; "ignore" leaves them out, where no value is ever missing.
    categories : {"auto", "whole", "any"}, default "auto"
        What rows at thresholds have of a feature that only splits on categories look at: whole numbers from 0 on and
        missing values ("whole"), or also what lies between, which tools take for one category or another ("any").
        "auto" is the former for features whose categories the two models bound differently. A note names them.

    Returns
    -------
    Verification
        The differences that were found; true when the models agree.

    Raises
    ------
    ModelError
        If a model cannot score, or both are of different numbers of features.

    Examples
    --------
    >>> import rankwood as rw
    >>> one = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    >>> print(rw.verify(one, rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])))
    A and B agree on 556 rows (278 float32, 278 float64)
    largest difference of scores: 0, relative 0 (tolerance 1e-06)
    rows and trees sent to different leaves: none
    >>> bool(rw.verify(one, rw.Ensemble.from_trees([(0, 0.5000001, 1.0, 2.0)])))
    False
    """
    if dtype not in (None, "float32"):
        raise RankwoodError(f"dtype must be None or 'float32', got {dtype!r}")
    if missing not in ("compare", "ignore"):
        raise RankwoodError(f"missing must be 'compare' or 'ignore', got {missing!r}")
    if categories not in ("auto", "whole", "any"):
        raise RankwoodError(f"categories must be 'auto', 'whole' or 'any', got {categories!r}")
    first = as_scorer(a, names[0], n_threads=n_threads)
    second = (
        as_scorer(b, names[1], n_threads=n_threads)
        if served_by is None
        else as_served(b, served_by, names[1], n_threads=n_threads)
    )
    if first.ensemble is None and second.ensemble is None and data is None:
        raise ModelError("neither is a model whose thresholds are known: give data to compare them on")
    first, second = _aligned(first, second)
    notes = [] if served_by is None or second.ensemble is None else _served_notes(second.ensemble, served_by)
    single = dtype == "float32" or first.single or second.single
    models = [scorer.ensemble for scorer in (first, second) if scorer.ensemble is not None]
    routes = Routes.of(*models) if len(models) == 2 else None
    found = _Found(first, second, routes, n_threads, notes)
    for source, X in _matrices(models, data, single, max_rows, seed, notes, categories):
        if missing == "ignore":
            X = X[~np.isnan(X).any(axis=1)]
        if served_by == "solr" and first.ensemble is not None:
            X = _comparable_in_solr(first.ensemble, X, notes, n_threads)
        found.compare(source, X)
    return found.result(tolerance, len(models) == 2)


def _comparable_in_solr(model: Ensemble, X: AnyArray, notes: list[str], n_threads: int | None) -> AnyArray:
    """Rows without those that no file can make Solr route as the model does, as it adds 1e-6 to thresholds."""
    model = without_sets(model)  # which Solr has not
    reached = solr_thresholds(model.threshold)[1].astype(np.float64)  # of float32 values, as Solr takes them
    nearest = model.replace(threshold=reached)
    same = (model.leaves(X, n_threads=n_threads) == nearest.leaves(X, n_threads=n_threads)).all(axis=1)
    if not same.all():
        gap = float(np.abs(reached - round_down(model.threshold)).max())
        notes.append(
            f"{np.count_nonzero(~same):,} rows were left out: values within {gap:.2g} of thresholds that Solr cannot "
            "compare with, as it adds 1e-6 to them in float32"
        )
    kept: AnyArray = X[same]
    return kept


class _Found:
    """Collects scores and routing differences of the two models, source by source."""

    def __init__(self, a: Scorer, b: Scorer, routes: Routes | None, n_threads: int | None, notes: list[str]) -> None:
        self.a, self.b, self.routes, self.n_threads, self.notes = a, b, routes, n_threads, notes
        self.scores: dict[str, tuple[AnyArray, FloatArray, FloatArray]] = {}  # rows, and scores by A and by B
        # Where one of them gives scores in float32 and the leaves of the other are known.
        self.sums: dict[str, SingleSums] = {}
        self.n_routing: dict[str, int] = {}
        self.routing: list[RoutingDifference] = []

    def compare(self, source: str, X: AnyArray) -> None:
        """Score the rows with both models, and keep scores and routing differences."""
        rows, scores_a = _score(self.a, X, np.arange(len(X)), self.notes)
        kept, scores_b = _score(self.b, X, rows, self.notes)
        if len(X) and not len(kept):
            raise ModelError(f"{self.a.name} and {self.b.name} have no row in common that both can score")
        scores_a = scores_a[np.isin(rows, kept)]
        for ours, theirs, model in ((scores_a, scores_b, self.a.ensemble), (scores_b, scores_a, self.b.ensemble)):
            if model is not None and theirs.dtype == np.float32:
                self.sums[source] = single_sums(model, X[kept], ours, n_threads=self.n_threads)
        self.scores[source] = kept, scores_a.astype(np.float64), scores_b.astype(np.float64)
        if self.routes is not None:
            self.n_routing[source], differences = self.routes.differences(X, source, n_threads=self.n_threads)
            self.routing += differences[: SHOWN - len(self.routing)]

    def result(self, tolerance: float, both_models: bool) -> Verification:
        """The verification of all that was compared."""
        typical = np.concatenate([np.zeros(0), *(np.abs(scores) for _, scores, _ in self.scores.values())])
        scale = float(np.median(typical)) if len(typical) else 0.0
        worst: WorstRow | None = None
        max_absolute = max_relative = rounding = 0.0
        n_disagree: dict[str, int] = {}
        way = self._way()
        for source, (rows, scores_a, scores_b) in self.scores.items():
            absolute, relative = _differences(scores_a, scores_b, scale)
            unexplained, allowed = self._unexplained(source, way, scale)
            n_disagree[source] = int(np.count_nonzero(~(unexplained <= tolerance)))
            rounding = max(rounding, float(allowed.max(initial=0.0)))
            max_relative = max(max_relative, float(relative.max(initial=0.0)))
            if len(rows) and (worst is None or absolute.max() > max_absolute):
                at = int(absolute.argmax())
                worst = WorstRow(source, int(rows[at]), float(scores_a[at]), float(scores_b[at]))
            max_absolute = max(max_absolute, float(absolute.max(initial=0.0)))
        return Verification(
            a=self.a.name,
            b=self.b.name,
            tolerance=tolerance,
            rows={source: len(rows) for source, (rows, _, _) in self.scores.items()},
            max_absolute=max_absolute,
            max_relative=max_relative,
            worst=worst,
            n_disagree=n_disagree,
            same_structure=self.routes is not None if both_models else None,
            n_routing=self.n_routing,
            routing=tuple(self.routing),
            notes=tuple(
                dict.fromkeys(
                    [
                        *self.notes,
                        *self._rounding_note(way, rounding),
                        *self._constant_note(n_disagree, tolerance, scale),
                    ]
                )
            ),
            rounding=rounding,
        )

    @property
    def _given(self) -> int:
        """Position, 0 or 1, of the model that may give scores in float32: the one whose leaves are not known."""
        return 1 if self.a.ensemble is not None else 0

    def _way(self) -> int | None:
        return way_of(list(self.sums.values()), [self.scores[source][1 + self._given] for source in self.sums])

    def _unexplained(self, source: str, way: int | None, scale: float) -> tuple[FloatArray, FloatArray]:
        """Relative difference of each row that sums in float32 do not explain, and the absolute one that they do.

        If the way of summing is known, scores are compared with that very sum; else with the bound for any way.
        """
        scores = self.scores[source][1:]
        ours, theirs = scores[1 - self._given], scores[self._given]
        sums = self.sums.get(source)
        if sums is None:
            return _differences(ours, theirs, scale)[1], np.zeros(0)
        if way is not None:
            single = sums.ways[way]
            return _differences(single, theirs, scale)[1], _differences(ours, single, scale)[0]
        absolute, relative = _differences(ours, theirs, scale)
        return np.where(absolute <= sums.bound, 0.0, relative), sums.bound

    def _rounding_note(self, way: int | None, rounding: float) -> list[str]:
        if not rounding:
            return []
        name = (self.a, self.b)[self._given].name
        how = "they are compared with such a sum" if way is not None else "as much is let pass, its order is not known"
        return [f"{name} sums in float32, which alone changes scores by up to {rounding:.2g}: {how}"]

    def _constant_note(self, n_disagree: dict[str, int], tolerance: float, scale: float) -> list[str]:
        """That all scores differ by the same number, if they do."""
        if not any(n_disagree.values()) or any(self.n_routing.values()):
            return []
        a, b = (np.concatenate([part[which] for part in self.scores.values()]) for which in (1, 2))
        with np.errstate(invalid="ignore", over="ignore"):
            constant = float(np.median(b - a))
            if len(a) < 2 or not constant or not (_differences(a + constant, b, scale)[1] <= tolerance).all():
                return []
        return [
            f"B's scores are A's {'plus' if constant > 0 else 'less'} {abs(constant):.6g} in every row: a constant, "
            "such as XGBoost's base score, which its dump does not hold; the order of documents is the same"
        ]


def _differences(a: FloatArray, b: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """Absolute and relative differences of scores; NaN differs infinitely from any number, and not from NaN."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        absolute = np.abs(a - b)
        relative = absolute / np.maximum(np.maximum(np.abs(a), np.abs(b)), scale)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    odd = ~same & np.isnan(absolute + relative)
    for values in (absolute, relative):
        values[same], values[odd] = 0.0, np.inf
    return absolute, relative


def _score(scorer: Scorer, X: AnyArray, rows: AnyArray, notes: list[str]) -> tuple[AnyArray, AnyArray]:
    """Rows that the scorer takes, and their scores: if it fails, without infinities, then also without NaN."""
    reason = ""
    for kind, keep in (
        ("", np.ones(len(rows), dtype=bool)),
        ("infinities", ~np.isinf(X[rows]).any(axis=1)),
        ("infinities or NaN", np.isfinite(X[rows]).all(axis=1)),
    ):
        try:
            if not keep.any() and len(rows):
                continue
            scores = scorer.score(X[rows[keep]])
        except RankwoodError:
            raise
        except Exception as error:
            if scorer.ensemble is not None:
                raise
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            continue
        if kind:
            n_out = len(rows) - int(keep.sum())
            notes.append(f"{scorer.name} refuses rows with {kind}; {n_out} were left out: {reason[:200]}")
        return rows[keep], scores
    raise ModelError(f"{scorer.name} cannot score: {reason[:500]}")


def _aligned(first: Scorer, second: Scorer) -> tuple[Scorer, Scorer]:
    """Scorers of models of the same features, in the same order, when both models name them."""
    a, b = first.ensemble, second.ensemble
    if a is None or b is None or a.feature_names is None or b.feature_names is None:
        return first, second
    a, b = widen(a, 0, b.feature_names), widen(b, 0, a.feature_names)  # if a file names only what it uses
    names = a.feature_names or ()
    order = column_order(names, b.feature_names, first.name)
    if order is not None:
        b = b.replace(feature=np.array(order, dtype=np.int32)[b.feature], feature_names=names)
    return first.of(a), second.of(b)


def _matrices(
    models: list[Ensemble],
    data: Any,
    single: bool,
    max_rows: int,
    seed: int,
    notes: list[str],
    categories: Categories,
) -> Iterator[tuple[str, AnyArray]]:
    """Matrices of rows to compare on, each with its source."""
    widths = {model.n_features for model in models}
    if len(widths) > 1:
        raise ModelError(
            f"the models are of {' and '.join(map(str, sorted(widths)))} features: they read different data"
        )
    if data is not None:
        X = _features(data, models)
        if widths and X.shape[1] not in widths:
            raise DataError(f"the data has {X.shape[1]} features but the model was built on {widths.pop()}")
        with np.errstate(over="ignore"):
            yield "data", X.astype(np.float32) if single and X.dtype != np.float32 else X
    if models:
        room = max(1000, min(max_rows, MAX_VALUES // max(1, *widths)))
        rows = adversarial_rows(models, max_rows=room, seed=seed)
        left = [
            what for what, all_of in (("thresholds", rows.every_threshold), ("nodes", rows.every_node)) if not all_of
        ]
        if left:
            notes.append(f"{room:,} rows cannot try all {' and '.join(left)}: those tried were left to chance")
        whole = _whole_features(models, categories)
        if whole:
            names = models[0].feature_names
            listed = _listed([f"feature {f + 1} (from 1)" if names is None else one_line(names[f]) for f in whole])
            notes.append(
                f"{listed}: categories, of which rows at thresholds have whole numbers from 0 on or nothing, as tools "
                "do not agree on other numbers"
            )
        yield "float32", _with_whole(rows.single, whole)
        if not single:
            yield "float64", _with_whole(rows.double, whole)


def _whole_features(models: list[Ensemble], categories: Categories) -> list[int]:
    """Features of which rows at thresholds get categories alone."""
    if categories == "any" or (categories == "auto" and len(models) < 2):
        return []
    of_models = [_category_features(model) for model in models]
    if categories == "whole":
        return sorted(set[int]().union(*of_models))
    both = set.intersection(*of_models)
    bounds = [model.trees.all_thresholds() for model in models]

    def is_bounded_alike(feature: int) -> bool:
        a, b = (np.unique(thresholds[features == feature]) for features, thresholds in bounds)
        return np.array_equal(a, b)

    return sorted(feature for feature in both if not is_bounded_alike(feature))


def _category_features(model: Ensemble) -> set[int]:
    """Features that only splits on sets of categories look at: of whole numbers from 0 on."""
    trees, others = model.trees, model.trees.set_sizes == 0
    for node in trees.set_nodes.tolist():
        others[node] = whole_members(trees.thresholds_of(node)) is None
    return set(model.feature.tolist()) - set(model.feature[others].tolist())


def _with_whole(rows: AnyArray, features: list[int]) -> AnyArray:
    """Rows whose values of these features are categories: whole numbers from 0 on, and NaN for infinities."""
    values = rows[:, features]
    with np.errstate(invalid="ignore"):
        rows[:, features] = np.where(np.isinf(values), np.nan, np.maximum(np.trunc(values), 0.0))
    return rows


def _features(data: Any, models: list[Ensemble]) -> AnyArray:
    """Matrix of the data in float32 or float64, with columns in the order of the models' names."""
    names = next((model.feature_names for model in models if model.feature_names is not None), None)
    if isinstance(data, Dataset):
        X, order = data.X, column_order(data.feature_names, names)
    else:
        X, order = as_array(data), column_order(feature_names_of(data), names)
    X = X if order is None else X[:, order]
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
