"""Rows on every threshold of a model, and whether engines agree with the reference on given rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.scoring.engines import Precision, PreparedModel, get_engine

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble


MAX_ROWS = 40_000
PLACES = 4  # of a value at a node that a row is led to: on its threshold, one step above, one below, missing
WHOLE_ROWS = 256  # at least, where there is room
ZEROS = 0.6  # share of zeros in them


@dataclass(frozen=True, eq=False)
class AdversarialRows:
    """Rows on thresholds, once with steps of float32 and once with steps of float64.

    Parameters
    ----------
    single, double : array of float32, array of float64
        Rows x features.
    every_threshold : bool
        Whether every threshold of each feature is among them; False when there were too many and chance picked some.
    every_node : bool
        Whether every node is met on its threshold; False when there were too many.
    """

    single: AnyArray
    double: AnyArray
    every_threshold: bool
    every_node: bool


def adversarial_rows(
    models: Ensemble | Sequence[Ensemble], *, max_rows: int = MAX_ROWS, seed: int = 0
) -> AdversarialRows:
    """Rows on the thresholds of models: where two scorers that differ at all are most likely to show it.

    They have every threshold of each feature, one step to either side, the whole numbers around it, NaN, infinities and
    zeros of both signs, in random company; rows of whole numbers alone, mostly zero, as counts are; and for each node
    rows that are led to it and meet its threshold there.

    Parameters
    ----------
    models : Ensemble or sequence of Ensemble
        Rows are as wide as the widest of them.
    max_rows : int, default 40000
        Most rows of each type.
    seed : int, default 0
        The same models and seed give the same rows.

    Examples
    --------
    >>> import rankwood as rw
    >>> rows = adversarial_rows(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]))
    >>> bool(np.isin([0.5, np.nextafter(0.5, 1), np.nextafter(0.5, 0)], rows.double).all()), rows.every_node
    (True, True)
    """
    given = list(models) if isinstance(models, Sequence) else [models]
    rng = np.random.default_rng(seed)
    found = [_rows(given, dtype, max_rows, rng) for dtype in (np.float32, np.float64)]
    (single, *complete), (double, *_) = found
    return AdversarialRows(single, double, *complete)


def values_near(thresholds: FloatArray, dtype: Any) -> AnyArray:
    """Values around thresholds, finite and each once.

    Each threshold rounded to the type, its two neighbours, the whole numbers around it, and zeros of both signs.

    Examples
    --------
    >>> values_near(np.array([1.0, np.inf]), np.float32)[:3].tolist()
    [1.0, 1.0000001192092896, 0.9999999403953552]
    """
    with np.errstate(over="ignore", under="ignore"):  # beyond the type's range is infinity
        on = np.unique(thresholds.astype(dtype))
        steps = [np.nextafter(on, dtype(side)) for side in (np.inf, -np.inf)]
        near = np.concatenate([on, *steps, *(rounded(thresholds).astype(dtype) for rounded in (np.floor, np.ceil))])
    near = near[np.isfinite(near) & (near != 0)]
    first = np.sort(np.unique(near, return_index=True)[1])  # np.unique alone would sort them
    return np.concatenate([near[first], np.array([0.0, -0.0], dtype=dtype)])


def _rows(models: list[Ensemble], dtype: Any, max_rows: int, rng: np.random.Generator) -> tuple[AnyArray, bool, bool]:
    """Rows of one type, and whether every threshold and every node is among them."""
    n_features = max((model.n_features for model in models), default=0)
    all_of = [model.trees.all_thresholds() for model in models]
    thresholds = np.concatenate([np.zeros(0), *(thresholds for _, thresholds in all_of)])
    features = np.concatenate([np.zeros(0, np.int64), *(features for features, _ in all_of)])
    order = np.argsort(features, kind="stable")
    bounds = np.searchsorted(features[order], np.arange(n_features + 1))
    columns = [values_near(thresholds[order[bounds[f] : bounds[f + 1]]], dtype) for f in range(n_features)]
    n_company = min(max(map(len, columns), default=1), max(1, max_rows // 2))
    company = np.empty((n_company, n_features), dtype=dtype)
    for feature, values in enumerate(columns):
        company[:, feature] = np.resize(rng.permutation(values), n_company)
    every_threshold, every_node = all(len(values) <= n_company for values in columns), True
    room = (max_rows - n_company) // 4
    whole = _whole_rows(columns, min(max(n_company, WHOLE_ROWS), room), dtype, rng)
    parts = [company, _special_rows(company, room, rng), whole]
    room = (max_rows - sum(map(len, parts))) // max(1, len(models))
    for model in models:
        chosen = np.arange(len(model.trees.all_thresholds()[0]))  # a node's, or those of its set
        if PLACES * len(chosen) > room:
            chosen = np.sort(rng.choice(chosen, size=room // PLACES, replace=False))
            every_node = False
        parts.append(_led_rows(model, chosen, company, rng))
        others = np.sort(
            rng.permutation(len(model.trees.all_thresholds()[0]))[: room - PLACES * len(chosen)]
        )  # all, if there is room
        parts.append(_led_rows(model, others, company, rng, whole=True))
    return np.concatenate(parts), every_threshold, every_node


def _whole_rows(columns: list[AnyArray], n_rows: int, dtype: Any, rng: np.random.Generator) -> AnyArray:
    """Rows of zeros for the most part, and of the whole numbers around each feature's thresholds."""
    rows = np.zeros((n_rows, len(columns)), dtype=dtype)
    for feature, values in enumerate(columns):
        whole = values[(values == np.rint(values)) & (values != 0)]
        if len(whole):
            rows[:, feature] = np.where(rng.random(n_rows) < ZEROS, dtype(0), rng.choice(whole, n_rows))
    return rows


