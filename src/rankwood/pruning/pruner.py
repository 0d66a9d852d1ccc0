"""One model, its outputs on training and validation data, and what becomes of them when trees go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import DataError, ModelError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import Measure
from rankwood.learners.ordinal import NOTE
from rankwood.pruning.distil import Distil, distil_leaves
from rankwood.pruning.line_search import LineSearch, Searched, line_search
from rankwood.pruning.outputs import check_fits, signed_weights, unsigned_weights
from rankwood.pruning.queries import Part
from rankwood.pruning.refit import Refit, gradient_weights, refit_leaves
from rankwood.pruning.strategies import Chooser, score_shares, smallest

Victims = Literal["train", "valid"]
Variant = Literal["line-search", "gradient", "refit", "distil"]
VARIANTS: tuple[str, ...] = get_args(Variant)


@dataclass(frozen=True)
class Pruned:
    """Weights of trees, 0 for those that are gone, and values of leaves, both as `TreeOutputs` has them."""

    variant: str
    weights: FloatArray
    values: FloatArray
    train: float
    valid: float


@dataclass
class Pruner:
    """Prunes one model to any number of trees.

    Victims of strategies that go by weights are chosen by the weights of a line search over all trees; then the
    survivors start from their original weights again.
    """

    model: Ensemble
    train: Part
    valid: Part
    chooser: Chooser
    search: LineSearch
    refit: Refit = field(default_factory=Refit)
    distil: Distil = field(default_factory=Distil)
    victims: Victims = "valid"  # the data that the strategy looks at
    _searched: FloatArray | None = None  # weights that victims are chosen by

    @classmethod
    def of(
        cls,
        model: Ensemble,
        train: Dataset,
        valid: Dataset,
        measure: str | Measure,
        convention: str | Convention,
        chooser: Chooser,
        search: LineSearch,
        refit: Refit,
        *,
        distil: Distil | None = None,
        victims: Victims = "valid",
        max_memory: int | None = None,
        n_threads: int | None = None,
    ) -> Pruner:
        check_model(model, search)
        if victims not in get_args(Victims):
            raise RankwoodError(f"victims must be 'train' or 'valid', the data they are chosen by, got {victims!r}")
        check_fits(model, [train, valid], max_memory)
        parts = []
        for name, data in (("training", train), ("validation", valid)):
            try:
                parts.append(Part.of(model, data, measure, convention, max_memory=max_memory, n_threads=n_threads))
            except DataError as error:
                raise DataError(f"{name} data: {error}") from None
        return cls(model, parts[0], parts[1], chooser, search, refit, distil or Distil(), victims)

    @property
    def original(self) -> FloatArray:
        return unsigned_weights(self.model)

    def victims_by(self, on_iteration: Callable[[int, int], None] | None = None) -> FloatArray:
        """The weights that victims are chosen by; the first call may search for them."""
        if self._searched is None:
            self._searched = self.original
            if self.chooser.goes_by_weights:
                found = line_search(
                    self.train, self.valid, self.original, settings=self.search, on_iteration=on_iteration
                )
                self._searched = found.weights
        return self._searched

    def prune(
        self,
        k: int,
        variants: tuple[str, ...] = ("line-search",),
        on_iteration: Callable[[int, int], None] | None = None,
    ) -> list[Pruned]:
        """Take k trees out and re-weigh the rest, once for each variant; trees driven to weight 0 go as well."""
        weights = self.victims_by() if k else self.original
        part = self.train if self.victims == "train" else self.valid
        stay = self.chooser.stay(part.outputs, weights, part.queries, k) if k else np.arange(len(weights))
        start = np.zeros_like(self.original)
        start[stay] = self.original[stay]
        values = self.train.outputs.values
        searched: Searched | None = None
        if {"line-search", "refit"} & set(variants):
            searched = line_search(self.train, self.valid, start, stay, settings=self.search, on_iteration=on_iteration)
        found = []
        for variant in variants:
            if variant == "distil":
                found.append(self._distilled(k))
            elif variant == "gradient":
                begin = gradient_weights(self.train, start, stay, samples=self.search.samples)
                other = line_search(self.train, self.valid, begin, stay, settings=self.search)
                found.append(Pruned(variant, other.weights, values, other.train, other.valid))
            else:
                assert searched is not None
                plain = Pruned(variant, searched.weights, values, searched.train, searched.valid)
                found.append(self._refitted(plain) if variant == "refit" else plain)
        return found

    def _refitted(self, plain: Pruned) -> Pruned:
        new, valid = refit_leaves(self.train, self.valid, plain.weights, self.refit)
        train = self.train.with_values(new).quality(plain.weights)
        return Pruned(plain.variant, plain.weights, new, train, valid)

    def _distilled(self, k: int) -> Pruned:
        """Without regard to labels: the trees that say least go, and the others learn what they said."""
        outputs, weights = self.train.outputs, self.original
        weights[smallest(score_shares(outputs, weights), k)] = 0.0
        new = distil_leaves(outputs, self.original, np.flatnonzero(weights > 0.0), self.distil)
        train, valid = (part.with_values(new).quality(weights) for part in (self.train, self.valid))
        return Pruned("distil", weights, new, train, valid)

    def ensemble(self, pruned: Pruned) -> Ensemble:
        """The model of the trees that are left. It scores as the weights and values do, to the bit."""
        signs = np.repeat(np.where(self.model.tree_weights < 0.0, -1.0, 1.0), np.diff(self.model.leaf_offsets))
        changed = pruned.values is not self.train.outputs.values
        whole = self.model.replace(leaf_value=pruned.values * signs) if changed else self.model
        left = np.flatnonzero(pruned.weights != 0.0)
        kept = whole.reweigh(signed_weights(self.model, pruned.weights)).select(left)
        note = kept.metadata
        if note.pop(NOTE, None) is not None:  # re-weighed trees no longer tell grades apart
            kept = kept.replace(metadata=note)
        return kept


def check_model(model: Ensemble, search: LineSearch) -> None:
    """Refuse what cannot be pruned: no trees, or values so large that a search could overflow."""
    if not isinstance(model, Ensemble):
        raise ModelError(
            f"pruning takes an Ensemble or a fitted ranker, got {type(model).__name__}; models of other libraries come "
            "in with rankwood.load_model"
        )
    if model.n_trees == 0:
        raise ModelError("the model has no trees: there is nothing to prune")
    weights = unsigned_weights(model)
    reach = search.first_radius(weights) * max(search.iterations, 1)
    with np.errstate(over="ignore"):
        largest = np.maximum.reduceat(np.abs(model.leaf_value), model.leaf_offsets[:-1])
        bound = abs(model.base) + float(((weights + 2.0 * reach) * largest).sum())
    if not bound < 1e300:
        raise ModelError("leaf values and weights are so large that scores could overflow while weights are searched")


def checked_variants(variants: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Names of variants, each once."""
    names = tuple(dict.fromkeys([variants] if isinstance(variants, str) else variants))
    wrong = [name for name in names if name not in VARIANTS]
    if wrong or not names:
        raise RankwoodError(f"variants are {', '.join(map(repr, VARIANTS))}, got {wrong[0] if wrong else 'none'!r}")
    return names
