"""Scores over HTTP have the bits of Ensemble.score, in JSON and in Arrow; what cannot be scored is refused."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import FILE, JSON, STREAM, open_desk

import rankwood as rw
from rankwood.serving.arrow_bodies import read_arrow
from rankwood.serving.batch import Limits, Refused
from rankwood.serving.json_bodies import read_json, write_json
from rankwood.serving.served import Served
from strategies.ensembles import big_ensemble, ensembles, rows_near_thresholds

pa = pytest.importorskip("pyarrow", reason="ARROW ABSENT: pip install 'rankwood[arrow]'")
NAMES = ["bm25", "clicks", "age"]


def model_with_names() -> rw.Ensemble:
    return big_ensemble(3, n_trees=20, n_leaves=8, n_features=3).replace(feature_names=NAMES)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    return open_desk(tmp_path_factory.mktemp("models"), named=model_with_names())


def rows_in_json(X: np.ndarray) -> list:
    return [[None if math.isnan(value) else value for value in row] for row in X.tolist()]


def arrow_bytes(table, *, kind: str = STREAM, **options) -> bytes:
    sink = io.BytesIO()
    new = pa.ipc.new_stream if kind == STREAM else pa.ipc.new_file
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def arrow_scores(reply) -> np.ndarray:
    assert reply.status == 200, reply.body
    opened = pa.ipc.open_stream if reply.headers["content-type"] == STREAM else pa.ipc.open_file
    return opened(reply.body).read_all()["score"].to_numpy()


# The same bits.


@settings(max_examples=60)
@given(st.data())
def test_json_has_the_bits_of_the_model(data):
    model = data.draw(ensembles())
    X = data.draw(rows_near_thresholds(model, dtype=np.float64))
    X = X[~np.isinf(X).any(axis=1)]  # JSON has none
    served = Served("m", model)
    batch = read_json(json.dumps({"rows": rows_in_json(X)}).encode(), served, Limits())
    answer = json.loads(write_json(served, batch.score(model), None))
    assert np.array(answer["scores"]).tobytes() == model.score(X).tobytes()


@settings(max_examples=40)
@given(st.data())
def test_rounding_to_float32_is_that_of_the_matrix(data):
    """Clients that hold float32 may write the shortest decimals, as Java does."""
    model = data.draw(ensembles())
    X = data.draw(rows_near_thresholds(model, dtype=np.float32))
    X = X[~np.isinf(X).any(axis=1)]
    shortest = [[None if np.isnan(value) else float(str(value)) for value in row] for row in X]
    body = json.dumps({"rows": shortest, "dtype": "float32"}).encode()
    assert read_json(body, Served("m", model), Limits()).score(model).tobytes() == model.score(X).tobytes()


@pytest.mark.parametrize("kind", [STREAM, FILE])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrow_has_the_bits_of_the_model(desk, kind, dtype):
    """Infinities, NaN and thresholds included; columns in another order, in several batches."""
    model = model_with_names()
    rng = np.random.default_rng(0)
    pool = np.concatenate([model.threshold, [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324]])
    X = rng.choice(pool, (500, 3)).astype(dtype)
    table = pa.table({name: X[:, NAMES.index(name)] for name in reversed(NAMES)})
    cut = pa.concat_tables([table.slice(0, 130), table.slice(130)])
    scores = arrow_scores(desk.ask("POST", "/score", arrow_bytes(cut, kind=kind), kind))
    assert scores.tobytes() == model.score(X).tobytes()


def test_arrow_lists_hold_whole_rows(desk):
    X = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    X[3, 1] = np.nan
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)
    body = arrow_bytes(pa.table({"features": lists}))
    assert arrow_scores(desk.ask("POST", "/score", body, STREAM)).tobytes() == model_with_names().score(X).tobytes()


def test_arrow_nulls_integers_and_empty_columns_are_numbers(desk):
    columns = {"bm25": pa.array([1, None, 3], pa.int32()), "clicks": pa.nulls(3), "age": pa.array([0.5, None, 2.0])}
    X = [[1, np.nan, 0.5], [np.nan, np.nan, np.nan], [3, np.nan, 2]]
    scores = arrow_scores(desk.ask("POST", "/score", arrow_bytes(pa.table(columns)), STREAM))
    assert scores.tobytes() == model_with_names().score(np.array(X)).tobytes()


def test_all_shapes_of_json_are_one(desk):
    X = np.random.default_rng(2).normal(size=(7, 3))
    X[2, 0] = np.nan
    lists = rows_in_json(X)
    objects = [dict(reversed(list(zip(NAMES, row, strict=True)))) for row in lists]
    columns = {name: [row[NAMES.index(name)] for row in lists] for name in reversed(NAMES)}
    expected = model_with_names().score(X).tolist()
    for request in ({"rows": lists}, {"rows": objects}, {"columns": columns}):
        assert desk.score(request).json["scores"] == expected
    assert desk.score({"rows": []}).json["scores"] == []
    assert desk.score({"columns": {name: [] for name in NAMES}}).json["scores"] == []


def test_whole_numbers_are_rounded_to_doubles(desk):
    big = 2**53 + 1
    assert (
        desk.score({"rows": [[big, -big, 0]]}).json["scores"]
        == model_with_names().score([[2.0**53, -(2.0**53), 0]]).tolist()
    )


# Queries.


def model_with_exit() -> rw.Ensemble:
    model = big_ensemble(5, n_trees=48, n_leaves=8, n_features=3)
    return model.replace(exit=rw.EarlyExit([16, 32], [0.5, 0.1], top=2))


def test_queries_and_early_exit(tmp_path):
    model = model_with_exit()
    desk = open_desk(tmp_path, swift=model)
    X = np.random.default_rng(4).normal(size=(60, 3))
    qid = np.random.default_rng(5).integers(0, 4, 60)
    texts = [f"q{number}" for number in qid]
    expected = model.score(X, qid=qid)
    assert expected.tolist() != model.score(X).tolist()
    for ids in (qid.tolist(), texts, [10**30 + number for number in qid.tolist()]):
        assert desk.score({"rows": X.tolist(), "qid": ids}).json["scores"] == expected.tolist()
    groups = [10, 20, 30]
    assert desk.score({"rows": X.tolist(), "group": groups}).json["scores"] == model.score(X, group=groups).tolist()
    assert desk.score({"rows": X.tolist()}).json["scores"] == model.score(X).tolist()
    for ids in (pa.array(texts), pa.array(qid)):
        table = pa.table({"a": X[:, 0], "b": X[:, 1], "qid": ids, "c": X[:, 2]})
        assert arrow_scores(desk.ask("POST", "/score", arrow_bytes(table), STREAM)).tobytes() == expected.tobytes()


def test_the_best_are_ordered_query_by_query(desk):
    X = np.random.default_rng(6).normal(size=(9, 3))
    X[4] = X[1]  # a tie: the first one stands first
    answer = desk.score({"rows": X.tolist(), "top": 4}).json
    scores = np.array(answer["scores"])
    assert answer["order"] == [sorted(range(9), key=lambda row: (-scores[row], row))[:4]]
    assert [0 < len(rows) <= 2 for rows in desk.score({"rows": X.tolist(), "top": 2, "group": [1, 8]}).json["order"]]
    by_ids = desk.score({"rows": X.tolist(), "top": 9, "qid": list("babababab")}).json["order"]
    assert [sorted(rows) for rows in by_ids] == [[0, 2, 4, 6, 8], [1, 3, 5, 7]]


def test_a_feature_may_be_called_qid(tmp_path):
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], feature_names=["qid"])
    body = arrow_bytes(pa.table({"qid": [0.0, 1.0]}))
    assert arrow_scores(open_desk(tmp_path, m=model).ask("POST", "/score", body, STREAM)).tolist() == [1.0, 2.0]


def test_a_model_of_unknown_width_takes_more_columns(tmp_path):
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], metadata={"source": {"n_features": "at least"}})
    desk = open_desk(tmp_path, m=model)
    assert desk.ask("GET", "/models/m").json["more_features_allowed"]
    assert desk.score({"rows": [[0, 7, 8], [1, 7, 8]]}).json["scores"] == [1.0, 2.0]
    assert "row 1 has 2 values" in desk.score({"rows": [[0, 7, 8], [1, 7]]}).error
    lists = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 7.0, 1.0, 7.0]), 2)
    for table in (pa.table({"a": [0.0, 1.0], "b": [7, 8]}), pa.table({"v": lists})):
        assert arrow_scores(desk.ask("POST", "/score", arrow_bytes(table), STREAM)).tolist() == [1.0, 2.0]


# What is refused: JSON.

ROW = [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "not JSON"),
        (b'{"rows": [[1, 2', 400, "not JSON"),
        (b'{"rows": [[1,2,3]]} x', 400, "not JSON"),
        (b'{"rows": [["\xff"]]}', 400, "not UTF-8: byte 12 is 0xff"),
        (b'\xef\xbb\xbf{"rows": []}', 400, "not JSON"),
        ('{"rows": []}'.encode("utf-16"), 400, "not UTF-8"),
        (b"[" * 20_000, 400, "nested too deeply"),
        (b'{"rows": [[NaN, 1, 2]]}', 400, "no NaN: write null"),
        (b'{"rows": [[-Infinity, 1, 2]]}', 400, "no -Infinity"),
        (b'{"rows": [], "rows": []}', 400, "'rows' stands twice"),
        (b'{"rows": [[' + b"9" * 5000 + b", 1, 2]]}", 400, "not JSON"),
        (b'{"rows": [[' + b"9" * 400 + b", 1, 2]]}", 422, "beyond the range of a double"),
        (b'{"rows": [[1e999, 1, 2]]}', 422, "row 0, feature 'bm25' is beyond the range"),
        (b'{"columns": {"bm25": [1], "clicks": [-1e999], "age": [1]}}', 422, "row 0, feature 'clicks' is beyond"),
        (b"[]", 422, "must be an object"),
        (b"null", 422, "must be an object"),
        (b'"\\ud800"', 422, "must be an object"),
        (b"{}", 422, "either rows or columns"),
    ],
)
def test_hostile_json(desk, body, status, said):
    reply = desk.ask("POST", "/score", body, JSON)
    assert (reply.status, said in reply.error) == (status, True), reply.body


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"rows": [ROW], "columns": {}}, "either rows or columns"),
        ({"rows": [ROW], "tops": 3}, "nothing called 'tops'"),
        ({"rows": 3}, "rows must be a list, got 3"),
        ({"rows": {}}, "rows must be a list, got an object"),
        ({"rows": [1, 2, 3]}, "row 0 is 1"),
        ({"rows": [ROW, None]}, "row 1 is null"),
        ({"rows": [ROW, {}]}, "row 1 is an object"),
        ({"rows": [ROW, [1, 2]]}, "row 1 has 2 values, but the model has 3 features"),
        ({"rows": [[*ROW, 4]]}, "row 0 has 4 values"),
        ({"rows": [[1, "2", 3]]}, "row 0, feature 'clicks' must be a number or null, got '2'"),
        ({"rows": [[1, True, 3]]}, "must be a number or null, got true"),
        ({"rows": [[1, [2], 3]]}, "must be a number or null, got a list"),
        ({"rows": [{"bm25": 1, "clicks": 2}]}, "row 0: the feature 'age' is not there"),
        ({"rows": [dict.fromkeys([*NAMES, "ctr"], 1)]}, "row 0: the model has no feature 'ctr'"),
        ({"columns": [1]}, "columns must be an object"),
        ({"columns": {"bm25": [1]}}, "columns: the feature 'clicks' is not there"),
        ({"columns": {"bm25": [1], "clicks": 2, "age": [3]}}, "column 'clicks' must be a list"),
        ({"columns": {"bm25": [1], "clicks": [2, 2], "age": [3]}}, "column 'clicks' has 2 values"),
        ({"rows": [ROW], "qid": [1], "group": [1]}, "not both"),
        ({"rows": [ROW], "qid": [1, 2]}, "qid must be a list of 1"),
        ({"rows": [ROW], "qid": [1.5]}, "qid must be a list of 1"),
        ({"rows": [ROW], "qid": [True]}, "qid must be a list of 1"),
        ({"rows": [ROW], "group": [2]}, "group adds up to 2 rows, but there are 1"),
        ({"rows": [ROW], "group": [1, 0]}, "whole numbers of at least 1"),
        ({"rows": [ROW], "group": [10**40]}, "group adds up to"),
        ({"rows": [ROW], "top": 0}, "top must be a whole number of at least 1, got 0"),
        ({"rows": [ROW], "top": 1.5}, "top must be"),
        ({"rows": [ROW], "top": True}, "top must be"),
        ({"rows": [ROW], "dtype": "float16"}, "dtype must be"),
        ({"rows": [ROW], "dtype": ["float32"]}, "dtype must be"),
    ],
)
def test_json_that_the_model_cannot_score(desk, request_, said):
    reply = desk.score(request_)
    assert reply.status == 422
    assert said in reply.error


def test_names_need_a_model_with_names(tmp_path):
    desk = open_desk(tmp_path, m=rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]))
    for request in ({"rows": [{"a": 1}]}, {"columns": {"a": [1]}}):
        assert "have no names: send rows as lists" in desk.score(request).error


def test_too_many_rows(tmp_path):
    desk = open_desk(tmp_path, Limits(rows=5), m=rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], feature_names=["a"]))
    assert desk.score({"rows": [[1]] * 5}).status == 200
    requests = ({"rows": [[1]] * 6}, {"rows": [{"a": 1}] * 6}, {"columns": {"a": [1] * 6}}, {"rows": [[]] * 100_000})
    replies = [desk.score(request) for request in requests]
    replies.append(desk.ask("POST", "/score", arrow_bytes(pa.table({"a": [1.0] * 6})), STREAM))
    assert [reply.status for reply in replies] == [413] * 5
    assert "6 rows are more than the 5" in replies[0].error


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(["rows", "columns", "qid", "group", "top", "dtype"]), JSON_VALUES, max_size=4))
def test_any_json_gets_scores_or_one_sentence(request_):
    served = Served("m", model_with_names())
    read = read_or_refused(read_json, json.dumps(request_).encode(), served)
    if isinstance(read, Refused):
        assert read.status in (400, 422)
        assert str(read)
    else:
        write_json(served, read.score(served.model), read.order(read.score(served.model)))


def read_or_refused(read, body: bytes, served: Served):
    try:
        return read(body, served, Limits())
    except Refused as refused:
        return refused


# What is refused: Arrow.


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_arrow(desk, codec):
    body = arrow_bytes(pa.table({name: np.zeros(5000) for name in NAMES}), compression=codec)
    reply = desk.ask("POST", "/score", body, STREAM)
    assert reply.status == 415
    assert "without compression" in reply.error


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pa.table({"bm25": [1.0], "clicks": [1.0]}), "the table has 2 features but the model was built on 3"),
        (pa.table({"bm25": [1.0], "clicks": [1.0], "ctr": [1.0]}), "'ctr'"),
        (pa.table({"bm25": ["1"], "clicks": [1.0], "age": [1.0]}), "'bm25' holds string"),
        (pa.table({"bm25": [[1.0]], "clicks": [1.0], "age": [1.0]}), "lists must have a fixed size"),
        (pa.table({"bm25": pa.array([1], pa.timestamp("s")), "clicks": [1.0], "age": [1.0]}), "'bm25' holds timestamp"),
        (pa.table({"bm25": pa.array(["x"]).dictionary_encode(), "clicks": [1.0], "age": [1.0]}), "holds dictionary"),
        (pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0]), 2)}), "2 values, but the model has 3"),
        (pa.table({"v": pa.array([[1.0, 2.0, 3.0], None], pa.list_(pa.float64(), 3))}), "is null"),
        (pa.table({"bm25": [1.0], "clicks": [1.0], "age": [1.0], "qid": pa.array([None], pa.int64())}), "qid of row 0"),
        (pa.table({"bm25": [1.0], "clicks": [1.0], "age": [1.0], "qid": [[1]]}), "'qid' holds list"),
        (pa.table([pa.array([1.0])] * 3, names=["bm25", "bm25", "age"]), "'clicks'"),
        (pa.table({}), "3"),
    ],
)
def test_arrow_that_the_model_cannot_score(desk, table, said):
    reply = desk.ask("POST", "/score", arrow_bytes(table), STREAM)
    assert (reply.status, said in reply.error) == (422, True), reply.body


def test_names_of_columns_that_are_no_text(desk):
    body = arrow_bytes(pa.table({"bm25": [1.0], "clicks": [1.0], "agé": [1.0]})).replace("agé".encode(), b"ag\xff\xff")
    reply = desk.ask("POST", "/score", body, STREAM)
    assert (reply.status, "no Arrow stream" in reply.error) == (400, True)


def test_more_columns_or_batches_than_anybody_has(desk):
    """They are refused at once: the number of columns squared would take minutes."""
    one = pa.array([1.0])
    for names in ([str(number) for number in range(20_000)], ["qid"] * 20_000):
        assert desk.ask("POST", "/score", arrow_bytes(pa.table([one] * 20_000, names=names)), STREAM).status == 422
    table = pa.table({name: np.zeros(1001) for name in NAMES})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    reply = desk.ask("POST", "/score", sink.getvalue(), STREAM)
    assert (reply.status, "more than 1,000 batches" in reply.error) == (413, True)


def test_arrow_that_is_none(desk):
    good = arrow_bytes(pa.table({name: [1.0, 2.0] for name in NAMES}))
    for body in (b"", b"x" * 100, b"\xff" * 64, b"ARROW1\0\0", good[: len(good) // 2], good[:50], good[8:]):
        reply = desk.ask("POST", "/score", body, STREAM)
        assert reply.status in (400, 422), (body, reply.body)
        assert reply.error


@settings(max_examples=200)
@given(st.data())
def test_damaged_arrow_gets_scores_or_one_sentence(data):
    """Bytes are changed anywhere in a good stream."""
    served = Served("m", model_with_names())
    good = bytearray(arrow_bytes(pa.table({name: np.arange(20.0) for name in NAMES} | {"qid": ["a"] * 20})))
    for place, byte in data.draw(st.lists(st.tuples(st.integers(0, len(good) - 1), st.integers(0, 255)), max_size=6)):
        good[place] = byte
    read = read_or_refused(read_arrow, bytes(good), served)
    if isinstance(read, Refused):
        assert read.status in (400, 413, 415, 422)
    else:
        assert np.isfinite(read.score(served.model)).all()
