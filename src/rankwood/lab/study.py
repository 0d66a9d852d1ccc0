"""Studies: the folds they work on, their runs, and the tables and figures that are written of them."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hashlib
import io
import json
import re
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from rankwood.atomic import atomic_write
from rankwood.data.dataset import Dataset
from rankwood.data.folds import Fold, find_folds
from rankwood.dtypes import FloatArray
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.evaluator import aligned_features
from rankwood.lab.drawing import Figure, can_draw, write_figure
from rankwood.lab.runs import Kept, OnRun, Result, RunTable, run_all, run_key
from rankwood.lab.workers import Config, Run, share_threads, workers_of
from rankwood.model.ensemble import Ensemble
from rankwood.printable import printable
from rankwood.scoring.timing import OtherModel, time_models, warn_if_busy
from rankwood.system import environment
from rankwood.tasks import import_distributed, sees_all

# Folds, read from files or made up.


@dataclass(frozen=True)
class FoldData:
    """Training, validation and test data of one fold."""

    train: Dataset
    valid: Dataset
    test: Dataset


class Source(Protocol):
    """The data of a study: folds with numbers from 1."""

    @property
    def name(self) -> str:
        """What the data are called in tables and titles."""

    @property
    def n_folds(self) -> int:
        """Number of folds that there are."""

    def identify(self, fold: int) -> dict[str, Any]:
        """Entries of a run's configuration that tell the data of this fold from any other."""

    def load(self, fold: int) -> FoldData:
        """Read or make the data of a fold."""


@dataclass(frozen=True)
class FileFolds:
    """Folds in files, each identified by a digest of what is in its files.

    Parameters
    ----------
    name : str
        What the data are called in tables and titles.
    folds : sequence of Fold
        The files; every fold needs validation and test files.
    n_threads : int, optional
        Threads that read them.
    """

    name: str
    folds: Sequence[Fold]
    n_threads: int | None = None
    _digests: dict[Path, str] = field(default_factory=dict, repr=False, compare=False)
    _loaded: Kept = field(default_factory=Kept, repr=False, compare=False)  # one at a time

    def __post_init__(self) -> None:
        for fold in self.folds:
            if not (fold.valid and fold.test):
                lacking = "test" if fold.valid else "validation"
                raise DataError(f"{fold.name} of {self.name} has no {lacking} data, which a study needs")

    @classmethod
    def find(cls, directory: str | Path, *, n_threads: int | None = None) -> FileFolds:
        """Find the folds in a folder (see `find_folds`), and name them after the data set that its path tells."""
        folder = Path(directory)
        return cls(known_name(folder) or folder.resolve().name, tuple(find_folds(folder)), n_threads)

    @property
    def n_folds(self) -> int:
        return len(self.folds)

    @property
    def paths(self) -> list[Path]:
        """All files."""
        return [path for fold in self.folds for part in (fold.train, fold.valid, fold.test) for path in part]

    def absolute(self) -> FileFolds:
        """The same folds, with paths that do not depend on the current folder."""
        folds = [
            Fold(
                fold.name,
                *(tuple(Path(path).resolve() for path in part) for part in (fold.train, fold.valid, fold.test)),
            )
            for fold in self.folds
        ]
        return dataclasses.replace(self, folds=folds)

    def identify(self, fold: int) -> dict[str, Any]:
        files = self.folds[fold - 1]
        digest = hashlib.sha256()
        for part in (files.train, files.valid, files.test):
            digest.update(b"|" + "".join(self._digest(path) for path in part).encode())
        return {"data": self.name, "fold": fold, "digest": digest.hexdigest()[:16]}

    def load(self, fold: int) -> FoldData:
        return self._loaded.get("fold", fold, lambda: self._read(self.folds[fold - 1]))  # type: ignore[no-any-return]

    def _read(self, files: Fold) -> FoldData:
        from rankwood.data.files import read_data

        train = read_data(files.train, n_threads=self.n_threads)
        parts = (files.valid, files.test)
        return FoldData(train, *(read_data(p, n_features=train.n_features, n_threads=self.n_threads) for p in parts))

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            with open(path, "rb") as file:
                digest = hashlib.sha256()
                while block := file.read(1 << 20):
                    digest.update(block)
            self._digests[path] = digest.hexdigest()
        return self._digests[path]


