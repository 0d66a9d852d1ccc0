"""Checkpoints: training that was killed goes on to the very model it would have become."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.data.binning import BinnedDataset
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.learners.callbacks import Result


@dataclass(frozen=True)
class Checkpoint:
    """Save the boosted trees to `path` every `every` trees, and go on from there when the file exists.

    The file is a model file. It says what it was trained on and how; going on with other data or parameters is an
    error. The number of trees may differ, so a finished training can be prolonged.
    """

    path: str | os.PathLike[str]
    every: int = 50

    def __post_init__(self) -> None:
        if self.every < 1:
            raise RankwoodError(f"a checkpoint is made every 1 or more trees, got every={self.every}")

    def load(self, identity: str) -> tuple[Ensemble | None, list[list[Result]]]:
        """The trees saved, and the measures after each; nothing when there is no checkpoint yet."""
        if not Path(self.path).exists():
            return None, []
        model = Ensemble.load(self.path)
        saved = model.metadata.get("checkpoint")
        if not isinstance(saved, dict):
            raise RankwoodError(f"{os.fspath(self.path)} is a finished model, not a checkpoint: choose another file")
        if saved.get("identity") != identity:
            raise RankwoodError(
                f"the checkpoint {os.fspath(self.path)} was made with other data or parameters: "
                "delete it to start anew, or choose another file"
            )
        history: list[list[Result]] = [[tuple(result) for result in results] for results in saved["history"]]
        return model, history

    def save(self, model: Ensemble, identity: str, history: Sequence[Sequence[Result]]) -> None:
        """Write the trees so far; a kill while writing leaves the checkpoint before it."""
        model.with_metadata(checkpoint={"identity": identity, "history": history}).save(self.path)


def identity_of(train: BinnedDataset, start: Ensemble, *parameters: Any) -> str:
    """A digest of everything that the next tree depends on, the trees before it aside."""
    digest = hashlib.sha256(repr(parameters).encode())
    digest.update(start.fingerprint().encode())
    for array in (train.bins, train.edges.flat, train.edges.offsets, train.by_query(train.data.y), train.data.offsets):
        digest.update(np.ascontiguousarray(array).data)
    for weights in (train.data.weights, train.data.query_weights):
        digest.update(b"-" if weights is None else weights.tobytes())
    return digest.hexdigest()
