"""The model object: an additive ensemble of regression trees that never changes."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.coding import Coding
from rankwood.data.queries import find_queries
from rankwood.display import Column, Share, as_html
from rankwood.dtypes import WEIGHT, AnyArray, FloatArray, IndexArray, NodeArray, OffsetArray
from rankwood.errors import DataError, ModelError, listed, one_line
from rankwood.matrix import is_plain, one_block, row_blocks
from rankwood.model.constraints import NOTE as CONSTRAINTS
from rankwood.model.early_exit import EarlyExit
from rankwood.model.file import read_model, save_model
from rankwood.model.topology import Topology, describe
from rankwood.model.trees import COLUMNS, MAX_FEATURES, NEEDED, OPTIONAL, SETS, Tree, Trees, as_entries, as_tree_numbers
from rankwood.scoring.partitions import is_lazy, lazy_scores
from rankwood.system import resolve_threads

if TYPE_CHECKING:
    from rankwood.scoring.engines import Precision, PreparedModel


class Ensemble:
    """An additive ensemble of regression trees, each with a weight: the model that everything here returns and takes.

    The score of a document is `base + weight[0] * value of the leaf reached in tree 0 + ...`, summed in float64 from
    left to right. A document goes left when `x <= threshold`, compared exactly whether x is float32 or float64. A
    missing value (NaN) goes left where `missing_left` says so. A split on a set, such as categories, has further
    thresholds: a document goes left when an even number of them all lies below its value.

    Trees stand one after another: tree t owns the inner nodes from `node_offsets[t]` to `node_offsets[t + 1]`, and one
    leaf more than it has inner nodes. Its root is its node 0; without inner nodes it is its only leaf.
    `Ensemble.from_trees` is the easier way to build a model.

    Parameters
    ----------
    feature : array-like of int
        Number of the feature that each inner node looks at.
    threshold : array-like of float
        What the feature is compared with; may be infinite, not NaN.
    left, right : array-like of int
        Children, numbered inside the tree: c >= 0 is inner node c, c < 0 is leaf ~c.
    missing_left : array-like of bool
        Whether a missing value goes left.
    leaf_value : array-like of float
        Value of each leaf, tree after tree.
    node_offsets : array-like of int
        Where the inner nodes of each tree start, and their number at the end.
    tree_weights : array-like of float
        Weight of each tree.
    n_features : int
        Number of columns that X must have.
    base : float, default 0.0
        Score of a document before any tree.
    feature_names : sequence of str, optional
        One name per feature.
    metadata : dict, optional
        Notes that JSON can hold: learner, parameters, seed.
    split_gain : array-like of float, optional
        Gain of each split in training.
    node_count : array-like of int, optional
        Documents that met each inner node in training.
    leaf_cover : array-like of float, optional
        Documents that reached each leaf in training, or their weight; explanations (SHAP) build on it.
    set_offsets : array-like of int, optional
        Where the further thresholds of each inner node start in `set_thresholds`, and their number at the end.
    set_thresholds : array-like of float, optional
        Further thresholds of splits on sets; those of a node rise, above its `threshold`.
    exit : EarlyExit, optional
        Where documents far behind the best of their query stop before the last tree; `rankwood.early_exit` learns it.
        Only scores that are asked for with queries (`qid` or `group`) depend on it. A model with other trees, weights
        or base (`select`, `reweigh`, `concat`, pruning) is without, as the margins were learnt on these.

    Attributes
    ----------
    trees : rankwood.model.trees.Trees
        The arrays of all trees.
    feature, threshold, left, right, missing_left, leaf_value, node_offsets, tree_weights : array
        Trees and their weights, as given.
    n_features, base, feature_names, metadata
        As given; `feature_names` is a tuple or None, `metadata` a new dict at every access.
    split_gain, node_count, leaf_cover : array or None
        What training noted, as given.
    set_offsets, set_thresholds : array or None
        Further thresholds of splits on sets, as given; None where there are none.
    exit : EarlyExit or None
        As given.
    n_trees, n_nodes, n_leaves : int
        Numbers of trees, inner nodes and leaves.
    leaf_offsets : array of int
        Where the leaves of each tree start, and their number at the end.

    Raises
    ------
    ModelError
        The arrays are not trees.

    Notes
    -----
    Arrays are copied and read-only; a change is a new model. Models are equal when they score alike bit for bit: same
    trees, weights, base, number of features and early exit. Names, metadata, gains, counts and covers are not compared.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0)), (1, 0.0, 10.0, 20.0)], base=100.0)
    >>> model.score([[0.5, 9.0], [0.6, -1.0]])
    array([121., 112.])
    >>> model.leaves([[0.5, 9.0], [0.6, -1.0]])
    array([[0, 1],
           [1, 0]], dtype=uint8)
    """

    trees: Trees
    tree_weights: FloatArray
    n_features: int
    base: float
    feature_names: tuple[str, ...] | None
    exit: EarlyExit | None
    _metadata: str  # as JSON, so that nobody can change it

    def __init__(
        self,
        *,
        feature: Any,
        threshold: Any,
        left: Any,
        right: Any,
        missing_left: Any,
        leaf_value: Any,
        node_offsets: Any,
        tree_weights: Any,
        n_features: int,
        base: float = 0.0,
        feature_names: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        split_gain: Any = None,
        node_count: Any = None,
        leaf_cover: Any = None,
        set_offsets: Any = None,
        set_thresholds: Any = None,
        exit: EarlyExit | None = None,
    ) -> None:
        columns = {"feature": feature, "threshold": threshold, "left": left, "right": right, "leaf_value": leaf_value,
                   "missing_left": missing_left, "split_gain": split_gain, "node_count": node_count,
                   "leaf_cover": leaf_cover, "set_offsets": set_offsets,
                   "set_thresholds": set_thresholds}  # fmt: skip
        trees = Trees.from_columns(columns, node_offsets)
        self._set(
            tree_weights=as_entries(tree_weights, WEIGHT, "tree_weights"),
            n_features=as_feature_count(n_features),
            base=as_float(base, "base"),
            feature_names=None if feature_names is None else as_names(feature_names, n_features),
            exit=exit,
            _metadata=to_json({} if metadata is None else metadata),
        )
        self._set(trees=trees.checked(self.n_features))
        self._check_sums()
        if exit is not None:
            if not isinstance(exit, EarlyExit):
                raise ModelError(f"exit must be an EarlyExit or None, got {type(exit).__name__}")
            exit.check(self)

    @classmethod
    def from_trees(
        cls,
        trees: Iterable[Any],
        *,
        tree_weights: Any = None,
        n_features: int | None = None,
        base: float = 0.0,
        feature_names: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Ensemble:
        """A model of single trees.

        Parameters
        ----------
        trees : iterable of Tree or nested tuple
            Tuples are `(feature, threshold, left, right[, missing_left])` with numbers for leaves, and with a list of
            thresholds for a split on a set: see `Tree.from_nested`.
        tree_weights : array-like of float, optional
            Weight of each tree; 1 unless given.
        n_features : int, optional
            Number of columns that X must have; as many as are named, or as the trees look at, unless given.
        base : float, default 0.0
            Score of a document before any tree.
        feature_names : sequence of str, optional
            One name per feature.
        metadata : dict, optional
            Notes that JSON can hold.

        Returns
        -------
        Ensemble
            Gains, counts and covers are kept when every tree has them.
        """
        joined = Trees.from_trees([tree if isinstance(tree, Tree) else Tree.from_nested(tree) for tree in trees])
        if n_features is None:
            n_features = int(joined.feature.max(initial=-1)) + 1 if feature_names is None else len(feature_names)
        return cls.of(
            joined,
            tree_weights=tree_weights,
            n_features=n_features,
            base=base,
            feature_names=feature_names,
            metadata=metadata,
        )

    @classmethod
    def of(
        cls,
        trees: Trees,
        *,
        n_features: int,
        tree_weights: Any = None,
        base: float = 0.0,
        feature_names: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Ensemble:
        """A model of trees that are flat arrays already.

        Parameters
        ----------
        trees : rankwood.model.trees.Trees
            They are checked.
        n_features : int
            Number of columns that X must have.
        tree_weights : array-like of float, optional
            Weight of each tree; 1 unless given.
        base : float, default 0.0
            Score of a document before any tree.
        feature_names : sequence of str, optional
            One name per feature.
        metadata : dict, optional
            Notes that JSON can hold.
        """
        return cls(
            **{name: getattr(trees, name) for name in (*COLUMNS, *SETS, "node_offsets")},
            tree_weights=np.ones(trees.n_trees) if tree_weights is None else tree_weights,
            n_features=n_features,
            base=base,
            feature_names=feature_names,
            metadata=metadata,
        )

    @property
    def feature(self) -> NodeArray:
        """Number of the feature that each inner node looks at."""
        return self.trees.feature

    @property
    def threshold(self) -> FloatArray:
        """Threshold of each inner node: a document goes left when `x <= threshold`."""
        return self.trees.threshold

    @property
    def left(self) -> NodeArray:
        """Left child of each inner node, numbered inside its tree: c >= 0 is inner node c, c < 0 is leaf ~c."""
        return self.trees.left

    @property
    def right(self) -> NodeArray:
        """Right child of each inner node, numbered as `left`."""
        return self.trees.right

    @property
    def missing_left(self) -> NDArray[np.bool_]:
        """Whether a missing value (NaN) goes left, for each inner node."""
        return self.trees.missing_left

    @property
    def leaf_value(self) -> FloatArray:
        """Value of each leaf, tree after tree."""
        return self.trees.leaf_value

    @property
    def node_offsets(self) -> OffsetArray:
        """Where the inner nodes of each tree start, and their number at the end."""
        return self.trees.node_offsets

    @property
    def split_gain(self) -> FloatArray | None:
        """Gain of each split in training, or None when it is not known."""
        return self.trees.split_gain

    @property
    def node_count(self) -> IndexArray | None:
        """Documents that met each inner node in training, or None when that is not known."""
        return self.trees.node_count

    @property
    def leaf_cover(self) -> FloatArray | None:
        """Documents (or their weight) that reached each leaf in training, or None when that is not known."""
        return self.trees.leaf_cover

    @property
    def set_offsets(self) -> OffsetArray | None:
        """Where the further thresholds of each inner node start, or None when no node splits on a set."""
        return self.trees.set_offsets

    @property
    def set_thresholds(self) -> FloatArray | None:
        """Further thresholds of splits on sets, or None when there are none."""
        return self.trees.set_thresholds

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_weights)

    @property
    def n_nodes(self) -> int:
        """Number of inner nodes of all trees."""
        return self.trees.n_nodes

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return self.trees.n_leaves

    @property
    def leaf_offsets(self) -> OffsetArray:
        """Where the leaves of each tree start: a tree has one leaf more than inner nodes."""
        return self.trees.leaf_offsets

    @property
    def metadata(self) -> dict[str, Any]:
        """A copy of the notes about the model; `with_metadata` adds to them."""
        metadata: dict[str, Any] = json.loads(self._metadata)
        return metadata

    @property
    def coding(self) -> Coding | None:
        """How texts of categories become the numbers that the model compares; None when it is not known.

        DataFrames are scored with it; readers of files take it as `coding`.
        """
        if '"categories"' not in self._metadata:  # notes may be long
            return None
        return Coding.noted(self.metadata.get("categories"), self.feature_names)

    def tree(self, number: int) -> Tree:
        """One tree by itself, without its weight.

        Parameters
        ----------
        number : int
            Counted from 0, or from the end when negative.
        """
        if not -self.n_trees <= number < self.n_trees:
            raise ModelError(f"there is no tree {number}: the model has {self.n_trees}")
        return self.trees.tree(number % self.n_trees)

    def score(
        self,
        X: Any,
        *,
        qid: Any = None,
        group: Any = None,
        engine: str = "auto",
        precision: Precision = "double",
        n_threads: int | None = 1,
    ) -> FloatArray:
        """Score of every row of `X`, in float64.

        The bits depend neither on the engine nor on the number of threads, the memory order of `X` or the other rows;
        with early exit on the other rows of the query.

        Parameters
        ----------
        X : matrix of documents x features
            An array, a DataFrame, a sparse matrix or nested lists. A Dask DataFrame or array gives a Dask Series or
            array, as lazy and with the same partitions; columns of ids, labels and weights are no features there.
        qid : array-like, optional
            Id of the query of every row, in any order: a model with early exit (`exit`) uses it then. Without queries
            every row is scored by itself, through all trees.
        group : array-like of int, optional
            Sizes of consecutive queries, instead of `qid`.
        engine : str, default "auto"
            A name of `rankwood.available_engines`; "auto" takes the engine that is fastest for so many rows.
        precision : {"double", "single"}, default "double"
            Sums are in double precision, as LightGBM's are; "single" sums in float32, which is faster.
            `PreparedModel.score` says how.
        n_threads : int or None, default 1
            None uses every CPU.

        Returns
        -------
        float64 array
            One score per row.
        """
        threads = resolve_threads(n_threads)
        if qid is None and group is None and is_plain(X, self.n_features):
            return self._prepare(engine, len(X)).score_plain(X, precision, threads)
        if is_lazy(X):
            if qid is not None or group is not None:
                raise DataError("partitions may cut queries in two: score a Dask collection without qid and group")
            lazy: FloatArray = lazy_scores(self, X, engine=engine, precision=precision, n_threads=n_threads)
            return lazy
        if qid is not None or group is not None:
            return self._score_queries(X, qid, group, engine, precision, threads)[0]
        n_rows, blocks = row_blocks(X, self.n_features, self.feature_names, coding=lambda: self.coding)
        return self._prepare(engine, n_rows).score_blocks(n_rows, blocks, precision, threads)

    def trees_evaluated(
        self,
        X: Any,
        *,
        qid: Any = None,
        group: Any = None,
        engine: str = "auto",
        precision: Precision = "double",
        n_threads: int | None = 1,
    ) -> NodeArray:
        """Number of trees that every row of `X` goes through when it is scored with early exit.

        Parameters
        ----------
        X : matrix of documents x features
            As for `score`.
        qid, group
            Queries of the rows, one of the two, as for `score`.
        engine, precision, n_threads
            As for `score`.

        Returns
        -------
        int32 array
            A checkpoint for documents that stop there, the number of all trees for the others.
        """
        return self._score_queries(X, qid, group, engine, precision, resolve_threads(n_threads))[1]

    def leaves(self, X: Any, *, engine: str = "auto", n_threads: int | None = None) -> AnyArray:
        """Number of the leaf that every row of `X` reaches in every tree.

        Parameters
        ----------
        X : matrix of documents x features
            An array, a DataFrame, a sparse matrix or nested lists.
        engine : str, default "auto"
            A name of `rankwood.available_engines`.
        n_threads : int, optional
            Every CPU is used unless given.

        Returns
        -------
        array of documents x trees
            Leaves count from 0 inside each tree. In uint8 when no tree has more than 256 leaves, else in uint16 up to
            65,536, else in uint32.
        """
        threads = resolve_threads(n_threads)
        n_rows, blocks = row_blocks(X, self.n_features, self.feature_names, coding=lambda: self.coding)
        return self._prepare(engine, n_rows).leaves_of_blocks(n_rows, blocks, threads)

    def select(self, trees: Any) -> Ensemble:
        """The model of some of the trees, in the order given; the base stays.

        Parameters
        ----------
        trees : array-like of int or bool
            Numbers of trees, or a mask.
        """
        chosen = as_tree_numbers(trees, self.n_trees)
        return self._with(trees=self.trees.select(chosen), tree_weights=self.tree_weights[chosen], exit=None)

    def reweigh(self, weights: Any) -> Ensemble:
        """The same trees with other weights.

        This costs little: both models share the trees.

        Parameters
        ----------
        weights : array-like of float
            One per tree.
        """
        array = as_entries(weights, WEIGHT, "weights")
        if len(array) != self.n_trees:
            raise ModelError(f"weights must have one entry per tree ({self.n_trees}), got {len(array)}")
        return self._with(tree_weights=array, exit=None)

    def concat(self, *others: Ensemble) -> Ensemble:
        """The trees of this model and then those of others; bases add up.

        Parameters
        ----------
        *others : Ensemble
            Names of features must agree where models have them.

        Returns
        -------
        Ensemble
            It takes as many features as the widest of the models, and has this model's metadata, but for constraints
            that the others do not have. Gains, counts and covers are kept when every model has them.
        """
        for other in others:
            if not isinstance(other, Ensemble):
                raise ModelError(f"a model can be joined with other models (Ensemble) only, got {type(other).__name__}")
        models = (self, *others)
        n_features = max(model.n_features for model in models)
        names = {model.feature_names for model in models if model.feature_names is not None}
        if len(names) > 1:
            raise ModelError("the models name their features differently, so they do not look at the same data")
        feature_names = names.pop() if names else None
        notes = self.metadata
        if CONSTRAINTS in notes and any(other.metadata.get(CONSTRAINTS) != notes[CONSTRAINTS] for other in others):
            del notes[CONSTRAINTS]
        return self._with(
            trees=Trees.join([model.trees for model in models]),
            tree_weights=np.concatenate([model.tree_weights for model in models]),
            n_features=n_features,
            base=sum(model.base for model in models),
            feature_names=None if feature_names is None or len(feature_names) != n_features else feature_names,
            exit=None,
            _metadata=to_json(notes),
        )

    def rename_features(self, names: Mapping[str, str]) -> Ensemble:
        """The same model with other names for some of its features.

        Parameters
        ----------
        names : mapping of str to str
            New name of each feature that gets one, by its old name.

        Examples
        --------
        >>> import rankwood as rw
        >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], feature_names=["query_length"])
        >>> model.rename_features({"query_length": "query length"}).feature_names
        ('query length',)
        """
        if not names:
            return self
        own = self.feature_names or ()
        unknown = next((name for name in names if name not in own), None)
        if unknown is not None:
            known = listed(own) if own else "none, only numbers"
            raise ModelError(f"the model has no feature {one_line(unknown)!r} to rename; its names are: {known}")
        return self._with(feature_names=as_names([names.get(name, name) for name in own], self.n_features))

    def with_metadata(self, **entries: Any) -> Ensemble:
        """The same model with some entries of its metadata added or replaced.

        Parameters
        ----------
        **entries
            What JSON can hold.
        """
        return self._with(_metadata=to_json(self.metadata | entries))

    def replace(self, **changes: Any) -> Ensemble:
        """The model with some arguments of `Ensemble(...)` replaced, checked like any new one.

        Parameters
        ----------
        **changes
            Arguments of `Ensemble(...)`. With other trees, weights or base, early exit goes unless it is given.
        """
        arguments = {name: getattr(self, name) for name in ARGUMENTS}
        if changes.keys() & {*SCORING_ARRAYS, *SETS, "base"}:
            arguments["exit"] = None
        return Ensemble(**arguments | changes)

    def topology(self) -> Topology:
        """Size and shape of the trees, and which features they use.

        Returns
        -------
        rankwood.model.topology.Topology
            Depths, numbers of nodes and leaves, splits and gain per feature.
        """
        return describe(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, whole or not at all.

        Parameters
        ----------
        path : path-like
            The file: safetensors, which is arrays and a JSON header, no code.
        """
        save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ensemble:
        """The model in a file that `save` wrote; `rankwood.load_model` also reads other formats.

        Parameters
        ----------
        path : path-like
            The file.

        Raises
        ------
        ModelError
            The file is no such file, or is damaged.
        """
        return read_model(path, cls)

    def save_pretrained(
        self,
        folder: str | os.PathLike[str],
        *,
        evaluation: Mapping[str, float] | None = None,
        data_name: str = "unnamed data",
        license: str | None = None,
    ) -> None:
        """Write the model to a folder as the Hugging Face Hub has it: `model.safetensors` and a card, `README.md`.

        Parameters
        ----------
        folder : path-like
            The folder, which is made; files of these names are replaced.
        evaluation : Evaluation or mapping from str to float, optional
            Measures for the card: what `rankwood.evaluate` gives.
        data_name : str, default "unnamed data"
            What the model was measured on.
        license : str, optional
            Licence of the model, as the Hub names it, such as "apache-2.0".
        """
        about = {"evaluation": evaluation, "data_name": data_name, "license": license}
        _hub().save_folder(self, folder, os.path.basename(os.path.abspath(folder)), **about)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        evaluation: Mapping[str, float] | None = None,
        data_name: str = "unnamed data",
        license: str | None = None,
        private: bool | None = None,
        token: str | None = None,
        message: str | None = None,
    ) -> str:
        """Upload the model and its card to the Hugging Face Hub (`pip install huggingface_hub`).

        Parameters
        ----------
        repo_id : str
            The repository, `OWNER/NAME`. It is made unless it is there, and gets a commit.
        evaluation, data_name, license
            For the card, as in `save_pretrained`.
        private : bool, optional
            Whether a repository that is made is private; as the owner's settings say unless given.
        token : str, optional
            The one of `hf auth login` unless given.
        message : str, optional
            Message of the commit; the size of the model unless given.

        Returns
        -------
        str
            Address of the commit.
        """
        about = {"evaluation": evaluation, "data_name": data_name, "license": license}
        address: str = _hub().push(self, repo_id, private=private, token=token, message=message, **about)
        return address

    @classmethod
    def from_pretrained(
        cls, repo_or_folder: str | os.PathLike[str], *, revision: str | None = None, token: str | None = None
    ) -> Ensemble:
        """The model in a folder that `save_pretrained` wrote, or in a repository of the Hugging Face Hub.

        Parameters
        ----------
        repo_or_folder : path-like
            A folder, or `OWNER/NAME`; a folder that exists is taken.
        revision : str, optional
            Branch, tag or commit of a repository; the newest unless given.
        token : str, optional
            For a private repository; the one of `hf auth login` unless given.
        """
        return cls.load(_hub().fetch(repo_or_folder, revision=revision, token=token))

    def fingerprint(self) -> str:
        """SHA-256 of what scores depend on: trees, weights, base, number of features and early exit."""
        digest = hashlib.sha256(f"rankwood {self.n_features} {self.base.hex()}".encode())
        for name in SCORING_ARRAYS if self.set_thresholds is None else (*SCORING_ARRAYS, *SETS):
            array = getattr(self, name)
            digest.update(f"{name} {len(array)}".encode())
            digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False))
        if self.exit is not None:
            digest.update(f"exit {json.dumps(self.exit.as_dict(), sort_keys=True)}".encode())
        return digest.hexdigest()

    def __len__(self) -> int:
        return self.n_trees

    def __bool__(self) -> bool:
        return True  # a model without trees is a model

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ensemble):
            return NotImplemented
        return self is other or self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        return int(self.fingerprint()[:15], 16)

    def __repr__(self) -> str:
        stops = "" if self.exit is None else f", exit after {', '.join(map(str, self.exit.checkpoints)) or 'no'} trees"
        return f"Ensemble({self.n_trees} trees, {self.n_leaves} leaves, {self.n_features} features{stops})"

    def _repr_html_(self) -> str:
        """What notebooks show: the size, who made it, and the features that its splits look at most."""
        return as_html("Ensemble", _facts(self), _features(self))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an Ensemble does not change; {name} is set by making a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("an Ensemble does not change")

    def __copy__(self) -> Ensemble:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ensemble:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, ({name: getattr(self, name) for name in ARGUMENTS},)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _with(self, **changes: Any) -> Ensemble:
        """A copy with changes that keep the trees valid."""
        for value in changes.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        model = object.__new__(Ensemble)
        model._set(**(vars(self) | changes))
        model._check_sums()
        return model

    def _check_sums(self) -> None:
        try:
            _native.check_sums(self.leaf_value, self.node_offsets, self.tree_weights, self.base)
        except ValueError as error:
            raise ModelError(str(error)) from None

    def _score_queries(
        self, X: Any, qid: Any, group: Any, engine: str, precision: Precision, threads: int
    ) -> tuple[FloatArray, NodeArray]:
        """Scores, and trees evaluated, of the rows of queries."""
        rows = one_block(X, self.n_features, self.feature_names, coding=lambda: self.coding)
        queries = find_queries(len(rows), qid, group)
        return self._prepare(engine, len(rows)).score_queries(rows, queries, precision, threads)

    def _prepare(self, engine: str, n_rows: int) -> PreparedModel:
        prepared: PreparedModel = _engines().prepared(self, engine, n_rows)
        return prepared


