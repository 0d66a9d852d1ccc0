"""Pieces of data files that workers of a cluster read by themselves, wherever the files are seen."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rankwood.coding import Coding
from rankwood.data.dataset import Dataset
from rankwood.data.files import iter_features, open_data
from rankwood.data.parts import TablePart, as_dataset, file_parts
from rankwood.data.svmlight import side_file
from rankwood.data.tables import ParquetSource, check_width, named
from rankwood.data.text import PathLike, as_paths, file_kind, kind_of_all
from rankwood.dtypes import FeatureMatrix
from rankwood.errors import DataError


@dataclass(frozen=True)
class TextPart:
    """A file of SVMlight text.

    Parameters
    ----------
    file : Path
        The file.
    n_features : int
        Number of features.
    zero_based : bool
        Whether feature ids start at 0, not at 1.
    beyond : {"error", "ignore"}
        What happens to features after the first `n_features`.
    """

    file: Path
    n_features: int
    zero_based: bool = False
    beyond: Literal["error", "ignore"] = "error"

    features = None  # which have no names

    def blocks(self) -> Iterator[FeatureMatrix]:
        """The features, some rows at a time."""
        return iter_features(
            self.file, n_features=self.n_features, beyond=self.beyond, zero_based=self.zero_based, n_threads=1
        )


Partition: TypeAlias = "TextPart | TablePart"


def data_files(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """Files that paths name: a folder stands for the Parquet files in it, in the order of their names.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        Files or folders.
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files: list[Path] = []
    for path in map(Path, several):
        found = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not found:
            raise DataError(f"{path}: there is no Parquet file in this folder")
        files += found
    return as_paths(files)


def partitions(
    paths: PathLike | Iterable[PathLike],
    *,
    n_features: int,
    zero_based: bool = False,
    beyond: Literal["error", "ignore"] = "error",
    feature_names: Sequence[str] | None = None,
    coding: Coding | None = None,
    exact: bool = False,
    queries: Literal["required", "optional"] = "required",
) -> list[Partition]:
    """Pieces of data files, in order: groups of rows of Parquet files, and other files as a whole.

    Parquet files may be empty, as parts of a larger table often are. Pieces have absolute paths and can be pickled.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        Files of one kind, or folders of Parquet files.
    n_features : int
        Number of features.
    zero_based : bool, default False
        Whether feature ids of SVMlight text start at 0.
    beyond : {"error", "ignore"}, default "error"
        What happens to features after the first `n_features`, or to other columns than the `feature_names`.
    feature_names : sequence of str, optional
        Columns that are features, if others are ignored.
    coding : Coding, optional
        How texts of categories become numbers.
    exact : bool, default False
        Whether blocks of tables are float64 where float32 would round some value.
    queries : {"required", "optional"}, default "required"
        Whether tables must have a column of query ids.
    """
    files = [file.resolve() for file in data_files(paths)]
    kind = kind_of_all(files)
    if kind == "svmlight":
        return [TextPart(file, n_features, zero_based, beyond) for file in files]
    parts = file_parts(files, kind, queries=queries, coding=coding, exact=exact, n_threads=1)
    parts = [part for part in parts if not _is_empty(part.source)]
    if not parts:
        raise DataError(f"{files[0]}: the table has no rows")
    if beyond == "ignore":
        kept = [part.features[:n_features] if feature_names is None else named(part.features, feature_names)
                for part in parts]  # fmt: skip
        return [replace(part, features=features) for part, features in zip(parts, kept, strict=True)]
    check_width(files[0], parts[0].features, n_features, feature_names)
    return list(parts)


def file_of(part: Partition) -> Path:
    """The file that a piece belongs to."""
    return part.file if isinstance(part, TextPart) else part.source.file


def open_partition(part: Partition) -> Dataset:
    """The rows of a piece, with their features left in the file."""
    if isinstance(part, TablePart):
        return as_dataset([part], len(part.features), part.features)
    beside = side_file(part.file, ".query", ".group", ".weight")
    if beside is not None:
        raise DataError(f"{beside}: queries and weights of pieces of data stand in the data itself; leave --dask out")
    return open_data(part.file, n_features=part.n_features, zero_based=part.zero_based, n_threads=1)


def frame_data(frame: Any, roles: dict[str, str], features: Sequence[str]) -> Dataset:
    """The rows of a partition of a Dask DataFrame.

    Parameters
    ----------
    frame : pandas.DataFrame
        The partition.
    roles : dict
        Names of the columns of query ids and labels, by role.
    features : sequence of str
        Columns that are features.
    """
    y = frame[roles["label"]].to_numpy() if "label" in roles else None
    return Dataset(frame[list(features)], y, qid=frame[roles["qid"]].to_numpy())


def _is_empty(source: Any) -> bool:
    if not isinstance(source, ParquetSource) or source.row_groups is None:
        return False
    from pyarrow import parquet

    metadata = parquet.read_metadata(str(source.file))
    return not any(metadata.row_group(number).num_rows for number in source.row_groups)


def is_parquet(paths: Iterable[Path]) -> bool:
    """Whether paths are Parquet files, or folders, which hold such."""
    return all(path.is_dir() or file_kind(path) == "parquet" for path in paths)