@dataclass(frozen=True)
class PartialFolds:
    """Folds of a data set that is not complete: some of LETOR's five parts, in files such as `S1.partial.txt.gz`.

    A fold trains on all parts but one; of the queries of that one, every other is for validation and the rest for test.

    Parameters
    ----------
    files : FileFolds
        Folds whose files for validation and test are the same.
    """

    files: FileFolds

    @classmethod
    def find(cls, directory: str | Path, *, n_threads: int | None = None) -> PartialFolds | None:
        """Find the parts in a folder; None unless there are two at least."""
        folder = Path(directory)
        found = sorted(folder.glob("S[1-5].partial.txt*")) if folder.is_dir() else []
        parts = {path.name[:2]: path for path in reversed(found)}  # an unpacked file comes before its .gz
        if len(parts) < 2:
            return None
        names = sorted(parts)
        folds = [
            Fold(f"Fold{number}", tuple(parts[one] for one in names if one != held), (parts[held],), (parts[held],))
            for number, held in enumerate(reversed(names), start=1)
        ]
        return cls(FileFolds(f"{known_name(folder) or folder.resolve().name} (partial)", folds, n_threads))

    @property
    def name(self) -> str:
        return self.files.name

    @property
    def n_folds(self) -> int:
        return self.files.n_folds

    def identify(self, fold: int) -> dict[str, Any]:
        return self.files.identify(fold)

    @property
    def paths(self) -> list[Path]:
        """All files."""
        return self.files.paths

    def absolute(self) -> PartialFolds:
        """The same folds, with paths that do not depend on the current folder."""
        return PartialFolds(self.files.absolute())

    def load(self, fold: int) -> FoldData:
        whole = self.files.load(fold)
        every_other = np.arange(whole.valid.n_queries) % 2 == 0
        valid, test = (whole.valid.select_queries(chosen) for chosen in (every_other, ~every_other))
        return FoldData(whole.train, valid, test)


@dataclass(frozen=True)
class SyntheticFolds:
    """Folds of synthetic data in five parts: a fold trains on three of them, validates on one and tests on one.

    Parameters
    ----------
    n_queries, docs_per_query, n_features : int
        Shape of the whole data, of which every fold has all.
    seed : int, default 0
        Seed of the data.
    n_folds : int, default 5
        Number of folds; fold i begins with part i.
    n_threads : int, optional
        Threads that make the data.

    Examples
    --------
    >>> source = SyntheticFolds(n_queries=50, docs_per_query=5, n_features=4)
    >>> fold = source.load(2)
    >>> fold.train.n_queries, fold.valid.n_queries, fold.test.n_queries
    (30, 10, 10)
    """

    n_queries: int = 1000
    docs_per_query: int = 120
    n_features: int = 136
    seed: int = 0
    n_folds: int = 5
    n_threads: int | None = None
    _made: Kept = field(default_factory=Kept, repr=False, compare=False)

    @property
    def name(self) -> str:
        return "synthetic"

    @property
    def data(self) -> Dataset:
        """All five parts."""
        from rankwood.data.synthetic import make_ranking

        shape = self.n_queries, self.docs_per_query, self.n_features
        make = partial(make_ranking, *shape, seed=self.seed, n_threads=self.n_threads)
        return self._made.get("data", None, make)  # type: ignore[no-any-return]

    def identify(self, fold: int) -> dict[str, Any]:
        shape = {"n_queries": self.n_queries, "docs_per_query": self.docs_per_query, "n_features": self.n_features}
        return {"data": self.name, "fold": fold, **shape, "data_seed": self.seed}

    def load(self, fold: int) -> FoldData:
        parts = np.array_split(np.arange(self.n_queries), 5)
        order = [parts[(fold - 1 + step) % 5] for step in range(5)]
        train, valid, test = np.concatenate(order[:3]), order[3], order[4]
        return FoldData(*(self.data.select_queries(queries) for queries in (train, valid, test)))


