"""What writers of model files share: weights in leaves, float32, names, thresholds of other comparisons."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import ModelError
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Tree
from rankwood.scoring.agreement import adversarial_rows
from rankwood.scoring.c_source import round_down

# What exporters share: models without weights and base, values in float32, names, and telling what is lost.


MEASURED_ROWS = 2000  # on which a deviation is measured

# What becomes of a missing value: any direction can be said; it always goes right; it counts as 0.
MissingRule: TypeAlias = Literal["any", "right", "zero"]


class ConversionWarning(UserWarning):
    """A model was converted to a format that scores it a little differently: says how much, and where."""


def warn(message: str) -> None:
    warnings.warn(message, ConversionWarning, stacklevel=5)  # the caller of save_as


def plain(model: Ensemble) -> Ensemble:
    """The same scores, bit for bit, without weights and base: weights are multiplied into the leaves, the base is added
    to those of the first tree (which is where summing starts anyway). There is at least one tree.

    >>> import rankwood as rw
    >>> plain(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], tree_weights=[0.5], base=10.0)).leaf_value
    array([10.5, 11. ])
    """
    if model.n_trees == 0:
        constant = Tree.from_nested(model.base)
        return Ensemble.from_trees([constant], n_features=model.n_features, feature_names=model.feature_names)
    values = np.repeat(model.tree_weights, np.diff(model.leaf_offsets)) * model.leaf_value
    first = slice(0, int(model.leaf_offsets[1]))
    values[first] = model.base + values[first]
    return model.replace(leaf_value=values, tree_weights=np.ones(model.n_trees), base=0.0)


def single_leaves(model: Ensemble, target: str) -> NDArray[np.float32]:
    """Leaf values of a plain model in float32, for a target that holds and sums them so. What that changes is measured
    on rows at the model's thresholds and said in a warning; values that do not fit are refused."""
    with np.errstate(over="ignore", under="ignore"):
        values = model.leaf_value.astype(np.float32)
    largest = sum(
        float(np.abs(model.leaf_value[slice(*model.leaf_offsets[t : t + 2])]).max()) for t in range(model.n_trees)
    )
    if largest > np.finfo(np.float32).max:
        raise ModelError(
            f"{target} sums in float32, and scores of this model may reach {largest:.3g}, which is too large"
        )
    X = adversarial_rows(model, max_rows=MEASURED_ROWS).single
    exact = model.score(X)
    sums = np.zeros(len(X), dtype=np.float32)
    reached = model.leaves(X)
    with np.errstate(under="ignore"):
        for tree, first in enumerate(model.leaf_offsets[:-1].tolist()):
            sums += values[first + reached[:, tree].astype(np.int64)]
    deviation = float(np.abs(sums - exact).max(initial=0.0))
    if deviation > 0:
        scale = float(np.abs(exact).max())
        warn(
            f"{target} sums leaf values in float32: scores differ by up to {deviation:.2g} "
            f"(largest score {scale:.3g}; measured on {len(X)} rows)"
        )
    return values


def check_missing(model: Ensemble, target: str, rule: MissingRule, missing: str) -> None:
    """Refuse a model that sends missing values where the target cannot, unless told that there are none."""
    if missing not in ("refuse", "ignore"):
        raise ModelError(f"missing must be 'refuse' or 'ignore', got {missing!r}")
    if missing == "ignore" or rule == "any":
        return
    wrong = model.missing_left if rule == "right" else model.missing_left != (model.threshold >= 0.0)
    if not wrong.any():
        return
    node = int(np.argmax(wrong))
    tree = int(np.searchsorted(model.node_offsets, node, side="right")) - 1
    does = "sends a missing value right" if rule == "right" else "reads a missing value as 0"
    raise ModelError(
        f"{target} {does} at every split, and {int(wrong.sum())} of {model.n_nodes} splits send it elsewhere (the "
        f"first is node {node - int(model.node_offsets[tree])} of tree {tree}): "
        "convert with missing='ignore' (--missing ignore) if no value is ever missing"
    )


def names_of(model: Ensemble, default: str = "f{}", *, start: int = 0) -> list[str]:
    """Names of the features, made of their numbers when there are none."""
    if model.feature_names is not None:
        return list(model.feature_names)
    return [default.format(start + number) for number in range(model.n_features)]


def refuse_names(names: list[str], target: str, forbidden: str, *, spaces: bool = False) -> None:
    """Refuse names with characters that a format cannot hold, such as control characters and, if so told, `spaces`."""
    for name in names:
        bad = next((c for c in name if c in forbidden or not c.isprintable() or (spaces and c.isspace())), None)
        if bad is not None:
            raise ModelError(
                f"{target} cannot hold the feature name {name!r} because of {bad!r}: give other feature_names"
            )
        if not name:
            raise ModelError(f"{target} cannot hold a feature name that is empty: give other feature_names")


def finite(thresholds: AnyArray, largest: float, target: str) -> AnyArray:
    """Thresholds for a format without infinities: those beyond `largest` become it, with a warning that values beyond
    may go elsewhere."""
    beyond = ~(np.abs(thresholds) <= largest)
    if not beyond.any():
        return thresholds
    warn(
        f"{target} cannot hold infinite thresholds: {int(beyond.sum())} splits compare with {largest:.8g} instead, "
        "so infinities and values of that size may go the other way"
    )
    return np.clip(thresholds, -largest, largest)


