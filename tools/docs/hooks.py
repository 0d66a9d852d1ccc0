"""What happens when the site is built: reference pages are made, and links to what is not there become text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import api_pages
import command_page
from mkdocs.structure.files import File, Files

# A link from docs/ to a file of the repository works on GitHub; the site has no such page, and shows its name alone.
TOP = "README|ARCHITECTURE|CONTRIBUTING|CHANGELOG|benchmarks|examples|src|tests|tools|native"
OUTSIDE = re.compile(rf"\[([^\]]+)\]\((?:\.\./)+(?:{TOP})[^)]*\)")


def on_config(config: Any, **kwargs: Any) -> Any:
    """Leave pages out of the navigation that `extra.optional_pages` allows to be absent."""
    optional = set(config.extra.get("optional_pages", []))
    config.nav = _present(config.nav, {page for page in optional if not (Path(config.docs_dir) / page).exists()})
    return config


def _present(entry: Any, absent: set[str]) -> Any:
    """The navigation without pages that are absent, and without sections that are empty then."""
    if isinstance(entry, list):
        return [kept for each in entry if (kept := _present(each, absent))]
    if isinstance(entry, dict):
        return {title: kept for title, below in entry.items() if (kept := _present(below, absent))}
    return None if entry in absent else entry


def on_files(files: Files, config: Any, **kwargs: Any) -> Files:
    """Add the reference, which is made of the sources."""
    for path, text in {**api_pages.pages(), "reference/commands.md": command_page.page()}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **kwargs: Any) -> str:
    """Links to what the site does not have become their text; the front page needs no list of its siblings."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]
    for name in config.extra.get("optional_pages", []):
        if not (Path(config.docs_dir) / name).exists():
            markdown = re.sub(rf"\[([^\]]+)\]\([^)]*{re.escape(Path(name).name)}(?:#[^)]*)?\)", r"\1", markdown)
    return OUTSIDE.sub(r"\1", markdown)