@dataclass(frozen=True)
class FewerQueries:
    """Folds that train on some of their queries only; validation and test data are whole.

    Parameters
    ----------
    source : Source
        The folds.
    n_queries : int
        Training queries of a fold, drawn once and for all; they keep their order. All where there are not more.
    """

    source: Source
    n_queries: int
    _drawn: Kept = field(default_factory=Kept, repr=False, compare=False)

    @property
    def name(self) -> str:
        return f"{self.source.name} ({self.n_queries:,} training queries)"

    @property
    def n_folds(self) -> int:
        return self.source.n_folds

    def identify(self, fold: int) -> dict[str, Any]:
        return {**self.source.identify(fold), "train_queries": self.n_queries}

    def load(self, fold: int) -> FoldData:
        return self._drawn.get("fold", fold, lambda: self._draw(self.source.load(fold)))  # type: ignore[no-any-return]

    def _draw(self, whole: FoldData) -> FoldData:
        return dataclasses.replace(whole, train=fewer_queries(whole.train, self.n_queries))


def fewer_queries(data: Dataset, n_queries: int) -> Dataset:
    """Return so many queries of a data set, drawn once and for all and in their order; all where there are not more."""
    if data.n_queries <= n_queries:
        return data
    return data.select_queries(np.sort(np.random.default_rng(0).permutation(data.n_queries)[:n_queries]))


# Folds for the workers of a Dask cluster: read from the same files where these are seen, else sent there once.


@dataclass(frozen=True)
class SentFolds:
    """Folds whose data lie in the memory of a Dask cluster.

    Parameters
    ----------
    source : Source
        Where the data came from.
    published : mapping of int to str
        Name under which the data of every fold is published there, by its number.
    """

    source: Source
    published: Mapping[int, str]

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def n_folds(self) -> int:
        return self.source.n_folds

    def identify(self, fold: int) -> dict[str, Any]:
        return self.source.identify(fold)

    def load(self, fold: int) -> FoldData:
        distributed = import_distributed("data on a Dask cluster")
        return distributed.get_client().get_dataset(self.published[fold]).result()  # type: ignore[no-any-return]


@contextlib.contextmanager
def source_for(client: Any, source: Source, folds: Sequence[int]) -> Iterator[Source]:
    """Context manager of the data of a study as workers of a Dask cluster take it.

    Data that is made, or in files that all workers see at the same place with the same size, is made or read by every
    worker that needs it. Any other is read here and sent to the cluster once.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    source : Source
        The data.
    folds : sequence of int
        Folds that are used.
    """
    if isinstance(source, FewerQueries):
        with source_for(client, source.source, folds) as whole:
            yield FewerQueries(whole, source.n_queries)
        return
    if not isinstance(source, (FileFolds, PartialFolds)):
        yield source
        return
    there = source.absolute()
    if sees_all(client, there.paths):
        yield there
        return
    names = {fold: f"rankwood-{uuid.uuid4().hex}" for fold in folds}
    with contextlib.ExitStack() as stack:
        for fold, name in names.items():
            data = client.scatter(there.load(fold), hash=False)
            client.replicate(data, n=2)  # a worker may die
            client.publish_dataset(data, name=name)
            stack.callback(client.unpublish_dataset, name)
        yield SentFolds(there, names)


def open_source(
    directory: str | Path | None,
    *,
    quick: bool = False,
    train_queries: int | None = None,
    n_threads: int | None = None,
) -> Source:
    """Return the folds in a folder or, without one, synthetic data shaped like MSLR.

    Parameters
    ----------
    directory : str or path or None
        The folder.
    quick : bool, default False
        Whether synthetic data is little.
    train_queries : int, optional
        Queries of a fold to train on; all unless given.
    n_threads : int, optional
        Threads that read the files or make the data.
    """
    source: Source
    if directory is not None:
        partial_folds = PartialFolds.find(directory, n_threads=n_threads)
        source = partial_folds or FileFolds.find(directory, n_threads=n_threads)
    elif quick:
        source = SyntheticFolds(n_queries=100, docs_per_query=20, n_features=20, n_threads=n_threads)
    else:
        source = SyntheticFolds(n_queries=500, docs_per_query=60, n_features=136, n_threads=n_threads)
    return source if train_queries is None else FewerQueries(source, train_queries)


