"""What one run makes and the next needs again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Kept:
    """The latest thing of each kind, made again when another is asked for. It stays in its process: copies are empty.

    >>> kept = Kept()
    >>> [kept.get("data", fold, lambda: [fold]) for fold in (1, 2)]
    [[1], [2]]
    >>> kept.get("data", 2, lambda: "is not made again")
    [2]
    """

    def __init__(self) -> None:
        self._things: dict[str, tuple[Any, Any]] = {}

    def get(self, what: str, key: Any, make: Callable[[], Any]) -> Any:
        if what not in self._things or self._things[what][0] != key:
            self._things.pop(what, None)  # two large ones may not fit into memory
            self._things[what] = (key, make())
        return self._things[what][1]

    def clear(self) -> None:
        self._things.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, ()
