"""Models in XML: RankLib's and QuickRank's, read and written, and those of Jforests, read.

RankLib and QuickRank write `<split>`, which holds a feature, a threshold and two splits, or an output. Values are
float32 and go left when they are at most the threshold. A value that is missing in their data is 0, so a missing value
goes where 0 goes. Features are numbered from 1; the files do not tell how many there are.

RankLib has a header of lines that begin with ##, then XML: one ensemble or, for a random forest, one for each bag, and
the score is their mean. QuickRank's `<ranker>` holds `<info>` and `<ensemble>`.

Jforests has one line of numbers per array of a tree, which has a weight. Inner nodes and leaves are numbered as in
`Trees`, features from 0. Values are float64; a missing one goes right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.errors import ModelError, one_line
from rankwood.formats.reading import (
    UNLIMITED,
    Budget,
    TreeBuilder,
    at_most_of_float32,
    ensemble_of,
    number,
    numbers,
)
from rankwood.formats.writing import LARGEST_SINGLE, finite, java_float, plain, single_leaves
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import MAX_FEATURES, Trees, offsets_of
from rankwood.scoring.c_source import round_down

Start = Callable[[str, dict[str, str]], None]
End = Callable[[str, str], None]

HEADER_LINE = re.compile(rb"^##[^\n]*$", re.MULTILINE)  # of RankLib
RANKERS = ("lambdamart", "mart", "random forests")
# Column of `Trees` by element of Jforests, whose `Thresholds` are not among them: they are numbers of bins.
ELEMENTS = {
    "SplitFeatures": ("feature", np.int64),
    "LeftChildren": ("left", np.int64),
    "RightChildren": ("right", np.int64),
    "OriginalThresholds": ("threshold", np.float64),
    "LeafOutputs": ("leaf_value", np.float64),
}


# Reading XML as a stream of events, so that deep nesting needs no recursion.


def read_xml(content: bytes, start: Start, end: End) -> None:
    """Call `start(name, attributes)` and `end(name, text)` for every element, with the text right before its end.

    Document types and entities are refused: a small file could grow without limit by them.
    """
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
    except (LookupError, UnicodeError, ValueError) as error:  # about its encoding
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"the XML cannot be read: {one_line(error)}") from None


class _Split:
    """One `<split>` element, as far as it has been read."""

    __slots__ = ("feature", "left", "output", "position", "right", "threshold")

    def __init__(self, position: str | None) -> None:
        self.position = position
        self.feature: int | None = None
        self.threshold: float | None = None
        self.output: float | None = None
        self.left: _Split | None = None
        self.right: _Split | None = None


class SplitReader:
    """Collects the trees of RankLib's and QuickRank's XML."""

    def __init__(self) -> None:
        self.builder = TreeBuilder()
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
            self.weights.append(number(attributes.get("weight", "1"), f"{self.where}: its weight", text=True))
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
            value = number(text, f"{self.where}: {name}", text=True)
            if name == "feature":
                if value != int(value) if np.isfinite(value) else True:
                    raise ModelError(f"{self.where}: feature is {one_line(text)}")
                if not 1 <= value <= MAX_FEATURES:
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

    def trees(self) -> Trees:
        """All trees; missing values go where 0 goes."""
        trees = self.builder.trees(at_most_of_float32)
        # By the threshold as float32 holds it: -1e-50 is 0 there.
        return trees.replace(missing_left=trees.threshold >= 0.0)


# Reading RankLib.


def is_ranklib(start: bytes) -> bool:
    """Whether a file that begins so is RankLib's."""
    return start.lstrip().startswith((b"##", b"<ensemble"))


def parse_ranklib(content: bytes, budget: Budget = UNLIMITED) -> Ensemble:
    """Ensemble of a RankLib model file."""
    header = HEADER_LINE.search(content)
    ranker = "" if header is None else header[0].decode(errors="replace").strip("# \r").lower()
    if ranker and ranker not in RANKERS:
        raise ModelError(f"this is RankLib's {one_line(ranker)}: only {', '.join(RANKERS)} are trees")
    reader = SplitReader()
    read_xml(b"<bags>" + HEADER_LINE.sub(b"", content).strip() + b"</bags>", reader.start, reader.end)
    if not reader.ensembles:
        raise ModelError("the file is damaged: there is no ensemble in it")
    return ensemble_of(
        reader.trees(),
        source={"format": "ranklib", "ranker": ranker},
        n_features=None,
        tree_weights=np.array(reader.weights) / len(reader.ensembles),
        budget=budget,
    )


