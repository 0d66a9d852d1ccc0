"""A model that is served, under a name."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankwood.lazily import cached_property
from rankwood.model.ensemble import Ensemble


@dataclass(frozen=True)
class Served:
    """A model under its name, prepared for batches of any size.

    A request takes one of these when it begins and holds it to its end, so that its answer is of one model. The one
    that was swapped out is freed when its last request ends.

    Parameters
    ----------
    name : str
        What stands in the path of a request.
    model : Ensemble
        The model.
    is_open : bool, default False
        Whether rows may have more values than the model has features, as its file told only those that it needs.
    loaded : float
        When it was loaded, in seconds since 1970.
    """

    name: str
    model: Ensemble
    is_open: bool = False
    loaded: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        for n_rows in (1, 128):  # the engines that Ensemble.score takes, so that no request waits for them
            X = np.broadcast_to(0.0, (n_rows, self.model.n_features))
            self.model.score(X)
            self.model.score(X, group=[n_rows])
        _ = self.facts  # the fingerprint of a large model takes a while, too

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what scores depend on."""
        return self.model.fingerprint()

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What `GET /models` tells of it."""
        model = self.model
        return {
            "name": self.name,
            "trees": model.n_trees,
            "leaves": model.n_leaves,
            "features": model.n_features,
            "more_features_allowed": self.is_open,
            "feature_names": None if model.feature_names is None else list(model.feature_names),
            "early_exit": None if model.exit is None else model.exit.as_dict(),
            "fingerprint": self.fingerprint,
            "loaded": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.loaded)),
        }