def nested(
    model: Ensemble, tree: int, opening: Callable[[int], str], leaf: Callable[[int], str], middle: str, closing: str
) -> Iterator[str]:
    """Text of one tree, node within node: `opening` of a node, its left child, `middle`, its right child, `closing`.

    Nodes and leaves are numbered in the whole model. Depth is no limit: nothing here is recursive.
    """
    first, first_leaf, stop = int(model.node_offsets[tree]), int(model.leaf_offsets[tree]), model.node_offsets[tree + 1]
    left, right = model.left[first:stop].tolist(), model.right[first:stop].tolist()
    pending: list[int | str] = [0 if left else -1]
    while pending:
        at = pending.pop()
        if isinstance(at, str):
            yield at
        elif at < 0:
            yield leaf(first_leaf + ~at)
        else:
            yield opening(first + at)
            pending += [closing, right[at], middle, left[at]]


# Thresholds for engines that compare otherwise than we do: `<` for `<=`, float32, a slack that is added.
#
# We say left when `x <= t`, in float64. Each function gives the thresholds with which an engine says left for the
# same x.


Floats = NDArray[np.float32]
LARGEST = float(np.finfo(np.float64).max)
LARGEST_SINGLE = float(np.finfo(np.float32).max)
SOLR_SLACK = np.float32(1e-6)


def at_most_single(thresholds: FloatArray) -> Floats:
    """For `x <= t` with x and t in float32."""
    return round_down(thresholds)


def below_single(thresholds: FloatArray) -> Floats:
    """For `x < t` with x and t in float32. From the largest float32 on it is infinity, which no infinite x is below.

    >>> below_single(np.array([1.0, 0.1, -0.0, 1e300, -np.inf])).tolist()
    [1.0000001192092896, 0.10000000149011612, 1.401298464324817e-45, inf, -3.4028234663852886e+38]
    """
    with np.errstate(over="ignore", under="ignore"):
        above: Floats = np.nextafter(round_down(thresholds), np.float32(np.inf))
    return above


def below_double(thresholds: FloatArray) -> FloatArray:
    """For `x < t` with x and t in float64.

    >>> below_double(np.array([1.0, 0.0])).tolist()
    [1.0000000000000002, 5e-324]
    """
    with np.errstate(over="ignore", under="ignore"):
        above: FloatArray = np.nextafter(thresholds, np.inf)
    return above


def solr(thresholds: FloatArray) -> tuple[Floats, Floats]:
    """For Solr's `x <= t + 1e-6` in float32: the t to write, and what each sum comes to.

    The sum shall be the threshold rounded down to float32. Where no float32 gives it (the sum's neighbours lie closer
    than t's: below zero and near it), it is one of the two next to it that some t gives, and that for which 0, whole
    numbers and other short ones go where they shall.

    >>> written, reached = solr(np.array([0.5, 100.0, 0.0, -1e-35]))
    >>> written.tolist(), reached.tolist()[:3], bool(0.0 <= reached[3])
    ([0.4999989867210388, 100.0, -9.999999974752427e-07, -1.0000001111620804e-06], [0.5, 100.0, 0.0], False)
    """
    wanted, place = np.unique(round_down(thresholds), return_inverse=True)
    below, above = _solr_neighbours(wanted)
    with np.errstate(over="ignore", under="ignore"):
        low, high = below + SOLR_SLACK, above + SOLR_SLACK
        takes_above = low != wanted
        for number in np.flatnonzero(takes_above & (high != wanted)).tolist():
            takes_above[number] = _takes_above(low[number], wanted[number], high[number])
        written = np.where(takes_above, above, below)
        return written[place], (written + SOLR_SLACK)[place]


def _solr_neighbours(wanted: Floats) -> tuple[Floats, Floats]:
    """The numbers whose sums with the slack are the largest up to each one wanted, and the smallest from it on."""
    with np.errstate(over="ignore", under="ignore"):
        tried = [wanted - SOLR_SLACK]
        for direction in (-np.inf, np.inf):
            step = tried[0]
            for _ in range(3):  # rounding of difference and sum cannot lead further astray
                step = np.nextafter(step, np.float32(direction))
                tried.append(step)
        sums = np.stack(tried) + SOLR_SLACK
    below = np.where(sums <= wanted, sums, np.float32(-np.inf)).argmax(axis=0)
    above = np.where(sums >= wanted, sums, np.float32(np.inf)).argmin(axis=0)
    columns = np.arange(len(wanted))
    return np.stack(tried)[below, columns], np.stack(tried)[above, columns]


def _takes_above(low: np.float32, wanted: np.float32, high: np.float32) -> bool:
    """Whether to compare with `high`, which sends what lies above `wanted` left, and not with `low`, which sends what
    lies up to `wanted` right. The smaller gap decides unless zero lies in it; of equal gaps the one with longer numbers
    at the threshold, since data holds short ones."""
    if wanted < 0 <= high:
        return False
    upper, lower = float(high) - float(wanted), float(wanted) - float(low)
    if upper != lower:
        return upper < lower
    return len(str(wanted)) <= len(str(np.nextafter(wanted, high)))
