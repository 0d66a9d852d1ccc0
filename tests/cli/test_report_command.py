"""`rankwood report`."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import rankwood as rw

report = importlib.import_module("rankwood.cli.report")  # the module; the package has the function of that name


def names_in(path) -> list[str]:
    text = re.search(r'id="report-data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)[1]
    return [model["name"] for model in json.loads(text)["models"]]


def test_report_writes_a_page_and_says_so(rankwood, models, data_file, tmp_path):
    page = tmp_path / "report.html"
    outcome = rankwood(
        "report", *models, "--data", data_file, "-o", page, "-m", "AP", "nDCG@5", "--title", "Two models"
    )
    assert (outcome.status, outcome.out) == (0, "")
    assert re.fullmatch(rf"wrote {page} \([\d,]+ kB\); open it in a browser\n", outcome.err)
    assert names_in(page) == ["one.rw", "two.rw"]
    assert "<title>Two models</title>" in page.read_text(encoding="utf-8")


def test_the_margin_is_that_of_the_option(rankwood, models, data_file, tmp_path):
    page = tmp_path / "report.html"
    outcome = rankwood("report", *models, "--data", data_file, "-o", page, "-m", "AP", "--margin", 0.25)
    assert outcome.status == 0
    assert '"margin":0.25,' in page.read_text(encoding="utf-8")
    outcome = rankwood("report", *models, "--data", data_file, "-o", page, "-m", "AP", "--margin", 0)
    assert outcome.status == 2
    assert "margin must be a positive number, got 0.0" in outcome.err


def test_models_of_the_same_name_get_different_ones(rankwood, models, data_file, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    rw.load_model(models[0]).save(other / "one.rw")
    page = tmp_path / "report.html"
    arguments = ["report", models[0], other / "one.rw", models[0], "--data", data_file, "-o", page, "-m", "AP"]
    assert rankwood(*arguments, "--baseline", other / "one.rw").status == 0
    assert len(set(names_in(page))) == 3


def test_figures_are_written(rankwood, models, data_file, tmp_path, monkeypatch):
    drawn = lambda figure, folder: [folder / f"{figure.name}.png"]  # noqa: E731  drawing takes a while
    monkeypatch.setattr("rankwood.lab.report.write.write_figure", drawn)
    arguments = ["report", *models, "--data", data_file, "-o", tmp_path / "r.html", "-m", "AP"]
    outcome = rankwood(*arguments, "--figures", tmp_path / "figures", "--engine", "reference", "--threads", 1)
    assert outcome.status == 0
    assert f"and 7 figures into {tmp_path / 'figures'}" in outcome.err


def test_what_is_wrong_is_one_sentence(rankwood, models, data_file, tmp_path):
    page = tmp_path / "report.html"
    wrong = {
        "there is no model 'nobody' to compare with; there are one.rw": ["-o", page, "--baseline", "nobody"],
        "there is no engine 'warp'": ["-o", page, "--engine", "warp"],
        "nowhere": ["-o", tmp_path / "nowhere" / "report.html"],
        "bogus": ["-o", page, "--measure", "bogus"],
    }
    for message, arguments in wrong.items():
        outcome = rankwood("report", models[0], "--data", data_file, *arguments)
        assert outcome.status == 2
        assert message in outcome.err
        assert outcome.err.count("\n") == 1
    assert not page.exists()


def test_inspect_leaves_learning_curves_to_the_report(rankwood, data, tmp_path):
    rw.MART(n_trees=2, n_leaves=4).fit(data, valid=data).ensemble_.save(tmp_path / "model.rw")
    assert "learning curves" not in rankwood("inspect", tmp_path / "model.rw").out
    assert "learning_curves" in rankwood("inspect", tmp_path / "model.rw", "--json").out


def test_the_baseline_by_any_of_its_names():
    paths, names = [Path("a/m.rw"), Path("b/m.rw"), Path("odd\x1b.rw")], ["a/m.rw", "b/m.rw", "odd\x1b.rw"]
    for given, expected in {"b/m.rw": "b/m.rw", "./a/m.rw": "a/m.rw", "odd\\x1b.rw": "odd\x1b.rw", "m": "m"}.items():
        assert report._name_of(given, paths, names) == expected
    assert report._name_of("m", [Path("x/m.rw")], ["m.rw"]) == "m.rw"
