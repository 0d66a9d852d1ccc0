"""`verify`: score two models on data and on adversarial rows, and compare scores and leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from rankwood.adversarial import MAX_ROWS, adversarial_rows
from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray, FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import DataError, ModelError, RankwoodError
from rankwood.matrix import as_array, feature_names_of
from rankwood.rows import column_order
from rankwood.verification.result import Verification, WorstRow
from rankwood.verification.rounding import SingleSums, single_sums, way_of
from rankwood.verification.routing import SHOWN, Routes, RoutingDifference
from rankwood.verification.scorers import Scorer, as_scorer

MAX_VALUES = 2**25  # of a matrix of rows
TOLERANCE = 1e-6


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
) -> Verification:
    """Compare the scores of two models on `data` (a Dataset or a matrix) and on rows at their thresholds.

    A model is an Ensemble, a model file, a fitted learner, a model of LightGBM, XGBoost, CatBoost or scikit-learn, an
    onnxruntime session, anything with `predict`, or a function of a matrix. One must be an Ensemble or a file, unless
    there is data. The rows try every threshold of each feature, one step of float32 and of float64 to either side, NaN,
    infinities and zeros of both signs, and meet every node's threshold where they get to it; at most `max_rows` of each
    type. Libraries that round to float32 get float32 rows alone, as do all with dtype="float32". Rows that a library
    refuses are left out, with a note.

    Models agree when no two scores differ by more than `tolerance`, relative to the larger or, when that is larger, to
    the median size of a score; and, when their trees have the same shapes, when every row reaches the same leaves. Of
    scores in float32, what comes of summing in float32 is no difference.

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
    first, second = (as_scorer(model, name, n_threads=n_threads) for model, name in zip((a, b), names, strict=True))
    if first.ensemble is None and second.ensemble is None and data is None:
        raise ModelError("neither is a model whose thresholds are known: give data to compare them on")
    second = _aligned(first, second, n_threads)
    notes: list[str] = []
    single = dtype == "float32" or first.single or second.single
    models = [scorer.ensemble for scorer in (first, second) if scorer.ensemble is not None]
    routes = Routes.of(*models) if len(models) == 2 else None
    found = _Found(first, second, routes, n_threads, notes)
    for source, X in _matrices(models, data, single, max_rows, seed, notes):
        found.compare(source, X)
    return found.result(tolerance, len(models) == 2)


class _Found:
    """Scores and routing differences, as they come in."""

    def __init__(self, a: Scorer, b: Scorer, routes: Routes | None, n_threads: int | None, notes: list[str]) -> None:
        self.a, self.b, self.routes, self.n_threads, self.notes = a, b, routes, n_threads, notes
        self.scores: dict[str, tuple[AnyArray, FloatArray, FloatArray]] = {}  # rows and their scores by A and by B
        self.sums: dict[
            str, SingleSums
        ] = {}  # where one of them has scores in float32 and the other's leaves are known
        self.n_routing: dict[str, int] = {}
        self.routing: list[RoutingDifference] = []

    def compare(self, source: str, X: AnyArray) -> None:
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
            notes=tuple(dict.fromkeys([*self.notes, *self._rounding_note(way, rounding)])),
            rounding=rounding,
        )

    @property
    def _given(self) -> int:
        """Which of the two, 0 or 1, may have scores in float32: the one whose leaves are not known."""
        return 1 if self.a.ensemble is not None else 0

    def _way(self) -> int | None:
        return way_of(list(self.sums.values()), [self.scores[source][1 + self._given] for source in self.sums])

    def _unexplained(self, source: str, way: int | None, scale: float) -> tuple[FloatArray, FloatArray]:
        """Of each row, the relative difference that sums in float32 do not explain, and the absolute one that they do.

        With the way of summing known, scores are held against that very sum; else against the worst of all."""
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


def _differences(a: FloatArray, b: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """Absolute and relative; a score that one of them does not give (NaN) differs infinitely from one that it does."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        absolute = np.abs(a - b)
        relative = absolute / np.maximum(np.maximum(np.abs(a), np.abs(b)), scale)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    odd = ~same & np.isnan(absolute + relative)
    for values in (absolute, relative):
        values[same], values[odd] = 0.0, np.inf
    return absolute, relative


def _score(scorer: Scorer, X: AnyArray, rows: AnyArray, notes: list[str]) -> tuple[AnyArray, AnyArray]:
    """Scores, and of which rows: those with infinities, then NaN are left out if the scorer fails on them."""
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


def _aligned(first: Scorer, second: Scorer, n_threads: int | None) -> Scorer:
    """The second model with its features in the order of the first, when both have names."""
    a, b = first.ensemble, second.ensemble
    if a is None or b is None or a.feature_names is None or b.feature_names is None:
        return second
    order = column_order(a.feature_names, b.feature_names)
    if order is None:
        return second
    moved = b.replace(feature=np.array(order, dtype=np.int32)[b.feature], feature_names=a.feature_names)
    return as_scorer(moved, second.name, n_threads=n_threads)


def _matrices(
    models: list[Ensemble], data: Any, single: bool, max_rows: int, seed: int, notes: list[str]
) -> Iterator[tuple[str, AnyArray]]:
    """Rows to compare on, by source."""
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
        yield "float32", rows.single
        if not single:
            yield "float64", rows.double


def _features(data: Any, models: list[Ensemble]) -> AnyArray:
    names = next((model.feature_names for model in models if model.feature_names is not None), None)
    if isinstance(data, Dataset):
        X, order = data.X, column_order(data.feature_names, names)
    else:
        X, order = as_array(data), column_order(feature_names_of(data), names)
    X = X if order is None else X[:, order]
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
