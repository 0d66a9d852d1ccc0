"""The server: where it listens, which signals it obeys, how it stops."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import signal
import socket
import stat
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankwood.errors import MissingPackageError, RankwoodError, one_line
from rankwood.serving.app import App
from rankwood.serving.batch import Limits
from rankwood.serving.shelf import Shelf
from rankwood.system import resolve_threads

KEEP_ALIVE_SECONDS = 75  # between two requests of a connection; more than balancers keep theirs unused
WATCH_SECONDS = 1.0  # between two looks at the model files


@dataclass(frozen=True)
class Settings:
    """How models are served.

    Parameters
    ----------
    files : dict of str to Path
        Model files by name.
    host, port : str, int
        Where to listen; port 0 takes a free one.
    unix : Path, optional
        Socket file to listen at instead.
    threads : int, optional
        Threads that score; one for every CPU unless given.
    limits : Limits
        How much a request may take.
    watch : bool, default False
        Whether a model whose file changes is loaded again.
    token : str, optional
        What lets a request swap a model.
    grace_seconds : float
        How long requests under way may take when the server stops.
    access : bool, default False
        Whether every answer is logged.
    """

    files: dict[str, Path]
    host: str = "127.0.0.1"
    port: int = 8000
    unix: Path | None = None
    threads: int | None = None
    limits: Limits = field(default_factory=Limits)
    watch: bool = False
    token: str | None = None
    grace_seconds: float = 30.0
    access: bool = False


def serve(
    settings: Settings, *, tell: Callable[[str], None], on_start: Callable[[str, int | None, Shelf], None]
) -> int:
    """Serve models until a signal stops the process; returns the signal.

    SIGTERM and SIGINT end it when the requests under way are answered, a second one at once; SIGHUP loads all models
    again.

    Parameters
    ----------
    settings : Settings
        What and how.
    tell : callable
        Called with a line for the log.
    on_start : callable
        Called with the address, the port (None for a socket file) and the models as soon as requests are taken.

    Raises
    ------
    RankwoodError
        The address cannot be had, or a model cannot be loaded.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a client that goes away must not end the process
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # while models are loaded for the first time
    try:
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingPackageError("uvicorn", "serving models over HTTP", "serve") from None
    with (
        _listening(settings) as listening,
        ThreadPoolExecutor(resolve_threads(settings.threads), "score") as pool,
        ThreadPoolExecutor(1, "load") as loader,
    ):
        shelf = Shelf(settings.files)
        app = App(shelf, settings.limits, pool, loader, tell, token=settings.token, access=settings.access)
        with contextlib.suppress(ImportError):
            import pyarrow  # noqa: F401  now, not in the first request
        return asyncio.run(_run(app, settings, listening, on_start))


async def _run(
    app: App, settings: Settings, listening: socket.socket, on_start: Callable[[str, int | None, Shelf], None]
) -> int:
    """Serve until a signal comes; returns it."""
    server = _make_server(app, settings)
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def stop(number: int) -> None:
        server.should_exit = app.stopping = True
        server.force_exit = bool(received)  # by the second one
        received.append(number)

    def reload() -> None:
        start(app.reload(list(app.shelf.files)))

    def start(work: Coroutine[Any, Any, None]) -> None:
        task = loop.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    tasks: set[asyncio.Task[None]] = set()
    loop.add_signal_handler(signal.SIGTERM, stop, signal.SIGTERM)
    loop.add_signal_handler(signal.SIGINT, stop, signal.SIGINT)
    loop.add_signal_handler(signal.SIGHUP, reload)
    if settings.watch:
        start(_watch(app))
    serving = loop.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)
    if server.started:
        on_start(*_address(listening, settings), app.shelf)
    await serving
    for task in list(tasks):
        task.cancel()
    return received[0] if received else signal.SIGTERM


