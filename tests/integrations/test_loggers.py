"""Trainings as Optuna, MLflow, Weights & Biases and TensorBoard see them."""

from __future__ import annotations

import json

import pytest

import rankwood as rw
from rankwood.errors import MissingPackageError
from rankwood.integrations.logger import metric_name


@pytest.fixture(scope="module")
def parts():
    return rw.make_ranking(n_queries=40, docs_per_query=10, n_features=5, seed=1).split(0.5)


def ranker(**changes):
    return rw.LambdaMART(**{"n_trees": 6, "n_leaves": 4, "min_docs_per_leaf": 5, "learning_rate": 0.3} | changes)


class Memory(rw.Logger):
    """What is logged, in a list."""

    def __init__(self, **options):
        super().__init__(**options)
        self.params, self.rounds = None, []

    def log_params(self, params):
        self.params = params

    def log_metrics(self, metrics, step):
        self.rounds.append((step, dict(metrics)))


@pytest.mark.parametrize("learner", [ranker(), rw.RandomForest(n_trees=6), rw.XDART(n_trees=6, n_leaves=4)])
def test_a_logger_is_told_of_parameters_and_rounds(parts, learner):
    train, valid = parts
    log = Memory()
    learner.fit(train, valid=valid, callbacks=[log], eval_metric=["nDCG@10", "P(rel=2)@5"])
    notes = learner.ensemble_.metadata
    assert log.params == {k: notes[k] for k in ("learner", "seed", "version")} | notes["parameters"]
    history = learner.evals_result_["valid"]
    assert [step for step, _ in log.rounds] == list(range(1, len(history["nDCG@10"]) + 1))
    assert [values["valid/nDCG_at_10"] for _, values in log.rounds] == history["nDCG@10"]
    assert [values["valid/P_rel_2_at_5"] for _, values in log.rounds] == history["P(rel=2)@5"]


def test_a_logger_may_skip_rounds(parts):
    train, valid = parts
    log = Memory(period=4)
    ranker(n_trees=9).fit(train, valid=valid, callbacks=[log])
    assert [step for step, _ in log.rounds] == [4, 8]
    for period in (0, True, 1.5):
        with pytest.raises(rw.RankwoodError, match="period must be a whole number from 1 up"):
            Memory(period=period)


def test_a_logger_sees_the_last_round_before_early_stopping(parts):
    train, valid = parts
    log = Memory()
    stopped = ranker(n_trees=60, early_stopping_rounds=3).fit(train, valid=valid, callbacks=[log])
    assert len(log.rounds) == len(stopped.evals_result_["valid"]["nDCG@10"]) < 60


def test_a_training_that_resumes_is_logged_whole(parts, tmp_path):
    train, valid = parts
    first, second = Memory(), Memory()
    ranker(n_trees=3).fit(train, valid=valid, checkpoint=tmp_path / "c", callbacks=[first])
    ranker(n_trees=6).fit(train, valid=valid, checkpoint=tmp_path / "c", callbacks=[second])
    assert first.rounds == second.rounds[:3]
    assert len(second.rounds) == 6


@pytest.mark.parametrize("text", ["nDCG@10", "P(rel=2)@5", "a b/c:d", "é", "", "@", "nDCG(dcg='exp-log2')@10"])
def test_names_are_those_that_trackers_take(text):
    name = metric_name("valid", text)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_. -/")
    assert name.count("/") == 1


# ---- packages that are absent


@pytest.mark.parametrize(
    ("package", "make"),
    [
        ("optuna", lambda: rw.OptunaPruningCallback(None)),
        ("mlflow", lambda: rw.MLflowLogger()),
        ("wandb", lambda: rw.WandbLogger()),
        ("tensorboardX", lambda: rw.TensorBoardLogger("runs")),
    ],
)
def test_a_package_that_is_absent_is_named(without, package, make):
    without(package)
    with pytest.raises(MissingPackageError, match=f"needs the package {package}: pip install {package}$"):
        make()


# ---- Optuna


@pytest.fixture
def optuna():
    module = pytest.importorskip("optuna", reason="Optuna is absent: pip install optuna")
    before = module.logging.get_verbosity()
    module.logging.set_verbosity(module.logging.ERROR)
    yield module
    module.logging.set_verbosity(before)


