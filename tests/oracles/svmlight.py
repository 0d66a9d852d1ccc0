"""The slow, obvious twin of the SVMlight parser."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from fractions import Fraction

_DECIMAL = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MISSING = {"nan", "na", "null", "?"}


class LineError(Exception):
    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


@dataclass
class Rows:
    labels: list[float] = field(default_factory=list)
    qids: list[str] = field(default_factory=list)
    features: list[dict[int, float]] = field(default_factory=list)
    doc_ids: list[str] = field(default_factory=list)


def round_to(value: Fraction, precision: int, smallest_exponent: int, largest_exponent: int) -> float:
    """`value` rounded to nearest, ties to even, in a binary format."""
    if value == 0:
        return 0.0
    exponent = value.numerator.bit_length() - value.denominator.bit_length() - precision - 1
    while value >= Fraction(2) ** (exponent + precision):  # until the significand has `precision` bits
        exponent += 1
    exponent = max(exponent, smallest_exponent)
    significand = round(value / Fraction(2) ** exponent)
    if significand * Fraction(2) ** exponent >= Fraction(2) ** largest_exponent:
        return math.inf
    return math.ldexp(significand, exponent)


def number(text: str, kind: str = "float32") -> float:
    """The number that the text says; ValueError when it says none."""
    negative, digits = text.startswith("-"), text[1:] if text[:1] in ("+", "-") else text
    if digits.lower() in _MISSING:
        return math.nan
    if digits.lower() in ("inf", "infinity"):
        return -math.inf if negative else math.inf
    if not _DECIMAL.fullmatch(digits):
        raise ValueError(text)
    shape = (24, -149, 128) if kind == "float32" else (53, -1074, 1024)
    value = round_to(Fraction(digits), *shape)
    return -value if negative else value


def document_id(comment: str) -> str:
    comment = comment.strip(" \t\r")
    letor = re.match(r"docid[ \t\r]*=[ \t\r]*([^ \t\r]*)", comment)
    return letor[1] if letor else comment


def parse(content: bytes, *, zero_based: bool = False, most: int = 1000) -> Rows:
    """Parse the content of a file. Feature ids above `most` are not expected."""
    rows = Rows()
    has_qid = None
    if content.startswith(b"\xef\xbb\xbf"):
        content = content[3:]
    for line, raw in enumerate(content.split(b"\n"), start=1):
        text, _, comment = raw.decode("utf-8", errors="backslashreplace").partition("#")
        tokens = [token for token in re.split("[ \t\r]+", text) if token]
        if not tokens:
            continue
        if has_qid is None:
            has_qid = len(tokens) > 1 and tokens[1].startswith("qid:")
        try:
            label, qid, features = _fields(tokens, has_qid, zero_based, most)
        except (ValueError, IndexError):
            raise LineError(line) from None
        rows.labels.append(label)
        rows.qids.append(qid)
        rows.features.append(features)
        rows.doc_ids.append(document_id(comment))
    return rows


def _fields(tokens: list[str], has_qid: bool, zero_based: bool, most: int) -> tuple[float, str, dict[int, float]]:
    label = number(tokens[0], "float64")
    if not math.isfinite(label):
        raise ValueError
    qid = ""
    if has_qid:
        kind, _, qid = tokens[1].partition(":")
        if kind != "qid" or not qid:
            raise ValueError
    features: dict[int, float] = {}
    for token in tokens[2 if has_qid else 1 :]:
        name, colon, value = token.partition(":")
        if not colon or not re.fullmatch("[0-9]+", name):
            raise ValueError
        feature = int(name) - (0 if zero_based else 1)
        if feature < 0 or feature >= most or feature in features:
            raise ValueError
        features[feature] = number(value)
    return label, qid, features
