"""The ensemble while it grows, and the file from which a training that was killed goes on."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rankwood._version import __version__
from rankwood.atomic import check_writable
from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Tree, Trees
from rankwood.training.callbacks import Live, Result, Step, apply, live_after
from rankwood.training.driver import Growing
from rankwood.training.tasks import Regression, Task


@dataclass
class GrowingEnsemble:
    """Boosted trees while training goes on, with the step, the learning rate and the measures of every round.

    A round is a tree for every problem of the task: one tree, but for task="ordinal". Trees that were removed again
    stay here (they are small, unlike what training keeps of live ones), so that the model after any round can be had:
    the steps say which trees were live then, and with what weights.
    """

    # LightGBM's reset_parameter sets parameters of each of these, and of the callbacks' `params`, which is enough.
    boosters: ClassVar[tuple[Any, ...]] = ()

    start: Ensemble
    task: Task = field(default_factory=Regression)
    trees: list[Tree] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    learning_rates: list[float] = field(default_factory=list)
    history: list[list[Result]] = field(default_factory=list)
    live: Live = field(init=False)

    def __post_init__(self) -> None:
        self.live = live_after(self.steps)

    @property
    def n_rounds(self) -> int:
        return len(self.history)

    @property
    def last_step(self) -> Step | None:
        return self.steps[-1] if self.steps else None

    def append(self, trees: list[Tree], step: Step, learning_rate: float, results: list[Result]) -> None:
        """Add a round: its trees, what happened in it, and the measures after it."""
        self.trees += trees
        self.steps.append(step)
        apply(step, self.live)
        self.learning_rates.append(learning_rate)
        self.history.append(results)

    def check_rate(self, tree: int, learning_rate: float) -> None:
        """Refuse to go on from a checkpoint that was made with another learning rate for a tree."""
        if learning_rate != self.learning_rates[tree]:
            raise RankwoodError(
                f"the checkpoint was made with learning rate {self.learning_rates[tree]} for tree {tree}, "
                f"now it is {learning_rate}: delete it to start anew, or choose another file"
            )

    def trees_of(self, number: int) -> list[Tree]:
        """The trees of a round."""
        per_round = self.task.n_problems
        return self.trees[number * per_round : (number + 1) * per_round]

    def boosted(self, n_rounds: int | None = None) -> Ensemble:
        """The trees that were live after the first `n_rounds` (default: all), without the starting ensemble."""
        return self._ensemble(self.live if n_rounds is None else live_after(self.steps[:n_rounds]))

    def whole(self, n_rounds: int | None = None) -> Ensemble:
        """The starting ensemble and the trees that were live after the first `n_rounds` (default: all)."""
        return self.task.extend(self.start, self.boosted(n_rounds))

    def everything(self) -> Ensemble:
        """All trees ever grown; those that were removed have weight 0."""
        return self._ensemble({number: self.live.get(number, 0.0) for number in range(self.n_rounds)})

    def to_keep(self) -> tuple[Ensemble, dict[str, Any]]:
        """What a checkpoint holds: all trees, and learning rate, measures and step of every round."""
        notes = {"learning_rates": self.learning_rates, "history": self.history, "steps": self.steps}
        return self.everything(), notes

    def take_up(self, model: Ensemble, notes: dict[str, Any]) -> None:
        """Go on from what `to_keep` gave."""
        self.trees = [model.tree(t) for t in range(model.n_trees)]
        self.steps = [Step(*step)._replace(dropped=tuple(step[DROPPED])) for step in notes["steps"]]
        self.learning_rates, self.history = notes["learning_rates"], read_history(notes["history"])
        self.live = live_after(self.steps)

    def first_with(self, n_trees: int) -> int | None:
        """The first round after which the trees of so many rounds were live; None when there was none."""
        return next((step.iteration for step in self.steps if step.n_trees == n_trees), None)

    def _ensemble(self, live: Live) -> Ensemble:
        weights = [self.task.sign * weight for weight in live.values()]
        return Ensemble.from_trees(
            [tree for number in live for tree in self.trees_of(number)],
            tree_weights=np.repeat(np.array(weights, dtype=np.float64), self.task.n_problems),
            n_features=self.start.n_features,
            feature_names=self.start.feature_names,
        )


class GrowingForest:
    """Trees of a forest while it grows, batch by batch, and the measures after every round.

    A round is a tree for every problem of the task.
    """

    boosters: ClassVar[tuple[Any, ...]] = ()  # as in GrowingEnsemble: for LightGBM's callbacks

    def __init__(self, start: Ensemble, task: Task) -> None:
        self.start, self.task = start, task
        self._batches: list[Trees] = []
        self.history: list[list[Result]] = []  # of the rounds that count; a batch may have more

    @property
    def n_rounds(self) -> int:
        return len(self.history)

    def add(self, batch: Trees) -> None:
        """More trees. Their rounds count one by one, when their measures are noted in `history`."""
        self._batches.append(batch)

    def to_keep(self) -> tuple[Ensemble, dict[str, Any]]:
        """What a checkpoint holds: all trees with weight 1, and the measures after every round."""
        return self.trees(self.n_rounds, 1.0), {"history": self.history}

    def take_up(self, model: Ensemble, notes: dict[str, Any]) -> None:
        """Go on from what `to_keep` gave."""
        self.add(model.trees)
        self.history = read_history(notes["history"])

    def whole(self, n_rounds: int | None = None, *, last: bool = False) -> Ensemble:
        """The forest of the first `n_rounds` (default: all): every problem is the mean of its trees.

        `last` is that of `trees`.
        """
        n_rounds = self.n_rounds if n_rounds is None else n_rounds
        return self.task.extend(self.start, self.trees(n_rounds, self.task.sign * mean_weight(n_rounds), last=last))

    def trees(self, n_rounds: int, weight: float, *, last: bool = False) -> Ensemble:
        """The trees of the first `n_rounds` as an ensemble, all with this weight.

        `last` says that nothing more is asked of this object: trees of full depth are large, so every array is then
        let go of as soon as it is copied.
        """
        n_trees = n_rounds * self.task.n_problems
        parts, done = [], 0
        for batch in self._batches:
            parts.append(batch.part(0, min(batch.n_trees, n_trees - done)))
            done += parts[-1].n_trees
        if last:
            self._batches.clear()
        return Ensemble.of(
            Trees.join_and_release(parts),
            tree_weights=np.full(n_trees, weight),
            n_features=self.start.n_features,
            feature_names=self.start.feature_names,
        )


def mean_weight(n_trees: int) -> float:
    """Weight of a tree in a mean of `n_trees`, cut to 24 bits.

    Labels are small whole numbers and leaves of full depth hold single labels. Times 24 bits these are exact, and so is
    their sum: documents that the trees do not tell apart have equal scores, in whichever order trees are added.

    Examples
    --------
    >>> mean_weight(8), mean_weight(10)
    (0.125, 0.09999999403953552)
    """
    share, exponent = math.frexp(1.0 / max(n_trees, 1))
    return math.ldexp(math.floor(share * 2**24), exponent - 24)


DROPPED = Step._fields.index("dropped")

Identity = dict[str, str]  # what the next tree depends on, by name; large things as digests


@dataclass(frozen=True)
class Checkpoint:
    """A file that training saves its trees to now and then, and goes on from when it exists.

    Training that was killed ends with the very model it would have become. The file is a model file. It says what it
    was trained on and how; going on with other data or parameters is an error. The number of trees may be larger than
    before: so a finished training is prolonged.

    Parameters
    ----------
    path : path
        The file.
    every : int, default 50
        Trees between two savings. With task="ordinal" these are rounds of trees. With X-DART these are iterations, and
        the file also has the trees that were removed, with weight 0.

    Examples
    --------
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
        """The trees that were saved and the notes on them; None when the file does not exist.

        Parameters
        ----------
        identity : dict from str to str
            What the training depends on; a file that was made with something else is refused.
        """
        path = os.fspath(self.path)
        check_writable(path)  # now, not after the first `every` trees
        if not Path(path).exists():
            return None
        model = Ensemble.load(path)
        return model, check_identity(path, model, identity)


