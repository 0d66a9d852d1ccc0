"""Boosting: rounds of trees fitted to the gradients of a loss, each joined by an update rule."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import DataError, RankwoodError
from rankwood.model.constraints import NO_CONSTRAINTS
from rankwood.model.ensemble import Ensemble
from rankwood.model.file import MAX_HEADER
from rankwood.model.trees import Tree, Trees
from rankwood.training.callbacks import CallbackEnv, Live, Result, Step, apply, live_after
from rankwood.training.checkpoint import CheckpointFile, identify, read_history
from rankwood.training.correction import Corrective, LeafValues, as_text, correct, from_text
from rankwood.training.driver import Growth, Session, Trained, check_size, drive
from rankwood.training.grow import GrownTree, TreeBuilder, TreeRules, regrown
from rankwood.training.losses import Gradients, Loss, Setting, document_weights
from rankwood.training.position_bias import Unbiased
from rankwood.training.tasks import Regression, Task, check_one_target
from rankwood.training.updates import Update, surpasses
from rankwood.training.watch import KeptLeaves, Measures, Watched

DROPS = 0xDA27  # third number of the random streams that choose what to drop; those of trees have two

CORRECTIONS = 1 << 32  # draws of the passes of a correction begin at multiples of it; those of trees are below

# Names of what judges removals without being among the data sets to measure on.
UNNAMED = "<training data>"
ASIDE = "<queries set aside>"
FEWEST_TO_SPLIT = 100  # validation queries; of fewer none are set aside


DROPPED = Step._fields.index("dropped")


@dataclass
class GrowingEnsemble:
    """Boosted trees while training goes on, with the step, the learning rate and the measures of every round.

    A round is a tree for every problem of the task: one tree, but for task="ordinal". Trees that were removed again
    stay here (they are small, unlike what training keeps of live ones), so that the model after any round can be had:
    the steps say which trees were live then, and with what weights. Trees are kept as they were grown; values that
    corrections gave their leaves since are in `corrections`, each with the number of rounds that went before it.
    """

    # LightGBM's reset_parameter sets parameters of each of these, and of the callbacks' `params`, which is enough.
    boosters: ClassVar[tuple[Any, ...]] = ()

    start: Ensemble
    task: Task = field(default_factory=Regression)
    trees: list[Tree] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    learning_rates: list[float] = field(default_factory=list)
    history: list[list[Result]] = field(default_factory=list)
    corrections: list[tuple[int, LeafValues]] = field(default_factory=list)
    position_biases: FloatArray = field(default_factory=lambda: np.zeros(0))  # after the last round, if there are any
    live: Live = field(init=False)

    def __post_init__(self) -> None:
        self.live = live_after(self.steps)

    @property
    def n_rounds(self) -> int:
        return len(self.history)

    @property
    def last_step(self) -> Step | None:
        return self.steps[-1] if self.steps else None

    def append(
        self,
        trees: list[Tree],
        step: Step,
        learning_rate: float,
        results: list[Result],
        corrected: LeafValues | None = None,
    ) -> None:
        """Add a round: its trees, what happened in it, the measures after it, and leaf values that it corrected."""
        self.trees += trees
        self.steps.append(step)
        apply(step, self.live)
        self.learning_rates.append(learning_rate)
        self.history.append(results)
        if corrected is not None:
            self.corrections.append((self.n_rounds, corrected))

    def check_rate(self, tree: int, learning_rate: float) -> None:
        """Refuse to go on from a checkpoint that was made with another learning rate for a tree."""
        if learning_rate != self.learning_rates[tree]:
            raise RankwoodError(
                f"the checkpoint was made with learning rate {self.learning_rates[tree]} for tree {tree}, "
                f"now it is {learning_rate}: delete it to start anew, or choose another file"
            )

    def trees_of(self, number: int, n_rounds: int | None = None) -> list[Tree]:
        """The trees of a round, with the leaf values that they had after the first `n_rounds` (default: all)."""
        per_round = self.task.n_problems
        trees = self.trees[number * per_round : (number + 1) * per_round]
        corrected = self._corrected(self.n_rounds if n_rounds is None else n_rounds)
        return [replace(trees[0], leaf_value=corrected[number])] if number in corrected else trees

    def _corrected(self, n_rounds: int) -> LeafValues:
        """Leaf values by the last correction within the first `n_rounds`."""
        return next((values for n_before, values in reversed(self.corrections) if n_before <= n_rounds), {})

    def boosted(self, n_rounds: int | None = None) -> Ensemble:
        """The trees that were live after the first `n_rounds` (default: all), without the starting ensemble."""
        live = self.live if n_rounds is None else live_after(self.steps[:n_rounds])
        return self._ensemble(live, [self.trees_of(number, n_rounds) for number in live])

    def whole(self, n_rounds: int | None = None) -> Ensemble:
        """The starting ensemble and the trees that were live after the first `n_rounds` (default: all)."""
        return self.task.extend(self.start, self.boosted(n_rounds))

    def everything(self) -> Ensemble:
        """All trees ever grown; those that were removed have weight 0."""
        weights = {number: self.live.get(number, 0.0) for number in range(self.n_rounds)}
        return self._ensemble(weights, [self.trees_of(number) for number in weights])

    def to_keep(self) -> tuple[Ensemble, dict[str, Any]]:
        """What a checkpoint holds: all trees; learning rate, measures and step of every round; corrections."""
        notes = {"learning_rates": self.learning_rates, "history": self.history, "steps": self.steps}
        if self.corrections:
            grown = as_text([tree.leaf_value for tree in self.trees])
            corrections = [(n_rounds, as_text(values.values())) for n_rounds, values in self.corrections]
            notes |= {"grown": grown, "corrections": corrections}
        if len(self.position_biases):
            notes["position_biases"] = self.position_biases.tolist()
        return self.everything(), notes

    def take_up(self, model: Ensemble, notes: dict[str, Any]) -> None:
        """Go on from what `to_keep` gave."""
        self.trees = [model.tree(t) for t in range(model.n_trees)]
        self.steps = [Step(*step)._replace(dropped=tuple(step[DROPPED])) for step in notes["steps"]]
        self.learning_rates, self.history = notes["learning_rates"], read_history(notes["history"])
        self.live = live_after(self.steps)
        self.position_biases = np.array(notes.get("position_biases", ()), dtype=np.float64)
        if "corrections" in notes:
            grown = from_text(notes["grown"], self.trees)
            self.trees = [replace(tree, leaf_value=values) for tree, values in zip(self.trees, grown, strict=True)]
            for n_rounds, text in notes["corrections"]:
                live = live_after(self.steps[:n_rounds])
                values = from_text(text, [self.trees[number] for number in live])
                self.corrections.append((n_rounds, dict(zip(live, values, strict=True))))

    def first_with(self, n_trees: int) -> int | None:
        """The first round after which the trees of so many rounds were live; None when there was none."""
        return next((step.iteration for step in self.steps if step.n_trees == n_trees), None)

    def _ensemble(self, live: Live, trees: Sequence[list[Tree]]) -> Ensemble:
        weights = [self.task.sign * weight for weight in live.values()]
        return Ensemble.from_trees(
            [tree for of_round in trees for tree in of_round],
            tree_weights=np.repeat(np.array(weights, dtype=np.float64), self.task.n_problems),
            n_features=self.start.n_features,
            feature_names=self.start.feature_names,
        )


class Rounds(Growth):
    """Rounds of boosting: the scores of the training data and of the data sets to measure on, as trees are added.

    Parameters
    ----------
    train : BinnedDataset
        What the trees learn from; every problem of the task has scores of its own on it.
    loss, rules, update
        As in `boost`.
    growing : GrowingEnsemble
        The trees so far.
    sets : mapping from str to BinnedDataset
        The data sets to measure on. When the training data is one, and the task has one problem, it is scored once.
    n_trees : int
        Trees at which training ends.
    session : Session
        Measures, seed and threads.
    judge : Judge, optional
        Data that the removal of trees is judged on.
    corrective : Corrective, optional
        When the leaves of all trees are corrected, and how.
    position_l2 : float
        As in `boost`.
    """

    def __init__(
        self,
        train: BinnedDataset,
        loss: Loss,
        rules: TreeRules,
        update: Update,
        growing: GrowingEnsemble,
        sets: Mapping[str, BinnedDataset],
        n_trees: int,
        session: Session,
        *,
        judge: Judge | None,
        corrective: Corrective | None = None,
        position_l2: float = 0.0,
    ) -> None:
        data, weights, task = train.data, weights_of(train), growing.task
        if update.drops and task.n_problems > 1:
            raise RankwoodError("trees can be dropped when there is one problem to learn, not for task='ordinal'")
        if corrective is not None:
            check_one_target(task, "corrective")
        constant = loss.constant_hessian and weights is None and data.query_weights is None
        self.train, self.growing, self.update, self.n_trees = train, growing, update, n_trees
        self.params = {"learning_rate": update.learning_rate}
        self.seed, self.measures, n_threads = session.seed, session.measures, session.n_threads
        self.first_measure = Measures(self.measures.measures[:1], self.measures.convention)
        if task.sign < 0.0:  # a tree that rises lowers the score
            rules = replace(rules, constraints=rules.constraints.negated)
        self.builder = TreeBuilder(train, rules, constant_hessian=constant, n_threads=n_threads)
        self.gradient, self.hessian = np.empty(data.n_docs), np.empty(data.n_docs)
        self.corrective, self.keeps = corrective, update.drops or corrective is not None
        whole = growing.start if self.keeps else growing.whole()
        parts = zip(task.targets(data.y), task.split(whole), task.split(growing.start), strict=True)
        self.problems = [_Problem(train, loss, *part, session.seed, n_threads) for part in parts]
        if data.position is not None:
            self._know_positions(train, position_l2)
        alone = self.problems[0].scored if task.n_problems == 1 else None
        self.watched = {
            name: alone if alone and binned is train else Watched.start(binned, whole, n_threads=n_threads)
            for name, binned in sets.items()
        }
        self.judge_name, self.judge = None, None
        if judge is not None:
            self.judge_name, self.judge = judge.name, self.watched.get(judge.name)
        if judge is not None and self.judge is None:
            on_train = judge.binned is train
            self.judge = (
                self.problems[0].scored if on_train else Watched.start(judge.binned, whole, n_threads=n_threads)
            )
        self.others = list(dict.fromkeys(one for one in (*self.watched.values(), self.judge) if one is not None))
        self.kept: dict[Watched, KeptLeaves] = {}
        if self.keeps:
            self._keep_leaves([self.problems[0].scored, *self.others])
        self._grown: list[_Grown] = []

    def allow(self, env: CallbackEnv) -> None:
        if env.replayed:
            self.growing.check_rate(env.iteration, env.params["learning_rate"])

    def advance(self, env: CallbackEnv, interrupted: Callable[[], bool]) -> bool:
        rate = env.params["learning_rate"]
        trees, step, results, corrected = self.next_round(env.iteration, rate)
        self.growing.append(trees, step, rate, results, corrected)
        return True

    def is_whole(self, env: CallbackEnv) -> bool:
        env.step = self.growing.steps[env.iteration]
        is_whole = env.step.n_trees == self.n_trees
        if is_whole:
            env.end_iteration = env.iteration + 1  # callbacks look there for the last iteration
        return is_whole

    def can_stop(self) -> bool:
        return True

    def next_round(self, number: int, learning_rate: float) -> tuple[list[Tree], Step, list[Result], LeafValues | None]:
        """The next round: its trees, what became of them and of dropped ones, measures after it, corrected values."""
        growing, update, last = self.growing, self.update, self.growing.last_step
        drop = update.draw(list(growing.live), last, np.random.default_rng([self.seed, number, DROPS]))
        for kept in self.kept.values():
            kept.take_out(drop.trees, growing.live)
        self._grow(number, learning_rate)
        for one, kept in self.kept.items():
            kept.keep(number, self._grown[0].grown.tree, self._grown[0].leaves_of(one))
        settled = update.settle(drop, learning_rate, last, self._with_new_tree)
        step = Step(number, drop.k, drop.trees, settled.removed, settled.weight, settled.factor, settled.candidate)
        live = dict(growing.live)
        apply(step, live)
        self._put_in(step, live)
        due = self.corrective is not None and self.corrective.is_due(number + 1)
        corrected = self._correct(live, number) if due else None
        results = [result for name, one in self.watched.items() for result in one.results(name, self.measures)]
        trees = [one.grown.tree for one in self._grown]
        return trees, self._rated(step, results)._replace(n_trees=len(live)), results, corrected

    def _know_positions(self, train: BinnedDataset, l2: float) -> None:
        """Let the loss see what the positions of documents add to scores, as far as it was learnt."""
        check_one_target(self.growing.task, "position")
        assert train.data.position is not None
        (problem,), position = self.problems, train.by_query(train.data.position)
        problem.objective = Unbiased(problem.objective, position, l2, train.share.group, self.growing.position_biases)

    def _grow(self, number: int, learning_rate: float) -> None:
        """Grow one tree for every problem, fitted to its gradients. Scores do not change yet."""
        self._grown = []
        used = self._used_features()
        for problem in self.problems:
            # The stream that a problem would draw from if it were learnt alone.
            draw = problem.n_before + number
            rng = np.random.default_rng([self.seed, draw])
            problem.objective.gradients(problem.scored.scores, self.gradient, self.hessian, draw)
            if isinstance(problem.objective, Unbiased):
                problem.objective.learn(self.gradient, self.hessian, learning_rate)
                self.growing.position_biases = problem.objective.biases
            built = self.builder.build(self.gradient, self.hessian, rng, used)
            self._grown.append(_Grown(problem, self.train, *built))
            if used is not None:
                used[built[0].tree.feature] = True

    def _used_features(self) -> NDArray[np.bool_] | None:
        """Marks of the features that the start and the live trees use, dropped ones, too; None if all are free."""
        if self.builder.rules.constraints.all_features_are_free:
            return None
        used: NDArray[np.bool_] = np.zeros(self.growing.start.n_features, bool)
        used[self.growing.start.feature] = True
        for number in self.growing.live:
            for tree in self.growing.trees_of(number):
                used[tree.feature] = True
        return used

    def _put_in(self, step: Step, live: Live) -> None:
        """Add the new trees to all scores, and the dropped trees that stay; `live` has the weights after the step."""
        if not self.keeps:
            for new in self._grown:
                new.problem.scored.add(new.grown, step.weight, new.leaf_of_row)
                for one in self.others:
                    if one is not new.problem.scored:
                        one.add(new.grown, self.growing.task.sign * step.weight, new.leaves_of(one))
            return
        for kept in self.kept.values():
            kept.settle(step, live)

    def _correct(self, live: Live, number: int) -> LeafValues:
        """Correct the leaves of all live trees on the training data after a round, and all scores with them."""
        assert self.corrective is not None
        (problem,) = self.problems
        new = self.growing.n_rounds
        trees = [self._grown[0].grown.tree if one == new else self.growing.trees[one] for one in live]
        projection = self.builder.rules.constraints.projection(Trees.from_trees(trees), self.growing.start.n_features)
        draws = count(CORRECTIONS * (problem.n_before + number + 1))
        values = correct(self.kept[problem.scored], problem.objective, live, self.corrective, projection, draws)
        for one, kept in self.kept.items():
            if one is not problem.scored:
                kept.revalue(values, live)
        return values

    def _with_new_tree(self, weight: float) -> Result:
        """Measure of the model without the dropped trees and with the new one, which has this weight."""
        assert self.judge is not None
        kept, number = self.kept[self.judge], self.growing.n_rounds
        kept.put_in([number], {number: weight})
        result = self._measure_on_judge()
        kept.take_out([number], {number: weight})
        return result

    def _measure_on_judge(self) -> Result:
        """First measure of the present scores on the data that judges."""
        assert self.judge is not None
        assert self.judge_name is not None
        return self.judge.results(self.judge_name, self.first_measure)[0]

    def _rated(self, step: Step, results: list[Result]) -> Step:
        """The step with the measure after it, and whether that is the best so far."""
        last = self.growing.last_step
        if self.judge_name is None or not self.measures.measures:
            return step
        found = next((result for result in results if result.dataset_name == self.judge_name), None)
        found = self._measure_on_judge() if found is None else found
        best = None if last is None else last.best
        improved = surpasses(found, best)
        return step._replace(value=found.metric_value, best=found.metric_value if improved else best, improved=improved)

    def _keep_leaves(self, scored: Iterable[Watched]) -> None:
        """Let trees be taken out of scores, which are those of the start; live trees of a checkpoint are put in."""
        live, edges = self.growing.live, self.train.edges
        trees = {number: regrown(self.growing.trees_of(number)[0], edges) for number in live}
        for one in dict.fromkeys(scored):
            kept = self.kept[one] = KeptLeaves(one.scores, n_threads=one.n_threads, group=one.group)
            for number, grown in trees.items():
                kept.keep(number, grown.tree, grown.leaves_of(one.binned, n_threads=one.n_threads))
            kept.put_in(live, live)


class _Problem:
    """One target to learn, with the loss on it and the scores of the trees that learn it."""

    def __init__(
        self,
        train: BinnedDataset,
        loss: Loss,
        target: FloatArray,
        model: Ensemble,
        start: Ensemble,
        seed: int,
        n_threads: int,
    ) -> None:
        data, share = train.data, train.share
        self.n_before = start.n_trees  # trees before the first round
        self.scored = Watched.start(train, model, n_threads=n_threads)
        self.objective: Gradients = loss.prepare(
            train.by_query(target),
            data.offsets,
            weights_of(train),
            data.query_weights,
            setting=Setting(seed, share.first_query, share.group),
            n_threads=n_threads,
        )


class _Grown:
    """A new tree of a problem, and the leaf of every training document in it."""

    def __init__(
        self, problem: _Problem, train: BinnedDataset, grown: GrownTree, leaf_of_row: NDArray[np.uint16]
    ) -> None:
        self.problem, self.train, self.grown, self.leaf_of_row = problem, train, grown, leaf_of_row

    def leaves_of(self, one: Watched) -> NDArray[np.uint16]:
        """Leaf of every document of a data set."""
        on_train = one.binned is self.train
        return self.leaf_of_row if on_train else self.grown.leaves_of(one.binned, n_threads=one.n_threads)


def weights_of(train: BinnedDataset) -> FloatArray | None:
    """Weights of documents in the order of their queries; None when there are none."""
    return None if train.data.weights is None else train.by_query(train.data.weights)


@dataclass(frozen=True)
class Boosted(Trained):
    """What boosting gives: the ensemble at its best size, and how it came about."""

    steps: Sequence[Step] = ()  # of every iteration
    models_at: Mapping[int, Ensemble] = field(default_factory=dict)  # by number of boosted trees
    position_biases: FloatArray | None = None  # after the last iteration, if positions were given
    judge_queries: IndexArray | None = None  # of the first validation set, that judged removals and nothing else


@dataclass(frozen=True)
class Extent:
    """How far boosting goes.

    Parameters
    ----------
    n_trees : int
        Trees at which it ends; those that the update rule removes again do not count.
    max_iterations : int, optional
        Rounds after which it ends with fewer trees; `n_trees` unless given.
    record_sizes : tuple of int
        Numbers of trees: the models that first had so many are given back, too. They are those that boosting with
        that `n_trees` gives.
    """

    n_trees: int
    max_iterations: int | None = None
    record_sizes: tuple[int, ...] = ()

    @property
    def n_iterations(self) -> int:
        """The most rounds there may be."""
        return self.n_trees if self.max_iterations is None else self.max_iterations


REGRESSION = Regression()


def boost(
    train: BinnedDataset,
    loss: Loss,
    rules: TreeRules,
    update: Update,
    extent: Extent,
    session: Session,
    *,
    task: Task = REGRESSION,
    start: Ensemble | None = None,
    corrective: Corrective | None = None,
    position_l2: float = 0.0,
) -> Boosted:
    """Trees are added to a model, each fitted to the gradients of a loss at the scores so far.

    Tree t of the whole ensemble draws its samples from a stream of its own, made of the seed and t: the same data,
    parameters and seed give the same model bit for bit, whatever the number of threads, and also when training went on
    from a checkpoint or from the first trees of that very model.

    Parameters
    ----------
    train : BinnedDataset
        What the trees learn from.
    loss : Loss
        Whose gradients a tree is fitted to.
    rules : TreeRules
        How a tree is grown.
    update : Update
        How a tree joins the others, and what becomes of these.
    extent : Extent
        How many trees there will be.
    session : Session
        How the training runs. Measures, and so early stopping, are of the whole model after the round.
    task : Task
        With several problems, every problem grows one tree in each of `extent.n_trees` rounds.
    start : Ensemble, optional
        The model to go on from; none starts from the best constant that the loss knows.
    corrective : Corrective, optional
        When the leaves of all trees that were added so far are corrected, and how. Trees of `start` stay as they are.
    position_l2 : float
        Pulls the biases of positions to 0, when the training data has positions.
    """
    if start is not None:
        rules.constraints.check(start, "the model to go on from")
    growing = GrowingEnsemble(_starting_ensemble(start, train, loss, task), task)
    sets = {name: _in_bins_of(train, data, name, session.n_threads) for name, data in session.valid.items()}
    judge, sets = _judge(update, sets, train, session.measures)
    keeper = None
    if session.checkpoint is not None:
        settings = {"loss": loss, "task": task, "tree rules": rules, "update rule": update, "seed": session.seed}
        if rules.constraints != NO_CONSTRAINTS:
            settings["constraints"] = rules.constraints
        if rules.categories is not None:
            settings["categories"] = rules.categories
        if train.data.position is not None:
            settings["position_l2"] = position_l2
        if corrective is not None:
            settings["corrections"] = corrective
            _check_room(corrective, rules.growth.n_leaves, extent)
        aside = {} if judge is None or judge.queries is None else {judge.name: judge.binned}
        identity = identify(train, {**sets, **aside}, growing.start, {**settings, "measures": session.measures})
        keeper = CheckpointFile(session.checkpoint, identity)
        keeper.load(growing)
    check_size(max((step.n_trees for step in growing.steps), default=0), extent.n_trees)
    more: dict[str, Any] = {"judge": judge, "corrective": corrective, "position_l2": position_l2}
    rounds = Rounds(train, loss, rules, update, growing, sets, extent.n_trees, session, **more)
    driven = drive(
        rounds,
        session,
        n_iterations=extent.n_iterations,
        n_trees=extent.n_trees,
        train_name=next((name for name, binned in sets.items() if binned is train), None),
        keeper=keeper,
    )
    steps = growing.steps[: driven.n_done]
    if not driven.interrupted and not driven.stopped_early and steps and steps[-1].n_trees < extent.n_trees:
        warnings.warn(
            f"after max_iterations={extent.n_iterations:,} there are {steps[-1].n_trees:,} of {extent.n_trees:,} "
            "trees: dropped trees were removed too often for more",
            stacklevel=3,
        )
    recorded = {size: growing.first_with(size) for size in extent.record_sizes}
    at = {size: at + 1 for size, at in recorded.items() if at is not None and at < driven.n_done}
    notes = rules.constraints.notes()
    models = {size: growing.whole(n_rounds).with_metadata(**notes) for size, n_rounds in at.items()}
    biases = growing.position_biases if train.data.position is not None else None
    whole = growing.whole(driven.n_kept).with_metadata(**notes)
    return Boosted(whole, driven, steps, models, biases, None if judge is None else judge.queries)


def _check_room(corrective: Corrective, n_leaves: int, extent: Extent) -> None:
    """Refuse, before the first tree, a checkpoint whose notes would not hold the values of all corrections."""
    n_corrections = extent.n_iterations // corrective.every
    n_trees = np.minimum(corrective.every * np.arange(1.0, n_corrections + 1), extent.n_trees).sum()
    if 4 / 3 * 8 * n_leaves * n_trees > 0.8 * MAX_HEADER:
        raise RankwoodError(
            f"{n_corrections:,} corrections of up to {extent.n_trees:,} trees are too many for a checkpoint: correct "
            "less often, or do without checkpoint"
        )


class Judge(NamedTuple):
    """The data by which the removal of trees is judged; without removals, whose measure the steps note.

    Parameters
    ----------
    name : str
        One of the data sets to measure on, UNNAMED for the training data, or ASIDE.
    binned : BinnedDataset
        The data.
    queries : array of int or None
        Queries of the first validation set that were set aside; None when none were.
    """

    name: str
    binned: BinnedDataset
    queries: IndexArray | None = None


def _judge(
    update: Update, sets: dict[str, BinnedDataset], train: BinnedDataset, measures: Measures
) -> tuple[Judge | None, dict[str, BinnedDataset]]:
    """What judges removals, and the data sets to measure on, without the queries that were set aside for it."""
    validation = next((name for name, binned in sets.items() if binned is not train), None)
    training = next((name for name, binned in sets.items() if binned is train), None)
    if update.judged_on is None:
        name = validation or training
        return None if name is None else Judge(name, sets[name]), sets
    if not measures.measures:
        raise RankwoodError("whether to remove trees is judged by the first measure: give at least one")
    if update.judged_on != "train" and validation is None:
        warnings.warn(
            "there is no validation data, so training data judges which trees to remove: give valid, or eval_set; "
            "or judge='train', if that is what you want",
            stacklevel=4,
        )
    if update.judged_on == "train" or validation is None:
        return Judge(training or UNNAMED, train), sets
    valid, part = sets[validation], update.judged_on
    n_queries = valid.share.n_queries
    if isinstance(part, str) or n_queries < FEWEST_TO_SPLIT:
        return Judge(validation, valid), sets
    # Drawn alike whatever the seed of the training, so that learning curves of several seeds are of the same queries.
    drawn = np.random.default_rng(0).permutation(n_queries)
    aside, rest = (np.sort(some) for some in np.split(drawn, [min(max(round(part * n_queries), 1), n_queries - 1)]))
    judge = Judge(ASIDE, valid.select_queries(valid.share.here(valid.data, aside)), aside)
    return judge, {**sets, validation: valid.select_queries(valid.share.here(valid.data, rest))}


def _starting_ensemble(start: Ensemble | None, train: BinnedDataset, loss: Loss, task: Task) -> Ensemble:
    """The ensemble to go on from; without one, a constant for every problem: the base score of the loss."""
    data = train.data
    empty = Ensemble.from_trees([], n_features=data.n_features, feature_names=data.feature_names)
    if start is None:
        weights = document_weights(data.offsets, weights_of(train), data.query_weights)
        group = train.share.group
        bases = [loss.base_score(train.by_query(target), weights, group) for target in task.targets(data.y)]
        return task.combine([empty.replace(base=base) for base in bases])
    if start.n_features != data.n_features:
        raise RankwoodError(f"the model to go on from has {start.n_features} features, the data {data.n_features}")
    named = start.concat(empty)  # with the names of the data, which must not contradict its own
    return task.begin(named)


def _in_bins_of(train: BinnedDataset, data: Dataset | BinnedDataset, name: str, n_threads: int) -> BinnedDataset:
    """A data set to measure on, in the bins of the training data."""
    if data is train or data is train.data:
        return train
    if isinstance(data, BinnedDataset):
        if data.edges is train.edges:
            return data
        data = data.data
    if data.n_docs == 0:  # a share may be empty, and comes in bins
        raise DataError(f"there is nothing to measure on: the data set {name!r} has no rows")
    return BinnedDataset.encode(data, train.edges, n_threads=n_threads)