def known_name(path: str | Path) -> str | None:
    """Return the data set that the last two parts of a path name, spelt as in the papers; None when there is none.

    Examples
    --------
    >>> known_name("data/ohsumed/QueryLevelNorm"), known_name("MQ2008/"), known_name("ohsumed-2/data/mine")
    ('OHSUMED', 'MQ2008', None)
    """
    for part in reversed(Path(path).resolve().parts[-2:]):
        for name in ("OHSUMED", "MQ2008", "MQ2007", "MSLR-WEB10K", "MSLR-WEB30K", "MSLR", "WordNet"):
            if re.search(name, part, re.I):
                return "WordNet-LTR" if name == "WordNet" else name
    return None


def parse_folds(text: str | Sequence[int] | None, n_folds: int) -> list[int]:
    """Return numbers of folds from text such as `1..5`, `1-3` or `1,4`, or from a list; None means all folds.

    Examples
    --------
    >>> parse_folds("1..3", 5), parse_folds("1,4", 5), parse_folds(None, 2)
    ([1, 2, 3], [1, 4], [1, 2])
    """
    if text is None:
        return list(range(1, n_folds + 1))
    numbers: list[int] = []
    if isinstance(text, str):
        for part in text.split(","):
            match = re.fullmatch(r"\s*(\d+)(?:\s*(?:\.\.|-)\s*(\d+))?\s*", part)
            if match is None:
                raise RankwoodError(f"folds are written like 1..5 or 1,3, got {text!r}")
            numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    else:
        numbers = list(text)
    wrong = [number for number in numbers if not 1 <= number <= n_folds]
    if wrong or not numbers:
        raise RankwoodError(f"there are folds 1 to {n_folds}, got {text!r}")
    return sorted(set(numbers))


# Tables as Markdown, CSV and LaTeX, and the texts that stand in their cells.


@dataclass(frozen=True)
class Table:
    """A table of text, which can be written as Markdown, CSV and LaTeX.

    Parameters
    ----------
    name : str
        Name of its files, without ending.
    title : str
    columns : sequence of str
        Headings.
    rows : sequence of sequences of str
        Cells, row by row.
    note : str, default ""
        Caption: what the numbers are and how they were made.
    details : sequence of str, default ()
        Headings of columns that a narrow terminal may do without, the least important first. Files have all.

    Examples
    --------
    >>> table = Table("t", "Two", ("method", "nDCG"), [("RF", "0.5")], note="On test data.")
    >>> print(table.markdown())
    **Two**
    <BLANKLINE>
    | method | nDCG |
    | :--- | ---: |
    | RF | 0.5 |
    <BLANKLINE>
    On test data.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    details: Sequence[str] = ()

    def markdown(self) -> str:
        """Title, table and note as Markdown."""
        lines = [self.columns, [":---", *["---:"] * (len(self.columns) - 1)], *self.rows]
        table = "\n".join(
            f"| {' | '.join(_one_line(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines
        )
        return _as_data("\n\n".join(part for part in (f"**{_one_line(self.title)}**", table, self.note) if part))

    def csv(self) -> str:
        """Headings and rows as CSV."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerows([self.columns, *self.rows])
        return buffer.getvalue()

    def latex(self) -> str:
        """A LaTeX table, with the title as its caption."""
        body = [
            rf"\begin{{table}}\caption{{{_escape(_one_line(self.title))}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}\hline",
            _latex_row(self.columns) + r" \hline",
            *map(_latex_row, self.rows),
            r"\hline\end{tabular}",
        ]
        if self.note:
            body.append(rf"\\ \footnotesize {_escape(_one_line(self.note))}")
        return "\n".join([*body, r"\end{table}", ""])

    def as_dict(self) -> dict[str, Any]:
        """Title, columns, rows and note, ready for JSON."""
        return {"title": self.title, "columns": list(self.columns), "rows": [list(r) for r in self.rows],
                "note": self.note}  # fmt: skip


