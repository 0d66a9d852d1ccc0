"""Fixtures that several test files share."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# One checkout gives one result: examples are drawn the same way each time. `--hypothesis-profile=explore` draws others.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("explore", settings.get_profile("default"), derandomize=False)
settings.load_profile("default")

# A shell makes what it starts in the background ignore Ctrl-C, which tests press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch) -> None:
    """No command warns of a busy machine, which the tests' may be; tests of that set the limit themselves."""
    monkeypatch.setattr("rankwood.scoring.timing.BUSY", 2.0)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The public data sets, when they lie beside the checkout or where RANKWOOD_DATA says; else a loud skip."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("RANKWOOD_DATA", beside))
    if not (folder / "mq2008").is_dir():
        pytest.skip("REAL DATA ABSENT: set RANKWOOD_DATA to the folder that holds mq2008/, ohsumed/, mslr/")
    return folder


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Headless Chromium, driven by playwright; without either a loud skip."""
    playwright = pytest.importorskip("playwright.sync_api", reason="BROWSER TESTS SKIPPED: pip install playwright")
    path = os.environ.get("RANKWOOD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("BROWSER TESTS SKIPPED: there is no chromium; install it or set RANKWOOD_CHROMIUM")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()
