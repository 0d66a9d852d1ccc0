"""Learners by the names that commands and files call them."""

from __future__ import annotations

import difflib
import importlib
from typing import Any

from rankwood.errors import RankwoodError

LEARNERS = {
    "mart": "presets.MART",
    "lambdamart": "presets.LambdaMART",
    "dart": "dart.DART",
    "xdart": "dart.XDART",
    "igbrt": "initialized.InitializedMART",
    "forest": "random_forest.RandomForest",
}


def learner_class(name: str) -> Any:
    """The estimator of that name.

    >>> learner_class("xdart").__name__
    'XDART'
    """
    if name not in LEARNERS:
        near = difflib.get_close_matches(str(name).lower(), LEARNERS, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise RankwoodError(f"there is no learner {name!r}{hint}: they are {', '.join(LEARNERS)}")
    module, _, kind = LEARNERS[name].partition(".")
    return getattr(importlib.import_module(f"rankwood.learners.{module}"), kind)
