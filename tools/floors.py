"""The floors of the package: which module imports which, and how deep the longest chain of imports is.

    python tools/floors.py            print the drawing
    python tools/floors.py --write    put it into ARCHITECTURE.md, where a test compares it

A module stands one floor above the highest of those that it imports. Imports inside functions count; imports for type
checkers do not.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "rankwood"
PAGE = ROOT / "ARCHITECTURE.md"
MARKS = ("<!-- floors: python tools/floors.py --write -->", "<!-- end of floors -->")
WIDTH = 116


@dataclass(frozen=True)
class Import:
    """One name that a module imports: `name` of `module`, at the top of the file or inside a function."""

    module: str  # without `rankwood.`
    name: str
    at_top: bool


class House:
    """The modules of the package by name, without `rankwood.`, and what each imports of the others."""

    def __init__(self, package: Path = PACKAGE) -> None:
        self.files = {_module_name(path, package): path for path in sorted(package.rglob("*.py"))}
        self.home_of = _homes(package / "__init__.py")
        del self.files[""]  # the public face names them all

    @cached_property
    def imports(self) -> dict[str, list[Import]]:
        """Every import of every module, of the package's own modules alone."""
        return {name: list(self._imports_of(path)) for name, path in self.files.items()}

    def graph(self, *, lazy: bool = True) -> dict[str, set[str]]:
        """The modules that each module imports; `lazy`: also inside functions."""
        return {
            name: {one.module for one in found if (lazy or one.at_top) and one.module != name}
            for name, found in self.imports.items()
        }

    def _imports_of(self, path: Path) -> Iterator[Import]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        typing_only = {id(inner) for block in ast.walk(tree) if _is_typing_block(block) for inner in ast.walk(block)}
        for node in ast.walk(tree):
            if id(node) in typing_only:
                continue
            at_top = node in tree.body
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rankwood":
                for alias in node.names:
                    yield from self._resolve(node.module, alias.name, at_top)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.startswith("rankwood."):
                        yield Import(alias.name.removeprefix("rankwood."), "", at_top)
                    elif alias.name == "rankwood":  # what it uses of the public names
                        local = alias.asname or alias.name
                        for used in ast.walk(tree):
                            if isinstance(used, ast.Attribute) and getattr(used.value, "id", None) == local:
                                yield from self._resolve("rankwood", used.attr, at_top)

    def _resolve(self, module: str, name: str, at_top: bool) -> Iterator[Import]:
        """`from module import name`: of which file, when `name` may be a module or a public name itself."""
        inner = f"{module}.{name}".removeprefix("rankwood.")
        own = module.removeprefix("rankwood").removeprefix(".")
        if inner in self.files:
            yield Import(inner, "", at_top)
        elif own in self.files:
            yield Import(own, name, at_top)
        elif own == "" and name in self.home_of:
            yield Import(self.home_of[name].removeprefix("rankwood."), name, at_top)


def longest_chain(graph: dict[str, set[str]]) -> list[str]:
    """The longest chain of imports, from the top down; a ValueError that shows the circle, where there is one."""
    chains: dict[str, list[str]] = {}

    def chain(module: str, above: tuple[str, ...]) -> list[str]:
        if module in above:
            raise ValueError(f"imports go in a circle: {' > '.join((*above[above.index(module) :], module))}")
        if module not in chains:
            below = [chain(other, (*above, module)) for other in sorted(graph[module])]
            chains[module] = [module, *max(below, key=len, default=[])]
        return chains[module]

    return max((chain(module, ()) for module in sorted(graph)), key=len)


def floors(graph: dict[str, set[str]]) -> list[list[str]]:
    """The modules floor by floor, the ground floor first."""
    level: dict[str, int] = {}

    def height(module: str) -> int:
        if module not in level:
            level[module] = 1 + max((height(other) for other in graph[module]), default=-1)
        return level[module]

    result: list[list[str]] = [[] for _ in range(1 + max(map(height, graph)))]
    for module in sorted(graph):
        result[level[module]].append(module)
    return result


def drawing(house: House) -> str:
    """The floors as text, the top floor first, modules gathered by their room."""
    chain = longest_chain(house.graph())  # first: it tells circles
    at_top = longest_chain(house.graph(lazy=False))
    lines = []
    for number, modules in reversed(list(enumerate(floors(house.graph())))):
        rooms: dict[str, list[str]] = {}
        for module in modules:
            room, _, name = module.rpartition(".")
            rooms.setdefault(room, []).append(name)
        texts = [f"{room}: {' '.join(names)}" if room else " ".join(names) for room, names in rooms.items()]
        lines += _folded(f"{number:2d}  ", texts)
    return (
        "```text\n" + "\n".join(lines) + "\n```\n\n"
        f"{len(house.files)} modules. Longest chain of imports: {len(chain) - 1}, or {len(at_top) - 1} without imports "
        f"inside functions.\n"
    )


def written(page: str, text: str) -> str:
    """The page with the drawing between its marks."""
    begin, end = MARKS
    found = re.search(f"{re.escape(begin)}\n.*?{re.escape(end)}", page, re.DOTALL)
    if found is None:
        raise SystemExit(f"{PAGE.name} has no place for the drawing: put {begin} and {end} there")
    return page.replace(found[0], f"{begin}\n{text}{end}")


def _folded(start: str, texts: list[str]) -> list[str]:
    lines, line = [], start
    for text in texts:
        if len(line) > len(start) and len(line) + len(text) + 3 > WIDTH:
            lines.append(line)
            line = " " * len(start)
        line += (" | " if line.strip() and len(line) > len(start) else "") + text
    return [*lines, line]


def _module_name(path: Path, package: Path) -> str:
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _homes(face: Path) -> dict[str, str]:
    """Home of every public name, as the package's face lists them."""
    for node in ast.parse(face.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "_HOME_OF":
            homes: dict[str, str] = ast.literal_eval(node.value)
            return homes
    raise SystemExit(f"{face} has no _HOME_OF")


def _is_typing_block(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"


if __name__ == "__main__":
    text = drawing(House())
    if "--write" in sys.argv[1:]:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    else:
        print(text)
