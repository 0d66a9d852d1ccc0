from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwood as rw
from rankwood import DataError, write_qrels, write_run


@pytest.fixture
def data() -> rw.Dataset:
    X = np.zeros((5, 1))
    return rw.Dataset(X, [0, 2, 1, 0, 3], qid=["q 2", 1, "q 2", "q 2", 1], doc_ids=["a", "b b", "", " c\t", "e"])


def test_a_run_is_sorted_by_score(tmp_path, data):
    write_run(data, [0.5, 1 / 3, 2, 0.5, -1e-30], tmp_path / "run", tag="t")
    assert (tmp_path / "run").read_text() == (
        "q_2 Q0 d2 1 2.0 t\n"
        "q_2 Q0 a 2 0.5 t\n"  # ties in the order of documents
        "q_2 Q0 c 3 0.5 t\n"
        "1 Q0 b_b 1 0.3333333333333333 t\n"
        "1 Q0 e 2 -1e-30 t\n"
    )


def test_qrels(tmp_path, data):
    write_qrels(data, tmp_path / "qrels")
    assert (tmp_path / "qrels").read_text() == "q_2 0 a 0\nq_2 0 d2 1\nq_2 0 c 0\n1 0 b_b 2\n1 0 e 3\n"


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_scores_have_all_their_digits(tmp_path_factory, scores):
    path = tmp_path_factory.getbasetemp() / "run"
    write_run(rw.Dataset(np.zeros((len(scores), 1)), group=[len(scores)]), scores, path)
    fields = [line.split() for line in path.read_text().splitlines()]
    written = {int(docno[1:]): float(score) for _, _, docno, _, score, _ in fields}
    assert written == dict(enumerate(scores))
    assert [float(field[4]) for field in fields] == sorted(scores, reverse=True)
    assert [int(field[3]) for field in fields] == list(range(1, len(scores) + 1))


def test_trec_eval_measures_what_was_written(tmp_path):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(0)
    data = rw.Dataset(np.zeros((60, 1)), rng.integers(0, 4, 60), group=[20, 25, 15])
    scores = rng.permutation(60).astype(float)
    write_run(data, scores, tmp_path / "run")
    write_qrels(data, tmp_path / "qrels")
    with open(tmp_path / "run") as run, open(tmp_path / "qrels") as qrels:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(qrels), {"recip_rank", "P_5"})
        result = evaluator.evaluate(pytrec_eval.parse_run(run))
    for number in range(3):
        rows = slice(*data.offsets[number : number + 2])
        relevant = data.y[rows][np.argsort(-scores[rows])] >= 1
        assert result[str(number)]["P_5"] == pytest.approx(relevant[:5].mean())
        assert result[str(number)]["recip_rank"] == pytest.approx(1 / (1 + relevant.argmax()))


@pytest.mark.parametrize("doc_ids", [None, ["", "b b", "a"] + [f" x{row}" for row in range(57)]])
def test_ties_count_as_trec_eval_counts_them(tmp_path, doc_ids):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(1)
    data = rw.Dataset(np.zeros((60, 1)), rng.integers(0, 4, 60), qid=rng.integers(3, size=60), doc_ids=doc_ids)
    scores = rng.integers(3, size=60).astype(float)
    write_run(data, scores, tmp_path / "run")
    write_qrels(data, tmp_path / "qrels")
    with open(tmp_path / "run") as run, open(tmp_path / "qrels") as qrels:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(qrels), {"ndcg_cut_5", "map"})
        result = evaluator.evaluate(pytrec_eval.parse_run(run))
    ours = rw.evaluate(scores, data, ["nDCG@5", "AP"], convention="trec").per_query
    for number, qid in enumerate(data.queries.ids.tolist()):
        assert ours["nDCG@5"][number] == pytest.approx(result[str(qid)]["ndcg_cut_5"])
        assert ours["AP"][number] == pytest.approx(result[str(qid)]["map"])


def test_what_cannot_be_written(tmp_path, data):
    run = tmp_path / "run"
    with pytest.raises(DataError, match=r"scores must have one value per document \(5\), got shape \(4,\)"):
        write_run(data, [1, 2, 3, 4], run)
    with pytest.raises(DataError, match="the score of row 3 is NaN"):
        write_run(data, [1, 2, 3, np.nan, 4], run)
    with pytest.raises(DataError, match="tag must be one word, got 'my run'"):
        write_run(data, np.zeros(5), run, tag="my run")
    twice = rw.Dataset([[0.0], [0.0]], [0.5, 1], qid=[1, 1], doc_ids=["x", "x"])
    with pytest.raises(DataError, match="document id 'x' stands twice in query '1'"):
        write_run(twice, [1, 2], run)
    with pytest.raises(DataError, match=r"the label of row 0 is 0.5: TREC judgements are whole numbers"):
        write_qrels(twice, run)
    with pytest.raises(DataError, match="no labels"):
        write_qrels(rw.Dataset([[0.0]], qid=[1]), run)
    assert list(tmp_path.iterdir()) == []


