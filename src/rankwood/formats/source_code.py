"""Models as source code, written: C, a shared library, Python with or without numpy."""

from __future__ import annotations

import base64
import platform
import tempfile
import textwrap
from pathlib import Path
from string import Template

from rankwood._version import __version__
from rankwood.dtypes import AnyArray
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble
from rankwood.scoring.c_library import NATIVE, OPTIMISE, Compiler, checked_library, find_compiler
from rankwood.scoring.c_source import CSource, c_name
from rankwood.system import resolve_threads

WRITTEN_BY = "\n * Written by rankwood "  # a header that holds this may be overwritten


# C source with a header, or a shared library: the same code as the engine `ifelse`.


def export_c(model: Ensemble, path: Path, *, name: str | None = None) -> dict[Path, bytes]:
    """C99 source and header that need nothing of rankwood; names of functions begin with `name`."""
    header = header_path(path)
    source = CSource(model, c_name(path.stem) if name is None else name)
    return {header: source.header().encode(), path: source.whole(path.name, header.name).encode()}


def need_compiler() -> Compiler:
    """The C compiler of this machine; an error says why there is none."""
    compiler = find_compiler()
    if not isinstance(compiler, Compiler):
        raise RankwoodError(f"{compiler}: write C source, FILE.c, and compile it elsewhere")
    return compiler


def export_so(model: Ensemble, path: Path, *, name: str | None = None, native: bool = False) -> dict[Path, bytes]:
    """Shared library and header, for any CPU of this architecture or, with `native`, for the one at hand."""
    prefix = c_name(path.stem) if name is None else name
    header = header_path(path)
    compiler = need_compiler()
    flags = (OPTIMISE, NATIVE) if native else (OPTIMISE,)
    target = f"{platform.system()} {platform.machine()}, {' '.join(flags)}"
    with tempfile.TemporaryDirectory(prefix="rankwood-") as folder:
        built = compiler.build(CSource(model, prefix, target).units(), flags, Path(folder), resolve_threads(None))
        checked_library(built, prefix, compiler)
        return {header: CSource(model, prefix).header().encode(), path: built.read_bytes()}


def header_path(path: Path) -> Path:
    """Path of the header; refused if C cannot include the name, or if a header that rankwood did not write is there."""
    header = path.with_suffix(".h")
    if set(header.name) & set('"\\\r\n'):
        raise RankwoodError(f"C cannot include a file that is named {header.name!r}: choose another name")
    if header.exists() and WRITTEN_BY not in header.read_text(encoding="utf-8", errors="replace"):
        raise RankwoodError(f"{header} is not by rankwood and would be replaced by the model's: choose another name")
    return header


# A Python module that needs no package, or numpy alone.

PLAIN = Template('''\
"""A tree ensemble of ${n_trees} trees over ${n_features} features, written by rankwood ${version}. Needs no package.

score(row) is the score of one document, a sequence of ${n_features} numbers; float("nan") is a missing value.
leaves(row) is the number of the leaf that it reaches in each tree.
"""

inf = float("inf")
N_FEATURES = ${n_features}
FEATURE_NAMES = ${names}
BASE = ${base}
# One entry per inner node, trees one after another. A child c >= 0 is a node of the same tree, c < 0 is leaf ~c.
FEATURE = ${feature}
THRESHOLD = ${threshold}
LEFT = ${left}
RIGHT = ${right}
MISSING_LEFT = ${missing_left}${sets}
# One entry per tree: where its nodes and its leaves start, whether it is a leaf alone, and its weight.
FIRST_NODE = ${first_node}
FIRST_LEAF = ${first_leaf}
ALONE = ${alone}
WEIGHT = ${weight}
LEAF_VALUE = ${leaf_value}


def leaf(tree, row):
    """Number of the leaf of a tree that a row reaches."""
    if ALONE[tree]:
        return 0
    first, child = FIRST_NODE[tree], 0
    while child >= 0:
        node = first + child
        x = float(row[FEATURE[node]])  # a numpy.float32 would round the threshold
        goes_left = ${goes_left} if x == x else MISSING_LEFT[node]
        child = LEFT[node] if goes_left else RIGHT[node]
    return ~child


def leaves(row):
    """Number of the leaf that a row reaches in each tree."""
    if len(row) != N_FEATURES:
        raise ValueError(f"a row must have {N_FEATURES} values, got {len(row)}")
    return [leaf(tree, row) for tree in range(len(WEIGHT))]


def score(row):
    """Score of a row."""
    total = BASE
    for tree, number in enumerate(leaves(row)):
        total += WEIGHT[tree] * LEAF_VALUE[FIRST_LEAF[tree] + number]
    return total
''')

