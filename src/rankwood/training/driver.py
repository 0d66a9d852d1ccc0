"""The training loop, for boosting and forests alike: resume, callbacks, checkpoints, interrupts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from rankwood.errors import RankwoodError
from rankwood.training.callbacks import (
    Callback,
    CallbackEnv,
    Result,
    as_mapping,
    in_order,
    record_evaluation,
    stopped_at,
)

if TYPE_CHECKING:  # what a session hands on; the loop looks into none of it
    from rankwood.data.bins import BinnedDataset
    from rankwood.data.dataset import Dataset
    from rankwood.model.ensemble import Ensemble
    from rankwood.training.checkpoint import Checkpoint
    from rankwood.training.watch import Measures

OnInterrupt = Literal["raise", "keep"]
History = dict[str, dict[str, list[float]]]


@dataclass(frozen=True)
class Session:
    """How a training runs: on what it is measured, who is told, where it is saved, with which seed and threads.

    Parameters
    ----------
    measures : Measures
        Measured on every data set of `valid` after every round.
    valid : mapping from str to Dataset or BinnedDataset
        Data sets to measure on, by name; the training data may be one of them.
    callbacks : sequence of callables
        Called before and after every round, in LightGBM's style.
    checkpoint : Checkpoint, optional
        File that the trees are saved to now and then, and that training goes on from when it exists.
    on_interrupt : {"raise", "keep"}
        Whether Ctrl-C is an exception or ends training with the rounds there are.
    seed : int
        Every tree has a random stream of its own, made of the seed and the number of the tree.
    n_threads : int
        Threads of all kernels; the model does not depend on it.
    learner : mapping
        Notes on the learner, which callbacks are told.
    """

    measures: Measures
    valid: Mapping[str, Dataset | BinnedDataset] = field(default_factory=dict)
    callbacks: Sequence[Callback] = ()
    checkpoint: Checkpoint | None = None
    on_interrupt: OnInterrupt = "raise"
    seed: int = 0
    n_threads: int = 1
    learner: Mapping[str, Any] = field(default_factory=dict)


class EnsembleSoFar(Protocol):
    """The ensemble so far, as the loop and its checkpoints see it."""

    history: list[list[Result]]

    @property
    def n_rounds(self) -> int:
        """Rounds grown so far."""

    def to_keep(self) -> tuple[Ensemble, dict[str, Any]]:
        """What a checkpoint holds: a model, and notes on how it came about."""

    def take_up(self, model: Ensemble, notes: dict[str, Any]) -> None:
        """Go on from what `to_keep` gave."""


class Keeper(Protocol):
    """Where the loop saves the trees so far."""

    def save_if_due(self, growing: EnsembleSoFar) -> None:
        """Save after every so many rounds."""

    def save(self, growing: EnsembleSoFar) -> None:
        """Save now, unless everything is saved already."""


class Growth(Protocol):
    """What the loop drives: something that can grow one round more.

    ::

        drive ── before callbacks ── Growth.allow     (what they may have changed)
          │                          Growth.advance   (gradients, a tree, scores, measures; or a forest's next tree)
          │      checkpoint          EnsembleSoFar.to_keep
          └───── after callbacks ─── Growth.is_whole  (enough trees?)
    """

    growing: EnsembleSoFar
    params: dict[str, Any]  # what callbacks may change from round to round

    def allow(self, env: CallbackEnv) -> None:
        """Refuse changes of `env.params` that cannot be followed."""

    def advance(self, env: CallbackEnv, interrupted: Callable[[], bool]) -> bool:
        """Grow the next round and note its measures; False when an interrupt came first."""

    def is_whole(self, env: CallbackEnv) -> bool:
        """Whether there are as many trees as wanted; also tells callbacks what became of the round."""

    def can_stop(self) -> bool:
        """Whether an interrupt may end training here."""


@dataclass(frozen=True)
class Driven:
    """How the loop ended: the rounds to keep, the measures after them, and why it ended."""

    n_kept: int  # rounds of the model: fewer than were done when early stopping found a better one before
    n_done: int
    best_score: Mapping[str, Mapping[str, float]]  # after the last round that is kept: data set, then measure
    history: History  # of every round: data set, then measure
    interrupted: bool
    stopped_early: bool


@dataclass(frozen=True)
class Trained:
    """What a training gives: the ensemble at its best size, and how the loop ended."""

    ensemble: Ensemble
    driven: Driven


def drive(
    growth: Growth,
    session: Session,
    *,
    n_iterations: int,
    n_trees: int | None = None,
    train_name: str | None = None,
    keeper: Keeper | None = None,
) -> Driven:
    """Run rounds until there are enough trees, a callback stops them, or Ctrl-C is pressed.

    Rounds that a checkpoint holds are not grown again, but callbacks see them, so that they know what went before.

    Parameters
    ----------
    growth : Growth
        What grows; it may hold rounds of a checkpoint already.
    session : Session
        Whose callbacks are called, and what becomes of Ctrl-C.
    n_iterations : int
        The most rounds there may be.
    n_trees : int, optional
        Trees at which training ends, where that takes more rounds than trees; told to callbacks.
    train_name : str, optional
        Name under which the training data is measured, if it is.
    keeper : Keeper, optional
        Where the trees are saved, every so many rounds and at the end.
    """
    history: History = {}
    before, after = in_order([*session.callbacks, record_evaluation(history)])
    growing = growth.growing
    n_resumed = growing.n_rounds
    env = CallbackEnv(growing, growth.params, 0, 0, n_iterations, learner=session.learner)
    env.n_trees, env.train_name = n_trees, train_name
    n_done, stopped, stopped_early = 0, False, False
    try:
        with deferred_interrupt() as interrupted:
            for env.iteration in range(n_iterations):
                env.replayed = env.iteration < n_resumed
                _call(before, env)
                growth.allow(env)
                if not env.replayed:
                    try:
                        grown = growth.advance(env, interrupted)
                    except KeyboardInterrupt:  # a second Ctrl-C: this round is given up, those before it are whole
                        if not interrupted() or growing.n_rounds == 0:
                            raise
                        grown = False
                    if not grown:
                        stopped = True
                        break
                    if keeper is not None:
                        keeper.save_if_due(growing)
                env.evaluation_result_list = growing.history[env.iteration]
                is_whole = growth.is_whole(env)
                _call(after, env)
                n_done = env.iteration + 1
                stopped = interrupted() and (env.replayed or growth.can_stop())
                if stopped or is_whole:
                    break
    except Exception as error:
        env.best, stopped_early, n_done = stopped_at(error), True, env.iteration + 1
        if env.best is None:
            raise
    if keeper is not None:
        keeper.save(growing)
    if stopped and session.on_interrupt == "raise":
        raise KeyboardInterrupt
    last, results = env.best or (n_done - 1, env.evaluation_result_list)
    return Driven(last + 1, n_done, as_mapping(results), history, stopped, stopped_early)


def check_size(n_saved: int, n_trees: int) -> None:
    """Refuse a checkpoint that holds more trees than wanted."""
    if n_saved > n_trees:
        raise RankwoodError(f"the checkpoint has {n_saved} trees already, more than n_trees={n_trees}")


_HERE = threading.local()  # `interrupted` in threads whose Ctrl-C is pressed elsewhere


@contextmanager
def interrupts_from(interrupted: Callable[[], bool]) -> Iterator[None]:
    """Have trainings of this thread hear of Ctrl-C from a function, which is asked once after every round.

    Parameters
    ----------
    interrupted : callable
        Tells whether it was pressed; all processes of a group must get the same answer.
    """
    _HERE.interrupted = interrupted
    try:
        yield
    finally:
        del _HERE.interrupted


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Hold back Ctrl-C while the block runs; the function that is yielded tells whether it was pressed.

    A second Ctrl-C interrupts at once. Outside the main thread signals cannot be held back and nothing changes, unless
    `interrupts_from` says who knows.
    """
    pressed = False
    elsewhere: Callable[[], bool] | None = getattr(_HERE, "interrupted", None)
    if elsewhere is not None:
        yield elsewhere
        return

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    previous = signal.getsignal(signal.SIGINT)
    if not callable(previous):  # ignored, or set outside Python: leave it so
        yield lambda: False
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, previous)


def _call(callbacks: Sequence[Callback], env: CallbackEnv) -> None:
    for callback in callbacks:
        callback(env)
