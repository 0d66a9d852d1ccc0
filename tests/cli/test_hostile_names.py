"""Names, notes and paths are data: no command takes them for markup, and none sends their escapes to a terminal."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rankwood as rw
from rankwood.lab.drawing import can_draw
from rankwood.printable import printable

pytest.importorskip("pyarrow", reason="ARROW ABSENT: pip install 'rankwood[arrow]'")

# Markup of rich that closes what is not open, styles and emoji; a window title, the clearing of a screen by a C1
# control, a bell, a carriage return, an override of the direction of text; a formula that is none; HTML; a line end.
NASTY = "a[bold]\x1b]0;owned\x07\x9b2J\rb\u202ec:smile:$\\frac{$ <script>alert(1)<\\script>\nrankwood: all is well"
NAME = "[/x]" + NASTY
FILE = "[x]" + NASTY
SHOWN = r"a[bold]\x1b]0;owned\x07\x9b2J\rb\u202ec:smile:$\frac{$ <script>alert(1)<\script>\nrankwood: all is well"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data whose features and queries have such names, and models of it with such notes, in such files."""
    folder = tmp_path_factory.mktemp("hostile")
    names = [NAME, *(f"{number}{NAME}" for number in range(2, 6))]
    made = rw.make_ranking(n_queries=36, docs_per_query=10, n_features=5, seed=2)
    queries = np.array([f"{NAME}{number}" for number in made.qid])
    data = rw.Dataset(made.X, made.y, qid=queries, feature_names=names)
    parts = [data.select_queries(range(start, start + 12)) for start in (0, 12, 24)]
    for role, part in zip(("train", "valid", "test"), parts, strict=True):
        rw.write_parquet(part, folder / f"{role}{FILE}.parquet")
    model = rw.LambdaMART(n_trees=4, n_leaves=4, min_docs_per_leaf=2).fit(parts[0], valid=parts[1]).ensemble_
    notes = {NAME: NAME, "source": {"format": NAME, "n_leaves": 3, NAME: [NAME]}, "learner": NAME}
    model.with_metadata(**notes).save(folder / f"one{FILE}.rw")
    model.select([0, 1]).with_metadata(source=NAME).save(folder / f"two{FILE}.rw")
    return folder


def assert_plain(outcome, status: int = 0) -> None:
    """Nothing but printable characters and line ends."""
    assert outcome.status == status, outcome.err
    for text in (outcome.out, outcome.err):
        raw = {character for character in text if not character.isprintable()} - {"\n"}
        assert not raw, (raw, text)
        assert "Traceback" not in text


def model(folder: Path, name: str) -> Path:
    return folder / f"{name}{FILE}.rw"


def data(folder: Path, role: str) -> Path:
    return folder / f"{role}{FILE}.parquet"


def learning(folder: Path) -> tuple[object, ...]:
    return ("--train", data(folder, "train"), "--valid", data(folder, "valid"), "--test", data(folder, "test"))


def test_inspect(rankwood, folder):
    outcome = rankwood("inspect", model(folder, "one"), "--data", data(folder, "test"))
    assert_plain(outcome)
    assert f"[/x]{SHOWN}" in outcome.out  # a feature
    assert f"one[x]{SHOWN}.rw" in " ".join(outcome.out.split())
    assert_plain(rankwood("inspect", model(folder, "two")))
    answer = json.loads(rankwood("inspect", model(folder, "one"), "--json").out)
    assert answer["model"] == model(folder, "one").name
    assert answer["metadata"][NAME] == NAME


def test_evaluate(rankwood, folder):
    files = (model(folder, "one"), model(folder, "two"), "--data", data(folder, "test"))
    outcome = rankwood("evaluate", *files)
    assert_plain(outcome)
    assert f"two[x]{SHOWN}" in outcome.out
    answer = json.loads(rankwood("evaluate", *files, "--json").out)
    assert [row["model"] for row in answer["models"]] == [model(folder, "one").name, model(folder, "two").name]


def test_score(rankwood, folder, tmp_path):
    assert_plain(rankwood("score", model(folder, "one"), "--data", data(folder, "test"), "-o", tmp_path / FILE))
    assert_plain(rankwood("score", model(folder, "one"), "--data", data(folder, "test")))


def test_prune(rankwood, folder, tmp_path):
    loose = ("--judge-share", 0.5, "--margin", 0.9, "--alpha", 0.5)
    for name, more in (("small", loose), ("same", ("--accept", "non-inferior", "--margin", 1e-9, "--alpha", 1e-300))):
        out = tmp_path / f"{name}{FILE}.rw"
        outcome = rankwood("prune", model(folder, "one"), *learning(folder), "--rates", 0.5, "--iterations", 2, "-o",
                           out, *more)  # fmt: skip
        assert_plain(outcome)
        assert SHOWN in outcome.err
        assert out.exists()


