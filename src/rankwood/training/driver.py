"""The training loop, for boosting and forests alike: resume, callbacks, checkpoints, interrupts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, Protocol

from rankwood.errors import RankwoodError
from rankwood.training.callbacks import Callback, CallbackEnv, Result, in_order, stopped_at
from rankwood.training.checkpoint import Checkpoint, Identity

OnInterrupt = Literal["raise", "keep"]


class Growing(Protocol):
    """The ensemble so far, as the loop and its checkpoints see it."""

    history: list[list[Result]]

    @property
    def n_rounds(self) -> int: ...

    def to_keep(self) -> tuple[Any, dict[str, Any]]: ...

    def take_up(self, model: Any, notes: dict[str, Any]) -> None: ...


class Growth(Protocol):
    """What the loop drives: something that can grow one round more.

    ::

        drive ── before callbacks ── Growth.allow     (what they may have changed)
          │                          Growth.advance   (gradients, a tree, scores, measures; or a forest's next tree)
          │      checkpoint          Growing.to_keep
          └───── after callbacks ─── Growth.is_whole  (enough trees?)
    """

    growing: Any  # a Growing
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
    """Where the loop ended: the last round to keep, the measures after it, and why it ended."""

    last: int
    results: list[Result]
    n_done: int  # rounds done, those after the last one to keep included
    interrupted: bool
    stopped_early: bool


@dataclass
class Keeper:
    """A checkpoint with what it must have been made with."""

    checkpoint: Checkpoint
    identity: Identity
    n_saved: int = 0

    def load(self, growing: Growing) -> None:
        """Take up what was saved, if there is anything."""
        found = self.checkpoint.read(self.identity)
        if found is not None:
            growing.take_up(*found)
            self.n_saved = growing.n_rounds

    def save_if_due(self, growing: Growing) -> None:
        if growing.n_rounds % self.checkpoint.every == 0:
            self.save(growing)

    def save(self, growing: Growing) -> None:
        """Write the trees so far, unless they are written; a kill while writing leaves the checkpoint before it."""
        if growing.n_rounds > self.n_saved:
            model, notes = growing.to_keep()
            model.with_metadata(checkpoint={"identity": self.identity, **notes}).save(self.checkpoint.path)
            self.n_saved = growing.n_rounds


def drive(
    growth: Growth,
    *,
    n_iterations: int,
    n_trees: int | None = None,
    callbacks: Sequence[Callback] = (),
    train_name: str | None = None,
    keeper: Keeper | None = None,
    on_interrupt: OnInterrupt = "raise",
) -> Driven:
    """Run rounds until there are enough trees, a callback stops them, or Ctrl-C is pressed.

    Rounds that a checkpoint holds are not grown again, but callbacks see them, so that they know what went before.

    Parameters
    ----------
    growth : Growth
        What grows; it may hold rounds of a checkpoint already.
    n_iterations : int
        The most rounds there may be.
    n_trees : int, optional
        Trees at which training ends, where that takes more rounds than trees; told to callbacks.
    callbacks : sequence of callables
        Called before and after every round, in LightGBM's style.
    train_name : str, optional
        Name under which the training data is measured, if it is.
    keeper : Keeper, optional
        Where the trees are saved, every so many rounds and at the end.
    on_interrupt : {"raise", "keep"}
        Whether Ctrl-C is an exception or ends training with the rounds there are.
    """
    before, after = in_order(callbacks)
    growing = growth.growing
    n_resumed = growing.n_rounds
    env = CallbackEnv(growing, growth.params, 0, 0, n_iterations)
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
    if stopped and on_interrupt == "raise":
        raise KeyboardInterrupt
    last, results = env.best or (n_done - 1, env.evaluation_result_list)
    return Driven(last, results, n_done, stopped, stopped_early)


def check_size(n_saved: int, n_trees: int) -> None:
    """Refuse a checkpoint that holds more trees than wanted."""
    if n_saved > n_trees:
        raise RankwoodError(f"the checkpoint has {n_saved} trees already, more than n_trees={n_trees}")


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Hold back Ctrl-C while the block runs; the function that is yielded tells whether it was pressed.

    A second Ctrl-C interrupts at once. Outside the main thread signals cannot be held back and nothing changes.
    """
    pressed = False

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
