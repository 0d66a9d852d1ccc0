"""Reading of the WordNet database: synsets with their pointers, words of the index, and irregular forms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rankwood.errors import DataError

DEBIAN_FOLDER = Path("/usr/share/wordnet")  # where Debian's package wordnet-base puts the database
PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}  # the files' names and the letters in pointers
INFLECTED = ("noun", "verb", "adj")  # parts of speech whose index and exceptions are read
_ENCODING = "latin-1"
_MARKER = re.compile(r"\(\w+\)$")  # where an adjective stands: galore(ip)
_EXAMPLE = re.compile(r'"([^"]*)"')
_EXAMPLE_AND_BEFORE = re.compile(r'[;,]?\s*"[^"]*"')
_END = re.compile(r"[\s;:,]+$")


class Pointer(NamedTuple):
    """A relation to another synset: its symbol in the database, and the number of the synset."""

    symbol: str
    target: int


@dataclass(frozen=True)
class Synset:
    """A set of synonyms: one document of the collection.

    Parameters
    ----------
    part : str
        Part of speech: n, v, a or r.
    is_satellite : bool
        Whether it is an adjective of the cluster around another.
    file : int
        Number of the lexicographers' file.
    lemmas : list of str
        The synonyms.
    gloss : str
        The definition, without examples.
    examples : list of str
        Sentences and phrases that the gloss quotes.
    pointers : list of Pointer
        Relations to other synsets.
    """

    part: str
    is_satellite: bool
    file: int
    lemmas: list[str]
    gloss: str
    examples: list[str]
    pointers: list[Pointer] = field(default_factory=list)


@dataclass(frozen=True)
class Database:
    """What is used of the WordNet database.

    Parameters
    ----------
    synsets : list of Synset
        In the order of the files; pointers are positions in it.
    words : dict of str to set of str
        Words of the index of nouns, verbs and adjectives.
    irregular : dict of str to str
        Base forms that no rule gives.
    licence : str
        The terms at the head of the files, which go with every copy.
    """

    synsets: list[Synset]
    words: dict[str, set[str]]
    irregular: dict[str, str]
    licence: str


def require_database(folder: Path) -> None:
    """Raise a DataError that says what to install when a file of the database is missing."""
    needed = [f"data.{name}" for name in PARTS]
    needed += [file for name in INFLECTED for file in (f"index.{name}", f"{name}.exc")]
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing:
        raise DataError(
            f"there is no WordNet database in {folder} (no {missing[0]}): install Debian's package wordnet-base, "
            "or give the folder of the database (--wordnet DIR)"
        )


def read_database(folder: Path) -> Database:
    """Read the database in a folder."""
    require_database(folder)
    licence = "\n".join(line[2:].partition(" ")[2].rstrip() for _, line in _lines(folder / "data.noun", head=True))
    words: dict[str, set[str]] = {}
    irregular: dict[str, str] = {}
    for name in INFLECTED:
        words[name] = {line.partition(" ")[0] for _, line in _lines(folder / f"index.{name}")}
        for number, line in _lines(folder / f"{name}.exc"):
            try:
                form, base = line.split()[:2]
            except ValueError:
                raise _not_understood(folder / f"{name}.exc", number) from None
            if "_" not in form:
                irregular.setdefault(form, base)
    return Database(read_synsets(folder), words, irregular, licence + "\n")


def read_synsets(folder: Path) -> list[Synset]:
    """Read the synsets of all parts of speech."""
    synsets: list[Synset] = []
    number_of: dict[tuple[str, int], int] = {}  # by part of speech and place in its file, as pointers name synsets
    pointers: list[list[tuple[str, str, int]]] = []
    for name, part in PARTS.items():
        path = folder / f"data.{name}"
        for number, line in _lines(path):
            try:
                place, synset, its_pointers = _parse(part, line)
            except (ValueError, IndexError):
                raise _not_understood(path, number) from None
            number_of[part, place] = len(synsets)
            synsets.append(synset)
            pointers.append(its_pointers)
    for synset, its_pointers in zip(synsets, pointers, strict=True):
        for symbol, part, place in its_pointers:
            target = number_of.get(("a" if part == "s" else part, place))
            if target is None:
                raise DataError(
                    f"{folder}: {synset.lemmas[0]!r} points to {part} {place:08d}, where no synset is: "
                    "the files of the database do not belong together"
                )
            synset.pointers.append(Pointer(symbol, target))
    return synsets


def _parse(part: str, line: str) -> tuple[int, Synset, list[tuple[str, str, int]]]:
    """Return the place of a synset in its file, the synset, and its pointers as symbol, part of speech and place.

    A line is, with the number of lemmas in hexadecimal::

        place file kind n_lemmas (lemma number)... n_pointers (symbol place part words)... | gloss
    """
    left, _, gloss = line.partition(" | ")
    fields = left.split(" ")
    end = 4 + 2 * int(fields[3], 16)
    lemmas = [_MARKER.sub("", word).replace("_", " ") for word in fields[4:end:2]]
    starts = range(end + 1, end + 1 + 4 * int(fields[end]), 4)
    pointers = [(fields[start], fields[start + 2], int(fields[start + 1])) for start in starts]
    definition = _END.sub("", _EXAMPLE_AND_BEFORE.sub("", gloss).strip())
    synset = Synset(part, fields[2] == "s", int(fields[1]), lemmas, definition, _EXAMPLE.findall(gloss))
    if not all(lemmas) or not lemmas:
        raise ValueError("a synset without a lemma")
    return int(fields[0]), synset, pointers


def _lines(path: Path, *, head: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers: those of the licence at its head, or all others."""
    with path.open(encoding=_ENCODING) as file:
        for number, line in enumerate(file, start=1):
            if line.startswith("  ") == head:
                yield number, line.rstrip("\n")


def _not_understood(path: Path, number: int) -> DataError:
    return DataError(f"{path}, line {number}: not understood; it should be a file of WordNet 3.0's database")