# Reading QuickRank.


def is_quickrank(start: bytes) -> bool:
    """Whether a file that begins so is QuickRank's."""
    return b"<ranker" in start[:4096]


def parse_quickrank(content: bytes, budget: Budget = UNLIMITED) -> Ensemble:
    """Ensemble of a QuickRank model file."""
    reader = SplitReader()
    ranker: list[str] = []

    def end(name: str, text: str) -> None:
        if name == "type":
            ranker.append(text[:80])
        reader.end(name, text)

    read_xml(content.strip(), reader.start, end)
    if len(reader.ensembles) != 1:
        kind = ranker[0] if ranker else "no kind that is told"
        raise ModelError(f"the ranker ({kind}) has {len(reader.ensembles)} ensembles of trees, not one")
    return ensemble_of(
        reader.trees(),
        source={"format": "quickrank", "ranker": ranker[0] if ranker else ""},
        n_features=None,
        tree_weights=reader.weights,
        budget=budget,
    )


# Reading Jforests.


def is_jforests(start: bytes) -> bool:
    """Whether a file that begins so is of Jforests."""
    return b"<Ensemble" in start[:4096]


class _JforestsReader:
    """Collects weight and texts of the arrays of every tree."""

    def __init__(self) -> None:
        self.weights: list[float] = []
        self.trees: list[dict[str, str]] = []
        self.is_open = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Tree":
            what = f"tree {len(self.trees)}: its weight"
            self.weights.append(number(attributes.get("weight", "1"), what, text=True))
            self.trees.append({})
            self.is_open = True

    def end(self, name: str, text: str) -> None:
        if name == "Tree":
            self.is_open = False
        elif name in ELEMENTS and self.is_open:
            if name in self.trees[-1]:
                raise ModelError(f"tree {len(self.trees) - 1} has {name} twice: only trees of one output are rankers")
            self.trees[-1][name] = text


def parse_jforests(content: bytes, budget: Budget = UNLIMITED) -> Ensemble:
    """Ensemble of a Jforests model file."""
    reader = _JforestsReader()
    read_xml(content.strip(), reader.start, reader.end)
    columns: dict[str, list[AnyArray]] = {name: [] for name, _ in ELEMENTS.values()}
    sizes = []
    for position, tree in enumerate(reader.trees):
        for element, (name, dtype) in ELEMENTS.items():
            columns[name].append(_column(tree, element, dtype, position))
        sizes.append(len(columns["leaf_value"][-1]) - 1)
        if sizes[-1] < 0 or any(len(parts[-1]) != sizes[-1] for name, parts in columns.items() if name != "leaf_value"):
            raise ModelError(f"tree {position}: its arrays do not fit each other")
    arrays: dict[str, Any] = {
        name: np.concatenate([np.zeros(0, dtype), *columns[name]]) for name, dtype in ELEMENTS.values()
    }
    arrays["missing_left"] = np.zeros(len(arrays["feature"]), bool)
    return ensemble_of(
        Trees.from_columns(arrays, offsets_of(sizes)),
        source={"format": "jforests"},
        n_features=None,
        tree_weights=reader.weights,
        budget=budget,
    )


def _column(tree: dict[str, str], element: str, dtype: Any, position: int) -> AnyArray:
    if element not in tree:
        raise ModelError(f"tree {position} has no {element}")
    return numbers(tree[element].encode(), dtype, f"tree {position}: {element}")


# Writing.