def _one_line(text: str) -> str:
    """Replace line breaks, which would end the row of a table, by spaces, and show control characters as escapes."""
    return printable(" ".join(text.split()))


def _as_data(markdown: str) -> str:
    """Markdown in which names are data: no control characters, and no tags of HTML, which Markdown lets through.

    Examples
    --------
    >>> _as_data("**a<script>** p <0.001")
    '**a&lt;script>** p <0.001'
    """
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", "\n".join(map(printable, markdown.split("\n"))))


def _latex_row(cells: Sequence[str]) -> str:
    r"""Return the cells of a row as a line of a LaTeX table.

    Examples
    --------
    >>> print(_latex_row(["[1, 2]", "5 %"]))
    {[}1, 2] & 5 \% \\
    """
    text = " & ".join(_escape(_one_line(cell)) for cell in cells)
    if text.startswith(("[", "*")):  # the \\ of the row before would take it for an option
        text = f"{{{text[0]}}}{text[1:]}"
    return text + r" \\"


def _escape(text: str) -> str:
    """Return text with every character that LaTeX takes for a command written as itself."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {character: "\\" + character for character in "&%$#_{}"}
    special |= {"±": r"$\pm$", "≥": r"$\ge$", "≤": r"$\le$", "<": "$<$", ">": "$>$", "−": "$-$", "–": "--"}
    return "".join(special.get(character, character) for character in text)


def with_spread(mean: float, std: float | None, digits: int = 4) -> str:
    """Return a mean and, in brackets, its standard deviation where there is one.

    Examples
    --------
    >>> with_spread(0.44321, 0.0021), with_spread(0.5, None)
    ('0.4432 (0.0021)', '0.5000')
    """
    return f"{mean:.{digits}f}" if std is None else f"{mean:.{digits}f} ({std:.{digits}f})"


def p_text(p: float) -> str:
    """Return a p-value with three decimals, or that it is below 0.001.

    Examples
    --------
    >>> p_text(0.03), p_text(0.00009999)
    ('0.030', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def interval_text(low: float, high: float, digits: int = 4) -> str:
    """Return the ends of an interval of differences, with their signs.

    Examples
    --------
    >>> interval_text(-0.01, 0.0213)
    '-0.0100 to +0.0213'
    """
    return f"{low:+.{digits}f} to {high:+.{digits}f}"


def listed(values: Iterable[Any]) -> str:
    """Return values with commas between them.

    Examples
    --------
    >>> listed([1, 2, 5])
    '1, 2, 5'
    """
    return ", ".join(map(str, values))


def counted(n: int, what: str) -> str:
    """Return a number with the noun that it counts, in the plural unless it is 1.

    Examples
    --------
    >>> counted(1, "run"), counted(1200, "tree")
    ('1 run', '1,200 trees')
    """
    return f"{n:,} {what}{'s' * (n != 1)}"


# The report of a study: a page in Markdown, tables as CSV and LaTeX, figures as PNG and SVG, and everything as JSON.


@dataclass(frozen=True)
class Report:
    """Tables and figures of a study.

    Parameters
    ----------
    title : str
    summary : str
        The outcome in a few sentences.
    tables : sequence of Table
        The main table, which commands print, comes first.
    figures : sequence of Figure
    differences : sequence of str, optional
        What was done otherwise than in the paper, a sentence or two each.
    facts : mapping, optional
        Further numbers for `results.json`.
    """

    title: str
    summary: str
    tables: Sequence[Table]
    figures: Sequence[Figure]
    differences: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def write(
        self, folder: Path, *, environment: Mapping[str, Any], of_runs: Sequence[Mapping[str, Any]] = ()
    ) -> list[Path]:
        """Write all files into a folder and return their paths, the page first.

        Parameters
        ----------
        folder : Path
            Made when it is not there.
        environment : mapping
            Machine and versions that the page is made with.
        of_runs : sequence of mappings, optional
            Machine and versions that each run was made with.
        """
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / "report.md"]
        for table in self.tables:
            for ending, text in ("csv", table.csv()), ("md", table.markdown() + "\n"), ("tex", table.latex()):
                written.append(folder / f"{table.name}.{ending}")
                _write(written[-1], text)
        for figure in self.figures if can_draw() else ():
            written += write_figure(figure, folder)
        whole = {
            "title": self.title,
            "summary": self.summary,
            "differences": list(self.differences),
            "tables": {table.name: table.as_dict() for table in self.tables},
            "facts": dict(self.facts),
            "environment": dict(environment),
            "made": _made(environment, of_runs),
        }
        written.append(folder / "results.json")
        _write(written[-1], json.dumps(whole, indent=2, allow_nan=False) + "\n")
        _write(written[0], self.markdown(environment, of_runs))
        return written

    def markdown(self, environment: Mapping[str, Any], of_runs: Sequence[Mapping[str, Any]] = ()) -> str:
        """Return the page: summary, tables, figures, differences from the paper, and how it was made."""
        parts = [f"# {_one_line(self.title)}", self.summary, *(table.markdown() for table in self.tables)]
        if can_draw():
            parts += [f"![{figure.caption}]({figure.name}.png)\n\n{figure.caption}" for figure in self.figures]
        if self.differences:
            parts.append("## What differs from the paper\n\n" + "\n".join(f"- {line}" for line in self.differences))
        machine = ", ".join(f"{name} {value}" for name, value in environment.items())
        parts.append(
            "## How it was made\n\nEvery run with its parameters, seed, versions and machine is in `runs.jsonl`. "
            f"This page: {machine}." + "".join(f" {sentence}" for sentence in _made(environment, of_runs))
        )
        return _as_data("\n\n".join(parts) + "\n")


