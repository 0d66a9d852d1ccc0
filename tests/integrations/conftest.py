"""What tests of other tools share: making one absent."""

from __future__ import annotations

import sys

import pytest


class Absent:
    """A finder that says that a package is not there."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def without(monkeypatch):
    """Take a package away for the rest of the test."""

    def take_away(package):
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(sys, "meta_path", [Absent(package), *sys.meta_path])

    return take_away
