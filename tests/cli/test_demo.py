"""`rankwood demo`: what it prints is what README shows, what it advises works, and table and report agree."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from pathlib import Path

import pytest

import rankwood as rw
from rankwood.pruning.accept import Proof

demo_module = importlib.import_module("rankwood.cli.demo")  # `rankwood.cli.demo` itself is the command

README = Path(__file__).parents[2] / "README.md"
MODELS = ["lambdamart", "small", "shrunk"]
TINY = demo_module.Size(
    440, 10, 1, n_trees=24, n_leaves=8, learning_rate=0.2, min_docs_per_leaf=5,
    rival_trees=6, rival_leaves=4, rival_learning_rate=0.2, factors=(2.0, 4.0), margin=0.9,
)  # fmt: skip  # all smaller models pass, as there are validation queries for ten folds


@pytest.fixture
def run_demo(rankwood, tmp_path, monkeypatch):
    """The demo, small, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_module, "QUICK", TINY)
    return lambda *options: rankwood("demo", "--quick", *options)


def structure(text: str) -> dict[str, list[str]]:
    """Column headings, names of rows, first words of what is told, commands; no numbers."""
    lines = text.splitlines()
    heading = next(line for line in lines if line.startswith("┃"))
    return {
        "columns": [cell.strip() for cell in heading.strip("┃").split("┃")],
        "rows": [line.strip("│").split("│")[0].strip() for line in lines if line.startswith("│")],
        "steps": [" ".join(line.split()[:2]) for line in lines if re.match(r"(made|trained|shrunk|took) ", line)],
        "commands": [line.strip() for line in lines if line.startswith("  rankwood ")],
    }


def readme_block() -> str:
    text = README.read_text(encoding="utf-8")
    (block,) = re.findall(r"```\n\$ rankwood demo\n(.*?)```", text, flags=re.DOTALL)
    return block


def test_readme_shows_what_is_printed(run_demo):
    outcome = run_demo()
    assert outcome.status == 0
    shown, printed = structure(readme_block()), structure(outcome.err + outcome.out)
    for found in (shown, printed):  # how much was made and how long it took are numbers
        found["steps"] = [re.sub(r"(made|took) .*", r"\1", step) for step in found["steps"]]
    assert sorted(printed.pop("steps")) == sorted(shown.pop("steps"))
    assert printed == shown
    assert printed["rows"] == MODELS
    for sentence in (
        "queries that no model has seen",
        "diff., factor: against lambdamart; p: randomisation test",
        "us/doc: one thread",
        "shrunk was chosen because validation data shows that",
        "queries by cross-validation, none of which",
        "On the test queries",
        "queries that chose nothing",
        "the model that was small from the start",
    ):
        assert sentence in " ".join(outcome.out.split())
        assert sentence in " ".join(readme_block().split())


def test_a_table_fits_a_narrow_terminal():
    assert max(map(len, readme_block().splitlines())) <= 106
    assert max(len(line) for line in readme_block().splitlines() if line.startswith("│")) <= 80


