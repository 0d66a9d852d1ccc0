"""Engines: ways to score a model that all reach the same leaves and the same sums, at different speeds.

The file goes from what an engine is, over the four there are, to which one `engine="auto"` takes.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

import numpy as np

from rankwood import _native
from rankwood.data.queries import Queries, find_queries
from rankwood.dtypes import NODE, OFFSET, SCORE, WEIGHT, AnyArray, FloatArray, NodeArray, OffsetArray
from rankwood.errors import ModelError, RankwoodError
from rankwood.matrix import is_plain, one_block, row_blocks
from rankwood.system import resolve_threads

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble
    from rankwood.scoring.c_library import IfElseKernel


V = TypeVar("V")
Precision = Literal["single", "double"]
Blocks = Iterable[tuple[slice, AnyArray]]  # where rows stand, and their values: what `row_blocks` gives


class Kept(Generic[V]):
    """A cache of things made from other objects, dropped when those objects die.

    Models are immutable and hold no cache: engines keep here what they made of trees and models. Objects are told apart
    by identity, not by value. Racing threads may both make a thing; the results are identical, so no lock is needed
    (and none can be held across a fork).
    """

    def __init__(self) -> None:
        self._of: dict[int, tuple[weakref.ref[Any], dict[Hashable, V]]] = {}

    def of(self, owner: Any) -> dict[Hashable, V]:
        """The dictionary of things made from `owner`, to read and to fill."""
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


class ExitKernel(Protocol):
    """The native half of a prepared model with early exit; the rows of query q are `order[offsets[q]:offsets[q + 1]]`.

    It fills in the scores and the number of trees that each row went through.
    """

    @property
    def n_bytes(self) -> int: ...

    def score(
        self,
        X: AnyArray,
        offsets: OffsetArray,
        order: AnyArray | None,
        scores: FloatArray,
        trees: NodeArray,
        single: bool,
        n_threads: int,
    ) -> None: ...


@dataclass(frozen=True)
class Limits:
    """The largest model that an engine can score. None means no limit.

    Parameters
    ----------
    max_leaves : int, optional
        Leaves of a tree.
    max_depth : int, optional
        Depth of a tree.
    max_nodes : int, optional
        Inner nodes of all trees together.
    max_sets : int, optional
        Splits on sets, such as categories, of all trees together.
    needs_compiler : bool, default False
        Whether the engine needs a C compiler on this machine.
    """

    max_leaves: int | None = None
    max_depth: int | None = None
    max_nodes: int | None = None
    max_sets: int | None = None
    needs_compiler: bool = False


@dataclass(frozen=True)
class Engine:
    """A way to score models.

    `prepare` makes a model ready, once; the result scores any number of times, from any thread. `get_engine` gives the
    engines there are.

    Parameters
    ----------
    name : str
        What `engine=` takes.
    purpose : str
        One line for people.
    limits : Limits
        The largest model that it can score.
    make_kernel : callable
        Given an `Ensemble`, returns what scores it.
    find_obstacle : callable, optional
        Called without arguments, returns what this machine lacks to run the engine, or None.
    make_exit : callable, optional
        Given an `Ensemble` with early exit and what `make_kernel` made of it, returns what scores it by queries; an
        engine without it has no early exit.

    Examples
    --------
    >>> from rankwood import Ensemble, get_engine
    >>> model = Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    >>> get_engine("reference").prepare(model).score([[0.0], [1.0]])
    array([1., 2.])
    """

    name: str
    purpose: str
    limits: Limits
    make_kernel: Callable[[Ensemble], Kernel]
    find_obstacle: Callable[[], str | None] = lambda: None
    make_exit: Callable[[Ensemble, Any], ExitKernel] | None = None

    def obstacle(self, model: Ensemble) -> str | None:
        """The reason why this engine cannot score a model on this machine, or None when it can.

        Parameters
        ----------
        model : Ensemble
            The model that is to be scored.

        Returns
        -------
        str or None
            A sentence for people.
        """
        if not hasattr(model, "leaf_offsets"):
            raise ModelError(
                f"engines score an Ensemble, such as load_model or ensemble_ give; got {type(model).__name__}"
            )
        limits, n_nodes = self.limits, model.n_nodes
        most_leaves, depth = _most_leaves(model), int(model.trees.depths.max(initial=0))
        if limits.max_leaves is not None and most_leaves > limits.max_leaves:
            return f"a tree has {most_leaves:,} leaves and engine {self.name!r} takes {limits.max_leaves:,}"
        if limits.max_depth is not None and depth > limits.max_depth:
            return f"a tree is {depth:,} deep and engine {self.name!r} takes {limits.max_depth:,}"
        if limits.max_nodes is not None and n_nodes > limits.max_nodes:
            return f"there are {n_nodes:,} inner nodes and engine {self.name!r} takes {limits.max_nodes:,}"
        if limits.max_sets is not None and _n_sets(model) > limits.max_sets:
            return f"there are {_n_sets(model):,} splits on sets and engine {self.name!r} takes {limits.max_sets:,}"
        return self.find_obstacle()

    def prepare(self, model: Ensemble) -> PreparedModel:
        """The model in the form that this engine scores.

        Parameters
        ----------
        model : Ensemble
            May be thrown away afterwards: nothing is kept of it but what the engine made.

        Returns
        -------
        PreparedModel
            Scores any number of times, from any thread.

        Raises
        ------
        ModelError
            The engine cannot score this model here; `obstacle` says why.
        """
        obstacle = self.obstacle(model)
        if obstacle is not None:
            raise ModelError(f"engine {self.name!r} cannot score this model: {obstacle}")
        kernel = self.make_kernel(model)
        exits = None if self.make_exit is None or model.exit is None else self.make_exit(model, kernel)
        return PreparedModel(self.name, model, kernel, exits)


def exit_rule(model: Ensemble) -> tuple[OffsetArray, FloatArray, int]:
    """Checkpoints, margins and top of a model with early exit, as kernels take them."""
    assert model.exit is not None
    checkpoints, margins = model.exit.checkpoints, model.exit.margins
    return np.array(checkpoints, dtype=OFFSET), np.array(margins, dtype=WEIGHT), model.exit.top


def _model_arrays(model: Ensemble) -> tuple[Any, ...]:
    return *model.trees.native(), model.n_features, model.tree_weights, model.base


def _model_and_exit(model: Ensemble) -> tuple[Any, ...]:
    return _model_arrays(model) + exit_rule(model)


class PreparedModel:
    """A model that an engine made ready to score.

    It never changes, holds no lock and no thread, and survives a fork. `Engine.prepare` makes it.

    Parameters
    ----------
    engine : str
        Name of the engine.
    model : Ensemble
        The model that was prepared.
    kernel : Kernel
        What the engine made of it.
    exit_kernel : ExitKernel, optional
        What the engine made of a model with early exit, if it can.

    Attributes
    ----------
    n_features, n_trees, max_leaves : int
        Features and trees of the model, and leaves of its largest tree.
    feature_names : tuple of str or None
        Names of the features, if the model has any.
    """

    __slots__ = (
        "_exit_kernel", "_exits", "_fits_single", "_kernel", "engine", "feature_names", "max_leaves", "n_features",
        "n_trees",
    )  # fmt: skip

    def __init__(self, engine: str, model: Ensemble, kernel: Kernel, exit_kernel: ExitKernel | None = None) -> None:
        self.engine = engine
        self.n_features, self.feature_names = model.n_features, model.feature_names
        self.n_trees, self.max_leaves = model.n_trees, int(np.diff(model.leaf_offsets).max(initial=1))
        self._kernel, self._exit_kernel = kernel, exit_kernel
        self._exits = model.exit is not None
        self._fits_single = model.trees.fit_single(model.tree_weights)

    @property
    def n_bytes(self) -> int:
        """Memory that the prepared model takes, in bytes."""
        return self._kernel.n_bytes + (0 if self._exit_kernel is None else self._exit_kernel.n_bytes)

    @property
    def from_cache(self) -> bool:
        """Whether preparing it took a library that an earlier run had compiled; False in engines that never compile."""
        return bool(getattr(self._kernel, "from_cache", False))

    def score(
        self,
        X: Any,
        *,
        qid: Any = None,
        group: Any = None,
        precision: Precision = "double",
        n_threads: int | None = 1,
    ) -> FloatArray:
        """Score of every row of `X`, in float64.

        The bits depend on the precision alone: not on the engine, the instruction set, the number of threads or the
        other rows (with early exit: those of other queries). `Ensemble.score` has the same default, and so gives the
        same bits.

        Parameters
        ----------
        X : matrix of documents x features
            An array, a data frame, a sparse matrix or nested lists.
        qid, group : array-like, optional
            Queries of the rows, one of the two, as for `Ensemble.score`: a model with early exit uses it then.
        precision : {"double", "single"}, default "double"
            "double": leaf values times weights, summed in float64 from left to right, starting with the base, as
            LightGBM does. "single" is faster: they are rounded to float32, and the sums of each 16
            trees in float32, from left to right, are added up in float64. Models whose values float32 cannot hold are
            summed in double all the same.
        n_threads : int or None, default 1
            None uses every CPU.

        Returns
        -------
        float64 array
            One score per row.
        """
        threads = resolve_threads(n_threads)
        if qid is not None or group is not None:
            rows = one_block(X, self.n_features, self.feature_names)
            return self.score_queries(rows, find_queries(len(rows), qid, group), precision, threads)[0]
        if is_plain(X, self.n_features):
            return self.score_plain(X, precision, threads)
        return self.score_blocks(*row_blocks(X, self.n_features, self.feature_names), precision, threads)

    def leaves(self, X: Any, *, n_threads: int | None = 1) -> AnyArray:
        """Number of the leaf that every row of `X` reaches in every tree.

        Parameters
        ----------
        X : matrix of documents x features
            As for `score`.
        n_threads : int or None, default 1
            None uses every CPU.

        Returns
        -------
        array of documents x trees
            Leaves count from 0 inside each tree; of the smallest unsigned type that holds them.
        """
        threads = resolve_threads(n_threads)
        return self.leaves_of_blocks(*row_blocks(X, self.n_features, self.feature_names), threads)

    def score_plain(self, X: AnyArray, precision: Precision, threads: int) -> FloatArray:
        """Scores of a matrix that needs no conversion: what `score` does once everything is checked.

        Parameters
        ----------
        X : float array
            A matrix for which `rankwood.matrix.is_plain` is true.
        precision : {"double", "single"}
            As for `score`.
        threads : int
            At least 1.
        """
        scores = np.empty(len(X), SCORE)
        single = precision != "double" and self._sums_in_single(precision)  # mostly without a call
        self._kernel.score(X, scores, single, threads)
        return scores

    def score_blocks(self, n_rows: int, blocks: Blocks, precision: Precision, threads: int) -> FloatArray:
        """Scores of rows that come in blocks: what `score` does for data frames and sparse matrices.

        Parameters
        ----------
        n_rows : int
            Rows of all blocks.
        blocks : iterable of (slice, array)
            Where the rows of a block stand, and their values: what `rankwood.matrix.row_blocks` gives.
        precision : {"double", "single"}
            As for `score`.
        threads : int
            At least 1.
        """
        single = self._sums_in_single(precision)
        scores = np.empty(n_rows, dtype=SCORE)
        for rows, block in blocks:
            self._kernel.score(block, scores[rows], single, threads)
        return scores

    def score_queries(
        self, X: AnyArray, queries: Queries, precision: Precision, threads: int
    ) -> tuple[FloatArray, NodeArray]:
        """Scores of the rows of queries, with early exit if the model has it, and the trees that each went through.

        Parameters
        ----------
        X : float array
            What `rankwood.matrix.one_block` gives.
        queries : rankwood.data.queries.Queries
            Queries of the rows.
        precision : {"double", "single"}
            As for `score`.
        threads : int
            At least 1.
        """
        if not self._exits:
            blocks = [(slice(0, len(X)), X)]
            return self.score_blocks(len(X), blocks, precision, threads), np.full(len(X), self.n_trees, NODE)
        if self._exit_kernel is None:
            raise ModelError(
                f"engine {self.engine!r} has no early exit: take another, or score the model without, "
                "model.replace(exit=None)"
            )
        single = self._sums_in_single(precision)
        scores, trees = np.empty(len(X), dtype=SCORE), np.empty(len(X), dtype=NODE)
        self._exit_kernel.score(X, queries.offsets, queries.order, scores, trees, single, threads)
        return scores, trees

    def leaves_of_blocks(self, n_rows: int, blocks: Blocks, threads: int) -> AnyArray:
        """Leaves of rows that come in blocks: what `leaves` does once everything is checked.

        Parameters
        ----------
        n_rows : int
            Rows of all blocks.
        blocks : iterable of (slice, array)
            As for `score_blocks`.
        threads : int
            At least 1.
        """
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


# Engine `reference`: plain traversal. The others are compared with it.


_TRAVERSALS: Kept[_native.ReferenceTraversal] = Kept()  # of trees, by number of features


class ReferenceKernel:
    """Packed trees, shared by models that differ in weights alone, with one model's weights and base."""

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


