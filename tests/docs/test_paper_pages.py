"""Results on the pages of papers are those that are kept beside them."""

from __future__ import annotations

import json

import pytest
from blocks import ROOT, page_id
from test_reference_pages import load

PAPERS = ROOT / "docs" / "papers"


@pytest.mark.parametrize("page", [*sorted(PAPERS.glob("*.md")), ROOT / "docs" / "benchmarks.md"], ids=page_id)
def test_results_are_up_to_date(page):
    text = page.read_text(encoding="utf-8")
    assert load("paper_pages").filled(text) == text, "run tools/paper-pages"


def test_figures_are_small_and_used():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAPERS.glob("*.md"))
    for figure in (PAPERS / "figures").glob("*.png"):
        assert figure.stat().st_size <= 150_000, figure.name
        assert f"figures/{figure.name}" in pages, f"{figure.name} is on no page"


def test_results_go_between_the_markers(tmp_path):
    module = load("paper_pages")
    study = tmp_path / "new-data"
    study.mkdir()
    table = {"title": "One", "columns": ["a", "b"], "rows": [["x|y", "0.5*"]], "note": "*: good."}
    results = {"title": "T", "summary": "All well.", "tables": {"one": table}, "facts": {}, "environment": {"cpus": 2}}
    (study / "results.json").write_text(json.dumps(results))
    (study / "report.md").write_text("# T\n\n![A curve.](curve.png)\n\nA curve.\n")
    (study / "curve.png").write_bytes(b"png")
    before = "a\n<!-- results of new-data: summary, one, +one, curve, machine -->\nold\n<!-- end of results -->\nb\n"
    assert "not been run" in module.filled(before, tmp_path)
    (tmp_path / "page.md").write_text(before)
    module.take(study, tmp_path)
    after = module.filled(before, tmp_path)
    assert "old" not in after
    assert after.startswith("a\n<!--")
    assert after.endswith("<!-- end of results -->\nb\n")
    parts = ("All well.", "| x\\|y | 0.5\\* |", "\\*: good.", "<summary>One", "(figures/new-data-curve.png)", "cpus 2")
    for part in parts:
        assert part in after
    assert module.filled(after, tmp_path) == after


def test_sweeps_are_compared_side_by_side(tmp_path):
    module = load("paper_pages")
    before = "<!-- comparison of b-one, b-two -->\nold\n<!-- end of comparison -->\n"
    assert "Nothing has been run yet" in module.filled(before, tmp_path)
    (tmp_path / "results").mkdir()
    for name, rows in (("one", [["1. A", "0.5 +"], ["2. B", "0.4"]]), ("two", [["B", "0.3"], ["C", "0.2"]])):
        table = {"title": f"benchmark: test data, {name}", "columns": ["configuration", "nDCG@10"], "rows": rows}
        (tmp_path / "results" / f"b-{name}.json").write_text(json.dumps({"tables": {"sweep": {**table, "note": ""}}}))
    assert module.filled(before, tmp_path).split("\n")[2:7] == [
        "| configuration | nDCG@10, one | nDCG@10, two |",
        "| :--- | ---: | ---: |",
        "| A | 0.5 + |  |",
        "| B | 0.4 | 0.3 |",
        "| C |  | 0.2 |",
    ]
