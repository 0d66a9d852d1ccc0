"""Whether two models score alike: scores and routes compared, source by source of rows."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import ModelError, RankwoodError
from rankwood.formats.registry import widen
from rankwood.formats.search_engines import solr_thresholds
from rankwood.matrix import column_order
from rankwood.model.ensemble import Ensemble
from rankwood.model.unfold import without_sets
from rankwood.scoring.agreement import MAX_ROWS
from rankwood.scoring.c_source import round_down
from rankwood.verification.result import Verification, WorstRow
from rankwood.verification.routing import SHOWN, Routes, RoutingDifference
from rankwood.verification.rows import Categories, matrices
from rankwood.verification.scorers import Scorer, as_scorer, as_served, served_notes
from rankwood.verification.single_sums import SingleSums, single_sums, way_of

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
    notes = [] if served_by is None or second.ensemble is None else served_notes(second.ensemble, served_by)
    single = dtype == "float32" or first.single or second.single
    models = [scorer.ensemble for scorer in (first, second) if scorer.ensemble is not None]
    routes = Routes.of(*models) if len(models) == 2 else None
    found = _Found(first, second, routes, n_threads, notes)
    for source, X in matrices(models, data, single, max_rows, seed, notes, categories):
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