def _made(environment: Mapping[str, Any], of_runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return sentences on the machines and versions of runs, where they are not those of the page.

    Examples
    --------
    >>> _made({"cpu": "A"}, [{"cpu": "A", "workers": 1}])
    []
    >>> _made({"cpu": "A"}, [{"cpu": "A", "workers": 2}, {"cpu": "B", "rankwood": "0.1"}])
    ['Runs were made on A (1), and B, rankwood 0.1 (1).', '1 of 2 runs were made several at a time; scoring is \
not timed in such runs, and training by CPU time.']
    """
    made = Counter(map(_machine, of_runs))
    sentences = []
    if made and set(made) != {_machine(environment)}:
        sentences.append(f"Runs were made on {', and '.join(f'{where} ({n:,})' for where, n in made.items())}.")
    n_busy = sum(one.get("workers", 1) > 1 for one in of_runs)
    if n_busy:
        sentences.append(
            f"{n_busy:,} of {len(of_runs):,} runs were made several at a time; scoring is not timed in such runs, and "
            "training by CPU time."
        )
    return sentences


def _machine(environment: Mapping[str, Any]) -> str:
    """Return the CPU, instruction set and version, which results and times may depend on."""
    named = [("cpu", ""), ("instruction_set", ""), ("rankwood", "rankwood ")]
    known = [f"{word}{environment[name]}" for name, word in named if environment.get(name)]
    return ", ".join(known) or "an unknown machine"


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode(errors="backslashreplace"))  # the name of a folder may be no UTF-8


# Studies: a list of runs, each a pure function of its configuration, and a report of their results.
#
#   run: training, measuring   | worker 1 | worker 2 | ...     several at a time; models that are to be timed are saved
#   run: timing                | one after the other           afterwards, when nothing else keeps the machine busy


Runs = Sequence[tuple[Config, Mapping[str, Any]]]
AnyStudy = TypeVar("AnyStudy", bound="Study")
Anything = TypeVar("Anything")


@dataclasses.dataclass(frozen=True)
class Study(ABC):
    """An experiment, as a frozen dataclass of its settings.

    A study says which runs it consists of, does one of them (`run`), and makes tables and figures of all (`report`).
    A run is a pure function of its configuration; what it keeps for the next one is in `_kept`.

    Parameters
    ----------
    source : Source
        The folds.
    folds : sequence of int
        Numbers of the folds to use.
    n_threads : int, optional
        Threads of each run; they change times, never results.
    models : Path, optional
        Folder of the models that are to be timed. `runs` takes one beside its table unless given.
    """

    name: ClassVar[str]

    source: Source
    folds: Sequence[int]
    n_threads: int | None = dataclasses.field(default=None, kw_only=True)
    models: Path | None = dataclasses.field(default=None, kw_only=True)
    _kept: Kept = dataclasses.field(default_factory=Kept, repr=False, compare=False, kw_only=True)

    @abstractmethod
    def side_by_side(self) -> list[Config]:
        """Return the runs that workers may do at the same time; runs that share data follow each other."""

    def alone(self) -> list[Config]:
        """Return the runs that time models, which are done last and one after the other."""
        return []

    def configs(self) -> list[Config]:
        """Return all runs."""
        return [*self.side_by_side(), *self.alone()]

    @abstractmethod
    def run(self, config: Config) -> Result:
        """Do one run and return its result, which JSON can hold."""

    @abstractmethod
    def report(self, runs: Runs) -> Report:
        """Return tables and figures of all runs."""

    def runs(self, table: RunTable, *, n_workers: int = 1, client: Any = None, on_run: OnRun | None = None) -> Runs:
        """Do the runs that the table does not have yet, and return all of them in the order of `configs`.

        Parameters
        ----------
        table : RunTable
            Where results are kept; only this process writes to it.
        n_workers : int, default 1
            Processes of this machine that do runs at the same time.
        client : distributed.Client, optional
            A Dask cluster whose workers do them instead. What times models is done here in any case.
        on_run : callable, optional
            Called with the number of runs done and of all.
        """
        if self.models is None and self.alone():
            saving = dataclasses.replace(self, models=table.path.parent / "models")
            return saving.runs(table, n_workers=n_workers, client=client, on_run=on_run)
        workers_of(n_workers, client)  # refuses both
        configs = self.configs()
        tell: OnRun | None = None if on_run is None else lambda done, _: on_run(done, len(configs))
        if client is not None:
            self._on_cluster(table, client, tell)
        elif n_workers > 1:
            study = self.with_threads(share_threads(self.n_threads, n_workers))
            noted = environment(study.n_threads, n_workers)
            run_all(study.side_by_side(), study.run, table, n_workers=n_workers, environment=noted, on_run=tell)
        found = run_all(configs, self.run, table, environment=environment(self.n_threads, 1), on_run=on_run)
        self._kept.clear()
        return list(zip(configs, found, strict=True))

    def _on_cluster(self, table: RunTable, client: Any, on_run: OnRun | None) -> None:
        """Do the runs that may be done at the same time on a Dask cluster, with all threads of its workers."""
        known, configs = table.results(), self.side_by_side()
        if all(run_key(config) in known for config in configs):
            return
        nthreads = client.nthreads()
        study = self.with_threads(self.n_threads or min(nthreads.values(), default=1))
        noted = {"threads": study.n_threads, "workers": len(nthreads)}
        with source_for(client, study.source, self.folds) as source:
            study = dataclasses.replace(study, source=source)
            run: Run = study.run
            receive: Callable[[Any], Result] | None = None
            if self.models is not None and not _is_seen(client, self.models):
                run, receive = partial(_run_and_send, study), partial(_receive, self.models)
            run_all(configs, run, table, client=client, receive=receive, environment=noted, on_run=on_run)

    def with_threads(self: AnyStudy, n_threads: int | None) -> AnyStudy:
        """Return the same study with another number of threads for each run."""
        if n_threads == self.n_threads:
            return self
        source: Any = self.source
        if hasattr(source, "n_threads"):
            source = dataclasses.replace(source, n_threads=n_threads)
        return dataclasses.replace(self, source=source, n_threads=n_threads)

    def fold_data(self, fold: int) -> FoldData:
        """Return the data of a fold; the latest stays in memory."""
        return self._kept.get("data", fold, lambda: self.source.load(fold))  # type: ignore[no-any-return]

    def save_models(self, made_by: Config, models: Mapping[str, Ensemble]) -> None:
        """Write models to the folder of models, if there is one, under the run that made them."""
        if self.models is not None:
            self.models.mkdir(parents=True, exist_ok=True)
            for name, model in models.items():
                model.save(_model_path(self.models, made_by, name))

    def saved_models(self, made_by: Config, names: Sequence[str]) -> dict[str, Ensemble] | None:
        """Read models of a run, by name, from the folder of models; None unless all of them are there."""
        if self.models is None:
            return None
        paths = {name: _model_path(self.models, made_by, name) for name in names}
        if not all(path.exists() for path in paths.values()):
            return None
        return {name: Ensemble.load(path) for name, path in paths.items()}


def _model_path(folder: Path, made_by: Config, name: str) -> Path:
    return folder / f"{run_key(made_by)}-{name}.rw"


# Models of runs on workers that do not see the folder of models come back with the result.


def _is_seen(client: Any, folder: Path) -> bool:
    """Whether all workers of a Dask cluster see a folder of this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder.resolve(), prefix=".seen-") as mark:
        return sees_all(client, [Path(mark.name)])


