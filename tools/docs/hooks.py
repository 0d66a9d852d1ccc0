"""What happens when the site is built: reference pages are made, and links to what is not there become text."""

from __future__ import annotations

import re
from typing import Any

import api_pages
import command_page
from mkdocs.structure.files import File, Files

# A link from docs/ to a file of the repository works on GitHub; the site has no such page, and shows its name alone.
TOP = "README|ARCHITECTURE|CONTRIBUTING|CHANGELOG|SECURITY|benchmarks|examples|src|tests|tools|native"
OUTSIDE = re.compile(rf"\[([^\]]+)\]\((?:\.\./)+(?:{TOP})[^)]*\)")


def on_files(files: Files, config: Any, **kwargs: Any) -> Files:
    """Add the reference, which is made of the sources."""
    for path, text in {**api_pages.pages(), "reference/commands.md": command_page.page()}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **kwargs: Any) -> str:
    """Links to what the site does not have become their text; the front page needs no list of its siblings."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]
    return OUTSIDE.sub(r"\1", markdown)
