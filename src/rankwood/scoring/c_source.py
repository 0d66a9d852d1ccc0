"""C99 source of a model: nested if-else, a header, and rows with known scores to test it with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwood._version import __version__
from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.errors import ModelError
from rankwood.lazily import cached_property

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble


# Numbers as C99 constants that stand for just one value, and thresholds as floats that compare alike.


PER_LINE = 8  # entries of a table


def c_number(value: float, suffix: str = "") -> str:
    """A number as a C constant of type double, or of type float with suffix "f".

    Short dyadic numbers are written in decimal, all others in hexadecimal: a decimal constant may be rounded as the
    compiler likes, a hexadecimal one is exact.

    Examples
    --------
    >>> c_number(2.5), c_number(0.1), c_number(0.1875, "f"), c_number(-np.inf)
    ('2.5', '0x1.999999999999ap-4', '0.1875f', '-INFINITY')
    """
    if value != value:
        return "NAN"
    if value in (np.inf, -np.inf):
        return "INFINITY" if value > 0 else "-INFINITY"
    if abs(value) < 2**20 and value * 64 == int(value * 64):
        return f"{value!r}{suffix}"
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}{suffix}"


def c_table(entries: Iterable[str]) -> str:
    r"""Entries of a C initialiser, a few per line; at least one, as C knows no empty array.

    Examples
    --------
    >>> c_table(map(str, range(10)))
    '{\n  0, 1, 2, 3, 4, 5, 6, 7,\n  8, 9\n}'
    """
    texts = list(entries) or ["0"]
    lines = (", ".join(texts[first : first + PER_LINE]) for first in range(0, len(texts), PER_LINE))
    return "{\n  " + ",\n  ".join(lines) + "\n}"


def c_comment(text: str) -> str:
    """The text without what would end a C comment or make a careful compiler warn.

    Examples
    --------
    >>> c_comment("a*/b")
    'a* /b'
    """
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


def round_down(thresholds: FloatArray) -> NDArray[np.float32]:
    """The largest float32 that is not above each threshold.

    For a float32 x, `x <= threshold` just when `x <= round_down(threshold)`.

    Examples
    --------
    >>> round_down(np.array([0.5, 1e300, 16777217.0])).tolist()
    [0.5, 3.4028234663852886e+38, 16777216.0]
    """
    with np.errstate(over="ignore", under="ignore"):
        near = thresholds.astype(np.float32)
        down: NDArray[np.float32] = np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near)
    return down


# A tree as C functions: nested if-else that return the number of the leaf.

# What one function holds. Compilers take longer than linear time for long functions, and need not take more than 127
# nested blocks (C99; clang stops at 256). Only a left turn nests: what follows a `return` needs no else.
MAX_NODES = 512
MAX_NESTING = 40


@dataclass(frozen=True)
class Splits:
    """Inner nodes of one tree as plain lists, each with its condition for going left as C text."""

    condition: list[str]
    left: list[int]
    right: list[int]


def tree_functions(number: int, splits: Splits) -> list[str]:
    """Lines of the C function `tree_<number>`, after functions for subtrees that are too deep or too large for it.

    Examples
    --------
    >>> print(*tree_functions(7, Splits(["x[0] <= 1.0f", "x[2] <= 3.0f"], [-1, -2], [1, -3])), sep=chr(10))
    static int32_t tree_7(const real *x) {
      if (x[0] <= 1.0f) return 0;
      return x[2] <= 3.0f ? 1 : 2;
    }
    """
    if not splits.condition:
        return [f"static int32_t tree_{number}(const real *x) {{", "  (void)x;", "  return 0;", "}"]
    order = _parents_first(splits)
    cut = _find_cuts(splits, order)

    def result(child: int) -> str | None:
        """What to return when a document turns to a child; None: look at more splits first."""
        if child < 0:
            return str(~child)
        return f"tree_{number}_from_{child}(x)" if child in cut else None

    lines: list[str] = []
    for root in reversed([node for node in order if node in cut]):  # a function stands before its callers
        name = f"tree_{number}_from_{root}" if root else f"tree_{number}"
        lines += [f"static int32_t {name}(const real *x) {{", *_statements(splits, root, result), "}"]
    return lines


def _parents_first(splits: Splits) -> list[int]:
    order, pending = [], [0]
    while pending:
        node = pending.pop()
        order.append(node)
        pending += [child for child in (splits.right[node], splits.left[node]) if child >= 0]
    return order


def _find_cuts(splits: Splits, order: list[int]) -> set[int]:
    """Nodes at which a function of their own starts, the root among them; found from the leaves up."""
    cut = {0}
    n_nodes, nesting = [0] * len(order), [0] * len(order)  # of what a function that starts there would hold
    for node in reversed(order):
        children = [child for child in (splits.left[node], splits.right[node]) if child >= 0]
        while 1 + sum(n_nodes[child] for child in children) > MAX_NODES:
            largest = max(children, key=n_nodes.__getitem__)
            children.remove(largest)
            cut.add(largest)
        if splits.left[node] in children and nesting[splits.left[node]] == MAX_NESTING:
            children.remove(splits.left[node])
            cut.add(splits.left[node])
        n_nodes[node] = 1 + sum(n_nodes[child] for child in children)
        nesting[node] = max((nesting[child] + (child == splits.left[node]) for child in children), default=0)
    return cut


def _statements(splits: Splits, root: int, result: Callable[[int], str | None]) -> list[str]:
    """Lines of the body of a function; written with an explicit stack, as a tree may be deeper than Python's."""
    lines: list[str] = []
    pending: list[tuple[int | None, int]] = [(root, 1)]  # a node and how deep it nests; None ends a block
    while pending:
        node, depth = pending.pop()
        indent = "  " * depth
        if node is None:
            lines.append(f"{indent}}}")
            continue
        value = None if node == root else result(node)
        if value is not None:
            lines.append(f"{indent}return {value};")
            continue
        condition, left, right = splits.condition[node], splits.left[node], splits.right[node]
        on_left, on_right = result(left), result(right)
        if on_left is not None and on_right is not None:
            lines.append(f"{indent}return {condition} ? {on_left} : {on_right};")
        elif on_left is not None:
            lines.append(f"{indent}if ({condition}) return {on_left};")
            pending.append((right, depth))
        else:
            lines.append(f"{indent}if ({condition}) {{")
            pending += [(right, depth), (None, depth), (left, depth + 1)]
    return lines


