"""Writing of one split: rows to a Parquet or SVMlight file, a checksum of all values, and counts."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.data.svmlight import svmlight_text
from rankwood.data.tables import import_pyarrow
from rankwood.dtypes import AnyArray, FeatureMatrix
from rankwood.lab.datasets.wordnet.features import FEATURES

Format = Literal["parquet", "svmlight"]
ENDINGS = {"parquet": "parquet", "svmlight": "txt"}
N_GRADES = 5
BLOCK = 100_000  # rows that are written at a time

Write = Callable[[AnyArray, AnyArray, FeatureMatrix], None]  # (query ids, labels, features)


class Split:
    """What is written of a split: buffers rows, and counts and sums them up.

    Parameters
    ----------
    write : callable
        Writes rows.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: list[tuple[AnyArray, AnyArray, FeatureMatrix]] = []
        self._n_waiting = 0
        self._sizes: list[int] = []
        self._grades = np.zeros(N_GRADES, np.int64)
        self._sha256 = hashlib.sha256()

    @property
    def n_queries(self) -> int:
        """Number of queries so far."""
        return len(self._sizes)

    def add(self, qid: int, labels: AnyArray, features: FeatureMatrix) -> None:
        """Add the rows of a query."""
        qids = np.full(len(labels), qid, np.int32)
        for values, kind in ((qids, "<i4"), (labels, "<i1"), (features, "<f4")):
            self._sha256.update(np.ascontiguousarray(values, kind).tobytes())
        self._grades += np.bincount(labels, minlength=N_GRADES)
        self._sizes.append(len(labels))
        self._waiting.append((qids, labels, features))
        self._n_waiting += len(labels)
        if self._n_waiting >= BLOCK:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait."""
        if self._waiting:
            self._write(*(np.concatenate(values) for values in zip(*self._waiting, strict=True)))
            self._waiting, self._n_waiting = [], 0

    def facts(self) -> dict[str, Any]:
        """Return counts, and the checksum over query id, labels and features of one query after the other."""
        n_rows = int(self._grades.sum())
        return {
            "queries": len(self._sizes),
            "rows": n_rows,
            "rows_per_query": [min(self._sizes), round(n_rows / len(self._sizes), 1), max(self._sizes)],
            "grades": {str(grade): int(count) for grade, count in enumerate(self._grades)},
            "grade_percent": [round(100 * count / n_rows, 2) for count in self._grades.tolist()],
            "sha256_of_values": self._sha256.hexdigest(),
        }


@contextlib.contextmanager
def open_split(path: Path, format: Format) -> Iterator[Split]:
    """Context manager of a new file; rows that wait are written when the block ends."""
    with _parquet(path) if format == "parquet" else _svmlight(path) as write:
        split = Split(write)
        yield split
        split.flush()


@contextlib.contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    pa = import_pyarrow("writing Parquet")
    from pyarrow import parquet

    roles = [("qid", pa.int32()), ("label", pa.int8())]
    schema = pa.schema(roles + [(name, pa.float32()) for name in FEATURES])
    with parquet.ParquetWriter(path, schema, compression="zstd", write_statistics=False) as file:

        def write(qids: AnyArray, labels: AnyArray, features: FeatureMatrix) -> None:
            columns = [qids, labels, *np.ascontiguousarray(features.T)]
            file.write_table(pa.table([pa.array(values) for values in columns], schema=schema))

        yield write


@contextlib.contextmanager
def _svmlight(path: Path) -> Iterator[Write]:
    with path.open("wb") as file:

        def write(qids: AnyArray, labels: AnyArray, features: FeatureMatrix) -> None:
            file.writelines(svmlight_text(Dataset(features, labels, qid=qids), absent=0.0))

        yield write