def _run_and_send(study: Study, config: Config) -> tuple[Result, dict[str, bytes]]:
    """Do a run on a Dask worker, and return its result and the files of the models that it saved."""
    distributed = import_distributed("a Dask worker")
    folder = Path(distributed.get_worker().local_directory) / "rankwood-models"
    result = dataclasses.replace(study, models=folder).run(config)
    return result, {path.name: path.read_bytes() for path in folder.glob(f"{run_key(config)}-*.rw")}


def _receive(folder: Path, sent: tuple[Result, Mapping[str, bytes]]) -> Result:
    """Write the models of a run, and return its result."""
    result, models = sent
    for name, content in models.items():
        with atomic_write(folder / name) as file:
            file.write(content)
    return result


def cpu_timed(work: Callable[[], Anything]) -> tuple[Anything, float]:
    """Return what a call returns, and the CPU seconds that all threads of this process spent meanwhile.

    Runs in other processes hardly change CPU time, so it may be taken in runs that are done at the same time.
    """
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def time_scoring(models: Mapping[str, Ensemble | OtherModel], data: Dataset) -> tuple[dict[str, float], Result]:
    """Return microseconds per document of models by name, called in turn, and the conditions of the measurement.

    The order of features is that of the first model.
    """
    X = aligned_features(next(model for model in models.values() if isinstance(model, Ensemble)), data)
    timings = time_models([(model, X) for model in models.values()])
    warn_if_busy(timings)
    times = {name: timing.us_per_doc for name, timing in zip(models, timings, strict=True)}
    return times, timings[0].conditions | {"busy": any(timing.busy for timing in timings)}