def test_refit(rankwood, folder, tmp_path):
    for name, more in (("better", ()), ("same", ("--rate", 1e-9, "--passes", 1))):
        out = tmp_path / f"{name}{FILE}.rw"
        outcome = rankwood("refit", model(folder, "one"), *learning(folder), "-o", out, *more)
        assert_plain(outcome)
        assert SHOWN in outcome.err
        assert out.exists()


def test_shrink(rankwood, folder, tmp_path):
    for name, more in (("small", ("--margin", 0.9, "--alpha", 0.5)), ("same", ("--margin", 1e-9, "--alpha", 1e-9))):
        out, steps = tmp_path / f"{name}{FILE}.rw", tmp_path / f"{name}-steps{FILE}"
        figure = ("--figure", tmp_path / f"{FILE}.svg") if can_draw() else ()
        others = ("--judge", data(folder, "test"), "--unlabelled", data(folder, "test"), "--checkpoint", steps)
        outcome = rankwood("shrink", model(folder, "one"), *learning(folder), *others, "-o", out, *more, *figure)
        assert_plain(outcome)
        assert SHOWN in outcome.err
        assert out.exists()
        if figure:
            ElementTree.parse(figure[1])


def test_train(rankwood, folder, tmp_path):
    out = tmp_path / f"{FILE}.rw"
    outcome = rankwood("train", "lambdamart", *learning(folder), "-p", "n_trees=3", "-p", "n_leaves=3", "-o", out)
    assert_plain(outcome)
    assert SHOWN in outcome.out
    forest = ("--forest", model(folder, "one"), "-p", "n_trees=2")
    assert_plain(rankwood("train", "igbrt", *learning(folder), *forest, "-o", out))
    assert rw.load_model(out).feature_names[0] == NAME


def test_tune(rankwood, folder, tmp_path):
    pytest.importorskip("optuna", reason="OPTUNA ABSENT: pip install 'rankwood[lab]'")
    files = (*learning(folder), "--study", tmp_path / f"study{FILE}", "-o", tmp_path / f"{FILE}.rw")
    assert_plain(rankwood("tune", *files, "--budget-us", 1e6, "--trials", 1, "--max-trees", 4))


def test_bench(rankwood, folder):
    outcome = rankwood("bench", model(folder, "one"), "--data", data(folder, "test"), "--engine", "reference",
                       "--batch", 1, "--repeats", 6)  # fmt: skip
    assert_plain(outcome)
    assert SHOWN in outcome.out


def test_verify(rankwood, folder):
    files = ("--data", data(folder, "test"), "--rows", 1000)
    assert_plain(rankwood("verify", model(folder, "one"), model(folder, "one"), *files))
    outcome = rankwood("verify", model(folder, "one"), model(folder, "two"), *files)
    assert_plain(outcome, 1)
    assert SHOWN in outcome.out


def test_convert_and_compile(rankwood, folder, tmp_path):
    for name in ("one", "two"):
        assert_plain(rankwood("convert", model(folder, name), tmp_path / f"{name}{FILE}.rw"))
    refused = rankwood("convert", model(folder, "one"), tmp_path / f"{FILE}.txt")  # LightGBM has no such names
    assert_plain(refused, 2)
    for name, status in ((FILE, 2), (FILE[:7], 0)):  # C cannot include a header of the first name
        assert_plain(rankwood("compile", model(folder, "one"), "-o", tmp_path / f"{name}.c"), status)


