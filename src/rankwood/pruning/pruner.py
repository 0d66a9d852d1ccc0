"""One model pruned to any number of trees, in several variants that re-weigh or refit the trees that stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import DataError, ModelError, RankwoodError
from rankwood.evaluation.evaluator import Evaluator
from rankwood.fitting.measured import Part
from rankwood.fitting.outputs import check_fits, refitted, signed_weights, unsigned_weights
from rankwood.fitting.refit import Refit, best_pass, lambda_gradients, leaf_derivatives, refit_passes
from rankwood.fitting.ridge import Distil, distil_leaves
from rankwood.model.additive import AdditiveModel
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.course import Course, Step
from rankwood.pruning.line_search import LineSearch, Point, best_on_segment, line_search
from rankwood.pruning.notebook import Arrays
from rankwood.pruning.strategies import Chooser, score_shares, smallest
from rankwood.training.tasks import without_grades

Victims = Literal["train", "valid"]
Variant = Literal["line-search", "gradient", "refit", "distil"]
VARIANTS: tuple[str, ...] = get_args(Variant)


@dataclass(frozen=True)
class PruningSettings:
    """Settings of `cleaver` that are seldom changed.

    `victims` are the trees that are removed.

    Parameters
    ----------
    victims : {"valid", "train"}, default "valid"
        Data by which the strategy chooses the victims. "train" is the paper's choice; but where a model
        over-fits its training data, the first trees, which generalise best, seem the least useful there and go.
    search : LineSearch, default LineSearch()
        How weights are searched.
    refit : Refit, default Refit(passes=50, rate=1.0, patience=5)
        How the variant "refit" fits leaf values.
    distil : Distil, default Distil()
        How the variant "distil" fits leaf values.
    max_queries : int or None, default None
        Search with at most so many queries of the training and of the validation data, drawn at random; models are
        still judged by all of them. None: all queries.
    max_memory : int or None, default None
        Bytes that pruning may take: a document needs a byte or two per tree. None: what the machine has free.
    measure_speed : bool, default True
        Whether scoring with every model is timed, for the column `speed_up`.
    seed : int, default 0
        Seed of all that is drawn at random: the strategy "random", `max_queries`, and validation queries that are set
        aside to judge by.

    Examples
    --------
    >>> import rankwood as rw
    >>> settings = rw.PruningSettings(victims="train", search=rw.LineSearch(iterations=10))
    >>> settings.victims, settings.search.iterations, settings.seed
    ('train', 10, 0)
    """

    victims: Victims = "valid"
    search: LineSearch = field(default_factory=LineSearch)
    refit: Refit = field(default_factory=lambda: Refit(passes=50, rate=1.0, patience=5))  # of the published figures
    distil: Distil = field(default_factory=Distil)
    max_queries: int | None = None
    max_memory: int | None = None
    measure_speed: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.victims not in get_args(Victims):
            raise RankwoodError(
                f"victims must be 'train' or 'valid', the data they are chosen by, got {self.victims!r}"
            )
        for name, kind in (("search", LineSearch), ("refit", Refit), ("distil", Distil)):
            if not isinstance(getattr(self, name), kind):
                raise RankwoodError(f"{name} must be a {kind.__name__}, got {type(getattr(self, name)).__name__}")
        if self.max_queries is not None and self.max_queries < 1:
            raise RankwoodError(f"max_queries must be at least 1, got {self.max_queries}")

    @classmethod
    def of(cls, settings: PruningSettings | None) -> PruningSettings:
        """The settings themselves, or the defaults.

        Parameters
        ----------
        settings : PruningSettings or None
            None: the defaults.
        """
        if settings is not None and not isinstance(settings, PruningSettings):
            raise RankwoodError(f"settings must be a PruningSettings, got {type(settings).__name__}")
        return cls() if settings is None else settings


@dataclass(frozen=True)
class Pruned:
    """A pruned model as weights of trees, 0 for those removed, and leaf values, both in the form of `TreeOutputs`."""

    variant: str
    weights: FloatArray
    values: FloatArray
    train: float
    valid: float


@dataclass
class Pruner:
    """Prunes one model to any number of trees.

    Strategies that look at weights choose victims by the weights of a line search over all trees. The trees that stay
    then start from their original weights again.

    Parameters
    ----------
    model : Ensemble or AdditiveModel
        The full model.
    train, valid : Part
        Data that weights are searched on, and data that the best iteration is chosen by.
    chooser : Chooser
        Strategy that chooses the trees to remove.
    settings : PruningSettings
        How to search and fit.
    course : Course
        What steps go through: it counts and keeps them, and may end them.
    part : int, default 0
        Which validation queries choose: 0 for all, else the number of the fold that is left out.
    """

    model: Ensemble | AdditiveModel
    train: Part
    valid: Part
    chooser: Chooser
    settings: PruningSettings
    course: Course = field(default_factory=Course)
    part: int = 0
    # What validation data has no part in: shares of trees in scores, and values by the number of victims.
    _shares: list[FloatArray] = field(default_factory=list)
    _distilled_values: dict[int, FloatArray] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: Ensemble | AdditiveModel,
        train: Evaluator,
        valid: Evaluator,
        chooser: Chooser,
        settings: PruningSettings,
        *,
        beside: Sequence[Dataset] = (),
    ) -> Pruner:
        """Find the leaf of every document of both data sets in every tree of `model`.

        Parameters
        ----------
        train, valid : Evaluator
            The measure that counts, bound to training and to validation data with `by_query=True`.
        beside : sequence of Dataset
            Other data that is to fit into the memory at the same time (`chosen_by`).
        """
        check_model(model, settings.search)
        check_fits(model, [train.data, valid.data, *beside], settings.max_memory)
        parts = [
            _part(model, evaluator, name, settings) for name, evaluator in (("training", train), ("validation", valid))
        ]
        return cls(model, parts[0], parts[1], chooser, settings)

    def chosen_by(self, valid: Evaluator, chooser: Chooser, part: int) -> Pruner:
        """A pruner of the same model with the same training data, where other validation data chooses.

        Parameters
        ----------
        valid : Evaluator
            The measure bound to the other validation data, with `by_query=True`.
        chooser : Chooser
            A strategy that has not chosen yet.
        part : int
            Number of that validation data.
        """
        return replace(self, valid=_part(self.model, valid, "validation", self.settings), chooser=chooser, part=part)

    @property
    def original(self) -> FloatArray:
        """Weights of the full model, without signs."""
        return unsigned_weights(self.model)

    def choosing_weights(self) -> FloatArray:
        """Weights that victims are chosen by; the first call searches for them if the strategy looks at weights."""
        if not self.chooser.goes_by_weights:
            return self.original
        return self._search("choose", 0, self.original, np.arange(self.train.outputs.n_trees))["weights"]

    def prune(self, k: int, variants: tuple[str, ...] = ("line-search",)) -> Iterator[Pruned]:
        """Remove k trees and re-weigh the rest, once for each variant; trees driven to weight 0 are removed as well."""
        stay = self._stay(k)
        start = np.zeros_like(self.original)
        start[stay] = self.original[stay]
        if {"line-search", "refit"} & set(variants):
            searched = self._search("search", k, start, stay)  # shared by two variants
        for variant in variants:
            if variant == "distil":
                found = self._distilled(k)
            elif variant == "gradient":
                found = self._search(variant, k, start, stay)
            else:
                found = self._refitted(k, searched["weights"]) if variant == "refit" else searched
            yield self._pruned(variant, found)

    def _stay(self, k: int) -> IndexArray:
        if k == 0:
            return np.arange(self.train.outputs.n_trees)
        part = self.train if self.settings.victims == "train" else self.valid
        notebook, name = self.course.notebook, f"{self.part} victims"
        if self.chooser.gone is None and name in notebook:
            self.chooser.gone = notebook.step(name, dict)["trees"]
        stay = self.chooser.stay(part.outputs, self.choosing_weights(), part.queries, k)
        if self.chooser.gone is not None:
            notebook.note(name, {"trees": self.chooser.gone})
        return stay

    def _search(self, kind: str, k: int, start: FloatArray, stay: IndexArray) -> Arrays:
        """A line search over the trees that stay; of the kind "gradient", from where gradient steps lead."""
        how = self.settings.search

        def make() -> Arrays:
            begin = gradient_weights(self.train, start, stay, samples=how.samples) if kind == "gradient" else start
            trail = self.course.notebook.trail("choose" if (kind, k) == ("search", 0) else kind, begin, stay)
            if trail.weights and self.part == 0:
                self.course.resumed()
            tick = self.course.tick
            found = line_search(self.train, self.valid, begin, stay, settings=how, on_iteration=tick, trail=trail)
            return {"weights": found.weights, "quality": np.array([found.train, found.valid])}

        return self.course.do(self._step(kind, k), make)

    def _refitted(self, k: int, weights: FloatArray) -> Arrays:
        how = self.settings.refit

        def make() -> Arrays:
            passes = self.course.ticks(refit_passes(self.train, weights, how), how.passes)
            best = best_pass(self.train, self.valid, weights, passes, how.patience)
            train = self.train.with_values(best.values).quality(weights)
            return {"weights": weights, "values": best.values, "quality": np.array([train, best.valid])}

        return self.course.do(self._step("refit", k), make)

    def _distilled(self, k: int) -> Arrays:
        """Remove the trees with the smallest share in scores and fit the others to the full model's scores."""

        def make() -> Arrays:
            outputs, weights = self.train.outputs, self.original
            if not self._shares:
                self._shares.append(score_shares(outputs, weights))
            weights[smallest(self._shares[0], k)] = 0.0
            new = self._distilled_values.get(k)
            if new is None:
                new = distil_leaves(outputs, self.original, np.flatnonzero(weights > 0.0), self.settings.distil)
            qualities = [part.with_values(new).quality(weights) for part in (self.train, self.valid)]
            return {"weights": weights, "values": new, "quality": np.array(qualities)}

        found = self.course.do(self._step("distil", k), make)
        self._distilled_values[k] = found["values"]
        return found

    def _step(self, kind: str, k: int) -> Step:
        return Step(self.part, k, kind, self.train.outputs.n_trees - k)

    def _pruned(self, variant: str, found: Arrays) -> Pruned:
        train, valid = found["quality"].tolist()
        return Pruned(variant, found["weights"], found.get("values", self.train.outputs.values), train, valid)

    def ensemble(self, pruned: Pruned) -> Any:
        """The pruned model, of the trees that are left; its scores have the bits that pruning measured."""
        if isinstance(self.model, AdditiveModel):
            return self.model.reweigh(signed_weights(self.model, pruned.weights))
        changed = not np.array_equal(pruned.values, self.train.outputs.values)
        whole = refitted(self.model, pruned.values) if changed else self.model
        left = np.flatnonzero(pruned.weights != 0.0)
        return without_grades(whole.reweigh(signed_weights(self.model, pruned.weights)).select(left))


