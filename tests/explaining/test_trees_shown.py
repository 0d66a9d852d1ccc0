"""Trees as tables, as text and as drawings."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood import Ensemble, ModelError, RankwoodError
from rankwood.explaining.conditions import walk
from rankwood.packages import need
from strategies.ensembles import big_ensemble, ensembles

MODEL = Ensemble.from_trees(
    [(0, 0.5, 1.0, (1, 2.0, 2.0, -3.0, True)), 4.0], feature_names=["bm25", "clicks"], tree_weights=[0.5, 2.0]
).replace(leaf_cover=[10.0, 4.0, 6.0, 20.0])
SVG = "{http://www.w3.org/2000/svg}"


@given(ensembles())
@settings(max_examples=30)
def test_a_walk_meets_everything_once_and_parents_first(model):
    for tree in range(model.n_trees):
        places = list(walk(model, tree))
        inner = [place.number for place in places if not place.is_leaf]
        n_nodes = len(inner)
        assert sorted(inner) == list(range(n_nodes))
        assert sorted(place.number for place in places if place.is_leaf) == list(range(n_nodes + 1))
        met = {-1}
        for place in places:
            assert place.parent in met
            if not place.is_leaf:
                met.add(place.number)
        rw.dump_tree(model, tree)
        ET.fromstring(rw.plot_tree(model, tree).svg)


def test_the_table_has_the_tree():
    frame = rw.trees_to_dataframe(MODEL)
    assert frame["node_index"].tolist() == ["0-S0", "0-L0", "0-S1", "0-L1", "0-L2", "1-L0"]
    assert frame["node_depth"].tolist() == [1, 2, 2, 3, 3, 1]
    assert frame["cover"].tolist() == [20.0, 10.0, 10.0, 4.0, 6.0, 20.0]
    assert_array_equal(frame["value"], [np.nan, 0.5, np.nan, 1.0, -1.5, 8.0])
    root = frame.iloc[0]
    assert root[["left_child", "right_child", "split_feature", "condition"]].tolist() == [
        "0-L0", "0-S1", "bm25", "<= 0.5",
    ]  # fmt: skip
    assert frame["missing_direction"].tolist()[0] == "right"
    assert frame["missing_direction"].tolist()[2] == "left"


def test_the_table_is_lightgbms():
    """Columns that both have, of a model without splits that rankwood keeps as sets."""
    lightgbm = pytest.importorskip("lightgbm", reason="LIGHTGBM ABSENT: pip install 'rankwood[formats]'")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    options = {"objective": "regression", "num_leaves": 7, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(options, lightgbm.Dataset(X, X[:, 0] * X[:, 1] + X[:, 2]), 3)
    theirs = booster.trees_to_dataframe().sort_values("node_index", ignore_index=True)
    ours = rw.trees_to_dataframe(rw.load_model(booster)).sort_values("node_index", ignore_index=True)
    for name in ("tree_index", "node_index", "node_depth", "left_child", "right_child", "parent_index"):
        assert (
            ours[name].where(ours[name].notna(), None).tolist()
            == theirs[name].where(theirs[name].notna(), None).tolist()
        )
    leaf = ours["left_child"].isna()
    assert_allclose(ours["value"][leaf], theirs["value"][leaf])
    assert_allclose(ours["split_gain"][~leaf], theirs["split_gain"][~leaf], rtol=1e-5)
    assert_allclose(ours["threshold"][~leaf], theirs["threshold"][~leaf], atol=1e-30)
    assert_array_equal(ours["cover"], theirs["count"])


def test_the_text():
    assert rw.dump_tree(MODEL).splitlines() == [
        "tree 0: 3 leaves, weight 0.5",
        "bm25 <= 0.5 (missing: no), n = 20",
        "  yes: 0.5, n = 10",
        "  no: clicks <= 2 (missing: yes), n = 10",
        "    yes: 1, n = 4",
        "    no: -1.5, n = 6",
    ]
    assert rw.dump_tree(MODEL, -1).splitlines() == ["tree 1: 1 leaf, weight 2", "8, n = 20"]
    sets = Ensemble.from_trees([(0, np.nextafter([1.0, 3.0, 7.0, 8.0], 0).tolist(), 1.0, 2.0)])
    assert "f0 not in {1, 2, 7} (missing: no)" in rw.dump_tree(sets)
    many = Ensemble.from_trees([(0, [*np.arange(20.0)], 1.0, 2.0)])
    assert "f0 outside (0, 1], (2, 3], (4, 5], (6, 7], (8, 9], (10, 11], 4 more" in rw.dump_tree(many)


def test_the_drawing_has_every_node_and_is_xml_whatever_names_are():
    model = big_ensemble(1, n_trees=2, n_leaves=20, n_features=3).replace(feature_names=["a<b&\x1b", "'\"", "x" * 90])
    whole = ET.fromstring(rw.plot_tree(model, 1).svg)
    assert len(whole.findall(f".//{SVG}rect[@class='box']")) == 19
    assert sum(one.get("class") in ("up", "down") for one in whole.iter(f"{SVG}rect")) == 20
    assert len(whole.findall(f".//{SVG}path")) == 38
    assert len(whole.findall(f".//{SVG}circle")) == 19  # one way for missing values at every node
    cut = ET.fromstring(rw.plot_tree(model, 1, max_depth=2).svg)
    depths = [place.depth for place in walk(model, 1) if not place.is_leaf]
    assert len(cut.findall(f".//{SVG}rect[@class='box']")) == sum(depth < 2 for depth in depths)
    for drawing in (whole, cut):
        assert float(drawing.get("height")) > 0


def test_the_drawing_as_a_file_and_in_notebooks(tmp_path):
    drawing = rw.plot_tree(MODEL)
    drawing.save(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8") == drawing.svg == drawing._repr_svg_()
    for name in ("tree.png", "tree.pdf"):
        with pytest.raises(rw.RankwoodError, match=rf"{name}: a drawing is SVG, so give a name that ends in \.svg"):
            drawing.save(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_deep_trees_and_trees_of_one_leaf():
    chain = big_ensemble(3, n_trees=1, n_leaves=3000, shape="chain")
    assert rw.dump_tree(chain).count("\n") == 5999
    assert rw.plot_tree(chain, max_depth=3).svg.count("leaves") >= 1
    assert "4" in rw.plot_tree(Ensemble.from_trees([4.0])).svg
    assert len(rw.trees_to_dataframe(Ensemble.from_trees([], n_features=1))) == 0


@pytest.mark.parametrize("show", [rw.dump_tree, rw.plot_tree])
def test_no_such_tree(show):
    with pytest.raises(ModelError, match="there is no tree 2: the model has 2"):
        show(MODEL, 2)


def test_what_is_absent_is_named():
    with pytest.raises(RankwoodError, match=r"a table needs the package no: pip install no"):
        need("no.such", "a table")
