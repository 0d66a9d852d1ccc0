"""Texts of every hostile kind, in every place where a text can stand, through commands, tables and servers.

tests/cli/test_hostile_names.py has one text of many kinds in all commands; here each kind comes alone, as nothing else
may be to blame when a format refuses it.
"""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
from collections.abc import Callable

import numpy as np
import pytest

import rankwood as rw
from rankwood.formats.registry import EXPORTERS
from rankwood.lab.study import Report, Table
from strategies.hostile_texts import KINDS


@pytest.fixture(params=KINDS)
def text(request) -> str:
    return KINDS[request.param]


def assert_plain(outcome, *statuses: int) -> None:
    """One of the statuses, and nothing but printable characters and line ends."""
    assert outcome.status in statuses, outcome.err
    for printed in (outcome.out, outcome.err):
        raw = {character for character in printed if not character.isprintable()} - {"\n"}
        assert not raw, (raw, printed[:2000])
        assert "Traceback" not in printed
    if outcome.status == 2:
        assert len(outcome.err.splitlines()[-1]) < 2000, "a sentence, not a page"


def error_of(call: Callable[[], object]) -> str | None:
    """The sentence with which a call is refused, if it is."""
    try:
        call()
    except rw.RankwoodError as error:
        return str(error)
    return None


def hostile_model(text: str) -> rw.Ensemble:
    return rw.Ensemble.from_trees(
        [(0, 1.0, 0.0, (1, 2.0, 1.0, 2.0)), (1, 0.5, 1.0, 0.0)],
        feature_names=[text, f"2{text}"],
        metadata={"source": {"format": text}, text: [text], "learner": text},
    )


def test_names_of_features_in_commands(rankwood, text, tmp_path):
    path, data = tmp_path / "model.rw", tmp_path / "data.txt"
    hostile_model(text).save(path)
    other = hostile_model(text).select([0])
    other.save(tmp_path / "other.rw")
    rw.write_svmlight(rw.make_ranking(n_queries=6, docs_per_query=5, n_features=2, seed=0), data)
    assert rw.load_model(path).feature_names[0] == text
    assert_plain(rankwood("inspect", path), 0)
    assert json.loads(rankwood("inspect", path, "--json").out)["metadata"][text] == [text]
    assert_plain(rankwood("inspect", path, "--data", data), 0)
    assert_plain(rankwood("evaluate", path, "--data", data), 0)
    assert_plain(rankwood("verify", path, tmp_path / "other.rw"), 1)
    assert_plain(rankwood("inspect", path, "--rename", f"{text}=x"), 0, 2)
    table = tmp_path / "table.csv"
    table.write_text("qid,label,a,b\n1,1,2,3\n1,0,1,1\n")
    assert_plain(rankwood("evaluate", path, "--data", table), 2)  # it has other columns, which is told


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("format", [name for name in EXPORTERS if name != "shared"])
def test_names_of_features_in_other_formats(text, format, tmp_path):
    """A format refuses a name or keeps it, and a file that is written can be read where its format can be."""
    path = tmp_path / f"model{EXPORTERS[format].suffix[0]}"
    error = error_of(lambda: rw.save_as(hostile_model(text), path, format, missing="ignore"))
    if error is not None:
        assert "\n" not in error
        assert not list(tmp_path.iterdir())
        return
    assert b"\x1b" not in path.read_bytes() or format in ("rankwood", "onnx", "so")
    found: list[rw.Ensemble] = []
    error = error_of(lambda: found.append(rw.load_model(path)))
    if error is not None:
        assert "damaged" not in error
        return
    model, X = hostile_model(text), np.array([[0.0, 0.0], [2.0, 1.0], [2.0, 3.0]])
    names = found[0].feature_names
    columns = (
        [0, 1] if names is None or set(names) != set(model.feature_names) else [*map(model.feature_names.index, names)]
    )
    np.testing.assert_allclose(found[0].score(X[:, columns]), model.score(X), rtol=1e-6)