# Rows whose scores are known, for compiled models to test themselves with.


N_ROWS = 16
MAX_FEATURES = 256  # of a row that differ from 0
ON, BELOW, ABOVE, MISSING = range(4)  # where a value stands to a threshold


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows as floats and as doubles, with what the reference scores for them.

    Parameters
    ----------
    features : array of int64
        The columns of `floats` and `doubles`; all other features of the model are 0.
    floats, doubles : array
        Rows x these features.
    scores : array of float64
        Of each row: its floats in double and single precision, its doubles in both.
    leaves : array of uint32
        Of each row: the leaves of its floats and those of its doubles, each mixed into one number.
    """

    features: IndexArray
    floats: AnyArray
    doubles: FloatArray
    scores: FloatArray
    leaves: AnyArray


def find_test_rows(model: Ensemble, thresholds: dict[int, FloatArray]) -> KnownRows:
    """Rows on the model's thresholds and one step to either side, with their scores.

    Examples
    --------
    >>> from rankwood import Ensemble
    >>> rows = find_test_rows(Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]), {0: np.array([0.5])})
    >>> rows.scores[:4, 0]  # on the threshold, below, above, missing
    array([1., 1., 2., 2.])
    """
    used = list(thresholds)
    picked = np.unique(np.linspace(0, len(used) - 1, min(len(used), MAX_FEATURES)).astype(np.int64)).tolist()
    features = np.array([used[pick] for pick in picked] or [0], dtype=np.int64)
    columns = [thresholds.get(feature, np.zeros(1)) for feature in features.tolist()]
    floats, doubles = (_rows_near(columns, dtype) for dtype in (np.float32, np.float64))
    answers = [
        [_reference_answer(model, row, features) for row in (floats[number], doubles[number])]
        for number in range(N_ROWS)
    ]
    return KnownRows(
        features,
        floats,
        doubles,
        scores=np.array([[score for scores, _ in answer for score in scores] for answer in answers]),
        leaves=np.array([[mixed for _, mixed in answer] for answer in answers], dtype=np.uint32),
    )


def _rows_near(columns: list[FloatArray], dtype: Any) -> AnyArray:
    """Rows near thresholds: in each of the first four all features are in one place, in the others in any place."""
    rows = np.empty((N_ROWS, len(columns)), dtype=dtype)
    for column, values in enumerate(columns):
        with np.errstate(all="ignore"):  # beyond the type's range is infinity
            on = values.astype(dtype)
            below, above = np.nextafter(on, dtype(-np.inf)), np.nextafter(on, dtype(np.inf))
        places = (on, below, above, np.full_like(on, np.nan))
        for row in range(N_ROWS):
            place = row if row <= MISSING else _chance(2 * column, row) % len(places)
            rows[row, column] = places[place][_chance(2 * column + 1, row) % len(values)]
    return rows


def _chance(column: int, row: int) -> int:
    """A number that looks random and is the same everywhere: a multiplicative hash, mixed once more."""
    mixed = (column * N_ROWS + row + 1) * 0x9E3779B97F4A7C15 % 2**64
    return ((mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 % 2**64) >> 32


def _reference_answer(model: Ensemble, row: AnyArray, features: IndexArray) -> tuple[list[float], int]:
    """Scores of a row in both precisions, and its leaves mixed into one number, by plain traversal."""
    whole = np.zeros((1, model.n_features), dtype=row.dtype)
    if model.n_features:
        whole[0, features] = row
    double = model.score(whole, engine="reference", precision="double")
    single = model.score(whole, engine="reference", precision="single")
    scores = [float(double[0]), float(single[0])]
    mixed = 0
    for leaf in model.leaves(whole, engine="reference", n_threads=1)[0].tolist():
        mixed = (mixed * 31 + leaf) % 2**32
    return scores, mixed


# The whole source.
#
# Trees compare floats when that suffices. A float is `<=` a threshold just when it is `<=` the threshold rounded down
# to float; a double is first replaced by a float that compares with all thresholds of its feature alike. Where two of
# these share a rounding there may be none, and then trees compare doubles, and float rows are widened.


GROUP = 16  # kSumGroup in native/sums.hpp: trees whose values are added in float
UNIT_NODES = 4000  # inner nodes of a file that is compiled on its own: about a second's work
COPIED_VALUES = 1 << 18  # of the rows that are converted at a time

UNIT_HEAD = "#include <math.h>\n#include <stdint.h>\n\ntypedef {real} real;\n"

EVEN = """\
/* Whether an even number of n rising thresholds is below x; a missing value as it is told. */
static inline int even(real x, const real *threshold, int32_t n, int missing) {
  int32_t low = 0, high = n;
  if (x != x) return missing;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (threshold[middle] < x) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low % 2 == 0;
}
"""
WIDEN = """\
static real convert(other x, size_t u) {
  (void)u;
  return (real)x;
}
"""
NARROW = Template("""\
/* Thresholds of each used feature in rising order, each once, and the same rounded down to float. */
static const int32_t first_threshold[] = ${starts};
static const double threshold[] = ${thresholds};
static const float rounded[] = ${rounded};

