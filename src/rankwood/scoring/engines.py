"""Engines: ways to score a model that all reach the same leaves and the same sums, at different speeds."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

import numpy as np

from rankwood import _native
from rankwood.dtypes import SCORE, AnyArray, FloatArray
from rankwood.errors import ModelError, RankwoodError
from rankwood.matrix import is_plain, row_blocks
from rankwood.system import resolve_threads

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble


# What an engine is: a name, its limits as data, and `prepare`, which turns a model into something that scores.


V = TypeVar("V")
Precision = Literal["single", "double"]
Blocks = Iterable[tuple[slice, AnyArray]]  # where rows stand, and their values: what `row_blocks` gives


class Kept(Generic[V]):
    """What was made of objects, for as long as these live. Objects are told apart by identity, not by value.

    Models stay immutable and hold no cache: engines keep here what they made of trees and models. Racing threads may
    both make a thing; the results are the same, so no lock is needed, and none can be held across a fork.
    """

    def __init__(self) -> None:
        self._of: dict[int, tuple[weakref.ref[Any], dict[Hashable, V]]] = {}

    def of(self, owner: Any) -> dict[Hashable, V]:
        """What is kept of an object: a dictionary to read and to fill."""
        number = id(owner)
        found = self._of.get(number)
        if found is not None:
            return found[1]
        kept: dict[Hashable, V] = {}
        self._of[number] = (weakref.ref(owner, lambda _: self._of.pop(number, None)), kept)
        return kept


class Kernel(Protocol):
    """The native half of a prepared model. `X` is float32 or float64 in any memory order, with the model's columns."""

    @property
    def n_bytes(self) -> int: ...

    def score(self, X: AnyArray, scores: FloatArray, single: bool, n_threads: int) -> None: ...

    def leaves(self, X: AnyArray, leaves: AnyArray, n_threads: int) -> None: ...


@dataclass(frozen=True)
class Limits:
    """What an engine can score, as data. None: no limit."""

    max_leaves: int | None = None  # of a tree
    max_depth: int | None = None  # of a tree
    max_nodes: int | None = None  # inner nodes of all trees
    needs_compiler: bool = False


@dataclass(frozen=True)
class Engine:
    """A way to score. `prepare` makes a model ready, once; the result scores any number of times, from any thread.

    >>> from rankwood import Ensemble, get_engine
    >>> model = Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    >>> get_engine("reference").prepare(model).score([[0.0], [1.0]])
    array([1., 2.])
    """

    name: str
    purpose: str  # one line for people
    limits: Limits
    make_kernel: Callable[[Ensemble], Kernel]
    find_obstacle: Callable[[], str | None] = lambda: None  # what this machine lacks

    def obstacle(self, model: Ensemble) -> str | None:
        """Why this engine cannot score `model` here; None when it can."""
        if not hasattr(model, "leaf_offsets"):
            raise ModelError(
                f"engines score an Ensemble, such as load_model or ensemble_ give; got {type(model).__name__}"
            )
        limits, n_nodes = self.limits, model.n_nodes
        most_leaves, depth = int(np.diff(model.leaf_offsets).max(initial=0)), int(model.trees.depths.max(initial=0))
        if limits.max_leaves is not None and most_leaves > limits.max_leaves:
            return f"a tree has {most_leaves:,} leaves and engine {self.name!r} takes {limits.max_leaves:,}"
        if limits.max_depth is not None and depth > limits.max_depth:
            return f"a tree is {depth:,} deep and engine {self.name!r} takes {limits.max_depth:,}"
        if limits.max_nodes is not None and n_nodes > limits.max_nodes:
            return f"there are {n_nodes:,} inner nodes and engine {self.name!r} takes {limits.max_nodes:,}"
        return self.find_obstacle()

    def prepare(self, model: Ensemble) -> PreparedModel:
        """The model, ready to score. Nothing is kept of it but what the engine made."""
        obstacle = self.obstacle(model)
        if obstacle is not None:
            raise ModelError(f"engine {self.name!r} cannot score this model: {obstacle}")
        return PreparedModel(self.name, model, self.make_kernel(model))


