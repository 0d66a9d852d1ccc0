"""Ranking expressions of Vespa that are sums of trees, read: what Vespa makes of LightGBM's and XGBoost's dumps.

A tree is `if (feature < 0.5, left, right)`, compared in float64. A missing value (NaN) makes every comparison false, so
`if (!(feature >= 0.5), left, right)` sends it left. A sigmoid or exponential around the sum is left out.
"""

from __future__ import annotations

import re
import warnings
from typing import TypeAlias

from rankwood.errors import ModelError, one_line
from rankwood.formats.reading import (
    UNLIMITED,
    USED_ONLY,
    Budget,
    TreeBuilder,
    ensemble_of,
    less_than,
    never_left,
    number,
    numbered,
)
from rankwood.model.ensemble import Ensemble

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
COMPARED = re.compile(rf"(?P<how><=|>=|<|>) ?(?P<limit>{NUMBER})")
NEGATED = re.compile(r"! ?\((?P<inner>.*)\)")
OPENING = re.compile(r"\s*if\s*\(")
VALUE = re.compile(rf"\s*({NUMBER})\s*")
WRAPPED = re.compile(r"\s*(sigmoid|exp)\s*\((.*)\)\s*", re.DOTALL)
BRACKETS = {"(": 1, "[": 1, ")": -1, "]": -1}
LONGEST_CONDITION = 10_000  # characters

# A leaf's value; or a condition's feature, threshold, the children for values up to it and above, and whether a missing
# value goes with the former.
Node: TypeAlias = float | tuple[str, float, "Node", "Node", bool]


def is_expression(start: bytes) -> bool:
    """Whether a file that begins so is a ranking expression of trees."""
    return re.match(rb"\s*(?:(?:sigmoid|exp)\s*\(\s*)?if\s*\(", start) is not None


def parse_expression(content: bytes, budget: Budget = UNLIMITED) -> Ensemble:
    """Ensemble of a ranking expression that is a sum of trees."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ModelError("the ranking expression is not UTF-8 text") from None
    wrapped = WRAPPED.fullmatch(text)
    reader = _Reader(wrapped[2] if wrapped else text)
    try:
        terms = reader.terms()
    except RecursionError:
        raise ModelError("the ranking expression is nested too deeply to be read") from None
    names = list(reader.names)
    columns = numbered(names)
    if columns is None:
        warnings.warn(
            "the ranking expression does not tell the order of its features: columns are taken as they appear; give "
            "feature_names, or data with names",
            stacklevel=4,
        )
    place = {name: at for at, name in enumerate(names)} if columns is None else columns
    builder = TreeBuilder()
    for term in terms:
        builder.add(term, lambda node: node if isinstance(node, float) else (place[node[0]], *node[1:]))
    return ensemble_of(
        never_left(builder.trees()),
        source={"format": "vespa-expression"} | ({"features": USED_ONLY} if columns is None else {}),
        n_features=len(names) if columns is None else None,
        feature_names=names if columns is None else None,
        budget=budget,
    )


class _Reader:
    """Reads an expression from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.names: dict[str, None] = {}  # in order of appearance

    def terms(self) -> list[Node]:
        """The terms of the sum that the whole text is."""
        found = [self._node()]
        while self.at < len(self.text):
            self._expect("+")
            found.append(self._node())
        return found

    def _node(self) -> Node:
        opening = OPENING.match(self.text, self.at)
        if opening is None:
            value = VALUE.match(self.text, self.at)
            if value is None:
                raise self._odd("a number or if (...)")
            self.at = value.end()
            return number(value[1], "a leaf", text=True)
        self.at = opening.end()
        name, limit, turned, missing_yes = self._condition()
        self._expect(",")
        yes = self._node()
        self._expect(",")
        no = self._node()
        self._expect(")")
        self.names.setdefault(name)
        return (name, limit, no, yes, not missing_yes) if turned else (name, limit, yes, no, missing_yes)

    def _condition(self) -> tuple[str, float, bool, bool]:
        """Feature; threshold for `x <= t`; whether values up to it make it false; whether missing ones make it true."""
        start, depth = self.at, 0
        end = min(len(self.text), start + LONGEST_CONDITION)
        while self.at < end and (depth or self.text[self.at] != ","):
            depth += BRACKETS.get(self.text[self.at], 0)
            self.at += 1
        text = " ".join(self.text[start : self.at].split())  # spaces in a row would take the patterns long
        negated = NEGATED.fullmatch(text)
        compared = negated["inner"].strip() if negated else text
        # The last sign, as no number has one: a pattern for all of it would look at what follows every sign.
        sign = max(compared.rfind("<"), compared.rfind(">"))
        name, found = compared[:sign].rstrip(), COMPARED.fullmatch(compared, sign) if sign > 0 else None
        if found is None or not name or name.startswith(("!", "isNan")) or (negated and found["how"] != ">="):
            raise ModelError(f"the condition {one_line(text)} compares no feature with a number: it is not imported")
        how, limit = found["how"], found["limit"]
        if negated:
            return name, self._below(limit), False, True
        threshold = self._below(limit) if how in ("<", ">=") else number(limit, "a threshold", text=True)
        return name, threshold, how in (">", ">="), False

    def _below(self, text: str) -> float:
        return float(less_than(number(text, "a threshold", text=True))[0])

    def _expect(self, sign: str) -> None:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        if self.text[self.at : self.at + 1] != sign:
            raise self._odd(repr(sign))
        self.at += 1
        if sign in "+)":
            while self.text[self.at : self.at + 1].isspace():
                self.at += 1

    def _odd(self, wanted: str) -> ModelError:
        there = one_line(self.text[self.at : self.at + 40]) or "its end"
        return ModelError(
            f"the ranking expression is no sum of trees: at character {self.at} {wanted} was expected, not {there}"
        )
