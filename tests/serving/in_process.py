"""The application called in this process, without sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import rankwood as rw
from rankwood.serving.app import App
from rankwood.serving.batch import Limits
from rankwood.serving.shelf import Shelf

T = TypeVar("T")
JSON = "application/json"
STREAM = "application/vnd.apache.arrow.stream"
FILE = "application/vnd.apache.arrow.file"


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, in a thread of its own: playwright keeps a loop in that of the tests."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The sentence of a refusal, which is all that its body has."""
        assert self.headers["content-type"] == JSON
        (sentence,) = self.json.values()
        assert set(self.json) == {"error"}
        assert "Traceback" not in sentence
        assert "\n" not in sentence
        return sentence


@dataclass
class Desk:
    """An application, and what it logged."""

    app: App
    log: list[str] = field(default_factory=list)

    def ask(
        self, method: str, path: str, body: bytes | Iterable[bytes] = b"", kind: str | None = None, **headers: str
    ) -> Reply:
        return run(self.asking(method, path, body, kind, **headers))

    async def asking(
        self, method: str, path: str, body: bytes | Iterable[bytes] = b"", kind: str | None = None, **headers: str
    ) -> Reply:
        parts = iter([body] if isinstance(body, bytes) else body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named |= {} if kind is None else {"content-type": kind}
        named |= {"content-length": str(len(body))} if isinstance(body, bytes) else {}
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in named.items()],
        }
        sent: list[Any] = []

        async def receive() -> Any:
            part = next(parts, None)
            return {"type": "http.request", "body": part or b"", "more_body": part is not None}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start, *rest = sent
        body = b"".join(part.get("body", b"") for part in rest)
        return Reply(start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, body)

    def score(self, request: Any, path: str = "/score") -> Reply:
        return self.ask("POST", path, json.dumps(request).encode(), JSON)


def open_desk(folder: Path, limits: Limits | None = None, token: str | None = None, **models: rw.Ensemble) -> Desk:
    """An application that serves models, which are saved in a folder first."""
    files = {name: folder / f"{name}.rw" for name in models}
    for name, model in models.items():
        model.save(files[name])
    log: list[str] = []
    pool, loader = ThreadPoolExecutor(2), ThreadPoolExecutor(1)
    return Desk(App(Shelf(files), limits or Limits(), pool, loader, log.append, token=token), log)
