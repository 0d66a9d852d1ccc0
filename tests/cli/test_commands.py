"""Every command: what it prints, its JSON, its exit status, and what it says when something is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.cli.models import spread_values
from rankwood.lab.datasets.catalogue import catalogue
from rankwood.model.unfold import without_sets


def test_version_names_the_instruction_set(rankwood):
    outcome = rankwood("--version")
    assert outcome.status == 0
    assert outcome.out.startswith(f"rankwood {rw.__version__}\ninstruction set: ")


def test_help_lists_the_commands(rankwood):
    outcome = rankwood("--help")
    assert outcome.status == 0
    for command in ("demo", "train", "evaluate", "score", "inspect", "bench", "datasets"):
        assert command in outcome.out


def test_evaluate_prints_one_json_object(rankwood, models, data_file, data):
    outcome = rankwood("evaluate", *models, "--data", data_file, "--measure", "nDCG@10", "--measure", "AP", "--json")
    assert (outcome.status, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    assert result["convention"] == "rankwood"
    assert [row["model"] for row in result["models"]] == ["one.rw", "two.rw"]
    for path, row in zip(models, result["models"], strict=True):
        expected = rw.evaluate(rw.load_model(path), data, ["nDCG@10", "AP"])
        assert row["measures"] == dict(expected)
    comparison = result["comparisons"][0]
    assert comparison["difference"] == pytest.approx(
        result["models"][1]["measures"]["nDCG@10"] - result["models"][0]["measures"]["nDCG@10"]
    )
    assert comparison["interval"][0] <= comparison["difference"] <= comparison["interval"][1]
    assert all(0 < comparison[key] <= 1 for key in ("p_randomisation", "p_holm", "p_wilcoxon", "p_t"))
    assert len(result["comparisons"]) == 2


def test_evaluate_prints_tables_that_name_the_convention(rankwood, models, data_file):
    outcome = rankwood("evaluate", *models, "--data", data_file, "--convention", "lightgbm")
    assert outcome.status == 0
    for text in ("one.rw", "two.rw", "nDCG@10", "convention lightgbm", "p (Holm)"):
        assert text in outcome.out


def test_one_model_is_not_compared(rankwood, models, data_file):
    outcome = rankwood("evaluate", models[0], "--data", data_file, "--json")
    assert json.loads(outcome.out)["comparisons"] == []


def test_models_of_one_name_are_told_apart_by_path(rankwood, models, data_file, tmp_path):
    twin = tmp_path / "one.rw"
    twin.write_bytes(models[1].read_bytes())
    result = json.loads(rankwood("evaluate", models[0], twin, "--data", data_file, "--json").out)
    assert [row["model"] for row in result["models"]] == [str(models[0]), str(twin)]


def test_several_data_files_are_joined(rankwood, models, data_file, data):
    result = rankwood("score", models[0], "--data", data_file, data_file)
    assert len(result.out.splitlines()) == 2 * data.n_docs


def test_scores_come_in_input_order_and_read_back_the_same(rankwood, models, data_file, data, tmp_path):
    expected = rw.load_model(models[1]).score(data.X)
    printed = rankwood("score", models[1], "--data", data_file)
    assert printed.status == 0
    assert_array_equal(np.array(printed.out.split(), dtype=float), expected)
    target = tmp_path / "scores.txt"
    assert rankwood("score", models[1], "--data", data_file, "-o", target, "--threads", 2).status == 0
    assert target.read_text() == printed.out


def test_inspect_tells_the_topology(rankwood, models):
    result = json.loads(rankwood("inspect", models[1], "--json").out)
    assert (result["n_trees"], result["n_leaves"], result["n_nodes"], result["mean_depth"]) == (2, 5, 3, 1.5)
    assert "Features most often split on" in rankwood("inspect", models[1]).out


def test_inspect_tells_the_size_against_the_source(rankwood, models, tmp_path):
    given = Path(__file__).parents[1] / "formats" / "data" / "lightgbm-4.7.0-zero.txt"
    result = json.loads(rankwood("inspect", given, "--json").out)
    assert (result["n_leaves"], result["n_nodes"], result["n_sets"]) == (24, 20, 3)
    assert "source counts" not in rankwood("inspect", given).out
    # Files of before there were sets have more leaves than their source, and note those.
    model, grown = rw.load_model(given), tmp_path / "old.rw"
    source = model.metadata["source"] | {"n_leaves": 24, "n_nodes": 20}
    without_sets(model).with_metadata(source=source).save(grown)
    result = json.loads(rankwood("inspect", grown, "--json").out)
    assert (result["n_leaves"], result["n_nodes"]) == (36, 32)
    assert result["metadata"]["source"]["n_leaves"] == 24
    assert result["metadata"]["source"]["n_nodes"] == 20
    assert result["file_bytes"] == grown.stat().st_size
    shown = rankwood("inspect", grown).out
    assert f"{grown.stat().st_size:,}" in shown
    assert "the lightgbm source counts 24 leaves, the model here 36: " in " ".join(shown.split())
    assert "source counts" not in rankwood("inspect", models[0]).out
    assert "n_leaves" not in json.loads(rankwood("inspect", models[0], "--json").out)["metadata"].get("source", {})


def test_inspect_tells_what_scoring_looks_at(rankwood, models, data_file, data):
    found = rw.usage(rw.load_model(models[1]), data.X)
    outcome = rankwood("inspect", models[1], "--data", data_file, data_file, "--threads", 2, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    assert result["data"] == {**found.as_dict(), "n_docs": 2 * data.n_docs}
    assert "data" not in json.loads(rankwood("inspect", models[1], "--json").out)
    shown = rankwood("inspect", models[1], "--data", data_file).out
    for text in (
        f"{100 * found.features_touched_share:.1f} %",
        f"{found.splits_per_tree:.2f} per tree",
        "1.50 per tree",  # the mean depth
        "Hottest nodes below the roots",
        f"{100 * found.hot_nodes()[0].share:.1f} %",
    ):
        assert text in shown


def test_datasets_are_listed(rankwood):
    names = [entry.name for entry in catalogue()]
    listed = json.loads(rankwood("datasets", "list", "--json").out)["datasets"]
    assert [entry["name"] for entry in listed] == names
    for arguments in (("datasets",), ("datasets", "list")):
        outcome = rankwood(*arguments)
        assert outcome.status == 0
        assert all(name in outcome.out for name in names)


def test_fetching_what_nobody_knows_is_an_error(rankwood, tmp_path):
    outcome = rankwood("datasets", "fetch", "MSLR-WEB10", "--to", tmp_path)
    assert outcome.status == 2
    assert "MSLR-WEB10K" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "missing.rw", "--data", "DATA"), "missing.rw"),
        (("evaluate", "MODEL", "--data", "missing.txt"), "missing.txt"),
        (("evaluate", "MODEL", "--data", "DATA", "--measure", "nDGC@10"), "nDGC"),
        (("evaluate", "MODEL", "--data", "DATA", "--convention", "martian"), "martian"),
        (("evaluate", "DATA", "--data", "DATA"), "data.txt"),
        (("score", "MODEL", "--data", "DATA", "--engine", "warp"), "warp"),
        (("score", "MODEL", "--data", "MODEL"), "one.rw"),
        (("score", "MODEL", "--data", "DATA", "-o", "no/such/folder/scores.txt"), "no/such/folder"),
        (("inspect", "DATA"), "data.txt"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(rankwood, models, data_file, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    stand_in = {"MODEL": models[0], "DATA": data_file}
    outcome = rankwood(*(stand_in.get(argument, argument) for argument in arguments))
    assert outcome.status == 2
    assert outcome.out == ""
    assert message in outcome.err
    assert outcome.err.startswith("rankwood: ")
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("arguments", [("evaluate",), ("score", "model.rw"), ("nonsense",), ("inspect", "--what")])
def test_wrong_use_is_status_2(rankwood, arguments):
    outcome = rankwood(*arguments)
    assert outcome.status == 2
    assert "Usage" in outcome.err


def test_a_model_of_other_width_is_refused(rankwood, models, tmp_path):
    narrow = tmp_path / "narrow.txt"
    narrow.write_text("1 qid:1 1:0.5 2:0.25\n0 qid:1 1:0.1 9:1\n")
    outcome = rankwood("score", models[0], "--data", narrow)
    assert outcome.status == 2
    assert "9" in outcome.err


def test_an_instruction_set_that_cannot_run_is_said_before_any_work():
    environment = os.environ | {"RANKWOOD_ISA": "sse9"}
    result = subprocess.run(
        [sys.executable, "-m", "rankwood", "datasets"], capture_output=True, text=True, env=environment, check=False
    )
    assert result.returncode == 2
    assert result.stderr.startswith("rankwood: RANKWOOD_ISA=sse9: no such instruction set")


def test_a_closed_pipe_is_no_crash(models, data_file):
    command = f"{sys.executable} -m rankwood score {models[0]} --data {data_file} | head -n 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert len(result.stdout.splitlines()) == 1
    assert "Traceback" not in result.stderr


def test_values_after_a_many_valued_option_are_spread():
    assert spread_values(["x", "--data", "a", "b", "-o", "c"]) == ["x", "--data", "a", "--data", "b", "-o", "c"]
    assert spread_values(["--data", "a", "--data", "b", "c"]) == ["--data", "a", "--data", "b", "--data", "c"]
    assert spread_values(["--data=a", "b"]) == ["--data=a", "b"]
    assert spread_values(["--data", "a", "--", "b"]) == ["--data", "a", "--", "b"]
    assert spread_values(["--data", "--json"]) == ["--data", "--json"]


def test_the_shell_completes_commands():
    environment = os.environ | {"_RANKWOOD_COMPLETE": "complete_bash", "COMP_WORDS": "rankwood ev", "COMP_CWORD": "1"}
    code = "from rankwood.cli import app; app(prog_name='rankwood')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert "evaluate" in result.stdout


def test_columns_of_a_table_are_found_by_name(rankwood, tmp_path):
    csv = pytest.importorskip("pyarrow.csv")
    import pyarrow as pa

    model = rw.Ensemble.from_trees([(0, 0.5, 0.0, 1.0)], n_features=2, feature_names=["a", "b"])
    model.save(tmp_path / "named.rw")
    table = pa.table({"qid": [1, 1], "label": [0, 1], "b": [0.0, 0.0], "a": [0.0, 1.0]})
    csv.write_csv(table, tmp_path / "swapped.csv")
    assert rankwood("score", tmp_path / "named.rw", "--data", tmp_path / "swapped.csv").out == "0.0\n1.0\n"
    result = json.loads(rankwood("evaluate", tmp_path / "named.rw", "--data", tmp_path / "swapped.csv", "--json").out)
    assert result["models"][0]["measures"]["nDCG@10"] == 1.0


def test_models_before_and_after_the_data(rankwood, models, data_file, tmp_path):
    one, two = models
    wanted = rankwood("evaluate", one, two, "--data", data_file, data_file, "--json")
    assert wanted.status == 0
    for order in (
        ("evaluate", "--data", data_file, data_file, one, two, "--json"),
        ("evaluate", "--json", "--data", data_file, data_file, "--", one, two),
        ("evaluate", "-m", "nDCG@10", "--data", data_file, data_file, one, two, "--json"),
    ):
        assert rankwood(*order).out == wanted.out
    assert rankwood("score", "--data", data_file, one, "-o", tmp_path / "s").status == 0
    assert (tmp_path / "s").read_text().count("\n") == 688
    outcome = rankwood("score", "-o", tmp_path / "s", "--data", data_file, data_file)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("rankwood: no model is given: all of --data ")
    assert outcome.err.endswith("write the model before the options, or after --\n")
    assert (
        rankwood("score", "--data", data_file, one, two).status == 2
    )  # it takes one model: two.rw, and no data one.rw
    assert rankwood("score", "--data", data_file, data_file, "--help").status == 0


def test_data_wider_than_the_model(rankwood, models, tmp_path):
    wide = tmp_path / "wide.txt"
    wide.write_text("1 qid:1 1:0.5\n0 qid:1 9:1\n")
    for command in ("score", "evaluate"):
        outcome = rankwood(command, models[0], "--data", wide)
        assert outcome.status == 2
        assert "line 2: feature id 9 is beyond the 6 features of the model" in outcome.err
