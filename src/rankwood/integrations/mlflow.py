"""MLflow: trainings as runs, and a flavour that models are saved and loaded in.

The flavour is this module, with the functions that those of MLflow have::

    import rankwood.integrations.mlflow as rankwood_mlflow

    rankwood_mlflow.log_model(model, "ranker", input_example=X[:5])
    mlflow.pyfunc.load_model(uri).predict(X)
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwood._version import __version__
from rankwood.dtypes import FloatArray
from rankwood.errors import ModelError, RankwoodError
from rankwood.integrations.logger import Logger, metric_name
from rankwood.model.ensemble import Ensemble
from rankwood.packages import need

if TYPE_CHECKING:
    from rankwood.evaluation.evaluator import Evaluation

FLAVOR = "rankwood"
MODEL_FILE = "model.rw"


class MLflowLogger(Logger):
    """A callback that logs parameters and measures to a run of MLflow.

    Parameters
    ----------
    run_id : str, optional
        The run; the active one unless given, which MLflow starts when there is none.
    period : int, default 1
        Rounds between two that are logged.
    """

    def __init__(self, run_id: str | None = None, *, period: int = 1) -> None:
        super().__init__(period=period)
        self._mlflow = _mlflow("logging to MLflow")
        self.run_id = run_id

    def log_params(self, params: Mapping[str, Any]) -> None:
        self._mlflow.log_params(dict(params), run_id=self.run_id)

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        self._mlflow.log_metrics(dict(metrics), step=step, run_id=self.run_id)


def log_measures(evaluation: Evaluation, name: str = "test", *, run_id: str | None = None) -> None:
    """Log an evaluation to a run: means as metrics, and the values of every query as a CSV file.

    Parameters
    ----------
    evaluation : Evaluation
        What `rankwood.evaluate` gives.
    name : str, default "test"
        Name of the data that was measured; metrics are called such as `test/nDCG_at_10`, the file `test.csv`.
    run_id : str, optional
        The run; the active one unless given.
    """
    mlflow = _mlflow("logging to MLflow")
    mlflow.log_metrics({metric_name(name, measure): mean for measure, mean in evaluation.items()}, run_id=run_id)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{metric_name(name, '').partition('/')[0]}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(evaluation.per_query)
            writer.writerows(zip(*(values.tolist() for values in evaluation.per_query.values()), strict=True))
        mlflow.log_artifact(str(path), run_id=run_id)


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
    mlflow_model: Any = None,
) -> None:
    """Save a model as an MLflow model: a folder with rankwood's model file, which `mlflow.pyfunc` can load.

    Parameters
    ----------
    model : Ensemble or fitted learner
        The model.
    path : path-like
        The folder, which must not exist yet or be empty.
    signature : mlflow.models.ModelSignature, optional
        Types of what the model takes and gives; told by the example unless given, and left out without either.
    input_example : DataFrame or array, optional
        Some rows to score. A column `qid` that is no feature says which rows are of the same query.
    pip_requirements : list of str, optional
        What the model needs; this version of rankwood unless given.
    metadata : dict, optional
        Notes for MLflow.
    mlflow_model : mlflow.models.Model, optional
        What the flavour is added to; `log_model` gives it.
    """
    mlflow = _mlflow("saving an MLflow model")
    ensemble = _ensemble(model)
    if signature is None and input_example is not None:
        signature = mlflow.models.infer_signature(input_example, PyFunc(ensemble).predict(input_example))
    kept = mlflow.models.Model() if mlflow_model is None else mlflow_model
    kept.add_flavor(FLAVOR, model_file=MODEL_FILE, rankwood_version=__version__)
    with tempfile.TemporaryDirectory() as folder:
        ensemble.save(Path(folder) / MODEL_FILE)
        mlflow.pyfunc.save_model(
            os.fspath(path),
            loader_module=__name__,
            data_path=str(Path(folder) / MODEL_FILE),
            mlflow_model=kept,
            signature=signature,
            input_example=input_example,
            pip_requirements=pip_requirements or [f"rankwood=={__version__}"],
            metadata=metadata,
        )


def log_model(model: Any, name: str = "model", *, registered_model_name: str | None = None, **options: Any) -> Any:
    """Save a model to the active run of MLflow, which is started when there is none.

    Parameters
    ----------
    model : Ensemble or fitted learner
        The model.
    name : str, default "model"
        Its name.
    registered_model_name : str, optional
        Name to register it under, in a new version.
    **options
        As for `save_model`: `signature`, `input_example`, `pip_requirements`, `metadata`.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its `model_uri` is what `load_model` and `mlflow.pyfunc.load_model` take.
    """
    mlflow = _mlflow("logging an MLflow model")
    if int(mlflow.__version__.partition(".")[0]) < 3:  # models have no names of their own there
        raise RankwoodError(f"logging a model needs MLflow 3 or later, not {mlflow.__version__}: pip install -U mlflow")
    return mlflow.models.Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        registered_model_name=registered_model_name,
        model=_ensemble(model),
        **options,
    )


def load_model(model_uri: str) -> Ensemble:
    """The model that `save_model` or `log_model` wrote.

    Parameters
    ----------
    model_uri : str
        A folder, or an address that MLflow knows, such as `models:/NAME/1` or `runs:/RUN/model`.
    """
    mlflow = _mlflow("loading an MLflow model")
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=os.fspath(model_uri)))
    flavors = mlflow.models.Model.load(str(folder)).flavors
    if FLAVOR not in flavors:
        raise ModelError(f"the MLflow model {model_uri} is none of rankwood's: it has {', '.join(flavors)}")
    return Ensemble.load(folder / flavors["python_function"]["data"])


class PyFunc:
    """The model as `mlflow.pyfunc` calls it.

    Parameters
    ----------
    model : Ensemble
        The model.
    """

    def __init__(self, model: Ensemble) -> None:
        self.model = model

    def get_raw_model(self) -> Ensemble:
        """The model itself, which `unwrap_python_model` of MLflow gives."""
        return self.model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> FloatArray:
        """Score of every row.

        Parameters
        ----------
        data : DataFrame or array
            Features. A column `qid` that is no feature says which rows are of the same query, which early exit needs.
        params : dict, optional
            Not looked at.
        """
        is_feature = "qid" in (self.model.feature_names or ())
        if is_feature or "qid" not in getattr(data, "columns", ()):
            return self.model.score(data)
        return self.model.score(data.drop(columns="qid"), qid=data["qid"].to_numpy())


def _load_pyfunc(path: str) -> PyFunc:
    """What `mlflow.pyfunc.load_model` calls."""
    return PyFunc(Ensemble.load(path))


def _mlflow(needed_for: str) -> Any:
    """MLflow, with the modules that its first import leaves out."""
    for module in ("mlflow.pyfunc", "mlflow.models", "mlflow.artifacts"):
        need(module, needed_for)
    return need("mlflow", needed_for)


def _ensemble(model: Any) -> Ensemble:
    ensemble = getattr(model, "ensemble_", model)
    if not isinstance(ensemble, Ensemble):
        raise ModelError(f"an Ensemble or a fitted ranker can be saved, got {type(model).__name__}")
    return ensemble
