"""rankwood: tree rankers that are small, fast and provably as good.

Names are imported on first use, so that `import rankwood` costs little more than numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rankwood._version import __version__

if TYPE_CHECKING:
    from rankwood.data.dataset import Dataset as Dataset
    from rankwood.data.synthetic import make_ranking as make_ranking
    from rankwood.errors import DataError as DataError
    from rankwood.errors import MeasureError as MeasureError
    from rankwood.errors import ModelError as ModelError
    from rankwood.errors import RankwoodError as RankwoodError
    from rankwood.evaluation.significance import bootstrap_interval as bootstrap_interval
    from rankwood.evaluation.significance import equivalence_test as equivalence_test
    from rankwood.evaluation.significance import holm as holm
    from rankwood.evaluation.significance import non_inferiority_test as non_inferiority_test
    from rankwood.evaluation.significance import paired_t_test as paired_t_test
    from rankwood.evaluation.significance import randomisation_test as randomisation_test
    from rankwood.evaluation.significance import wilcoxon_test as wilcoxon_test

_HOME_OF = {
    "Dataset": "rankwood.data.dataset",
    "RankwoodError": "rankwood.errors",
    "DataError": "rankwood.errors",
    "ModelError": "rankwood.errors",
    "MeasureError": "rankwood.errors",
    "make_ranking": "rankwood.data.synthetic",
    "bootstrap_interval": "rankwood.evaluation.significance",
    "equivalence_test": "rankwood.evaluation.significance",
    "holm": "rankwood.evaluation.significance",
    "non_inferiority_test": "rankwood.evaluation.significance",
    "paired_t_test": "rankwood.evaluation.significance",
    "randomisation_test": "rankwood.evaluation.significance",
    "wilcoxon_test": "rankwood.evaluation.significance",
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
