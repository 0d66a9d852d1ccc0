"""What all exporters share: `save_as`, the table, warnings, refusals, and thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.formats.registry import EXPORTERS, find_exporter
from rankwood.formats.search_engines import solr_thresholds
from rankwood.formats.writing import below_double, below_single, plain
from rankwood.scoring.c_library import find_compiler
from rankwood.scoring.c_source import round_down
from strategies.adversarial_rows import TINY
from strategies.ensembles import AWKWARD_THRESHOLDS, big_ensemble, ensembles, rows_near_thresholds, values_near
from strategies.exports import exported

MODEL = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0), (1, 0.25, 4.0, 8.0)], base=0.5, tree_weights=[1.0, 0.5])
NEEDS = {"onnx": "onnx"}


@pytest.mark.parametrize("name", EXPORTERS)
def test_every_format_is_written_and_describes_itself(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    if name == "so" and isinstance(find_compiler(), str):
        pytest.skip("NO C COMPILER")
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
    with pytest.raises(
        rw.ModelError, match=r"does not tell the format; choose with --to .* one of: lightgbm-json, vespa, xgboost"
    ):
        find_exporter(None, Path("m.json"))


def test_own_format_keeps_everything(tmp_path):
    model = MODEL.replace(feature_names=["a", "b"], metadata={"x": 1})
    rw.save_as(model, tmp_path / "m.rw")
    model.save(tmp_path / "n.rw")
    assert (tmp_path / "m.rw").read_bytes() == (tmp_path / "n.rw").read_bytes()


def test_wrong_use(tmp_path):
    with pytest.raises(rw.ModelError, match="there is no format 'csv' to write; there are: rankwood, lightgbm"):
        rw.save_as(MODEL, tmp_path / "m", "csv")
    with pytest.raises(
        rw.ModelError, match="format 'onnx' has no option 'opset'; it has: version, whole_numbers, missing"
    ):
        rw.save_as(MODEL, tmp_path / "m", "onnx", opset=3)
    with pytest.raises(rw.ModelError, match="missing must be 'refuse' or 'ignore'"):
        rw.save_as(MODEL, tmp_path / "m", "solr", missing="no")
    with pytest.raises(rw.ModelError, match="must be an Ensemble or a fitted learner, got int"):
        rw.save_as(3, tmp_path / "m", "solr")
    with pytest.raises(rw.ModelError, match="LightGBM cannot hold a model without features"):
        rw.save_as(rw.Ensemble.from_trees([1.0]), tmp_path / "m", "lightgbm")
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
        (np.float32, below_single, np.less),
        (np.float32, round_down, np.less_equal),
        (np.float64, below_double, np.less),
    ):
        x = values_near(t, np.dtype(dtype))[:, None]
        x = x[np.isfinite(x)][:, None]
        assert_array_equal(compare(x, convert(t)), x.astype(np.float64) <= t)


@given(st.lists(st.floats(1e-3, 1e35), min_size=1))
def test_solr_thresholds_are_hit(values):
    t = np.array(values)
    written, reached = solr_thresholds(t)
    assert_array_equal(reached, round_down(t))
    assert_array_equal(written + np.float32(1e-6), reached)


SINGLE_NEAR_SLACK = st.one_of(
    st.floats(-(2.0**-18), 2.0**-18, width=32),
    st.floats(-40, 40, width=32),
    st.builds(lambda k, step: -(2.0**-k) + step, st.integers(-6, 25), st.floats(-2e-6, 2e-6)),
    st.sampled_from([sign * value for value in TINY for sign in (1.0, -1.0)]),
)


@given(SINGLE_NEAR_SLACK)
def test_solr_compares_with_one_of_the_nearest_that_it_can(value):
    wanted = round_down(np.array([value]))[0]
    (written,), (reached,) = solr_thresholds(np.array([value]))
    steps = [written]
    for direction in (-np.inf, np.inf):
        step = written
        for _ in range(40):
            step = np.nextafter(step, np.float32(direction))
            steps.append(step)
    sums = np.array(steps) + np.float32(1e-6)
    assert reached in (sums[sums <= wanted].max(), sums[sums >= wanted].min())


@given(SINGLE_NEAR_SLACK)
@example(-1.0)
@example(-0.99999998)
@example(-1e-35)
def test_solr_sends_zero_and_whole_numbers_the_right_way(value):
    whole = np.arange(-40.0, 41.0)
    assert_array_equal(whole <= solr_thresholds(np.array([value]))[1], whole <= value)


@given(st.builds(lambda k, step: round(-(2.0**-k) + 1e-6 * step, 6), st.integers(0, 6), st.floats(0, 1)), st.booleans())
def test_solr_sends_short_numbers_on_a_threshold_the_right_way(value, goes_left):
    """Also below a power of two, where its sum skips every other number."""
    single = np.float32(value)
    threshold = single if goes_left else np.nextafter(single, np.float32(-np.inf))  # x <= value, x < value
    assert bool(single <= solr_thresholds(np.array([threshold], dtype=np.float64))[1][0]) == goes_left


def test_solr_says_which_values_go_the_other_way_and_how_far_scores_are_off():
    model = rw.Ensemble.from_trees([(0, -1e-35, 1.0, 3.0), (1, 0.5, 100.0, 200.0, True), (0, -1e-35, 1.0, 3.5)])
    (message,) = exported(model.replace(feature_names=["clicks", "age"]), "solr")[1]
    assert "cannot give 2 of 3 of them" in message
    assert "clicks above -1.1368684e-13 and up to -1e-35, which goes right instead of left" in message
    assert "Zero and whole numbers go where they do here" in message
    assert "score up to 4.5 more or less" in message
    assert exported(rw.Ensemble.from_trees([(0, -2.5, 1.0, 3.0)]), "solr")[1] == []


def test_documentation_has_every_format_and_option():
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "exporting.md").read_text(encoding="utf-8")
    for name, exporter in EXPORTERS.items():
        assert f"`{name}`" in text
        assert all(f"`{option}`" in text for option in exporter.options)
