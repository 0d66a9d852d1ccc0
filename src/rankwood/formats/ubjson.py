"""Universal Binary JSON (draft 12), read and written: XGBoost saves its models in it."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from rankwood.errors import ModelError, one_line

# Types of numbers by marker; the format is big-endian.
TYPES = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
CONSTANTS = {b"Z": None, b"T": True, b"F": False}
MAX_DEPTH = 100  # of nesting; models need about ten


def is_ubjson(start: bytes) -> bool:
    """Whether a file that begins so is a UBJSON object: a name's length follows the brace, not a quotation mark."""
    return start[:1] == b"{" and (start[1:2] in TYPES or start[1:2] in (b"#", b"$", b"}")) and start[1:3] != b"}\n"


def parse_ubjson(content: bytes) -> Any:
    r"""Value of UBJSON content, in which arrays of one type of number become numpy arrays.

    Examples
    --------
    >>> parse_ubjson(b"{i\x01a[$U#i\x02\x07\x08}")
    {'a': array([7, 8], dtype=uint8)}
    """
    try:
        return _Parser(content).value(0)
    except (IndexError, UnicodeDecodeError) as error:
        raise ModelError(f"the UBJSON is damaged: {one_line(error)}") from None


class _Parser:
    """Reads values one after another from the place reached in the content."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0

    def take(self, n_bytes: int) -> bytes:
        if n_bytes < 0 or n_bytes > len(self.content) - self.place:
            raise ModelError("the UBJSON is damaged or cut off")
        taken = self.content[self.place : self.place + n_bytes]
        self.place += n_bytes
        return taken

    def value(self, depth: int, marker: bytes | None = None) -> Any:
        if depth > MAX_DEPTH:
            raise ModelError("the UBJSON is nested too deeply for a model")
        marker = self.marker() if marker is None else marker
        if marker in TYPES:
            return self.numbers(marker, 1)[0].item()
        if marker in CONSTANTS:
            return CONSTANTS[marker]
        if marker == b"S":
            return self.text()
        if marker == b"C":
            return self.take(1).decode()
        if marker == b"[":
            return self.array(depth)
        if marker == b"{":
            return self.object(depth)
        raise ModelError(f"the UBJSON is damaged: there is no type {marker!r}")

    def marker(self) -> bytes:
        marker = self.take(1)
        while marker == b"N":  # no-op
            marker = self.take(1)
        return marker

    def numbers(self, marker: bytes, count: int) -> Any:
        dtype = np.dtype(TYPES[marker])
        values = np.frombuffer(self.take(dtype.itemsize * count), dtype=dtype)
        return values.astype(dtype.newbyteorder("="))

    def count(self) -> int:
        marker = self.marker()
        if marker not in TYPES or marker in (b"d", b"D"):
            raise ModelError("the UBJSON is damaged: a length is not a whole number")
        return int(self.numbers(marker, 1)[0])

    def text(self) -> str:
        return self.take(self.count()).decode()

    def head(self) -> tuple[bytes | None, int | None]:
        """Type and number of the entries that follow, each None where it is not given."""
        kind: bytes | None = None
        count: int | None = None
        if self.content[self.place : self.place + 1] == b"$":
            self.place += 1
            kind = self.take(1)
        if self.content[self.place : self.place + 1] == b"#":
            self.place += 1
            count = self.count()
            # Every entry takes at least a byte, except constants, which no model repeats.
            if count < 0 or count > len(self.content) - self.place:
                raise ModelError("the UBJSON is damaged or cut off")
            if kind in CONSTANTS:
                raise ModelError("the UBJSON holds arrays of nothing, which no model needs")
        if kind is not None and count is None:
            raise ModelError("the UBJSON is damaged: an array has a type but no length")
        return kind, count

    def array(self, depth: int) -> Any:
        kind, count = self.head()
        if kind in TYPES and count is not None:
            return self.numbers(kind, count)
        values: list[Any] = []
        while (len(values) < count) if count is not None else not self.at(b"]"):
            values.append(self.value(depth + 1, kind))
        return values

    def object(self, depth: int) -> dict[str, Any]:
        kind, count = self.head()
        values: dict[str, Any] = {}
        n_read = 0
        while (n_read < count) if count is not None else not self.at(b"}"):
            name = self.text()
            values[name] = self.value(depth + 1, kind)
            n_read += 1
        return values

    def at(self, end: bytes) -> bool:
        """Whether the end marker comes next, which is then passed."""
        if self.content[self.place : self.place + 1] != end:
            return False
        self.place += 1
        return True


# Writing, as far as XGBoost's model files need it.

MARKERS = {"float32": b"d", "int32": b"l", "int64": b"L", "uint8": b"U"}


def to_ubjson(value: Any) -> bytes:
    r"""UBJSON content of dictionaries, lists, texts, whole numbers and numpy arrays.

    Examples
    --------
    >>> to_ubjson({"a": [1]})
    b'{L\x00\x00\x00\x00\x00\x00\x00\x01a[L\x00\x00\x00\x00\x00\x00\x00\x01]}'
    """
    if isinstance(value, dict):
        return b"{" + b"".join(_text(key) + to_ubjson(entry) for key, entry in value.items()) + b"}"
    if isinstance(value, np.ndarray):
        big_endian = value.astype(value.dtype.newbyteorder(">")).tobytes()
        return b"[$" + MARKERS[value.dtype.name] + b"#L" + struct.pack(">q", len(value)) + big_endian
    if isinstance(value, list):
        return b"[" + b"".join(map(to_ubjson, value)) + b"]"
    if isinstance(value, str):
        return b"S" + _text(value)
    return b"L" + struct.pack(">q", value)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return b"L" + struct.pack(">q", len(encoded)) + encoded
