"""`rankwood serve` in a process of its own, at a free port of 127.0.0.1, and requests to it by http.client."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rankwood as rw

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(rw.__file__).parents[1])}
JSON = "application/json"
SECONDS = 60  # for anything to happen


@dataclass
class Running:
    process: subprocess.Popen[str]
    port: int
    facts: dict[str, Any]
    log: list[str] = field(default_factory=list)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)

    def ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = JSON, **headers: str
    ) -> tuple[int, Any]:
        connection = self.connect()
        try:
            return ask(connection, method, path, body, kind, **headers)
        finally:
            connection.close()

    def score(self, request: Any, path: str = "/score") -> tuple[int, Any]:
        return self.ask("POST", path, json.dumps(request).encode())

    def said(self, text: str) -> None:
        """Wait until a line of the log has the text."""
        done = threading.Event()
        for _ in range(SECONDS * 20):
            if any(text in line for line in self.log):
                return
            done.wait(0.05)
        raise AssertionError(f"{text!r} is not in {self.log}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any, kind: str = JSON, **headers: str
) -> tuple[int, Any]:
    connection.request(method, path, body, {"Content-Type": kind} | headers)
    response = connection.getresponse()
    content = response.read()
    return response.status, json.loads(content) if response.headers["content-type"] == JSON else content


@contextlib.contextmanager
def serving(*arguments: object) -> Iterator[Running]:
    """A server, stopped at the end if it still runs."""
    command = [sys.executable, "-m", "rankwood", "serve", *map(str, arguments), "--port", "0", "--json"]
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.stderr.read())
        facts = json.loads(line)
        running = Running(process, facts["port"], facts)
        reader = threading.Thread(target=lambda: running.log.extend(iter(process.stderr.readline, "")), daemon=True)
        reader.start()
        try:
            running.said("serving ")
            yield running
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            reader.join(5)