/* A float that is <= a threshold of the feature, rounded down, just when x is <= the threshold itself. */
static real convert(other x, size_t u) {
  int32_t low = first_threshold[u], high = first_threshold[u + 1];
  if (x != x) return NAN;
  if (x >= -FLT_MAX && x <= FLT_MAX && (double)(float)x == x) return (float)x;
  while (low < high) { /* find the first threshold that x does not exceed */
    const int32_t middle = low + (high - low) / 2;
    if (x <= threshold[middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low < first_threshold[u + 1] ? rounded[low] : INFINITY;
}
""")


def c_name(text: str) -> str:
    """A C identifier made of a file's name.

    Examples
    --------
    >>> c_name("my-model.v2"), c_name("2nd"), c_name("_")
    ('my_model_v2', 'model_2nd', 'model')
    """
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    return name if name[:1].isalpha() else f"model_{name}".rstrip("_")


@dataclass(frozen=True, eq=False)
class CSource:
    """C source of a model.

    Parameters
    ----------
    model : Ensemble
    name : str
        Starts the names of all exported functions.
    info : str, default ""
        How it is compiled: a text that the compiled library carries.

    Examples
    --------
    >>> from rankwood import Ensemble
    >>> source = CSource(Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]), "click")
    >>> print(*source.trees(), sep=chr(10))
    static int32_t tree_0(const real *x) {
      return x[0] <= 0.5f ? 0 : 1;
    }
    static void group_0(const real *x, int32_t *leaf) {
      leaf[0] = tree_0(x);
    }
    """

    model: Ensemble
    name: str
    info: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", self.name):
            raise ModelError(f"the name {self.name!r} cannot start a C function: use letters, digits and _")

    def header(self) -> str:
        """The text of the header file."""
        return _template("ifelse_template.h").substitute(self._facts(), guard=f"{self.name.upper()}_H")

    def whole(self, file: str, header: str) -> str:
        """All of the source as one file, which includes the header."""
        return self._fill("\n".join(self.trees()), file, header)

    def units(self) -> dict[str, str]:
        """The source as several files by name, to be compiled side by side and linked; the header is one of them."""
        if self.model.n_nodes <= UNIT_NODES:
            return {"model.h": self.header(), "model.c": self.whole("model.c", "model.h")}
        hidden = '__attribute__((visibility("hidden"))) '
        parts: list[list[str]] = []
        size = UNIT_NODES
        for group in range(self.n_groups):
            if size >= UNIT_NODES:
                parts.append([UNIT_HEAD.format(real=self.real), *self._on_sets()])
                size = 0
            parts[-1] += self._group(group, hidden)
            nodes = self.model.node_offsets[[group * GROUP, min((group + 1) * GROUP, self.model.n_trees)]]
            size += int(nodes[1] - nodes[0])
        found = [f"{hidden}void group_{group}(const real *x, int32_t *leaf);" for group in range(self.n_groups)]
        return {
            "model.h": self.header(),
            "model.c": self._fill("\n".join(found), "model.c", "model.h"),
            **{f"trees_{number}.c": "\n".join([*lines, ""]) for number, lines in enumerate(parts)},
        }

    def trees(self) -> Iterator[str]:
        """Lines of the functions that find leaves."""
        yield from self._on_sets()
        for group in range(self.n_groups):
            yield from self._group(group, "static ")

    @property
    def n_groups(self) -> int:
        return -(-self.model.n_trees // GROUP)

    @property
    def real(self) -> str:
        return "float" if self._floats_suffice else "double"

    @cached_property
    def _thresholds(self) -> dict[int, FloatArray]:
        """Thresholds of each feature that is used, ascending, each once."""
        feature, threshold = self.model.trees.all_thresholds()
        order = np.argsort(feature, kind="stable")
        features, starts = np.unique(feature[order], return_index=True)
        parts = np.split(threshold[order], starts[1:])
        return {feature: np.unique(part) for feature, part in zip(features.tolist(), parts, strict=False)}

    @cached_property
    def _floats_suffice(self) -> bool:
        return all(len(np.unique(round_down(values))) == len(values) for values in self._thresholds.values())

    def _group(self, group: int, linkage: str) -> Iterator[str]:
        trees = range(group * GROUP, min((group + 1) * GROUP, self.model.n_trees))
        for tree in trees:
            yield from self._sets(tree)
            yield from tree_functions(tree, self._splits(tree))
        yield f"{linkage}void group_{group}(const real *x, int32_t *leaf) {{"
        yield from (f"  leaf[{place}] = tree_{tree}(x);" for place, tree in enumerate(trees))
        yield "}"

    def _splits(self, tree: int) -> Splits:
        model, nodes = self.model, slice(*self.model.node_offsets[tree : tree + 2])
        thresholds, suffix = model.threshold[nodes], ""
        if self._floats_suffice:
            thresholds, suffix = round_down(thresholds).astype(np.float64), "f"
        columns = model.feature[nodes].tolist(), thresholds.tolist(), model.missing_left[nodes].tolist()
        # A comparison with NaN is false, so the two forms differ for missing values alone.
        conditions = [
            f"!(x[{feature}] > {c_number(value, suffix)})" if left else f"x[{feature}] <= {c_number(value, suffix)}"
            for feature, value, left in zip(*columns, strict=True)
        ]
        for node in np.flatnonzero(model.trees.set_sizes[nodes]).tolist():
            size = len(model.trees.thresholds_of(nodes.start + node))
            conditions[node] = f"even(x[{columns[0][node]}], set_{tree}_{node}, {size}, {int(columns[2][node])})"
        return Splits(
            conditions,
            model.left[nodes].tolist(),
            model.right[nodes].tolist(),
        )

    def _on_sets(self) -> list[str]:
        """Lines that splits on sets need, if the model has any."""
        return [] if self.model.set_thresholds is None else [EVEN]

    def _sets(self, tree: int) -> Iterator[str]:
        """Lines of the tables of thresholds of a tree's splits on sets."""
        trees = self.model.trees
        nodes = trees.nodes_of(tree)
        for node in (nodes.start + np.flatnonzero(trees.set_sizes[nodes])).tolist():
            thresholds, suffix = trees.thresholds_of(node), ""
            if self._floats_suffice:
                thresholds, suffix = round_down(thresholds).astype(np.float64), "f"
            table = c_table(_numbers(thresholds, suffix))
            yield f"static const real set_{tree}_{node - nodes.start}[] = {table};"

    def _facts(self) -> dict[str, str | int]:
        model = self.model
        shape = f"{model.n_trees:,} trees, {model.n_leaves:,} leaves, {model.n_features:,} features"
        return {
            "title": f"A tree ensemble as nested if-else: {shape}.",
            "version": __version__,
            "fingerprint": model.fingerprint(),
            "name": self.name,
            "NAME": self.name.upper(),
            "n_features": model.n_features,
            "n_trees": model.n_trees,
        }

    def _fill(self, trees: str, file: str, header: str) -> str:
        model, floats = self.model, self._floats_suffice
        weights = np.repeat(model.tree_weights, np.diff(model.leaf_offsets))
        suffixes = ("f32", "f64") if floats else ("f64", "f32")
        groups = [f"group_{group}" for group in range(self.n_groups)]
        names = enumerate(model.feature_names or ())
        return _template("ifelse_template.c").substitute(
            self._facts(),
            **self._test_tables(),
            file=c_comment(file),
            header=header,
            features="".join(f" *   x[{number}] is {c_comment(name)!r}\n" for number, name in names),
            info=f"rankwood {__version__}; model {model.fingerprint()}{'; ' if self.info else ''}{self.info}",
            real="float" if floats else "double",
            other="double" if floats else "float",
            real_suffix=suffixes[0],
            other_suffix=suffixes[1],
            trees=trees,
            group=GROUP,
            copies=max(1, min(2048, COPIED_VALUES // max(1, model.n_features))),
            base=c_number(model.base),
            fits_single=int(model.trees.fit_single(model.tree_weights)),
            values=c_table(_numbers(weights * model.leaf_value)),
            first_leaf=c_table(map(str, model.leaf_offsets.tolist())),
            groups=c_table(groups),
            n_used=len(self._thresholds),
            used=c_table(map(str, self._thresholds)),
            convert=self._narrow() if floats else WIDEN,
        )

    def _narrow(self) -> str:
        values = list(self._thresholds.values())
        starts = np.cumsum([0, *map(len, values)]).tolist()
        thresholds = np.concatenate([np.zeros(0), *values])
        return NARROW.substitute(
            starts=c_table(map(str, starts)),
            thresholds=c_table(_numbers(thresholds)),
            rounded=c_table(_numbers(round_down(thresholds), "f")),
        )

    def _test_tables(self) -> dict[str, str | int]:
        rows = find_test_rows(self.model, self._thresholds)
        return {
            "n_tests": len(rows.floats),
            "n_tested": len(rows.features),
            "tested": c_table(map(str, rows.features.tolist())),
            "test_f32": c_table(_numbers(rows.floats.ravel(), "f")),
            "test_f64": c_table(_numbers(rows.doubles.ravel())),
            "expected_scores": c_table(_numbers(rows.scores.ravel())),
            "expected_leaves": c_table(f"{mixed}u" for mixed in rows.leaves.ravel().tolist()),
        }


def _numbers(values: AnyArray, suffix: str = "") -> Iterable[str]:
    return (c_number(value, suffix) for value in values.tolist())


def _template(name: str) -> Template:
    return Template(files("rankwood.scoring").joinpath(name).read_text(encoding="utf-8"))