def _special_rows(company: AnyArray, room: int, rng: np.random.Generator) -> AnyArray:
    """Rows with NaN and infinities, in one feature alone and in several at once.

    All other rows are finite, since some scorers take no others.
    """
    dtype, n_features = company.dtype.type, company.shape[1]
    specials = np.array([np.nan, np.inf, -np.inf], dtype=dtype)
    n_alone = min(3 * n_features, room)
    alone = company[rng.integers(0, len(company), n_alone)]
    cells = rng.permutation(3 * n_features)[:n_alone]
    alone[np.arange(n_alone), cells // 3] = specials[cells % 3]
    several = company[rng.integers(0, len(company), min(n_alone, room - n_alone))]
    several = np.where(rng.random(several.shape) < 0.5, rng.choice(specials, several.shape), several)
    return np.concatenate([alone, several])


def _led_rows(
    model: Ensemble, chosen: IndexArray, company: AnyArray, rng: np.random.Generator, *, whole: bool = False
) -> AnyArray:
    """Rows that get to the nodes of some thresholds, as `all_thresholds` counts them, where splits above let any pass.

    They are on the threshold, next to it and missing, or with `whole` the whole number next to it.
    """
    dtype, n_places = company.dtype.type, 1 if whole else PLACES
    above, goes_left = _parents(model)
    sizes = model.trees.set_sizes
    nodes = np.concatenate([np.arange(model.n_nodes), np.repeat(np.arange(model.n_nodes), sizes)])[chosen]
    thresholds = model.trees.all_thresholds()[1][chosen]
    rows = company[rng.integers(0, len(company), n_places * len(nodes))]
    kept = np.ones(len(rows), dtype=bool)
    prefers_upper = rng.random(len(nodes)) < 0.5
    for number, node in enumerate(nodes.tolist()):
        mine = slice(n_places * number, n_places * (number + 1))
        for feature, asked in _asked_above(model, node, above, goes_left, rng).items():
            value = _let_through(asked, dtype, bool(prefers_upper[number]))
            if value is None:
                kept[mine] = False
                break
            rows[mine, feature] = value
        with np.errstate(over="ignore", under="ignore"):
            on = dtype(thresholds[number])
            steps = [np.nextafter(on, dtype(side)) for side in (np.inf, -np.inf)]
        rows[mine, model.feature[node]] = np.rint(on) if whole else (on, *steps, dtype(np.nan))
    return rows[kept]


def _parents(model: Ensemble) -> tuple[IndexArray, AnyArray]:
    """The node above each node of the model (-1 for a root), and whether the node lies to its left."""
    above = np.full(model.n_nodes, -1, dtype=np.int64)
    goes_left = np.zeros(model.n_nodes, dtype=bool)
    first = np.repeat(model.node_offsets[:-1], np.diff(model.node_offsets))
    for children, is_left in ((model.left, True), (model.right, False)):
        inner = np.flatnonzero(children >= 0)
        child = first[inner] + children[inner]
        above[child], goes_left[child] = inner, is_left
    return above, goes_left


class _Asked(NamedTuple):
    """Values of a feature that reach a node: more than `low` (None: any) and at most `high`, or missing."""

    low: float | None = None
    high: float = np.inf
    missing: bool = True


def _asked_above(
    model: Ensemble, node: int, above: IndexArray, goes_left: AnyArray, rng: np.random.Generator
) -> dict[int, _Asked]:
    """What the splits above a node ask of each feature; of sets one interval is asked for, by chance."""
    asked: dict[int, _Asked] = {}
    while above[node] >= 0:
        parent = int(above[node])
        feature, threshold = int(model.feature[parent]), float(model.threshold[parent])
        low, high, missing = asked.get(feature, _Asked())
        if model.set_offsets is not None and model.set_offsets[parent] < model.set_offsets[parent + 1]:
            low, high = _interval(model.trees.thresholds_of(parent).tolist(), bool(goes_left[node]), low, high, rng)
        elif goes_left[node]:
            high = min(high, threshold)
        else:
            low = threshold if low is None else max(low, threshold)
        asked[feature] = _Asked(low, high, missing and bool(model.missing_left[parent]) == bool(goes_left[node]))
        node = parent
    return asked


def _interval(
    thresholds: list[float], left: bool, low: float | None, high: float, rng: np.random.Generator
) -> tuple[float | None, float]:
    """One of the intervals of a set's side, by chance, as far as it lies above `low` and up to `high`."""
    inside: list[tuple[float | None, float]] = []
    for number in range(0 if left else 1, len(thresholds) + 1, 2):
        begin = low if number == 0 else thresholds[number - 1] if low is None else max(low, thresholds[number - 1])
        end = min([high, *thresholds[number : number + 1]])
        if begin is None or begin < end:
            inside.append((begin, end))
    return inside[rng.integers(len(inside))] if inside else (np.inf, -np.inf)


def _let_through(asked: _Asked, dtype: Any, upper: bool) -> Any:
    """A value that the splits above let through: a number where there is one, else NaN, else None."""
    if asked.low is None and asked.high == -np.inf:
        return dtype(-np.inf)
    value = _inside(-np.inf if asked.low is None else asked.low, asked.high, dtype, upper)
    return dtype(np.nan) if value is None and asked.missing else value


def _inside(low: float, high: float, dtype: Any, upper: bool) -> Any:
    """The largest (`upper`) or smallest number of the type that is more than `low` and at most `high`, or None."""
    with np.errstate(over="ignore", under="ignore"):
        largest, smallest = dtype(high), dtype(low)
        if float(largest) > high:
            largest = np.nextafter(largest, dtype(-np.inf))
        if float(smallest) <= low:
            smallest = np.nextafter(smallest, dtype(np.inf))
    if not low < float(largest) or not float(smallest) <= high:
        return None
    if np.isinf(largest) or np.isinf(smallest):  # rather the bound that is a threshold
        return smallest if np.isinf(largest) else largest
    return largest if upper else smallest


# Do engines agree with the reference? Leaf by leaf, and bit by bit of the scores.

# Documents times trees that are looked at; of larger data, documents evenly spread over it.
_SCORED, _LEAVES = 200_000_000, 16_000_000
_CALLS = 50  # per size of batch


@dataclass(frozen=True)
class Disagreement:
    """The first difference between an engine and the reference.

    Parameters
    ----------
    engine : str
        Name of the engine.
    batch : int
        Documents of the call.
    row, tree : int
        Where they differ; `tree` is None when the score differs.
    expected, got : float
        What the reference has, and the engine: leaves or scores.
    """

    engine: str
    batch: int
    row: int
    tree: int | None
    expected: float
    got: float

    def __str__(self) -> str:
        what = "scores" if self.tree is None else f"reaches leaf {self.got} of tree {self.tree} for"
        value = f" {self.got!r}" if self.tree is None else ""
        expected = f"{self.expected!r}" if self.tree is None else f"leaf {self.expected}"
        return (
            f"engine {self.engine!r} {what} document {self.row}{value} in a batch of {self.batch:,}, "
            f"where the reference has {expected}"
        )

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "message": str(self)}