class CheckpointFile:
    """The file of a checkpoint while a training writes it, with what the training depends on."""

    def __init__(self, checkpoint: Checkpoint, identity: Identity) -> None:
        self.checkpoint, self.identity = checkpoint, identity
        self.n_saved = 0

    def load(self, growing: Growing) -> None:
        """Take up what was saved, if there is anything."""
        found = self.checkpoint.read(self.identity)
        if found is not None:
            growing.take_up(*found)
            self.n_saved = growing.n_rounds

    def save_if_due(self, growing: Growing) -> None:
        """Save after every `every` rounds."""
        if growing.n_rounds % self.checkpoint.every == 0:
            self.save(growing)

    def save(self, growing: Growing) -> None:
        """Write the trees so far, unless they are written; a kill while writing leaves the checkpoint before it."""
        if growing.n_rounds > self.n_saved:
            model, notes = growing.to_keep()
            model.with_metadata(checkpoint={"identity": self.identity, **notes}).save(self.checkpoint.path)
            self.n_saved = growing.n_rounds


def read_history(history: list[Any]) -> list[list[Result]]:
    """The measures after each round, from the notes of a checkpoint."""
    return [[Result(*result) for result in results] for results in history]


def check_identity(path: str, model: Ensemble, identity: Identity) -> dict[str, Any]:
    """The notes of a checkpoint; an error when it was not made with what `identity` says."""
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
    """Everything besides earlier trees that the next boosted tree, and where training stops, depend on."""
    return {
        "training data": _in_bins(train),
        **{f"data set {name!r}": _in_bins(binned) for name, binned in watched.items()},
        "model to start from": start.fingerprint(),
        **identify_settings(parameters),
    }


def identify_settings(parameters: Mapping[str, Any]) -> Identity:
    """Parameters as texts, and the version, which may change what they mean."""
    named = {name: _without_addresses(repr(value)) for name, value in parameters.items()}
    return {**named, "version of rankwood": __version__}


def identify_data(data: Dataset, *made_of_it: AnyArray) -> str:
    """Digest of a data set, and of the arrays that training made of it."""
    digest = hashlib.sha256(data.fingerprint().encode())
    for array in made_of_it:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _in_bins(binned: BinnedDataset) -> str:
    return identify_data(binned.data, binned.bins, binned.edges.flat, binned.edges.offsets)


def _without_addresses(text: str) -> str:
    """The text of a function or object without its address in memory."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
