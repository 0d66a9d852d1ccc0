"""The reference names everything public, and docstrings come out as Markdown that shows them as they are meant."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

import pytest

import rankwood

TOOLS = Path(__file__).resolve().parents[2] / "tools" / "docs"


def load(name: str):
    """A module of tools/docs."""
    sys.path.insert(0, str(TOOLS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(TOOLS))


def test_every_public_name_is_on_one_page():
    api = load("api_pages")
    assert api.public_names() == rankwood._HOME_OF
    text = "\n".join(api.pages().values()) + "\n"
    for name in rankwood._HOME_OF:
        found = text.count(f"::: rankwood.{name}\n")
        assert found == 1, f"{name}: add its module to a group in tools/docs/api_pages.py"


def test_groups_are_in_the_navigation():
    config = (TOOLS.parents[1] / "mkdocs.yml").read_text(encoding="utf-8")
    for path in (*load("api_pages").pages(), "reference/commands.md"):
        assert f"- {path}" in config


def test_every_command_and_option_is_on_the_page_of_commands():
    module = load("command_page")
    page = module.page()

    def check(command, path):
        if not getattr(command, "commands", None):
            assert f"\n{path} " in page or f"\n{path}\n" in page
            for parameter in command.params:
                if parameter.param_type_name == "option" and not parameter.hidden:
                    assert all(name in page for name in parameter.opts), (path, parameter.name)
        for name, below in getattr(command, "commands", {}).items():
            check(below, f"{path} {name}")

    check(module.root(), "rankwood")


@pytest.fixture(scope="module")
def as_markdown():
    pytest.importorskip("griffe", reason="the documentation's packages are absent: pip install '.[docs]'")
    return load("docstring_markdown").as_markdown


def test_columns_become_tables_and_doctests_code(as_markdown):
    columns = "a        first | one\n         and more\nb, c, dd second"
    text = as_markdown(f"Do it.\n\n{columns}\n\n>>> 1\n1\n\n>>> 2\n2\n\nEnd.")
    assert text == (
        "Do it.\n\n| | |\n| --- | --- |\n| `a` | first \\| one and more |\n| `b`, `c`, `dd` | second |\n\n"
        "```pycon\n>>> 1\n1\n>>> 2\n2\n```\n\nEnd."
    )


@pytest.mark.parametrize("name", sorted(rankwood._HOME_OF))
def test_docstrings_are_whole_after_the_change(name, as_markdown):
    text = inspect.getdoc(getattr(rankwood, name)) or ""
    assert text, f"{name} has no docstring"
    shown = as_markdown(text)
    outside = "".join(shown.split("```")[::2])
    assert ">>>" not in outside
    kept = {word for word in text.replace("|", " ").split() if word.isalpha()}
    assert kept <= set(shown.replace("`", " ").replace("|", " ").replace(",", " ").split()) | set(shown.split())


def test_signatures_are_those_of_the_code(as_markdown):
    import griffe

    extensions = griffe.Extensions(load("docstring_markdown").DocstringMarkdown())
    folder = Path(rankwood.__file__).parents[1]
    package = griffe.load("rankwood", search_paths=[folder], allow_inspection=False, extensions=extensions)
    for name, home in rankwood._HOME_OF.items():
        if home == "rankwood.errors" or name == "ConversionWarning":
            continue  # built-in exceptions tell no signature
        real = inspect.signature(getattr(rankwood, name)).parameters.values()
        shown = [p for p in package[home.removeprefix("rankwood.")][name].parameters if p.name != "self"]
        assert [(p.name, p.kind.value) for p in shown] == [(p.name, p.kind.description) for p in real], name