def test_numbers_are_those_of_the_library_and_the_report(run_demo, tmp_path):
    outcome = run_demo("--seed", 3)
    folder = tmp_path / "rankwood-demo"
    test = rw.read_svmlight(folder / "test.txt", n_features=27)
    page = (folder / "report.html").read_text(encoding="utf-8")
    shown = json.loads(page.split('id="report-data">')[1].split("</script>")[0])
    assert [model["name"] for model in shown["models"]] == list(MODELS)
    full = rw.evaluate(rw.load_model(folder / "lambdamart.rw"), test)["nDCG@10"]
    for name in MODELS:
        model = rw.load_model(folder / f"{name}.rw")
        row = next(line for line in outcome.out.splitlines() if line.startswith(f"│ {name}"))
        cells = [cell.strip() for cell in row.strip("│").split("│")]
        assert cells[1] == str(model.n_leaves)
        value = rw.evaluate(model, test)["nDCG@10"]
        assert cells[2].startswith(f"{value:.4f} (")
        if name != "lambdamart":
            assert float(cells[3]) == pytest.approx(value - full, abs=6e-5)
        (found,) = (one for one in shown["models"] if one["name"] == name)
        assert found["trees"] == model.n_trees
        assert found["quality"][0][0] == pytest.approx(value, abs=1e-5)
    before, after = (rw.load_model(folder / f"{name}.rw") for name in ("lambdamart", "shrunk"))
    assert 4 * after.n_leaves <= before.n_leaves
    full, small, shrunk = (
        rw.evaluate(rw.load_model(folder / f"{name}.rw"), test).per_query["nDCG@10"]
        for name in ("lambdamart", "small", "shrunk")
    )
    proof = Proof.of_each(full, [small, shrunk], rw.Acceptance(margin=TINY.margin))[1]
    assert f"On the test queries {proof.words()}." in " ".join(outcome.out.split())
    assert any(proof.words() in sentence for sentence in shown["summary"]) or not proof.holds


def test_files_of_others_are_safe(run_demo, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.txt").write_text("precious")
    outcome = run_demo("--out", "mine")
    assert outcome.status == 2
    assert "mine has files that are not the demo's: give it a folder of its own with --out" in outcome.err
    assert (tmp_path / "mine" / "train.txt").read_text() == "precious"
    assert [run_demo("--out", "own").status for _ in range(2)] == [0, 0]


def test_what_to_try_next_works(run_demo, rankwood, tmp_path, monkeypatch):
    outcome = run_demo("--out", "a folder")
    commands = [shlex.split(line) for line in outcome.out.splitlines() if line.startswith("  rankwood ")]
    assert [command[1] for command in commands] == ["shrink", "evaluate", "bench", "convert", "verify"]
    assert "  cd 'a folder'\n  rankwood" in outcome.out
    monkeypatch.chdir(tmp_path / "a folder")
    for _, *arguments in commands:
        if arguments[0] == "bench":
            arguments += ["--engine", "auto", "--repeats", "6"]  # the same, sooner
        done = rankwood(*arguments)
        assert done.status == 0, done.err
    assert (tmp_path / "a folder" / "report.html").exists()


def test_a_seed_is_another_world_and_the_same_seed_the_same(run_demo, tmp_path):
    for out, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert run_demo("--out", out, "--seed", seed, "--threads", 1).status == 0
    for name in MODELS:
        a, b, c = (rw.load_model(tmp_path / out / f"{name}.rw").fingerprint() for out in "abc")
        assert a == b != c


def test_nothing_smaller_that_is_as_good_is_said(run_demo, monkeypatch):
    from dataclasses import replace

    monkeypatch.setattr(demo_module, "QUICK", replace(TINY, margin=1e-9))
    outcome = run_demo()
    assert outcome.status == 0
    assert "shrunk lambdamart: nothing smaller was shown to be as good, so it stays as it is" in outcome.err
    assert "shrunk is lambdamart itself: no smaller model was accepted" in outcome.out
    assert "On the test queries" not in outcome.out


def test_only_core_packages_are_needed():
    """What the demo imports is in the dependencies of the package, not in an extra (joblib is scikit-learn's, too)."""
    import subprocess
    import sys

    code = (
        "import sys, tempfile, importlib\n"
        "for name in ('pandas', 'pyarrow', 'matplotlib', 'optuna', 'pooch', 'requests',"
        " 'filelock', 'tomli', 'lightgbm', 'onnx', 'jinja2', 'plotly', 'polars'): sys.modules[name] = None\n"
        "demo = importlib.import_module('rankwood.cli.demo')\n"
        f"demo.QUICK = demo.{TINY!r}\n"
        "from rankwood.cli import main\n"
        "sys.argv = ['rankwood', 'demo', '--quick', '--out', tempfile.mkdtemp()]\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "shrunk" in done.stdout
