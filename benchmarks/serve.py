"""Scores over HTTP: `rankwood serve` against LightGBM's `predict` behind FastAPI, the same trees in the same run.

    python benchmarks/serve.py [--quick] [--shapes 300x32 1000x64] [--documents 100 1000] [--connections 1 4]
                               [--seconds 5] [--threads 2] [--json FILE]

The peer:    pip install lightgbm fastapi 'uvicorn[standard]'
Without FastAPI ours is timed alone. The peer is benchmarks/serve_fastapi.py: a pydantic model, numpy, `predict` with
one thread per request, uvicorn as it comes. Both servers are processes of their own at 127.0.0.1, one after the other.

What is sent: bodies made before the clock starts, with documents shaped like MSLR-WEB (136 features), in JSON (rows as
lists) and in Arrow (a stream with a column of lists). Connections are kept open; each is a thread here that sends a
body, reads the answer to its end, and sends the next. A cell lasts --seconds after 20 requests that do not count.

What is told: p50 and p99 of the time of a request as the client sees it, requests per second, and the time of
`Ensemble.score` (`predict`) alone in this process, which is the part that is not HTTP. Before a time counts, the scores
of an answer must be those of the model: bit for bit ours, to 1e-5 the peer's. Clients and servers share the machine:
more connections than half its CPUs measure how they get along.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scoring.machine import describe_machine, versions
from scoring.models import SHAPES, Source, Subject, subject
from scoring.report import heading, significant

import rankwood as rw

HERE = Path(__file__).resolve().parent
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(rw.__file__).parents[1]), str(HERE)])}
JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"
WARM_UP = 20  # requests


@dataclass(frozen=True)
class Cell:
    """Times of the requests of one cell of the table, in seconds."""

    shape: str
    server: str
    kind: str
    n_documents: int
    n_connections: int
    p50: float
    p99: float
    per_second: float
    n_requests: int
    alone: float  # what scoring takes without HTTP


class Client:
    """A connection that sends bytes and reads whole answers, with as little work as can be."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        head, _, body = received.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{head.decode()}: {body[:300].decode(errors='replace')}")
        length = int(re.search(rb"content-length: (\d+)", head.lower())[1])
        parts, size = [body], len(body)
        while size < length:
            parts.append(self._receive())
            size += len(parts[-1])
        return b"".join(parts)

    def _receive(self) -> bytes:
        part = self.socket.recv(1 << 20)
        if not part:
            raise RuntimeError("the server closed the connection")
        return part


def body_of(X: Any, kind: str) -> bytes:
    if kind == JSON:
        return json.dumps({"rows": X.tolist()}).encode()
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    table = pa.table({"features": lists})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def request_of(path: str, X: Any, kind: str) -> bytes:
    body = body_of(X, kind)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def scores_of(answer: bytes, kind: str) -> Any:
    if kind == JSON:
        return np.array(json.loads(answer)["scores"])
    return pa.ipc.open_stream(answer).read_all()["score"].to_numpy()


@contextmanager
def rankwood_server(model: Subject, threads: int) -> Iterator[tuple[int, dict[str, str]]]:
    """Port of our server, and the paths of JSON and Arrow."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.rw"
        model.ensemble.save(path)
        words = ["-m", "rankwood", "serve", str(path), "--port", "0", "--json", "--threads", str(threads)]
        with started(words) as process:
            facts = json.loads(process.stdout.readline())
            yield facts["port"], {JSON: "/score", ARROW: "/score"}


@contextmanager
def fastapi_server(model: Subject, threads: int) -> Iterator[tuple[int, dict[str, str]]]:
    """Port of the peer's server, and the paths of JSON and Arrow; FastAPI has forty threads whatever is asked for."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["-m", "uvicorn", "serve_fastapi:app", "--port", str(port), "--no-access-log", "--log-level", "error"]
    with started(words, RANKWOOD_BENCHMARK_MODEL=str(model.path)) as process:
        for _ in range(600):
            if process.poll() is not None:
                raise RuntimeError("the peer's server did not start")
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield port, {JSON: "/score", ARROW: "/score-arrow"}


