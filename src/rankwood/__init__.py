"""rankwood: tree rankers that are small, fast and provably as good.

Names are imported on first use, so that `import rankwood` costs little more than numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rankwood._version import __version__

if TYPE_CHECKING:
    from rankwood.data.dataset import Dataset as Dataset
    from rankwood.ensemble import Ensemble as Ensemble
    from rankwood.errors import DataError as DataError
    from rankwood.errors import MeasureError as MeasureError
    from rankwood.errors import ModelError as ModelError
    from rankwood.errors import RankwoodError as RankwoodError
    from rankwood.model_file import load_model as load_model
    from rankwood.tree import Tree as Tree
    from rankwood.evaluation.conventions import Convention as Convention
    from rankwood.evaluation.measures import Measure as Measure
    from rankwood.evaluation.measures import parse_measure as parse_measure

_HOME_OF = {
    "Dataset": "rankwood.data.dataset",
    "Ensemble": "rankwood.ensemble",
    "Tree": "rankwood.tree",
    "load_model": "rankwood.model_file",
    "RankwoodError": "rankwood.errors",
    "DataError": "rankwood.errors",
    "ModelError": "rankwood.errors",
    "MeasureError": "rankwood.errors",
    "Convention": "rankwood.evaluation.conventions",
    "Measure": "rankwood.evaluation.measures",
    "parse_measure": "rankwood.evaluation.measures",
}

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rankwood' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
