"""A training in miniature: every round depends on sums over all shares, and on the round before."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankwood.cluster.launch import run_on_workers, supervise
from rankwood.cluster.placement import refuse_loss

N_CELLS = 997


def next_state(sums: np.ndarray) -> int:
    return int.from_bytes(hashlib.sha256(sums.astype(np.int64).tobytes()).digest()[:3], "little") + 1


def sums_of(numbers: np.ndarray, state: int) -> np.ndarray:
    return np.bincount((numbers * state) % N_CELLS, minlength=N_CELLS)


def alone(numbers: np.ndarray, n_rounds: int) -> tuple[int, int]:
    """What the training gives in one process."""
    state = 1
    for _ in range(n_rounds):
        state = next_state(sums_of(numbers, state))
    return n_rounds, state


def program(group, channel, share, n_rounds: int, start: tuple[int, int], pause: float) -> tuple[int, int] | None:
    """What every rank runs."""
    done, state = start
    while done < n_rounds:
        state = next_state(group.sum(sums_of(share, state)))
        time.sleep(pause)
        done += 1
        if group.rank == 0:
            channel.tell(("checkpoint", (done, state)))
            answer = channel.ask(("round", done))
        else:
            answer = None
        answer, interrupted = group.broadcast((answer, channel.interrupted()))
        if interrupted:
            raise KeyboardInterrupt
        if answer == "stop":
            break
    return (done, state) if group.rank == 0 else None


class Training:
    """A training on a cluster that goes on from its last checkpoint when a worker is lost."""

    def __init__(self, numbers: np.ndarray, n_rounds: int, callback: Callable[[int], Any] = lambda done: None) -> None:
        self.numbers, self.n_rounds, self.callback = numbers, n_rounds, callback
        self.checkpoint = (0, 1)
        self.attempts: list[list[str]] = []
        self.rounds: list[int] = []

    def hear(self, rank: int, message: tuple[str, Any]) -> Any:
        kind, content = message
        assert rank == 0
        if kind == "checkpoint":
            self.checkpoint = content
            return None
        self.rounds.append(content)
        return self.callback(content)

    def run(self, client, *, workers: Sequence[str] | None = None, pause: float = 0.0, retries: int = 3, **more: Any):
        def attempt(present: list[str]):
            chosen = [worker for worker in present if workers is None or worker in workers] or present[:1]
            self.attempts.append(chosen)
            parts = np.array_split(self.numbers, len(chosen))
            try:
                shares = {
                    worker: client.scatter(part, workers=[worker], hash=False)
                    for worker, part in zip(chosen, parts, strict=True)
                }
            except Exception:
                refuse_loss(client, chosen)
                raise
            arguments = (self.n_rounds, self.checkpoint, pause)
            return run_on_workers(client, program, shares, arguments=arguments, on_message=self.hear, **more)[0]

        return supervise(client, attempt, retries=retries)
