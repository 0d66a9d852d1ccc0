"""Links between README, docs and other files of the repository lead somewhere, as GitHub follows them."""

from __future__ import annotations

import re

import pytest
from blocks import ROOT, page_id, pages

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
SETTINGS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
MADE = ROOT / "docs" / "reference"  # when the site is built


def headings(text: str) -> set[str]:
    """Anchors of headings, as GitHub and the site make them."""
    found = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\s-]", "", title.lower()).strip().replace(" ", "-") for title in found}


@pytest.mark.parametrize("page", [*pages(), ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"], ids=page_id)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in (one or other for one, other in LINK.findall(text)):
        if re.match(r"https?:|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if MADE in target.parents:
            continue
        assert target.exists(), f"{page.name}: {link} leads nowhere"
        if anchor and target.suffix == ".md":
            assert anchor in headings(target.read_text(encoding="utf-8")), f"{page.name}: no heading for {link}"


def test_every_page_is_in_the_navigation():
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert re.search(rf"[:-] {re.escape(name)}$", SETTINGS, re.M), f"{name}: name it in mkdocs.yml"


def test_every_page_of_the_navigation_is_there():
    for name in re.findall(r"[:-] ([\w/-]+\.md)$", SETTINGS, re.M):
        page = ROOT / "docs" / name
        assert page.exists() or MADE in page.parents, f"mkdocs.yml names {name}, which is not there"