async def _watch(app: App) -> None:
    """Load a model again when its file has changed."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        await app.reload(await loop.run_in_executor(app.loader, app.shelf.changed))


# Where it listens.


@contextlib.contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """A socket that is bound, so that an address that cannot be had is told before models are loaded."""
    where = f"port {settings.port} of {settings.host}" if settings.unix is None else str(settings.unix)
    try:
        listening = _bind(settings)
    except OSError as error:
        hint = "; --port 0 takes a free one" if error.errno == errno.EADDRINUSE and settings.unix is None else ""
        if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
            hint = "; --host must be an address of this machine"
        raise RankwoodError(f"cannot listen at {where}: {error.strerror or error}{hint}") from None
    try:
        with listening:
            yield listening
    finally:
        if settings.unix is not None:
            settings.unix.unlink(missing_ok=True)


def _bind(settings: Settings) -> socket.socket:
    if settings.unix is not None:
        _remove_stale(settings.unix)
        listening = socket.socket(socket.AF_UNIX)
        address: Any = os.fspath(settings.unix)
    else:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    return listening


def _remove_stale(path: Path) -> None:
    """Remove a socket file at which nobody listens any more."""
    if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(os.fspath(path))
            except ConnectionRefusedError:
                path.unlink()


def _address(listening: socket.socket, settings: Settings) -> tuple[str, int | None]:
    """Address to tell users, and its port."""
    if settings.unix is not None:
        return f"unix:{settings.unix}", None
    port: int = listening.getsockname()[1]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{port}", port


# What of uvicorn is changed.


def _make_server(app: App, settings: Settings) -> Any:
    """A server of uvicorn that leaves signals to others, does not wait for slow headers and logs one line each."""
    import uvicorn

    class Server(uvicorn.Server):
        def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]
            return contextlib.nullcontext()  # uvicorn's would end the process by the signal, not with a status

    for name in ("uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [_Lines(app.tell)], False
        logger.setLevel(logging.ERROR)
    config = uvicorn.Config(
        app,
        http=_protocol(settings.limits.head_seconds),
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.grace_seconds,  # type: ignore[arg-type]  # fractions work as well
    )
    return Server(config)


class _Lines(logging.Handler):
    """Log records as one line each, without tracebacks."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self.tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        if "graceful shutdown" in record.getMessage():  # uvicorn's words for the end of --grace
            self.tell("requests that took longer than --grace were cut off")
            return
        error = record.exc_info[1] if record.exc_info else None
        self.tell(one_line(f"{record.getMessage()} {'' if error is None else f'{type(error).__name__}: {error}'}", 300))


def _protocol(head_seconds: float) -> Any:
    """The protocol of HTTP/1.1 in which headers must come within some seconds, and all errors are JSON."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):
        """Between requests a timer runs: from the connection, or from the first byte of the next request.

        What still comes of a body that was refused is read and dropped until then, so that the sender gets to
        read the answer.
        """

        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._start()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is None or self.cycle.response_complete:
                if self._timer is None:
                    self._start()
            else:
                self._stop()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            self._stop()
            super().on_response_complete()
            if self.cycle.response_complete and self.conn.their_state is h11.SEND_BODY:
                self._start()

        def timeout_keep_alive_handler(self) -> None:
            if self.transport.get_write_buffer_size():
                self.transport.abort()  # who has not read the last answer by now gets no longer
            else:
                super().timeout_keep_alive_handler()

        def send_400_response(self, msg: str) -> None:
            self._refuse(400, "this is not a request of HTTP/1.1")

        def _start(self) -> None:
            self._timer = self.loop.call_later(head_seconds, self._late)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _late(self) -> None:
            self._timer = None
            if not self.transport.is_closing():
                self._refuse(408, "the headers took too long to arrive")

        def _refuse(self, status: int, sentence: str) -> None:
            """Answer what is no request, if that can be answered, and close the connection."""
            body = json.dumps({"error": sentence}).encode()
            headers = [
                ("content-type", "application/json"),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            with contextlib.suppress(h11.LocalProtocolError):  # in the middle of an answer
                head = h11.Response(status_code=status, headers=headers)
                for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return Protocol
