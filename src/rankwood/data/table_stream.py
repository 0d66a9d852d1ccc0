"""Features of tables, CSV or Parquet, in blocks of rows: for tables larger than memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankwood.data.svmlight_stream import Progress
from rankwood.data.tables import checked, csv_layout, feature_columns, fill_features, import_pyarrow, with_column_name
from rankwood.dtypes import FEATURE, FeatureMatrix
from rankwood.errors import DataError
from rankwood.rows import column_order
from rankwood.threads import resolve_threads

_CSV_BLOCK = 1 << 20  # bytes of text
_PARQUET_ROWS, _PARQUET_BUFFER = 8192, 1 << 16  # at a time; bytes of each column

# Record batches with just these columns, each with the number of bytes of the file read so far.
Batches = Iterator[tuple[Any, int]]


@dataclass(frozen=True)
class Source:
    """One file: its columns, and how to read some of them."""

    file: Path
    names: list[str]
    batches: Callable[[list[str]], Batches]


def iter_table_features(
    files: list[Path],
    kind: Literal["csv", "parquet"],
    *,
    n_features: int,
    beyond: Literal["error", "ignore"] = "error",
    feature_names: Sequence[str] | None,
    rows_per_block: int,
    n_threads: int | None,
    progress: Progress | None,
) -> Iterator[FeatureMatrix]:
    """The features of every file, one after another: those of the model in its order if they have names, else all.
    `beyond` says what to do with columns after the first `n_features`, if they have no names."""
    pa = import_pyarrow("reading CSV" if kind == "csv" else "reading Parquet")
    threads = resolve_threads(n_threads) > 1

    def open_source(file: Path) -> Source:
        if kind == "csv":
            return _open_csv(pa, file, threads)
        return _open_parquet(file, rows_per_block, threads)

    sources = [checked(pa, file, lambda file=file: open_source(file)) for file in files]
    _, features = feature_columns(files, [source.names for source in sources])
    if beyond == "ignore" and feature_names is None:
        features = features[:n_features]
    if len(features) != n_features:
        raise DataError(f"{files[0]}: there are {len(features)} feature columns, {n_features} were expected")
    order = column_order(features, feature_names)
    columns = features if order is None else [features[number] for number in order]
    total, done = sum(os.stat(file).st_size for file in files), 0
    for source in sources:
        n_rows = 0
        for table, position in _sentences(pa, source, columns):
            X = np.empty((table.num_rows, len(columns)), dtype=FEATURE)
            fill_features(pa, source.file, table, columns, X)
            n_rows += len(X)
            if progress is not None:
                progress(done + position, total)
            if len(X):
                yield X
        if n_rows == 0:
            raise DataError(f"{source.file}: the table has no rows")
        done += os.stat(source.file).st_size


def _sentences(pa: Any, source: Source, columns: list[str]) -> Batches:
    """The batches as tables; what goes wrong in reading becomes one sentence, with how far it got."""
    batches, n_rows = source.batches(columns), 0
    while True:
        try:
            batch, position = next(batches)
        except StopIteration:
            return
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            where = f" after row {n_rows:,}" if n_rows else ""
            reason = with_column_name(str(error), source.names)
            raise DataError(f"{source.file}: cannot be read{where}: {reason}") from None
        n_rows += batch.num_rows
        yield pa.Table.from_batches([batch]), position


def _open_csv(pa: Any, file: Path, threads: bool) -> Source:
    from pyarrow import csv

    layout = csv_layout(pa, file)
    options = {
        "read_options": csv.ReadOptions(use_threads=threads, block_size=_CSV_BLOCK),
        "parse_options": layout.parse,
    }

    def batches(columns: list[str]) -> Batches:
        with pa.OSFile(str(file)) as raw:
            text = pa.CompressedInputStream(raw, "gzip") if file.suffix.lower() == ".gz" else raw
            with csv.open_csv(text, convert_options=layout.convert(columns), **options) as reader:
                for batch in reader:
                    yield batch, raw.tell()

    return Source(file, layout.names, batches)


def _open_parquet(file: Path, rows_per_block: int, threads: bool) -> Source:
    from pyarrow import parquet

    def batches(columns: list[str]) -> Batches:
        size, n_rows = os.stat(file).st_size, 0
        n_at_once = min(rows_per_block, _PARQUET_ROWS)
        # With buffers of its own and no pre_buffer, a group of rows may be larger than memory.
        with parquet.ParquetFile(str(file), pre_buffer=False, buffer_size=_PARQUET_BUFFER) as table:
            for batch in table.iter_batches(batch_size=n_at_once, columns=columns, use_threads=threads):
                n_rows += batch.num_rows
                yield batch.select(columns), size * n_rows // table.metadata.num_rows

    with parquet.ParquetFile(str(file)) as table:
        return Source(file, table.schema_arrow.names, batches)