def xml_tree(
    model: Ensemble, tree: int, threshold: Callable[[int], str], output: Callable[[int], str], *, indent: str = "\t\t"
) -> list[str]:
    """Lines of one tree in XML, with one element on each line and nothing else, as RankLib expects.

    Parameters
    ----------
    threshold, output : callable
        Text of a node's threshold, and of a leaf's value, by numbers that count through the whole model.
    indent : str
        What stands before the root.
    """
    nodes, leaves = model.trees.nodes_of(tree), model.trees.leaves_of(tree)
    left, right, features = (array[nodes].tolist() for array in (model.left, model.right, model.feature))
    lines: list[str] = []
    root = 0 if left else -1
    pending: list[tuple[int, int, str]] = [(root, 0, "")]  # child, depth, position; "/" closes a split
    while pending:
        child, depth, position = pending.pop()
        space = indent + "\t" * depth
        if position == "/":
            lines.append(f"{space}</split>")
            continue
        lines.append(f"{space}<split{position}>")
        pending.append((child, depth, "/"))
        if child < 0:
            lines.append(f"{space}\t<output> {output(leaves.start + ~child)} </output>")
            continue
        lines.append(f"{space}\t<feature> {features[child] + 1} </feature>")
        lines.append(f"{space}\t<threshold> {threshold(nodes.start + child)} </threshold>")
        pending.append((right[child], depth + 1, ' pos="right"'))
        pending.append((left[child], depth + 1, ' pos="left"'))
    return lines


def export_ranklib(model: Ensemble, path: Path) -> str:
    """Text of a LambdaMART model of RankLib, which plugins of Elasticsearch and OpenSearch read as `model/ranklib`.

    Weights and base are in the leaves, and all weights are 1.
    """
    model = plain(model)
    values = single_leaves(model, "RankLib")
    thresholds = round_down(model.threshold)
    lines = [
        "## LambdaMART",
        f"## No. of trees = {model.n_trees}",
        f"## No. of leaves = {model.trees.sizes.max() + 1}",
        "## No. of threshold candidates = 256",
        "## Learning rate = 1.0",
        "## Stop early = 100",
        "",
        "<ensemble>",
    ]
    for tree in range(model.n_trees):
        lines.append(f'\t<tree id="{tree + 1}" weight="1.0">')
        lines += xml_tree(model, tree, lambda n: java_float(thresholds[n]), lambda n: java_float(values[n]))
        lines.append("\t</tree>")
    return "\n".join([*lines, "</ensemble>", ""])


def export_quickrank(model: Ensemble, path: Path) -> str:
    """XML of a LambdaMART model of QuickRank, with its weights.

    A base is added to the leaves of the first tree, whose weight is then 1.
    """
    if model.n_trees == 0:
        model = plain(model)
    elif model.base != 0:
        folded = plain(model.select([0]))
        weights = model.tree_weights.copy()
        weights[0] = 1.0
        values = np.concatenate([folded.leaf_value, model.leaf_value[model.leaf_offsets[1] :]])
        model = model.replace(leaf_value=values, tree_weights=weights, base=0.0)
    thresholds = finite(round_down(model.threshold), LARGEST_SINGLE, "QuickRank")
    lines = [
        "<ranker>",
        "\t<info>",
        "\t\t<type>LAMBDAMART</type>",
        f"\t\t<trees>{model.n_trees}</trees>",
        f"\t\t<leaves>{model.trees.sizes.max() + 1}</leaves>",
        "\t\t<shrinkage>1</shrinkage>",
        "\t\t<leafsupport>1</leafsupport>",
        "\t\t<discretization>0</discretization>",
        "\t\t<estop>0</estop>",
        "\t</info>",
        "\t<ensemble>",
    ]
    for tree in range(model.n_trees):
        lines.append(f'\t\t<tree id="{tree + 1}" weight="{float(model.tree_weights[tree])!r}">')
        lines += xml_tree(
            model,
            tree,
            lambda node: repr(float(thresholds[node])),
            lambda leaf: repr(float(model.leaf_value[leaf])),
            indent="\t\t\t",
        )
        lines.append("\t\t</tree>")
    return "\n".join([*lines, "\t</ensemble>", "</ranker>", ""])


# Limits of what is written: what is exact and what is not.

RANKLIB_LIMITS = (
    "Every float32 value goes the same way (`x <= threshold` in float32); leaves are float32 and so is their sum. A "
    "missing value is read as 0. Features are known by number, from 1: names are lost."
)
QUICKRANK_LIMITS = (
    "Every float32 value goes the same way (`x <= threshold` in float32); weights and leaves keep all their digits. "
    "A missing value is read as 0. Features are known by number, from 1: names are lost."
)
