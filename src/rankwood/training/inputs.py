"""The data that `fit`, `predict` and `score` are given, in any of its forms, as data sets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from rankwood.coding import MAX_CATEGORIES, Coding
from rankwood.data.bins import BinnedDataset
from rankwood.data.categories import categories_in, categories_of_part, coding_of
from rankwood.data.dataset import Dataset
from rankwood.data.files import open_data
from rankwood.data.parts import arrow_part, as_dataset, file_parts
from rankwood.data.queries import find_queries
from rankwood.data.share import Share
from rankwood.data.tables import ArrowSource
from rankwood.data.text import as_paths, file_kind, kind_of_all
from rankwood.dtypes import FEATURE, FeatureMatrix, FloatArray
from rankwood.errors import DataError, RankwoodError
from rankwood.exact import exact_sum
from rankwood.group import ALONE, Group
from rankwood.matrix import (
    NO_FEATURES,
    collected,
    column_kinds,
    column_names,
    column_order,
    drop_column,
    refuse_text,
    with_codes,
)
from rankwood.model.ensemble import Ensemble
from rankwood.system import resolve_threads
from rankwood.training.constraints import numbers_of

# Infinite values are ordered like others, NaN is a missing value; float64 is kept for scoring.
ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": [FEATURE, np.float64], "ensure_all_finite": False}


@dataclass(frozen=True)
class Rows:
    """Features and labels with queries and weights, as `fit` and `score` are given them."""

    X: Any
    y: Any = None
    qid: Any = None
    group: Any = None
    sample_weight: Any = None
    query_weight: Any = None
    position: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", as_columns(collected(self.X)))

    def opened(self, *, alone: bool, n_threads: int) -> Rows:
        """The rows as a data set whose features stay where they are, when they come in files or as an Arrow table.

        Parameters
        ----------
        alone : bool
            Whether every row is a query of its own when a table has no queries.
        n_threads : int
            Threads that read.
        """
        if is_paths(self.X):
            return replace(self, X=open_data(self.X, n_threads=n_threads))
        if self.is_dataset or self.y is not None or not hasattr(self.X, "__arrow_c_stream__"):
            return self
        part = arrow_part(self.X)
        data = as_dataset([part], len(part.features), part.features)
        if self.qid is not None or self.group is not None:
            data = data.replace(queries=find_queries(data.n_docs, self.qid, self.group))
        elif "qid" not in part.roles:
            if not alone:
                raise DataError("queries are missing: the table has no column qid, and neither qid nor group is given")
            data = data.replace(queries=find_queries(data.n_docs, group=np.ones(data.n_docs, dtype=np.int64)))
        beside = {"weights": self.sample_weight, "query_weights": self.query_weight, "position": self.position}
        return Rows(data.replace(**beside))

    @property
    def is_dataset(self) -> bool:
        """Whether the features come as a data set, which has its own labels and queries."""
        return isinstance(self.X, (Dataset, BinnedDataset))

    @property
    def has_queries(self) -> bool:
        """Whether the rows say which query they belong to."""
        given = self.is_dataset or self.qid is not None or self.group is not None
        return given or is_paths(self.X) or _has_qid(self.X)

    def for_workers(self) -> Rows:
        """The rows as workers of a cluster can be given them: SVMlight text is read here, all else as it is."""
        if not is_paths(self.X):
            return self
        paths = as_paths(self.X)
        if all(file_kind(path) != "svmlight" for path in paths):
            return replace(self, X=paths)
        return self.opened(alone=False, n_threads=resolve_threads(None))

    def dataset(self, learner: Any, *, reset: bool = False, alone: bool = False) -> Dataset:
        """The rows as a data set, with the features that the learner was fitted on in their order.

        Parameters
        ----------
        learner : estimator
            Whose features these must be.
        reset : bool
            Whether the learner is to note the features of these rows as its own instead.
        alone : bool
            Whether every row is a query of its own when there are none; else that is an error.
        """
        if self.is_dataset:
            return self._as_given(learner, reset)
        X, column = split_qid(self.X)
        refuse_text(X)
        if self.y is not None and not isinstance(X, np.ndarray) and "label" in (column_names(X) or ()):
            raise DataError("X has a column 'label' and y is given, too: drop it, or it is learnt from")
        matrix, labels = validate_data(learner, X, self.y, reset=reset, y_numeric=True, **ACCEPTED)
        group = self.group
        qid = column if self.qid is None and group is None else self.qid
        if alone and qid is None and group is None:
            group = np.ones(len(labels), dtype=np.int64)
        weights = None if self.sample_weight is None else np.asarray(self.sample_weight)
        if weights is not None and weights.shape[:1] != (len(labels),):
            raise DataError(
                f"sample_weight must have one value per row ({len(labels)}), got shape {weights.shape}; "
                "weights of queries go into query_weight"
            )
        return Dataset(
            matrix.toarray() if hasattr(matrix, "toarray") else matrix,
            labels,
            qid=qid,
            group=group,
            weights=weights,
            query_weights=self.query_weight,
            position=self.position,
            feature_names=getattr(learner, "feature_names_in_", None),
        )

    def _as_given(self, learner: Any, reset: bool) -> Dataset:
        for name in ("y", "qid", "group", "sample_weight", "query_weight", "position"):
            if getattr(self, name) is not None:
                raise DataError(
                    f"a Dataset holds its own labels, queries and weights: leave {name} out, and give them to "
                    "Dataset(X, y, qid=..., weights=..., query_weights=..., position=...)"
                )
        data: Dataset = self.X.data if isinstance(self.X, BinnedDataset) else self.X
        if reset:
            remember_features(learner, data)
        else:
            order = checked_order(learner, data)
            if order is None:
                return data
            if isinstance(self.X, BinnedDataset):
                raise DataError("the features of the BinnedDataset stand in another order than in training")
            data = data.select_features(order)
        return data


def is_paths(X: Any) -> bool:
    """Whether these are files, not values: a path, or a list of paths."""
    if isinstance(X, (list, tuple)):
        return bool(X) and all(isinstance(one, (str, os.PathLike)) for one in X)
    return isinstance(X, (str, os.PathLike))


def training_data(learner: Any, rows: Rows, *, needs_queries: bool) -> Dataset:
    """The rows as a data set to learn from; the learner notes its features.

    Parameters
    ----------
    learner : estimator
        Gets `n_features_in_` and `feature_names_in_`.
    rows : Rows
        What `fit` was given.
    needs_queries : bool
        Whether rows without queries are an error; else every row is a query of its own.
    """
    data = rows.dataset(learner, reset=True, alone=not needs_queries)
    share = rows.X.share if isinstance(rows.X, BinnedDataset) else Share.whole(data)
    if share.n_docs == 0:
        raise DataError("there is nothing to learn from: the training data has no rows")
    for name, weights in (("sample_weight", data.weights), ("query_weight", data.query_weights)):
        if weights is not None and not share.group.max(np.array([weights.max(initial=0.0)]))[0]:
            raise DataError(f"there is nothing to learn from: all of {name} is zero")
    return data


def in_bins(
    rows: Rows, data: Dataset, max_bins: int, *, categories: Sequence[int] = (), n_threads: int
) -> BinnedDataset:
    """The training data in bins: those that the rows came in, or new ones; codes of categories have one each."""
    if not isinstance(rows.X, BinnedDataset):
        return _checked_codes(
            BinnedDataset.make(data, max_bins, categories=categories, n_threads=n_threads), categories
        )
    if not rows.X.edges.has_categories(categories):
        raise DataError(
            "the data comes in bins that are not those of categorical_features: make them with "
            "BinnedDataset.make(data, categories=[...]), or give the data without bins"
        )
    _checked_codes(rows.X, categories)
    if data is not rows.X.data:  # missing values were replaced
        return replace(BinnedDataset.encode(data, rows.X.edges, n_threads=n_threads), share=rows.X.share)
    return rows.X


def _checked_codes(binned: BinnedDataset, categories: Sequence[int]) -> BinnedDataset:
    """The data, after looking for codes of categories that are too large to have a bin."""
    for feature in categories:
        group, place = divmod(feature, binned.bins.shape[2])
        if (binned.bins[group, :, place] == MAX_CATEGORIES + 1).any():
            names = binned.data.feature_names
            raise DataError(
                f"feature {feature if names is None else names[feature]!r} has codes of {MAX_CATEGORIES} or more, and "
                "categorical_features have codes below: merge rare categories, or leave the feature out"
            )
    return binned


def training_coding(X: Any, wanted: Sequence[int | str] | None, start: Coding | None = None) -> Coding | None:
    """How the categories of training data become codes; None when it has none, or is something else than a table.

    Categories are columns that have such a type, and columns of texts that `wanted` names.

    Parameters
    ----------
    X : object
        What `fit` was given: DataFrames, Arrow tables and files have categories, anything else has codes.
    wanted : sequence of int or str, or None
        The parameter `categorical_features`.
    start : Coding, optional
        That of a model to go on from, whose codes stay.
    """
    if isinstance(X, (Dataset, BinnedDataset)):
        return None
    chosen = wanted_features(wanted)
    if not is_paths(X):
        found = categories_in(X, chosen)
        if found.features:
            names = [feature for feature in found.features if isinstance(feature, str)]
            numbers_of(wanted or (), len(found.features), names or None, "categorical_features")
        coding = coding_of([found], start)
        if coding is not None:
            _refuse_other_texts(X, found.features, coding)
        return coding
    files = as_paths(X)
    if (kind := kind_of_all(files)) == "svmlight":
        return None
    parts = file_parts(files, kind, queries="optional", n_threads=1)
    return coding_of([categories_of_part(part, chosen) for part in parts], start)


def _refuse_other_texts(X: Any, features: Sequence[int | str], coding: Coding) -> None:
    """Refuse columns of texts that are not among the categories of training data."""
    kinds = column_kinds(X)
    places = [place for place, name in enumerate(column_names(X) or ()) if name not in NO_FEATURES]
    for number, (feature, place) in enumerate(zip(features, places, strict=True)):
        if kinds[place] == "text" and number not in (coding.columns or ()):
            raise DataError(
                f"column {feature!r} holds texts: features are numbers, so leave it out, or train with it among "
                "categorical_features"
            )


def wanted_features(given: Sequence[int | str] | None) -> set[int | str]:
    """Names and numbers of features as `categorical_features` gives them, where a text may be a number.

    Examples
    --------
    >>> sorted(map(str, wanted_features(["shop", "3"])))
    ['3', '3', 'shop']
    """
    texts = {one for one in given or () if isinstance(one, str)}
    return texts | {int(one) for one in given or () if not isinstance(one, str) or one.isdigit()}


def in_codes(X: Any, coding: Coding | None, *, n_threads: int | None = None) -> Any:
    """The data with codes in place of categories; a category that is not in the coding is missing.

    Files become a data set whose features are left in them; what has no categories is returned as it is.
    """
    if coding is None or isinstance(X, (Dataset, BinnedDataset)):
        return X
    if is_paths(X):
        return open_data(X, coding=coding, n_threads=n_threads)
    return with_codes(as_columns(collected(X)), coding)


def as_columns(X: Any) -> Any:
    """What gives columns to Arrow alone, perhaps only once, as a table; DataFrames, tables and all else as they are."""
    if not hasattr(X, "__arrow_c_stream__") or any(hasattr(X, one) for one in ("iloc", "column_names", "to_numpy")):
        return X
    return ArrowSource.of(X).table


@dataclass(frozen=True)
class EvalSets:
    """The data sets to measure on, as `fit` is given them."""

    valid: Any = None
    eval_set: Any = None
    eval_qid: Sequence[Any] | None = None
    eval_group: Sequence[Any] | None = None
    eval_names: Sequence[str] | None = None

    def by_name(
        self,
        learner: Any,
        given: Rows,
        train: Dataset,
        missing_as: FeatureMatrix | None = None,
        *,
        in_memory: bool = False,
        n_threads: int = 1,
    ) -> dict[str, Dataset | BinnedDataset]:
        """The data sets by name.

        Parameters
        ----------
        learner : estimator
            Whose features the data sets must have.
        given : Rows
            What `fit` was given to learn from.
        train : Dataset
            What these rows became; it stands for them when they are to be measured, too.
        missing_as : array of float32, optional
            What missing values of each feature become.
        in_memory : bool
            Whether features that come in files are read into memory.
        n_threads : int
            Threads that read files.
        """
        found: dict[str, Dataset | BinnedDataset] = {}
        for name, one in self.named(given, train).items():
            try:
                if one is None:
                    found[name] = train
                    continue
                rows = one.opened(alone=False, n_threads=n_threads)
                data = rows.dataset(learner)
                found[name] = _with_its_bins(rows, data.in_memory() if in_memory else data, missing_as)
            except ValueError as error:
                raise DataError(f"data set {name!r}: {error}") from error
        return found

    def in_codes(self, coded: Callable[[Any], Any]) -> EvalSets:
        """The data sets with codes in place of categories, by a function of the features of each."""
        sets = [(coded(X), y) for X, y in _as_sets(self.eval_set)]
        own = {name: (coded(X), y) for name, (X, y) in _named_sets(self.valid).items()}
        valid = {name: X if y is None else (X, y) for name, (X, y) in own.items()}
        return replace(self, valid=valid or None, eval_set=None if self.eval_set is None else sets)

    def named(self, given: Rows, train: Any = None) -> dict[str, Rows | None]:
        """The rows of every data set by its name; None for the training data.

        Parameters
        ----------
        given : Rows
            What `fit` was given to learn from.
        train : Dataset, optional
            What these rows became.
        """
        eval_set, own = _as_sets(self.eval_set), _named_sets(self.valid)
        n_given = len(eval_set)
        for name in ("eval_qid", "eval_group", "eval_names"):
            values = getattr(self, name)
            if values is not None and len(values) != n_given:
                raise DataError(f"{name} must have one entry per eval_set ({n_given}), got {len(values)}")
        found: dict[str, Rows | None] = {}
        sets = [*own.values(), *eval_set]
        for place, (X, y) in enumerate(sets, start=-len(own)):  # below 0: of `valid`
            same = X is given.X or X is _behind(given.X) or (train is not None and X is train)
            same = same or (is_paths(X) and _files(X) == _files(given.X))
            is_train = given.has_queries and same and y is given.y
            if place >= 0 and self.eval_names is not None:
                name = str(self.eval_names[place])
            else:
                name = "train" if is_train else list(own)[place] if place < 0 else f"valid_{place}"
            if is_train and None in found.values():
                raise DataError("the training data is given twice to be measured: once is enough")
            if name in found:
                raise DataError(f"two data sets to measure on have the name {name!r}: give others in eval_names")
            queries = (self.eval_qid, self.eval_group)
            qid, group = (None if values is None or place < 0 else values[place] for values in queries)
            found[name] = None if is_train else Rows(X, y, qid, group)
        return found


def _files(paths: Any) -> list[str] | None:
    """Names of files, given as one path or as several; None when it is something else."""
    if not is_paths(paths):
        return None
    return [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]


def _named_sets(valid: Any) -> dict[str, tuple[Any, Any]]:
    """The data sets of `valid` by name, each as a pair (X, y): one, several in a list, or a dict of them."""
    if valid is None:
        return {}
    if isinstance(valid, Mapping):
        return {str(name): pair for name, one in valid.items() for pair in _as_sets([one])}
    if isinstance(valid, (list, tuple)) and not is_paths(valid):
        return {f"valid_{number}": pair for number, pair in enumerate(_as_sets(valid))}
    return {"valid": (valid, None)}


def _as_sets(eval_set: Any) -> list[tuple[Any, Any]]:
    """The data sets as pairs (X, y); given is a list of pairs and Datasets, or just one of these."""
    if eval_set is None:
        return []
    if _is_whole(eval_set) or (isinstance(eval_set, tuple) and not isinstance(eval_set[0], tuple)):
        eval_set = [eval_set]
    sets = [(one, None) if _is_whole(one) or is_paths(one) else tuple(one) for one in eval_set]
    if any(len(one) != 2 for one in sets):
        raise DataError("eval_set must hold pairs (X, y), Datasets, or paths of files")
    return sets


def _is_whole(one: Any) -> bool:
    """Whether this is a data set with its labels: a Dataset, a file, or a table with a column `label`."""
    if isinstance(one, (Dataset, BinnedDataset, str, os.PathLike)):
        return True
    one = collected(one)
    is_table = hasattr(one, "__arrow_c_stream__") or hasattr(one, "npartitions")
    return is_table and "label" in (column_names(one) or ())


def _with_its_bins(rows: Rows, data: Dataset, missing_as: FeatureMatrix | None) -> Dataset | BinnedDataset:
    """The data set; in the bins that it came in, which may be those of the training data."""
    if (without_gaps := filled(data, missing_as)) is not data:
        return without_gaps
    return rows.X if isinstance(rows.X, BinnedDataset) else data


def _behind(X: Any) -> Any:
    """The data set behind a BinnedDataset; anything else as it is."""
    return X.data if isinstance(X, BinnedDataset) else X


def replacements(data: Dataset, missing: str, group: Group = ALONE) -> FeatureMatrix | None:
    """What missing values of each feature count as, by the training data; None when trees decide where they go.

    Parameters
    ----------
    data : Dataset
        The training data, with its gaps.
    missing : str
        "zero", "infinity", or the "mean" or "median" of the values that there are (0 where there are none); anything
        else leaves it to the trees.
    group : Group
        Processes that have other documents; they do not find means or medians of all.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.Dataset([[1.0], [float("nan")], [2.0], [9.0]], [0, 1, 0, 1], group=[4])
    >>> [replacements(data, how).tolist() for how in ("zero", "infinity", "mean", "median")]
    [[0.0], [inf], [4.0], [2.0]]
    """
    if missing in ("zero", "infinity"):
        return np.full(data.n_features, 0.0 if missing == "zero" else np.inf, FEATURE)
    if missing not in ("mean", "median"):
        return None
    if group.size > 1:
        raise RankwoodError(
            f"missing={missing!r} is for data on one machine: fill the gaps, or leave them to the trees"
        )
    centres = _means(data) if missing == "mean" else _medians(data.in_memory().X)
    found: FeatureMatrix = np.nan_to_num(centres, nan=0.0, posinf=np.inf, neginf=-np.inf).astype(FEATURE)
    return found


def _means(data: Dataset) -> FloatArray:
    """Mean of the values of every feature, rounded once; NaN when it has none, or infinities of both signs."""
    totals, counts = [Fraction(0)] * data.n_features, np.zeros(data.n_features, dtype=np.int64)
    infinite = np.zeros(data.n_features)
    with np.errstate(invalid="ignore"):
        for _, X in data.feature_blocks():
            counts += np.count_nonzero(~np.isnan(X), axis=0)
            infinite += np.where(np.isinf(X), X, 0.0).sum(axis=0)
            totals = [
                total + exact_sum(column[np.isfinite(column)].astype(np.float64))
                for total, column in zip(totals, X.T, strict=True)
            ]
    means = [float(total / int(n)) if n else np.nan for total, n in zip(totals, counts, strict=True)]
    return np.array(means) + infinite


def _medians(X: FeatureMatrix) -> FloatArray:
    known = [column[~np.isnan(column)].astype(np.float64) for column in X.T]
    with np.errstate(invalid="ignore"):  # infinities of both signs have no mean
        return np.array([np.median(values) if len(values) else 0.0 for values in known])


def filled(data: Dataset, missing_as: FeatureMatrix | None) -> Dataset:
    """The data set with values for missing ones, given by feature; the same object when nothing changes."""
    if missing_as is None or not (data.has_features or data.can_read_features):  # in bins, which have no gaps
        return data
    if not data.has_features:
        return data.replace(read_blocks=partial(_filled_blocks, data, missing_as))
    if not (missing := np.isnan(data.X)).any():
        return data
    return data.replace(X=np.where(missing, missing_as, data.X))


def _filled_blocks(data: Dataset, missing_as: FeatureMatrix) -> Iterator[FeatureMatrix]:
    for _, X in data.feature_blocks():
        yield np.where(np.isnan(X), missing_as, X)


def routed(model: Ensemble, missing_as: FeatureMatrix | None) -> Ensemble:
    """The model whose missing values go where the values go that they count as; the same when trees decide that."""
    if missing_as is None:
        return model
    values = missing_as[model.feature]
    missing_left = values <= model.threshold
    for node in model.trees.set_nodes.tolist():
        missing_left[node] = model.trees.goes_left(node, float(values[node]))
    return model.replace(missing_left=missing_left)


def scoring_matrix(learner: Any, X: Any, *, names_of_dataset: bool, has_categories: bool = False) -> Any:
    """The features of X, which may be all that `fit` takes, as a fitted learner's ensemble scores them.

    `names_of_dataset` says that the learner was fitted to a Dataset, and has the names of its features from there;
    `has_categories`, that the ensemble takes texts and categories.
    """
    if isinstance(X, (Dataset, BinnedDataset)):
        return Rows(X).dataset(learner).X
    features, _ = split_qid(as_columns(collected(X)))
    if has_categories and column_names(features) is not None:
        return features
    refuse_text(features)
    if names_of_dataset:  # which a matrix cannot have: no warning for that
        return features
    return validate_data(learner, features, reset=False, **ACCEPTED)


def split_qid(X: Any) -> tuple[Any, Any]:
    """The features of a DataFrame without its column `qid`, and that column; None when there is none."""
    if not _has_qid(X):
        return X, None
    column, rest = drop_column(X, "qid")
    return rest, column


def _has_qid(X: Any) -> bool:
    return not isinstance(X, np.ndarray) and "qid" in (column_names(X) or ())


def remember_features(learner: Any, data: Dataset) -> None:
    """Note the features of a data set on the learner, as scikit-learn's validate_data does for a matrix."""
    learner.n_features_in_ = data.n_features
    if data.feature_names is not None:
        learner.feature_names_in_ = np.array(data.feature_names, dtype=object)
    elif hasattr(learner, "feature_names_in_"):
        del learner.feature_names_in_


def checked_order(learner: Any, data: Dataset) -> list[int] | None:
    """Columns of `data` in the order that the learner was fitted on; None when they are in that order already.

    Other features are refused.
    """
    if data.n_features != learner.n_features_in_:
        what = f"{type(learner).__name__} is expecting {learner.n_features_in_} features as input"
        raise DataError(f"X has {data.n_features} features, but {what}")
    names = getattr(learner, "feature_names_in_", None)
    return column_order(data.feature_names, None if names is None else list(names))
