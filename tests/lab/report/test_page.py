"""The page: one file that loads nothing, whatever names there are."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwood as rw
from lab.report.conftest import QUICK
from rankwood.lab.report.facts import Estimate
from rankwood.lab.report.figures import report_figures
from rankwood.lab.report.page import page_data, render_page, to_json
from rankwood.lab.report.write import gather

NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{ style }}"


def data_of(page: str) -> dict:
    return json.loads(re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_is_one_file_that_loads_nothing(facts):
    page = render_page(facts)
    without_namespace = page.replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in without_namespace
    assert "https:" not in without_namespace
    assert not re.search(r"<(script|img|iframe|object|embed|link)[^>]*\b(src|href)=(?!\"data:,\")", page)
    assert not re.search(r"@import|url\(", page)
    assert "default-src 'none'" in page
    assert page.count("<script") == 2
    assert "{{" not in page.split('id="report-data"')[0]


def test_the_page_has_the_numbers(facts):
    found = data_of(render_page(facts))
    assert found["measures"] == ["nDCG@10", "AP"]
    assert [model["name"] for model in found["models"]] == ["large", "small", "stump"]
    for model, expected in zip(found["models"], facts.models, strict=True):
        for k, measure in enumerate(facts.measures):
            assert model["quality"][k][0] == pytest.approx(expected.quality[measure].value, rel=1e-5)
        assert model["leaves"] == expected.n_leaves
        assert model["us"][0] == pytest.approx(expected.timing.us_per_doc, rel=1e-5)
    assert found["pairs"][0]["wins"] == facts.pairs[0].wins
    assert [found["queries"][q] for q in found["pairs"][0]["q"]] == list(facts.pairs[0].queries)


def test_names_are_text_and_never_markup(models):
    rng = np.random.default_rng(0)
    data = rw.Dataset(
        rng.normal(size=(8, 6)),
        [0, 1] * 4,
        qid=[NASTY] * 4 + ["b"] * 4,
        doc_ids=[NASTY] * 8,
        feature_names=[NASTY, *"bcdef"],
    )
    named = {NASTY: models["stump"], "other": models["stump"].reweigh([-1.0])}
    facts = gather(named, data, title=NASTY, settings={NASTY: {NASTY: NASTY}}, measures="AP", budget=QUICK)
    page = render_page(facts)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert data_of(page)["models"][0]["name"] == NASTY
    assert data_of(page)["title"] == NASTY
    assert NASTY in str(data_of(page)["pairs"])  # a document's name


@given(
    st.recursive(
        st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
    )
)
@settings(max_examples=50)
def test_json_is_always_valid_and_stays_inside_its_element(value):
    text = to_json(value)
    assert not set("<>&") & set(text)

    def refuse(name):
        raise AssertionError(name)

    json.loads(text, parse_constant=refuse)


def test_numbers_that_are_none_do_not_break_the_page(facts):
    never = Estimate(math.inf)
    odd = dataclasses.replace(facts.models[0], mean_depth=math.nan, speed_up=never, settings={"a": "b"}, curves={})
    page = render_page(dataclasses.replace(facts, models=[odd, *facts.models[1:]]))
    assert data_of(page)["models"][0]["depth"] is None
    assert data_of(page)["models"][0]["speedUp"] == [None, None, None]


def test_a_report_of_many_queries_and_models_stays_small(models):
    rng = np.random.default_rng(0)
    n_queries = 1000
    data = rw.Dataset(rng.normal(size=(4 * n_queries, 6)), rng.integers(0, 3, 4 * n_queries), group=[4] * n_queries)
    many = {f"model {n}": rw.load_model(models["large"]).select(np.arange(1 + n % 12)) for n in range(8)}
    facts = gather(many, data, measures="nDCG@10", budget=QUICK)
    assert len(render_page(facts)) < 600_000
    pair = facts.pairs[0]
    assert len(pair.differences) < n_queries
    assert pair.wins + pair.ties + pair.losses == n_queries
    values = [rw.evaluate(many[f"model {n}"], data).per_query["nDCG@10"] for n in (0, 1)]
    assert (pair.differences[0], pair.differences[-1]) == (
        pytest.approx(min(values[1] - values[0])),
        pytest.approx(max(values[1] - values[0])),
    )


def test_write_report_writes_whole_files(tmp_path, models, data):
    path = tmp_path / "report.html"
    assert rw.write_report(path, models, data, measures="AP", title="Ours") == [path]
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(OSError, match="nowhere"):
        rw.write_report(tmp_path / "nowhere" / "report.html", models, data)


def draw(figure) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = Figure(figsize=figure.size, dpi=40, layout="constrained")
    figure.draw(canvas)
    FigureCanvasAgg(canvas).draw()


def test_there_is_a_figure_of_every_part(facts):
    figures = report_figures(facts)
    parts = ["tradeoff", "curves", "shapes", "trees", "features", "effects", "queries", "significance"]
    assert [figure.name for figure in figures] == parts
    for figure in figures:
        draw(figure)


def test_figures_of_odd_reports_can_be_drawn(data):
    """One model with a name that looks like a formula, no curves, one query."""
    model = rw.Ensemble.from_trees([0.5], n_features=6)
    figures = report_figures(gather({"$x_{": model}, data.query(0), measures="AP", budget=QUICK))
    assert [figure.name for figure in figures] == ["tradeoff", "shapes", "trees"]
    for figure in figures:
        draw(figure)


def test_figures_are_written_as_png_and_svg(tmp_path, models, data, monkeypatch):
    monkeypatch.setattr("rankwood.lab.report.figures.report_figures", lambda facts: report_figures(facts)[:1])
    steps = []
    written = rw.write_report(
        tmp_path / "r.html",
        models,
        data,
        measures="AP",
        figures=tmp_path / "figures",
        on_step=lambda *step: steps.append(step),
    )
    assert [path.name for path in written] == ["r.html", "tradeoff.png", "tradeoff.svg"]
    assert written[1].read_bytes().startswith(b"\x89PNG")
    assert written[2].read_bytes().startswith(b"<?xml")
    assert steps[-1] == ("drawing", 1, 1)


def test_figures_without_matplotlib_are_refused_before_the_work(tmp_path, models, data, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(rw.RankwoodError, match=r"drawing figures needs the package matplotlib: .*rankwood\[lab\]"):
        rw.write_report(tmp_path / "r.html", models, data, figures=tmp_path)
    rw.write_report(tmp_path / "r.html", models, data, measures="AP")  # the page needs no extra


def test_settings_say_who_has_them(facts):
    rows = dict(page_data(facts)["settings"])
    assert rows["learner"] == ["LambdaMART", "LambdaMART", None]