REFERENCE = Engine(
    "reference",
    "plain traversal, the judge of the others",
    Limits(),
    ReferenceKernel,
    make_exit=lambda model, _: _native.ReferenceExit(*_model_and_exit(model)),
)


# Engine `traverse`: a few documents, or trees with thousands of leaves, walked eight paths side by side.


def _traverse_kernel(model: Ensemble) -> Kernel:
    return _native.Traverse(*_model_arrays(model))


TRAVERSE = Engine(
    "traverse",
    "few documents at once, or large trees: paths are walked side by side, without branches",
    Limits(max_nodes=2_000_000_000),
    _traverse_kernel,
    make_exit=lambda model, kernel: _native.TraverseExit(kernel, *exit_rule(model)),
)


# Engine `bitslice`: blocks of documents go through a tree together, a byte per document and feature. The picture is in
# native/score/bitslice.hpp.


MAX_BITSLICE_SETS = 50_000  # of 65,536 columns of codes


def _bitslice_kernel(model: Ensemble) -> Kernel:
    return _native.Bitslice(*_model_arrays(model))


BITSLICE = Engine(
    "bitslice",
    "many documents at once: every node is decided for a block of documents, without branches",
    Limits(max_leaves=_native.MAX_BITSLICE_LEAVES, max_sets=MAX_BITSLICE_SETS),
    _bitslice_kernel,
    make_exit=lambda model, kernel: _native.BitsliceExit(kernel, *exit_rule(model)),
)