NUMPY = Template('''\
"""A tree ensemble of ${n_trees} trees over ${n_features} features, written by rankwood ${version}. Needs numpy alone.

score(X) gives the scores of documents, the rows of a matrix of ${n_features} columns; NaN is a missing value.
leaves(X) gives the number of the leaf that each reaches in each tree.
"""

import base64

import numpy as np


def _array(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


N_FEATURES = ${n_features}
FEATURE_NAMES = ${names}
BASE = ${base}
# One entry per inner node, trees one after another. A child c >= 0 is a node of the same tree, c < 0 is leaf ~c.
FEATURE = _array(${feature}, "<i4")
THRESHOLD = _array(${threshold}, "<f8")
LEFT = _array(${left}, "<i4")
RIGHT = _array(${right}, "<i4")
MISSING_LEFT = _array(${missing_left}, "?")${sets}
# Where the nodes of each tree start (and their number at the end), its weight, and the values of its leaves.
NODE_OFFSETS = _array(${node_offsets}, "<i8")
WEIGHT = _array(${weight}, "<f8")
LEAF_VALUE = _array(${leaf_value}, "<f8")


def leaves(X):
    """Number of the leaf that each row reaches in each tree: rows x trees."""
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != N_FEATURES:
        raise ValueError(f"X must be a matrix of {N_FEATURES} columns, got shape {X.shape}")
    X = X.astype(np.float64, copy=False)
    reached = np.zeros((len(X), len(WEIGHT)), dtype=np.int32)
    for tree, first in enumerate(NODE_OFFSETS[:-1].tolist()):
        if NODE_OFFSETS[tree + 1] == first:
            continue
        child = np.zeros(len(X), dtype=np.int32)
        rows = np.arange(len(X))  # that are still under way
        while len(rows):
            node = first + child[rows]
            x = X[rows, FEATURE[node]]
            goes_left = np.where(np.isnan(x), MISSING_LEFT[node], ${goes_left})
            child[rows] = np.where(goes_left, LEFT[node], RIGHT[node])
            rows = rows[child[rows] >= 0]
        reached[:, tree] = ~child
    return reached


def score(X):
    """Score of each row."""
    first_leaf = NODE_OFFSETS[:-1] + np.arange(len(WEIGHT))
    reached = leaves(X)
    scores = np.full(len(reached), BASE)
    for tree in range(len(WEIGHT)):
        scores += WEIGHT[tree] * LEAF_VALUE[first_leaf[tree] + reached[:, tree]]
    return scores
''')


def export_python(model: Ensemble, path: Path) -> str:
    """Python module of plain lists and loops."""
    return PLAIN.substitute(
        _facts(model),
        feature=_listed(model.feature),
        threshold=_listed(model.threshold),
        left=_listed(model.left),
        right=_listed(model.right),
        missing_left=_listed(model.missing_left),
        first_node=_listed(model.node_offsets[:-1]),
        first_leaf=_listed(model.leaf_offsets[:-1]),
        alone=_listed(model.trees.sizes == 0),
        **_plain_sets(model),
        weight=_listed(model.tree_weights),
        leaf_value=_listed(model.leaf_value),
    )


