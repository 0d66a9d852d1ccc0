"""Whatever gives scores, behind one face: models, files, fitted learners, objects of other libraries, functions."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.ensemble import Ensemble
from rankwood.errors import MissingPackageError, ModelError, one_line
from rankwood.formats.registry import load_model, package_of


@dataclass(frozen=True, eq=False)
class Scorer:
    """Something that scores rows.

    name      what to call it
    score     from a matrix to one score per row, in float32 if that is what it sums in
    ensemble  the model, when it is one of ours: its thresholds and leaves are known
    single    whether it rounds values to float32 before it compares them
    """

    name: str
    score: Callable[[AnyArray], AnyArray]
    ensemble: Ensemble | None = None
    single: bool = False


def as_scorer(model: Any, name: str, *, n_threads: int | None = None) -> Scorer:
    """A scorer made of an Ensemble, a model file, a fitted learner, a model of LightGBM, XGBoost, CatBoost or
    scikit-learn, an ONNX model or onnxruntime session, anything else with `predict`, or a function of a matrix."""
    if isinstance(model, (str, os.PathLike)):
        return as_scorer(load_model(model), os.path.basename(model), n_threads=n_threads)
    model = getattr(model, "ensemble_", model)
    if isinstance(model, Ensemble):
        ensemble = model
        return Scorer(name, lambda X: ensemble.score(X, n_threads=n_threads), ensemble)
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


Scoring: TypeAlias = tuple[Callable[[AnyArray], Any], bool]


def _of_library(model: Any, library: str, shown: str) -> Scoring:
    """How a model of another library gives raw scores, and whether it rounds values to float32."""
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
        # A forest's raw score is a sum; ours, and what it predicts, is the mean of the trees up to the best round.
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

    # The base class's: the ranker's own takes no type of prediction, since it has but one.
    return lambda X: CatBoost.predict(model, X, prediction_type="RawFormulaVal"), True


def _sklearn(model: Any) -> Scoring:
    module = next(base.__module__ for base in type(model).__mro__ if base.__module__.startswith("sklearn"))
    # Trees but those on histograms hold float32; what the user has built on scikit-learn's base does as it likes.
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
    """One score per row. Scores in float32 stay so: that tells how they were summed."""
    scores = np.asarray(values)
    if scores.dtype != np.float32:
        scores = scores.astype(np.float64)
    if scores.shape == (n_rows, 1):
        scores = scores[:, 0]
    if scores.shape != (n_rows,):
        raise ModelError(f"{name} must give one score per row ({n_rows}), got shape {scores.shape}")
    return scores
