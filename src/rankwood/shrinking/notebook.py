"""The notebook of a search: models that were found and what was measured of them, kept in a file to go on from."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwood.dtypes import FloatArray
from rankwood.model.constraints import Constraints
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Trees
from rankwood.training.checkpoint import Checkpoint, Identity

Facts = dict[str, Any]  # what JSON can hold


class Notebook:
    """Finished steps by name, each a model and facts about it; written to a file after every step, if there is one.

    Parameters
    ----------
    path : path or None
        The file, which is a model file: the trees of all steps, one after another. None: nothing is kept.
    identity : dict from str to str
        What the steps depend on; a file that was made with something else is refused.
    """

    def __init__(self, path: str | os.PathLike[str] | None, identity: Identity) -> None:
        self.checkpoint = None if path is None else Checkpoint(path)
        self.identity = identity
        self.steps: dict[str, tuple[Ensemble, Facts]] = {}
        found = None if self.checkpoint is None else self.checkpoint.read(identity)
        if found is not None:
            self._take_up(*found)

    def step(self, name: str, make: Callable[[], tuple[Ensemble, Facts]]) -> tuple[Ensemble, Facts]:
        """The model and facts of a step: those noted, or else those that `make` finds."""
        if name not in self.steps:
            self.steps[name] = make()
            self._save()
        return self.steps[name]

    def _save(self) -> None:
        if self.checkpoint is None:
            return
        models = [model for model, _ in self.steps.values()]
        first = models[0]
        notes = [[name, model.n_trees, model.base, facts] for name, (model, facts) in self.steps.items()]
        Ensemble.of(
            Trees.join([_with_cover(model.trees) for model in models]),
            n_features=first.n_features,
            feature_names=first.feature_names,
            tree_weights=np.concatenate([model.tree_weights for model in models]),
            metadata={"checkpoint": {"identity": self.identity, "steps": notes}, **Constraints.of(first).notes()},
        ).save(self.checkpoint.path)

    def _take_up(self, model: Ensemble, saved: Facts) -> None:
        start = 0
        plain = model.replace(metadata=Constraints.of(model).notes())
        for name, n_trees, base, facts in saved["steps"]:
            step = plain.select(np.arange(start, start + n_trees)).replace(base=base)
            known = step.leaf_cover is not None and step.leaf_cover.any()
            self.steps[name] = (step if known else step.replace(leaf_cover=None), facts)
            start += n_trees


def _with_cover(trees: Trees) -> Trees:
    """Trees with a cover of every leaf, 0 where it is not known: joined trees keep it only if all have it."""
    return trees if trees.leaf_cover is not None else trees.replace(leaf_cover=np.zeros(trees.n_leaves))


def as_list(values: FloatArray) -> list[float | None]:
    """Numbers as JSON can hold them: None for NaN."""
    return [None if np.isnan(value) else value for value in values.tolist()]


def as_array(values: list[float | None]) -> FloatArray:
    """The inverse of `as_list`."""
    return np.array([np.nan if value is None else value for value in values])
