"""Trees in XML, as RankLib and QuickRank write them: `<split>` with feature, threshold and two splits, or an output.

The text is read as a stream of events, so nesting costs no recursion; document types and entities are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.parsers import expat

import numpy as np

from rankwood.errors import ModelError, one_line
from rankwood.formats.node_tables import ForestBuilder

Start = Callable[[str, dict[str, str]], None]
End = Callable[[str, str], None]


def read_xml(content: bytes, start: Start, end: End) -> None:
    """Call `start(name, attributes)` and `end(name, text)` for every element; text is what stands before its end."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    pieces: list[str] = []

    def on_start(name: str, attributes: dict[str, str]) -> None:
        pieces.clear()
        start(name, attributes)

    def on_end(name: str) -> None:
        end(name, "".join(pieces).strip())
        pieces.clear()

    def refuse(*_: Any) -> None:
        raise ModelError("the XML declares a document type or entities, which no model needs")

    parser.StartElementHandler = on_start
    parser.EndElementHandler = on_end
    parser.CharacterDataHandler = pieces.append
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ModelError(f"the XML is damaged or cut off: {one_line(error)}") from None
    except (LookupError, UnicodeError, ValueError) as error:  # its encoding
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"the XML cannot be read: {one_line(error)}") from None


class _Split:
    __slots__ = ("feature", "left", "output", "position", "right", "threshold")

    def __init__(self, position: str | None) -> None:
        self.position = position
        self.feature: int | None = None
        self.threshold: float | None = None
        self.output: float | None = None
        self.left: _Split | None = None
        self.right: _Split | None = None


class SplitReader:
    """Collects the trees; missing values go right."""

    def __init__(self) -> None:
        self.builder = ForestBuilder()
        self.weights: list[float] = []
        self.ensembles: list[int] = []  # number of trees in each
        self._open: list[_Split] = []
        self._root: _Split | None = None
        self._in_tree = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "ensemble":
            self.ensembles.append(0)
        elif name == "tree":
            if self._in_tree or not self.ensembles:
                raise ModelError(f"{self.where}: a tree must stand in an ensemble")
            self._in_tree, self._root = True, None
            self.ensembles[-1] += 1
            self.weights.append(as_number(attributes.get("weight", "1"), f"{self.where}: its weight"))
        elif name == "split":
            self._begin(attributes.get("pos"))

    def _begin(self, position: str | None) -> None:
        split = _Split(position)
        if not self._in_tree:
            raise ModelError("a split must stand in a tree")
        if self._open:
            parent = self._open[-1]
            if position not in ("left", "right") or getattr(parent, position) is not None:
                raise ModelError(f"{self.where}: a split must have one left and one right split inside")
            setattr(parent, position, split)
        elif self._root is None:
            self._root = split
        else:
            raise ModelError(f"{self.where} has two roots")
        self._open.append(split)

    def end(self, name: str, text: str) -> None:
        if name == "split":
            self._open.pop()
        elif name == "tree":
            if self._root is None:
                raise ModelError(f"{self.where} is empty")
            self.builder.add(self._root, self._read)
            self._in_tree = False
        elif name in ("feature", "threshold", "output") and self._in_tree:
            if not self._open:
                raise ModelError(f"{self.where}: {name} must stand in a split")
            value = as_number(text, f"{self.where}: {name}")
            if name == "feature":
                if value != int(value) if np.isfinite(value) else True:
                    raise ModelError(f"{self.where}: feature is {one_line(text)}")
                if not 1 <= value <= 2**24:
                    raise ModelError(f"{self.where}: features are numbered from 1, got {one_line(text)}")
            setattr(self._open[-1], name, value)

    @property
    def where(self) -> str:
        return f"tree {len(self.weights) - 1}"

    def _read(self, split: _Split) -> Any:
        if split.output is not None:
            return split.output
        if split.feature is None or split.threshold is None or split.left is None or split.right is None:
            raise ModelError(f"{self.where}: a split lacks its feature, threshold, left or right split")
        return int(split.feature) - 1, split.threshold, split.left, split.right, False


def as_number(text: str, what: str) -> float:
    """A number in a text of XML."""
    try:
        return float(text)
    except ValueError:
        raise ModelError(f"{what} is {one_line(text)!r}, not a number") from None
