"""Universal Binary JSON (draft 12), as far as XGBoost's model files use it."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

MARKERS = {"float32": b"d", "int32": b"l", "int64": b"L", "uint8": b"U"}


def to_ubjson(value: Any) -> bytes:
    """Objects, lists, texts, whole numbers, and numpy arrays, which become arrays of one type.

    >>> to_ubjson({"a": [1]})
    b'{L\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01a[L\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01]}'
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
