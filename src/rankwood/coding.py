"""Categories as codes: a model that was trained on them compares their numbers, and data may have them as texts."""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import DataError, listed, one_line
from rankwood.lazily import cached_property

# What a column of data holds: numbers, texts, or categories as pandas has them.
Kind: TypeAlias = Literal["number", "text", "category"]

# Where columns come from: a table in memory, a file with types (Parquet), or a file that is all text (CSV).
Origin: TypeAlias = Literal["frame", "file", "text"]

MAX_CATEGORIES = 253  # of a feature in training: codes with a bin of their own, beside smaller and larger values

# Texts that stand for a missing value in files.
MISSING_TEXTS = ["", "NaN", "nan", "-nan", "NA", "na", "N/A", "n/a", "#N/A", "NULL", "null", "?"]


@dataclass
class Unseen:
    """Count of the values of a column that are no category of the model, and one of them.

    Parameters
    ----------
    n_values : int, default 0
        Values that were looked at and are not missing.
    n_unseen : int, default 0
        Those of them that are no category.
    example : object, default None
        The first of these.
    """

    n_values: int = 0
    n_unseen: int = 0
    example: Any = None


@dataclass(frozen=True)
class Codes:
    """Codes of the categories of one feature; what has none is missing.

    Parameters
    ----------
    by_category : mapping
        Codes. A text that is none of the keys is looked up as the number that it is, if some keys are numbers.
    refusal : str or None, default None
        What is said of a number that has no code, if that is an error.
    is_strict : bool, default False
        Whether it is said of texts, too.
    unseen : Unseen
        Count of what `of_numbered` found no code for.

    Examples
    --------
    >>> Codes({"red": 0.0}).of(["red", None, "blue"])
    array([ 0., nan, nan])
    """

    by_category: Mapping[Any, float]
    refusal: str | None = field(default=None, repr=False)
    is_strict: bool = field(default=False, repr=False)
    unseen: Unseen = field(default_factory=Unseen, repr=False, compare=False)

    def of(self, values: Iterable[Any]) -> FloatArray:
        """Codes of values."""
        return np.array([self._code(value) for value in values], dtype=np.float64)

    def of_numbered(self, numbers: AnyArray, categories: Sequence[Any]) -> FloatArray:
        """Codes of values that are numbers of categories in a list of the data's own; negative ones are missing."""
        place = np.append(self.of(categories), np.nan)
        self._count(numbers, categories, place)
        result: FloatArray = place[np.where(numbers < 0, len(place) - 1, numbers)]
        return result

    def _code(self, value: Any) -> float:
        code = self.by_category.get(value)
        if code is None and isinstance(value, str) and self._has_numbers:
            code = self.by_category.get(_number(value))
        if code is not None:
            return code
        if self.refusal is not None and not _is_missing(value) and (self.is_strict or not isinstance(value, str)):
            raise DataError(self.refusal.replace("VALUE", one_line(repr(getattr(value, "item", lambda: value)()))))
        return np.nan

    def _count(self, numbers: AnyArray, categories: Sequence[Any], place: FloatArray) -> None:
        used = np.bincount(numbers[numbers >= 0], minlength=len(categories))
        for number, value in enumerate(categories):
            if used[number] and not _is_missing(value, self.by_category):
                self.unseen.n_values += int(used[number])
                if np.isnan(place[number]):
                    self.unseen.example = value if self.unseen.n_unseen == 0 else self.unseen.example
                    self.unseen.n_unseen += int(used[number])

    @cached_property
    def _has_numbers(self) -> bool:
        return any(not isinstance(value, str) for value in self.by_category)


def tell_unseen(codes: Mapping[str, Codes], where: str) -> None:
    """Warn of values that are no categories of the model, with a count for each column, and count anew.

    Parameters
    ----------
    codes : mapping of str to Codes
        Codes of columns, by name.
    where : str
        Where the columns are.
    """
    for name, known in codes.items():
        unseen = known.unseen
        if unseen.n_unseen:
            count = f"{unseen.n_unseen:,} of {unseen.n_values:,} values of column {one_line(repr(name))}"
            known_ones = f"the model's categories ({_shown(list(known.by_category))})"
            example = f"such as {one_line(repr(unseen.example))}"
            warnings.warn(
                f"{where}: {count} are none of {known_ones}, {example}: they are taken for missing ones", stacklevel=3
            )
        forget_unseen({name: known})


