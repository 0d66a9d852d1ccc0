"""Lines of README and docs that install something work in an empty environment, with the pip that Python brings."""

from __future__ import annotations

import re
import sys

import pytest
from blocks import ROOT, page_id, pages

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

INSTALL = re.compile(r"pip install[^`\n]*")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def lines(page) -> list[str]:
    return INSTALL.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_extras_exist(page):
    for line in lines(page):
        for names in re.findall(r"(?:\.|rankwood)\[([\w,]+)\]", line):
            assert set(names.split(",")) <= set(EXTRAS), line


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_groups_come_with_the_version_of_pip_that_knows_them(page):
    for line in lines(page):
        assert "--group" not in line or "pip 25.1" in line, line


def test_the_line_that_shows_the_site_installs_all_it_needs():
    """The site's packages, and rankwood, whose commands are described."""
    found = [line for name in ("README.md", "CONTRIBUTING.md") for line in lines(ROOT / name) if "mkdocs" in line]
    assert len(found) == 2
    for line in found:
        assert re.match(r'pip install (-e )?"\.\[docs\]" && mkdocs serve', line), line
    assert {re.match(r"[\w-]+", package)[0] for package in EXTRAS["docs"]} >= {
        "mkdocs",
        "mkdocs-material",
        "mkdocstrings",
    }