def mean_and_half(values: Sequence[float] | FloatArray) -> tuple[float, float | None]:
    """Return the mean, and half of its 95 % interval (Student's t), or None instead with fewer than three values.

    Examples
    --------
    >>> [round(number, 3) for number in mean_and_half([1.0, 2.0, 3.0])]
    [2.0, 2.484]
    >>> mean_and_half([1.0, 3.0])
    (2.0, None)
    """
    from scipy.special import stdtrit

    mean, n = float(np.mean(values)), len(values)
    if n < 3:
        return mean, None
    return mean, float(stdtrit(n - 1, 0.975)) * float(np.std(values, ddof=1)) / n**0.5


def half_interval(first: FloatArray, second: FloatArray) -> float:
    """Return half of the 95 % interval of the mean difference of paired values; 0 with fewer than three pairs.

    Examples
    --------
    >>> round(half_interval(np.array([0.1, 0.2, 0.3]), np.array([0.2, 0.4, 0.6])), 4)
    0.2484
    """
    differences = second - first
    return mean_and_half(differences[~np.isnan(differences)])[1] or 0.0


def query_values(folds: Iterable[Any]) -> FloatArray:
    """Return the values of the queries of all folds, each query's mean over the runs of its fold.

    Parameters
    ----------
    folds : iterable of sequences of sequences of float
        For every fold the runs, and for every run the values of its queries.

    Examples
    --------
    >>> query_values([[[0.0, 1.0], [1.0, 1.0]], [[0.25]]]).tolist()
    [0.5, 1.0, 0.25]
    """
    return np.concatenate([np.mean(runs, axis=0) for runs in folds])
