"""Trainings as MLflow's runs, and models in its flavour; all of it needs MLflow and a folder, no server."""

from __future__ import annotations

import numpy as np
import pytest

import rankwood as rw

mlflow = pytest.importorskip("mlflow", reason="MLflow is absent: pip install mlflow-skinny")
pandas = pytest.importorskip("pandas", reason="pandas is absent: pip install pandas")

from rankwood.integrations import mlflow as flavour  # noqa: E402


@pytest.fixture(autouse=True)
def tracking(tmp_path, monkeypatch):
    """Runs and models in a folder of the test's own."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield
    mlflow.end_run()


@pytest.fixture(scope="module")
def fitted():
    train, valid = rw.make_ranking(n_queries=40, docs_per_query=10, n_features=4, seed=1).split(0.5)
    names = ["bm25", "clicks", "age", "length of the title"]
    train, valid = (part.replace(feature_names=names) for part in (train, valid))
    return rw.LambdaMART(n_trees=20, n_leaves=4, min_docs_per_leaf=5).fit(train, valid=valid), valid


def frame(data):
    return pandas.DataFrame(data.X, columns=list(data.feature_names))


def test_a_training_is_a_run(fitted):
    _, valid = fitted
    with mlflow.start_run() as run:
        learner = rw.LambdaMART(n_trees=5, n_leaves=4).fit(valid, eval_set=[valid], callbacks=[rw.MLflowLogger()])
    client = mlflow.MlflowClient()
    params = client.get_run(run.info.run_id).data.params
    assert {name: params[name] for name in ("learner", "n_trees", "seed")} == {
        "learner": "LambdaMART",
        "n_trees": "5",
        "seed": "0",
    }
    logged = client.get_metric_history(run.info.run_id, "train/nDCG_at_10")
    assert [one.value for one in logged] == learner.evals_result_["train"]["nDCG@10"]
    assert [one.step for one in logged] == [1, 2, 3, 4, 5]


def test_a_training_goes_to_the_run_that_is_named(fitted):
    _, valid = fitted
    run = mlflow.MlflowClient().create_run("0")
    rw.MART(n_trees=2, n_leaves=4).fit(valid, eval_set=[valid], callbacks=[rw.MLflowLogger(run.info.run_id)])
    assert mlflow.MlflowClient().get_run(run.info.run_id).data.params["learner"] == "MART"
    assert mlflow.active_run() is None


def test_an_evaluation_is_logged(fitted):
    learner, valid = fitted
    evaluation = rw.evaluate(learner, valid, ["nDCG@10", "AP"])
    with mlflow.start_run() as run:
        flavour.log_measures(evaluation, "held out")
    metrics = mlflow.MlflowClient().get_run(run.info.run_id).data.metrics
    assert metrics == {"held out/nDCG_at_10": evaluation["nDCG@10"], "held out/AP": evaluation["AP"]}
    table = pandas.read_csv(mlflow.artifacts.download_artifacts(f"runs:/{run.info.run_id}/held out.csv"))
    assert table["AP"].tolist() == pytest.approx(evaluation.per_query["AP"].tolist(), abs=0, nan_ok=True)


def test_a_model_is_saved_and_loaded(fitted, tmp_path):
    learner, valid = fitted
    rows = frame(valid)
    flavour.save_model(learner, tmp_path / "model", input_example=rows[:3])
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    scores = learner.ensemble_.score(valid.X)
    assert np.array_equal(loaded.predict(rows), scores)
    assert np.array_equal(loaded.predict(rows[rows.columns[::-1]]), scores)  # features are found by name
    assert flavour.load_model(str(tmp_path / "model")) == learner.ensemble_
    kept = mlflow.models.Model.load(str(tmp_path / "model"))
    assert kept.signature.inputs.input_names() == list(valid.feature_names)
    assert kept.load_input_example(str(tmp_path / "model")).shape == (3, 4)
    assert f"rankwood=={rw.__version__}" in (tmp_path / "model" / "requirements.txt").read_text().splitlines()


def test_a_model_without_names_takes_arrays(fitted, tmp_path):
    learner, valid = fitted
    model = learner.ensemble_.replace(feature_names=None)
    flavour.save_model(model, tmp_path / "model", input_example=valid.X[:3])
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert np.array_equal(loaded.predict(valid.X), model.score(valid.X))


def test_a_logged_model_has_an_address(fitted):
    learner, valid = fitted
    with mlflow.start_run():
        info = flavour.log_model(learner, "ranker", input_example=frame(valid)[:2], metadata={"team": "search"})
    assert np.array_equal(mlflow.pyfunc.load_model(info.model_uri).predict(frame(valid)), learner.predict(valid))
    assert flavour.load_model(info.model_uri) == learner.ensemble_
    assert info.metadata == {"team": "search"}
    assert info.signature is not None


def test_a_version_that_is_too_old_is_told(fitted, monkeypatch):
    monkeypatch.setattr(mlflow, "__version__", "2.22.0")
    with pytest.raises(rw.RankwoodError, match=r"needs MLflow 3 or later, not 2.22.0: pip install -U mlflow"):
        flavour.log_model(fitted[0])


def test_queries_are_a_column(fitted, tmp_path):
    """Which a model with early exit goes by."""
    learner, valid = fitted
    model = learner.ensemble_.replace(exit=rw.EarlyExit([16], [0.0], top=1))
    rows = frame(valid).assign(qid=valid.qid)
    flavour.save_model(model, tmp_path / "model", input_example=rows[:3])
    scores = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(rows)
    assert np.array_equal(scores, model.score(valid.X, qid=valid.qid))
    assert not np.array_equal(scores, model.score(valid.X))


def test_what_is_no_model(tmp_path):
    with pytest.raises(rw.ModelError, match="an Ensemble or a fitted ranker can be saved, got str"):
        flavour.save_model("model.rw", tmp_path / "model")
    (tmp_path / "other").mkdir()
    mlflow.models.Model(flavors={"onnx": {}}).save(str(tmp_path / "other" / "MLmodel"))
    with pytest.raises(rw.ModelError, match="is none of rankwood's: it has onnx"):
        flavour.load_model(str(tmp_path / "other"))