def test_report(rankwood, folder, tmp_path):
    pytest.importorskip("matplotlib", reason="MATPLOTLIB ABSENT: pip install 'rankwood[lab]'")
    files = (model(folder, "one"), model(folder, "two"), "--data", data(folder, "test"))
    outcome = rankwood("report", *files, "-m", "AP", "--title", NASTY, "-o", tmp_path / f"{FILE}.html", "--figures",
                       tmp_path / f"figures{FILE}")  # fmt: skip
    assert_plain(outcome)
    page = (tmp_path / f"{FILE}.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "\x1b" not in page
    drawn = sorted((tmp_path / f"figures{FILE}").glob("*.svg"))
    assert "features" in [path.stem for path in drawn]
    for path in drawn:
        ElementTree.parse(path)  # what is no XML is refused


def test_sweep(rankwood, tmp_path):
    pytest.importorskip("matplotlib", reason="MATPLOTLIB ABSENT: pip install 'rankwood[lab]'")
    text = json.dumps(NAME, ensure_ascii=True)  # which TOML reads as well
    (tmp_path / f"{FILE}.toml").write_text(
        f"name = {text}\nlearner = 'lambdamart'\nspeed = false\nfolds = [1, 2]\nseeds = 1\n"
        "parameters = {n_trees = 2, n_leaves = 3}\n"
        f"[[configurations]]\nname = {text}\n[[configurations]]\nname = 'other'\nn_leaves = 4\n"
        "[data]\nsynthetic = {n_queries = 20, docs_per_query = 6, n_features = 4}\n"
    )
    outcome = rankwood("sweep", tmp_path / f"{FILE}.toml", "--out", tmp_path / f"out{FILE}")
    assert_plain(outcome)
    assert SHOWN in outcome.out
    ElementTree.parse(tmp_path / f"out{FILE}" / "quality-cost.svg")
    answer = rankwood("sweep", tmp_path / f"{FILE}.toml", "--out", tmp_path / f"out{FILE}", "--json")
    assert NAME in json.loads(answer.out)["title"]


def test_reproduce(rankwood, tmp_path, monkeypatch):
    monkeypatch.setattr("rankwood.lab.study.write_figure", lambda figure, folder: [])  # which takes a while
    folds = tmp_path / FILE
    folds.mkdir()
    made = rw.make_ranking(n_queries=20, docs_per_query=6, n_features=4, seed=2)
    for part in range(5):
        rw.write_svmlight(made.select_queries(range(4 * part, 4 * part + 4)), folds / f"S{part + 1}.txt")
    outcome = rankwood("reproduce", "subsampling", "--data", folds, "--folds", 1, "--seeds", 1, "--trees", 2, "--sweep",
                       "1", "--out", tmp_path / f"out{FILE}")  # fmt: skip
    assert_plain(outcome)


def test_demo(rankwood, tmp_path, monkeypatch):
    demo = importlib.import_module("rankwood.cli.demo")
    tiny = demo.Size(60, 8, 0, 4, 4, 0.2, 5, 2, 4, 0.2, factors=(2.0,), margin=0.9)
    monkeypatch.setattr(demo, "QUICK", tiny)
    assert_plain(rankwood("demo", "--quick", "--out", tmp_path / FILE))


def test_errors_are_plain(rankwood, folder, tmp_path):
    damaged = tmp_path / f"damaged{FILE}.rw"
    damaged.write_bytes(model(folder, "one").read_bytes()[:200])
    text = tmp_path / f"text{FILE}.txt"
    text.write_text(f"1 qid:{NASTY.replace(chr(10), '')} 1:x\n", encoding="utf-8")
    table = tmp_path / f"table{FILE}.csv"
    table.write_text(f'qid,label,"{NAME}"\n1,1,2\n1,0,"{NAME}"\n', encoding="utf-8")
    lightgbm = tmp_path / f"lightgbm{FILE}.txt"
    lightgbm.write_text(f"tree\nversion={NASTY}\n\nend of trees\n", encoding="utf-8")
    given = model(folder, "one")
    for command in (
        ("inspect", tmp_path / f"absent{FILE}"),
        ("inspect", damaged),
        ("inspect", lightgbm),
        ("inspect", given, "--data", text),
        ("evaluate", given, "--data", table),
        ("evaluate", given, "--data", data(folder, "test"), "-m", NAME),
        ("evaluate", given, "--data", data(folder, "test"), "--convention", NAME),
        ("score", given, "--data", text, "--engine", NAME),
        ("bench", given, "--data", data(folder, "test"), "--batch", NAME),
        ("train", "mart", *learning(folder), "-p", f"{NAME}=1", "-o", tmp_path / "m.rw"),
        ("train", NAME, *learning(folder), "-o", tmp_path / "m.rw"),
        ("train", "mart", *learning(folder), "--seed", NAME, "-o", tmp_path / "m.rw"),
        ("prune", given, *learning(folder), "--strategy", NAME, "-o", tmp_path / "m.rw"),
        ("shrink", given, *learning(folder), "--cost", NAME, "-o", tmp_path / "m.rw"),
        ("shrink", given, *learning(folder), "--figure", FILE, "-o", tmp_path / "m.rw"),
        ("shrink", given, *learning(folder), "-m", NAME, "-o", tmp_path / "m.rw"),
        ("convert", given, tmp_path / "m.rw", "--from", NAME),
        ("convert", given, tmp_path / "m.rw", "--option", NAME),
        ("report", given, "--data", data(folder, "test"), "--baseline", NAME, "-o", tmp_path / "r.html"),
        ("sweep", text),
        ("datasets", "fetch", NAME, "--to", tmp_path),
        ("inspect", given, f"-{FILE}"),
        ("inspect", given, FILE),
        (f"--{FILE}",),
        (FILE,),
    ):
        assert_plain(rankwood(*command), 2)


def test_warnings_are_plain(rankwood, folder, monkeypatch):
    from rankwood.evaluation import conventions

    original = conventions.Convention.get

    def get(name):
        import warnings

        warnings.warn(NASTY, stacklevel=2)
        return original(name)

    monkeypatch.setattr(conventions.Convention, "get", get)
    outcome = rankwood("evaluate", model(folder, "one"), "--data", data(folder, "test"))
    assert_plain(outcome)
    assert f"warning: {SHOWN[:20]}" in outcome.err


def test_file_names_that_are_no_text(folder, tmp_path):
    """Run apart: what is printed must be UTF-8, whatever the names are."""
    name = os.fsdecode(b"\xff\xfe\x1b[31m")
    one, test, out, table, folds = (tmp_path / f"{stem}{name}" for stem in ("one", "test", "out", "table", "folds"))
    one.write_bytes(model(folder, "one").read_bytes())
    table = table.with_suffix(".parquet")
    table.write_bytes(data(folder, "test").read_bytes())
    made = rw.make_ranking(n_queries=20, docs_per_query=6, n_features=5, seed=2)
    rw.write_svmlight(made, test)
    folds.mkdir()
    for part in range(5):
        rw.write_svmlight(made.select_queries(range(4 * part, 4 * part + 4)), folds / f"S{part + 1}.txt")
    files = ("--train", test, "--valid", test, "--test", test)
    for command in (
        ("inspect", one),
        ("inspect", one, "--json"),
        ("evaluate", one, one, "--data", test),
        ("score", one, "--data", test, "-o", out),
        ("verify", one, one, "--data", test, "--rows", 1000),
        ("bench", one, "--data", test, "--engine", "reference", "--batch", 1, "--repeats", 6),
        ("prune", one, *files, "--rates", 0.5, "--iterations", 1, "-o", out),
        ("shrink", one, *files, "--unlabelled", test, "--factor", 2, "--checkpoint", f"{out}-steps", "-o", out),
        ("train", "mart", *files, "-p", "n_trees=2", "-o", out),
        ("report", one, "--data", test, "-m", "AP", "-o", out),
        ("report", one, "--data", test, "-m", "AP", "--title", name, "-o", out),
        ("reproduce", "subsampling", "--data", folds, "--folds", 1, "--seeds", 1, "--trees", 2, "--sweep", "1", "--out",
         tmp_path / f"study{name}"),
        ("inspect", out),
        ("evaluate", one, "--data", table),
    ):  # fmt: skip
        done = subprocess.run([sys.executable, "-m", "rankwood", *map(str, command)], capture_output=True, timeout=120)
        assert done.returncode == (2 if command[1] == out or command[-1] == table else 0), done.stderr
        for text in (done.stdout.decode(), done.stderr.decode()):
            assert not {character for character in text if not character.isprintable()} - {"\n"}
            assert "Traceback" not in text


def test_an_encoding_that_lacks_characters(tmp_path):
    path = tmp_path / "model.rw"
    rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], feature_names=["größe"]).save(path)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "rankwood", "inspect", str(path)]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"gr\xf6\xdfe" in done.stdout


