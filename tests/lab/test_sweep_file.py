"""The TOML file of a sweep: what it means, and what is said when something is wrong with it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import rankwood as rw
from rankwood.lab.peers import PEERS
from rankwood.lab.sweep import read_sweep
from rankwood.training.names import LEARNERS

EXAMPLE = Path(__file__).parents[2] / "examples" / "sweep.toml"
SYNTHETIC = "data.synthetic = {n_queries = 20, docs_per_query = 5, n_features = 4}\n"


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return read_sweep(path)

    return read


def test_the_example():
    study = read_sweep(EXAMPLE)
    assert study.title == "small-trees"
    assert [setting.label for setting in study.settings] == [
        "plain, n_leaves 16", "plain, n_leaves 8", "balanced, n_leaves 16", "balanced, n_leaves 8",
    ]  # fmt: skip
    assert study.settings[3].parameters == {
        "n_trees": 60, "learning_rate": 0.1, "query_fraction": 0.8, "balance": 0.5, "depth_relaxation": 0.5,
        "n_leaves": 8,
    }  # fmt: skip
    assert (study.folds, study.seeds, study.measures) == ([1, 2], [0, 1], ("nDCG@10", "ERR"))
    assert study.pruning.as_config() == {
        "strategy": "quality-loss", "variants": ["line-search", "refit", "distil"], "iterations": 10,
        "rates": [0.25, 0.5, 0.75], "accept": "not-significant", "margin": None,
    }  # fmt: skip


def test_what_is_not_given_has_a_default(read):
    study = read("learner = 'mart'\n" + SYNTHETIC)
    assert (study.title, study.folds, study.seeds, study.measures) == ("mine", [1, 2, 3, 4, 5], [0], ("nDCG@10",))
    assert (study.pruning, study.speed, study.convention) == (None, True, "rankwood")
    assert [(one.label, one.learner, one.parameters) for one in study.settings] == [("mart", "mart", {})]


def test_learners_may_vary(read):
    study = read("grid.learner = ['mart', 'forest']\nparameters.n_trees = 5\n" + SYNTHETIC)
    assert [(one.label, one.learner) for one in study.settings] == [("mart", "mart"), ("forest", "forest")]
    study = read("[[configurations]]\nlearner = 'dart'\n[[configurations]]\nlearner = 'igbrt'\ninitial_trees = 4\n"
                 "[data.synthetic]\n")  # fmt: skip
    assert [one.label for one in study.settings] == ["dart", "igbrt, initial_trees 4"]


def test_none_can_be_written(read):
    study = read("learner = 'lambdamart'\ngrid.max_depth = ['none', 3]\n" + SYNTHETIC)
    assert [one.parameters["max_depth"] for one in study.settings] == [None, 3]
    assert [one.label for one in study.settings] == ["max_depth none", "max_depth 3"]


@pytest.mark.parametrize(("text", "seeds"), [("seeds = 3", [0, 1, 2]), ("seeds = [4, 2]", [4, 2])])
def test_seeds(read, text, seeds):
    assert read(f"learner = 'mart'\n{text}\n{SYNTHETIC}").seeds == seeds


@pytest.mark.parametrize(("text", "folds"), [("'2..3'", [2, 3]), ("[5, 1]", [1, 5]), ("4", [4])])
def test_folds(read, text, folds):
    assert read(f"learner = 'mart'\nfolds = {text}\n{SYNTHETIC}").folds == folds


def test_data_beside_the_file(read, tmp_path):
    data = rw.make_ranking(n_queries=50, docs_per_query=4, n_features=5, seed=2)
    (tmp_path / "letor").mkdir()
    for part in range(5):
        rw.write_svmlight(data.select_queries(range(10 * part, 10 * part + 10)), tmp_path / f"letor/S{part + 1}.txt")
    folds = read("learner = 'mart'\ndata.folder = 'letor'").source
    assert (folds.name, folds.n_folds, folds.load(2).train.n_queries) == ("letor", 5, 30)
    files = read(
        "learner = 'mart'\n[data]\ntrain = ['letor/S1.txt', 'letor/S2.txt']\nvalid = 'letor/S3.txt'\n"
        "test = 'letor/S4.txt'"
    ).source
    assert (files.n_folds, files.load(1).train.n_queries, files.load(1).test.n_queries) == (1, 20, 10)
    assert files.identify(1)["digest"] != folds.identify(1)["digest"]


MART = "learner = 'mart'\n" + SYNTHETIC


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("learner = = 3", r"mine.toml is no TOML: .*line 1"),
        (MART + "seed = 3", r"mine.toml: seed is not known \(did you mean speed or seeds\?\): there are conf"),
        (SYNTHETIC, "learner is missing: one of mart, lambdamart"),
        ("learner = 'lamdamart'\n" + SYNTHETIC, r"no learner 'lamdamart' \(did you mean lambdamart\?\)"),
        ("learner = 3\n" + SYNTHETIC, "learner must be a text, got 3"),
        ("learner = 'mart'", "data must be one of: data.folder"),
        ("learner = 'mart'\ndata = 'mq2008'", r"data must be a table, \[data\], got 'mq2008'"),
        ("learner = 'mart'\n[data]\nfolder = 'x'\ntrain = 'y'", "data must be one of"),
        ("learner = 'mart'\n[data]\nfolder = 'nowhere'", "nowhere does not exist"),
        ("learner = 'mart'\n[data]\ntrain = 'mine.toml'\nvalid = 'mine.toml'", "data.test is missing"),
        ("learner = 'mart'\n[data]\ntrain = 'mine.toml'\nvalid = 'no.txt'\ntest = 'no'", "data.valid: there is no f"),
        ("learner = 'mart'\n[data]\ntrain = [3]\n", r"data.train must be a text or a list of texts, got \[3\]"),
        ("learner = 'mart'\n[data.synthetic]\nqueries = 3", "data.synthetic.queries is not known"),
        ("learner = 'mart'\n[data.synthetic]\nn_queries = 2", "data.synthetic.n_queries must be at least 5"),
        ("learner = 'mart'\n[data.synthetic]\nn_queries = '9'", "data.synthetic.n_queries must be a whole number"),
        (MART + "folds = [7]", "there are folds 1 to 5"),
        (MART + "folds = [1.5]", "folds must be a list of numbers"),
        (MART + "seeds = 0", "seeds must be how many"),
        (MART + "seeds = [1, 1]", "seeds must be how many"),
        (MART + "measures = 'nDGC@10'", "nDGC@10"),
        (MART + "convention = 'mine'", "mine"),
        (MART + "speed = 'yes'", "speed must be true or false, got 'yes'"),
        (MART + "[parameters]\nn_leavs = 3", r"parameters.n_leavs: MART has no parameter 'n_leavs' \(did you mean n_"),
        (MART + "[parameters]\nn_leaves = 2.5", "parameters.n_leaves: n_leaves must be a whole number, got 2.5"),
        (MART + "[parameters]\nrandom_state = 2", "parameters.random_state is not for a grid of parameters: use seeds"),
        (MART + "[grid]\nn_trees = [4, 'x']", "grid.n_trees: n_trees must be a whole number, got 'x'"),
        (MART + "[grid]\nn_trees = 4", "grid.n_trees must be a list of values, got 4"),
        (MART + "[grid]\nn_trees = [4, 4]", "is there twice"),
        (MART + "[grid]\ninitial_trees = [4]", "grid.initial_trees: MART has no parameter"),
        (MART + "[[configurations]]\nn_tree = 4", r"configurations.n_tree: MART has no parameter 'n_tree'"),
        (MART + "[[configurations]]\nname = 4", r"configurations\[1\].name must be a text, got 4"),
        (MART + "[[configurations]]\nname = 'a'\n[[configurations]]\nname = 'a'\nn_trees = 2", "two config"),
        (MART + "[configurations]\nn_trees = 4", r"configurations must be a list of tables, each \[\[config"),
        (MART + "[prune]\nrate = 0.5\nrates = [0.5]", "prune.rate is the share that goes"),
        (MART + "[prune]\nrate = 0.5\naccept = 'quality'", "prune.accept and prune.margin are for prune.rates"),
        (MART + "[prune]\nrates = [2]", "prune: rates are shares"),
        (MART + "[prune]\nstrategy = 'best'", "prune: there is no strategy 'best'"),
        (MART + "[prune]\niterations = 0", "prune.iterations must be a whole number above 0, got 0"),
        (MART + "[prune]\nrates = 'all'", "prune.rates must be a number or a list of numbers, got 'all'"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_key(read, text, words):
    with pytest.raises(rw.RankwoodError, match=words) as told:
        read(text)
    assert str(told.value).count("\n") == 0
    assert "mine.toml" in str(told.value)


def test_a_file_of_another_kind(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(rw.RankwoodError, match="is no text in UTF-8"):
        read_sweep(path)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("parameters.learning_rate = inf", "parameters.learning_rate"),
        ("grid.learning_rate = [0.1, -inf]", "grid.learning_rate"),
        ("grid.gains = [[0, 1, nan]]", "grid.gains"),
        ("[[configurations]]\n[[configurations]]\nlearning_rate = nan", r"configurations\[2\].learning_rate"),
        ("[prune]\naccept = 'quality'\nmargin = inf", "prune.margin"),
    ],
)
def test_numbers_must_be_finite(read, text, key):
    with pytest.raises(rw.RankwoodError, match=rf"mine.toml: {key} must be finite, got (-?inf|nan)$"):
        read("learner = 'lambdamart'\n" + SYNTHETIC + text)


SPACE = (
    SYNTHETIC + "[[configurations]]\nname = 'a'\nlearner = 'mart'\nn_trees = 5\n"
    "[configurations.search]\nn_leaves = [4, 8, 16]\nlearning_rate = [0.1, 0.2]\n"
)


def test_a_search_tries_the_configuration_and_then_points_of_its_space(read):
    (setting,) = read(SPACE).settings
    assert (setting.label, setting.parameters) == ("a", {"n_trees": 5})
    assert setting.points[:3] == [
        {}, {"n_leaves": 4, "learning_rate": 0.1}, {"n_leaves": 4, "learning_rate": 0.2},
    ]  # fmt: skip
    assert len(setting.points) == 7
    assert setting.candidates[2].parameters == {"n_trees": 5, "n_leaves": 4, "learning_rate": 0.2}


def test_a_larger_budget_adds_points(read, tmp_path):
    found = [read(f"search.budget = {budget}\n" + SPACE).settings[0].points for budget in (1, 3, 5, 99)]
    assert [len(points) for points in found] == [1, 3, 5, 7]
    for smaller, larger in pairwise(found):
        assert larger[: len(smaller)] == smaller
    others = read("search = {budget = 5, seed = 1}\n" + SPACE).settings[0].points
    assert others != found[2]
    assert read_sweep(tmp_path / "mine.toml", budget=2).settings[0].points == others[:2]


def test_data_may_be_given_beside_the_file(read, tmp_path):
    read(MART)
    data = rw.make_ranking(n_queries=30, docs_per_query=4, n_features=5, seed=2)
    (tmp_path / "MQ2008").mkdir()
    for part, rows in (("train", range(10)), ("vali", range(10, 20)), ("test", range(20, 30))):
        rw.write_svmlight(data.select_queries(rows), tmp_path / f"MQ2008/{part}.txt")
    study = read_sweep(tmp_path / "mine.toml", data=tmp_path / "MQ2008")
    assert (study.source.name, study.source.load(1).test.n_queries) == ("MQ2008", 10)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("search.budgets = 3\n" + SPACE, r"search.budgets is not known \(did you mean budget\?\)"),
        ("search.budget = 0\n" + SPACE, "search.budget must be a whole number above 0, got 0"),
        ("search.seed = -1\n" + SPACE, "search.seed must be a whole number, got -1"),
        (SPACE + "n_leavs = [3]", r"configurations\[1\].search.n_leavs: MART has no parameter 'n_leavs'"),
        (SPACE + "l2 = 3.0", r"configurations\[1\].search.l2 must be a list of different values, got 3.0"),
        (SPACE + "l2 = [3.0, 3.0]", r"configurations\[1\].search.l2 must be a list of different values"),
        (SPACE + "n_trees = [3, 'x']", r"configurations\[1\].search.n_trees: n_trees must be a whole number, got 'x'"),
        (SPACE + f"min_docs_per_leaf = {list(range(1000))}\nmax_bins = {list(range(5, 255))}", "has 1,500,000 points"),
        ("learner = 'lightgmb'\n" + SYNTHETIC, "and of other libraries lightgbm, xgboost, catboost, ydf"),
        (MART + "[prune]\nof = 'forest'", "prune.of: no configuration is called 'forest': there are mart"),
    ],
)
def test_mistakes_in_a_search_are_told_with_their_key(read, text, words):
    with pytest.raises(rw.RankwoodError, match=words):
        read(text)


def test_the_benchmark():
    for package in ("lightgbm", "xgboost", "catboost", "ydf"):
        pytest.importorskip(package, reason=f"PEER LEFT OUT: {package} is not installed")
    study = read_sweep(EXAMPLE.with_name("benchmark.toml"))
    assert {len(setting.points) for setting in study.settings} == {20}
    assert {setting.learner for setting in study.settings} == {*LEARNERS, *PEERS}
    assert study.source.name == "synthetic"


def test_no_model_has_more_trees_than_are_allowed(read, tmp_path):
    pytest.importorskip("lightgbm", reason="PEER LEFT OUT: lightgbm is not installed")
    read("grid.learner = ['mart', 'lightgbm', 'igbrt']\n" + SYNTHETIC)
    study = read_sweep(tmp_path / "mine.toml", max_trees=30)
    assert [config["parameters"] for config in study.configs()[:3]] == [
        {"n_trees": 30}, {"num_iterations": 30}, {"n_trees": 30, "initial_trees": 30},
    ]  # fmt: skip
    assert study.quick().n_trees_at_most == 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parameters.n_leaves = 1", "lambdamart: n_leaves=1 would grow trees without a split"),
        ("grid.learning_rate = [0.1, -0.1]", "learning_rate -0.1: learning_rate must"),
        ("grid.query_fraction = [0.5, 1.5]", "query_fraction 1.5: query_fraction must"),
        ("parameters.n_trees = 0", "n_trees must be at least 1, got 0"),
    ],
)
def test_ranges_are_checked_when_the_file_is_read(read, text, words):
    with pytest.raises(rw.RankwoodError) as caught:
        read(f"learner = 'lambdamart'\n{text}\n{SYNTHETIC}")
    assert words in str(caught.value)
