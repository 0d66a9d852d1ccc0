"""The numbers that define the data set, and draws that depend on nothing but a name."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

SEED = 20060815
SPLITS = ("train", "vali", "test")
SHARES = (0.625, 0.1875, 0.1875)  # of the queries, for each split
PARTS_OF_SPEECH = {"noun": "n", "verb-adj": "va"}  # whose synsets become queries, for each part of the data set
N_QUERIES = {"noun": 32_000, "verb-adj": 3_000}


@dataclass(frozen=True)
class Rules:
    """Limits of candidates, grades and splits; those of the data set unless given.

    Parameters
    ----------
    fewest, most : int
        Candidates of a query. Where fewer documents match, all are taken; half of `fewest` must.
    near_best : float
        Share of the best BM25 score from which on candidates beyond `fewest` are taken.
    classes : (float, float, float)
        Greatest classes that give grades 3, 2 and 1, as shares of the synsets of a part of speech.
    hub : int
        Most pointers of a synset that is a bridge between two others.
    group : int
        Fewest synsets of a group that splits do not divide.
    feedback : int
        Best documents that count as relevant in the features of pseudo-relevance feedback.
    """

    fewest: int = 60
    most: int = 160
    near_best: float = 0.46
    classes: tuple[float, float, float] = (1 / 1400, 1 / 60, 1 / 4)
    hub: int = 40
    group: int = 150
    feedback: int = 10


def digest(*name: str | int) -> bytes:
    """Return 32 bytes that are as good as random and always the same for a name.

    Examples
    --------
    >>> digest("query", 7).hex()[:8]
    '473cbb27'
    """
    return hashlib.sha256("|".join(map(str, (SEED, *name))).encode()).digest()


def generator(*name: str | int) -> np.random.Generator:
    """Return a random generator that draws the same for the same name."""
    return np.random.default_rng(int.from_bytes(digest(*name)[:8], "little"))
