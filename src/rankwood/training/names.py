"""Learners by the names that commands and files call them."""

from __future__ import annotations

import difflib
import importlib
from typing import Any

from rankwood.errors import RankwoodError

LEARNERS = {
    "mart": "MART",
    "lambdamart": "LambdaMART",
    "dart": "DART",
    "xdart": "XDART",
    "igbrt": "InitializedMART",
    "forest": "RandomForest",
}


def learner_class(name: str) -> Any:
    """The class of estimators that has this name on the command line.

    Examples
    --------
    >>> learner_class("xdart").__name__
    'XDART'
    """
    if name not in LEARNERS:
        near = difflib.get_close_matches(str(name).lower(), LEARNERS, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise RankwoodError(f"there is no learner {name!r}{hint}: they are {', '.join(LEARNERS)}")
    return getattr(importlib.import_module("rankwood.training.estimators"), LEARNERS[name])
