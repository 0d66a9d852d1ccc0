"""A real server: swaps and stops under load, signals, slow and oversized clients."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from server_process import ENVIRONMENT, SECONDS, ask, serving

import rankwood as rw
from strategies.ensembles import big_ensemble

pytest.importorskip("uvicorn", reason="UVICORN ABSENT: pip install 'rankwood[serve]'")

ROWS = {"rows": [[0.0], [1.0]]}
HEAD = b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"


def stump(value: float) -> rw.Ensemble:
    return rw.Ensemble.from_trees([(0, 0.5, value, 2 * value)])


@pytest.fixture
def file(tmp_path):
    stump(1.0).save(tmp_path / "ltr.rw")
    return tmp_path / "ltr.rw"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rankwood", "serve", *map(str, arguments)]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS, check=False)


# Start and stop.


def test_it_starts_scores_and_stops(file, tmp_path):
    with serving(file, f"other={file}") as server:
        assert server.facts["address"] == f"http://127.0.0.1:{server.port}"
        assert [model["name"] for model in server.facts["models"]] == ["ltr", "other"]
        status, answer = server.score(ROWS, "/models/ltr/score")
        assert (status, answer["scores"]) == (200, [1.0, 2.0])
        assert server.ask("GET", "/health") == (200, {"status": "ok"})
        assert server.stop() == 0
        assert server.process.stdout.read() == ""
    assert server.log == [
        f"serving ltr (1 trees, 1 features), other (1 trees, 1 features) at http://127.0.0.1:{server.port}\n",
        "stopped\n",
    ]


def test_ctrl_c(file):
    with serving(file) as server:
        assert server.stop(signal.SIGINT) == 130
    assert server.log[-1] == "rankwood: interrupted\n"


def test_a_port_in_use(file):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run(file, "--port", port)
    assert done.returncode == 2
    said = f"rankwood: cannot listen at port {port} of 127.0.0.1: Address already in use; --port 0 takes a free one\n"
    assert done.stderr == said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("absent.rw",), "absent.rw"),
        (("a b.rw",), "is no name"),
        (("=ltr.rw",), "'=ltr.rw' has no name before '=': write NAME=FILE\n"),
        (("ltr.rw", "--host", "256.1.1.1"), "; --host must be an address of this machine\n"),
        (("ltr.rw", "--host", "192.0.2.1"), "; --host must be an address of this machine\n"),
        (("ltr.rw", "--unix", "socket"), "--unix does not go with --host or --port"),
        (("ltr.rw", "--admin-token", "absent"), "the token cannot be read"),
        (("ltr.rw", "--admin-token", "short"), "at least 16"),
    ],
)
def test_what_cannot_be_served(file, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short").write_text("secret\n")
    done = run(*arguments, "--port", 0)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.startswith("rankwood: ")
    assert done.stderr.count("\n") == 1


def test_without_uvicorn(file):
    code = "import sys; sys.modules['uvicorn'] = None; from rankwood.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", str(file)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS, check=False)
    said = "rankwood: serving models over HTTP needs the package uvicorn: pip install 'rankwood[serve]' "
    assert (done.returncode, done.stderr) == (2, f"{said}('.[serve]' in a checkout)\n")


def test_a_socket_file(file, tmp_path):
    place = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as stale:  # that a killed server left behind
        stale.bind(str(place))
    command = [sys.executable, "-m", "rankwood", "serve", str(file), "--unix", str(place)]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr.readline() == f"serving ltr (1 trees, 1 features) at unix:{place}\n"
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(SECONDS)
                client.connect(str(place))
                client.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                assert client.recv(1000).startswith(b"HTTP/1.1 200")
            process.terminate()
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()
    assert not place.exists()


# Under load.


class Load:
    """Threads that post one batch after the other and keep all answers."""

    def __init__(self, server, body: bytes, n_threads: int = 4) -> None:
        self.server, self.body = server, body
        self.answers: list[tuple[int, dict]] = []
        self.failures: list[Exception] = []
        self.enough = threading.Event()
        self.threads = [threading.Thread(target=self._post, daemon=True) for _ in range(n_threads)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.enough.set()
        for thread in self.threads:
            thread.join(SECONDS)

    def _post(self) -> None:
        connection = self.server.connect()
        try:
            for _ in range(20_000):
                if self.enough.is_set():
                    break
                self.answers.append(ask(connection, "POST", "/score", self.body))
        except Exception as error:
            self.failures.append(error)
        finally:
            connection.close()

    def wait_for(self, number: int) -> None:
        for _ in range(SECONDS * 100):
            if len(self.answers) >= number:
                return
            time.sleep(0.01)
        raise AssertionError(f"{len(self.answers)} of {number} answers; {self.failures}")


def two_models() -> tuple[rw.Ensemble, rw.Ensemble]:
    return tuple(big_ensemble(seed, n_trees=40, n_leaves=16, n_features=8) for seed in (1, 2))


@pytest.mark.parametrize("way", ["put", "signal", "watch"])
def test_swaps_under_load_lose_nothing(tmp_path, way):
    """Every request is answered, wholly by one of the two models, and both come to answer."""
    one, two = two_models()
    X = np.random.default_rng(0).normal(size=(200, 8))
    expected = {model.fingerprint(): model.score(X).tolist() for model in (one, two)}
    file, other = tmp_path / "ltr.rw", tmp_path / "other.rw"
    token = tmp_path / "token"
    token.write_text("a-token-of-sixteen\n")
    one.save(file)
    two.save(other)
    contents = [other.read_bytes(), file.read_bytes()]
    n_swaps = 3 if way == "watch" else 12
    with serving(file, "--admin-token", token, *(["--watch"] if way == "watch" else [])) as server:
        with Load(server, json.dumps({"rows": X.tolist()}).encode()) as load:
            for number in range(n_swaps):
                before = len([line for line in server.log if line.startswith("swapped")])
                if way == "put":
                    headers = {"Authorization": "Bearer a-token-of-sixteen"}
                    status, _ = server.ask(
                        "PUT", "/models/ltr", contents[number % 2], "application/octet-stream", **headers
                    )
                    assert status == 200
                else:
                    fresh = tmp_path / "fresh.rw"
                    fresh.write_bytes(contents[number % 2])
                    os.replace(fresh, file)
                    if way == "signal":
                        server.process.send_signal(signal.SIGHUP)
                for _ in range(SECONDS * 100):
                    if len([line for line in server.log if line.startswith("swapped")]) > before:
                        break
                    time.sleep(0.01)
                load.wait_for(len(load.answers) + 8)
        assert server.stop() == 0
    assert load.failures == []
    assert {status for status, _ in load.answers} == {200}
    for _, answer in load.answers:
        assert answer["scores"] == expected[answer["fingerprint"]]
    assert {answer["fingerprint"] for _, answer in load.answers} == set(expected)
    assert len([line for line in server.log if line.startswith("swapped ltr")]) == n_swaps


def test_a_stop_under_load_answers_what_was_begun(tmp_path):
    """No request that was sent on an open connection goes without its whole answer, unless the connection is closed."""
    one, _ = two_models()
    one.save(tmp_path / "ltr.rw")
    X = np.random.default_rng(0).normal(size=(500, 8))
    with serving(tmp_path / "ltr.rw") as server, Load(server, json.dumps({"rows": X.tolist()}).encode()) as load:
        load.wait_for(20)
        assert server.stop() == 0
    assert [error for error in load.failures if not isinstance(error, ConnectionError)] == []
    assert {status for status, _ in load.answers} == {200}
    assert all(answer["scores"] == one.score(X).tolist() for _, answer in load.answers)
    assert server.log[-1] == "stopped\n"


def test_a_request_under_way_is_answered_after_sigterm(file):
    """Its body comes after the signal."""
    body = json.dumps(ROWS).encode()
    with serving(file) as server:
        with socket.create_connection(("127.0.0.1", server.port), SECONDS) as client:
            head = HEAD.replace(b"Connection: close\r\n", b"")
            client.sendall(head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:5])
            _, metrics = server.ask("GET", "/metrics")
            assert b"rankwood_requests_in_flight 1\n" in metrics
            server.process.terminate()
            time.sleep(0.3)
            client.sendall(body[5:])
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"\r\nconnection: close\r\n" in answer
        assert answer.endswith(b'"scores":[1.0,2.0]}')
        assert server.process.wait(SECONDS) == 0


def test_requests_that_outlast_the_grace_are_cut_off(file):
    with (
        serving(file, "--grace", 0.3) as server,
        socket.create_connection(("127.0.0.1", server.port), SECONDS) as client,
    ):
        client.sendall(HEAD + b"Content-Length: 9\r\n\r\n{")
        server.ask("GET", "/health")
        assert server.stop() == 0
        assert b"the server stopped before this request was done" in client.recv(65536)
    assert server.log[1:] == ["requests that took longer than --grace were cut off\n", "stopped\n"]


def test_a_watched_file_that_is_gone_is_told_once(file):
    content = file.read_bytes()
    with serving(file, "--watch") as server:
        file.unlink()
        server.said("ltr is served as before: ")
        time.sleep(2.5)
        assert server.score(ROWS)[1]["scores"] == [1.0, 2.0]
        file.write_bytes(content)
        server.said("swapped ltr: the same trees")
        assert server.stop() == 0
    assert len(server.log) == 4, server.log


def test_files_that_are_damaged_or_gone_keep_the_model(file):
    with serving(file, "--watch") as server:
        for content in (b"junk", file.read_bytes()[:-7], None):
            n_lines = len(server.log)
            file.write_bytes(content) if content is not None else file.unlink()
            server.process.send_signal(signal.SIGHUP)
            for _ in range(SECONDS * 20):
                if len(server.log) > n_lines:
                    break
                time.sleep(0.05)
            assert server.log[-1].startswith("ltr is served as before: ")
            assert server.score(ROWS)[1]["scores"] == [1.0, 2.0]
        stump(3.0).save(file)
        server.said("swapped ltr")
        assert server.score(ROWS)[1]["scores"] == [3.0, 6.0]
        assert server.stop() == 0


# Clients that misbehave.


def talk(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """All that the server answers before it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), SECONDS) as client:
        try:
            for part in parts:
                client.sendall(part)
                time.sleep(pause)
        except OSError:
            pass
        try:
            return b"".join(iter(lambda: client.recv(65536), b""))
        except ConnectionError:
            return b""


