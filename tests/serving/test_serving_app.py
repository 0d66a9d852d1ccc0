"""The application without a server: paths, limits, swaps, metrics."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import JSON, open_desk, run

import rankwood as rw
from rankwood.errors import ModelError, RankwoodError
from rankwood.serving.app import is_quick
from rankwood.serving.batch import Limits
from rankwood.serving.metrics import Latency
from rankwood.serving.served import Served
from rankwood.serving.shelf import Shelf, named_files

TOKEN = "correct-horse-battery"
OCTETS = "application/octet-stream"


def stump(value: float) -> rw.Ensemble:
    return rw.Ensemble.from_trees([(0, 0.5, value, 2 * value)], feature_names=["a"])


@pytest.fixture
def desk(tmp_path):
    return open_desk(tmp_path, token=TOKEN, one=stump(1.0), two=stump(10.0))


ROWS = {"rows": [[0.0], [1.0]]}


# Paths.


def test_models_by_name(desk):
    assert desk.score(ROWS, "/models/one/score").json["scores"] == [1.0, 2.0]
    assert desk.score(ROWS, "/models/two/score").json["scores"] == [10.0, 20.0]
    reply = desk.score(ROWS)
    assert reply.status == 404
    assert "several models" in reply.error


def test_facts(desk):
    facts = desk.ask("GET", "/models").json["models"]
    assert [one["name"] for one in facts] == ["one", "two"]
    assert desk.ask("GET", "/models/one").json == facts[0]
    model = stump(1.0)
    assert facts[0] | {"loaded": ""} == {
        "name": "one",
        "trees": 1,
        "leaves": 2,
        "features": 1,
        "more_features_allowed": False,
        "feature_names": ["a"],
        "early_exit": None,
        "fingerprint": model.fingerprint(),
        "loaded": "",
    }


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/health", 200),
        ("HEAD", "/health", 200),
        ("GET", "/ready", 200),
        ("GET", "/", 404),
        ("GET", "/health/", 404),
        ("GET", "/models/", 404),
        ("GET", "/models/three", 404),
        ("GET", "/models/../../etc/passwd", 404),
        ("GET", "/models/\x00\u202e", 404),
        ("POST", "/models/three/score", 404),
        ("POST", "/health", 405),
        ("DELETE", "/models/one", 405),
        ("GET", "/models/one/score", 405),
        ("TRACE", "/models", 405),
        ("TRACE", "/models/a\nb\x1b[2J", 405),
    ],
)
def test_paths_and_methods(desk, method, path, status):
    reply = desk.ask(method, path)
    assert reply.status == status
    if status >= 400:
        assert reply.error.isprintable()
    if status == 405:
        assert method not in reply.headers["allow"].split(", ")


def test_readiness_ends_when_the_server_stops(desk):
    desk.app.stopping = True
    reply = desk.ask("GET", "/ready")
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    assert desk.ask("GET", "/health").status == 200


# Bodies.


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"]
)
def test_other_kinds_of_bodies(desk, kind):
    reply = desk.ask("POST", "/models/one/score", json.dumps(ROWS).encode(), kind)
    assert reply.status == 415
    assert "it must be application/json" in reply.error


def test_charset_utf8_is_fine(desk):
    body = json.dumps(ROWS).encode()
    assert desk.ask("POST", "/models/one/score", body, 'Application/JSON; charset="UTF-8"').status == 200


def test_compressed_bodies(desk):
    reply = desk.ask("POST", "/models/one/score", b"\x1f\x8b", JSON, content_encoding="gzip")
    assert (reply.status, reply.headers["accept-encoding"]) == (415, "identity")


@pytest.mark.parametrize("declared", [True, False])
def test_large_bodies(tmp_path, declared):
    """With a length they are refused before anything is read, in pieces as soon as they are too large.

    Behind the answer 4,000 bytes more, four times what is taken, are read and dropped.
    """
    desk = open_desk(tmp_path, Limits(body_bytes=1000), one=stump(1.0))
    read: list[int] = []

    def parts():
        for number in range(1000):
            read.append(number)
            yield b" " * 100

    headers = {"content_length": "100000"} if declared else {}
    reply = desk.ask("POST", "/score", parts(), JSON, **headers)
    assert reply.status == 413
    assert "larger than the 1,000 bytes" in reply.error
    assert reply.headers["connection"] == "close"
    assert len(read) == (0 if declared else 11) + 40


def test_garbage_in_arrow_is_told_plainly(desk):
    pytest.importorskip("pyarrow", reason="ARROW ABSENT: pip install 'rankwood[arrow]'")
    reply = desk.ask("POST", "/models/one/score", b"hello, this is no table", "application/vnd.apache.arrow.stream")
    said = "the body is no Arrow stream or file: it does not begin with a schema"
    assert (reply.status, reply.error) == (400, said)


def test_a_length_that_is_no_number_is_not_believed(desk):
    body = json.dumps(ROWS).encode()
    assert desk.ask("POST", "/models/one/score", [body], JSON, content_length="9" * 5000).status == 413
    assert desk.ask("POST", "/models/one/score", [body], JSON, content_length="-1").status == 200


def test_a_slow_body(tmp_path, monkeypatch):
    desk = open_desk(tmp_path, Limits(seconds=0.05), one=stump(1.0))

    async def never():
        await asyncio.sleep(60)

    async def ask():
        sent = []

        async def send(message):
            sent.append(message)

        headers = [(b"content-type", JSON.encode())]
        await desk.app({"method": "POST", "path": "/score", "headers": headers}, never, send)
        return sent

    monkeypatch.setattr("rankwood.serving.app.DROP_SECONDS", 0.05)
    start, body, end = run(ask())
    assert (start["status"], end) == (408, {"type": "http.response.body"})
    assert (b"connection", b"close") in start["headers"]
    assert json.loads(body["body"]) == {"error": "the body took too long to arrive"}


def test_slow_scoring_and_a_full_house(tmp_path, monkeypatch):
    """A request that takes too long is given up; while it runs, others are sent away."""
    desk = open_desk(tmp_path, Limits(seconds=0.3, requests=1), one=stump(1.0))
    monkeypatch.setattr("rankwood.serving.app.QUICK_BYTES", 0)
    go_on = threading.Event()
    score = rw.Ensemble.score
    monkeypatch.setattr(rw.Ensemble, "score", lambda *a, **k: go_on.wait(20) and score(*a, **k))
    body = json.dumps(ROWS).encode()

    async def ask():
        first = asyncio.create_task(desk.asking("POST", "/score", body, JSON))
        await asyncio.sleep(0.05)
        second = await desk.asking("POST", "/score", body, JSON)
        healthy = await desk.asking("GET", "/health")
        return await first, second, healthy

    try:
        first, second, healthy = run(ask())
    finally:
        go_on.set()
    assert (first.status, second.status, healthy.status) == (503, 503, 200)
    assert first.headers["retry-after"] == second.headers["retry-after"] == "1"
    assert "longer than 0.3 s" in first.error
    assert "1 requests are under way" in second.error
    assert desk.score(ROWS).status == 200


def test_only_small_bodies_are_scored_without_a_thread(desk, tmp_path):
    served = desk.app.shelf.get("one")
    assert is_quick(served, 1000)
    assert not is_quick(served, 50_000)  # may be 25,000 rows
    assert not is_quick(served, 10**6)
    assert not is_quick(Served("m", rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)] * 1000)), 1000)


def test_a_defect_is_one_sentence_and_one_line(desk, monkeypatch):
    monkeypatch.setattr(rw.Ensemble, "score", lambda *a, **k: 1 / 0)
    reply = desk.score(ROWS, "/models/one/score")
    assert (reply.status, reply.error) == (500, "the server has a defect: its log says more")
    assert desk.log == ["defect: POST /models/one/score: ZeroDivisionError: division by zero"]


# Swaps.


def put(desk, model: bytes | rw.Ensemble, name: str = "one", token: str = TOKEN, tmp=None):
    if isinstance(model, rw.Ensemble):
        path = desk.app.shelf.files["one"].parent / "sent.rw"
        model.save(path)
        model = path.read_bytes()
    return desk.ask("PUT", f"/models/{name}", model, OCTETS, authorization=f"Bearer {token}")


def test_put_swaps_one_model(desk):
    reply = put(desk, stump(5.0))
    assert (reply.status, reply.json["fingerprint"]) == (200, stump(5.0).fingerprint())
    assert desk.score(ROWS, "/models/one/score").json["scores"] == [5.0, 10.0]
    assert desk.score(ROWS, "/models/two/score").json["scores"] == [10.0, 20.0]
    assert desk.log[-1].startswith("swapped one: 1 trees, 1 features, fingerprint ")


@pytest.mark.parametrize("content", [b"", b"junk", b"tree\nversion=v4\n", b"\x00" * 100])
def test_a_damaged_model_changes_nothing(desk, content):
    reply = put(desk, content)
    assert reply.status == 422
    assert reply.error.startswith("one is served as before: ")
    assert "/" not in reply.error  # no path of the server
    assert desk.score(ROWS, "/models/one/score").json["scores"] == [1.0, 2.0]
    assert 'rankwood_model_swaps_total{model="one",outcome="refused"} 1' in desk.ask("GET", "/metrics").body.decode()


def test_who_may_swap(desk, tmp_path):
    for token in ("", "wrong", TOKEN + "x", "\xff"):
        reply = put(desk, stump(5.0), token=token)
        assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert desk.ask("PUT", "/models/one", b"x", OCTETS).status == 401
    assert put(desk, stump(5.0), "three").status == 404
    (tmp_path / "other").mkdir()
    closed = open_desk(tmp_path / "other", one=stump(1.0))
    reply = put(closed, stump(5.0))
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


def test_a_large_model_is_refused(tmp_path):
    desk = open_desk(tmp_path, Limits(model_bytes=100), token=TOKEN, one=stump(1.0))
    assert put(desk, stump(5.0)).status == 413


def test_reload_takes_the_file_of_now(desk):
    stump(7.0).save(desk.app.shelf.files["one"])
    run(desk.app.reload(["one", "two"]))
    assert desk.score(ROWS, "/models/one/score").json["scores"] == [7.0, 14.0]
    assert desk.log[1].startswith("swapped two: the same trees")
    desk.app.shelf.files["one"].write_bytes(b"damaged")
    run(desk.app.reload(["one"]))
    assert desk.score(ROWS, "/models/one/score").json["scores"] == [7.0, 14.0]
    assert desk.log[-1].startswith("one is served as before: ")
    desk.app.shelf.files["one"].unlink()
    run(desk.app.reload(["one"]))
    assert desk.log[-1].startswith("one is served as before: ")


def test_changed_files_are_told_when_they_are_still(desk):
    shelf = desk.app.shelf
    assert shelf.changed() == []
    stump(7.0).save(shelf.files["one"])
    assert shelf.changed() == []  # it may be being written
    assert shelf.changed() == ["one"]
    shelf.load("one")
    assert shelf.changed() == []
    shelf.files["one"].write_bytes(b"damaged")
    assert (shelf.changed(), shelf.changed()) == ([], ["one"])
    with pytest.raises(ModelError):
        shelf.load("one")
    assert (shelf.changed(), shelf.changed()) == ([], [])  # told once
    shelf.files["one"].unlink()
    assert (shelf.changed(), shelf.changed()) == ([], ["one"])
    with pytest.raises(ModelError):
        shelf.load("one")
    assert (shelf.changed(), shelf.changed()) == ([], [])  # told once


def test_the_old_model_is_freed_when_its_last_request_ends(desk, monkeypatch):
    monkeypatch.setattr("rankwood.serving.app.QUICK_BYTES", 0)
    old = weakref.ref(desk.app.shelf.get("one").model)
    go_on, began = threading.Event(), threading.Event()
    score = rw.Ensemble.score

    def slow(model, *a, **k):
        if model is old():
            began.set()
            go_on.wait(20)
        return score(model, *a, **k)

    body = json.dumps(ROWS).encode()

    async def swap_meanwhile():
        monkeypatch.setattr(rw.Ensemble, "score", slow)
        first = asyncio.create_task(desk.asking("POST", "/models/one/score", body, JSON))
        while not began.is_set():
            await asyncio.sleep(0.005)
        stump(5.0).save(desk.app.shelf.files["one"])
        await desk.app.reload(["one"])
        second = await desk.asking("POST", "/models/one/score", body, JSON)
        assert old() is not None
        go_on.set()
        return await first, second

    first, second = run(swap_meanwhile())
    assert (first.json["scores"], second.json["scores"]) == ([1.0, 2.0], [5.0, 10.0])
    assert first.json["fingerprint"] == stump(1.0).fingerprint()
    desk.score(ROWS, "/models/one/score")  # threads hold their last task until the next
    desk.score(ROWS, "/models/two/score")
    gc.collect()
    assert old() is None


# Metrics.


def test_metrics_parse(desk):
    parser = pytest.importorskip("prometheus_client.parser", reason="PROMETHEUS CLIENT ABSENT: pip install '.[test]'")
    for _ in range(3):
        desk.score(ROWS, "/models/one/score")
    desk.score({"rows": 1}, "/models/one/score")
    desk.score(ROWS, "/models/three/score")
    put(desk, stump(5.0), "two")
    reply = desk.ask("GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {one.name: one for one in parser.text_string_to_metric_families(reply.body.decode())}
    assert {name: one.type for name, one in families.items()} == {
        "rankwood_build_info": "gauge",
        "rankwood_model_info": "gauge",
        "rankwood_model_loaded_timestamp_seconds": "gauge",
        "rankwood_model_swaps": "counter",
        "rankwood_requests_in_flight": "gauge",
        "rankwood_requests": "counter",
        "rankwood_documents": "counter",
        "rankwood_request_duration_seconds": "histogram",
        "rankwood_request_duration_recent_seconds": "gauge",
    }
    values = {(s.name, *s.labels.values()): s.value for one in families.values() for s in one.samples}
    assert values["rankwood_requests_total", "one", "200"] == 3
    assert values["rankwood_requests_total", "one", "422"] == 1
    assert values["rankwood_requests_total", "", "404"] == 1
    assert values["rankwood_documents_total", "one"] == 6
    assert values["rankwood_request_duration_seconds_count", "one"] == 3
    assert values["rankwood_request_duration_seconds_bucket", "one", "+Inf"] == 3
    assert values["rankwood_request_duration_recent_seconds", "one", "0.99"] > 0
    assert values["rankwood_model_swaps_total", "two", "swapped"] == 1
    assert values["rankwood_requests_in_flight",] == 0


@given(st.lists(st.floats(0, 20), min_size=1, max_size=50), st.sampled_from([0.5, 0.99]))
def test_quantiles_are_of_the_times(times, share):
    latency = Latency()
    for one in times:
        latency.add(one)
    quantile = latency.quantile(share)
    assert quantile in times
    assert sum(one <= quantile for one in times) >= share * len(times)
    assert sum(one < quantile for one in times) < share * len(times)
    assert sum(latency.counts) == len(times)


# Names.


def test_names_of_models():
    assert list(named_files(["a/b/ltr.rw", "new=c/x.txt", "we=ird=d.rw"])) == ["ltr", "new", "we"]
    for arguments, said in ((["a.rw", "b/a.rw"], "two models are called a"), (["sp ace.rw"], "write NAME=sp ace.rw"),
                            (["x=1.rw", "x=2.rw"], "two models"), ([".rw/"], "is no name")):  # fmt: skip
        with pytest.raises(RankwoodError, match=said):
            named_files(arguments)


def test_a_model_that_cannot_be_read_is_told_at_the_start(tmp_path):
    (tmp_path / "bad.rw").write_bytes(b"junk")
    with pytest.raises(ModelError, match=r"bad\.rw"):
        Shelf({"bad": tmp_path / "bad.rw"})


def test_the_description_is_of_the_models(desk):
    document = desk.ask("GET", "/openapi.json").json
    assert document["openapi"] == "3.1.0"
    assert {"/models/one/score", "/models/two/score", "/models/one", "/models", "/metrics"} <= set(document["paths"])
    assert "/score" not in document["paths"]
    assert "put" in document["paths"]["/models/one"]
    schema = document["paths"]["/models/one/score"]["post"]["requestBody"]["content"][JSON]["schema"]
    assert schema["oneOf"][0]["properties"]["rows"]["anyOf"][0]["items"]["maxItems"] == 1
