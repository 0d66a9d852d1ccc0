"""Rows on which converted models go wrong first: thresholds and their neighbours, zeros, missing and huge values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SPECIAL = (0.0, -0.0, 1e-36, -1e-36, 1e-35, -1e-35, 1e-45, 7e-46, -7e-46, 0.5, 1e10, -1e10)
WHOLE = (-2.0, -1.0, 1.0, 2.0, 3.0, 4.0, 5.0)  # what counts and grades are, besides zero
# Thresholds between zero and its neighbours of either type: LightGBM's 1e-35, denormals, what Solr's slack can give.
TINY = tuple(
    sign * value
    for value in (0.0, 5e-324, 1e-310, 7e-46, 1e-45, 3e-45, 1e-40, 1.2e-38, 1e-36, 1e-35, 1.0000000180025095e-35,
                  1.0000000180025097e-35, 1e-34, 1e-20, 5.7e-14, 1e-13, 1.2e-13, 1e-9, 5e-7, 1e-6, 2e-6)
    for sign in (1.0, -1.0)
)  # fmt: skip


def adversarial_rows(
    model, n_rows: int = 1500, *, seed: int = 0, dtype=np.float64, missing: bool = True, infinite: bool = True
) -> NDArray:
    """Rows that mix the thresholds of each feature, one float32 and one float64 step to either side, and `SPECIAL`; of
    a quarter of them every value is a whole number, mostly zero."""
    rng = np.random.default_rng(seed)
    rows = np.empty((n_rows, model.n_features))
    with np.errstate(all="ignore"):
        features, thresholds = model.trees.all_thresholds()
        for feature in range(model.n_features):
            exact = np.concatenate([thresholds[features == feature], SPECIAL])
            single = exact.astype(np.float32)
            up, down = np.float32(np.inf), np.float32(-np.inf)
            steps = [exact, np.nextafter(exact, np.inf), np.nextafter(exact, -np.inf)]
            steps += [single, np.nextafter(single, up), np.nextafter(single, down)]
            values = np.concatenate([*steps, [np.nan] if missing else [], [np.inf, -np.inf] if infinite else []])
            if not infinite:  # nor what becomes infinite as float32
                values = values[np.abs(values) < 3e38] if not missing else values[~(np.abs(values) >= 3e38)]
            rows[:, feature] = rng.choice(values, size=n_rows)
        rows[: n_rows // 4] = whole_numbers(n_rows // 4, model.n_features, seed=seed)
        return rows.astype(dtype)


def whole_numbers(n_rows: int, n_features: int, *, seed: int = 0) -> NDArray:
    """Rows of counts and the like: zeros for the most part, small whole numbers, some of them negative."""
    rng = np.random.default_rng(seed)
    zero = rng.random((n_rows, n_features)) < 0.6
    return np.where(zero, 0.0, rng.choice(WHOLE, size=zero.shape))


def whole_number_data(n_rows: int = 600, n_features: int = 5, *, seed: int = 0):
    """Such rows, and grades from 0 to 4 for which it matters whether a value is negative, zero or positive."""
    X = whole_numbers(n_rows, n_features, seed=seed)
    signs = np.sign(X) @ np.arange(1, n_features + 1)[::-1]
    noise = np.random.default_rng(seed + 1).normal(size=n_rows)
    return X, np.clip(2 + 0.4 * signs + 0.2 * X[:, 0] + 0.3 * noise, 0, 4).astype(int)


def training_data(n_rows: int = 600, n_features: int = 5, *, seed: int = 0, missing: float = 0.1, zeros: float = 0.2):
    """Features with zeros and missing values, and grades from 0 to 4 that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    X[rng.random(X.shape) < zeros] = 0.0
    known = X.copy()
    X[rng.random(X.shape) < missing] = np.nan
    y = np.clip(2 * known[:, 0] + known[:, 1] ** 2 + 0.3 * rng.normal(size=n_rows), 0, 4).astype(int)
    return X, y


def same_partition(theirs: NDArray, ours: NDArray) -> bool:
    """Whether two tables of leaves, rows x trees, are the same but for the names of the leaves."""
    for their, our in zip(theirs.reshape(len(theirs), -1).T, np.asarray(ours).T, strict=True):
        pairs = set(zip(their.tolist(), our.tolist(), strict=True))
        if not len(pairs) == len(set(their.tolist())) == len(set(our.tolist())):
            return False
    return True


def assert_close(theirs, model, rows) -> None:
    """Scores within 1e-6 of the largest that the sum can take on the way: float32 sums of others lose that much."""
    ours = model.score(rows)
    scale = max(1e-12, np.abs(ours).max(), np.abs(model.base))
    np.testing.assert_allclose(ours, np.ravel(theirs), rtol=1e-6, atol=1e-6 * scale)
