"""C99 source of a model: nested if-else, a header, and rows with known scores to test it with.

Trees compare floats when that suffices. A float is `<=` a threshold just when it is `<=` the threshold rounded down to
float; a double is first replaced by a float that compares with all thresholds of its feature alike. Where two of these
share a rounding there may be none, and then trees compare doubles, and float rows are widened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

import numpy as np

from rankwood._version import __version__
from rankwood.dtypes import AnyArray, FloatArray
from rankwood.engines.base import fits_single
from rankwood.engines.c_numbers import c_comment, c_number, c_table, round_down
from rankwood.engines.c_trees import Splits, tree_functions
from rankwood.engines.self_test import find_test_rows
from rankwood.errors import ModelError

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble

GROUP = 16  # kSumGroup in native/sums.hpp: trees whose values are added in float
UNIT_NODES = 4000  # inner nodes of a file that is compiled on its own: about a second's work
COPIED_VALUES = 1 << 18  # of the rows that are converted at a time

UNIT_HEAD = "#include <math.h>\n#include <stdint.h>\n\ntypedef {real} real;\n"

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

    >>> c_name("my-model.v2"), c_name("2nd"), c_name("_")
    ('my_model_v2', 'model_2nd', 'model')
    """
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    return name if name[:1].isalpha() else f"model_{name}".rstrip("_")


@dataclass(frozen=True, eq=False)
class CSource:
    """Source of a model whose exported functions start with `name`.

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
    info: str = ""  # how it is compiled

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
        """The source as several files, by name, that can be compiled side by side and linked; the header is one."""
        if self.model.n_nodes <= UNIT_NODES:
            return {"model.h": self.header(), "model.c": self.whole("model.c", "model.h")}
        hidden = '__attribute__((visibility("hidden"))) '
        parts: list[list[str]] = []
        size = UNIT_NODES
        for group in range(self.n_groups):
            if size >= UNIT_NODES:
                parts.append([UNIT_HEAD.format(real=self.real)])
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
        """Of each used feature, in rising order, each once."""
        model = self.model
        order = np.argsort(model.feature, kind="stable")
        features, starts = np.unique(model.feature[order], return_index=True)
        parts = np.split(model.threshold[order], starts[1:])
        return {feature: np.unique(part) for feature, part in zip(features.tolist(), parts, strict=False)}

    @cached_property
    def _floats_suffice(self) -> bool:
        return all(len(np.unique(round_down(values))) == len(values) for values in self._thresholds.values())

    def _group(self, group: int, linkage: str) -> Iterator[str]:
        trees = range(group * GROUP, min((group + 1) * GROUP, self.model.n_trees))
        for tree in trees:
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
        return Splits(
            # A comparison with NaN is false, so the two forms differ for missing values alone.
            [
                f"!(x[{feature}] > {c_number(value, suffix)})" if left else f"x[{feature}] <= {c_number(value, suffix)}"
                for feature, value, left in zip(*columns, strict=True)
            ],
            model.left[nodes].tolist(),
            model.right[nodes].tolist(),
        )

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
            fits_single=int(fits_single(model)),
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
    return Template(files("rankwood.engines").joinpath(name).read_text(encoding="utf-8"))
