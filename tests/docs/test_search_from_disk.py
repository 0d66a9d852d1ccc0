"""The site's search, in a browser, of pages that are opened from the disk and of pages that a server sends."""

from __future__ import annotations

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("site")]


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture
def served(site):
    """The address of the site on a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("folder", ["", "guides/"])
@pytest.mark.parametrize("opened_from", ["disk", "server"])
def test_a_page_is_found(chromium, site, served, opened_from, folder):
    base = site.as_uri() if opened_from == "disk" else served
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{base}/{folder}{'lightgbm' if folder else 'index'}.html")
    page.locator(".md-search__input").click()
    page.keyboard.type("early exit")
    found = page.locator(".md-search-result__link").first
    found.wait_for(timeout=60_000)
    found.click()
    page.wait_for_url("**/early-exit.html*")
    page.close()
    assert [url for url in asked if not url.startswith((base, "data:", "blob:", "about:"))] == []
