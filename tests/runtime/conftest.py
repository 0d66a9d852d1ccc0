"""librankwood, built once for all tests."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from calling import Library, build, library_folder


@pytest.fixture(scope="session")
def installed(tmp_path_factory) -> Path:
    """Where librankwood was installed; processes that share the tests share it, too.

    The environment variable LIBRANKWOOD names an installation to test instead.
    """
    if "LIBRANKWOOD" in os.environ:
        return Path(os.environ["LIBRANKWOOD"])
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with open(folder / "librankwood.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "librankwood" / "done"
        if not done.exists():
            build(folder / "librankwood")
            done.touch()
    return folder / "librankwood" / "installed"


@pytest.fixture(scope="session")
def library(installed) -> Library:
    return Library(library_folder(installed) / "librankwood.so")
