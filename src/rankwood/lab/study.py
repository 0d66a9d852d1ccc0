"""A study: the folds it works on, its runs, and what is written of it."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from rankwood.atomic import atomic_write
from rankwood.data.dataset import Dataset
from rankwood.data.folds import Fold, find_folds
from rankwood.errors import DataError, RankwoodError
from rankwood.lab.drawing import Figure, can_draw, write_figure
from rankwood.lab.runs import Config, Kept, OnRun, Result, RunTable, run_all, share_threads
from rankwood.system import environment

# Where the folds of a study come from: files, or synthetic data.


@dataclass(frozen=True)
class FoldData:
    """The three parts of one fold."""

    train: Dataset
    valid: Dataset
    test: Dataset


class Source(Protocol):
    """Folds, by number from 1. `identify` says which data a fold is, for the configuration of a run."""

    @property
    def name(self) -> str: ...
    @property
    def n_folds(self) -> int: ...
    def identify(self, fold: int) -> dict[str, Any]: ...
    def load(self, fold: int) -> FoldData: ...


@dataclass(frozen=True)
class FileFolds:
    """Folds in files. A fold is known by the digest of its files."""

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
        """The folds in a folder, as `find_folds` finds them, under the paper's name when the path has one."""
        folder = Path(directory)
        return cls(known_name(folder) or folder.resolve().name, tuple(find_folds(folder)), n_threads)

    @property
    def n_folds(self) -> int:
        return len(self.folds)

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
class SyntheticFolds:
    """Synthetic data in five parts, of which fold i trains on three, validates on the next and tests on the last.

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


def open_source(directory: str | Path | None, *, quick: bool = False, n_threads: int | None = None) -> Source:
    """The folds in `directory`; MSLR-shaped synthetic data when there is none."""
    if directory is not None:
        return FileFolds.find(directory, n_threads=n_threads)
    if quick:
        return SyntheticFolds(n_queries=100, docs_per_query=20, n_features=20, n_threads=n_threads)
    return SyntheticFolds(n_queries=500, docs_per_query=60, n_features=136, n_threads=n_threads)


def known_name(path: str | Path) -> str | None:
    """The data set of the papers that a path is about, if any.

    The folder's name counts, and that of the one it lies in.

    >>> known_name("data/ohsumed/QueryLevelNorm"), known_name("MQ2008/"), known_name("ohsumed-2/data/mine")
    ('OHSUMED', 'MQ2008', None)
    """
    for part in reversed(Path(path).resolve().parts[-2:]):
        for name in ("OHSUMED", "MQ2008", "MQ2007", "MSLR-WEB10K", "MSLR-WEB30K", "MSLR"):
            if re.search(name, part, re.I):
                return name
    return None


def parse_folds(text: str | Sequence[int] | None, n_folds: int) -> list[int]:
    """Numbers of folds from text such as `1..5`, `1-3` or `1,4`; all when there is none.

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


# Tables to print: rows of text as Markdown, CSV and LaTeX.