# Engine `ifelse`: the model as nested if-else in C, compiled by the system's compiler into a cached library. This is
# how Asadi and Lin (ECIR 2013, section 3) run their ensembles: the whole model is machine code.


MAX_COMPILED_NODES = 1_000_000  # a compiler takes about five minutes for so many on one CPU


def ifelse_kernel(model: Ensemble, optimise: str | None = None, *, alone: bool = False) -> IfElseKernel:
    """The model written as C and compiled, or the library that an earlier run compiled.

    Parameters
    ----------
    model : Ensemble
        The model to compile.
    optimise : str, optional
        Level of optimisation, like "-O2".
    alone : bool, default False
        Whether rows are scored one after the other, each by itself.
    """
    from rankwood.scoring.c_library import OPTIMISE, IfElseKernel  # here, as few models are compiled
    from rankwood.scoring.c_source import CSource

    def write_source(name: str, info: str) -> dict[str, str]:
        return CSource(model, name, info).units()

    return IfElseKernel(model, write_source, optimise or OPTIMISE, n_jobs=resolve_threads(None), alone=alone)


def _no_compiler() -> str | None:
    """A sentence on why models cannot be compiled here, and which engines need no compiler; None when they can."""
    from rankwood.scoring.c_library import Compiler, find_compiler

    compiler = find_compiler()
    if isinstance(compiler, Compiler):
        return None
    others = [repr(engine.name) for engine in ENGINES.values() if not engine.limits.needs_compiler]
    return f"{compiler}; {', '.join(others)} {'needs' if len(others) == 1 else 'need'} none"