def second_trial_pruner(optuna, last):
    """A pruner that ends the second trial after a step."""

    class Pruner(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            return trial.number == 1 and trial.last_step >= last

    return Pruner()


def test_optuna_prunes_trials(optuna, parts, tmp_path):
    """Through a storage, from which a second study object reads what was reported."""
    train, valid = parts
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal")))
    pruner = second_trial_pruner(optuna, last=2)
    study = optuna.create_study(storage=storage, study_name="s", direction="maximize", pruner=pruner)
    grown = []

    def objective(trial):
        learner = ranker(n_leaves=trial.suggest_int("n_leaves", 2, 8))
        learner.fit(train, valid=valid, callbacks=[rw.OptunaPruningCallback(trial), rw.record_evaluation({})])
        grown.append(learner.evals_result_["valid"]["nDCG@10"])
        return max(grown[-1])

    study.optimize(objective, n_trials=3)
    trials = optuna.load_study(study_name="s", storage=storage).trials
    assert [trial.state.name for trial in trials] == ["COMPLETE", "PRUNED", "COMPLETE"]
    assert [list(trial.intermediate_values.values()) for trial in trials if trial.state.name == "COMPLETE"] == grown
    assert list(trials[1].intermediate_values) == [0, 1, 2]
    assert trials[1].value == trials[1].intermediate_values[2]


def test_optuna_is_told_of_the_measure_asked_for(optuna, parts):
    train, valid = parts
    trial = optuna.create_study(direction="maximize").ask()
    watch = {"eval_set": [train, valid], "eval_names": ["train", "held-out"], "eval_metric": ["P@3", "AP"]}
    learner = ranker().fit(train, **watch, callbacks=[rw.OptunaPruningCallback(trial, "ap")])
    reported = trial.study.get_trials(deepcopy=False)[0].intermediate_values
    assert list(reported.values()) == learner.evals_result_["held-out"]["AP"]
    trial = optuna.create_study(direction="maximize").ask()
    ranker().fit(train, **watch, callbacks=[rw.OptunaPruningCallback(trial, data="train")])
    reported = trial.study.get_trials(deepcopy=False)[0].intermediate_values
    assert list(reported.values()) == learner.evals_result_["train"]["P@3"]


def test_optuna_needs_something_to_report(optuna, parts):
    train, valid = parts
    trial = optuna.create_study(direction="maximize").ask()
    with pytest.raises(rw.RankwoodError, match=r"pruning needs validation data's measure .* but nothing is measured"):
        ranker().fit(train, callbacks=[rw.OptunaPruningCallback(trial)])
    with pytest.raises(rw.RankwoodError, match="but valid's nDCG@10 is measured"):
        ranker().fit(train, valid=valid, callbacks=[rw.OptunaPruningCallback(trial, "AP")])
    trial = optuna.create_study(direction="minimize").ask()
    with pytest.raises(rw.RankwoodError, match=r"create_study\(direction='maximize'\)"):
        ranker().fit(train, valid=valid, callbacks=[rw.OptunaPruningCallback(trial)])


def test_optuna_fixed_trials_are_never_pruned(optuna, parts):
    train, valid = parts
    trial = optuna.trial.FixedTrial({})
    assert ranker().fit(train, valid=valid, callbacks=[rw.OptunaPruningCallback(trial)]).n_trees_ == 6


# ---- TensorBoard and Weights & Biases, as their writers and runs are called


class Writer:
    def __init__(self):
        self.scalars, self.texts = [], []

    def add_scalar(self, tag, value, step):
        self.scalars.append((tag, value, step))

    def add_text(self, tag, text, step):
        self.texts.append((tag, text))


def test_tensorboard_writers_get_scalars(parts):
    train, valid = parts
    writer = Writer()
    learner = ranker().fit(train, valid=valid, callbacks=[rw.TensorBoardLogger(writer)])
    values = learner.evals_result_["valid"]["nDCG@10"]
    assert writer.scalars == [("valid/nDCG_at_10", value, step) for step, value in enumerate(values, start=1)]
    assert json.loads(writer.texts[0][1])["n_leaves"] == 4
    with pytest.raises(rw.RankwoodError, match="writer must be a folder or have add_scalar, got int"):
        rw.TensorBoardLogger(3)


def test_tensorboard_files(parts, tmp_path):
    pytest.importorskip("tensorboardX", reason="tensorboardX is absent: pip install tensorboardX")
    train, valid = parts
    log = rw.TensorBoardLogger(tmp_path)
    learner = ranker().fit(train, valid=valid, callbacks=[log])
    log.writer.close()
    values = [value for tag, value in scalars(tmp_path) if tag == "valid/nDCG_at_10"]
    assert values == pytest.approx(learner.evals_result_["valid"]["nDCG@10"], abs=1e-6)


def scalars(folder):
    """What TensorBoard reads in a folder: records of length, checksum, message, checksum."""
    import struct

    from tensorboardX.proto.event_pb2 import Event

    (path,) = folder.iterdir()
    content, at = path.read_bytes(), 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        event = Event.FromString(content[at + 12 : at + 12 + length])
        yield from ((value.tag, value.simple_value) for value in event.summary.value)
        at += length + 16


class Run:
    """A run of Weights & Biases, as far as the logger knows it."""

    def __init__(self):
        self.config, self.axes, self.logged = Config(), [], []

    def define_metric(self, name, step_metric):
        self.axes.append((name, step_metric))

    def log(self, values):
        self.logged.append(values)


class Config(dict):
    def update(self, values, allow_val_change):
        assert allow_val_change
        super().update(values)


def test_weights_and_biases_runs(parts):
    train, valid = parts
    run = Run()
    learner = ranker().fit(train, valid=valid, callbacks=[rw.WandbLogger(run)])
    values = learner.evals_result_["valid"]["nDCG@10"]
    assert run.config["learner"] == "LambdaMART"
    assert run.axes == [("valid/nDCG_at_10", "round")]
    assert run.logged == [{"valid/nDCG_at_10": value, "round": step} for step, value in enumerate(values, start=1)]


def test_weights_and_biases_offline(parts, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="Weights & Biases is absent: pip install wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    train, valid = parts
    with pytest.raises(rw.RankwoodError, match=r"call wandb.init\(\) first"):
        rw.WandbLogger()
    with wandb.init(project="rankwood-tests", dir=str(tmp_path)) as run:
        learner = ranker().fit(train, valid=valid, callbacks=[rw.WandbLogger()])
        assert run.config["n_leaves"] == 4
        assert run.summary["valid/nDCG_at_10"] == learner.evals_result_["valid"]["nDCG@10"][-1]
        assert run.summary["round"] == 6
