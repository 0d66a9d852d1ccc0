"""Rounds of boosting: the scores so far, and what it takes to grow the next tree of every problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from rankwood.data.binning import BinnedDataset
from rankwood.dtypes import FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.learners.callbacks import Result
from rankwood.learners.dropout import surpasses
from rankwood.learners.growing import GrowingEnsemble
from rankwood.learners.kept_leaves import KeptLeaves
from rankwood.learners.steps import Step, apply
from rankwood.learners.updates import Update
from rankwood.learners.watch import Measures, Watched
from rankwood.losses import Loss
from rankwood.tree import Tree
from rankwood.trees.build import TreeBuilder, TreeRules
from rankwood.trees.tree import GrownTree, regrown

DROPS = 0xDA27  # of the random streams that choose what to drop; those of trees have no third number

UNNAMED = "<training data>"  # when it is not among the data sets to measure on, but measured all the same


class Rounds:
    """The training data with the scores of every problem, and the data sets to measure on with those of the model.

    watched    the data sets by name; the scores of the training data are those of its only problem, if it has one
    judge      name of the data that removal is judged on: one of those watched, or UNNAMED
    """

    def __init__(
        self,
        train: BinnedDataset,
        loss: Loss,
        rules: TreeRules,
        update: Update,
        growing: GrowingEnsemble,
        sets: Mapping[str, BinnedDataset],
        measures: Measures,
        *,
        judge: str | None,
        seed: int,
        n_threads: int,
    ) -> None:
        data, weights, task = train.data, weights_of(train), growing.task
        if update.drops and task.n_problems > 1:
            raise RankwoodError("trees can be dropped when there is one problem to learn, not for task='ordinal'")
        constant = loss.constant_hessian and weights is None and data.query_weights is None
        self.train, self.growing, self.update, self.seed = train, growing, update, seed
        self.measures, self.first_measure = measures, Measures(measures.measures[:1], measures.convention)
        self.builder = TreeBuilder(train, rules, constant_hessian=constant, n_threads=n_threads)
        self.gradient, self.hessian = np.empty(data.n_docs), np.empty(data.n_docs)
        whole = growing.start if update.drops else growing.whole()
        parts = zip(task.targets(data.y), task.split(whole), task.split(growing.start), strict=True)
        self.problems = [_Problem(train, loss, *part, n_threads) for part in parts]
        alone = self.problems[0].scored if task.n_problems == 1 else None
        self.watched = {
            name: alone if alone and binned is train else Watched.start(binned, whole, n_threads=n_threads)
            for name, binned in sets.items()
        }
        self.judge_name = judge
        self.judge = None if judge is None else self.watched.get(judge, self.problems[0].scored)
        self.kept: dict[Watched, KeptLeaves] = {}
        if update.drops:
            self._keep_leaves([self.problems[0].scored, *self.watched.values()])
        self._grown: list[_Grown] = []

    def advance(self, number: int, learning_rate: float) -> tuple[list[Tree], Step, list[Result]]:
        """The next round: its trees, what became of them and of others, and the measures after it."""
        growing, update, last = self.growing, self.update, self.growing.last_step
        drop = update.draw(list(growing.live), last, np.random.default_rng([self.seed, number, DROPS]))
        for kept in self.kept.values():
            kept.take_out(drop.trees, growing.live)
        self._grow(number)
        for one, kept in self.kept.items():
            kept.keep(number, self._grown[0].grown.tree, self._grown[0].leaves_of(one))
        settled = update.settle(drop, learning_rate, last, self._with_new_tree)
        step = Step(number, drop.k, drop.trees, settled.removed, settled.weight, settled.factor, settled.candidate)
        self._put_in(step)
        results = [result for name, one in self.watched.items() for result in one.results(name, self.measures)]
        n_trees = len(growing.live) + 1 - (len(drop.trees) if settled.removed else 0)
        return [one.grown.tree for one in self._grown], self._judged(step, results)._replace(n_trees=n_trees), results

    def _grow(self, number: int) -> None:
        """One tree for every problem, fitted to its gradients; in no scores yet."""
        self._grown = []
        for problem in self.problems:
            # A problem on its own would draw from this very stream.
            rng = np.random.default_rng([self.seed, problem.n_before + number])
            problem.objective.gradients(problem.scored.scores, self.gradient, self.hessian)
            self._grown.append(_Grown(problem, self.train, *self.builder.build(self.gradient, self.hessian, rng)))

    def _put_in(self, step: Step) -> None:
        """Add the new trees to all scores, and what was dropped and stays."""
        if not self.update.drops:
            for new in self._grown:
                new.problem.scored.add(new.grown, step.weight, new.leaf_of_row)
                for one in self.watched.values():
                    if one is not new.problem.scored:
                        one.add(new.grown, self.growing.task.sign * step.weight, new.leaves_of(one))
            return
        live = dict(self.growing.live)
        apply(step, live)
        for kept in self.kept.values():
            kept.settle(step, live)

    def _with_new_tree(self, weight: float) -> Result:
        """Measure of the model as it is without what was dropped, the new tree in it with this weight."""
        assert self.judge is not None
        kept, number = self.kept[self.judge], self.growing.n_rounds
        kept.put_in([number], {number: weight})
        result = self._measure_judge()
        kept.take_out([number], {number: weight})
        return result

    def _measure_judge(self) -> Result:
        assert self.judge is not None
        assert self.judge_name is not None
        return self.judge.results(self.judge_name, self.first_measure)[0]

    def _judged(self, step: Step, results: list[Result]) -> Step:
        """The step, with the measure after it and what it means."""
        last = self.growing.last_step
        if self.judge_name is None or not self.measures.measures:
            return step
        found = next((result for result in results if result.dataset_name == self.judge_name), None)
        found = self._measure_judge() if found is None else found
        best = None if last is None else last.best
        improved = surpasses(found, best)
        return step._replace(value=found.metric_value, best=found.metric_value if improved else best, improved=improved)

    def _keep_leaves(self, scored: Iterable[Watched]) -> None:
        """Scores, now those of the start, that trees can be taken out of; live trees of a checkpoint are put in."""
        live, edges = self.growing.live, self.train.edges
        trees = {number: regrown(self.growing.trees[number], edges) for number in live}
        for one in dict.fromkeys(scored):
            kept = self.kept[one] = KeptLeaves(one.scores, n_threads=one.n_threads)
            for number, grown in trees.items():
                kept.keep(number, grown.tree, grown.leaves_of(one.binned, n_threads=one.n_threads))
            kept.put_in(live, live)


class _Problem:
    """One target, with the scores so far of its own model, which had `n_before` trees before the first round."""

    def __init__(
        self, train: BinnedDataset, loss: Loss, target: FloatArray, model: Ensemble, start: Ensemble, n_threads: int
    ) -> None:
        data = train.data
        self.n_before = start.n_trees
        self.scored = Watched.start(train, model, n_threads=n_threads)
        self.objective = loss.prepare(
            train.by_query(target), data.offsets, weights_of(train), data.query_weights, n_threads=n_threads
        )


class _Grown:
    """A new tree of a problem, and the leaf that every document of a data set reaches in it."""

    def __init__(
        self, problem: _Problem, train: BinnedDataset, grown: GrownTree, leaf_of_row: NDArray[np.uint16]
    ) -> None:
        self.problem, self.train, self.grown, self.leaf_of_row = problem, train, grown, leaf_of_row

    def leaves_of(self, one: Watched) -> NDArray[np.uint16]:
        on_train = one.binned is self.train
        return self.leaf_of_row if on_train else self.grown.leaves_of(one.binned, n_threads=one.n_threads)


def weights_of(train: BinnedDataset) -> FloatArray | None:
    """Weights of documents, query by query."""
    return None if train.data.weights is None else train.by_query(train.data.weights)
