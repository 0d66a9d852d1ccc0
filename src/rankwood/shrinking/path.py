"""The path: students of several kinds made smaller size by size, and the best of each size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.evaluator import Evaluator
from rankwood.fitting.measured import Part
from rankwood.fitting.refit import Refit, refit_passes
from rankwood.model.constraints import Constraints
from rankwood.model.ensemble import Ensemble
from rankwood.shrinking.choice import Candidate, Choosers, best_of, best_pass, has_stopped
from rankwood.shrinking.notebook import Facts, Notebook, as_array, as_list
from rankwood.shrinking.students import (
    Growing,
    Lesson,
    Selection,
    Thinning,
    documents,
    grow_trees,
    select_trees,
    thin,
)


@dataclass(frozen=True)
class Route:
    """One way from the teacher to small students.

    Parameters
    ----------
    kind : {"grown", "selected"}
        Whether trees are grown anew from the teacher's scores, or taken from the teacher.
    teacher : {"input", "refitted"}
        Whether the model itself teaches, or the model with its leaves fitted to labels once more.
    trees : float
        For "selected": share of the teacher's trees that are taken before nodes go.
    features : float
        Share of the features in use that stay.
    """

    kind: Literal["grown", "selected"]
    teacher: Literal["input", "refitted"]
    trees: float = 1.0
    features: float = 1.0

    @property
    def name(self) -> str:
        """The route in a few words."""
        of = f"{self.trees:.0%} of the trees" if self.kind == "selected" else "grown"
        fewer = f", {self.features:.0%} of the features" if self.features < 1.0 else ""
        return f"{of}, {self.teacher} teacher{fewer}"

    @property
    def base(self) -> str:
        """Name of the student that the route begins with, which routes may share."""
        return f"{self.kind} {self.teacher} {self.trees:g}"


ROUTES = (
    Route("selected", "refitted", trees=0.6),
    Route("selected", "refitted", trees=0.35, features=0.6),
    Route("grown", "input"),
    Route("grown", "input", features=0.6),
    Route("grown", "refitted"),
    Route("grown", "refitted", features=0.6),
    Route("grown", "refitted", features=0.37),
)
FACTORS = (2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0)


@dataclass(frozen=True)
class ShrinkSettings:
    """Settings of `shrink` that are seldom changed.

    Parameters
    ----------
    routes : sequence of Route, default: seven of them
        Ways from the teacher to small students, all tried at every size.
    factors : sequence of float, default (2, 3, 5, 7, 10, 15, 20)
        Sizes of the path: leaves of the input divided by each.
    folds : int, default 10
        Folds of the validation queries, where these judge by folds.
    max_stages : int, default 16
        Stages of corrective growth at most.
    selection, growing, thinning, refit
        How trees are selected, grown, thinned out and fitted to labels.
    max_queries : int or None, default None
        Learn from at most so many training queries, drawn at random. None: all of them.
    seed : int, default 0
        Seed of all that is drawn at random: folds, `max_queries`, validation queries that are set aside to judge by.

    Examples
    --------
    >>> import rankwood as rw
    >>> rw.ShrinkSettings(factors=(2, 4)).factors
    (2, 4)
    """

    routes: Sequence[Route] = ROUTES
    factors: Sequence[float] = FACTORS
    folds: int = 10
    max_stages: int = 16
    selection: Selection = field(default_factory=Selection)
    growing: Growing = field(default_factory=Growing)
    thinning: Thinning = field(default_factory=Thinning)
    refit: Refit = field(default_factory=lambda: Refit(passes=100, rate=3.0, patience=10))
    max_queries: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.routes:
            raise RankwoodError("shrinking needs at least one route")
        if not self.factors or min(self.factors) <= 1.0:
            raise RankwoodError(f"factors say how many times smaller a model gets, above 1, got {list(self.factors)}")
        if self.folds < 2 or self.max_stages < 1:
            raise RankwoodError("shrinking needs at least 2 folds and 1 stage")


@dataclass(frozen=True)
class Size:
    """The best model of one size.

    Parameters
    ----------
    n_leaves : int
        Leaves that were asked for.
    route : str
        How it came about.
    candidate : Candidate
        The model, chosen by all validation queries.
    unseen : array of shape (n_queries,)
        Value of every validation query for the model that the other folds chose.
    """

    n_leaves: int
    route: str
    candidate: Candidate
    unseen: FloatArray


Candidates = tuple[int, dict[str, Candidate]]  # leaves asked for, and the candidate of each route, by its name


class Path:
    """The search for the best model of every size, the largest size first.

    Parameters
    ----------
    model : Ensemble
        The input.
    train, valid : Evaluator
        One measure bound to training and validation data, with `by_query=True`.
    unlabelled : sequence of Dataset
        More documents, of which only the input's scores are learnt.
    choosers : Choosers
        Groups of validation queries that choose.
    how : ShrinkSettings
        Routes, sizes and steps.
    notebook : Notebook
        Where finished steps are kept.
    """

    def __init__(
        self,
        model: Ensemble,
        train: Evaluator,
        valid: Evaluator,
        unlabelled: Sequence[Dataset],
        choosers: Choosers,
        how: ShrinkSettings,
        notebook: Notebook,
    ) -> None:
        self.model, self.train, self.valid, self.choosers = model, train, valid, choosers
        self.how, self.notebook = how, notebook
        self.data = documents([train.data, *unlabelled], model)
        self._lessons: dict[str, Lesson] = {}
        self._students: dict[str, Ensemble] = {}
        self._binned: BinnedDataset | None = None
        self._offered: set[str] = set()

    def teacher(self) -> Candidate:
        """The input with its leaves fitted to labels once more, which teaches some of the students."""
        return self._noted("refitted input", lambda: self._refitted(one_weight(self.model)))

    def walk(self, sizes: Sequence[int], on_step: Callable[[float], None]) -> Iterator[Candidates]:
        """Candidates of each size, the largest size first.

        `on_step` is called after every step with the work that it was, in the unit of `work`.
        """
        steps = self._steps(sizes)
        for number, n_leaves in enumerate(sizes):
            found = {}
            for route in self.how.routes:
                candidate = self._at(route, sizes[: number + 1])
                if candidate is not None:
                    found[route.name] = candidate
                on_step(steps[route.name, n_leaves])
            yield n_leaves, found

    def best(self, walked: Sequence[Candidates]) -> list[Size]:
        """The best model of every size; sizes that no route came down to are left out.

        A route is taken by its mean at a size and, with half the weight each time, at the larger sizes before it: the
        means of one size differ too little to tell routes apart.
        """
        sizes = []
        for number, (n_leaves, found) in enumerate(walked):
            if not found:
                continue
            routes = list(found)
            means = [_weighted_mean([there.get(name) for _, there in walked[: number + 1]]) for name in routes]
            taken, unseen = best_of([found[name] for name in routes], means, self.choosers)
            sizes.append(Size(n_leaves, routes[taken], found[routes[taken]], unseen))
        return sizes

    def work(self, sizes: Sequence[int]) -> float:
        """Work of the search that is not in the notebook yet, about in passes of all documents through a tree."""
        return self.work_of_teacher() + sum(self._steps(sizes).values())

    def work_of_teacher(self) -> float:
        """Work of `teacher`, if it is not in the notebook yet."""
        return 0.0 if "refitted input" in self.notebook.steps else 60.0 * self.model.n_trees

    def _steps(self, sizes: Sequence[int]) -> dict[tuple[str, int], float]:
        """Work of every step, by route and size: 0 if it is in the notebook.

        The first step from a base, which several routes may share, makes it.
        """
        known = set(self.notebook.steps)
        steps = {}
        for number, n_leaves in enumerate(sizes):
            before = sizes[number - 1] if number else self.model.n_leaves
            for route in self.how.routes:
                noted = _step_name(route, sizes[: number + 1]) in known
                steps[route.name, n_leaves] = 0.0 if noted else self._work_of_step(route, before, n_leaves)
                if route.base not in known:
                    known.add(route.base)
                    steps[route.name, n_leaves] += self._work_of_base(route)
        return steps

    def _work_of_base(self, route: Route) -> float:
        """Work of the student that a route begins with."""
        n_trees = self._n_trees(route)
        if route.kind == "grown":
            growing, n_stages = self._growing()
            return 150.0 * n_trees + growing.iterations * n_stages * n_trees
        return n_trees / self.how.selection.at_once * (self.model.n_trees + self.how.selection.iterations * n_trees)

    def _work_of_step(self, route: Route, before: int, n_leaves: int) -> float:
        """Work of a route from one size to the next."""
        n_trees = self._n_trees(route)
        rounds = max(0.0, np.log(before / n_leaves)) / self.how.thinning.leaves_per_round
        return n_trees * (60.0 + 20.0 * float(rounds))

    def _n_trees(self, route: Route) -> int:
        """Trees of the student that a route begins with."""
        if route.kind == "selected":
            return max(1, round(route.trees * self.model.n_trees))
        growing, n_stages = self._growing()
        return n_stages * growing.trees_per_stage

    def _at(self, route: Route, sizes: Sequence[int]) -> Candidate | None:
        """The student of a route at the last of some sizes, refitted; it was at all others before.

        None when the route begins smaller and was there before.
        """
        student = self._students.get(route.name)
        if student is None:
            student = self._students[route.name] = self._base(route)
        if student.n_leaves <= sizes[-1] and route.name in self._offered:
            return None
        used = len(np.unique(self._base(route).feature))
        n_features = max(1, round(route.features * used))
        name = _step_name(route, sizes)

        def thinned() -> tuple[Ensemble, Facts]:
            assert student is not None
            lesson = self._lesson(route.teacher)
            return lesson.levelled(thin(student, lesson, sizes[-1], n_features, self.how.thinning)), {}

        smaller, _ = self.notebook.step(f"{name}, before labels", thinned)
        self._students[route.name] = smaller
        self._offered.add(route.name)
        return self._noted(name, lambda: self._refitted(smaller))

    def _base(self, route: Route) -> Ensemble:
        """The student that a route begins with."""

        def made() -> tuple[Ensemble, Facts]:
            lesson = self._lesson(route.teacher)
            if route.kind == "selected":
                teacher = one_weight(self._teacher(route.teacher))
                return next(select_trees(teacher, lesson, [self._n_trees(route)], self.how.selection)), {}
            if self._binned is None:
                self._binned = BinnedDataset.make(self.data, n_threads=lesson.n_threads)
            growing, n_stages = self._growing()
            *_, student = grow_trees(self._binned, lesson, n_stages, growing, self.model)
            return student, {}

        return self.notebook.step(route.base, made)[0]

    def _growing(self) -> tuple[Growing, int]:
        """How trees are grown anew, no larger than the input's, and in how many stages: to half of its leaves."""
        how = self.how.growing
        n_leaves = min(how.n_leaves, max(8, 2 ** round(np.log2(self.model.n_leaves / self.model.n_trees))))
        n_stages = round(0.5 * self.model.n_leaves / (how.trees_per_stage * n_leaves))
        return replace(how, n_leaves=n_leaves), min(max(n_stages, 2), self.how.max_stages)

    def _teacher(self, which: str) -> Ensemble:
        return self.model if which == "input" else self.teacher().ensemble

    def _lesson(self, which: str) -> Lesson:
        if which not in self._lessons:
            self._lessons[which] = Lesson.of(self._teacher(which), self.data, self.train.n_threads)
        return self._lessons[which]

    def _refitted(self, student: Ensemble) -> Candidate:
        train, valid = Part.of(student, self.train), Part.of(student, self.valid)
        return refitted(student, train, valid, self.choosers, self.how.refit)

    def _noted(self, name: str, find: Callable[[], Candidate]) -> Candidate:
        """A candidate of the notebook, found if it is not there yet."""

        def made() -> tuple[Ensemble, Facts]:
            found = find()
            facts = {key: as_list(getattr(found, key)) for key in ("means", "values", "unseen")}
            return found.ensemble, facts

        ensemble, facts = self.notebook.step(name, made)
        return Candidate(ensemble, *(as_array(facts[key]) for key in ("means", "values", "unseen")))


