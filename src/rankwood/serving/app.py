"""The application: what is answered to which request, within limits, and swaps of models. Any ASGI server runs it."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import re
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rankwood.errors import RankwoodError, one_line
from rankwood.printable import printable
from rankwood.serving.arrow_bodies import read_arrow, write_arrow
from rankwood.serving.batch import Limits, Refused
from rankwood.serving.json_bodies import read_json, write_json
from rankwood.serving.metrics import CONTENT_TYPE, Metrics
from rankwood.serving.openapi import ARROW, JSON, description
from rankwood.serving.served import Served
from rankwood.serving.shelf import Shelf, from_bytes

T = TypeVar("T")
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
STREAM, FILE = ARROW
RETRY = {"Retry-After": "1"}
QUICK_BYTES, QUICK_TREES = 1 << 16, 20_000  # most that is read and scored without a thread
DROP_SECONDS = 1.0  # for the rest of a body that was refused
OTHER_PATHS = "there are /score, /models, /models/NAME, /models/NAME/score, /health, /ready, /metrics and /openapi.json"


@dataclass
class Answer:
    """An answer, and what the metrics note of it."""

    status: int
    body: bytes
    kind: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    model: str = ""
    n_documents: int = -1  # -1: it has no scores


@dataclass
class Request:
    """Method, path and headers of a request, and how to get its body, part by part."""

    method: str
    path: str
    headers: dict[bytes, bytes]
    receive: Receive
    deadline: float
    has_more: bool = True  # of its body

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1").strip()

    async def part(self) -> bytes:
        """The next part of the body."""
        message = await self.receive()
        self.has_more = message["type"] == "http.request" and message.get("more_body", False)
        if message["type"] != "http.request":
            raise Refused(400, "the client went away")
        part: bytes = message.get("body", b"")
        return part


Handler = Callable[..., Awaitable[Answer]]  # of a request and the parts of its path


class App:
    """The application.

    Parameters
    ----------
    shelf : Shelf
        The models.
    limits : Limits
        How much a request may take.
    pool : Executor
        Threads that read bodies and score them, so that the event loop answers meanwhile. Kernels hold no
        interpreter lock.
    loader : Executor
        One thread that loads models, one after the other.
    tell : callable
        Called with a line for the log.
    token : str, optional
        What `PUT /models/NAME` must bring; without it there is no such method.
    access : bool, default False
        Whether every answer is logged.
    """

    def __init__(
        self,
        shelf: Shelf,
        limits: Limits,
        pool: Executor,
        loader: Executor,
        tell: Callable[[str], None],
        *,
        token: str | None = None,
        access: bool = False,
    ) -> None:
        self.shelf, self.limits, self.pool, self.loader = shelf, limits, pool, loader
        self.tell, self.token, self.access = tell, token, access
        self.metrics = Metrics()
        self.stopping = False
        of_model: dict[str, Handler] = {"GET": self._model}
        if token is not None:
            of_model["PUT"] = self._put
        self._routes: list[tuple[re.Pattern[str], dict[str, Handler]]] = [
            (re.compile(r"/health"), {"GET": self._health}),
            (re.compile(r"/ready"), {"GET": self._ready}),
            (re.compile(r"/metrics"), {"GET": self._metrics}),
            (re.compile(r"/openapi\.json"), {"GET": self._openapi}),
            (re.compile(r"/models"), {"GET": self._models}),
            (re.compile(r"/models/([^/]*)"), of_model),
            (re.compile(r"/models/([^/]*)/score"), {"POST": self._score}),
            (re.compile(r"/score"), {"POST": self._score_only}),
        ]

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request of HTTP."""
        started = time.perf_counter()
        request = Request(
            scope["method"], scope["path"], dict(scope["headers"]), receive, started + self.limits.seconds
        )
        try:
            answer = await self._answer(request)
        except asyncio.CancelledError:  # when the time to stop in is over
            answer = _refusal(Refused(503, "the server stopped before this request was done", RETRY))
        seconds = time.perf_counter() - started
        self.metrics.answered(answer.model, answer.status, seconds, answer.n_documents)
        if self.access:
            client = (scope.get("client") or ("-",))[0]
            self.tell(f"{client} {request.method} {_shown(request.path)} {answer.status} {1000 * seconds:.1f} ms")
        headers = {"content-type": answer.kind, "content-length": str(len(answer.body))} | answer.headers
        is_last = self._is_last(request, answer)
        if is_last:
            headers["connection"] = "close"
        encoded = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        if is_last and answer.status >= 400 and not self.stopping:
            await send({"type": "http.response.body", "body": answer.body, "more_body": True})
            await self._drop_rest(request)
            await send({"type": "http.response.body"})
        else:
            await send({"type": "http.response.body", "body": answer.body})

    def _is_last(self, request: Request, answer: Answer) -> bool:
        """Whether the connection is closed after an answer: nobody waits for the rest of a large or late body."""
        is_cut_off = answer.status in (408, 413) and request.has_more
        return self.stopping or is_cut_off or request.header(b"connection").lower() == "close"

    async def _answer(self, request: Request) -> Answer:
        """The answer of the path's method; every error is one."""
        try:
            for pattern, methods in self._routes:
                found = pattern.fullmatch(request.path)
                if found:
                    method = "GET" if request.method == "HEAD" else request.method
                    if method not in methods:
                        allowed = ", ".join([*methods, *(["HEAD"] if "GET" in methods else [])])
                        raise Refused(405, f"{_shown(request.path)} takes {allowed}", {"Allow": allowed})
                    return await methods[method](request, *found.groups())
            raise Refused(404, f"there is nothing at {_shown(request.path)}: {OTHER_PATHS}")
        except Refused as error:
            return _refusal(error)
        except MemoryError:
            return _refusal(Refused(503, "the server has too little memory for this request", RETRY))
        except Exception as error:
            self.tell(f"defect: {request.method} {_shown(request.path)}: {type(error).__name__}: {one_line(error)}")
            return _refusal(Refused(500, "the server has a defect: its log says more"))

    # What is told of the server.

    async def _health(self, request: Request) -> Answer:
        return _json({"status": "ok"})

    async def _ready(self, request: Request) -> Answer:
        if self.stopping:
            raise Refused(503, "the server stops", RETRY)
        return _json({"status": "ready"})

    async def _metrics(self, request: Request) -> Answer:
        return Answer(200, self.metrics.text(self.shelf).encode(), CONTENT_TYPE)

    async def _openapi(self, request: Request) -> Answer:
        return _json(description(list(self.shelf), self.limits, admin=self.token is not None))

    async def _models(self, request: Request) -> Answer:
        return _json({"models": [served.facts for served in self.shelf]})

    async def _model(self, request: Request, name: str) -> Answer:
        return _json(self._served(name).facts)

    def _served(self, name: str) -> Served:
        served = self.shelf.get(name)
        if served is None:
            names = one_line(", ".join(one.name for one in self.shelf), 400)
            raise Refused(404, f"there is no model {one_line(name)!r}: there are {names}")
        return served

    # Scores.

    async def _score_only(self, request: Request) -> Answer:
        served = self.shelf.only
        if served is None:
            raise Refused(404, "several models are served: POST to /models/NAME/score; /models lists them")
        return await self._score(request, served.name)

    async def _score(self, request: Request, name: str) -> Answer:
        served = self._served(name)  # of this one to the end, whatever is swapped
        try:
            kind = _content_type(request, (JSON, *ARROW))
            with _Place(self):
                body = await self._body(request, self.limits.body_bytes)
                if is_quick(served, len(body)):
                    return self._scores(served, kind, body)
                return await self._in_thread(request, self.pool, self._scores, served, kind, body)
        except Refused as error:
            answer = _refusal(error)
            answer.model = name
            return answer

    def _scores(self, served: Served, kind: str, body: bytes) -> Answer:
        """Scores of the documents in a body."""
        batch = (read_json if kind == JSON else read_arrow)(body, served, self.limits)
        try:
            scores = batch.score(served.model)
        except RankwoodError as error:
            raise Refused(422, str(error)) from None
        if kind == JSON:
            content = write_json(served, scores, batch.order(scores))
        else:
            content = write_arrow(served, scores, as_file=kind == FILE)
        return Answer(200, content, kind, model=served.name, n_documents=len(scores))

    # Swaps.

    async def _put(self, request: Request, name: str) -> Answer:
        given = request.header(b"authorization").encode("latin-1")
        if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
            challenge = {"WWW-Authenticate": "Bearer"}
            raise Refused(401, "to swap a model send the token: Authorization: Bearer TOKEN", challenge)
        self._served(name)
        _content_type(request, ("application/octet-stream",))
        with _Place(self):
            content = await self._body(request, self.limits.model_bytes)
            try:
                served = await self._in_thread(request, self.loader, from_bytes, name, content)
            except Refused:
                raise
            except RankwoodError as error:
                self._note_refused(name, error)
                raise Refused(422, f"{name} is served as before: {error}") from None
        self._swap(served)
        return _json(served.facts)

    async def reload(self, names: list[str]) -> None:
        """Load models from their files again and serve them; one that cannot be loaded is served as before.

        Parameters
        ----------
        names : list of str
            Which ones.
        """
        loop = asyncio.get_running_loop()
        for name in names:
            try:
                self._swap(await loop.run_in_executor(self.loader, self.shelf.load, name))
            except (RankwoodError, OSError, MemoryError) as error:
                self._note_refused(name, error)

    def _swap(self, served: Served) -> None:
        before = self.shelf.get(served.name)
        self.shelf.swap(served)
        self.metrics.swaps[served.name, "swapped"] += 1
        same = before is not None and before.fingerprint == served.fingerprint
        news = "the same trees" if same else f"{served.model.n_trees:,} trees, {served.model.n_features:,} features"
        self.tell(f"swapped {served.name}: {news}, fingerprint {served.fingerprint[:12]}")

    def _note_refused(self, name: str, error: BaseException) -> None:
        self.metrics.swaps[name, "refused"] += 1
        self.tell(f"{name} is served as before: {one_line(error, 300)}")

    # Bodies and threads, within limits.

    async def _body(self, request: Request, most: int) -> bytes:
        """The body; it is refused as soon as it is known to be too large."""
        if request.header(b"content-encoding").lower() not in ("", "identity"):
            raise Refused(415, "a compressed body is not taken: send it as it is", {"Accept-Encoding": "identity"})
        too_large = Refused(413, f"the body is larger than the {most:,} bytes that are taken: send fewer rows")
        length = request.header(b"content-length")
        if length.isdecimal() and int(length[:20]) > most:
            raise too_large

        async def read() -> bytes:
            parts: list[bytes] = []
            size = 0
            while request.has_more:
                parts.append(await request.part())
                size += len(parts[-1])
                if size > most:
                    raise too_large
            return b"".join(parts)

        return await self._within(request, read(), Refused(408, "the body took too long to arrive"))

    async def _drop_rest(self, request: Request) -> None:
        """Read what is left of a refused body for a moment, before the connection is closed.

        Closing at once would reset the connection while the sender still sends, and it would not see the answer. On
        connections that are kept, the server drops the rest by itself.
        """
        if request.header(b"expect"):
            return
        left = 4 * self.limits.body_bytes

        async def read() -> None:
            nonlocal left
            while request.has_more and left > 0:
                left -= len(await request.part())

        with contextlib.suppress(Refused, asyncio.TimeoutError):
            await asyncio.wait_for(read(), DROP_SECONDS)

    async def _in_thread(self, request: Request, pool: Executor, call: Callable[..., T], *arguments: Any) -> T:
        future = asyncio.get_running_loop().run_in_executor(pool, call, *arguments)
        late = Refused(503, f"this took longer than {self.limits.seconds:g} s: send fewer rows", RETRY)
        return await self._within(request, future, late)

    async def _within(self, request: Request, wait: Awaitable[T], late: Refused) -> T:
        """What is waited for, before the time of the request is over."""
        try:
            return await asyncio.wait_for(wait, max(0.001, request.deadline - time.perf_counter()))
        except asyncio.TimeoutError:
            raise late from None


