"""Scorers: one interface to models, files, fitted learners, objects of other libraries and functions."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.errors import MissingPackageError, ModelError, one_line
from rankwood.formats.registry import SERVING, load_model, load_served, package_of, source_of
from rankwood.model.ensemble import Ensemble
from rankwood.verification.single_sums import single_sums


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


def served_notes(model: Ensemble, engine: str) -> list[str]:
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
