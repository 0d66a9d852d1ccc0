"""Reading data files of any kind, told by their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from rankwood.data.dataset import Dataset
from rankwood.data.svmlight import Progress
from rankwood.data.text import MAX_EXPANSION, PathLike, as_paths
from rankwood.dtypes import FeatureMatrix
from rankwood.errors import DataError

_BLOCK_BYTES, _MOST_ROWS = 16 << 20, 65536  # of a block when features are read in blocks


def read_data(
    paths: PathLike | Iterable[PathLike],
    *,
    n_features: int | None = None,
    absent: float = 0.0,
    zero_based: bool = False,
    query_file: PathLike | Iterable[PathLike] | None = None,
    queries: Literal["required", "optional"] = "required",
    doc_ids: bool = True,
    max_expansion: float = MAX_EXPANSION,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Read one or several files: `.csv` and `.tsv` (also `.gz`), `.parquet`, and anything else as SVMlight text.

    The files are taken one after another, as if they were one; all must be of one kind. Options are those of
    `read_svmlight`; `absent`, `zero_based`, `query_file`, `max_expansion` and `progress` say nothing to tables.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "test.txt"
    >>> _ = path.write_text("1 qid:7 1:0.5\\n0 qid:7 1:0.25\\n")
    >>> read_data(path)
    Dataset(2 documents, 1 features, 1 queries)
    """
    files = as_paths(paths)
    kind = _kind_of_all(files)
    if kind == "svmlight":
        from rankwood.data.svmlight import read_svmlight

        return read_svmlight(
            files,
            n_features=n_features,
            absent=absent,
            zero_based=zero_based,
            doc_ids=doc_ids,
            query_file=query_file,
            queries=queries,
            max_expansion=max_expansion,
            n_threads=n_threads,
            progress=progress,
        )
    from rankwood.data.tables import read_csv, read_parquet

    read = read_csv if kind == "csv" else read_parquet
    data = read(files, queries=queries, n_threads=n_threads)
    if n_features is not None and data.n_features != n_features:
        raise DataError(f"{files[0]}: there are {data.n_features} feature columns, {n_features} were expected")
    return data if doc_ids else data.replace(doc_ids=None)


def iter_features(
    paths: PathLike | Iterable[PathLike],
    *,
    n_features: int,
    beyond: Literal["error", "ignore"] = "error",
    feature_names: Sequence[str] | None = None,
    rows_per_block: int | None = None,
    zero_based: bool = False,
    max_expansion: float = MAX_EXPANSION,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Iterator[FeatureMatrix]:
    """The features in data files, a block of rows at a time, so that files may be larger than memory.

    Files are those of `read_data`, in the order given. Columns of tables are found by name when there are
    `feature_names`; labels and query ids are not looked at. `beyond` and `max_expansion` are as of `read_svmlight`.
    Blocks take some 16 MB unless told otherwise.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "test.txt"
    >>> _ = path.write_text("1 qid:7 1:0.5\\n0 qid:7 1:0.25\\n")
    >>> [X.tolist() for X in iter_features(path, n_features=2)]
    [[[0.5, 0.0], [0.25, 0.0]]]
    """
    files = as_paths(paths)
    kind = _kind_of_all(files)
    rows = rows_per_block or min(max(_BLOCK_BYTES // (4 * max(1, n_features)), 1), _MOST_ROWS)
    if kind == "svmlight":
        from rankwood.data.svmlight import iter_svmlight

        blocks = iter_svmlight(
            files,
            n_features=n_features,
            beyond=beyond,
            rows_per_block=rows,
            zero_based=zero_based,
            max_expansion=max_expansion,
            n_threads=n_threads,
            progress=progress,
        )
        n_rows = 0
        for block in blocks:
            n_rows += len(block.X)
            yield block.X
        if n_rows == 0:
            raise DataError(f"{files[0]}: there is no document, only blank lines and comments")
        return
    from rankwood.data.tables import iter_table_features

    yield from iter_table_features(
        files,
        kind,
        n_features=n_features,
        beyond=beyond,
        feature_names=feature_names,
        rows_per_block=rows,
        n_threads=n_threads,
        progress=progress,
    )


def _kind_of_all(files: list[Path]) -> Literal["csv", "parquet", "svmlight"]:
    kinds = [file_kind(file) for file in files]
    if len(set(kinds)) > 1:
        other = next(file for file, kind in zip(files, kinds, strict=True) if kind != kinds[0])
        raise DataError(f"{files[0]} and {other} are files of different kinds; give files of one kind")
    return kinds[0]


def file_kind(path: Path) -> Literal["csv", "parquet", "svmlight"]:
    """What a file holds, by its name.

    >>> file_kind(Path("train.csv.gz")), file_kind(Path("train.parquet")), file_kind(Path("S1.txt"))
    ('csv', 'parquet', 'svmlight')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in (".csv", ".tsv"):
        return "csv"
    return "parquet" if last == ".parquet" else "svmlight"