def refitted(student: Ensemble, train: Part, valid: Part, choosers: Choosers, how: Refit) -> Candidate:
    """The student with its leaves fitted to labels, each chooser taking the pass that is best by its own queries."""
    weights = np.ones(student.n_trees)
    leaf_values = [train.outputs.values]
    values = [valid.queries.values(valid.outputs.scores(weights))]
    means = [choosers.means(values[0])]
    for new in refit_passes(train, weights, how):
        leaf_values.append(new)
        values.append(valid.queries.values(valid.with_values(new).outputs.scores(weights)))
        means.append(choosers.means(values[-1]))
        if all(has_stopped(of_one, how.patience) for of_one in zip(*means, strict=True)):
            break
    taken = [best_pass(of_one, how.patience) for of_one in zip(*means, strict=True)]
    return Candidate(
        student.replace(leaf_value=leaf_values[taken[0]]),
        np.array([means[number][chooser] for chooser, number in enumerate(taken)]),
        values[taken[0]],
        choosers.out_of_fold([values[number] for number in taken]),
    )


def _weighted_mean(candidates: Sequence[Candidate | None]) -> FloatArray:
    """Means by every chooser, over the sizes of a route: half the weight for every size before the last."""
    there = [(0.5**age, one.means) for age, one in enumerate(reversed(candidates)) if one is not None]
    mean: FloatArray = np.average([means for _, means in there], weights=[weight for weight, _ in there], axis=0)
    return mean


def _step_name(route: Route, sizes: Sequence[int]) -> str:
    """Name of a step: a model of a size depends on the sizes before it."""
    return f"{route.name}, {' > '.join(map(str, sizes))} leaves"


def one_weight(model: Ensemble) -> Ensemble:
    """The same scores from trees of weight 1: weights move into the leaf values.

    Notes and counts of the training go, but for constraints: they are not true of trees that get other leaf values.
    """
    per_leaf = np.repeat(model.tree_weights, np.diff(model.leaf_offsets))
    plain = model.replace(metadata=Constraints.of(model).notes(), split_gain=None, node_count=None, leaf_cover=None)
    return plain.replace(leaf_value=model.leaf_value * per_leaf, tree_weights=np.ones(model.n_trees))
