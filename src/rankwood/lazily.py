"""Attributes that are computed when they are first used."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:
    from collections.abc import Callable
    from typing import Any

    class cached_property:
        """As that of functools is since Python 3.12: without a lock.

        Racing threads may both compute the value; the results are identical. Before 3.12 all instances share a lock,
        for which a process waits without end that was forked while a thread held it.

        Parameters
        ----------
        function : callable
            Method that gives the value.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.func = function
            self.__doc__, self.__module__ = function.__doc__, function.__module__

        def __set_name__(self, owner: type, name: str) -> None:
            self.attrname = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


__all__ = ["cached_property"]
