"""Other tools that score trees, one small class each.

`convert` brings the model into the form the tool reads, which is our work and not timed. `load` is the tool's own
preparation and is. `scorer` gives what is timed then: from a float32 matrix in memory to scores, with a number of
threads that is really used.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scoring.formats import to_onnx, to_xgboost, to_ydf
from scoring.machine import compiled_key
from scoring.models import Subject, cache_directory
from scoring.timing import Budget, Cell, Scorer, call_times, measure

Matrix = NDArray[np.float32]


class Unavailable(Exception):
    """Why a scorer is left out, in one sentence."""


class Peer:
    """A scorer in the table. `prepare` comes first."""

    name: str
    packages: tuple[str, ...]  # whose versions are worth knowing
    same_model = True  # it scores the same trees, so the scores must agree
    note = ""
    takes_forests = False
    takes_boosted = True

    prepare_s: float | None = None

    def convert(self, subject: Subject) -> Any:
        return subject

    def load(self, converted: Any) -> None:
        raise NotImplementedError

    def scorer(self, n_threads: int) -> Scorer:
        raise NotImplementedError

    def prepare(self, subject: Subject) -> None:
        converted = self.convert(subject)
        start = time.perf_counter()
        self.load(converted)
        self.prepare_s = time.perf_counter() - start

    def scores(self, X: Matrix) -> NDArray[np.float64]:
        return np.asarray(self.scorer(1)(X), dtype=np.float64).ravel()

    def measure(self, X: Matrix, batch: int, n_threads: int, budget: Budget) -> Cell:
        return measure(self.scorer(n_threads), X, batch, budget)

    def latency(self, X: Matrix, batch: int, n_threads: int, seconds: float) -> dict[str, float]:
        """As many threads of Python, each scoring in one."""
        return call_times(self.scorer(1), X, batch, n_threads, seconds).summary()

    def close(self) -> None:
        """Give back threads, memory and processes."""
        self.__dict__.clear()


class LightGBM(Peer):
    name, packages = "LightGBM", ("lightgbm",)

    def load(self, subject: Subject) -> None:
        import lightgbm

        self.booster = lightgbm.Booster(model_file=str(subject.path))

    def scorer(self, n_threads: int) -> Scorer:
        return lambda X: self.booster.predict(X, raw_score=True, num_threads=n_threads)


class XGBoost(Peer):
    name, packages = "XGBoost", ("xgboost-cpu", "xgboost")

    def convert(self, subject: Subject) -> Any:
        return to_xgboost(subject.ensemble).save_raw("ubj")

    def load(self, converted: Any) -> None:
        import xgboost

        self.booster = xgboost.Booster(model_file=converted)

    def scorer(self, n_threads: int) -> Scorer:
        self.booster.set_param({"nthread": n_threads})
        return lambda X: self.booster.inplace_predict(X, predict_type="margin", validate_features=False)


class CatBoost(Peer):
    name, packages = "CatBoost", ("catboost",)
    same_model = False
    note = "its own model: as many oblivious trees of as many leaves, where one level has one split"

    def convert(self, subject: Subject) -> Path:
        import catboost

        path = subject.path.with_suffix(".cbm")
        if not path.exists():
            assert subject.n_leaves is not None
            data = subject.source.train
            model = catboost.CatBoostRegressor(
                iterations=subject.n_trees,
                depth=subject.n_leaves.bit_length() - 1,
                learning_rate=0.05,
                verbose=False,
                allow_writing_files=False,
            )
            model.fit(data.X, data.y).save_model(str(path))
        return path

    def load(self, path: Path) -> None:
        import catboost

        self.model = catboost.CatBoostRegressor().load_model(str(path))

    def scorer(self, n_threads: int) -> Scorer:
        return lambda X: self.model.predict(X, prediction_type="RawFormulaVal", thread_count=n_threads)


class OnnxRuntime(Peer):
    name, packages = "ONNX Runtime", ("onnxruntime", "onnx")

    def convert(self, subject: Subject) -> bytes:
        return to_onnx(subject.ensemble)

    def load(self, model: bytes) -> None:
        self.model, self.sessions = model, {1: self.session(model, 1)}

    @staticmethod
    def session(model: bytes, n_threads: int) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def scorer(self, n_threads: int) -> Scorer:
        if n_threads not in self.sessions:
            self.sessions = {n_threads: self.session(self.model, n_threads)}
        run = self.sessions[n_threads].run
        return lambda X: run(["scores"], {"X": X})[0]


class TreeliteGTIL(Peer):
    name, packages = "treelite GTIL", ("treelite",)
    takes_forests = True

    def load(self, subject: Subject) -> None:
        import treelite

        if subject.is_forest:
            self.model = treelite.sklearn.import_model(subject.original)
        else:
            self.model = treelite.frontend.load_lightgbm_model(subject.path)

    def scorer(self, n_threads: int) -> Scorer:
        import treelite

        return lambda X: treelite.gtil.predict(self.model, X, nthread=n_threads, pred_margin=True)


class Tl2cgen(Peer):
    name, packages = "tl2cgen", ("tl2cgen",)
    note = "quantised, compiled with gcc -O3 -march=native"

    def prepare(self, subject: Subject) -> None:
        import tl2cgen
        import treelite

        key = compiled_key(subject.path, tl2cgen.__version__)
        library, facts = (cache_directory() / f"tl2cgen-{subject.shape}-{key}{end}" for end in (".so", ".json"))
        if not facts.exists():
            start = time.perf_counter()
            model = treelite.frontend.load_lightgbm_model(subject.path)
            tl2cgen.export_lib(
                model,
                toolchain="gcc",
                libpath=library,
                params={"quantize": 1, "parallel_comp": max(1, subject.n_trees // 20)},
                options=["-march=native"],
            )
            facts.write_text(json.dumps({"prepare_s": time.perf_counter() - start}))
        self.library, self.prepare_s = library, json.loads(facts.read_text())["prepare_s"]
        self.predictors: dict[int, Any] = {}

    def scorer(self, n_threads: int) -> Scorer:
        import tl2cgen

        if n_threads not in self.predictors:
            self.predictors = {n_threads: tl2cgen.Predictor(self.library, nthread=n_threads)}
        predictor = self.predictors[n_threads]
        return lambda X: predictor.predict(tl2cgen.DMatrix(X, dtype="float32"), pred_margin=True)


class Ydf(Peer):
    name, packages = "ydf", ("ydf",)
    note = "the engine it prefers, through predict on numpy; most of its time for small batches is the conversion"

    def convert(self, subject: Subject) -> Any:
        return to_ydf(subject.ensemble).serialize(), np.zeros((1, subject.ensemble.n_features), dtype=np.float32)

    def load(self, converted: Any) -> None:
        import ydf

        model, row = converted
        self.model = ydf.deserialize_model(model)
        self.model.predict({"X": row})  # makes its engine

    def scorer(self, n_threads: int) -> Scorer:
        return lambda X: self.model.predict({"X": X}, num_threads=n_threads)


class ScikitLearn(Peer):
    name, packages = "scikit-learn", ("scikit-learn",)
    takes_forests, takes_boosted = True, False

    def prepare(self, subject: Subject) -> None:
        self.forest = subject.original

    def scorer(self, n_threads: int) -> Scorer:
        self.forest.set_params(n_jobs=n_threads)
        return lambda X: self.forest.predict(X)