def _facts(model: Ensemble) -> list[str]:
    """Sentences about a model: its size, and how it came about."""
    used = len(np.unique(model.feature))
    facts = [f"{model.n_trees:,} trees, {model.n_leaves:,} leaves, {used:,} of {model.n_features:,} features in use"]
    if model.exit is not None:
        facts.append(f"early exit after {', '.join(map(str, model.exit.checkpoints)) or 'no'} trees")
    learner = model.metadata.get("learner")
    if isinstance(learner, str):
        facts.append(f"trained by {learner}")
    return facts


def _features(model: Ensemble, most: int = 10) -> list[Column]:
    """Columns of the features that matter most: by gain where it is known, else by splits."""
    if not model.n_nodes:
        return []
    splits = np.bincount(model.feature, minlength=model.n_features)
    gain = None if model.split_gain is None else np.bincount(model.feature, model.split_gain, model.n_features)
    weight = splits if gain is None or not gain.sum() > 0 else gain
    first = [number for number in np.argsort(-weight, kind="stable")[:most].tolist() if splits[number]]
    names = [str(number) if model.feature_names is None else model.feature_names[number] for number in first]
    shares = [Share(float(weight[number] / weight.sum())) for number in first]
    return [
        Column("feature", "", names),
        Column("splits", ",", [int(splits[number]) for number in first]),
        Column("share of splits" if weight is splits else "share of gain", ".1%", shares),
    ]


