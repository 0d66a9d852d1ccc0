"""Clicks as users of a search engine might give them: a simulator whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError


@dataclass(frozen=True)
class PositionModel:
    """The position-based model: a click needs a look at the position and, independently, a liking of the document.

    P(click) = propensity[position] * (noise + (1 - noise) * (2^label - 1) / (2^largest - 1))

    Parameters
    ----------
    propensities : sequence of float
        Probability of a look at each position, from the first on; further positions are never looked at.
    noise : float, default 0.1
        Probability of a click on a document of label 0 that was looked at.

    Examples
    --------
    >>> PositionModel.power(4, 1.0).propensities
    (1.0, 0.5, 0.3333333333333333, 0.25)
    """

    propensities: tuple[float, ...]
    noise: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "propensities", tuple(float(one) for one in self.propensities))
        if not self.propensities or not all(0.0 <= one <= 1.0 for one in self.propensities):
            raise RankwoodError("propensities are probabilities, one per position: give at least one, from 0 to 1")
        if not 0.0 <= self.noise <= 1.0:
            raise RankwoodError(f"noise must lie between 0 and 1, got {self.noise}")

    @classmethod
    def power(cls, n_positions: int, eta: float = 1.0, *, noise: float = 0.1) -> PositionModel:
        """Propensities that fall as 1 / rank^eta."""
        return cls(tuple(1.0 / rank**eta for rank in range(1, n_positions + 1)), noise)

    def clicked(self, data: Dataset, scores: FloatArray, *, n_sessions: int = 1, seed: int = 0) -> Dataset:
        """The documents that users were shown, with their positions, and 1 or 0 for clicked or not as labels.

        Parameters
        ----------
        data : Dataset
            Documents with their true labels.
        scores : array of float
            By which they were ranked when they were shown, ties in input order.
        n_sessions : int, default 1
            Times every query is asked; each is a query of its own in the result.
        seed : int, default 0
            Of the users.

        Returns
        -------
        Dataset
            Query by query in ranked order, cut where nobody looks any more, with `position`. The same in every run.
        """
        labels = np.asarray(data.y)
        liking = (np.exp2(labels) - 1.0) / max(np.exp2(labels.max(initial=0.0)) - 1.0, 1.0)
        order = data.order if data.order is not None else np.arange(data.n_docs)
        shown = []
        for query in range(data.n_queries):
            rows = order[data.offsets[query] : data.offsets[query + 1]]
            shown.append(rows[np.argsort(-scores[rows], kind="stable")][: len(self.propensities)])
        lists = [rows for _ in range(n_sessions) for rows in shown]
        rows = np.concatenate(lists)
        position = np.concatenate([np.arange(len(of_list)) for of_list in lists])
        clicks = np.asarray(self.propensities)[position] * (self.noise + (1.0 - self.noise) * liking[rows])
        y = (np.random.default_rng(seed).random(len(rows)) < clicks).astype(np.float64)
        return Dataset(
            data.X[rows],
            y,
            group=[len(of_list) for of_list in lists],
            position=position,
            feature_names=data.feature_names,
        )
