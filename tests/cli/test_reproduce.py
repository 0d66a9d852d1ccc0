"""`rankwood reproduce`: tables and figures from one command, which goes on where it stopped."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import pytest
import typer

import rankwood as rw
from rankwood.cli.reproduce import STUDIES, app
from rankwood.lab.papers.subsampling import SubsamplingStudy
from rankwood.lab.runs import RunTable
from rankwood.scoring.timing import bench


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letor")
    data = rw.make_ranking(n_queries=50, docs_per_query=12, n_features=6, seed=2)
    for part in range(5):
        rw.write_svmlight(data.select_queries(range(10 * part, 10 * part + 10)), folder / f"S{part + 1}.txt")
    return folder


def test_subsampling_on_a_folder_of_folds(rankwood, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("rankwood.lab.study.write_figure", lambda figure, folder: [])  # which takes a while
    command = ("reproduce", "subsampling", "--data", folder, "--folds", "1,2", "--seeds", 2, "--trees", 5)
    outcome = rankwood(*command, "--sweep", "1,4", "--out", tmp_path)
    assert outcome.status == 0
    assert "Table 3" in outcome.out
    assert "report.md and" in outcome.err
    n_runs = 2 * (2 * (3 + 6) + 2)  # folds, seeds, settings with 63% and of documents; LambdaMART and statistics
    assert len(RunTable(tmp_path / "runs.sqlite").entries()) == n_runs
    again = rankwood(*command, "--sweep", "1,4", "--out", tmp_path)
    assert f"{n_runs} finished runs" in again.err
    assert again.out == outcome.out
    assert len(RunTable(tmp_path / "runs.sqlite").entries()) == n_runs


def test_subsampling_on_the_grid_of_the_paper(rankwood, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("rankwood.lab.study.write_figure", lambda figure, folder: [])  # which takes a while
    command = (
        "reproduce",
        "subsampling",
        "--data",
        folder,
        "--folds",
        1,
        "--seeds",
        1,
        "--trees",
        2,
        "--grid",
        "paper",
    )
    outcome = rankwood(*command, "--out", tmp_path, "--json")
    assert outcome.status == 0
    answer = json.loads(outcome.out)
    assert len(answer["tables"]["sweep"]["rows"]) == 30
    assert answer["facts"]["baseline"] == "19"
    both = rankwood(*command, "--sweep", "1,2", "--out", tmp_path)
    assert both.status == 2
    assert "--sweep and --grid both say what is compared" in both.err


def test_igbrt_as_json(rankwood, folder, tmp_path):
    outcome = rankwood("reproduce", "igbrt", "--quick", "--data", folder, "--folds", 3, "--trees", 4,
                       "--boosted-trees", 3, "--initial-trees", 2, "--out", tmp_path, "--json")  # fmt: skip
    assert outcome.status == 0
    answer = json.loads(outcome.out)
    assert set(answer["tables"]) == {"table1", "table3", "table4", "order", "missing", "bound", "data"}
    assert (tmp_path / "figure2.svg").stat().st_size > 1000


def test_one_folder_is_for_one_study(rankwood, folder, tmp_path):
    RunTable(tmp_path / "runs.sqlite").add({"study": "igbrt"}, {}, seconds=0.0, environment={})
    outcome = rankwood("reproduce", "subsampling", "--data", folder, "--quick", "--out", tmp_path)
    assert outcome.status == 2
    assert "has runs of igbrt: give every study an --out of its own" in outcome.err


def test_without_matplotlib_there_are_tables(rankwood, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = rankwood("reproduce", "igbrt", "--data", folder, "--quick", "--out", tmp_path / "new")
    assert outcome.status == 0
    assert "pip install 'rankwood[lab]' ('.[lab]' in a checkout); tables are written without them" in outcome.err
    assert (tmp_path / "new" / "table3.csv").exists()
    assert not list((tmp_path / "new").glob("*.png"))
    assert ".png" not in (tmp_path / "new" / "report.md").read_text()


def test_xdart_as_json(rankwood, folder, tmp_path):
    outcome = rankwood("reproduce", "xdart", "--quick", "--data", folder, "--folds", 2, "--trees", 10, "--methods",
                       "LambdaMART,X-DART adaptive 5", "--out", tmp_path, "--json")  # fmt: skip
    assert outcome.status == 0
    answer = json.loads(outcome.out)
    assert [row[0] for row in answer["tables"]["table1"]["rows"]] == ["DART 1.5%", "LambdaMART", "X-DART adaptive 5"]
    assert not any("(--normalize)" in text for text in answer["differences"])
    assert (tmp_path / "figure1.svg").stat().st_size > 1000
    wrong = rankwood("reproduce", "xdart", "--methods", "AdaRank", "--data", folder, "--out", tmp_path)
    assert wrong.status == 2
    assert "methods are LambdaMART, " in wrong.err.splitlines()[-1]


def test_cleaver_as_json(rankwood, tmp_path):
    outcome = rankwood("reproduce", "cleaver", "--quick", "--folds", 1, "--sizes", 4, "--trees", 6, "--rates", "0.5",
                       "--iterations", 1, "--seeds", 1, "--normalize", "--out", tmp_path, "--json")  # fmt: skip
    assert outcome.status == 0
    assert any("(--normalize)" in text for text in json.loads(outcome.out)["differences"])
    assert set(json.loads(outcome.out)["tables"]) == {
        "table1", "table1b", "closing", "related", "sweep", "paper",
    }  # fmt: skip


def test_asadi_lin_is_quick_and_times_again_when_asked(rankwood, tmp_path, monkeypatch):
    monkeypatch.setattr("rankwood.lab.study.write_figure", lambda figure, folder: [])  # which takes a while
    monkeypatch.setattr("rankwood.lab.papers.asadi_lin.bench", partial(bench, repeats=6))
    monkeypatch.setenv("RANKWOOD_CACHE", str(tmp_path / "cache"))
    command = ("reproduce", "asadi-lin", "--quick", "--folds", 1, "--trees", 5, "--patience", 3, "--leaves", 4)
    outcome = rankwood(*command, "--out", tmp_path, "--json")
    assert outcome.status == 0
    answer = json.loads(outcome.out)
    tables = "table1 equal beside visits reached folds tests gradients paper"
    assert list(answer["tables"]) == tables.split()
    assert [row[0] for row in answer["tables"]["table1"]["rows"]] == [
        "baseline",
        "lambda 0.8",
        "alpha 0.2",
        "alpha 0.4",
    ]
    # Trainings, of which one is with other gradients; two models of each of the others are timed, and one is cut back.
    assert len(RunTable(tmp_path / "runs.sqlite")) == 5 + 8 + 4
    again = rankwood(*command, "--out", tmp_path, "--timing", "quiet")
    assert "17 finished runs" in again.err
    assert len(RunTable(tmp_path / "runs.sqlite")) == 5 + 8 + 4 + 8
    assert "Table 1: models of the size that validation data chooses" in again.out


def test_starting_anew_keeps_the_old_runs_aside(rankwood, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("rankwood.lab.study.write_figure", lambda figure, folder: [])  # which takes a while
    command = ("reproduce", "subsampling", "--data", folder, "--folds", 1, "--seeds", 1, "--trees", 3, "--sweep", "2")
    rankwood(*command, "--out", tmp_path)
    rankwood(*command, "--out", tmp_path, "--no-resume")
    n_runs = 2 + 6 + 2  # settings, also of documents; LambdaMART and statistics
    assert len(RunTable(tmp_path / "runs.sqlite").entries()) == n_runs
    assert len(RunTable(tmp_path / "runs.old.sqlite").entries()) == n_runs
    rankwood(*command, "--out", tmp_path, "--no-resume")
    assert len(RunTable(tmp_path / "runs.old.2.sqlite").entries()) == n_runs
    assert (tmp_path / "runs.old.jsonl").exists()


def test_ctrl_c_says_how_to_go_on(rankwood, folder, tmp_path, monkeypatch):
    def interrupted(self, config):
        raise KeyboardInterrupt

    monkeypatch.setattr(SubsamplingStudy, "run", interrupted)
    outcome = rankwood("reproduce", "subsampling", "--data", folder, "--out", tmp_path)
    assert outcome.status == 130
    assert "interrupted: 0 runs are kept" in outcome.err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--folds", "6"), "there are folds 1 to 5"),
        (("--sweep", "1000", "--trees", "2"), "cannot see 1000 queries: there are 30"),
        (("--sweep", "few"), "a number of queries"),
    ],
)
def test_mistakes_are_told_in_one_sentence(rankwood, folder, tmp_path, more, words):
    outcome = rankwood("reproduce", "subsampling", "--data", folder, "--out", tmp_path, *more)
    assert outcome.status == 2
    assert words in outcome.err.splitlines()[-1]


@pytest.mark.parametrize("study", STUDIES)
def test_all_studies_have_the_same_options(study):
    command = typer.main.get_command(app).commands[study]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert options >= {"--data", "--folds", "--seeds", "--quick", "--resume", "--no-resume", "--threads", "--workers",
                       "--out", "--json"}  # fmt: skip


def test_a_spoilt_table_is_told_before_any_work(rankwood, folder, tmp_path):
    (tmp_path / "runs.sqlite").write_text("my notes " * 500)
    outcome = rankwood("reproduce", "igbrt", "--data", folder, "--quick", "--out", tmp_path)
    assert outcome.status == 2
    assert outcome.err.splitlines()[-1].endswith("is not a table of runs: move it away, or use another folder")
    assert (tmp_path / "runs.sqlite").read_text().startswith("my notes")


def test_all_are_the_five_with_the_same_options(rankwood, tmp_path, monkeypatch):
    assert {*STUDIES, "all"} == {command.name for command in app.registered_commands}
    done = []
    for name in STUDIES:
        monkeypatch.setitem(STUDIES, name, lambda name=name, **options: done.append((name, options)))
    outcome = rankwood("reproduce", "all", "--data", "d", "--folds", "1", "--train-queries", 9, "--seeds", 2,
                       "--quick", "--threads", 1, "--workers", 2, "--no-resume", "--out", tmp_path)  # fmt: skip
    assert outcome.status == 0
    assert "study 4 of 5, igbrt: in " in " ".join(outcome.err.split())
    assert [name for name, _ in done] == list(STUDIES)
    shared = {"data": Path("d"), "folds": "1", "train_queries": 9, "seeds": 2, "quick": True, "threads": 1,
              "workers": 2, "dask": None, "resume": False}  # fmt: skip
    assert [options for _, options in done] == [{**shared, "out": tmp_path / name} for name in STUDIES]
