"""The reference of the site: it names everything public, and shows parameters and examples as such."""

from __future__ import annotations

import importlib
import inspect
import re
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


pytestmark = pytest.mark.xdist_group("site")  # which is built once


@pytest.fixture(scope="module")
def griffe():
    return pytest.importorskip("griffe", reason="the documentation's packages are absent: pip install '.[docs]'")


def test_signatures_are_those_of_the_code(griffe):
    extensions = griffe.Extensions(load("positional_fields").PositionalFields())
    folder = Path(rankwood.__file__).parents[1]
    package = griffe.load("rankwood", search_paths=[folder], allow_inspection=False, extensions=extensions)
    for name, home in rankwood._HOME_OF.items():
        if home == "rankwood.errors" or name == "ConversionWarning":
            continue  # built-in exceptions tell no signature
        real = inspect.signature(getattr(rankwood, name)).parameters.values()
        shown = [p for p in package[home.removeprefix("rankwood.")][name].parameters if p.name != "self"]
        assert [(p.name, p.kind.value) for p in shown] == [(p.name, p.kind.description) for p in real], name


def shown(site: Path, page: str, name: str) -> str:
    """The HTML of one public name: from its heading to the next of a public name."""
    text = (site / "reference" / f"{page}.html").read_text(encoding="utf-8")
    _, found, rest = text.partition(f'<h2 id="rankwood.{name}"')
    assert found, f"{name} is not on the page {page}"
    return rest.partition("<h2 ")[0]


@pytest.mark.parametrize(
    ("page", "name", "parameter"),
    [("learners", "LambdaMART", "n_trees"), ("models", "Ensemble", "threshold"), ("data", "read_svmlight", "paths")],
)
def test_a_page_lists_parameters(site, page, name, parameter):
    text = shown(site, page, name)
    assert re.search(rf"Parameters:.*?<li[^>]*>.*?<code>{parameter}</code>", text, re.DOTALL)
    assert "<p>Parameters" not in text  # a heading that was taken for text


def test_a_page_shows_doctests_as_code(site):
    text = shown(site, "models", "Ensemble")
    assert "Examples:" in text
    assert "<blockquote>" not in text