def forget_unseen(codes: Mapping[str, Codes]) -> None:
    """Count values that are no categories anew."""
    for known in codes.values():
        known.unseen.n_values, known.unseen.n_unseen, known.unseen.example = 0, 0, None


@dataclass(frozen=True)
class Coding:
    """How the categories of a model's features become numbers; `Ensemble.coding` has that of a model.

    The code of a category is its place in the list that the model was trained with. A category that is not in the list
    is a missing value, as LightGBM takes it. Arrays hold codes. What a column of a table holds is told by the list:

    - categories that are numbers: these numbers. LightGBM refuses a DataFrame that has plain numbers there, as they may
      be codes; so does this, unless another column holds texts or categories;
    - texts of which some are written like numbers ("00290"): texts. Numbers are an error;
    - other texts: texts, or codes if they are whole numbers from 0 on.

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
        if not all(isinstance(value, (str, int, float)) for known in lists for value in known):
            return None
        if not all(isinstance(column, int) and column >= 0 for column in columns or ()):
            return None
        return cls(tuple(map(tuple, lists)), None if columns is None else tuple(columns), feature_names)

    def as_note(self) -> dict[str, Any]:
        """What the notes of a model hold of it."""
        return {"lists": [list(known) for known in self.lists], "columns": self.columns and list(self.columns)}

    def by_feature(self) -> dict[int, tuple[Any, ...]]:
        """Categories in the order of their codes, by number of the feature; none where the file does not say whose.

        Examples
        --------
        >>> Coding((("blue", "red"),), (1,)).by_feature()
        {1: ('blue', 'red')}
        """
        return {} if self.columns is None else dict(zip(self.columns, self.lists, strict=True))

    def codes(self, kinds: Sequence[Kind], origin: Origin = "frame") -> dict[int, Codes]:
        """Codes of each feature that data has as categories, by number of the feature.

        Parameters
        ----------
        kinds : sequence of {"number", "text", "category"}
            What the data has of each of the model's features.
        origin : {"frame", "file", "text"}, default "frame"
            Where the data comes from: a table in memory, a file with types, or a file that is all text.

        Examples
        --------
        >>> Coding((("red", "green"),), (1,)).codes(["number", "text"])
        {1: Codes(by_category={'red': 0.0, 'green': 1.0})}
        """
        odd = [number for number, kind in enumerate(kinds) if kind != "number"]
        places = self._places(odd, all(kinds[number] == "category" for number in odd))
        are_values = bool(odd) or origin != "frame"  # where one column is no code, others are none either
        found = {}
        for number, known in places.items():
            if number >= len(kinds):
                raise DataError(f"the model has categories of feature {number}, but there are {len(kinds)} features")
            as_text = kinds[number] == "text" or (origin == "text" and _may_be_numbers(known))
            kind = "text" if as_text and kinds[number] != "category" else kinds[number]
            found[number] = self._codes(number, known, kind, origin, are_values)
        return found

    def _codes(self, number: int, known: Sequence[Any], kind: Kind, origin: Origin, are_values: bool) -> Codes:
        codes: dict[Any, float] = {value: float(code) for code, value in enumerate(known)}
        are_numbers = not any(isinstance(value, str) for value in known)
        where = f"column {self._name(number)} holds VALUE"
        way_out = (
            "read the column as text (pandas: dtype=str), or give an array if these are codes"
            if origin == "frame"
            else "write the column as texts"
        )
        as_texts = f"{where}, a number, where the model has the texts {_shown(known)}: {way_out}"
        if kind == "category" or (kind == "number" and are_numbers and (are_values or _are_codes(known))):
            return Codes(codes)
        if kind == "text":
            with np.errstate(over="ignore"):
                for value, code in list(codes.items()):
                    if isinstance(value, float) and np.float32(value) == value:
                        codes.setdefault(float(str(np.float32(value))), code)  # as a float32 is written
            return Codes(codes, None if are_numbers or not _may_be_numbers(known) else as_texts)
        if are_numbers:
            refusal = (
                f"{where}, a plain number, where the model has the categories {_shown(known)}: LightGBM refuses such a "
                "table, since it may be one of these or a code; make the column categories (pandas: "
                "astype('category')) or texts if it is one of these, or give an array if it is a code"
            )
            return Codes({}, refusal, is_strict=True)
        if _may_be_numbers(known):
            return Codes({}, as_texts, is_strict=True)
        refusal = f"{where}, which is neither one of the model's categories {_shown(known)} nor a code of one"
        own = {code: float(code) for code in range(len(known))} | {-1: np.nan}  # what pandas calls a missing value
        return Codes(codes | own, refusal, is_strict=True)

    def _places(self, odd: list[int], are_categories: bool) -> dict[int, tuple[Any, ...]]:
        """Categories of each feature that is to be encoded, where the features in `odd` hold texts or categories."""
        if self.columns is not None and set(odd) <= set(self.columns):
            return self.by_feature()
        if not odd and all(_are_codes(known) or not _may_be_numbers(known) for known in self.lists):
            return {}  # what looks like no category is a code
        if len(odd) == len(self.lists) and are_categories:
            return dict(zip(odd, self.lists, strict=True))  # as LightGBM has it
        if self.columns is not None:
            unknown = next(number for number in odd if number not in (self.columns or ()))
            raise DataError(f"column {self._name(unknown)} holds texts, but the model was trained on numbers there")
        texts = [known for known in self.lists if any(isinstance(value, str) for value in known)]
        others = [known for known in self.lists if known not in texts and not _are_codes(known)]
        if odd and (len(odd) == len(self.lists) or (len(odd) == len(texts) and not others)):
            return dict(zip(odd, self.lists if len(odd) == len(self.lists) else texts, strict=True))
        raise DataError(
            f"{len(odd)} columns hold texts or categories, but the model was trained with {len(self.lists)} columns of "
            "categories and its file does not say which: give a DataFrame where all of them are categories "
            "(astype('category')), a Parquet file of one, or an array with the codes of all"
        )

    def _name(self, column: int) -> str:
        return str(column) if self.feature_names is None else one_line(repr(self.feature_names[column]))


def category_of(value: float, known: Sequence[Any]) -> Any:
    """The category that a value is the code of; the value itself where it is the code of none.

    Examples
    --------
    >>> category_of(1.0, ("blue", "red")), category_of(2.0, ("blue", "red"))
    ('red', 2.0)
    """
    return known[int(value)] if 0 <= value < len(known) and value == int(value) else value


def value_in_words(value: float, known: Sequence[Any] = (), limit: int = 24) -> str:
    """A value of a feature as people read it: the category that it is the code of, if there are any, else four digits.

    Examples
    --------
    >>> value_in_words(1.0, ("blue", "red")), value_in_words(2.0, ("blue", "red")), value_in_words(0.12345)
    ('red', '2', '0.1235')
    """
    if (category := category_of(value, known)) is not value:
        return one_line(str(category), limit)
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def reading_for(models: Iterable[Any]) -> dict[str, Any]:
    """How readers of files take them for models: `coding` and `exact` of `read_data`.

    A model from elsewhere compares values as they are; one that was learnt here has learnt from float32.

    Parameters
    ----------
    models : iterable of Ensemble or fitted learner
        Anything else says nothing about reading.
    """
    known = [getattr(model, "ensemble_", model) for model in models]
    known = [model for model in known if hasattr(model, "coding")]
    coding = next((found for model in known if (found := model.coding) is not None), None)
    return {"coding": coding, "exact": any("source" in model.metadata for model in known)}


def _are_codes(known: Sequence[Any]) -> bool:
    """Whether categories are the numbers 0, 1, 2, ... and so their own codes."""
    return list(known) == list(range(len(known)))


def _may_be_numbers(known: Sequence[Any]) -> bool:
    """Whether some category is a number, or a text that could be taken for one."""
    return any(not isinstance(value, str) or _number(value) is not None for value in known)


def _number(text: str) -> int | float | None:
    """The number or truth value that a text is, None if it is none."""
    if "_" in text:
        return None
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower())


def _is_missing(value: Any, known: Container[Any] = ()) -> bool:
    return value is None or value != value or (isinstance(value, str) and value in MISSING_TEXTS and value not in known)


def _shown(known: Sequence[Any]) -> str:
    return listed([one_line(repr(value)) for value in known], 3)
