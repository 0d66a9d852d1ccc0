"""RankLib, QuickRank and Jforests: files as these tools write them, against a slow reading of their rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwood as rw
from rankwood.errors import ModelError
from rankwood.formats.ranklib_quickrank import parse_jforests, parse_quickrank, parse_ranklib
from strategies.adversarial_rows import adversarial_rows

LEAF = st.floats(-10, 10, width=32)
NESTED = st.recursive(
    LEAF, lambda child: st.tuples(st.integers(1, 4), st.floats(-3, 3, width=32), child, child), max_leaves=12
)


def split_xml(node, position="", indent="\t\t") -> str:
    pos = f' pos="{position}"' if position else ""
    if not isinstance(node, tuple):
        return f"{indent}<split{pos}>\n{indent}\t<output> {node} </output>\n{indent}</split>\n"
    feature, threshold, left, right = node
    inner = f"{indent}\t<feature> {feature} </feature>\n{indent}\t<threshold> {threshold} </threshold>\n"
    inner += split_xml(left, "left", indent + "\t") + split_xml(right, "right", indent + "\t")
    return f"{indent}<split{pos}>\n{inner}{indent}</split>\n"


def ensemble_xml(trees, weights) -> str:
    parts = [
        f'\t<tree id="{number}" weight="{weight}">\n{split_xml(tree)}\t</tree>\n'
        for number, (tree, weight) in enumerate(zip(trees, weights, strict=True), 1)
    ]
    return "<ensemble>\n" + "".join(parts) + "</ensemble>\n"


def ranklib_text(name, *bags) -> bytes:
    head = f"## {name}\n## No. of trees = {len(bags[0][0])}\n## Shrinkage = 0.1\n\n"
    return "\n".join([head, *(ensemble_xml(*bag) for bag in bags)]).encode()


def quickrank_text(trees, weights) -> bytes:
    info = (
        "<info>\n<type>LAMBDAMART</type>\n<trees>2</trees>\n<leaves>3</leaves>\n<shrinkage>0.1</shrinkage>\n</info>\n"
    )
    return f"<ranker>\n{info}{ensemble_xml(trees, weights)}</ranker>\n".encode()


def descend(node, row) -> float:
    """In float32, with 0 for what is missing, as both tools do."""
    while isinstance(node, tuple):
        x = np.float32(row[node[0] - 1])
        x = np.float32(0.0) if np.isnan(x) else x
        node = node[2] if x <= np.float32(node[1]) else node[3]
    return node


@given(st.lists(st.tuples(NESTED, st.floats(0.125, 2)), min_size=1, max_size=4), st.integers(1, 3))
def test_ranklib_and_quickrank_decide_by_their_rules(trees_and_weights, n_bags):
    trees, weights = zip(*trees_and_weights, strict=True)
    bag = list(trees), list(weights)
    forest = parse_ranklib(ranklib_text("Random Forests", *[bag] * n_bags))
    quick = parse_quickrank(quickrank_text(*bag))
    for model, n_copies in ((forest, n_bags), (quick, 1)):
        assert model.n_trees == len(trees) * n_copies
        wide = model.replace(n_features=4)
        rows = adversarial_rows(wide, 40, infinite=True)
        with np.errstate(over="ignore"):
            expected = [sum(w * descend(t, row) for t, w in trees_and_weights) for row in rows]
        np.testing.assert_allclose(wide.score(rows), expected, rtol=1e-12, atol=1e-12)


def test_known_answers():
    tree = (2, 0.5, 1.0, (1, -1.0, 2.0, 3.0))
    model = parse_ranklib(ranklib_text("LambdaMART", ([tree], [0.1])))
    assert model.n_features == 2
    rows = [[0, 0.5], [-1, 0.6], [0, 0.6], [np.nan, 0.6], [0, np.nan]]
    np.testing.assert_allclose(model.score(rows), [0.1, 0.2, 0.3, 0.3, 0.1])
    assert model.metadata["source"] == {"format": "ranklib", "ranker": "lambdamart", "n_features": "at least"}
    np.testing.assert_allclose(parse_quickrank(quickrank_text([tree], [0.1])).score(rows), [0.1, 0.2, 0.3, 0.3, 0.1])


@pytest.mark.parametrize("name", ["ranklib", "quickrank"])
def test_what_is_read_is_written_again(name, tmp_path):
    """Both ways agree on missing values, so that none need be ruled out to write a model in the format it came in."""
    tree = (2, 0.5, 1.0, (1, -1.0, 2.0, 3.0))
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(quickrank_text([tree], [0.5]) if name == "quickrank" else ranklib_text("MART", ([tree], [0.5])))
    model = rw.load_model(first)
    rw.save_as(model, second, name)
    assert rw.verify(model, rw.load_model(second))


JFORESTS = b"""<Ensemble>
\t<Tree leaves="3" weight="0.5">
\t\t<SplitFeatures>2 0</SplitFeatures>
\t\t<LeftChildren>1 -1</LeftChildren>
\t\t<RightChildren>-2 -3</RightChildren>
\t\t<Thresholds>3 7</Thresholds>
\t\t<OriginalThresholds>0.1 -2.5E-3</OriginalThresholds>
\t\t<LeafOutputs>1.0 2.0 3.0</LeafOutputs>
\t</Tree>
\t<Tree leaves="1" weight="1.0">
\t\t<SplitFeatures></SplitFeatures>
\t\t<LeftChildren></LeftChildren>
\t\t<RightChildren></RightChildren>
\t\t<Thresholds></Thresholds>
\t\t<OriginalThresholds></OriginalThresholds>
\t\t<LeafOutputs>10.0</LeafOutputs>
\t</Tree>
</Ensemble>"""


def test_jforests():
    model = parse_jforests(JFORESTS)
    rows = [[-1, 0, 0.1], [0, 0, 0.1], [0, 0, 0.10000001], [0, 0, np.nan], [-0.0025, 0, -9]]
    np.testing.assert_array_equal(model.score(rows), [10.5, 11.5, 11.0, 11.0, 10.5])
    assert (model.n_features, model.n_trees) == (3, 2)


def test_formats_that_do_not_tell_the_number_of_features(tmp_path):
    path = tmp_path / "model.txt"
    path.write_bytes(JFORESTS)
    model = rw.load_model(path, n_features=9)
    assert model.score(np.zeros((1, 9))) == [11.5]
    with pytest.raises(ModelError, match="the model is of 3 features, not of 2"):
        rw.load_model(path, n_features=2)
    named = rw.load_model(path, feature_names=["a", "b", "c", "d"])
    assert named.feature_names == ("a", "b", "c", "d")


BOMB = b"""<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><ranker><ensemble>&c;</ensemble></ranker>"""


@pytest.mark.parametrize(
    ("parse", "content", "message"),
    [
        (parse_quickrank, BOMB, "declares a document type or entities"),
        (parse_jforests, BOMB.replace(b"ranker", b"Ensemble"), "declares a document type or entities"),
        (parse_quickrank, b"<ranker><info><type>LINEAR</type></info></ranker>", r"LINEAR\) has 0 ensembles of trees"),
        (parse_ranklib, b"## Coordinate Ascent\n1:0.5", "this is RankLib's coordinate ascent"),
        (parse_ranklib, b"## LambdaMART\n", "there is no ensemble in it"),
        (parse_ranklib, b"<ensemble><tree><split></split></tree></ensemble>", "a split lacks its feature, threshold"),
        (parse_ranklib, b"<ensemble><tree></tree></ensemble>", "tree 0 is empty"),
        (parse_ranklib, b"<ensemble><tree><output>1</output></tree></ensemble>", "output must stand in a split"),
        (parse_ranklib, b"<tree></tree>", "a tree must stand in an ensemble"),
        (parse_ranklib, b"<ensemble><split/></ensemble>", "a split must stand in a tree"),
        (parse_ranklib, b"<ensemble><tree", "the XML is damaged or cut off"),
        (parse_quickrank, b"<ranker><ensemble></ranker>", "the XML is damaged or cut off"),
        (parse_jforests, JFORESTS.replace(b"-2 -3", b"-2 1"), "node 1 is its child but already has another place"),
        (parse_jforests, JFORESTS.replace(b"-2 -3", b"-2"), "tree 0: its arrays do not fit each other"),
        (parse_jforests, JFORESTS.replace(b"<LeftChildren>1 -1</LeftChildren>", b""), "tree 0 has no LeftChildren"),
        (parse_jforests, JFORESTS.replace(b"0.1 -2.5E-3", b"0.1 NaN"), "the threshold is NaN"),
        (parse_jforests, JFORESTS.replace(b"0.1 -2.5E-3", b"0.1 x"), "holds something that is not a number"),
    ],
)
def test_what_is_wrong_is_said(parse, content, message):
    with pytest.raises(ModelError, match=message):
        parse(content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("<feature> 2 ", "<feature> 0 "), "features are numbered from 1, got 0"),
        (("<feature> 2 ", "<feature> 1e30 "), "features are numbered from 1, got 1e30"),
        (("<feature> 2 ", "<feature> nan "), "feature is nan"),
        (("<threshold> 0.5 ", "<threshold> NaN "), "the threshold is NaN"),
        (("<threshold> 0.5 ", "<threshold> "), "threshold must be a number, got ''"),
        (("<output> 1.0 ", "<output> Infinity "), "the value is not a finite number"),
        (('pos="right"', 'pos="left"'), "one left and one right split inside"),
        (('weight="0.1"', 'weight="x"'), "its weight must be a number, got 'x'"),
    ],
)
def test_what_is_wrong_in_a_tree_is_said(change, message):
    text = ranklib_text("MART", ([(2, 0.5, 1.0, 2.0)], [0.1])).decode()
    assert change[0] in text
    with pytest.raises(ModelError, match=message):
        parse_ranklib(text.replace(*change).encode())


def test_deep_nesting_is_read_without_recursion():
    depth = 20_000
    inside = '<split pos="right"><output>1</output></split></split>' * depth
    chain = '<split pos="left"><feature>1</feature><threshold>0</threshold>' * depth
    text = f"<ensemble><tree>{chain}<split pos='left'><output>2</output></split>{inside}</tree></ensemble>"
    model = parse_ranklib(text.encode())
    assert model.topology().max_depth == depth
