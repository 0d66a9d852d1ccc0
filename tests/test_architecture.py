"""Imports point one way: ARCHITECTURE.md shows the floors, this test keeps them."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

import rankwood

TOOL = Path(__file__).resolve().parents[1] / "tools" / "floors.py"


def _load_tool():
    specification = importlib.util.spec_from_file_location("floors", TOOL)
    module = importlib.util.module_from_spec(specification)
    sys.modules["floors"] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


floors = _load_tool()
HOUSE = floors.House()

# Each room may import itself and the rooms before it. A model scores itself, and what scores it takes a model: they
# share a layer, in which single modules still point one way, with the tools that a model lives in. So do training,
# which may end with a fit of all leaves and may run on a cluster, fitting, which knows losses, and cluster, which knows
# callbacks and checkpoints.
LAYERS: list[set[str]] = [
    {"_version", "errors", "coding", "dtypes", "_native", "startup", "printable", "display", "lazily", "packages"},
    {"system", "matrix", "atomic", "group", "exact", "tasks"},
    {"data", "model", "scoring", "integrations"},
    {"evaluation", "formats"},
    {"training", "fitting", "verification", "explaining", "cluster"},
    {"pruning"},
    {"shrinking"},
    {"lab", "serving"},
    {"cli", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


@pytest.mark.parametrize("module", sorted(HOUSE.files))
def test_imports_point_one_way(module):
    own = LEVEL[module.split(".")[0]]
    for one in HOUSE.imports[module]:
        assert LEVEL[one.module.split(".")[0]] <= own, f"{module} must not import {one.module}"


@pytest.mark.parametrize("module", sorted(HOUSE.files))
def test_only_commands_import_the_lab(module):
    """Inside functions or not: what scores and trains installs without the extra `lab`."""
    if module.split(".")[0] not in ("lab", "cli"):
        assert not [one.module for one in HOUSE.imports[module] if one.module.split(".")[0] == "lab"]


def test_no_circles_and_few_floors():
    assert len(floors.longest_chain(HOUSE.graph())) - 1 <= LONGEST
    assert len(floors.longest_chain(HOUSE.graph(lazy=False))) - 1 <= LONGEST_AT_TOP


LONGEST, LONGEST_AT_TOP = 12, 10


@pytest.mark.parametrize("module", sorted(HOUSE.files))
def test_private_names_stay_at_home(module):
    private = [one for one in HOUSE.imports[module] if one.name.startswith("_") and not one.name.startswith("__")]
    assert not private, f"{module} imports private names: {private}"


@pytest.mark.parametrize("module", sorted(HOUSE.files))
def test_no_relative_imports(module):
    tree = ast.parse(HOUSE.files[module].read_text(encoding="utf-8"))
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))


def test_the_drawing_is_of_these_floors():
    page = floors.PAGE.read_text(encoding="utf-8")
    assert floors.written(page, floors.drawing(HOUSE)) == page, "run: python tools/floors.py --write"


def test_circles_are_found():
    with pytest.raises(ValueError, match="a > b > a"):
        floors.longest_chain({"a": {"b"}, "b": {"a"}})


def test_measures_know_arrays_only():
    for name in ("measures", "conventions", "per_query", "significance"):
        rooms = {one.module.split(".")[0] for one in HOUSE.imports[f"evaluation.{name}"]}
        assert not rooms & {"data", "model"}


@pytest.mark.parametrize(
    "path",
    [path for name, path in HOUSE.files.items() if name.startswith("cli") and name != "cli.console"],
    ids=lambda path: path.name,
)
def test_commands_print_through_the_console(path):
    """Which takes nothing for markup and shows what is not printable as escapes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        assert called not in {"print", "Console", "TextColumn", "typer.echo", "sys.stderr.write"}, f"{path}: {called}"


def test_names_for_type_checkers_are_those_imported_on_first_use():
    tree = ast.parse(Path(rankwood.__file__).read_text())
    named = {
        alias.asname: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert named == rankwood._HOME_OF
    for name in rankwood.__all__:
        assert getattr(rankwood, name) is not None
