"""Small databases in the format of WordNet's files: written by hand, or at random."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

NAMES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
LICENCE = ("This is a toy.", "Keep this notice.")


@dataclass(frozen=True)
class Entry:
    """A synset to write; `pointers` are pairs of a symbol and the first lemma of another with its part."""

    lemmas: str  # with blanks between them, and underscores within
    gloss: str
    pointers: str = ""  # such as "@ animal + bark.v"
    part: str = "n"
    file: int = 3
    satellite: bool = False

    @property
    def name(self) -> str:
        return f"{self.lemmas.split()[0].partition('(')[0]}.{self.part}"


def write_database(folder: Path, entries: Iterable[Entry], irregular: Mapping[str, str] | None = None) -> Path:
    """Write all files that are read of a database, and return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    by_part: dict[str, list[Entry]] = {part: [] for part in NAMES}
    for entry in entries:
        by_part[entry.part].append(entry)
    place = {entry.name: 100 * (i + 1) for its in by_part.values() for i, entry in enumerate(its)}
    head = [f"  {number} {line}  " for number, line in enumerate(LICENCE, start=1)]
    for part, its in by_part.items():
        data = [_line(entry, place) for entry in its]
        words = sorted({lemma.partition("(")[0].lower() for entry in its for lemma in entry.lemmas.split()})
        index = [f"{word} {part} 1 0 1 0 00000000  " for word in words]
        for kind, lines in (("data", data), ("index", index)):
            (folder / f"{kind}.{NAMES[part]}").write_text("\n".join([*head, *lines, ""]), encoding="latin-1")
        forms = [f"{form} {base}\n" for form, base in (irregular or {}).items()] if part == "n" else []
        (folder / f"{NAMES[part]}.exc").write_text("".join(forms), encoding="latin-1")
    return folder


def _line(entry: Entry, place: Mapping[str, int]) -> str:
    lemmas, words = entry.lemmas.split(), entry.pointers.split()
    pointers = []
    for symbol, name in zip(words[::2], words[1::2], strict=True):
        full = name if "." in name else f"{name}.n"
        pointers.append(f"{symbol} {place[full]:08d} {full[-1]} 0000")
    kind = "s" if entry.satellite else entry.part
    fields = [f"{place[entry.name]:08d} {entry.file:02d} {kind} {len(lemmas):02x}", *(f"{one} 0" for one in lemmas)]
    return " ".join([*fields, f"{len(pointers):03d}", *pointers, "|", entry.gloss]) + "  "


VOCABULARY = "bird boat bread cloud dance fish fruit glass green house light metal money music night paper"
VOCABULARY += " plant river round sharp small stone sugar table the of water wheel white winter wooden"


def random_entries(seed: int, n_nouns: int = 60, n_others: int = 15) -> list[Entry]:
    """Synsets with few words, so that they match each other, in a tree of nouns and with pointers of all kinds."""
    rng = np.random.default_rng(seed)
    vocabulary = VOCABULARY.split()

    def words(fewest: int, most: int) -> list[str]:
        return [str(word) for word in rng.choice(vocabulary, int(rng.integers(fewest, most + 1)))]

    def gloss() -> str:
        text = " ".join(words(0, 7))
        examples = [f'"{" ".join(words(1, 4))}"' for _ in range(int(rng.integers(0, 3)))]
        return "; ".join(filter(None, [text, *examples]))

    entries: list[Entry] = []
    for number in range(n_nouns + 2 * n_others):
        part = "n" if number < n_nouns else "v" if number < n_nouns + n_others else "a"
        mine = [entry for entry in entries if entry.part == part]
        pointers = []
        if mine and part != "a" and rng.random() < 0.95:
            pointers += ["@", mine[int(rng.integers(len(mine)))].name]
        if part == "a" and rng.random() < 0.5:
            pointers += ["&", mine[int(rng.integers(len(mine)))].name] if mine else []
        for symbol in ("+", "\\" if part == "a" else "!", ";c", "^"):
            if entries and rng.random() < 0.15:
                pointers += [symbol, entries[int(rng.integers(len(entries)))].name]
        lemmas = [f"Name{number}", *("_".join(words(1, 3)) for _ in range(int(rng.integers(0, 3))))]
        entries.append(
            Entry(" ".join(lemmas), gloss(), " ".join(pointers), part, int(rng.integers(3, 6)), rng.random() < 0.5)
        )
    return entries
