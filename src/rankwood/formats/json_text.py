"""JSON from files that may be damaged or hostile."""

from __future__ import annotations

import json
from typing import Any

from rankwood.errors import ModelError, one_line


def parse_json(content: bytes) -> Any:
    """The value that the text holds. Python's own limit on nesting keeps hostile files small."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ModelError(
            "the JSON is nested too deeply to be read: the trees are too deep, or the file is no model"
        ) from None
    except ValueError as error:
        raise ModelError(f"the file is damaged or cut off: {one_line(error)}") from None


def entry(value: Any, *keys: str | int, kind: type | tuple[type, ...] = object, where: str = "the model") -> Any:
    """What stands under `keys`, one inside the other, if it is of the `kind` expected."""
    for key in keys:
        if isinstance(key, str):
            if not isinstance(value, dict) or key not in value:
                raise ModelError(f"{where} has no entry {one_line(key)!r}")
        elif not isinstance(value, list) or key >= len(value):
            raise ModelError(f"{where} has too few entries")
        value = value[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not object and kind is not bool):
        raise ModelError(f"{where}: entry {one_line(str(keys[-1]))!r} is {one_line(value)}")
    return value


NUMBER = (int, float)


def number(value: Any, what: str) -> float:
    """A number, also one that is written as text."""
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):
        raise ModelError(f"{what} must be a number, got {one_line(value)}") from None


def whole(value: Any, what: str, default: int | None = None) -> int:
    """A whole number, also one that is written as text."""
    if value is None and default is not None:
        return default
    result = number(value, what)
    if result != result or abs(result) > 2**53 or result != int(result):
        raise ModelError(f"{what} must be a whole number, got {one_line(value)}")
    return int(result)