class PreparedModel:
    """A model that an engine made ready. It never changes, holds no lock and no thread, and survives a fork."""

    __slots__ = ("_fits_single", "_kernel", "engine", "feature_names", "max_leaves", "n_features", "n_trees")

    def __init__(self, engine: str, model: Ensemble, kernel: Kernel) -> None:
        self.engine = engine
        self.n_features, self.feature_names = model.n_features, model.feature_names
        self.n_trees, self.max_leaves = model.n_trees, int(np.diff(model.leaf_offsets).max(initial=1))
        self._kernel = kernel
        self._fits_single = model.trees.fit_single(model.tree_weights)

    @property
    def n_bytes(self) -> int:
        """Memory that the prepared model takes."""
        return self._kernel.n_bytes

    @property
    def from_cache(self) -> bool:
        """Whether preparing it took what an earlier run had compiled; engines that never compile have no such mark."""
        return bool(getattr(self._kernel, "from_cache", False))

    def score(self, X: Any, *, precision: Precision = "double", n_threads: int | None = 1) -> FloatArray:
        """Score of every row of `X`, in float64.

        The bits depend on the precision alone: not on the engine, the instruction set, the number of threads or the
        other rows. `Ensemble.score` has the same default, and so gives the same bits.

        Parameters
        ----------
        X : matrix of documents x features
        precision : {"double", "single"}
            "double": leaf values times weights, summed in float64 from left to right, starting with the base, as
            LightGBM does. "single" is faster: they are rounded to float32, and the sums of each 16
            trees in float32, from left to right, are added up in float64. Models whose values float32 cannot hold are
            summed in double all the same.
        n_threads : int, optional
            1 unless given; None for every CPU.

        Returns
        -------
        float64 array
            One score per row.
        """
        threads = resolve_threads(n_threads)
        if is_plain(X, self.n_features):
            return self.score_plain(X, precision, threads)
        return self.score_blocks(*row_blocks(X, self.n_features, self.feature_names), precision, threads)

    def leaves(self, X: Any, *, n_threads: int | None = 1) -> AnyArray:
        """Number of the leaf, inside its tree, that every row of `X` reaches in every tree: documents x trees."""
        threads = resolve_threads(n_threads)
        return self.leaves_of_blocks(*row_blocks(X, self.n_features, self.feature_names), threads)

    def score_plain(self, X: AnyArray, precision: Precision, threads: int) -> FloatArray:
        """`score` for rows that are `is_plain`."""
        scores = np.empty(len(X), SCORE)
        self._kernel.score(X, scores, self._sums_in_single(precision), threads)
        return scores

    def score_blocks(self, n_rows: int, blocks: Blocks, precision: Precision, threads: int) -> FloatArray:
        """`score` for rows that `row_blocks` gave."""
        single = self._sums_in_single(precision)
        scores = np.empty(n_rows, dtype=SCORE)
        for rows, block in blocks:
            self._kernel.score(block, scores[rows], single, threads)
        return scores

    def leaves_of_blocks(self, n_rows: int, blocks: Blocks, threads: int) -> AnyArray:
        """`leaves` for rows that `row_blocks` gave."""
        leaves = np.empty((n_rows, self.n_trees), dtype=np.min_scalar_type(self.max_leaves - 1))
        for rows, block in blocks:
            self._kernel.leaves(block, leaves[rows], threads)
        return leaves

    def _sums_in_single(self, precision: Precision) -> bool:
        if precision not in ("single", "double"):
            raise RankwoodError(f"precision must be 'single' or 'double', got {precision!r}")
        return precision == "single" and self._fits_single

    def __reduce__(self) -> Any:
        raise TypeError("a prepared model cannot be pickled: send the model, and prepare it where it is used")

    def __repr__(self) -> str:
        return f"PreparedModel({self.engine!r}, {self.n_trees} trees, {self.n_bytes:,} bytes)"


# Engine `reference`: plain traversal. It judges the others.


_TRAVERSALS: Kept[_native.ReferenceTraversal] = Kept()  # of trees, by number of features


class ReferenceKernel:
    """The packed trees, which models that differ in weights share, with one model's weights and base."""

    def __init__(self, model: Ensemble) -> None:
        packed, n_features = _TRAVERSALS.of(model.trees), model.n_features
        if n_features not in packed:
            packed[n_features] = _native.ReferenceTraversal(*model.trees.native(), n_features)
        self._traversal = packed[n_features]
        self._tree_weights, self._base = model.tree_weights, model.base
        self.n_bytes = self._traversal.n_bytes

    def score(self, X: AnyArray, scores: FloatArray, single: bool, n_threads: int) -> None:
        self._traversal.score(X, self._tree_weights, self._base, scores, single, n_threads)

    def leaves(self, X: AnyArray, leaves: AnyArray, n_threads: int) -> None:
        self._traversal.leaves(X, leaves, n_threads)


REFERENCE = Engine("reference", "plain traversal, the judge of the others", Limits(), ReferenceKernel)


# Engine `traverse`: a few documents, or trees with thousands of leaves, walked eight paths side by side.


def _traverse_kernel(model: Ensemble) -> Kernel:
    return _native.Traverse(*model.trees.native(), model.n_features, model.tree_weights, model.base)


TRAVERSE = Engine(
    "traverse",
    "few documents at once, or large trees: paths are walked side by side, without branches",
    Limits(max_nodes=2_000_000_000),
    _traverse_kernel,
)


# Engine `bitslice`: blocks of documents go through a tree together, a byte per document and feature.


def _bitslice_kernel(model: Ensemble) -> Kernel:
    return _native.Bitslice(*model.trees.native(), model.n_features, model.tree_weights, model.base)


BITSLICE = Engine(
    "bitslice",
    "many documents at once: every node is decided for a block of documents, without branches",
    Limits(max_leaves=8192),
    _bitslice_kernel,
)
