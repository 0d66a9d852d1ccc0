"""The files that LightGBM and XGBoost keep beside a data file: sizes of queries, and weights.

`FILE.query` (LightGBM) or `FILE.group` (XGBoost) has the number of documents of each query, one per line.
`FILE.weight` has one weight per document (LightGBM) or per query (XGBoost). For `FILE.gz` they are looked for
as `FILE.gz.query` and `FILE.query`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from rankwood.data.text import existing_file
from rankwood.dtypes import OFFSET, WEIGHT, FloatArray, OffsetArray
from rankwood.errors import DataError

Number = TypeVar("Number", int, float)


def side_file(path: Path, *suffixes: str) -> Path | None:
    """The first file beside `path` with one of the suffixes."""
    stems = [path.name] + ([path.name[: -len(".gz")]] if path.name.endswith(".gz") else [])
    for stem in stems:
        for suffix in suffixes:
            beside = path.with_name(stem + suffix)
            if beside.is_file():
                return beside
    return None


def read_sizes(path: Path) -> OffsetArray:
    """Numbers of documents, one per line."""
    return np.array(_numbers(path, _size, "the number of documents of a query"), dtype=OFFSET)


def read_weights(path: Path) -> FloatArray:
    """Weights, one per line."""
    return np.array(_numbers(path, _weight, "a weight, a number that is not negative"), dtype=WEIGHT)


def _size(text: str) -> int:
    value = int(text) if text.isdecimal() else -1
    if not 0 <= value < 2**62:
        raise ValueError
    return value


def _weight(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError
    return value


def _numbers(path: Path, convert: Callable[[str], Number], expected: str) -> list[Number]:
    numbers = []
    with open(existing_file(path), encoding="utf-8-sig", errors="backslashreplace") as lines:
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text:
                continue
            try:
                numbers.append(convert(text))
            except ValueError:
                raise DataError(f"{path}, line {number}: expected {expected}, got {text[:40]!r}") from None
    return numbers
