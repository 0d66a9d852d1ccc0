"""Times of models: the calls are of the size asked for, and go round the rows."""

from __future__ import annotations

import numpy as np
import pytest

from rankwood.scoring.timing import CALLS, ROWS, seconds_in_turn, seconds_per_document


class Recorder:
    """A model that notes what it is given."""

    def __init__(self):
        self.calls = []

    def score(self, rows):
        self.calls.append((len(rows), float(rows[0, 0])))


@pytest.mark.parametrize(
    ("n_docs", "batch", "size", "n_batches"), [(10, 3, 3, 3), (10, 100, 10, 1), (9000, ROWS, ROWS, 1)]
)
def test_calls_are_of_one_size_and_go_round(n_docs, batch, size, n_batches):
    model, X = Recorder(), np.arange(n_docs, dtype=np.float32)[:, None]
    assert seconds_per_document(model, X, batch=batch, seconds=0.0) > 0
    timed = model.calls[1:]  # the first one makes the model ready
    assert len(timed) == CALLS
    assert {n for n, _ in timed} == {size}
    assert [first for _, first in timed] == [size * (i % n_batches) for i in range(CALLS)]


def test_models_are_called_in_turn():
    models = [Recorder() for _ in range(3)]
    order = []
    for number, model in enumerate(models):
        model.score = lambda rows, number=number: order.append(number)
    assert len(seconds_in_turn(models, np.zeros((10, 1), np.float32), seconds=0.0)) == 3
    assert order == [0, 1, 2] * (1 + CALLS)