class _Place:
    """One of the requests that may be under way at the same time."""

    def __init__(self, app: App) -> None:
        self.app = app

    def __enter__(self) -> None:
        app = self.app
        if app.metrics.under_way >= app.limits.requests:
            raise Refused(503, f"{app.limits.requests} requests are under way: try again later", RETRY)
        app.metrics.under_way += 1

    def __exit__(self, *_: object) -> None:
        self.app.metrics.under_way -= 1


def is_quick(served: Served, n_bytes: int) -> bool:
    """Whether a body takes less time than handing it to a thread and back, which is 0.2 ms.

    A value takes two bytes at least, and a document about 15 ns in every tree.
    """
    most_rows = 1 + n_bytes // (2 * max(1, served.model.n_features))
    return n_bytes <= QUICK_BYTES and most_rows * served.model.n_trees <= QUICK_TREES


def _content_type(request: Request, taken: tuple[str, ...]) -> str:
    """Type of the body, without parameters."""
    given = request.header(b"content-type")
    kind, _, parameters = given.partition(";")
    kind = kind.strip().lower()
    charset = re.search(r"charset\s*=\s*\"?([^\s;\"]*)", parameters.lower())
    if kind not in taken or (charset and charset[1] not in ("utf-8", "utf8")):
        shown = f"{one_line(given)!r}" if given else "nothing"
        raise Refused(415, f"Content-Type says {shown}: it must be {' or '.join(taken)}", {"Accept": ", ".join(taken)})
    return kind


def _shown(path: str) -> str:
    return printable(one_line(path))


def _json(value: Any) -> Answer:
    return Answer(200, json.dumps(value, allow_nan=False, separators=(",", ":")).encode())


def _refusal(error: Refused) -> Answer:
    return Answer(error.status, json.dumps({"error": str(error)}).encode(), headers=error.headers)
