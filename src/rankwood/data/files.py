"""Reading data files of any kind; the name of a file tells its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rankwood.coding import Coding
from rankwood.data.dataset import Dataset
from rankwood.data.text import (
    MAX_EXPANSION,
    PathLike,
    Progress,
    State,
    as_paths,
    existing_file,
    file_state,
    kind_of_all,
)
from rankwood.dtypes import AnyArray
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
    coding: Coding | None = None,
    exact: bool = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Dataset:
    r"""The data set in one or several files: CSV, Parquet, or SVMlight text.

    The name of a file tells its kind: `.csv` and `.tsv` (also `.gz`), `.parquet`, and anything else is SVMlight text.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        Files of one kind, which are read as if they were one.
    n_features : int, optional
        Number of features. Tables must have as many; of SVMlight text the largest feature id decides unless given.
    absent : float, default 0.0
        Value of a feature that a line of SVMlight text leaves out: 0.0, or NaN for missing.
    zero_based : bool, default False
        Whether feature ids of SVMlight text start at 0, not at 1.
    query_file : path-like or iterable of path-like, optional
        Files with the sizes of queries, for SVMlight text without `qid:ID`; see `read_svmlight`.
    queries : {"required", "optional"}, default "required"
        With "optional", data without query ids is one query per file of SVMlight text, or one query of all tables.
    doc_ids : bool, default True
        Whether document ids are kept.
    max_expansion : float, default 200
        Most times its size that a gzip file of SVMlight text may unpack to; see `read_svmlight`.
    coding : Coding, optional
        How texts of a model's categories become numbers: `Ensemble.coding`. Texts in tables are refused without it.
    exact : bool, default False
        Keep features of tables in float64 if float32, which learning is done on, would round some value: models score
        them as they score a DataFrame of the same values. SVMlight text is read as float32 in any case.
    n_threads : int, optional
        Every CPU is used unless given.
    progress : callable, optional
        Called now and then with the number of bytes of SVMlight text that were read, and that there are.

    Returns
    -------
    Dataset
        All documents, in the order of the files.

    See Also
    --------
    read_svmlight : More about SVMlight text.
    read_csv : More about columns of tables.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "test.txt"
    >>> _ = path.write_text("1 qid:7 1:0.5\n0 qid:7 1:0.25\n")
    >>> read_data(path)
    Dataset(2 documents, 1 features, 1 queries)
    """
    files = as_paths(paths)
    kind = kind_of_all(files)
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
    from rankwood.data.tables import check_width, read_csv, read_parquet

    read = read_csv if kind == "csv" else read_parquet
    data = read(files, queries=queries, coding=coding, exact=exact, n_threads=n_threads)
    check_width(files[0], data.feature_names or (), n_features)
    return data if doc_ids else data.replace(doc_ids=None)


def open_data(
    paths: PathLike | Iterable[PathLike],
    *,
    n_features: int | None = None,
    absent: float = 0.0,
    zero_based: bool = False,
    query_file: PathLike | Iterable[PathLike] | None = None,
    queries: Literal["required", "optional"] = "required",
    max_expansion: float = MAX_EXPANSION,
    coding: Coding | None = None,
    exact: bool = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Dataset:
    r"""The data set of `read_data`, with its features left in the files: these may be larger than memory.

    Labels, queries and weights are read, names of documents are not. `fit` of boosted rankers, `BinnedDataset.make` and
    `evaluate` read the features from the files, some rows at a time, and give what they give for `read_data`, bit for
    bit; anything else that asks for `X` gets a DataError.

    Parameters
    ----------
    paths, n_features, absent, zero_based, query_file, queries, max_expansion, coding, exact, n_threads, progress
        As for `read_data`.

    Returns
    -------
    Dataset
        All documents, in the order of the files.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("1 qid:7 1:0.5\n0 qid:7 1:0.25\n")
    >>> data = open_data(path)
    >>> data.y.tolist(), data.has_features
    ([1.0, 0.0], False)
    """
    files = as_paths(paths)
    kind = kind_of_all(files)
    states = [file_state(file) for file in files]
    if kind == "svmlight":
        from rankwood.data.svmlight import open_svmlight, read_svmlight

        is_readable_again = all(file.is_file() for file in files)  # as pipes are not
        data = (open_svmlight if is_readable_again else read_svmlight)(
            files,
            n_features=n_features,
            absent=absent,
            zero_based=zero_based,
            query_file=query_file,
            queries=queries,
            max_expansion=max_expansion,
            n_threads=n_threads,
            progress=progress,
        )
        return data if data.has_features else data.replace(read_blocks=Unchanged(data, files, states))
    from rankwood.data.parts import as_dataset, file_parts
    from rankwood.data.tables import check_width

    parts = file_parts(files, kind, queries=queries, coding=coding, exact=exact, n_threads=n_threads)
    features = parts[0].features
    check_width(files[0], features, n_features)
    try:
        data = as_dataset(parts, len(features), features)
    except DataError as error:
        named = any(str(error).startswith(str(file)) for file in files)
        raise DataError(str(error) if named else f"{files[0]}: {error}") from None
    return data.replace(read_blocks=Unchanged(data, files, states))


@dataclass(frozen=True)
class Unchanged:
    """Blocks of the features of files, as `Dataset.replace` takes them; a DataError once a file has changed.

    Parameters
    ----------
    data : Dataset
        Labels and queries of the files, and their features block by block.
    files : list of Path
        The files.
    states : list of State or None
        What they were before their labels were read.
    """

    data: Dataset
    files: list[Path]
    states: list[State | None]

    def __call__(self) -> Iterator[AnyArray]:
        self._check()
        for _, block in self.data.feature_blocks():
            self._check()
            yield block

    def _check(self) -> None:
        for file, state in zip(self.files, self.states, strict=True):
            if file_state(existing_file(file)) != state:
                raise DataError(f"{file}: it has changed since its labels were read: start again when it is complete")


def iter_features(
    paths: PathLike | Iterable[PathLike],
    *,
    n_features: int,
    beyond: Literal["error", "ignore"] = "error",
    feature_names: Sequence[str] | None = None,
    rows_per_block: int | None = None,
    zero_based: bool = False,
    max_expansion: float = MAX_EXPANSION,
    coding: Coding | None = None,
    exact: bool = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Iterator[AnyArray]:
    r"""The features in data files, a block of rows at a time, so that files may be larger than memory.

    Labels and query ids are not looked at.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        Files of one kind, as `read_data` takes them, in the order given.
    n_features : int
        Number of features of every block.
    beyond : {"error", "ignore"}, default "error"
        What happens to features after the first `n_features`; to other columns of tables, with `feature_names`.
    feature_names : sequence of str, optional
        Columns of tables that are taken, in this order; all feature columns unless given.
    rows_per_block : int, optional
        A block has some 16 MB unless given.
    zero_based, max_expansion, coding, exact, n_threads, progress
        As for `read_data`.

    Yields
    ------
    float32 matrix, or float64 where `exact` needs it
        Documents x features.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "test.txt"
    >>> _ = path.write_text("1 qid:7 1:0.5\n0 qid:7 1:0.25\n")
    >>> [X.tolist() for X in iter_features(path, n_features=2)]
    [[[0.5, 0.0], [0.25, 0.0]]]
    """
    files = as_paths(paths)
    kind = kind_of_all(files)
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
        coding=coding,
        exact=exact,
        rows_per_block=rows,
        n_threads=n_threads,
        progress=progress,
    )
