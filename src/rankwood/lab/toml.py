"""Tables of a TOML file, read key by key: what is unknown or of the wrong type is an error that names its key."""

from __future__ import annotations

import difflib
import math
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankwood.errors import RankwoodError
from rankwood.lab.extra import need


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a TOML file."""
    tomllib = need("tomllib" if sys.version_info >= (3, 11) else "tomli", "reading a sweep")
    content = Path(path).read_bytes()
    try:
        found: dict[str, Any] = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise RankwoodError(f"{path} is no text in UTF-8, which TOML is") from None
    except tomllib.TOMLDecodeError as error:
        raise RankwoodError(f"{path} is no TOML: {error}") from None
    return found


class Keys:
    """One table of a TOML file, read entry by entry; an entry of the wrong type is an error that names its key.

    Parameters
    ----------
    entries : mapping
        The table.
    where : str, default ""
        Path of the table, which precedes its keys in errors.

    Examples
    --------
    >>> keys = Keys({"rates": [0.5], "acept": "quality"}, "prune")
    >>> keys.numbers("rates")
    [0.5]
    >>> keys.check({"rates", "accept"})
    Traceback (most recent call last):
    rankwood.errors.RankwoodError: prune.acept is not known (did you mean accept?): there are accept, rates
    """

    def __init__(self, entries: Mapping[str, Any], where: str = "") -> None:
        self.entries, self.where = entries, where

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def key(self, name: str) -> str:
        """Return a key with the path of its table."""
        return f"{self.where}.{name}" if self.where else name

    def check(self, known: Collection[str]) -> None:
        """Raise an error for the first key that is not known."""
        for name in self.entries:
            if name not in known:
                near = difflib.get_close_matches(name, sorted(known), n=2, cutoff=0.7)
                hint = f" (did you mean {' or '.join(near)}?)" if near else ""
                names = ", ".join(sorted(known))
                raise RankwoodError(f"{self.key(name)} is not known{hint}: there are {names}")

    def check_finite(self) -> None:
        """Raise an error for inf and nan, which TOML has, at any depth.

        Examples
        --------
        >>> Keys({"grid": {"learning_rate": [0.1, float("inf")]}}).check_finite()
        Traceback (most recent call last):
        rankwood.errors.RankwoodError: grid.learning_rate must be finite, got inf
        """
        for name, value in self.entries.items():
            _check_finite(value, self.key(name))

    def text(self, name: str, default: Any = None) -> Any:
        """Return a text."""
        return self._one(name, "a text", lambda value: isinstance(value, str), default)

    def flag(self, name: str, default: bool) -> bool:
        """Return true or false."""
        return bool(self._one(name, "true or false", lambda value: isinstance(value, bool), default))

    def count(self, name: str, default: Any = None) -> Any:
        """Return a whole number above 0."""
        return self._one(name, "a whole number above 0", lambda value: is_whole(value) and value > 0, default)

    def number(self, name: str, default: Any = None) -> Any:
        """Return a number."""
        return self._one(name, "a number", _is_number, default)

    def texts(self, name: str, default: Any = None) -> Any:
        """Return a text or a list of texts as a list."""
        return self._many(name, "a text or a list of texts", lambda value: isinstance(value, str), default)

    def numbers(self, name: str, default: Any = None) -> Any:
        """Return a number or a list of numbers as a list."""
        return self._many(name, "a number or a list of numbers", _is_number, default)

    def table(self, name: str) -> Keys:
        """Return a table inside this one; empty when it is not there."""
        found = self._one(name, f"a table, [{self.key(name)}]", lambda value: isinstance(value, Mapping), {})
        return Keys(found, self.key(name))

    def tables(self, name: str) -> list[Keys]:
        """Return an array of tables."""
        found = self.entries.get(name, [])
        if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
            raise RankwoodError(f"{self.key(name)} must be a list of tables, each [[{self.key(name)}]]")
        return [Keys(one, f"{self.key(name)}[{number}]") for number, one in enumerate(found, start=1)]

    def _one(self, name: str, words: str, holds: Callable[[Any], bool], default: Any) -> Any:
        """Return an entry for which `holds` is true; `words` say what it must be."""
        value = self.entries.get(name, default)
        if name in self.entries and not holds(value):
            raise RankwoodError(f"{self.key(name)} must be {words}, got {value!r:.80}")
        return value

    def _many(self, name: str, words: str, holds: Callable[[Any], bool], default: Any) -> Any:
        """Return an entry, or every entry of a list, for which `holds` is true, as a list."""
        if name not in self.entries:
            return default
        value = self.entries[name]
        listed = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        if not listed or not all(holds(one) for one in listed):
            raise RankwoodError(f"{self.key(name)} must be {words}, got {value!r:.80}")
        return list(listed)


def _check_finite(value: Any, place: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise RankwoodError(f"{place} must be finite, got {value}")
    if isinstance(value, Mapping):
        Keys(value, place).check_finite()
    elif isinstance(value, list):
        for number, one in enumerate(value, start=1):
            _check_finite(one, f"{place}[{number}]" if isinstance(one, Mapping) else place)


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number; Python takes True for one.

    Examples
    --------
    >>> is_whole(3), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
