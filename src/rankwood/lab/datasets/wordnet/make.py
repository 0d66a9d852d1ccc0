"""Making of the data set: three files of queries, their texts, and facts about them."""

from __future__ import annotations

import contextlib
import itertools
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

from rankwood.atomic import atomic_folder
from rankwood.data.tables import import_pyarrow
from rankwood.errors import DataError, RankwoodError
from rankwood.lab.datasets.wordnet.database import DEBIAN_FOLDER, read_database, require_database
from rankwood.lab.datasets.wordnet.features import FEATURES
from rankwood.lab.datasets.wordnet.queries import Made, Query, QueryMaker, hired
from rankwood.lab.datasets.wordnet.rules import N_QUERIES, SEED, SHARES, SPLITS, Rules
from rankwood.lab.datasets.wordnet.splits import plan_splits
from rankwood.lab.datasets.wordnet.writing import ENDINGS, Format, open_split
from rankwood.system import resolve_threads

Part = Literal["noun", "verb-adj"]
Progress = Callable[[float, float], None]

COLLECTION_WORK = 7_000  # reading and indexing WordNet takes as long as one process needs for so many queries
FACTS, QUERIES, LICENCE = "facts.json", "queries.tsv", "WORDNET-LICENSE.txt"

# Checksums of the values of the whole set, from WordNet 3.0.
PUBLISHED = {
    "noun": {
        "train": "1d93db3269646c2f83b78492fd7c26ce64da0188d451faa51747648c06c5fd7c",
        "vali": "810ca1ea0f003416bad1d05512d078e2238e737648c79fc8ca32b101d61d2c89",
        "test": "06ef9d66799ac17db77cf0cafea67e50082422bd05cd20048237803ee3c279c8",
    },
    "verb-adj": {
        "train": "b08008c8912882e262ef0cc407bace997a2b09a50270e86e0ad487e0d201a49e",
        "vali": "ce5ed8034c7cb1113f77a8fa6e5563cc434dfe946137a6dd6cbc36a182d5fd7e",
        "test": "548a4b101f9399be6b381b602dde564adf1fb50cb3624d6a1edb83dbe16009c9",
    },
}


