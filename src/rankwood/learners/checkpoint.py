"""Checkpoints: training that was killed goes on to the very model it would have become."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwood._version import __version__
from rankwood.atomic import check_writable
from rankwood.data.binning import BinnedDataset
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.learners.callbacks import Result
from rankwood.learners.growing import GrowingEnsemble
from rankwood.learners.steps import Step

DROPPED = Step._fields.index("dropped")

Identity = dict[str, str]  # what the next tree depends on, by name; large things as digests


@dataclass(frozen=True)
class Checkpoint:
    """Save the trees to `path` every `every` trees, and go on from there when the file exists.

    The file is a model file. It says what it was trained on and how; going on with other data or parameters is an
    error. The number of trees may be larger than before: so a finished training is prolonged. With task="ordinal" it
    is every `every` rounds of trees. With X-DART it is every `every` iterations, and the file also has the trees that
    were removed, with weight 0.

    >>> import rankwood as rw, tempfile, os
    >>> data = rw.make_ranking(n_queries=20, docs_per_query=10, n_features=4)
    >>> checkpoint = rw.Checkpoint(os.path.join(tempfile.mkdtemp(), "training.rw"), every=10)
    >>> _ = rw.MART(n_trees=25, n_leaves=4).fit(data, checkpoint=checkpoint)
    >>> rw.MART(n_trees=40, n_leaves=4).fit(data, checkpoint=checkpoint).n_trees_  # 15 more
    40
    """

    path: str | os.PathLike[str]
    every: int = 50

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not hasattr(self.every, "__index__") or self.every < 1:
            raise RankwoodError(f"a checkpoint is made every 1 or more trees, got every={self.every!r}")

    def read(self, identity: Identity) -> tuple[Ensemble, dict[str, Any]] | None:
        """The trees saved, and what was noted of them; None when there is no checkpoint yet."""
        path = os.fspath(self.path)
        check_writable(path)  # now, not after the first `every` trees
        if not Path(path).exists():
            return None
        model = Ensemble.load(path)
        return model, check_identity(path, model, identity)

    def load(self, fresh: GrowingEnsemble, identity: Identity) -> GrowingEnsemble:
        """`fresh` and the trees saved, with what was noted of each; `fresh` itself when there is no checkpoint yet."""
        found = self.read(identity)
        if found is None:
            return fresh
        model, saved = found
        return GrowingEnsemble(
            fresh.start,
            fresh.task,
            trees=[model.tree(t) for t in range(model.n_trees)],
            steps=[Step(*step)._replace(dropped=tuple(step[DROPPED])) for step in saved["steps"]],
            learning_rates=saved["learning_rates"],
            history=read_history(saved["history"]),
        )

    def save(self, growing: GrowingEnsemble, identity: Identity) -> None:
        """Write the trees so far; a kill while writing leaves the checkpoint before it."""
        notes = {
            "identity": identity,
            "learning_rates": growing.learning_rates,
            "history": growing.history,
            "steps": growing.steps,
        }
        growing.everything().with_metadata(checkpoint=notes).save(self.path)


def read_history(history: list[Any]) -> list[list[Result]]:
    """The measures after each tree, as they were noted."""
    return [[Result(*result) for result in results] for results in history]


def check_identity(path: str, model: Ensemble, identity: Identity) -> dict[str, Any]:
    """What a checkpoint's notes say, when it was made with what `identity` says; else an error."""
    saved = model.metadata.get("checkpoint")
    if not isinstance(saved, dict):
        raise RankwoodError(f"{path} is a finished model, not a checkpoint: choose another file")
    made_with = saved["identity"]
    other = [name for name in {**identity, **made_with} if made_with.get(name) != identity.get(name)]
    if other:
        raise RankwoodError(
            f"the checkpoint {path} was made with other {', other '.join(other)}: "
            "delete it to start anew, or choose another file"
        )
    return saved


def identify(
    train: BinnedDataset, watched: Mapping[str, BinnedDataset], start: Ensemble, parameters: Mapping[str, Any]
) -> Identity:
    """Everything that the next tree, and where training stops, depend on; the trees before it aside."""
    return {
        "training data": _digest(train),
        **{f"data set {name!r}": _digest(binned) for name, binned in watched.items()},
        "model to start from": start.fingerprint(),
        **identify_settings(parameters),
    }


def identify_settings(parameters: Mapping[str, Any]) -> Identity:
    """Parameters by their texts, and the version, which may change what they mean."""
    named = {name: _without_addresses(repr(value)) for name, value in parameters.items()}
    return {**named, "version of rankwood": __version__}


def _digest(binned: BinnedDataset) -> str:
    data = binned.data
    digest = hashlib.sha256()
    for array in (binned.bins, binned.edges.flat, binned.edges.offsets, binned.by_query(data.y), data.offsets):
        digest.update(np.ascontiguousarray(array).data)
    for weights in (None if data.weights is None else binned.by_query(data.weights), data.query_weights):
        digest.update(b"-" if weights is None else weights.tobytes())
    return digest.hexdigest()


def _without_addresses(text: str) -> str:
    """A function's text names the place in memory where it happens to lie."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
