"""What all exporters share: `save_as`, the table, warnings, refusals, and thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.formats import export_thresholds as thresholds
from rankwood.formats.export import EXPORTERS, find_exporter
from rankwood.formats.export_parts import plain
from strategies.ensembles import AWKWARD_THRESHOLDS, big_ensemble, ensembles, rows_near_thresholds, values_near
from strategies.exports import exported

MODEL = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0), (1, 0.25, 4.0, 8.0)], base=0.5, tree_weights=[1.0, 0.5])
NEEDS = {"onnx": "onnx"}


@pytest.mark.parametrize("name", EXPORTERS)
def test_every_format_is_written_and_describes_itself(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    exporter = EXPORTERS[name]
    path = tmp_path / f"model{exporter.suffix[0]}"
    rw.save_as(MODEL, path, name, missing="ignore")
    assert path.stat().st_size > 0
    assert exporter.limits.endswith(".")
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("name", EXPORTERS)
def test_same_model_same_bytes(name):
    if name == "so":
        pytest.skip("a compiler's output is its own affair")
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    assert exported(MODEL, name, missing="ignore")[0] == exported(MODEL, name, missing="ignore")[0]


def test_suffix_tells_the_format_where_it_can():
    from pathlib import Path

    found = {suffix: find_exporter(None, Path("m" + suffix)).name for suffix in (".rw", ".txt", ".ubj", ".onnx", ".py")}
    assert found == {".rw": "rankwood", ".txt": "lightgbm", ".ubj": "xgboost", ".onnx": "onnx", ".py": "python"}
    with pytest.raises(rw.ModelError, match="does not tell the format; choose one of: lightgbm-json, vespa, xgboost"):
        find_exporter(None, Path("m.json"))


def test_own_format_keeps_everything(tmp_path):
    model = MODEL.replace(feature_names=["a", "b"], metadata={"x": 1})
    rw.save_as(model, tmp_path / "m.rw")
    model.save(tmp_path / "n.rw")
    assert (tmp_path / "m.rw").read_bytes() == (tmp_path / "n.rw").read_bytes()


def test_wrong_use(tmp_path):
    with pytest.raises(rw.ModelError, match="there is no format 'csv' to write; there are: rankwood, lightgbm"):
        rw.save_as(MODEL, tmp_path / "m", "csv")
    with pytest.raises(rw.ModelError, match="format 'onnx' has no option 'opset'; it has: version, missing"):
        rw.save_as(MODEL, tmp_path / "m", "onnx", opset=3)
    with pytest.raises(rw.ModelError, match="missing must be 'refuse' or 'ignore'"):
        rw.save_as(MODEL, tmp_path / "m", "solr", missing="no")
    with pytest.raises(rw.ModelError, match="must be an Ensemble or a fitted learner, got int"):
        rw.save_as(3, tmp_path / "m", "solr")
    with pytest.raises(rw.ModelError, match="ONNX runtimes cannot hold a model without features"):
        rw.save_as(rw.Ensemble.from_trees([1.0]), tmp_path / "m", "onnx")
    with pytest.raises(rw.ModelError, match="one name per feature"):
        rw.save_as(MODEL, tmp_path / "m", "lightgbm", feature_names=["a"])
    assert list(tmp_path.iterdir()) == []


def test_names_can_be_given(tmp_path):
    rw.save_as(MODEL, tmp_path / "m.txt", feature_names=["title", "body"])
    assert "feature_names=title body" in (tmp_path / "m.txt").read_text()


def test_fitted_learners_are_models(tmp_path):
    data = rw.make_ranking(n_queries=10, docs_per_query=10, n_features=3, seed=0)
    learner = rw.LambdaMART(n_trees=2, n_leaves=4).fit(data)
    rw.save_as(learner, tmp_path / "m.py")


def test_deviation_is_measured_and_said():
    model = big_ensemble(1, n_trees=30, n_leaves=8)
    ((message,), (again,)) = exported(model, "xgboost")[1], exported(model, "xgboost-dump")[1]
    assert "scores differ by up to" in message
    assert message.split(":")[1] == again.split(":")[1]
    exact = model.replace(leaf_value=model.leaf_value.round(), tree_weights=np.ones(30), base=1.0)
    assert exported(exact, "xgboost")[1] == []


def test_infinite_thresholds_are_said():
    model = rw.Ensemble.from_trees([(0, np.inf, 1.0, 2.0), (0, 1e300, 1.0, 2.0)])
    assert "2 splits compare with 3.4028235e+38 instead" in exported(model, "xgboost-dump")[1][0]
    assert "1 splits compare with 1.7976931e+308 instead" in exported(model, "lightgbm-json")[1][0]


def test_deep_trees_are_written():
    nested = 0.0
    for depth in range(1500):
        nested = (0, float(depth), nested, 1.0)
    model = rw.Ensemble.from_trees([nested])
    for name in EXPORTERS:
        if name not in ("so", "c", "onnx"):
            exported(model, name, missing="ignore")


@given(ensembles(), st.data())
def test_weights_and_base_fold_into_the_leaves_bit_for_bit(model, data):
    X = data.draw(rows_near_thresholds(model))
    assert_array_equal(plain(model).score(X), model.score(X))


@given(st.lists(st.one_of(st.sampled_from(AWKWARD_THRESHOLDS), st.floats(allow_nan=False)), min_size=1))
def test_converted_thresholds_compare_alike(values):
    t = np.array(values)
    for dtype, convert, compare in (
        (np.float32, thresholds.below_single, np.less),
        (np.float32, thresholds.at_most_single, np.less_equal),
        (np.float64, thresholds.below_double, np.less),
    ):
        x = values_near(t, np.dtype(dtype))[:, None]
        x = x[np.isfinite(x)][:, None]
        assert_array_equal(compare(x, convert(t)), x.astype(np.float64) <= t)


@given(st.lists(st.floats(1e-3, 1e35), min_size=1))
def test_solr_thresholds_are_hit(values):
    t = np.array(values)
    written, reached = thresholds.solr(t)
    assert_array_equal(reached, thresholds.at_most_single(t))
    assert_array_equal(written + np.float32(1e-6), reached)


def test_documentation_has_every_format_and_option():
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "exporting.md").read_text(encoding="utf-8")
    for name, exporter in EXPORTERS.items():
        assert f"`{name}`" in text
        assert all(f"`{option}`" in text for option in exporter.options)
