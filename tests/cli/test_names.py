"""Names of columns that a model spells otherwise than the data, and renaming."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.matrix import column_order, respelled

NAMES = st.lists(st.text("ab _-é", min_size=1, max_size=3), unique=True, max_size=6)


@pytest.mark.parametrize(
    ("names", "features", "order"),
    [
        (["query length", "bm25"], ["bm25", "query_length"], [1, 0]),
        (["a b", "a_b"], ["a_b", "c"], None),  # a_b is there itself, c is not
        (["a b", "a-b"], ["a_b", "a.b"], None),  # either could be either
        (["a b", "a-b"], ["a_b", "a-b"], [0, 1]),  # a-b is there itself
        (["a b", "c"], ["a_b", "d"], None),
        (["é x", "ü"], ["ü", "é_x"], [1, 0]),
    ],
)
def test_spaces_may_be_underscores_where_that_is_not_in_doubt(names, features, order):
    if order is None:
        with pytest.raises(rw.DataError, match=r"names its features differently.*--rename OLD=NEW"):
            column_order(names, features)
        return
    with pytest.warns(UserWarning, match="matched by names with underscores"):
        assert column_order(names, features) == order


@given(NAMES, NAMES)
def test_respelling_is_one_to_one_and_leaves_known_names(names, features):
    new = respelled(names, features)
    assert len(set(new)) == len(new)
    for old, name in zip(names, new, strict=True):
        assert name == old or (old not in features and name in features and name not in names)


def test_no_warning_where_names_are_the_same():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert column_order(["a b", "c"], ["c", "a b"]) == [1, 0]
        assert column_order(("a b", "c"), ("c", "a b")) == [1, 0]


def test_a_model_of_lightgbm_fits_the_frame_it_was_trained_from():
    lightgbm = pytest.importorskip("lightgbm", reason="LIGHTGBM ABSENT: pip install 'rankwood[formats]'")
    pandas = pytest.importorskip("pandas", reason="PANDAS ABSENT: pip install 'rankwood[formats]'")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(300, 3)), columns=["query length", "BM25 (title)", "age"])
    booster = lightgbm.train(
        {"objective": "lambdarank", "verbose": -1, "min_data_in_leaf": 5},
        lightgbm.Dataset(frame, rng.integers(0, 3, 300), group=[30] * 10),
        5,
    )
    model = rw.load_model(booster)
    with pytest.warns(UserWarning, match="'query length' is 'query_length'"):
        scores = model.score(frame[["age", "query length", "BM25 (title)"]])
    assert_array_equal(scores, booster.predict(frame, raw_score=True))


MODEL = rw.Ensemble.from_trees(
    [(0, 0.5, 1.0, 2.0), (1, 2.5, 4.0, 8.0)], feature_names=["query_length", "bm25"], metadata={"note": "kept"}
)


def test_features_are_renamed():
    renamed = MODEL.rename_features({"bm25": "BM25 score"})
    assert renamed.feature_names == ("query_length", "BM25 score")
    assert renamed == MODEL
    assert renamed.metadata == MODEL.metadata
    with pytest.raises(rw.ModelError, match="no feature 'clicks' to rename; its names are: query_length, bm25"):
        MODEL.rename_features({"clicks": "x"})
    with pytest.raises(rw.ModelError, match="two features have the name 'bm25'"):
        MODEL.rename_features({"query_length": "bm25"})
    with pytest.raises(rw.ModelError, match="none, only numbers"):
        rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]).rename_features({"a": "b"})
    assert rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]).rename_features({}).feature_names is None
    swapped = MODEL.rename_features({"query_length": "bm25", "bm25": "query_length"})
    assert swapped.feature_names == ("bm25", "query_length")


@pytest.fixture
def files(tmp_path):
    pytest.importorskip("pyarrow", reason="PYARROW ABSENT: pip install 'rankwood[arrow]'")
    MODEL.save(tmp_path / "model.rw")
    rows = "\n".join(f"{qid},{label},{7 - label},{label}" for qid in range(12) for label in (0, 1, 2, 3))
    (tmp_path / "data.csv").write_text(f"qid,label,words,bm25\n{rows}\n")
    (tmp_path / "names.json").write_text(json.dumps({"words": "query_length"}))
    return tmp_path


def test_columns_are_renamed_on_the_command_line(files, rankwood):
    run = rankwood
    data = ["--data", files / "data.csv"]
    for rename in ("words=query_length", files / "names.json"):
        for command in (["score"], ["evaluate"], ["inspect"], ["verify", files / "model.rw"]):
            outcome = run(command[0], files / "model.rw", *command[1:], *data, "--rename", rename)
            assert outcome.status == 0, outcome.err
    assert run("score", files / "model.rw", *data).status == 2
    outcome = run("score", files / "model.rw", *data, "--rename", "words=length")
    assert (outcome.status, "no model has a feature 'length'" in outcome.err) == (2, True)
    outcome = run("verify", *[files / "model.rw"] * 2, *data, "--rename", "x=bm25")
    assert (outcome.status, "there is no column 'x' to rename" in outcome.err) == (2, True)
    outcome = run("score", files / "model.rw", *data, "--rename", files / "none.json")
    assert (outcome.status, "give OLD=NEW, or a JSON file" in outcome.err) == (2, True)
    (files / "names.json").write_text("[1]")
    assert (
        "must be a JSON object of names"
        in run("score", files / "model.rw", *data, "--rename", files / "names.json").err
    )


def test_a_pruned_model_keeps_its_own_names(files, rankwood):
    data = [files / "data.csv"]
    outcome = rankwood(
        "refit", files / "model.rw", "--train", *data, "--valid", *data, "--rename", "words=query_length",
        "-o", files / "better.rw",
    )  # fmt: skip
    assert outcome.status == 0, outcome.err
    assert rw.load_model(files / "better.rw").feature_names == MODEL.feature_names


def test_a_file_that_names_used_features_scores_wider_tables(files, rankwood):
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0, True)], feature_names=["bm25"])
    rw.save_as(model, files / "solr.json", "solr")
    outcome = rankwood("score", files / "solr.json", "--data", files / "data.csv")
    assert outcome.status == 0, outcome.err
    assert outcome.out.split()[:4] == ["1.0", "2.0", "2.0", "2.0"]
    assert rankwood("evaluate", files / "solr.json", "--data", files / "data.csv").status == 0


@pytest.mark.parametrize("command", ["score", "evaluate", "inspect", "bench"])
def test_columns_too_many_and_lacking_are_named_with_the_file(files, rankwood, command):
    (files / "more.csv").write_text("qid,label,query length,bm25,price\n1,1,2,3,4\n")
    (files / "less.csv").write_text("qid,label,query length\n1,1,2\n")
    (files / "other.csv").write_text("qid,label,query length,clicks\n1,1,2,3\n")
    for name, found, words in (
        ("more.csv", 3, "the model does not know 'price'"),
        ("less.csv", 1, "there is no 'bm25'"),
    ):
        outcome = rankwood(command, files / "model.rw", "--data", files / name)
        assert outcome.status == 2
        assert f"{name} has {found} features but the model was built on 2: {words}" in outcome.err
    outcome = rankwood(command, files / "model.rw", "--data", files / "other.csv")
    assert "other.csv names its features differently than the model: there is no 'bm25' and" in outcome.err


def test_a_table_for_a_model_without_names_lists_its_columns(files, rankwood):
    rw.Ensemble.from_trees([(4, 0.5, 1.0, 2.0)]).save(files / "bare.rw")
    outcome = rankwood("evaluate", files / "bare.rw", "--data", files / "data.csv")
    assert "there are 2 feature columns, 5 were expected; there are: words, bm25" in outcome.err


def test_names_that_are_not_there_are_answered_with_the_nearest(files, rankwood):
    names = [f"signal_{number}" for number in range(20)] + ["title_bm25"]
    rw.Ensemble.from_trees([(20, 0.5, 1.0, 2.0)], feature_names=names).save(files / "wide.rw")
    outcome = rankwood("score", files / "wide.rw", "--data", files / "data.csv", "--rename", "words=titel_bm25")
    assert "no model has a feature 'titel_bm25'; there are: title_bm25, signal_0, " in outcome.err
    assert outcome.err.rstrip().endswith("signal_18 and 9 more")
    outcome = rankwood("verify", *[files / "model.rw"] * 2, "--data", files / "data.csv", "--rename", "wrods=bm25")
    assert "there is no column 'wrods' to rename; there are: words, bm25" in outcome.err


def test_a_new_name_may_have_spaces_where_the_model_has_underscores(files, rankwood):
    for command in (["score"], ["evaluate"]):
        outcome = rankwood(
            command[0], files / "model.rw", "--data", files / "data.csv", "--rename", "words=query length"
        )
        assert outcome.status == 0, outcome.err


def test_a_warning_is_said_once_in_a_command(files, rankwood):
    text = (files / "data.csv").read_text().replace("words", "query length")
    (files / "spaces.csv").write_text(text)
    data = [files / "spaces.csv"]
    for command in (
        ["evaluate", files / "model.rw", files / "model.rw", "--data", *data],
        ["refit", files / "model.rw", "--train", *data, "--valid", *data, "-o", files / "better.rw"],
    ):
        outcome = rankwood(*command)
        assert (outcome.status, outcome.err.count("columns are matched by names")) == (0, 1), outcome.err
    assert "columns are matched by names" in rankwood("score", files / "model.rw", "--data", *data).err  # and again


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_a_cell_that_is_no_number_is_told_with_its_row(files, rankwood, command):
    text = (files / "data.csv").read_text().replace("words", "query length")
    lines = text.splitlines()
    lines[7] = "1,1,cheap,2"
    (files / "bad.csv").write_text("\n".join(lines))
    outcome = rankwood(command, files / "model.rw", "--data", files / "bad.csv")
    assert outcome.status == 2
    assert "bad.csv: column 'query length' holds string values such as 'cheap' in row 7" in outcome.err