def test_clients_that_are_slow_or_send_too_much(file):
    with serving(file, "--timeout", 0.5, "--max-body-mb", 0.01) as server:
        slow_head = talk(server.port, b"GET /health HT")
        slow_head_in_drops = talk(server.port, *[b"GET /", *[b"h"] * 30], pause=0.05)
        slow_body = talk(server.port, HEAD + b"Content-Length: 50\r\n\r\n{")
        chunk = b"2710\r\n" + b" " * 10_000 + b"\r\n"
        too_much = talk(server.port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 5)
        declared = talk(server.port, HEAD + b"Content-Length: 99999999999\r\n\r\n")
        silent = talk(server.port)
        long_head = talk(server.port, b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 50_000)
        garbage = talk(server.port, b"\x16\x03\x01\x02\x00\x01\x00" * 100 + b"\r\n\r\n")
        both = talk(server.port, HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345")
        expects = talk(server.port, HEAD + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n")
        assert server.score(ROWS)[0] == 200
        assert server.stop() == 0
    assert long_head == b"" or long_head.startswith(b"HTTP/1.1 400")  # it was not read to its end
    starts = {
        b"HTTP/1.1 408": (slow_head, slow_head_in_drops, slow_body, silent),
        b"HTTP/1.1 413": (too_much, declared, expects),
        b"HTTP/1.1 400": (garbage, both),
    }
    for start, answers in starts.items():
        for answer in answers:
            assert answer.startswith(start), answer
            assert set(json.loads(answer.partition(b"\r\n\r\n")[2])) == {"error"}
    assert len(server.log) == 2, server.log  # hostile clients do not fill the log


def test_a_body_that_is_too_large_ends_the_connection(file):
    """The answer says so, and does not wait for a body that never comes."""
    with serving(file, "--max-body-mb", 0.01) as server:
        connection = server.connect()
        connection.putrequest("POST", "/score")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "300000")
        connection.endheaders()
        response = connection.getresponse()
        assert (response.status, response.headers["connection"]) == (413, "close")
        assert b"send fewer rows" in response.read()
        connection.close()


def test_a_refused_body_lets_the_connection_go_on(file):
    """What was still under way of it is read and dropped."""
    with serving(file, "--max-body-mb", 0.01) as server:
        connection = server.connect()
        assert ask(connection, "POST", "/nowhere", b" " * 300_000)[0] == 404
        assert ask(connection, "POST", "/score", json.dumps(ROWS).encode())[0] == 200
        connection.close()


@pytest.mark.parametrize("path", ["/score", "/nowhere"])
def test_a_refused_body_is_read_before_the_connection_is_closed(file, path):
    """Else its sender would see a reset and not the answer, as urllib did, which wants it closed."""
    with serving(file, "--max-body-mb", 0.5) as server:
        status, answer = server.ask("POST", path, b" " * 1_900_000, Connection="close")
    assert (status, set(answer)) == (413 if path == "/score" else 404, {"error"})


def test_one_connection_serves_many_requests_and_pipelines(file):
    with serving(file) as server:
        body = json.dumps(ROWS).encode()
        one = HEAD.replace(b"Connection: close\r\n", b"") + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
        last = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
        assert talk(server.port, one * 20 + last).count(b'"scores":[1.0,2.0]') == 21


def test_an_upgrade_is_not_taken_and_does_no_harm(file):
    """Java's client asks for HTTP/2 so."""
    with serving(file) as server:
        headers = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"
        answer = talk(server.port, b"GET /health HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n",
                      b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")  # fmt: skip
        assert answer.count(b"HTTP/1.1 200") == 2


def test_clients_that_go_away_do_no_harm(file):
    """In the middle of a request, before the answer, and with a reset."""
    body = json.dumps({"rows": [[0.0]] * 10_000}).encode()
    whole = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    with serving(file) as server:
        for number in range(30):
            with socket.create_connection(("127.0.0.1", server.port), SECONDS) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(whole[: [70, 300, len(whole)][number % 3]])
        assert server.score(ROWS)[0] == 200
        assert server.stop() == 0
    assert len(server.log) == 2, server.log


def test_access_log(file):
    with serving(file, "--access-log") as server:
        server.ask("GET", "/nowhere%0A%1b[2J")
        server.score(ROWS)
        server.said("POST /score 200")
    assert any(line.startswith("127.0.0.1 GET /nowhere") and " 404 " in line for line in server.log)
    assert all(line[:-1].isprintable() for line in server.log)
