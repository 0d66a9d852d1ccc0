"""Imports point one way: ARCHITECTURE.md shows the layers, this test keeps them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rankwood

ROOT = Path(rankwood.__file__).parent

# Each layer may import itself and the layers before it.
LAYERS: list[set[str]] = [
    {"_version", "errors", "dtypes", "_native", "startup"},
    {
        "threads",
        "isa",
        "machine",
        "matrix",
        "atomic",
        "rows",
        "model_arrays",
        "tree",
        "drawing",
        "environment",
        "pareto",
        "printable",
    },
    {"data", "ensemble", "engines", "model_file", "topology", "visits", "losses", "adversarial"},
    {"evaluation", "trees", "formats", "verification"},
    {"learners", "pruning"},
    {"experiments"},
    {"studies", "tuning"},
    {"reporting"},
    {"cli", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "rankwood":
                names |= {alias.name for alias in node.names}
            elif node.module and node.module.startswith("rankwood."):
                names.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("rankwood.")}
    return names


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    own = path.relative_to(ROOT).with_suffix("").parts[0]
    if own == "__init__":
        return  # the public face names them all
    for name in imported(path):
        assert LEVEL[name] <= LEVEL[own], f"{own} must not import {name}"


def test_measures_know_arrays_only():
    for name in ("measures", "conventions", "per_query", "significance"):
        assert not imported(ROOT / "evaluation" / f"{name}.py") & {"data", "ensemble"}


@pytest.mark.parametrize(
    "path", sorted(set((ROOT / "cli").glob("*.py")) - {ROOT / "cli" / "console.py"}), ids=lambda p: p.name
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
