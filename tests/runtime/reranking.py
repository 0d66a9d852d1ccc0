"""What the example programs of all languages have in common: the same input, the same refusals."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import rankwood as rw

VALUES = ["1e-40", "-1e60", "1e60", "NaN", "nan", "0.1", "-7", "3.4028235677973366e+38"]  # denormal, infinite, missing


def assert_reranks(command: Sequence[object], folder: Path, model: rw.Ensemble, **environment: object) -> None:
    """A program ranks candidates as Python does and refuses lines that are none, each in one sentence.

    Parameters
    ----------
    command : sequence
        The program.
    folder : Path
        Where its model may lie.
    model : Ensemble
        The model.
    environment : object
        Variables that it needs.
    """
    path = folder / "candidates.rw"
    model.save(path)

    def run(text: str, *arguments: object) -> tuple[int, str, str]:
        done = subprocess.run(
            [str(word) for word in [*command, *arguments]],
            input=text.encode(),
            env=os.environ | {name: str(value) for name, value in environment.items()},
            capture_output=True,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    width = model.n_features
    X = np.random.default_rng(5).normal(size=(100, width)).astype(np.float32)
    words = [[repr(float(value)) for value in row] for row in X]
    for row in range(10, 60):
        words[row][row % width] = VALUES[row % len(VALUES)]
    with np.errstate(over="ignore"):
        X = np.array(words, dtype=float).astype(np.float32)
    assert np.isnan(X).any()
    assert np.isinf(X).any()
    text = "".join(f"d{row}{' ' if row % 3 else chr(9)}{'  '.join(line)}\r\n" for row, line in enumerate(words))
    status, output, said = run(text.rstrip(), path)
    assert (status, said) == (0, "")
    scores = model.score(X)
    assert len(np.unique(scores)) == len(scores)
    found = [line.split() for line in output.splitlines()]
    assert [name for name, _ in found] == [f"d{row}" for row in np.argsort(-scores)]
    assert [float(score) for _, score in found] == sorted(scores, reverse=True)
    assert run("", path) == (0, "", "")

    good = "a" + " 0.5" * width
    for lines, sentence in {
        f"{good[:-4]}\n{good} 0.5\n": f"line 1 has {width - 1} features, the model has {width}\n",
        f"{good}\n{good} 0.5\n": f"line 2 has {width + 1} features, the model has {width}\n",
        f"{good}\n\n{good}": "line 2 is empty: it must have an id and features\n",
        f"{good}\n \t\n": "line 2 is empty: it must have an id and features\n",
        f"{good[:-4]} abc\n": "line 1: 'abc' is not a number\n",
        f"{good[:-4]} 1.5f\n": "line 1: '1.5f' is not a number\n",
        f"{good[:-4]} 1,5\n": "line 1: '1,5' is not a number\n",
    }.items():
        assert run(lines, path) == (1, "", sentence), lines
    status, output, said = run(good, folder / "none.rw")
    assert (status, output, said.count("\n")) == (1, "", 1)
    assert "none.rw: " in said
    status, output, said = run(good)
    assert (status, output, said.count("\n"), said[:7]) == (1, "", 1, "usage: ")