@given(st.text(st.characters(), max_size=20))  # surrogates are among them
@example(NASTY)
def test_every_text_can_be_made_printable(text):
    shown = printable(text)
    assert shown.isprintable()
    shown.encode()
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


STYLING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # what rich itself sends to a terminal


@pytest.mark.skipif(sys.platform == "win32", reason="NO PSEUDO-TERMINAL HERE")
@pytest.mark.parametrize("command", ["inspect", "train", "fetch"])
def test_on_a_terminal(folder, tmp_path, command):
    """With styles and bars, and names in them."""
    import pty

    arguments = {
        "inspect": ("inspect", model(folder, "one")),
        "train": ("train", "lambdamart", *learning(folder), "-p", "n_trees=3", "-o", tmp_path / f"{FILE}.rw"),
        "fetch": ("datasets", "fetch", NAME, "--to", tmp_path),
    }[command]
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    child = subprocess.Popen([sys.executable, "-m", "rankwood", *map(str, arguments)], stdin=slave, stdout=slave,
                             stderr=slave, env=environment)  # fmt: skip
    os.close(slave)
    pieces = []
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # Linux says so that the other end is closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(master)
    assert child.wait() == (2 if command == "fetch" else 0)
    text = b"".join(pieces).decode()
    assert "\x1b[" in text or command == "fetch"
    left = STYLING.sub("", text)
    raw = {character for character in left if not character.isprintable()} - {"\n", "\r"}
    assert not raw, (raw, left)
    assert "\rb" not in left
    assert "Traceback" not in left
