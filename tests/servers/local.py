"""A web server on this computer that can be told to misbehave."""

from __future__ import annotations

import dataclasses
import http.server
import re
import threading
import time
from types import TracebackType


@dataclasses.dataclass
class Page:
    """One file on the server, and how it is served. Lists are used up, one item a request; then all is well."""

    data: bytes
    etag: str | None = '"v1"'
    last_modified: str | None = None
    ranges: bool = True  # answers Range requests
    respects_if_range: bool = True
    sends_length: bool = True
    content_type: str = "application/octet-stream"
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    statuses: list[int] = dataclasses.field(default_factory=list)  # HTTP errors to answer first
    drop_after: list[int] = dataclasses.field(default_factory=list)  # bytes of the body before the connection is cut
    stall: float = 0.0  # seconds of silence before the answer
    changes: bool = False  # every answer claims to be a new version


class _Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # clients that hang up are what the tests are about


class LocalServer:
    """`with LocalServer() as server: server.pages["/a.zip"] = Page(b"..."); server.url("/a.zip")`."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.requests: list[dict[str, str]] = []
        self._server = _Quiet(("127.0.0.1", 0), self._handler())

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def __enter__(self) -> LocalServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.requests.append(dict(self.headers))
                page = outer.pages.get(self.path)
                if page is None:
                    return self.answer_error(404)
                time.sleep(page.stall)
                if page.statuses:
                    return self.answer_error(page.statuses.pop(0))
                return self.answer(page)

            def answer_error(self, status: int) -> None:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def answer(self, page: Page) -> None:
                start = self.first_byte(page)
                if start > 0 and start >= len(page.data):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(page.data)}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                body = page.data[start:]
                self.send_response(206 if start else 200)
                self.send_header("Content-Type", page.content_type)
                if page.sends_length:
                    self.send_header("Content-Length", str(len(body)))
                else:
                    self.send_header("Connection", "close")
                    self.close_connection = True
                if page.ranges:
                    self.send_header("Accept-Ranges", "bytes")
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{len(page.data) - 1}/{len(page.data)}")
                if page.changes:
                    page.etag = f'"v{len(outer.requests)}"'
                if page.etag:
                    self.send_header("ETag", page.etag)
                if page.last_modified:
                    self.send_header("Last-Modified", page.last_modified)
                for name, value in page.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if page.drop_after:
                    body = body[: page.drop_after.pop(0)]
                    self.close_connection = True
                self.wfile.write(body)

            def first_byte(self, page: Page) -> int:
                """Where the answer starts: what Range asks, unless the file changed since (If-Range)."""
                match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
                if match is None or not page.ranges:
                    return 0
                condition = self.headers.get("If-Range")
                if condition and page.respects_if_range and condition not in (page.etag, page.last_modified):
                    return 0
                return int(match[1])

            def log_message(self, *arguments: object) -> None:
                pass

        return Handler