@contextmanager
def started(words: list[str], **variables: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, *words]
    with subprocess.Popen(command, env=ENVIRONMENT | variables, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def times_of(port: int, requests: list[bytes], n_connections: int, seconds: float) -> tuple[list[float], float]:
    """Seconds of every request of all connections, and how long it took in all."""
    times: list[list[float]] = [[] for _ in range(n_connections)]
    failures: list[Exception] = []
    ready = threading.Barrier(n_connections + 1)

    def ask(own: list[float], first: int) -> None:
        try:
            client = Client(port)
            for number in range(WARM_UP):
                client.ask(requests[(first + number) % len(requests)])
            ready.wait(120)
            number, end = first, time.perf_counter() + seconds
            while (start := time.perf_counter()) < end:
                client.ask(requests[number % len(requests)])
                own.append(time.perf_counter() - start)
                number += 1
        except Exception as error:
            failures.append(error)
            ready.abort()

    threads = [threading.Thread(target=ask, args=(own, 7 * n)) for n, own in enumerate(times)]
    for thread in threads:
        thread.start()
    try:
        ready.wait(120)
    except threading.BrokenBarrierError:
        raise failures[0] from None
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [one for own in times for one in own], time.perf_counter() - start


def seconds_alone(score: Callable[[Any], Any], batches: list[Any]) -> float:
    """Median time of scoring a batch in this process."""
    times = []
    for X in batches * 3:
        start = time.perf_counter()
        score(X)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def run(model: Subject, options: argparse.Namespace) -> Iterator[Cell]:
    X = model.source.X
    booster = model.original
    servers: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "rankwood serve": (rankwood_server, lambda batch: model.ensemble.score(batch)),
        "FastAPI + LightGBM": (fastapi_server, lambda batch: booster.predict(batch, num_threads=1)),
    }
    if not has_fastapi():
        del servers["FastAPI + LightGBM"]
    for name, (server, alone) in servers.items():
        with server(model, options.threads) as (port, paths):
            for n_documents in options.documents:
                batches = [X[start : start + n_documents] for start in range(0, 20 * n_documents, n_documents)]
                for kind in (JSON, ARROW):
                    requests = [request_of(paths[kind], batch, kind) for batch in batches]
                    check(name, scores_of(Client(port).ask(requests[0]), kind), model.ensemble.score(batches[0]))
                    for n_connections in options.connections:
                        times, total = times_of(port, requests, n_connections, options.seconds)
                        p50, p99 = np.quantile(times, [0.5, 0.99])
                        yield Cell(
                            model.shape, name, "JSON" if kind == JSON else "Arrow", n_documents, n_connections,
                            float(p50), float(p99), len(times) / total, len(times), seconds_alone(alone, batches),
                        )  # fmt: skip


def check(name: str, scores: Any, expected: Any) -> None:
    if name == "rankwood serve":
        assert scores.tobytes() == expected.tobytes(), "the server's scores are not those of the model"
    else:
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)


def has_fastapi() -> bool:
    try:
        import fastapi  # noqa: F401
    except ImportError:
        return False
    return True


def table(cells: list[Cell]) -> Iterator[str]:
    yield f"{'':22}{'body':>6}{'docs':>7}{'conn.':>6}{'p50 ms':>9}{'p99 ms':>9}{'req/s':>9}{'alone ms':>10}"
    for cell in cells:
        numbers = (1000 * cell.p50, 1000 * cell.p99)
        yield (
            f"{cell.server:22}{cell.kind:>6}{cell.n_documents:>7,}{cell.n_connections:>6}"
            f"{significant(numbers[0]):>9}{significant(numbers[1]):>9}{significant(cell.per_second):>9}"
            f"{significant(1000 * cell.alone):>10}"
        )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=[one for one in SHAPES if one != "forest"], default=["300x32"])
    parser.add_argument("--documents", nargs="+", type=int, default=[100, 1000])
    parser.add_argument("--connections", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--seconds", type=float, help="per cell; default 5")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of our server; default: one per CPU")
    parser.add_argument("--quick", action="store_true", help="1 s per cell, one connection")
    parser.add_argument("--json", type=Path, help="file for all figures")
    options = parser.parse_args()
    if options.quick:
        options.connections = [1]
    if options.seconds is None:
        options.seconds = 1.0 if options.quick else 5.0
    return options


def main() -> None:
    options = parse_arguments()
    machine = describe_machine()
    packages = ["uvicorn", "h11", "numpy", "pyarrow", "lightgbm", "fastapi", "pydantic", "httptools", "uvloop"]
    found = {"rankwood": rw.__version__} | versions(packages)
    print(*heading(machine, found), sep="\n", flush=True)
    if not has_fastapi():
        print("FastAPI left out: pip install fastapi")
    figures: dict[str, Any] = {"machine": machine, "versions": found, "cells": []}
    source = Source()
    for shape in options.shapes:
        model = subject(shape, source)
        cells = list(run(model, options))
        print(f"\n{shape}: {model.ensemble}", *table(cells), sep="\n", flush=True)
        figures["cells"] += [asdict(cell) for cell in cells]
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
