"""Students: small models that learn a teacher's scores, by trees taken from it or by trees grown anew."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import OFFSET, AnyArray, FloatArray, IndexArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.evaluator import aligned_features, scores_of
from rankwood.fitting.outputs import TreeOutputs
from rankwood.fitting.ridge import centred, joint_ridge, tree_gains
from rankwood.lazily import cached_property
from rankwood.model.constraints import Constraints
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Tree, offsets_of
from rankwood.pruning.nodes import collapse_nodes, drop_features, feature_importance, merge_thresholds
from rankwood.training.grow import GrowthRules, TreeBuilder, TreeRules


@dataclass(frozen=True)
class Lesson:
    """What a student learns from: documents, and the teacher's scores of them.

    Only differences inside a query count: scores are taken less the mean of their query.

    Parameters
    ----------
    data : Dataset
        Documents, query by query, with the teacher's features; labels are not looked at.
    scores : array of shape (n_docs,)
        The teacher's scores.
    n_threads : int
        Threads of all kernels.
    """

    data: Dataset
    scores: FloatArray
    n_threads: int

    @classmethod
    def of(cls, teacher: Ensemble, data: Dataset, n_threads: int) -> Lesson:
        """The teacher's scores of documents that stand query by query."""
        return cls(data, np.asarray(scores_of(teacher, data, n_threads=n_threads)), n_threads)

    @cached_property
    def target(self) -> FloatArray:
        """The teacher's scores less the mean of their query."""
        return centred(self.scores, self.data.offsets)

    def outputs(self, model: Ensemble) -> TreeOutputs:
        """The leaf of every document in every tree of a model."""
        return TreeOutputs.of(model, self.data, n_threads=self.n_threads)

    def fit(
        self, outputs: TreeOutputs, start: FloatArray, *, l2: float, iterations: int, trees: IndexArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Leaf values nearest to the target, and what they lack: `joint_ridge` with the queries of the lesson."""
        return joint_ridge(
            outputs, self.target, start, offsets=self.data.offsets, trees=trees, l2=l2, iterations=iterations
        )

    def levelled(self, student: Ensemble) -> Ensemble:
        """The student with a base that gives its scores the mean of the teacher's, and with covers of its leaves."""
        plain = student.replace(base=0.0, split_gain=None, node_count=None, leaf_cover=None)
        outputs = self.outputs(plain)
        mean = float(outputs.scores(plain.tree_weights).mean())
        return plain.replace(base=float(self.scores.mean()) - mean, leaf_cover=outputs.leaf_counts)


def documents(parts: Sequence[Dataset], model: Ensemble) -> Dataset:
    """All documents of some data sets, query by query, with the features of a model and without labels."""
    rows = [aligned_features(model, part) for part in parts]
    rows = [X if part.order is None else X[part.order] for X, part in zip(rows, parts, strict=True)]
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    X = rows[0] if len(rows) == 1 else np.concatenate(rows)
    return Dataset(X, group=sizes, feature_names=model.feature_names)


@dataclass(frozen=True)
class Selection:
    """How trees of the teacher are selected: group orthogonal matching pursuit.

    Parameters
    ----------
    l2 : float, default 10.0
        Pull of leaf values towards 0, in documents.
    at_once : int, default 4
        Trees that are taken between two fits of all leaves.
    iterations : int, default 6
        Iterations of each fit.
    """

    l2: float = 10.0
    at_once: int = 4
    iterations: int = 6


def select_trees(teacher: Ensemble, lesson: Lesson, sizes: list[int], how: Selection) -> Iterator[Ensemble]:
    """Students of some trees of the teacher, one for each number of trees in `sizes`, the smallest first.

    The trees that explain most of what is missing so far are taken, then the leaves of all taken trees are fitted
    jointly to the teacher's scores, and so on.
    """
    outputs = lesson.outputs(teacher)
    residual, values = lesson.target, np.zeros(teacher.n_leaves)
    taken: list[int] = []
    for size in sorted(sizes):
        while len(taken) < size:
            rest = np.setdiff1d(np.arange(teacher.n_trees), taken)
            gains = tree_gains(outputs, residual, rest, l2=how.l2)
            n_more = min(how.at_once, size - len(taken))
            taken += rest[np.argsort(-gains, kind="stable")[:n_more]].tolist()
            values, residual = lesson.fit(
                outputs, values, l2=how.l2, iterations=how.iterations, trees=np.array(taken, OFFSET)
            )
        chosen = np.sort(np.array(taken, OFFSET))
        values = outputs.constrained(values, outputs.leaf_counts)
        yield teacher.replace(leaf_value=values, tree_weights=np.ones(teacher.n_trees)).select(chosen)


@dataclass(frozen=True)
class Growing:
    """How trees are grown anew from the teacher's scores: corrective growth.

    Parameters
    ----------
    trees_per_stage : int, default 8
        Trees between two fits of all leaves.
    n_leaves : int, default 64
        Leaves of a tree, at most.
    min_docs_per_leaf : int, default 30
        Fewest documents of a leaf.
    rate : float, default 0.4
        Share of its fit that a new tree keeps until all leaves are fitted jointly.
    l2 : float, default 30.0
        Pull of leaf values towards 0, in documents.
    iterations : int, default 6
        Iterations of each fit.
    """

    trees_per_stage: int = 8
    n_leaves: int = 64
    min_docs_per_leaf: int = 30
    rate: float = 0.4
    l2: float = 30.0
    iterations: int = 6

    def __post_init__(self) -> None:
        if not 2 <= self.n_leaves <= 256:
            raise RankwoodError(f"students have trees of 2 to 256 leaves, got {self.n_leaves}")


def grow_trees(
    binned: BinnedDataset, lesson: Lesson, n_stages: int, how: Growing, teacher: Ensemble
) -> Iterator[Ensemble]:
    """Students of new trees, one after each stage; they keep the teacher's constraints.

    A stage boosts some trees on what is missing so far, then fits the leaves of all trees jointly to the teacher's
    scores. Where the teacher's features were limited, no others are used.
    """
    constraints = Constraints.of(teacher)
    growth = GrowthRules(n_leaves=how.n_leaves, min_docs_per_leaf=how.min_docs_per_leaf)
    used = np.isin(np.arange(lesson.data.n_features), teacher.feature)
    limited = constraints.max_features is not None
    rules = TreeRules(
        growth, constraints=replace(constraints, max_features=int(used.sum())) if limited else constraints
    )
    builder = TreeBuilder(binned, rules, constant_hessian=True, n_threads=lesson.n_threads)
    offsets, ones, rng = lesson.data.offsets, np.ones(lesson.data.n_docs), np.random.default_rng(0)
    codes: AnyArray = np.empty((n_stages * how.trees_per_stage, lesson.data.n_docs), np.uint8)
    trees: list[Tree] = []
    values, residual = np.zeros(0), lesson.target
    for _ in range(n_stages):
        for _ in range(how.trees_per_stage):
            grown, leaf_of_row = builder.build(residual, ones, rng, used)
            step = how.rate * grown.tree.leaf_value
            residual = residual - centred(step[leaf_of_row], offsets)
            codes[len(trees)] = leaf_of_row
            trees.append(grown.tree)
            values = np.concatenate([values, step])
        starts = offsets_of([len(tree.leaf_value) for tree in trees])
        outputs = TreeOutputs(codes[: len(trees)], values, starts, 0.0, lesson.n_threads)
        values, residual = lesson.fit(outputs, values, l2=how.l2, iterations=how.iterations)
        student = Ensemble.from_trees(
            trees,
            n_features=lesson.data.n_features,
            feature_names=lesson.data.feature_names,
            metadata=constraints.notes(),
        )
        student = student.replace(leaf_value=values, split_gain=None, node_count=None, leaf_cover=None)
        yield constraints.projected(student)


@dataclass(frozen=True)
class Thinning:
    """How a student is made smaller: weak features and weak nodes go in rounds, with a fit of all leaves after each.

    Parameters
    ----------
    leaves_per_round : float, default 0.13
        Share of the leaves that are merged in a round.
    features_per_round : float, default 0.12
        Share of the features that are dropped in a round.
    l2 : float, default 30.0
        Pull of leaf values towards 0, in documents.
    iterations : int, default 6
        Iterations of each fit.
    last_iterations : int, default 20
        Iterations of the last one.
    """

    leaves_per_round: float = 0.13
    features_per_round: float = 0.12
    l2: float = 30.0
    iterations: int = 6
    last_iterations: int = 20


def thin(student: Ensemble, lesson: Lesson, n_leaves: int, n_features: int, how: Thinning) -> Ensemble:
    """The student with at most so many leaves and features in use, those that its scores depend on least taken first.

    Features go before leaves. Thresholds that no document of the lesson tells apart become one.
    """
    outputs = lesson.outputs(student)
    while True:
        used = np.unique(student.feature)
        if len(used) <= n_features and student.n_leaves <= n_leaves:
            return merge_thresholds(student, lesson.data.X)
        if len(used) > n_features:
            n_less = min(len(used) - n_features, math.ceil(how.features_per_round * len(used)))
            weakest = np.argsort(feature_importance(student, outputs.leaf_counts)[used], kind="stable")[:n_less]
            student = drop_features(student, outputs.leaf_counts, used[weakest].astype(OFFSET))
        else:
            n_kept = max(n_leaves, int((1.0 - how.leaves_per_round) * student.n_leaves))
            student = collapse_nodes(student, outputs.leaf_counts, n_kept)
        outputs = lesson.outputs(student)
        is_last = student.n_leaves <= n_leaves and len(np.unique(student.feature)) <= n_features
        iterations = how.last_iterations if is_last else how.iterations
        values, _ = lesson.fit(outputs, student.leaf_value, l2=how.l2, iterations=iterations)
        student = student.replace(leaf_value=outputs.constrained(values, outputs.leaf_counts))
