"""The page in a browser: headless Chromium, driven by playwright. Both absent: a loud skip."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import rankwood as rw
from lab.report.conftest import QUICK
from rankwood.lab.report.page import render_page
from rankwood.lab.report.write import gather
from rankwood.scoring.timing import Timing

pytestmark = pytest.mark.browser

BOXES = """texts => texts.map(text => {
    const box = text.getBoundingClientRect();
    return [box.left, box.top, box.right, box.bottom];
})"""
NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="session")
def report(models, data, tmp_path_factory):
    named = {"large": models["large"], "small": models["small"], NASTY: models["stump"]}
    facts = gather(named, data, budget=QUICK, title=NASTY)
    timed = [
        replace(model, timing=Timing(us, 0.9 * us, 1.1 * us, 20, 900, "bitslice"))  # points stay apart
        for model, us in zip(facts.models, (1.0, 0.4, 0.1), strict=True)
    ]
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_page(replace(facts, models=timed)), encoding="utf-8")
    return path


@pytest.fixture
def opened(chromium, report):
    """Open the report; what went wrong on the page, or was asked of the network, is found at the end."""
    contexts, wrong = [], []

    def open_page(path=report, **options):
        context = chromium.new_context(**{"viewport": {"width": 1200, "height": 900}} | options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append("dialog"), dialog.dismiss()))
        page.on("request", lambda request: wrong.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [one for one in wrong if not one.startswith(("data:", "blob:"))] == []


def test_the_plot_has_a_point_per_model_and_names_are_text(opened):
    page = opened()
    assert page.locator("#chart-tradeoff .point").count() == 3
    assert page.locator("h1").inner_text() == NASTY
    assert page.locator("#table-models tbody tr").count() == 3
    assert page.locator("#table-models").get_by_text(NASTY).count() == 1
    assert page.locator("img").count() == 0
    for chart in ("curves", "depths", "leaves", "weights", "queries"):
        assert page.locator(f"#chart-{chart} svg").count() == 1
    assert "NaN" not in page.content()
    assert "undefined" not in page.locator("#report").inner_text()


def test_a_pair_has_one_p_wherever_it_is_told(opened, report):
    shown = json.loads(report.read_text(encoding="utf-8").split('id="report-data">')[1].split("</script>")[0])
    a, b = shown["pair"]
    (p,) = (f"{one['p']:.3f}" for one in shown["pairs"] if (one["a"], one["b"], one["m"]) == (a, b, 0))
    p = "< 0.001" if p == "0.000" else p
    page = opened()
    name = shown["models"][b]["name"]
    row = page.locator("#table-models tbody tr").nth(b)
    assert page.locator("#table-models thead th").nth(3).inner_text() == "corrected p"
    assert row.locator("td").nth(2).inner_text().split("\n")[0] == p
    says = f"corrected p {p if p.startswith('<') else f'= {p}'}"
    assert says in page.locator("#headline").inner_text()
    assert page.locator("#told").inner_text().endswith(f"{says}.")
    cell = page.locator("#table-significance tbody tr").nth(b).locator("td").nth(a)
    assert cell.inner_text().replace(" ▲", "").replace(" ▼", "").split("\n")[0] == p
    assert page.locator("#significance").get_by_text("Corrected p: paired randomisation test").count() == 1
    assert page.locator("#told").inner_text().startswith(f"{name} against large")


def test_two_models_are_one_pair(opened, models, data, tmp_path):
    facts = gather({name: models[name] for name in ("large", "small")}, data, budget=QUICK, title="two")
    path = tmp_path / "two.html"
    path.write_text(render_page(facts), encoding="utf-8")
    page = opened(path)
    for place in ("#models", "#significance"):
        assert page.locator(place).get_by_text("nothing to correct for with one pair of models").count() == 1
    assert "corrected for all 3 pairs of models (Holm). It is" in opened().locator("#significance").inner_text()


def test_the_table_of_models_has_the_margin_and_intervals_of_speed(opened):
    page = opened()
    heads = page.locator("#table-models thead th").all_inner_texts()
    loses, faster = heads.index("loses < 0.005"), heads.index("speed-up")
    for number in (1, 2):
        cells = page.locator("#table-models tbody tr").nth(number).locator("td, th")
        assert cells.nth(loses).inner_text() in ("shown", "not shown")
        assert re.fullmatch(r"[\d.]+×\n[\d.]+ to [\d.]+", cells.nth(faster).inner_text())
    assert "loses less than 0.005 of nDCG@10" in page.locator("#headline").inner_text()


@pytest.mark.parametrize("width", [390, 1400])
def test_the_table_of_models_uses_the_width_and_says_where_it_scrolls(opened, width):
    page = opened(viewport={"width": width, "height": 900})
    scroll = page.locator("#models .scroll")
    inner, outer = (scroll.evaluate(f"one => one.{kind}Width") for kind in ("scroll", "client"))
    hint = page.locator("#models .more")
    if width == 1400:
        assert outer > 1250  # of the window's 1400
        assert inner <= outer + 1
        assert not hint.is_visible()
        return
    assert inner > outer
    n_beyond = re.fullmatch(r"scroll sideways: (\d+) more columns →", hint.inner_text())
    assert int(n_beyond[1]) >= 8
    scroll.evaluate("one => { one.scrollLeft = one.scrollWidth }")
    wait_until(page, "getComputedStyle(document.querySelector('#models .more')).visibility === 'hidden'")


def test_the_bar_that_stays_takes_one_row_on_a_phone(opened):
    page = opened(viewport={"width": 390, "height": 844})
    bar = page.locator(".bar-top")
    assert bar.bounding_box()["height"] <= 56
    tops = bar.locator("select, .chip").evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
    assert max(tops) - min(tops) < 12
    page.get_by_label("Measure", exact=True).first.select_option("AP")  # labelled, though the word is not shown
    assert page.locator("#table-models thead th").nth(1).inner_text() == "AP"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_wins_and_losses_have_no_colour_of_a_model(opened, scheme):
    page = opened(color_scheme=scheme)
    page.locator("#choose-b").select_option(NASTY)
    fills = page.evaluate(
        """() => ['.win', '.loss'].map(kind => getComputedStyle(document.querySelector(`#chart-queries ${kind}`)).fill)
            .concat([...document.querySelectorAll('#chart-tradeoff .point')].map(one => getComputedStyle(one).fill))"""
    )
    win, loss, *of_models = [tuple(map(int, re.findall(r"\d+", fill)[:3])) for fill in fills]
    assert len(set(of_models)) == 3
    for grey in (win, loss):
        assert max(grey) - min(grey) < 32  # no hue
    assert all(max(one) - min(one) > 80 for one in of_models)
    assert abs(sum(win) - sum(loss)) > 150  # dark and light, whatever colours a reader sees


def test_learning_curves_have_a_training_line_and_a_name_at_the_end_of_every_line(opened):
    for width in (390, 1400):
        page = opened(viewport={"width": width, "height": 900})
        lines = page.locator("#chart-curves .series")
        assert lines.count() == 4
        assert sorted(lines.evaluate_all("all => all.map(one => one.getAttribute('stroke-dasharray'))")) == (
            ["2 3", "2 3", "none", "none"]
        )
        caption = page.locator("#curves figcaption")
        assert caption.inner_text().startswith("Solid: validation data; dotted: training data. The marker is the best")
        names = page.locator("#chart-curves .end")
        assert names.count() == 4
        if width == 1400:
            expected = ["large, train", "large, valid", "small, train", "small, valid"]
            assert sorted(names.all_text_contents()) == expected
        boxes = names.evaluate_all(BOXES)
        for number, one in enumerate(boxes):
            assert one[2] <= width
            for other in boxes[:number]:
                assert one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] - 3 or other[1] >= one[3] - 3
    page.get_by_label("Data", exact=True).select_option("valid")
    assert lines.count() == 2
    assert caption.inner_text().startswith("The marker is the best")  # no word of what is not shown


def test_a_query_shows_its_documents_as_both_models_see_them(opened, models, data):
    page = opened()
    query = page.locator("#table-worst tbody th").first.inner_text()
    assert f"Query {query}: nDCG@10" in page.locator("#queries").inner_text()
    one = page.locator("#table-best tbody th button").first
    query = one.inner_text()
    one.click()
    assert page.locator("#table-best tbody th button").first.get_attribute("aria-pressed") == "true"
    assert f"Query {query}: nDCG@10" in page.locator("#queries").inner_text()
    rows = np.flatnonzero(np.asarray(data.qid).astype(str) == query)
    scores = rw.load_model(models["large"]).score(data.X)
    first = page.locator("#table-documents tbody tr").first.locator("th, td").all_inner_texts()
    row = rows[np.argmax(scores[rows])]
    assert first[:3] == [f"row {row + 1}", f"{data.y[row]:g}", "1"]
    assert float(first[4].replace("−", "-")) == pytest.approx(scores[row], abs=1e-4)
    page.locator("#table-documents thead button").nth(3).click()  # by the other's rank, and the other way round
    page.locator("#table-documents thead button").nth(3).click()
    assert page.locator("#table-documents tbody tr").first.locator("td").nth(2).inner_text() == "1"


def wait_until(page, expression):
    """Asked from outside, again and again: the page's policy forbids playwright's own waiting inside it."""
    for _ in range(250):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"not true after 5 s: {expression}")


def hover(page, target):
    """Where it is on the screen already: scrolling hides a tooltip."""
    target.scroll_into_view_if_needed()
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    target.hover()


def test_hovering_and_focus_show_a_tooltip(opened):
    from playwright.sync_api import expect

    page = opened()
    tip = page.locator("#tip")
    expect(tip).to_be_hidden()
    hover(page, page.locator("#chart-tradeoff .point").nth(1))
    expect(tip).to_be_visible()
    assert tip.inner_text().startswith("small")
    assert "µs per document" in tip.inner_text()
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.mouse.move(0, 0)  # scrolling moves charts below the pointer
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.locator("#chart-tradeoff .point").nth(2).focus()  # scrolls back there
    expect(tip).to_contain_text(NASTY)
    page.evaluate("window.scrollBy(0, 20)")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    expect(tip).to_be_visible()
    hover(page, page.locator("#chart-tradeoff .point").nth(1))
    expect(tip).to_contain_text("small")
    page.mouse.move(0, 0)
    expect(tip).to_contain_text(NASTY)  # the focus has its tooltip back
    for chart, word in (("curves svg", "iteration"), ("queries svg", "query"), ("depths rect", "trees")):
        hover(page, page.locator(f"#chart-{chart}").first)
        expect(tip).to_contain_text(word)


def test_filtering_removes_a_model_from_all_figures(opened):
    page = opened()
    chip = page.locator(".chip", has_text="small")
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert page.locator("#chart-tradeoff .point").count() == 2
    for chart in ("tradeoff", "curves", "depths", "leaves", "weights"):
        assert page.locator(f"#chart-{chart} [data-model='0']").count() > 0
        assert page.locator(f"#chart-{chart} [data-model='1']").count() == 0
    assert page.locator("#table-significance tbody tr").count() == 2
    chip.press("Enter")  # and by keyboard it comes back
    assert page.locator("#chart-tradeoff .point").count() == 3
    for other in page.locator(".chip").all():
        other.click()
    assert "No model is chosen" in page.locator("#chart-tradeoff").inner_text()


def test_the_measure_and_the_axes_can_be_chosen(opened):
    page = opened()
    assert page.locator("#chart-tradeoff .title").first.text_content() == "nDCG@10"
    page.locator("#choose-measure").select_option("AP")
    assert page.locator("#chart-tradeoff .title").first.text_content() == "AP"
    assert page.locator("#table-models thead th").nth(1).inner_text() == "AP"
    page.locator("#choose-cost").select_option("leaves")
    assert "leaves (log scale)" in page.locator("#chart-tradeoff").inner_text()
    page.locator("#choose-log").uncheck()
    assert "log scale" not in page.locator("#chart-tradeoff").inner_text()
    page.locator("#choose-shown").select_option("difference")
    assert "difference from large" in page.locator("#chart-tradeoff .title").first.text_content()
    page.locator("#choose-weight").select_option("weights")
    page.locator("#choose-share").select_option("gain")
    page.locator("#choose-differing").uncheck()
    assert page.locator("#table-settings").get_by_text("n trees").count() == 1


def test_a_query_says_why_a_document_is_above_another(opened):
    page = opened(viewport={"width": 390, "height": 800})
    table, tools = page.locator("#table-reasons"), page.locator("#choose-reasons")
    told = page.locator("#table-reasons").locator("xpath=../..").locator(".note")

    def rows():
        return table.locator("tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.children].map(cell => Number(cell.textContent.replace('−', '-'))))"
        )

    def sums_up():
        values = rows()
        for _, difference, _, _, to_a, to_b in values:
            assert abs(difference - (to_a - to_b)) < 2e-3
        said = float(re.search(r"differs by ([+−0-9.]+) in all", told.inner_text())[1].replace("−", "-"))
        assert abs(sum(row[1] for row in values) - said) < 1e-2

    assert "by small: A is row" in told.inner_text()
    sums_up()
    first = rows()
    a, b = (tools.locator(f"#choose-{which}").input_value() for which in ("above", "below"))
    tools.locator("#choose-above").select_option(b)
    tools.locator("#choose-below").select_option(a)
    sums_up()
    assert sorted(-row[1] for row in rows()) == sorted(row[1] for row in first)
    tools.locator("#choose-by").select_option("0")
    assert "by large: A is row" in told.inner_text()
    sums_up()
    page.locator("#swap").click()
    assert "by large: A is row" in told.inner_text()
    sums_up()
    page.locator("#table-best th button").first.click()
    sums_up()
    assert page.locator("#chart-effects rect").count() > 3
    page.locator("#choose-share").select_option("shap")
    assert "mean |SHAP|" in page.locator("#anatomy").inner_text()


def test_settings_keep_words_whole_on_a_phone(opened):
    page = opened(viewport={"width": 390, "height": 800})
    page.locator("#choose-differing").uncheck()
    broken = page.locator("#table-settings tbody th, #table-settings thead th").evaluate_all(
        """heads => heads.map(head => {
            const range = document.createRange(), text = head.firstChild, found = [];
            for (const word of text.data.matchAll(/[^ ]+/g)) {
                range.setStart(text, word.index);
                range.setEnd(text, word.index + word[0].length);
                if (word[0].length <= 14 && range.getClientRects().length > 1) found.push(word[0]);
            }
            return found;
        }).flat()"""
    )
    assert broken == []


def test_choosing_models_changes_the_queries(opened):
    page = opened()
    told, bars = page.locator("#told"), page.locator("#chart-queries .bar")
    assert told.inner_text().startswith("small against large by nDCG@10")
    assert bars.count() == 60
    first = told.inner_text()
    heights = bars.evaluate_all("bars => bars.map(bar => bar.getAttribute('height'))")
    page.locator("#choose-b").select_option(NASTY)
    assert told.inner_text() != first
    assert told.inner_text().startswith(f"{NASTY} against large")
    assert bars.evaluate_all("bars => bars.map(bar => bar.getAttribute('height'))") != heights
    worst = page.locator("#table-worst tbody tr").first.inner_text()
    page.locator("#swap").click()
    assert told.inner_text().startswith(f"large against {NASTY}")
    assert page.locator("#table-best tbody tr").first.locator("th").inner_text() == worst.split()[0]
    page.locator("#choose-b").select_option(NASTY)
    assert "Choose two different models" in page.locator("#chart-queries").inner_text()


def test_tables_can_be_copied_downloaded_and_sorted(opened):
    page = opened(permissions=["clipboard-read", "clipboard-write"], accept_downloads=True)
    page.locator("[data-table='models'][data-as='copy']").click()
    page.locator("#said", has_text="Copied").wait_for()
    lines = page.evaluate("navigator.clipboard.readText()").strip().split("\n")
    assert len(lines) == 4
    assert lines[0].split("\t")[:2] == ["model", "nDCG@10"]
    assert lines[3].split("\t")[0] == NASTY
    page.locator("[data-table='significance'][data-as='markdown']").click()
    wait_until(page, "navigator.clipboard.readText().then(text => text.startsWith('| row'))")
    with page.expect_download() as download:
        page.locator("[data-table='models'][data-as='csv']").click()
    text = download.value.path().read_text(encoding="utf-8")
    assert download.value.suggested_filename == "models.csv"
    assert text.startswith("model,nDCG@10,")
    leaves = page.locator("#table-models thead button", has_text="leaves")
    leaves.click()
    assert page.locator("#table-models tbody th").first.inner_text().startswith("large")
    leaves.click()
    assert page.locator("#table-models tbody th").first.inner_text().startswith(NASTY)


def background(page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_light_and_dark_follow_the_system_and_the_button(opened):
    light, dark = opened(color_scheme="light"), opened(color_scheme="dark")
    assert background(light) == "rgb(246, 247, 249)"
    assert background(dark) == "rgb(17, 21, 26)"
    light.locator("#theme").click()
    dark.locator("#theme").click()
    assert background(light) == "rgb(17, 21, 26)"
    assert background(dark) == "rgb(246, 247, 249)"
    light.emulate_media(color_scheme="dark")
    assert background(light) == "rgb(17, 21, 26)"


def test_paper_is_light_and_wide_enough(opened):
    page = opened(color_scheme="dark", viewport={"width": 720, "height": 1000})
    page.emulate_media(media="print")
    assert background(page) == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(23, 32, 42)"
    assert page.locator("#table-models").evaluate("table => table.getBoundingClientRect().right") <= 720


@pytest.mark.parametrize("width", [390, 768, 1200])
def test_nothing_is_wider_than_the_window(opened, width):
    page = opened(viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 360, "height": 800})  # turned, or made smaller
    wait_until(page, "document.querySelector('#chart-tradeoff svg').viewBox.baseVal.width < 360")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_axis_texts_do_not_leave_or_overlap_each_other(opened):
    page = opened(viewport={"width": 390, "height": 844})
    for chart in ("tradeoff", "curves", "weights", "queries"):
        boxes = page.locator(f"#chart-{chart} text").evaluate_all(BOXES)
        for number, one in enumerate(boxes):
            assert one[0] >= 0, chart
            assert one[2] <= 390, chart
            for other in boxes[:number]:
                apart = one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] - 3 or other[1] >= one[3] - 3
                assert apart, chart


def test_a_report_of_one_model_without_curves(opened, data, tmp_path):
    facts = gather({"alone": rw.Ensemble.from_trees([(0, 1.0, 0.0, 1.0)], n_features=6)}, data.query(0), budget=QUICK)
    path = tmp_path / "alone.html"
    path.write_text(render_page(facts), encoding="utf-8")
    page = opened(path)
    assert page.locator("#chart-tradeoff .point").count() == 1
    assert "No model brings its learning curve" in page.locator("#curves").inner_text()
    assert "nothing to compare with" in page.locator("#queries").inner_text()
    assert "undefined" not in page.locator("#report").inner_text()
    assert "NaN" not in page.locator("#report").inner_text()