def test_names_in_data_files(text, tmp_path):
    """Columns and queries are refused, or come back as they are."""
    pytest.importorskip("pyarrow", reason="ARROW ABSENT: pip install 'rankwood[arrow]'")
    data = rw.Dataset([[0.0, 1.0], [1.0, 0.0]], [0, 1], qid=[text, text], feature_names=[text, f"2{text}"])
    for name, write in {"a.csv": rw.write_csv, "a.parquet": rw.write_parquet, "a.txt": rw.write_svmlight}.items():
        error = error_of(lambda name=name, write=write: write(data, tmp_path / name))
        if error is not None:
            assert "\n" not in error
            assert not list(tmp_path.iterdir())
            continue
        found = rw.read_data(tmp_path / name)
        shown = text.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")  # as bytes that are no text
        assert found.queries.ids.tolist() == [shown]
        assert name == "a.txt" or found.feature_names == (text, f"2{text}")
        (tmp_path / name).unlink()


def test_texts_of_categories(rankwood, text, tmp_path):
    model = rw.Ensemble.from_trees(
        [(0, [0.5, 1.5], 1.0, 2.0)],
        feature_names=["colour"],
        metadata={"categories": {"lists": [[text, f"2{text}"]], "columns": [0]}},
    )
    model.save(tmp_path / "model.rw")
    assert_plain(rankwood("inspect", tmp_path / "model.rw", "--categories"), 0)
    assert_plain(rankwood("inspect", tmp_path / "model.rw"), 0)


def test_ids_of_queries_and_documents(text, tmp_path):
    """Readers of TREC files split lines at blanks: every line has its six words, or the file is refused."""
    data = rw.Dataset([[0.0], [1.0], [2.0]], [0, 1, 2], qid=[text, text, f"2{text}"], doc_ids=[text, f"2{text}", text])
    for write in (lambda path: rw.write_run(data, [0.5, 1.0, 2.0], path), lambda path: rw.write_qrels(data, path)):
        error = error_of(lambda write=write: write(tmp_path / "trec.txt"))
        if error is not None:
            assert error.isprintable()
            assert not list(tmp_path.iterdir())
            continue
        lines = (tmp_path / "trec.txt").read_bytes().split(b"\n")
        assert {len(line.split()) for line in lines[:-1]} <= {4, 6}
        assert len(lines) == 4
        (tmp_path / "trec.txt").unlink()


def test_tables_of_studies(text):
    table = Table("t", text, ("a", text), [(text, "1"), ("b", text)], note=text)
    page = Report(title=text, summary=text, tables=[table], figures=(), differences=[text]).markdown({"cpu": text})
    for written in (table.markdown(), page, table.latex()):
        assert not {character for character in written if not character.isprintable()} - {"\n"}
    for written in (table.markdown(), page):
        assert not re.search(r"<[A-Za-z/!?]", written)
        rows = [line for line in written.splitlines() if line.startswith("| ")]
        assert len(rows) == 4
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}
    assert table.latex().count("\\\\ ") <= 2
    rows = list(csv.reader(io.StringIO(table.csv(), newline="")))
    assert rows == [["a", text], [text, "1"], ["b", text]]  # which holds texts as they are, for programs


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append(f"{tag} {sorted(name for name, _ in attrs)}")


def test_the_html_report(rankwood, text, tmp_path):
    """The tags of the page do not depend on the names in it."""
    data = tmp_path / "data.txt"
    rw.write_svmlight(rw.make_ranking(n_queries=6, docs_per_query=5, n_features=2, seed=0), data)
    found = []
    for name in (text, "plain"):
        hostile_model(name).save(tmp_path / "model.rw")
        title = name[:1000].replace("\0", "") if name.isprintable() else "title"
        outcome = rankwood("report", tmp_path / "model.rw", "--data", data, "-m", "AP", "--title", title, "-o",
                           tmp_path / "page.html")  # fmt: skip
        assert_plain(outcome, 0)
        tags = Tags()
        tags.feed((tmp_path / "page.html").read_text(encoding="utf-8"))
        found.append(tags.found)
    assert found[0] == found[1]
