"""Rows whose scores are known, for compiled models to test themselves with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.engines.base import PreparedModel
from rankwood.engines.reference import REFERENCE

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble

N_ROWS = 16
MAX_FEATURES = 256  # of a row that differ from 0
ON, BELOW, ABOVE, MISSING = range(4)  # where a value stands to a threshold


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows as floats and as doubles, with what the reference says about them."""

    features: IndexArray  # the columns below; all others of the model are 0
    floats: AnyArray
    doubles: FloatArray
    scores: FloatArray  # of each row: its floats in double and single precision, its doubles in both
    leaves: AnyArray  # of each row: the leaves of its floats and those of its doubles, mixed


def find_test_rows(model: Ensemble, thresholds: dict[int, FloatArray]) -> KnownRows:
    """Rows on the model's thresholds and one step to either side.

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
    judge = REFERENCE.prepare(model)
    answers = [
        [_ask(judge, row, features, model.n_features) for row in (floats[number], doubles[number])]
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
    """The first four rows stand in one place with all their features, the others in some place with each."""
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
    """A number that looks like chance, the same everywhere: of the multiplicative kind, mixed once more."""
    mixed = (column * N_ROWS + row + 1) * 0x9E3779B97F4A7C15 % 2**64
    return ((mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 % 2**64) >> 32


def _ask(judge: PreparedModel, row: AnyArray, features: IndexArray, n_features: int) -> tuple[list[float], int]:
    whole = np.zeros((1, n_features), dtype=row.dtype)
    if n_features:
        whole[0, features] = row
    scores = [float(judge.score(whole, precision=precision)[0]) for precision in ("double", "single")]
    mixed = 0
    for leaf in judge.leaves(whole)[0].tolist():
        mixed = (mixed * 31 + leaf) % 2**32
    return scores, mixed
