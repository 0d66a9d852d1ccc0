"""A ranking measure as a value: `nDCG@10`, `ERR@20`, `AP(rel=2)`, written as in ir-measures.

What a measure leaves open (gain, value of a query without relevant documents, ...) the convention decides: see
`rankwood.evaluation.conventions`. What it says wins over the convention.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, overload

import numpy as np

from rankwood.dtypes import FloatArray, OffsetArray
from rankwood.errors import MeasureError

Empty = Literal[0, 1, "skip"]

# Names, and the parameters each measure takes. `empty` goes with all of them.
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "nDCG": ("dcg", "gains"),
    "DCG": ("dcg", "gains"),
    "ERR": ("max_grade",),
    "AP": ("rel",),
    "RR": ("rel",),
    "P": ("rel",),
    "R": ("rel",),
    "RBP": ("p", "rel"),
}
_ALIASES = {
    "ndcg": "nDCG",
    "dcg": "DCG",
    "err": "ERR",
    "ap": "AP",
    "map": "AP",
    "mean_average_precision": "AP",
    "rr": "RR",
    "mrr": "RR",
    "recip_rank": "RR",
    "p": "P",
    "pre": "P",
    "precision": "P",
    "r": "R",
    "recall": "R",
    "rbp": "RBP",
}
_KNOWN = "nDCG, DCG, ERR, AP (or MAP), RR (or MRR), P (or precision), R (or recall), RBP"

# How `dcg` reads: gain and discount.
DCG_FORMS: dict[str, tuple[str, str]] = {
    "exp-log2": ("exp", "log2"),
    "log2": ("linear", "log2"),
    "exp-letor": ("exp", "letor"),
}

# Undefined (0/0) for a query without relevant documents, so that a convention may count such a query 1.
NORMALISED = ("nDCG", "AP", "R")

_LARGEST_CUTOFF = 2**31 - 1

_NOTATION = re.compile(
    r"\s*(?P<name>[A-Za-z][A-Za-z_]*?)\s*(?:\((?P<parameters>.*)\))?\s*(?:(?:@|_at_|_cut_|_)(?P<cutoff>\d+))?(?P<minus>-)?\s*",
    re.DOTALL,
)


@dataclass(frozen=True, repr=False)
class Measure:
    """A ranking measure: its name, its cutoff, and parameters that its notation spells out.

    Parameters that are None are left to the convention.

    Parameters
    ----------
    name : str
        "nDCG", "DCG", "ERR", "AP", "RR", "P", "R" or "RBP", or another name of these, such as "map".
    cutoff : int, optional
        Number of ranks that count; the whole list unless given.
    dcg : {"exp-log2", "log2", "exp-letor"}, optional
        Of nDCG and DCG: gain 2^label - 1, linear gain, or gain 2^label - 1 with LETOR's discount.
    gains : sequence of float, optional
        Of nDCG and DCG: gain of the labels 0, 1, 2, ...
    max_grade : float, optional
        Of ERR: the largest label there can be.
    rel : float, optional
        Of AP, RR, P, R and RBP: least label of a relevant document.
    p : float, optional
        Of RBP: the user's persistence; 0.8 unless given.
    empty : {0, 1, "skip"}, optional
        Value of a query without relevant documents; "skip" leaves it out of the mean.

    Examples
    --------
    >>> measure = Measure.parse("ndcg@10")
    >>> measure, measure == Measure("nDCG", 10)
    (<Measure nDCG@10>, True)
    >>> str(Measure.parse("nDCG(dcg='log2')@5"))
    "nDCG(dcg='log2')@5"
    """

    name: str
    cutoff: int | None = None
    dcg: str | None = None
    gains: tuple[float, ...] | None = None
    max_grade: float | None = None
    rel: float | None = None
    p: float | None = None
    empty: Empty | None = None

    def __post_init__(self) -> None:
        name = _ALIASES.get(str(self.name).lower())
        if name is None:
            raise MeasureError(_unknown(str(self.name)))
        self._set("name", name)
        self._set("cutoff", _checked_cutoff(self.cutoff))
        for parameter in ("dcg", "gains", "max_grade", "rel", "p"):
            value = getattr(self, parameter)
            if value is None:
                continue
            if parameter not in _PARAMETERS[name]:
                raise MeasureError(f"{name} has no parameter {parameter}; it has: {_list_of_parameters(name)}")
            self._set(parameter, _CHECKS[parameter](name, value))
        if name == "RBP" and self.p is None:
            self._set("p", 0.8)
        if self.gains is not None and self.dcg is not None and DCG_FORMS[self.dcg][0] == "exp":
            raise MeasureError(f"{name}: gains and dcg={self.dcg!r} both say what a label gains; leave one of them out")
        if self.empty is not None:
            self._set("empty", _checked_empty(name, self.empty))

    def _set(self, field: str, value: Any) -> None:
        object.__setattr__(self, field, value)

    @classmethod
    def parse(cls, text: str | Measure) -> Measure:
        """The measure that a text like `nDCG@10`, `nDCG(dcg='exp-log2')@10` or `AP(rel=2)` names.

        Upper and lower case are the same, and the names of LightGBM, XGBoost and trec_eval are understood: `map`,
        `mrr`, `precision@5`, `ndcg_at_10`, `ndcg_cut_10`, and `ndcg@10-`, where a query without relevant documents
        counts 0.

        Parameters
        ----------
        text : str or Measure
            A Measure is returned as it is.

        Raises
        ------
        MeasureError
            There is no such measure or parameter.

        Examples
        --------
        >>> Measure.parse("map@5-")
        <Measure AP(empty=0)@5>
        """
        if isinstance(text, Measure):
            return text
        if not isinstance(text, str):
            raise MeasureError(f"a measure is a text like 'nDCG@10' or a Measure, got {type(text).__name__}")
        match = _NOTATION.fullmatch(text)
        if match is None:
            raise MeasureError(_unknown(text))
        if match["name"].lower() not in _ALIASES:
            raise MeasureError(_unknown(text, match["name"]))
        parameters = _parse_parameters(text, match["parameters"])
        if match["minus"]:
            if "empty" in parameters:
                raise MeasureError(f"{text!r} says twice what a query without relevant documents counts")
            parameters["empty"] = 0
        cutoff = None if match["cutoff"] is None else int(match["cutoff"])
        return cls(match["name"], cutoff, **parameters)

    @property
    def higher_is_better(self) -> bool:
        """Whether larger values are better: always True."""
        return True

    def __str__(self) -> str:
        given = [f"{field}={_written(getattr(self, field))}" for field in _FIELDS if getattr(self, field) is not None]
        text = self.name + (f"({', '.join(given)})" if given else "")
        return text if self.cutoff is None else f"{text}@{self.cutoff}"

    def __repr__(self) -> str:
        return f"<Measure {self}>"


_FIELDS = tuple(field.name for field in fields(Measure) if field.name not in ("name", "cutoff"))


@dataclass(frozen=True)
class MeasureFunction:
    """A measure of the user's own: a function of labels, scores and queries.

    Parameters
    ----------
    function : callable
        Called with the labels, the scores and the offsets of queries, all query by query: query q has the documents
        `offsets[q]` to `offsets[q + 1]`. It returns one value per query, the higher the better (a loss is negated),
        and NaN for a query that does not count.
    name : str
        How the measure is named in tables.

    Examples
    --------
    >>> import numpy as np
    >>> mse = MeasureFunction(lambda y, s, at: -np.add.reduceat((y - s) ** 2, at[:-1]) / np.diff(at), "-MSE")
    >>> str(mse), mse.values(np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([0, 2])).tolist()
    ('-MSE', [-0.25])
    """

    function: Callable[..., Any]
    name: str
    cutoff: int | None = field(default=None, init=False)

    def __str__(self) -> str:
        return self.name

    def values(self, labels: FloatArray, scores: FloatArray, offsets: OffsetArray) -> FloatArray:
        """The values of all queries; documents stand query by query.

        Parameters
        ----------
        labels, scores : array of float
            Of every document.
        offsets : array of int
            Query q has the documents `offsets[q]` to `offsets[q + 1]`.

        Raises
        ------
        MeasureError
            The function returned something else than one number per query, or an infinity.
        """
        found = np.asarray(self.function(labels, scores, offsets), dtype=np.float64)
        n_queries = len(offsets) - 1
        if found.shape != (n_queries,):
            raise MeasureError(
                f"the measure {self.name} must return one value per query ({n_queries}), got "
                f"{'a single number' if found.ndim == 0 else f'an array of shape {found.shape}'}"
            )
        if np.isinf(found).any():
            raise MeasureError(f"the measure {self.name} must return finite numbers, or NaN for what does not count")
        return found


AnyMeasure: TypeAlias = str | Measure | MeasureFunction | Callable[..., Any]


@overload
def parse_measure(measure: str | Measure) -> Measure: ...
@overload
def parse_measure(measure: AnyMeasure) -> Measure | MeasureFunction: ...
def parse_measure(measure: AnyMeasure) -> Measure | MeasureFunction:
    """The measure that a text like `nDCG@10` names, or a function as a measure.

    Parameters
    ----------
    measure : str, Measure, MeasureFunction or callable
        A measure is returned as it is; a function is named after itself (see `MeasureFunction`).

    Examples
    --------
    >>> parse_measure("precision@5")
    <Measure P@5>
    """
    if isinstance(measure, MeasureFunction):
        return measure
    if callable(measure):
        return MeasureFunction(measure, getattr(measure, "__name__", type(measure).__name__))
    return Measure.parse(measure)


def _unknown(text: str, name: str | None = None) -> str:
    near = difflib.get_close_matches((name or text).lower(), _ALIASES, n=1, cutoff=0.5)
    hint = f" (did you mean {_ALIASES[near[0]]}?)" if near else ""
    return f"unknown measure {text!r}{hint}: known are {_KNOWN}, written as in nDCG@10 or AP(rel=2)"


def _list_of_parameters(name: str) -> str:
    return ", ".join((*_PARAMETERS[name], "empty"))


def _parse_parameters(text: str, parameters: str | None) -> dict[str, Any]:
    if parameters is None:
        return {}
    try:
        call = ast.parse(f"f({parameters})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(keyword.arg is None for keyword in call.keywords):
            raise ValueError
        values = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError):
        raise MeasureError(f"cannot read the parameters of {text!r}; write them as in nDCG(dcg='log2')@10") from None
    for name in values:
        if name not in _FIELDS:
            near = difflib.get_close_matches(name, _FIELDS, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise MeasureError(f"unknown parameter {name!r} in {text!r}{hint}: there are {', '.join(_FIELDS)}")
    return values


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_written, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _number(name: str, parameter: str, value: Any) -> float:
    """The value as a finite number; whole ones are int, so that they print without a decimal point."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise MeasureError(f"{name}: {parameter} must be a number, got {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise MeasureError(f"{name}: {parameter} must be finite, got {value!r}")
    return int(number) if number.is_integer() else number


def _checked_cutoff(cutoff: Any) -> int | None:
    if cutoff is None:
        return None
    if isinstance(cutoff, bool) or not hasattr(cutoff, "__index__") or int(cutoff) < 1:
        raise MeasureError(f"the cutoff of a measure is a whole number from 1 up, got {cutoff!r}")
    if int(cutoff) > _LARGEST_CUTOFF:
        raise MeasureError(
            f"the cutoff of a measure is at most {_LARGEST_CUTOFF}, got {cutoff}; leave it out for all ranks"
        )
    return int(cutoff)


def _checked_dcg(name: str, value: Any) -> str:
    if not isinstance(value, str) or value not in DCG_FORMS:
        raise MeasureError(f"{name}: dcg must be one of {', '.join(map(repr, DCG_FORMS))}, got {value!r}")
    return value


def _checked_gains(name: str, value: Any) -> tuple[float, ...]:
    if isinstance(value, Mapping):  # as ir-measures writes them: {label: gain}
        if set(value) != set(range(len(value))):
            raise MeasureError(f"{name}: gains must be given for the labels 0, 1, 2, ..., got {value!r}")
        value = [value[label] for label in range(len(value))]
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise MeasureError(f"{name}: gains must be a list of the gains of labels 0, 1, 2, ..., got {value!r}")
    gains = tuple(_number(name, "each of gains", gain) for gain in value)
    if not gains or min(gains) < 0:
        raise MeasureError(f"{name}: gains must be one or more numbers from 0 up, got {value!r}")
    return gains


def _checked_max_grade(name: str, value: Any) -> float:
    grade = _number(name, "max_grade", value)
    if not 0 < grade <= 1000:
        raise MeasureError(f"{name}: max_grade must be above 0 and at most 1000, got {value!r}")
    return grade


def _checked_p(name: str, value: Any) -> float:
    if not 0 < _number(name, "p", value) < 1:
        raise MeasureError(f"{name}: p must lie between 0 and 1, got {value!r}")
    return float(value)


def _checked_empty(name: str, value: Any) -> Empty:
    if isinstance(value, bool) or value not in (0, 1, "skip"):
        raise MeasureError(f"{name}: empty must be 0, 1 or 'skip', got {value!r}")
    if value == 1 and name not in NORMALISED:
        raise MeasureError(f"{name} of a query without relevant documents is 0: empty must be 0 or 'skip'")
    return "skip" if value == "skip" else 1 if value == 1 else 0


_CHECKS: dict[str, Any] = {
    "dcg": _checked_dcg,
    "gains": _checked_gains,
    "max_grade": _checked_max_grade,
    "rel": lambda name, value: _number(name, "rel", value),
    "p": _checked_p,
}
