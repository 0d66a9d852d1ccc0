"""What a request asks for, whatever its body is written in, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankwood.data.queries import find_queries
from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble


class Refused(RankwoodError):
    """A request that is not answered with scores, and why.

    Parameters
    ----------
    status : int
        Status of HTTP.
    sentence : str
        What is wrong and what to do, for the one who sent it.
    headers : dict, optional
        Headers of the answer.
    """

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, headers or {}


@dataclass(frozen=True)
class Limits:
    """How much a request may take.

    Parameters
    ----------
    body_bytes : int
        Size of a body.
    rows : int
        Documents of a request.
    requests : int
        Requests under way at the same time, those that wait for a thread included.
    seconds : float
        From the headers of a request to its answer.
    head_seconds : float
        From the first byte, or from the connection, to the end of the headers.
    model_bytes : int
        Size of a model that is sent to take the place of another.
    """

    body_bytes: int = 16 << 20
    rows: int = 10_000
    requests: int = 64
    seconds: float = 30.0
    head_seconds: float = 10.0
    model_bytes: int = 1 << 30


@dataclass(frozen=True)
class Batch:
    """Documents to score.

    Parameters
    ----------
    X : float array of documents x features
        NaN where a value is missing.
    queries : dict
        The arguments of `Ensemble.score` that tell queries: `qid`, `group` or nothing.
    top : int, optional
        How many of the best of each query are wanted in order.
    """

    X: AnyArray
    queries: dict[str, Any] = field(default_factory=dict)
    top: int | None = None

    def score(self, model: Ensemble) -> FloatArray:
        """Scores of all documents: those of `Ensemble.score`."""
        return model.score(self.X, **self.queries)

    def order(self, scores: FloatArray) -> list[list[int]] | None:
        """Rows of the best documents of each query, the best first and of equal ones the first; None if not wanted.

        Examples
        --------
        >>> Batch(np.zeros((4, 0)), {"group": [1, 3]}, top=2).order(np.array([0.0, 1.0, 2.0, 2.0]))
        [[0], [2, 3]]
        """
        if self.top is None:
            return None
        queries = find_queries(len(scores), **(self.queries or {"group": [len(scores)]}))
        rows = np.arange(len(scores)) if queries.order is None else queries.order
        best = []
        for first, end in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
            own = rows[first:end]
            best.append(own[np.argsort(-scores[own], kind="stable")[: self.top]].tolist())
        return best


def number_queries(ids: list[Any]) -> AnyArray:
    """Numbers of queries in order of first appearance, one per row, from ids that are all texts or all whole numbers.

    Numbers are compared as texts: nobody can choose texts that make a dictionary slow.
    """
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(str(one), len(numbers)) for one in ids], dtype=np.int64)


def check_rows(n_rows: int, limits: Limits) -> None:
    """Refuse more rows than a request may have."""
    if n_rows > limits.rows:
        raise Refused(413, f"{n_rows:,} rows are more than the {limits.rows:,} that a request may have: send fewer")