class ReferenceResults:
    """Scores and leaves of the reference engine on some data, to compare other engines with.

    Parameters
    ----------
    model : Ensemble
    X : array
        Documents; of large data, some at even distances are taken.
    precision, n_threads
        As for `Ensemble.score`.
    """

    def __init__(self, model: Ensemble, X: AnyArray, precision: Precision, n_threads: int) -> None:
        self._precision, self._n_threads = precision, n_threads
        self._rows = _spread(len(X), _SCORED // max(1, model.n_trees))
        self._X = X if len(self._rows) == len(X) else X[self._rows]
        reference = get_engine("reference").prepare(model)
        self._scores = reference.score(self._X, precision=precision, n_threads=n_threads)
        self._few = _spread(len(self._X), _LEAVES // max(1, model.n_trees))
        self._leaves = reference.leaves(self._X[self._few], n_threads=n_threads)

    @property
    def n_docs(self) -> int:
        """Number of documents whose scores are compared."""
        return len(self._rows)

    def check(self, engine: PreparedModel, batches: Sequence[int]) -> Disagreement | None:
        """The first difference of an engine in leaves or in scores, in calls of each size of batch, or None."""
        leaves = engine.leaves(self._X[self._few], n_threads=self._n_threads)
        for place, tree in zip(*np.nonzero(leaves != self._leaves), strict=True):
            row = int(self._rows[self._few[place]])
            expected, got = int(self._leaves[place, tree]), int(leaves[place, tree])
            return Disagreement(engine.engine, len(leaves), row, int(tree), expected, got)
        for batch in sorted({min(batch, self.n_docs) for batch in batches}):
            for first in _spread(self.n_docs // batch, _CALLS) * batch:
                found = self._check_scores(engine, int(first), batch)
                if found is not None:
                    return found
        return None

    def _check_scores(self, engine: PreparedModel, first: int, batch: int) -> Disagreement | None:
        rows = slice(first, first + batch)
        expected = self._scores[rows]
        scores = engine.score(self._X[rows], precision=self._precision, n_threads=self._n_threads)
        for place in np.flatnonzero(_bits(scores) != _bits(expected)):
            row = int(self._rows[first + place])
            return Disagreement(engine.engine, batch, row, None, float(expected[place]), float(scores[place]))
        return None


def _bits(scores: FloatArray) -> IndexArray:
    return scores.view(np.int64)


def _spread(n: int, most: int) -> IndexArray:
    """All of `n` numbers, or `most` of them at even distances."""
    return np.arange(n) if n <= most else np.arange(most) * n // most