def export_numpy(model: Ensemble, path: Path) -> str:
    """Python module that scores all rows at once with numpy; its arrays are base64, bit for bit."""
    return NUMPY.substitute(
        _facts(model),
        feature=_encoded(model.feature, "<i4"),
        threshold=_encoded(model.threshold, "<f8"),
        left=_encoded(model.left, "<i4"),
        right=_encoded(model.right, "<i4"),
        missing_left=_encoded(model.missing_left, "?"),
        node_offsets=_encoded(model.node_offsets, "<i8"),
        **_numpy_sets(model),
        weight=_encoded(model.tree_weights, "<f8"),
        leaf_value=_encoded(model.leaf_value, "<f8"),
    )


def _plain_sets(model: Ensemble) -> dict[str, str]:
    """Source of splits on sets, in the module without numpy."""
    if model.set_thresholds is None:
        return {"sets": "", "goes_left": "x <= THRESHOLD[node]"}
    sets = {node: model.trees.thresholds_of(node).tolist() for node in model.trees.set_nodes.tolist()}
    entries = "".join(f"    {node}: {thresholds!r},\n" for node, thresholds in sets.items())  # inf has a name there
    return {
        "sets": "\n# All thresholds of nodes that split on sets: left when an even number of them is below x.\n"
        f"from bisect import bisect_left\n\nSETS = {{\n{entries}}}",
        "goes_left": "(bisect_left(SETS[node], x) % 2 == 0 if node in SETS else x <= THRESHOLD[node])",
    }


def _numpy_sets(model: Ensemble) -> dict[str, str]:
    """Source of splits on sets, in the module with numpy."""
    if model.set_offsets is None or model.set_thresholds is None:
        return {"sets": "", "goes_left": "x <= THRESHOLD[node]"}
    return {
        "sets": f"""
# Further thresholds of nodes that split on sets, and where those of each node start: left when an even number is below.
SET_OFFSETS = _array({_encoded(model.set_offsets, "<i8")}, "<i8")
SET_THRESHOLDS = _array({_encoded(model.set_thresholds, "<f8")}, "<f8")


def _is_even(x, node):
    even = x <= THRESHOLD[node]
    for each in np.unique(node[SET_OFFSETS[node] < SET_OFFSETS[node + 1]]):
        here = node == each
        further = SET_THRESHOLDS[SET_OFFSETS[each] : SET_OFFSETS[each + 1]]
        even[here] ^= np.searchsorted(further, x[here]) % 2 == 1
    return even

""",
        "goes_left": "_is_even(x, node)",
    }


def _facts(model: Ensemble) -> dict[str, str | int]:
    """Fields that both modules have in common."""
    names = None if model.feature_names is None else ascii(list(model.feature_names))
    return {
        "n_trees": model.n_trees,
        "n_features": model.n_features,
        "version": __version__,
        "names": "None" if names is None else names,
        "base": repr(model.base),
    }


def _listed(values: AnyArray) -> str:
    """Source of a list of numbers."""
    text = ", ".join(map(repr, values.tolist()))
    return "[\n" + textwrap.fill(text, 116, initial_indent="    ", subsequent_indent="    ") + "\n]" if text else "[]"


def _encoded(values: AnyArray, dtype: str) -> str:
    """Source of a base64 text of the values' bytes."""
    text = base64.b64encode(values.astype(dtype).tobytes()).decode()
    lines = [text[at : at + 112] for at in range(0, len(text), 112)] or [""]
    return "(\n" + "\n".join(f'    "{line}"' for line in lines) + "\n)"


# Limits of what is written: what is exact and what is not.

C_LIMITS = (
    "Exact in every bit, for float32 and float64 rows, with a self-test inside. A header is written beside the file."
)
PYTHON_LIMITS = "Exact in every bit: the module compares and adds up in float64 as rankwood does."
