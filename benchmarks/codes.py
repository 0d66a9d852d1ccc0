"""How long it takes to turn feature values into codes, the step before the trees, by number of thresholds per feature.

    python benchmarks/codes.py [--features 136] [--thresholds 3,7,15,31,63,127,255] [--rows 20000] [--seconds 0.3]

Rows go through in blocks of 512, as in engine bitslice, into memory that stays where it is; a block's call from Python
takes a microsecond or two, which is in the figures. `near` rows are the same block over and over, in the second-level
cache; `far` ones are all rows in turn, which do not fit there. Best of many passes; set RANKWOOD_ISA to compare
instruction sets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scoring.machine import describe_machine, versions

import rankwood as rw
from rankwood import _native

BLOCK = 512
LAYOUTS = {"rows": np.ascontiguousarray, "columns": np.asfortranarray}


def make_model(n_features: int, n_thresholds: int, missing_left: bool) -> rw.Ensemble:
    """One stump per threshold of each feature; thresholds at random among the values of `make_rows`."""
    rng = np.random.default_rng(n_thresholds)
    trees = []
    for feature in range(n_features):
        trees += [(feature, t, 0.0, 1.0, missing_left) for t in np.sort(rng.normal(size=n_thresholds))]
    return rw.Ensemble.from_trees(trees, n_features=n_features)


def best(call: Callable[[], object], seconds: float) -> float:
    call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def time_rows(codes: _native.Codes, X: NDArray[np.floating], by_row: bool, seconds: float) -> float:
    """Nanoseconds per row."""
    n = len(X) // BLOCK
    out = np.empty((BLOCK, codes.n_columns), np.uint8) if by_row else np.empty((codes.n_columns, BLOCK), np.int8)
    turn = codes.by_row if by_row else codes.by_column
    blocks = [X[i * BLOCK : (i + 1) * BLOCK] for i in range(n)]

    def all_blocks() -> None:
        for block in blocks:
            turn(block, out)

    return best(all_blocks, seconds) * 1e9 / (n * BLOCK)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--thresholds", default="3,7,15,31,63,127,255")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--missing-right", action="store_true", help="missing values have a code of their own")
    options = parser.parse_args()
    print(describe_machine(), versions(["rankwood", "numpy"]))
    values = np.random.default_rng(0).normal(size=(options.rows, options.features))
    kinds = [(dtype, layout) for dtype in (np.float32, np.float64) for layout in LAYOUTS]
    print(f"ns per value; {options.features} features")
    names = [f"{np.dtype(dtype).name} {layout}" for dtype, layout in kinds]
    print(f"{'thresholds':>10} | " + " | ".join(f"{name:^22}" for name in names) + " | float32 rows, by row")
    print(f"{'':>10} | " + " | ".join(f"{'near':>10} {'far':>11}" for _ in names) + " |  near")
    for n_thresholds in map(int, options.thresholds.split(",")):
        model = make_model(options.features, n_thresholds, not options.missing_right)
        codes = _native.Codes(*model.trees.native(), model.n_features, 255)
        cells = []
        for dtype, layout in kinds:
            X = LAYOUTS[layout](values.astype(dtype))
            near, far = (time_rows(codes, rows, False, options.seconds) for rows in (X[:BLOCK], X))
            cells.append(f"{near / options.features:10.3f} {far / options.features:11.3f}")
        by_row = time_rows(codes, values[:BLOCK].astype(np.float32), True, options.seconds) / options.features
        print(f"{n_thresholds:>10} | " + " | ".join(cells) + f" | {by_row:6.3f}", flush=True)


if __name__ == "__main__":
    main()
