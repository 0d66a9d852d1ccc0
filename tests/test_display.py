"""What notebooks show of models and results."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwood as rw
from rankwood.display import Column, Share, as_html
from rankwood.printable import printable

EVIL = "<script>alert('x')</script>&\n\x1b[2J"


class Page(HTMLParser):
    """Tags that are opened and not closed, all tags, and the texts of the rows of tables."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.rows, self.text = [], set(), [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.add(tag)
        assert {name for name, _ in attributes} <= {"style", "class"}
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] in (["td"], ["th"]):
            self.rows[-1][-1] += data
        self.text.append(data)


def shown(thing):
    text = thing if isinstance(thing, str) else thing._repr_html_()
    page = Page(text)
    assert page.open == []
    assert page.tags <= {"div", "table", "thead", "tbody", "tr", "th", "td", "span"}
    # Colours are the page's own, so that light and dark ones can be read, but for what is half transparent.
    assert "color:#" not in text
    assert ";color:" not in text
    assert "background:#" not in text
    return page


def test_texts_are_texts():
    page = shown(as_html(EVIL, [EVIL], [Column(EVIL, "", [EVIL, None])]))
    assert "script" not in page.tags
    text = "".join(page.text)
    assert text.count("<script>alert('x')</script>&") == 4
    assert "\x1b" not in text
    assert "\n" not in text


@given(st.text(min_size=1))
def test_any_text_is_shown_as_it_is(text):
    page = shown(as_html(text, [], [Column("", "", [text])]))
    assert page.rows[1] == [printable(text)]


def test_columns_without_values_are_left_out():
    columns = [Column("a", ".2f", [1, None]), Column("b", "", [None, None]), Column("c", "", [True, False])]
    assert shown(as_html("t", [], columns)).rows == [["a", "c"], ["1.00", "yes"], ["", "no"]]
    assert shown(as_html("t", [], columns[1:2])).rows == []
    assert shown(as_html("t", [], [Column("s", ".0%", [Share(0.25), Share(7.0)])])).rows[1:] == [["25% "], ["700% "]]


@pytest.fixture(scope="module")
def parts():
    data = rw.make_ranking(n_queries=60, docs_per_query=12, n_features=6, seed=1)
    data = data.replace(feature_names=[EVIL, "b", "c", "d", "e", "f"])
    train, rest = data.split(0.5)
    return train, *rest.split(0.5)


@pytest.fixture(scope="module")
def model(parts):
    return rw.LambdaMART(n_trees=12, n_leaves=5, min_docs_per_leaf=5).fit(parts[0]).ensemble_


def test_a_model(model):
    page = shown(model)
    text = "".join(page.text)
    assert f"12 trees, {model.n_leaves} leaves" in text
    assert "trained by LambdaMART" in text
    head, *rows = page.rows
    assert head == ["feature", "splits", "share of gain"]
    assert sum(int(splits) for _, splits, _ in rows) == model.n_nodes
    assert sum(float(share.strip(" %")) for *_, share in rows) == pytest.approx(100, abs=0.5)
    shares = [float(share.strip(" %")) for *_, share in rows]
    assert shares == sorted(shares, reverse=True)


def test_models_that_know_little():
    assert shown(rw.Ensemble.from_trees([])).rows == []
    assert shown(rw.Ensemble.from_trees([3.0])).rows == []
    rows = shown(rw.Ensemble.from_trees([(4, 0.5, 1.0, (1, 0.5, 2.0, 3.0)), (4, 0.5, 1.0, 2.0)])).rows
    assert rows == [["feature", "splits", "share of splits"], ["4", "2", "66.7% "], ["1", "1", "33.3% "]]
    early = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)] * 20).replace(exit=rw.EarlyExit([16], [1.0]))
    assert "early exit after 16 trees" in "".join(shown(early).text)


def test_an_evaluation(parts, model):
    result = rw.evaluate(model, parts[2], ["nDCG@10", "AP"])
    page = shown(result)
    assert page.rows[1:] == [[name, f"{value:.4f}"] for name, value in result.items()]
    assert f"means over {parts[2].n_queries} queries; convention rankwood" in "".join(page.text)


def test_an_evaluation_of_no_measure(parts):
    assert shown(rw.Evaluation(rw.Convention.get("rankwood"), {}, {})).rows[1:] == []


def test_a_comparison(parts, model):
    result = rw.compare(model, model.select(range(6)), parts[2])
    rows = dict(shown(result).rows)
    assert rows["model"] == f"{result.mean:.4f}"
    assert rows["difference, other less model"] == f"{result.difference:+.4f}"
    assert rows["p, paired t-test"] == f"{result.p_t:.4f}"


def test_a_pruned_model(parts, model):
    result = rw.cleaver(model, *parts[:2], test=parts[2], accept=rw.Acceptance(margin=0.5), rates=(0.25, 0.5))
    page = shown(result)
    assert len(page.rows) == 1 + len(result.rows)
    column = page.rows[0].index("trees")
    assert [int(row[column]) for row in page.rows[1:]] == [row.n_trees for row in result.rows]
    assert page.rows[1][page.rows[0].index("test")] == f"{result.rows[0].test:.4f}"
    text = result._repr_html_()
    assert text.count('<tr style="font-weight:600">') == 1
    assert result.summary() in "".join(page.text)


def test_a_shrunk_model(parts, model):
    result = rw.shrink(model, *parts[:2], margin=0.5, factor=2, measure_speed=False)
    page = shown(result)
    assert len(page.rows) == 1 + len(result.rows)
    column = page.rows[0].index("leaves")
    assert [int(row[column]) for row in page.rows[1:]] == [row.n_leaves for row in result.rows]
    assert result._repr_html_().count('<tr style="font-weight:600">') == 1