# ---- as objects


def test_objects_are_what_files_hold(tmp_path, data):
    scores = [0.5, 1 / 3, 2, 0.5, -1e-30]
    write_run(data, scores, tmp_path / "run")
    write_qrels(data, tmp_path / "qrels")
    run = [(one.query_id, one.doc_id, repr(one.score)) for one in rw.iter_run(data, scores)]
    assert run == [(qid, docno, score) for qid, _, docno, _, score, _ in map(str.split, (tmp_path / "run").open())]
    qrels = [(one.query_id, one.doc_id, str(one.relevance)) for one in rw.iter_qrels(data)]
    assert qrels == [(qid, docno, label) for qid, _, docno, label in map(str.split, (tmp_path / "qrels").open())]


def test_ir_measures_takes_the_objects():
    ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is absent: pip install ir-measures")
    rng = np.random.default_rng(0)
    data = rw.Dataset(np.zeros((60, 1)), rng.integers(0, 4, 60), qid=rng.integers(3, size=60))
    scores = rng.permutation(60).astype(float)
    theirs = ir_measures.calc_aggregate(
        [ir_measures.AP, ir_measures.nDCG @ 5], rw.iter_qrels(data), rw.iter_run(data, scores)
    )
    ours = rw.evaluate(scores, data, ["AP", "nDCG@5"], convention="trec")
    assert {str(measure): value for measure, value in theirs.items()} == pytest.approx(dict(ours))


def kinds_of_qrels(data):
    judged = list(rw.iter_qrels(data))
    yield judged
    yield iter(judged)
    yield type("Of", (), {"qrels_iter": lambda self: iter(judged)})()
    nested = {}
    for one in judged:
        nested.setdefault(one.query_id, {})[one.doc_id] = one.relevance
    yield nested


def test_judgements_go_back_to_the_data(data):
    unlabelled = data.replace(y=None)
    for qrels in kinds_of_qrels(data):
        assert rw.apply_qrels(unlabelled, qrels).y.tolist() == data.y.tolist()


def test_judgements_in_tables(data):
    pandas = pytest.importorskip("pandas", reason="pandas is absent: pip install pandas")
    table = pandas.DataFrame(rw.iter_qrels(data))
    as_pyterrier = table.rename(columns={"query_id": "qid", "doc_id": "docno", "relevance": "label"})
    for qrels in (table, as_pyterrier):
        assert rw.apply_qrels(data.replace(y=None), qrels).y.tolist() == data.y.tolist()
    with pytest.raises(DataError, match=r"got a table of qid, docno$"):
        rw.apply_qrels(data, as_pyterrier[["qid", "docno"]])


def test_documents_that_are_not_judged(data):
    qrels = {1: {"e": -2, "b b": 1}, "q 3": {"a": 1}}
    assert rw.apply_qrels(data, qrels).y.tolist() == [0, 1, 0, 0, 0]
    assert rw.apply_qrels(data, qrels, unjudged=-1).y.tolist() == [-1, 1, -1, -1, 0]


def test_judgements_that_cannot_be(data):
    with pytest.raises(DataError, match="give doc_ids to the data set"):
        rw.apply_qrels(data.replace(doc_ids=None), {})
    with pytest.raises(DataError, match=r"'e' is judged twice for query '1', as 3.0 and 1.0"):
        rw.apply_qrels(
            data, [*rw.iter_qrels(data), next(rw.iter_qrels(data))._replace(query_id="1", doc_id="e", relevance=1)]
        )
    for wrong in ("qrels.txt", 3):
        with pytest.raises(DataError, match="judgements have query_id, doc_id and relevance"):
            rw.apply_qrels(data, wrong)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12), st.randoms())
def test_judgements_find_their_documents_in_any_order(rows, random):
    qids, labels = zip(*rows, strict=True)
    data = rw.Dataset(
        np.zeros((len(rows), 1)), labels, qid=qids, doc_ids=[f"d{row % 5}-{row}" for row in range(len(rows))]
    )
    judged = list(rw.iter_qrels(data))
    random.shuffle(judged)
    assert rw.apply_qrels(data.replace(y=None), judged).y.tolist() == list(labels)
