"""Position bias: how much of a label comes of where a document was shown, learnt beside the trees.

Labels made of clicks depend on two things: what a document is worth, and whether anyone looked at where it stood. The
training adds a number to every score that depends on the position alone, b[position], and lets the loss see the sum.
The numbers are learnt by Newton steps on the same loss, one per tree; the model is the trees alone. So the trees need
not explain what the positions do. It is what LightGBM 4 does, and works with every loss, since a loss sees scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.exact import in_units
from rankwood.group import ALONE, Group
from rankwood.training.losses import Gradients

LEAST = 1e-3  # added to the second derivative, as by LightGBM: positions that nothing is known of stay where they are


@dataclass
class Unbiased:
    """A loss bound to the training data that sees scores with the bias of each document's position added.

    Parameters
    ----------
    inner : Gradients
        The loss.
    position : array of int
        Position of every document, from 0 on, in the order of queries.
    l2 : float
        Pulls biases to 0: as many times the bias of a position as it has documents.
    group : Group
        Processes that have other documents: all learn the same biases.
    biases : array of float
        Of every position; 0 unless given.
    """

    inner: Gradients
    position: IndexArray
    l2: float = 0.0
    group: Group = ALONE
    biases: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        n_positions = int(self.group.max(np.array([self.position.max(initial=-1)]))[0]) + 1
        self._counts = self.group.sum(np.bincount(self.position, minlength=n_positions))
        if len(self.biases) != n_positions:
            self.biases = np.zeros(n_positions)

    def gradients(self, scores: FloatArray, out_gradient: FloatArray, out_hessian: FloatArray, draw: int = 0) -> None:
        """Write gradient and hessian at `scores` plus biases."""
        self.inner.gradients(scores + self.biases[self.position], out_gradient, out_hessian, draw)

    def learn(self, gradient: FloatArray, hessian: FloatArray, rate: float) -> None:
        """One Newton step of all biases.

        Parameters
        ----------
        gradient, hessian : array of float
            What `gradients` wrote.
        rate : float
            Length of the step: the learning rate of the trees.
        """
        first, second = (self._sums(whole, unit) for whole, unit in in_units([gradient, hessian], self.group))
        first = first - self.l2 * self._counts * self.biases
        second = second + self.l2 * self._counts
        self.biases = self.biases + rate * first / (second + LEAST)

    def _sums(self, whole: IndexArray, unit: float) -> FloatArray:
        """Sums by position over the documents of all processes: of whole numbers, so in any order."""
        sums = np.zeros(len(self.biases), dtype=np.int64)
        np.add.at(sums, self.position, whole)
        total: FloatArray = self.group.sum(sums) * unit
        return total