@cache
def _engines() -> Any:
    """The engines, imported when something is first scored; an import statement on every call would cost more."""
    from rankwood.scoring import engines

    return engines


def _hub() -> Any:
    """What knows the Hugging Face Hub, which few models see."""
    from rankwood.integrations import huggingface

    return huggingface


def as_feature_count(n_features: Any) -> int:
    """The number of features as int, or a ModelError when no model can have so many."""
    if isinstance(n_features, (bool, np.bool_)) or not isinstance(n_features, (int, np.integer)):
        raise ModelError(f"n_features must be a whole number, got {one_line(repr(n_features))}")
    if not 0 <= n_features <= MAX_FEATURES:
        raise ModelError(f"n_features must lie between 0 and {MAX_FEATURES}, got {one_line(n_features)}")
    return int(n_features)


def as_float(value: Any, name: str) -> float:
    """The value as float, or a ModelError when it is no number; whether it is finite is checked with the sums."""
    try:
        if isinstance(value, (str, bytes)):  # float() would read it
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{name} must be a finite number, got {one_line(repr(value))}") from None


def as_names(names: Sequence[str], n_features: int) -> tuple[str, ...]:
    """The names as a tuple, or a ModelError unless there is one per feature and none twice."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ModelError("feature_names must be strings, one per feature")
    if len(names) != n_features:
        raise ModelError(f"feature_names must have one name per feature ({n_features}), got {len(names)}")
    if len(set(names)) != len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise ModelError(f"two features have the name {one_line(twice)!r}")
    return tuple(str(name) for name in names)


def to_json(metadata: Any) -> str:
    """Metadata as JSON text; numpy's numbers become plain ones."""
    if not isinstance(metadata, dict):
        raise ModelError(f"metadata must be a dict, got {type(metadata).__name__}")
    try:
        return json.dumps(metadata, sort_keys=True, allow_nan=False, default=_plain_number)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelError(f"metadata must be what JSON can hold: {error}") from None


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


SCORING_ARRAYS = (*NEEDED, "node_offsets", "tree_weights")
ARGUMENTS = (*SCORING_ARRAYS, "n_features", "base", "feature_names", "metadata", *OPTIONAL, *SETS, "exit")


def _rebuild(arguments: dict[str, Any]) -> Ensemble:
    return Ensemble(**arguments)
