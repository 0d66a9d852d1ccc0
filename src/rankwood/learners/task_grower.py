"""The trees of a forest for a task: one for each of its problems and numbers, all on the same sample."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankwood.data.coding import CodedDataset
from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.ensemble import Ensemble
from rankwood.learners.tasks import Regression, Task
from rankwood.model_arrays import offsets_of
from rankwood.threads import resolve_threads
from rankwood.trees.fulldepth import FullDepthGrower, FullDepthRules, TreeBatch

REGRESSION = Regression()


class TaskGrower:
    """Grows rounds of trees on one coded data set. Round t of a seed draws one sample, for the trees of all problems.

    >>> import rankwood as rw
    >>> from rankwood.learners.tasks import Ordinal
    >>> data = rw.Dataset([[0.0], [1.0], [2.0]], [0, 1, 2], group=[3])
    >>> grower = TaskGrower(CodedDataset.make(data), FullDepthRules(replace=False), Ordinal(2))
    >>> grower.grow(0, 0, 1, n_threads=1).arrays["threshold"].tolist()
    [0.5, 1.5]
    """

    def __init__(self, train: CodedDataset, rules: FullDepthRules, task: Task = REGRESSION) -> None:
        self.train, self.rules, self.task = train, rules, task
        self.problems = [FullDepthGrower(train, rules, target) for target in task.targets(train.data.y)]

    def grow(
        self, seed: int, first: int, n_rounds: int, *, stop: Callable[[], bool] | None = None, n_threads: int
    ) -> TreeBatch:
        """Rounds `first` to `first + n_rounds - 1`, the problems in turn; fewer when `stop` says so."""
        batches = [one.grow(seed, first, n_rounds, stop=stop, n_threads=n_threads) for one in self.problems]
        return batches[0] if len(batches) == 1 else _in_turn(batches)

    def sample(self, seed: int, number: int) -> tuple[IndexArray, IndexArray]:
        """Rows of the data set that the trees of a round are grown on, and how often each was drawn."""
        return self.problems[0].sample(seed, number)

    def fingerprint_arrays(self) -> tuple[AnyArray, ...]:
        """What else than the data set, the task and the rules decides the trees."""
        return tuple(array for one in self.problems for array in one.fingerprint_arrays())

    def start(self) -> Ensemble:
        """The whole model before the first round."""
        data = self.train.data
        empty = Ensemble.from_trees([], n_features=data.n_features, feature_names=data.feature_names)
        return self.task.combine([empty] * self.task.n_problems)


def out_of_bag_scores(
    grower: TaskGrower, model: Ensemble, *, seed: int = 0, first_tree: int = 0, n_threads: int | None = None
) -> tuple[FloatArray, IndexArray]:
    """Score of every document by the trees that were not grown on it, and how many rounds these are; in input order.

    `model` has the trees that `grow_forest` gave for the same `seed` and `first_tree`, or the first of them. The score
    is the model's with these trees alone, NaN where every tree has seen the document. Costs what scoring the data does.
    """
    threads = resolve_threads(n_threads)
    train, task, step = grower.train, grower.task, 64
    sums, counts = np.zeros(train.n_docs), np.zeros(train.n_docs, dtype=np.uint32)
    for problem, part in zip(grower.problems, task.split(model), strict=True):
        counts[:] = 0  # the same for every problem
        whole = as_batch(part)
        for begin in range(0, part.n_trees, step):
            batch = whole.part(begin, min(begin + step, part.n_trees))
            problem.add_out_of_bag(batch, seed, first_tree + begin, sums, counts, n_threads=threads)
    means = np.divide(sums, counts, out=np.full(train.n_docs, np.nan), where=counts > 0)
    scores = grower.start().base + task.sign * means
    return train.in_input_order(scores), train.in_input_order(counts.astype(np.int64))


def as_batch(model: Ensemble) -> TreeBatch:
    """The trees of a model."""
    arrays = {name: getattr(model, name) for name in TreeBatch.NAMES}
    arrays["missing_left"] = model.missing_left.view(np.uint8)
    return TreeBatch(np.diff(model.node_offsets), arrays)


def _in_turn(batches: list[TreeBatch]) -> TreeBatch:
    """The first tree of every batch, the second of every batch, and so on; as many as each has."""
    n_rounds = min(batch.n_trees for batch in batches)
    order = np.arange(len(batches) * n_rounds).reshape(len(batches), n_rounds).T.ravel()
    parts = [batch.part(0, n_rounds) for batch in batches]
    sizes = np.concatenate([part.sizes for part in parts])
    joined = {name: np.concatenate([part.arrays[name] for part in parts]) for name in TreeBatch.NAMES}
    nodes, leaves = _pick(sizes, order), _pick(sizes + 1, order)
    picked = {name: array[leaves if name == "leaf_value" else nodes] for name, array in joined.items()}
    return TreeBatch(sizes[order], picked)


def _pick(sizes: IndexArray, order: IndexArray) -> IndexArray:
    """Places of the entries of blocks of these sizes, the blocks in this order."""
    starts = offsets_of(sizes)[:-1]
    lengths = sizes[order]
    begins = offsets_of(lengths)[:-1]
    return np.arange(lengths.sum()) + np.repeat(starts[order] - begins, lengths)