IFELSE = Engine(
    "ifelse",
    "nested if-else in C, compiled once and cached",
    Limits(needs_compiler=True, max_nodes=MAX_COMPILED_NODES),
    ifelse_kernel,
    _no_compiler,
)
# For the stopwatch, and not among ENGINES: what Asadi and Lin call latency, the time from when one feature vector is
# given to when its score is known. `IFELSE` lets a row begin before the score of the one before it is there.
IFELSE_ALONE = Engine(
    "ifelse-alone",
    "nested if-else in C, one document after the other: to time a single one",
    IFELSE.limits,
    partial(ifelse_kernel, alone=True),
    _no_compiler,
)


# Which of them there are, which can score a model, and which one `engine="auto"` takes.


ENGINES: dict[str, Engine] = {engine.name: engine for engine in (REFERENCE, BITSLICE, TRAVERSE, IFELSE)}


def get_engine(name: str) -> Engine:
    """The engine of a name.

    Parameters
    ----------
    name : str
        "reference", "bitslice", "traverse" or "ifelse".

    Returns
    -------
    Engine
        Its `prepare` makes a model ready to score.

    Raises
    ------
    RankwoodError
        There is no such engine.

    Examples
    --------
    >>> get_engine("reference").limits.max_leaves is None
    True
    """
    if name == "auto":
        raise RankwoodError(f"'auto' is a choice of model.score, not an engine: name one of {', '.join(ENGINES)}")
    if name not in ENGINES:
        raise RankwoodError(f"there is no engine {name!r}; choose one of: auto, {', '.join(ENGINES)}")
    return ENGINES[name]


