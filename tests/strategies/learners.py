"""Every learner, small and in several moods, for the tests of what all of them promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rankwood as rw

SMALL: dict[str, Any] = {"n_trees": 8, "n_leaves": 6, "learning_rate": 0.3, "min_docs_per_leaf": 5}
SAMPLED: dict[str, Any] = {"query_fraction": 0.6, "feature_fraction": 0.5, "random_state": 3}
CHEAP: dict[str, Any] = {"depth_relaxation": 0.8, "balance": 0.2}

LEARNERS: dict[str, Callable[..., Any]] = {
    "MART": lambda **more: rw.MART(**SMALL | more),
    "MART-sampled": lambda **more: rw.MART(**SMALL | SAMPLED | more),
    "LambdaMART": lambda **more: rw.LambdaMART(**SMALL | more),
    "LambdaMART-sampled": lambda **more: rw.LambdaMART(**SMALL | SAMPLED | {"feature_sampling": "split"} | more),
    "LambdaMART-cheap": lambda **more: rw.LambdaMART(**SMALL | CHEAP | {"gain": "variance"} | more),
}

# Trees that were there may weigh less later, or be gone: going on from a model is another training than one at once.
DROPPING: dict[str, Callable[..., Any]] = {
    "DART": lambda **more: rw.DART(**SMALL | {"rate": 0.3, "l2": 0.0} | more),
    "XDART": lambda **more: rw.XDART(**SMALL | {"judge": "train", "upper_bound": 2, "l2": 0.0} | more),
}

# Trees that were there may get other leaf values later.
CORRECTED: dict[str, Callable[..., Any]] = {
    "LambdaMART-corrective": lambda **more: rw.LambdaMART(**SMALL | {"corrective": 3} | more),
    "MART-corrective": lambda **more: rw.MART(**SMALL | SAMPLED | {"corrective": 2} | more),
    "DART-corrective": lambda **more: rw.DART(**SMALL | {"rate": 0.3, "l2": 0.0, "corrective": 3} | more),
    "XDART-corrective": lambda **more: rw.XDART(
        **SMALL | {"judge": "train", "upper_bound": 2, "l2": 0.0, "corrective": 4} | more
    ),
}