@dataclass(frozen=True)
class Table:
    """Rows of text under columns. `name` is that of its files; `note` says what the numbers are.

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

    def markdown(self) -> str:
        lines = [self.columns, [":---", *["---:"] * (len(self.columns) - 1)], *self.rows]
        table = "\n".join(
            f"| {' | '.join(_one_line(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines
        )
        return "\n\n".join(part for part in (f"**{_one_line(self.title)}**", table, self.note) if part)

    def csv(self) -> str:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerows([self.columns, *self.rows])
        return buffer.getvalue()

    def latex(self) -> str:
        body = [
            rf"\begin{{table}}\caption{{{_escape(_one_line(self.title))}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}\hline",
            _latex_row(self.columns) + r" \hline",
            *map(_latex_row, self.rows),
            r"\hline\end{tabular}",
        ]
        if self.note:
            body.append(rf"\\ \footnotesize {_escape(self.note)}")
        return "\n".join([*body, r"\end{table}", ""])

    def as_dict(self) -> dict[str, Any]:
        return {"title": self.title, "columns": list(self.columns), "rows": [list(r) for r in self.rows],
                "note": self.note}  # fmt: skip


def _one_line(text: str) -> str:
    """Text as a cell can hold it: line breaks would end the row."""
    return " ".join(text.split())


def _latex_row(cells: Sequence[str]) -> str:
    r"""
    >>> print(_latex_row(["[1, 2]", "5 %"]))
    {[}1, 2] & 5 \% \\
    """
    text = " & ".join(_escape(_one_line(cell)) for cell in cells)
    if text.startswith(("[", "*")):  # which the \\ of the row before would take for its own
        text = f"{{{text[0]}}}{text[1:]}"
    return text + r" \\"


def _escape(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {character: "\\" + character for character in "&%$#_{}"}
    special |= {"±": r"$\pm$", "≥": r"$\ge$", "≤": r"$\le$", "<": "$<$", ">": "$>$", "−": "$-$", "–": "--"}
    return "".join(special.get(character, character) for character in text)


def with_spread(mean: float, std: float | None, digits: int = 4) -> str:
    """A mean, and in brackets its standard deviation, as the papers write them.

    >>> with_spread(0.44321, 0.0021), with_spread(0.5, None)
    ('0.4432 (0.0021)', '0.5000')
    """
    return f"{mean:.{digits}f}" if std is None else f"{mean:.{digits}f} ({std:.{digits}f})"


def p_text(p: float) -> str:
    """A p-value.

    >>> p_text(0.03), p_text(0.00009999)
    ('0.030', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


# What a study leaves behind: a page in Markdown, tables as CSV and LaTeX, figures as PNG and SVG, all as JSON.


@dataclass(frozen=True)
class Report:
    """Tables and figures of a study, the main table first; `differences` is what is not as in its paper, if any."""

    title: str
    summary: str
    tables: Sequence[Table]
    figures: Sequence[Figure]
    differences: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def write(
        self, folder: Path, *, environment: Mapping[str, Any], of_runs: Sequence[Mapping[str, Any]] = ()
    ) -> list[Path]:
        """Write all files into `folder`; their paths, the page first.

        `environment` is what the page is made with, `of_runs` what each run was made with.
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
        parts = [f"# {self.title}", self.summary, *(table.markdown() for table in self.tables)]
        if can_draw():
            parts += [f"![{figure.caption}]({figure.name}.png)\n\n{figure.caption}" for figure in self.figures]
        if self.differences:
            parts.append("## What differs from the paper\n\n" + "\n".join(f"- {line}" for line in self.differences))
        machine = ", ".join(f"{name} {value}" for name, value in environment.items())
        parts.append(
            "## How it was made\n\nEvery run with its parameters, seed, versions and machine is in `runs.jsonl`. "
            f"This page: {machine}." + "".join(f" {sentence}" for sentence in _made(environment, of_runs))
        )
        return "\n\n".join(parts) + "\n"


def _made(environment: Mapping[str, Any], of_runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences on what runs were made with, where that is not what the page says of itself, or differs among them.

    >>> _made({"cpu": "A"}, [{"cpu": "A", "workers": 1}])
    []
    >>> _made({"cpu": "A"}, [{"cpu": "A", "workers": 2}, {"cpu": "B", "rankwood": "0.1"}])
    ['Runs were made on A (1), and B, rankwood 0.1 (1).', '1 of 2 runs were made several at a time: times measured in \
them are those of a busy machine.']
    """
    made = Counter(map(_machine, of_runs))
    sentences = []
    if made and set(made) != {_machine(environment)}:
        sentences.append(f"Runs were made on {', and '.join(f'{where} ({n:,})' for where, n in made.items())}.")
    n_busy = sum(one.get("workers", 1) > 1 for one in of_runs)
    if n_busy:
        sentences.append(
            f"{n_busy:,} of {len(of_runs):,} runs were made several at a time: times measured in them are those of a "
            "busy machine."
        )
    return sentences


def _machine(environment: Mapping[str, Any]) -> str:
    """What results and times may depend on."""
    named = [("cpu", ""), ("instruction_set", ""), ("rankwood", "rankwood ")]
    known = [f"{word}{environment[name]}" for name, word in named if environment.get(name)]
    return ", ".join(known) or "an unknown machine"


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode(errors="backslashreplace"))  # the name of a folder may be no UTF-8


# What all studies have in common: runs to do, and what becomes of them.


Runs = Sequence[tuple[Config, Mapping[str, Any]]]
AnyStudy = TypeVar("AnyStudy", bound="Study")


@dataclasses.dataclass(frozen=True)
class Study(ABC):
    """An experiment: a frozen dataclass of its settings.

    A study says which runs it consists of (`configs`), does one of them (`run`), and makes tables and figures of all
    (`report`). A run is a pure function of its configuration: what it keeps for the next is in `_kept`.

    source      the folds
    folds       numbers of those to use
    n_threads   of each run; it changes times, never results
    """

    name: ClassVar[str]

    source: Source
    folds: Sequence[int]
    n_threads: int | None = dataclasses.field(default=None, kw_only=True)
    _kept: Kept = dataclasses.field(default_factory=Kept, repr=False, compare=False, kw_only=True)

    @abstractmethod
    def configs(self) -> list[Config]:
        """The runs, in an order in which those that share data follow each other."""

    @abstractmethod
    def run(self, config: Config) -> Result:
        """Do one of them; the result is what JSON can hold."""

    @abstractmethod
    def report(self, runs: Runs) -> Report:
        """Tables and figures of all runs."""

    def side_by_side(self) -> list[Config]:
        """The runs that workers may do at once: all, unless some measure times and want the machine for themselves."""
        return self.configs()

    def runs(self, table: RunTable, *, n_workers: int = 1, on_run: OnRun | None = None) -> Runs:
        """Do the runs that the table does not have yet, what must be alone last; all of them, in order."""
        configs = self.configs()
        if n_workers > 1:
            study = self.with_threads(share_threads(self.n_threads, n_workers))
            tell: OnRun | None = None if on_run is None else lambda done, _: on_run(done, len(configs))
            noted = environment(study.n_threads, n_workers)
            run_all(study.side_by_side(), study.run, table, n_workers=n_workers, environment=noted, on_run=tell)
        found = run_all(configs, self.run, table, environment=environment(self.n_threads, 1), on_run=on_run)
        self._kept.clear()
        return list(zip(configs, found, strict=True))

    def with_threads(self: AnyStudy, n_threads: int | None) -> AnyStudy:
        """The same study, with so many threads for a run."""
        if n_threads == self.n_threads:
            return self
        source: Any = self.source
        if hasattr(source, "n_threads"):
            source = dataclasses.replace(source, n_threads=n_threads)
        return dataclasses.replace(self, source=source, n_threads=n_threads)
