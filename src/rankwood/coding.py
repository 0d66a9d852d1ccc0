"""Categories as codes: a model that was trained on them compares their numbers, and data may have them as texts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import DataError, one_line

# What a column of data holds: numbers, texts, or categories as pandas has them.
Kind: TypeAlias = Literal["number", "text", "category"]


@dataclass(frozen=True)
class Codes:
    """Codes of the categories of one feature; what has none is missing.

    Examples
    --------
    >>> Codes({"red": 0.0}).of(["red", None, "blue"])
    array([ 0., nan, nan])
    """

    by_category: Mapping[Any, float]

    def of(self, values: Iterable[Any]) -> FloatArray:
        """Codes of values."""
        return np.array([self.by_category.get(value, np.nan) for value in values], dtype=np.float64)

    def of_numbered(self, numbers: AnyArray, categories: Iterable[Any]) -> FloatArray:
        """Codes of values that are numbers of categories in a list of the data's own; negative ones are missing."""
        place = np.append(self.of(categories), np.nan)
        result: FloatArray = place[np.where(numbers < 0, len(place) - 1, numbers)]
        return result


@dataclass(frozen=True)
class Coding:
    """How the categories of a model's features become numbers; `Ensemble.coding` has that of a model.

    The code of a category is its place in the list that the model was trained with. A category that is not in the list
    is a missing value, as LightGBM takes it. Where no column holds texts or categories, numbers are codes already.

    Parameters
    ----------
    lists : tuple of tuple
        Categories of each feature that has some, in the order of the features.
    columns : tuple of int or None
        Numbers of these features. None when the model's file does not tell, as LightGBM's does not for ordered
        categories: then they are the columns with texts or categories, in order.
    feature_names : tuple of str or None
        Names of all features of the model.
    """

    lists: tuple[tuple[Any, ...], ...]
    columns: tuple[int, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    @classmethod
    def noted(cls, note: Any, feature_names: tuple[str, ...] | None) -> Coding | None:
        """The coding that the notes of a model tell; None if they tell none that makes sense."""
        if not isinstance(note, dict) or not isinstance(note.get("lists"), list):
            return None
        columns, lists = note.get("columns"), note["lists"]
        is_known = isinstance(columns, list) and len(columns) == len(lists)
        if not all(isinstance(known, list) for known in lists) or not (columns is None or is_known):
            return None
        return cls(tuple(map(tuple, lists)), None if columns is None else tuple(columns), feature_names)

    def as_note(self) -> dict[str, Any]:
        """What the notes of a model hold of it."""
        return {"lists": [list(known) for known in self.lists], "columns": self.columns and list(self.columns)}

    def codes(self, kinds: Sequence[Kind]) -> dict[int, Codes]:
        """Codes of each feature that data has as texts or categories, by number of the feature.

        Parameters
        ----------
        kinds : sequence of {"number", "text", "category"}
            What the data has of each of the model's features.

        Examples
        --------
        >>> Coding((("red", "green"),), (1,)).codes(["number", "text"])
        {1: Codes(by_category={'red': 0.0, 'green': 1.0})}
        """
        odd = [number for number, kind in enumerate(kinds) if kind != "number"]
        if not odd:
            self._tell_numbers()
            return {}
        places = self._places(odd, all(kinds[number] == "category" for number in odd))
        return {number: _codes(known, kinds[number]) for number, known in places.items()}

    def _places(self, odd: list[int], are_categories: bool) -> dict[int, tuple[Any, ...]]:
        """Categories of each feature that is to be encoded, where the features in `odd` hold texts or categories."""
        if self.columns is not None and set(odd) <= set(self.columns):
            return dict(zip(self.columns, self.lists, strict=True))  # where one is no code, numbers are none either
        if len(odd) == len(self.lists) and are_categories:
            return dict(zip(odd, self.lists, strict=True))  # as LightGBM has it
        if self.columns is not None:
            unknown = next(number for number in odd if number not in (self.columns or ()))
            raise DataError(f"column {self._name(unknown)} holds texts, but the model was trained on numbers there")
        texts = [known for known in self.lists if any(isinstance(value, str) for value in known)]
        others = [known for known in self.lists if known not in texts and not _are_codes(known)]
        if len(odd) == len(self.lists) or (len(odd) == len(texts) and not others):
            return dict(zip(odd, self.lists if len(odd) == len(self.lists) else texts, strict=True))
        raise DataError(
            f"{len(odd)} columns hold texts or categories, but the model was trained with {len(self.lists)} columns of "
            "categories and its file does not say which: score a DataFrame where all of them are categories "
            "(astype('category')), or give the codes of all"
        )

    def _tell_numbers(self) -> None:
        """Warn of numbers that may be meant as categories: they are taken for codes."""
        for column, known in zip(self.columns or (), self.lists, strict=False):
            if not _are_codes(known) and not any(isinstance(value, str) for value in known):
                warnings.warn(
                    f"column {self._name(column)} holds numbers, which are taken for codes of the categories "
                    f"{', '.join(map(str, known[:3]))}{', ...' if len(known) > 3 else ''}: give a DataFrame with "
                    "categories (astype('category')) if they are the categories themselves",
                    stacklevel=5,
                )

    def _name(self, column: int) -> str:
        return str(column) if self.feature_names is None else one_line(repr(self.feature_names[column]))


def _are_codes(known: Sequence[Any]) -> bool:
    """Whether categories are the numbers 0, 1, 2, ... and so their own codes."""
    return list(known) == list(range(len(known)))


def _codes(known: Sequence[Any], kind: Kind) -> Codes:
    codes: dict[Any, float] = {value: float(code) for code, value in enumerate(known)}
    for code, value in enumerate(known):
        if kind == "text" and not isinstance(value, str):
            codes.setdefault(str(value), float(code))
        elif kind == "number" and isinstance(value, float):
            codes.setdefault(float(np.float32(value)), float(code))
    return Codes(codes)