def make(
    to: str | Path,
    *,
    part: Part = "noun",
    n_queries: int | None = None,
    format: Format = "parquet",
    wordnet: str | Path = DEBIAN_FOLDER,
    n_workers: int | None = None,
    progress: Progress | None = None,
    rules: Rules | None = None,
) -> dict[str, Any]:
    """Make WordNet-LTR, a ranking data set of real text, in a new folder.

    The folder has train, vali and test files, the queries' texts in `queries.tsv`, counts and checksums in `facts.json`
    and the licence of WordNet. It appears when it is complete. The same arguments give the same values, whatever the
    number of workers. Fewer queries are the first ones of the whole set.

    Parameters
    ----------
    to : path-like
        The folder; it must not be there, unless it is empty.
    part : {"noun", "verb-adj"}, default "noun"
        Synsets that become queries: nouns, or verbs and adjectives, a set from another distribution.
    n_queries : int, optional
        Queries of all three files together; 32,000 or, for verb-adj, 3,000 unless given.
    format : {"parquet", "svmlight"}, default "parquet"
        Of the three files. Parquet needs the extra `arrow`.
    wordnet : path-like, default /usr/share/wordnet
        Folder of the WordNet database, which is where Debian's package wordnet-base puts it unless given.
    n_workers : int, optional
        Processes that make queries; one for every CPU unless given.
    progress : callable, optional
        Called with the work done and all work, in units of about one query.
    rules : Rules, optional
        Other limits than those of the data set.

    Returns
    -------
    dict
        What `facts.json` says.

    Raises
    ------
    DataError
        When the database is not there or not understood, or when the folder is in use.
    """
    source, n_workers = Path(wordnet), resolve_threads(n_workers)
    _check_choice("part", part, N_QUERIES)
    _check_choice("format", format, ENDINGS)
    wanted = queries_of_splits(N_QUERIES[part] if n_queries is None else n_queries)
    if format == "parquet":
        import_pyarrow("writing Parquet")  # said before the work
    require_database(source)
    rules = rules or Rules()
    work = _Work(COLLECTION_WORK * n_workers, sum(wanted), progress)
    with _new_folder(Path(to)) as folder:
        database = read_database(source)
        (folder / LICENCE).write_text(database.licence, encoding="utf-8")
        maker = QueryMaker.of(database, rules, work.collection)
        plan = plan_splits(database.synsets, maker.relations, part, rules)
        del database  # before processes are started
        with hired(maker, n_workers) as queries_of:
            made = [contextlib.closing(queries_of(synsets)) for synsets in plan.queries]
            files = _write_splits(folder, format, made, wanted, work)
        facts = {"part": part, "seed": SEED, "features": len(FEATURES), "split": plan.facts(), "files": files}
        (folder / FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


def queries_of_splits(n_queries: int) -> list[int]:
    """Return the numbers of queries for training, validation and test.

    Examples
    --------
    >>> queries_of_splits(32_000), queries_of_splits(3)
    ([20000, 6000, 6000], [1, 1, 1])
    """
    if n_queries < 3:
        raise RankwoodError(f"n_queries must be at least 3, one for each file, got {n_queries}")
    numbers = [round(n_queries * share) for share in SHARES]
    numbers[0] += n_queries - sum(numbers)
    return numbers


def as_published(facts: dict[str, Any]) -> bool | None:
    """Whether the values of a whole set have the published checksums; None for a smaller one, which has none."""
    files = facts["files"]
    if sum(file["queries"] for file in files.values()) != N_QUERIES[facts["part"]]:
        return None
    return {split: file["sha256_of_values"] for split, file in files.items()} == PUBLISHED[facts["part"]]


def _write_splits(
    folder: Path, format: Format, made: Sequence[AbstractContextManager[Made]], wanted: Sequence[int], work: _Work
) -> dict[str, Any]:
    """Write the files of all splits and the queries' texts, and return the facts of the files.

    Parameters
    ----------
    folder : Path
        Where to.
    format : {"parquet", "svmlight"}
        Of the files.
    made : sequence of context managers
        For each split its queries, and None for every synset that is none.
    wanted : sequence of int
        Queries to take of each.
    work : _Work
        Told of every query.
    """
    facts: dict[str, Any] = {}
    qids = itertools.count()
    with (folder / QUERIES).open("w", encoding="utf-8", newline="\n") as texts:
        texts.write("qid\tsplit\tquery\n")
        for split, its_queries, n_wanted in zip(SPLITS, made, wanted, strict=True):
            n_tried = 0
            with open_split(folder / f"{split}.{ENDINGS[format]}", format) as file, its_queries as queries:
                while file.n_queries < n_wanted and (query := next(queries, _END)) is not _END:
                    n_tried += 1
                    if isinstance(query, Query):
                        qid = next(qids)
                        file.add(qid, query.labels, query.features)
                        texts.write(f"{qid}\t{split}\t{query.text}\n")
                        work.query()
            if file.n_queries < n_wanted:
                _tell_of_few(split, file.n_queries, n_wanted)
            facts[split] = {"synsets_tried": n_tried, **file.facts()}
    return facts


_END = object()


def _tell_of_few(split: str, n_queries: int, n_wanted: int) -> None:
    if not n_queries:
        raise DataError(f"no query for {split} could be made: the database is not the whole WordNet")
    warnings.warn(f"only {n_queries:,} of {n_wanted:,} queries for {split} could be made", stacklevel=4)


def _check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise RankwoodError(f"{name} must be {' or '.join(choices)}, got {value!r}")


@contextlib.contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Context manager of a new folder that appears when the block ends without an error."""
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(atomic_folder(path))
        except FileExistsError:
            raise DataError(f"{path} is there already: choose another folder, or remove it") from None
        yield folder


class _Work:
    """Work done, in queries that one process makes in the same time.

    Parameters
    ----------
    for_collection, n_queries : int
        Work before the first query, and queries.
    progress : callable or None
        Called with what is done and the whole.
    """

    def __init__(self, for_collection: int, n_queries: int, progress: Progress | None) -> None:
        self._for_collection, self._all = for_collection, for_collection + n_queries
        self._progress, self._n_made = progress, 0
        self.collection(0.0)

    def collection(self, share: float) -> None:
        """Take note of the share of the collection's work that is done."""
        self._tell(share * self._for_collection)

    def query(self) -> None:
        """Take note of a query."""
        self._n_made += 1
        self._tell(self._for_collection + self._n_made)

    def _tell(self, done: float) -> None:
        if self._progress is not None:
            self._progress(done, self._all)
