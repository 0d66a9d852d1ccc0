"""Whatever gives scores, behind one face: models, files, fitted learners, objects of other libraries, functions."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError


@dataclass(frozen=True, eq=False)
class Scorer:
    """Something that scores rows.

    name      what to call it
    score     from a matrix to one score per row
    ensemble  the model, when it is one of ours: its thresholds and leaves are known
    single    whether it rounds values to float32 before it compares them
    """

    name: str
    score: Callable[[AnyArray], FloatArray]
    ensemble: Ensemble | None = None
    single: bool = False


def as_scorer(model: Any, name: str, *, n_threads: int | None = None) -> Scorer:
    """A scorer made of an Ensemble, a model file, a fitted learner, a model of LightGBM, XGBoost, CatBoost or
    scikit-learn, an onnxruntime session, anything else with `predict`, or a function of a matrix."""
    if isinstance(model, (str, os.PathLike)):
        import rankwood

        return as_scorer(rankwood.load_model(model), os.path.basename(model), n_threads=n_threads)
    model = getattr(model, "ensemble_", model)
    if isinstance(model, Ensemble):
        ensemble = model
        return Scorer(name, lambda X: ensemble.score(X, n_threads=n_threads), ensemble)
    library = type(model).__module__.split(".")[0]
    if library in LIBRARIES:
        score, single = LIBRARIES[library](model)
    elif hasattr(model, "predict"):
        score, single = model.predict, False
    elif callable(model):
        score, single = model, False
    else:
        raise ModelError(f"{name} must be a model, a model file or have a predict method, got {type(model).__name__}")
    return Scorer(f"{name} ({type(model).__name__})", lambda X: _as_scores(score(X), len(X), name), single=single)


def _lightgbm(model: Any) -> tuple[Callable[[AnyArray], Any], bool]:
    booster = getattr(model, "booster_", model)
    # A forest's raw score is a sum; ours, and what it predicts, is the mean.
    divisor = booster.num_trees() if "average_output" in booster.model_to_string(num_iteration=1) else 1
    return lambda X: booster.predict(X, raw_score=True) / divisor, False


def _xgboost(model: Any) -> tuple[Callable[[AnyArray], Any], bool]:
    import xgboost

    booster = model.get_booster() if hasattr(model, "get_booster") else model
    # An estimator that stopped early predicts with its best rounds; a booster does not.
    best = None if booster is model else booster.attr("best_iteration")
    rounds = (0, 0) if best is None else (0, int(best) + 1)

    def score(X: AnyArray) -> Any:
        matrix = xgboost.DMatrix(X, feature_names=booster.feature_names, feature_types=booster.feature_types)
        return booster.predict(matrix, output_margin=True, iteration_range=rounds)

    return score, True


def _catboost(model: Any) -> tuple[Callable[[AnyArray], Any], bool]:
    return lambda X: model.predict(X, prediction_type="RawFormulaVal"), True


def _sklearn(model: Any) -> tuple[Callable[[AnyArray], Any], bool]:
    single = "hist" not in type(model).__module__  # trees but those on histograms hold float32
    if hasattr(model, "decision_function"):
        return model.decision_function, single
    if hasattr(model, "predict_proba"):
        return lambda X: model.predict_proba(X)[:, 1], single
    if getattr(model, "loss", None) in ("poisson", "gamma"):
        return lambda X: np.log(model.predict(X)), single
    return model.predict, single


def _onnxruntime(session: Any) -> tuple[Callable[[AnyArray], Any], bool]:
    entry = session.get_inputs()[0]
    single = entry.type != "tensor(double)"
    dtype = np.float32 if single else np.float64
    return lambda X: session.run(None, {entry.name: X.astype(dtype)})[0], single


LIBRARIES: dict[str, Callable[[Any], tuple[Callable[[AnyArray], Any], bool]]] = {
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
    "catboost": _catboost,
    "sklearn": _sklearn,
    "onnxruntime": _onnxruntime,
}


def _as_scores(values: Any, n_rows: int, name: str) -> FloatArray:
    scores = np.asarray(values, dtype=np.float64)
    if scores.shape == (n_rows, 1):
        scores = scores[:, 0]
    if scores.shape != (n_rows,):
        raise ModelError(f"{name} must give one score per row ({n_rows}), got shape {scores.shape}")
    return scores