def available_engines(model: Ensemble) -> list[str]:
    """Names of the engines that can score a model on this machine.

    Parameters
    ----------
    model : Ensemble
        The model that is to be scored.

    Returns
    -------
    list of str
        "reference" is always among them.

    Examples
    --------
    >>> from rankwood import Ensemble
    >>> "reference" in available_engines(Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]))
    True
    """
    return [name for name, engine in ENGINES.items() if engine.obstacle(model) is None]


_SMALLEST: Kept[float] = Kept()  # of trees: the smallest batch for which bitslice is taken
SMALL_BATCH = 100  # rows; for so few a call takes microseconds, and the choice of an engine is remembered
_PREPARED: Kept[PreparedModel] = Kept()  # of models, by name of the engine, or by the size of a batch that it is for


def choose_engine(model: Ensemble, n_rows: int) -> str:
    """Name of the engine that `engine="auto"` takes for a batch of `n_rows` documents: the choice of librankwood."""
    kept = _SMALLEST.of(model.trees)
    smallest = kept.get("batch")
    if smallest is None:
        smallest = kept["batch"] = _smallest_bitslice_batch(model)
    return "bitslice" if n_rows >= smallest else "traverse"


def prepared(model: Ensemble, engine: str, n_rows: int) -> PreparedModel:
    """The model, ready to score `n_rows` rows with an engine or with "auto"; prepared once for as long as it lives."""
    kept = _PREPARED.of(model)
    found = kept.get(n_rows if engine == "auto" else engine)
    if found is None:
        name = choose_engine(model, n_rows) if engine == "auto" else engine
        found = kept.get(name)
        if found is None:
            found = kept[name] = get_engine(name).prepare(model)
        if engine == "auto" and n_rows <= SMALL_BATCH:
            kept[n_rows] = found
    return found


def _smallest_bitslice_batch(model: Ensemble) -> float:
    if _n_sets(model) > MAX_BITSLICE_SETS:
        return math.inf
    smallest = _native.smallest_bitslice_batch(model.n_trees, model.n_leaves, _most_leaves(model))
    return math.inf if smallest is None else smallest


def _n_sets(model: Ensemble) -> int:
    return 0 if model.set_offsets is None else int(np.count_nonzero(np.diff(model.set_offsets)))


def _most_leaves(model: Ensemble) -> int:
    return int(np.diff(model.leaf_offsets).max(initial=0))