def _part(model: Ensemble | AdditiveModel, evaluator: Evaluator, name: str, settings: PruningSettings) -> Part:
    """The data of an evaluator as pruning sees it; an error says which data it is about."""
    try:
        return Part.of(model, evaluator, max_memory=settings.max_memory)
    except DataError as error:
        raise DataError(f"{name} data: {error}") from None


def gradient_weights(
    train: Part, weights: FloatArray, trees: IndexArray, *, samples: int = 20, steps: int = 10
) -> FloatArray:
    """Weights to start a line search from, found by projected Newton steps on LambdaMART's gradients.

    A step aims at w + g / h for every tree of `trees`, never below 0, and moves to the best of `samples` points on the
    way there by the training measure, as long as that is higher than before.
    """
    gradients = lambda_gradients(train.queries)
    current = Point.at(train, weights)
    for _ in range(steps):
        first, second = leaf_derivatives(train, current.weights, trees, gradients)
        values, starts = train.outputs.values, train.outputs.leaf_offsets[:-1]
        with np.errstate(over="ignore", invalid="ignore"):  # leaf values may be far apart
            slope = np.add.reduceat(first * values, starts)[trees]
            curvature = np.add.reduceat(second * values**2, starts)[trees]
            newton = np.divide(slope, curvature, out=np.zeros_like(slope), where=curvature > 0.0)
            target = current.weights.copy()
            target[trees] = np.maximum(current.weights[trees] + newton, 0.0)
        if not np.isfinite(target).all():
            break
        moved = best_on_segment(train, current, target, samples)
        if not moved.quality > current.quality:
            break
        current = moved
    return current.weights


def check_model(model: Any, search: LineSearch) -> None:
    """Refuse a model that cannot be pruned: one without trees, or of values so large that a search could overflow."""
    if isinstance(model, AdditiveModel):
        return
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
    """Names of variants, each once, in the order given."""
    names = tuple(dict.fromkeys([variants] if isinstance(variants, str) else variants))
    wrong = [name for name in names if name not in VARIANTS]
    if wrong or not names:
        raise RankwoodError(f"variants are {', '.join(map(repr, VARIANTS))}, got {wrong[0] if wrong else 'none'!r}")
    return names
