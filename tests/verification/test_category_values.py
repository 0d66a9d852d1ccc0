"""What `verify` tries of categories, on which tools agree at whole numbers alone; how it shows sets and constants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwood as rw
from rankwood.formats.reading import category_pieces, less_than, less_than_float32
from rankwood.formats.writing import ConversionWarning, whole_members


def runs(members, below=less_than):
    """Thresholds of a set of categories, with all that lies between a member and the next whole number."""
    cuts = category_pieces(np.array(sorted(members)), below, members_left=False, missing_left=True).cuts
    return [-1.0 if cut < 0 else cut for cut in cuts]  # LightGBM's 0 begins behind -1


def points(members):
    """Thresholds of a set of single numbers, as ONNX has it."""
    return [cut for member in sorted(members) for cut in (np.nextafter(member, -np.inf), float(member))]


def model(thresholds, **more):
    return rw.Ensemble.from_trees(
        [(0, list(thresholds), 1.0, (1, 0.5, 2.0, 4.0), True), (1, 1.5, 0.25, 0.5)],
        feature_names=["brand", "price"],
        **more,
    )


MEMBERS = st.sets(st.integers(0, 12), min_size=1, max_size=8)


@settings(max_examples=40)
@given(MEMBERS, MEMBERS, st.sampled_from([points, lambda members: runs(members, less_than_float32)]))
def test_tools_that_bound_categories_otherwise_agree_if_the_categories_are_the_same(members, others, kind):
    ours = model(runs(members))
    same = rw.verify(ours, model(kind(members)))
    assert same, same
    assert bool(rw.verify(ours, model(kind(others)))) == (members == others)


def test_the_note_and_the_words_of_sets():
    ours, theirs = model(runs({0, 1, 5})), model(points({0, 1, 5}))
    result = rw.verify(ours, theirs)
    assert result
    assert "note: brand: categories, of which rows at thresholds have whole numbers from 0 on or nothing" in str(result)
    assert not rw.verify(ours, theirs, categories="any")
    wrong = rw.verify(ours, model(points({0, 1})))
    assert not wrong
    assert "brand = 5.0; A goes right (categories 0, 1, 5 go right), B goes left (categories 0, 1 go right)" in str(
        wrong
    )
    assert wrong.as_dict()["routing"][0]["split_b"] == "categories 0, 1 go right"
    other = rw.verify(model([-1e-35, 1e-35]), model([-1e-30, 1e-35]))
    assert "a set, above -1e-35 up to 1e-35, goes right" in str(other)
    with pytest.raises(rw.RankwoodError, match="categories must be"):
        rw.verify(ours, theirs, categories="some")


def test_numbers_between_categories_are_tried_where_they_should_be_alike():
    ours = model(runs({0, 1, 5}))
    assert not rw.verify(ours, ours).notes
    # A split on a threshold looks at all numbers: the feature is no category, or was unfolded.
    unfolded = rw.Ensemble.from_trees([(0, 2.5, 1.0, 2.0), (0, runs({3}), 1.0, 2.0, True)])
    lifted = unfolded.replace(threshold=[np.nextafter(2.5, 3), *unfolded.threshold[1:]])
    assert not rw.verify(unfolded, lifted)


def test_functions_get_whole_numbers_on_demand():
    ours = model(runs({0, 1, 5}))

    def score(X):
        rows = X.astype(np.float64)
        rows[:, 0] = np.where(rows[:, 0] == np.rint(rows[:, 0]), rows[:, 0], np.nan)
        return ours.score(rows)

    assert not rw.verify(ours, score)
    assert rw.verify(ours, score, categories="whole")


@pytest.mark.parametrize(
    ("thresholds", "members"),
    [
        (runs({0, 3}), [0, 3]),
        (runs({1, 2, 7}, less_than_float32), [1, 2, 7]),
        (points({0, 4}), [0, 4]),
        ([np.nextafter(np.float32(3), np.float32(0)), np.nextafter(np.float32(3), np.float32(4))], [3]),
        ([-1e-35, 1e-35], None),
        ([1.0, 2.0], None),
        ([0.5, 2.5], None),
        ([np.nextafter(2.0, 0), np.inf], None),
        ([-2.5, 1.0], None),
    ],
    ids=str,
)
def test_whole_numbers_of_a_set(thresholds, members):
    found = whole_members(np.array(thresholds, dtype=np.float64))
    assert (None if found is None else found.tolist()) == members


def test_a_constant_is_said():
    ours = model(runs({2}), base=0.5)
    result = rw.verify(ours, ours.replace(base=0.0))
    assert not result
    (note,) = result.notes
    assert note.startswith("B's scores are A's less 0.5 in every row: a constant, such as XGBoost's base score")
    leaves = ours.leaf_value.copy()
    leaves[0] += 0.25
    assert not rw.verify(ours, ours.replace(base=0.0, leaf_value=leaves)).notes
    assert not rw.verify(ours, ours).notes


def test_what_sums_in_float32_explain_is_said_beside_the_tolerance(tmp_path):
    rng = np.random.default_rng(0)
    ours = rw.Ensemble.from_trees([(0, t, *rng.normal(size=2).tolist(), True) for t in rng.uniform(1, 2, 50).tolist()])
    with pytest.warns(ConversionWarning):
        rw.save_as(ours, tmp_path / "solr.json", "solr")
    result = rw.verify(ours, tmp_path / "solr.json", served_by="solr", tolerance=1e-9)
    assert result
    assert result.max_relative > 1e-9
    assert "(tolerance 1e-09; no more than sums in float32 explain, which change scores by up to " in str(result)


def test_verify_and_the_exporter_tell_the_same_distance_for_solr(tmp_path):
    ours = rw.Ensemble.from_trees([(0, -1e-35, 1.0, 2.0), (0, 1234.56789, 1.0, 2.0, True)])
    with pytest.warns(ConversionWarning) as said:
        rw.save_as(ours, tmp_path / "solr.json", "solr", missing="ignore")
    (warning,) = [str(one.message) for one in said if "adds 1e-6" in str(one.message)]
    distance = warning.split("at most ")[1].split(" away")[0]
    result = rw.verify(ours, tmp_path / "solr.json", served_by="solr", missing="ignore")
    assert result, result
    assert f"values within {distance} of thresholds that Solr cannot" in str(result)


def test_sets_around_zero_in_solr(tmp_path):
    """Solr reaches neither of their thresholds; both count for the rows that are left out."""
    ours = rw.Ensemble.from_trees([(0, [-1e-35, 1e-35], 1.0, 2.0, True), (0, 3.5, 1.0, 4.0, True)], feature_names=["x"])
    with pytest.warns(ConversionWarning):
        rw.save_as(ours, tmp_path / "solr.json", "solr", missing="ignore")
    result = rw.verify(ours, tmp_path / "solr.json", served_by="solr", missing="ignore")
    assert result, result
    assert not rw.verify(ours.replace(threshold=[-1.0, 3.5]), tmp_path / "solr.json", served_by="solr")
