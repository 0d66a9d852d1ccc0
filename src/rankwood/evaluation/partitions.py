"""Models evaluated on data that is not in memory: in files of any size, or in the partitions of a Dask cluster.

A partition may begin and end inside a query. Queries that are whole in it are measured where it is; the scores and
labels of its first and its last query come back, and are joined with what the neighbours have of them::

    partition 1  | q1 q1 q1 | q2 q2 | q3 q3
    partition 2                           q3 | q4 q4 q4 | q5 q5 ...
                   head       measured  tail + head       measured
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from rankwood.coding import reading_for
from rankwood.data.dataset import Dataset
from rankwood.data.files import open_data
from rankwood.data.partitions import data_files, file_of, frame_data, open_partition, partitions
from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import DataError, RankwoodError, listed
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import (
    DEFAULT_MEASURES,
    Evaluation,
    Evaluations,
    is_model,
    scores_of,
    unique_measures,
)
from rankwood.evaluation.evaluator import evaluate as evaluate_dataset
from rankwood.evaluation.measures import AnyMeasure
from rankwood.evaluation.per_query import mean, per_query
from rankwood.matrix import find_roles
from rankwood.model.ensemble import Ensemble
from rankwood.scoring.partitions import feature_columns_of, is_lazy
from rankwood.tasks import in_order, result_of, sees_all


@overload
def evaluate(
    model: Mapping[str, Any] | Sequence[Ensemble | os.PathLike[str]],
    data: Any,
    measures: AnyMeasure | Sequence[AnyMeasure] = ...,
    *,
    convention: str | Convention = ...,
    n_threads: int | None = ...,
    client: Any = ...,
) -> Evaluations: ...
@overload
def evaluate(
    model: Any,
    data: Any,
    measures: AnyMeasure | Sequence[AnyMeasure] = ...,
    *,
    convention: str | Convention = ...,
    n_threads: int | None = ...,
    client: Any = ...,
) -> Evaluation: ...
def evaluate(
    model: Any,
    data: Any,
    measures: AnyMeasure | Sequence[AnyMeasure] = DEFAULT_MEASURES,
    *,
    convention: str | Convention = "rankwood",
    n_threads: int | None = None,
    client: Any = None,
) -> Evaluation | Evaluations:
    """Measures of how well a model, or each of several, ranks the documents of every query.

    Parameters
    ----------
    model : Ensemble, fitted learner, path of a model file or array of scores, or a dict of these by name
        Features are found by name when the model and the data both have names, else by position. A model with early
        exit is measured with it; `model.replace(exit=None)` is the one without. Scores are one per row. Models in a
        list have the names of their files, or "model 1", "model 2", ...
    data : Dataset, path-like, sequence of these, or dask.dataframe.DataFrame
        Documents with labels. The mean is over all queries, weighted by query weights if there are any. Files, which
        may be larger than memory, are as `read_data` takes them; a folder stands for the Parquet files in it. A Dask
        DataFrame has columns as `read_csv` knows them; rows of a query stand together, in one partition or several.
    measures : str, Measure or sequence of these, default "nDCG@10"
        What is computed, such as "nDCG@10" or ["AP", "RR"].
    convention : str or Convention, default "rankwood"
        How measures are computed where tools disagree: the name of a preset, like "lightgbm".
    n_threads : int, optional
        Every CPU is used unless given; of a Dask cluster one per partition. Results do not depend on it.
    client : distributed.Client, optional
        A Dask cluster whose workers read files, which they must see, or compute the partitions of a Dask DataFrame.

    Returns
    -------
    Evaluation or Evaluations
        Means by name of the measure, and the values of every query; of a dict or list, by name of the model. Both
        have `to_frame`.

    See Also
    --------
    compare : Difference of two models on the same queries, with interval and p-values.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.Dataset([[1.0], [2.0], [3.0]], [0, 1, 2], group=[3])
    >>> rw.evaluate([3.0, 2.0, 1.0], data, "nDCG@10")
    Evaluation(nDCG@10: 0.5869; convention rankwood)
    """
    settings: dict[str, Any] = {"convention": convention, "n_threads": n_threads, "client": client}
    if isinstance(model, (list, tuple)) and any(map(_is_model, model)):
        model = _by_name(model)
    if isinstance(model, (str, os.PathLike)):
        model = _loaded(model, data)
    if isinstance(model, Mapping):
        return Evaluations({str(name): evaluate(one, data, measures, **settings) for name, one in model.items()})
    if isinstance(data, Dataset):
        if client is not None:
            raise RankwoodError("client is for data in files or partitions: leave it out with a Dataset")
        return evaluate_dataset(model, data, measures, convention=convention, n_threads=n_threads)
    if is_lazy(data):
        return evaluate_frame([model], data, measures, **settings).evaluations[0]
    if not _are_paths(data):
        return evaluate_dataset(model, data, measures)  # which says what it needs
    if client is not None:
        return evaluate_files([model], data, measures, **settings).evaluations[0]
    width = getattr(getattr(model, "ensemble_", model), "n_features", None)
    opened = open_data(data_files(data), n_features=width, n_threads=n_threads, **reading_for([model]))
    return evaluate_dataset(model, opened, measures, convention=convention, n_threads=n_threads)


def _is_model(one: Any) -> bool:
    """Whether this is a model or its file, and no score."""
    return isinstance(one, (str, os.PathLike)) or hasattr(one, "ensemble_") or hasattr(one, "predict") or is_model(one)


def _by_name(models: Sequence[Any]) -> dict[str, Any]:
    """Models under the names of their files, or their numbers."""
    names = [Path(one).name if isinstance(one, (str, os.PathLike)) else "" for one in models]
    if len(set(names)) < len(names):
        names = [name if name and names.count(name) == 1 else "" for name in names]
    return {name or f"model {number}": one for number, (name, one) in enumerate(zip(names, models, strict=True), 1)}


def _loaded(path: str | os.PathLike[str], data: Any) -> Any:
    """The model in a file, as wide as the data where the file does not tell its width."""
    from rankwood.formats.registry import load_model, widen

    model = load_model(path)
    return widen(model, data.n_features, data.feature_names) if isinstance(data, Dataset) else model


def _are_paths(data: Any) -> bool:
    several = [data] if isinstance(data, (str, os.PathLike)) else data
    return isinstance(several, (list, tuple)) and all(isinstance(one, (str, os.PathLike)) for one in several)


@dataclass(frozen=True)
class Evaluated:
    """Evaluations of models on the same data, in the order of the models, and the number of its documents."""

    evaluations: list[Evaluation]
    n_docs: int


def evaluate_files(
    models: Sequence[Any],
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    measures: AnyMeasure | Sequence[AnyMeasure],
    *,
    convention: str | Convention,
    n_threads: int | None,
    client: Any,
    zero_based: bool = False,
    beyond: Literal["error", "ignore"] = "error",
) -> Evaluated:
    """Evaluations of models on files that the workers of a Dask cluster read, each piece once for all models.

    Parameters
    ----------
    models : sequence of Ensemble or fitted learner
        Models of the same number of features.
    paths : path-like or iterable of path-like
        Files of one kind, or folders of Parquet files.
    measures, convention, n_threads, client
        As for `evaluate`.
    zero_based : bool, default False
        Whether feature ids of SVMlight text start at 0.
    beyond : {"error", "ignore"}, default "error"
        What happens to features after those of the models.
    """
    measuring = _Measuring.of(models, measures, convention, n_threads)
    parts = partitions(
        paths,
        n_features=measuring.models[0].n_features,
        zero_based=zero_based,
        beyond=beyond,
        **reading_for(measuring.models),
    )
    check_seen(client, [file_of(part) for part in parts])
    return measuring.joined(in_order(client, _measured_part, parts, measuring))


def check_seen(client: Any, files: Sequence[Path]) -> None:
    """Raise a DataError unless every worker of a Dask cluster sees the files."""
    unique = list(dict.fromkeys(files))
    if not sees_all(client, unique):
        raise DataError(
            f"{unique[0]}: not every worker of the Dask cluster sees the data at this path: put it on a disk that all "
            "share, or do without the cluster"
        )


def evaluate_frame(
    models: Sequence[Any],
    frame: Any,
    measures: AnyMeasure | Sequence[AnyMeasure],
    *,
    convention: str | Convention,
    n_threads: int | None,
    client: Any = None,
) -> Evaluated:
    """Evaluations of models on a Dask DataFrame.

    Parameters
    ----------
    models : sequence of Ensemble or fitted learner
        Models of the same number of features.
    frame : dask.dataframe.DataFrame
        Its columns are those that `read_csv` knows.
    measures, convention, n_threads, client
        As for `evaluate`; without a client Dask computes where it is set up to.
    """
    dask: Any = import_module("dask")
    if not hasattr(frame, "to_delayed") or not hasattr(frame, "columns"):
        raise DataError(f"evaluation needs a Dask DataFrame with labels and query ids, got {type(frame).__name__}")
    measuring = _Measuring.of(models, measures, convention, n_threads)
    names = [str(name) for name in frame.columns]
    roles = find_roles(names)
    for role, known in (("qid", "qid or query_id"), ("label", "label or relevance")):
        if role not in roles:
            raise DataError(f"no column is named {known}; there are: {listed(names)}")
    features = feature_columns_of(frame)
    n_features = measuring.models[0].n_features
    if len(features) != n_features:
        raise DataError(f"there are {len(features)} feature columns, {n_features} were expected")
    shared = dask.delayed(measuring)
    tasks = [dask.delayed(_measured_frame)(part, shared, roles, features) for part in frame.to_delayed()]
    if client is None:
        return measuring.joined(dask.compute(*tasks))
    futures = client.compute(tasks)
    try:
        return measuring.joined(map(result_of, futures))
    finally:
        client.cancel(futures, force=True)


# What is known of a partition, and how neighbours are joined.


@dataclass(frozen=True)
class Edge:
    """Rows of the first or the last query of a partition: its id, their labels, and their scores by each model."""

    id: Any
    labels: FloatArray
    scores: AnyArray

    def with_more(self, other: Edge) -> Edge:
        """These rows, and the rows of the same query that follow."""
        return Edge(self.id, *(np.concatenate(both, axis=-1) for both in
                               ((self.labels, other.labels), (self.scores, other.scores))))  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """What is known of a partition of data.

    Parameters
    ----------
    n_docs : int
        Number of rows.
    head : Edge or None
        Rows of the first query; None when there are no rows.
    ids : list
        Ids of the queries between the first and the last.
    values : array of float64
        Their values, a row for every measure of every model.
    tail : Edge or None
        Rows of the last query; None when there is only one.
    """

    n_docs: int
    head: Edge | None
    ids: list[Any]
    values: FloatArray
    tail: Edge | None


@dataclass(frozen=True)
class _Measuring:
    """Models and measures, which all partitions share."""

    models: tuple[Any, ...]
    measures: tuple[Any, ...]
    convention: Convention
    n_threads: int

    @classmethod
    def of(
        cls, models: Sequence[Any], measures: Any, convention: str | Convention, n_threads: int | None
    ) -> _Measuring:
        found = tuple(getattr(model, "ensemble_", model) for model in models)
        for model in found:
            if not (hasattr(model, "score") and hasattr(model, "n_features")):
                raise RankwoodError("scores are one per row of a Dataset: partitions need a model")
            if model.exit is not None:
                raise RankwoodError(
                    "early exit looks at whole queries, which partitions may cut in two: evaluate "
                    "model.replace(exit=None), or without Dask"
                )
        how = Convention.get(convention)
        if how.ties == "docno":
            raise RankwoodError(
                f"convention {how.name} breaks ties by names of documents, which are not read here: evaluate a Dataset"
            )
        return cls(found, tuple(unique_measures(measures)), how, n_threads or 1)

    def measured(self, data: Dataset) -> Measured:
        """Measure the whole queries of a partition."""
        queries = data.queries
        if queries.order is not None:
            index = queries.index
            row = int(np.flatnonzero(np.diff(index) < 0)[0]) + 1
            raise _apart(queries.ids[index[row]])
        if data.query_weights is not None:
            raise DataError("weights of queries are not read from partitions: evaluate a Dataset")
        labels = data.y
        scores = np.array([scores_of(model, data, n_threads=self.n_threads) for model in self.models])
        offsets, ids = queries.offsets, queries.ids.tolist()
        n_queries = queries.n_queries

        def edge(number: int) -> Edge:
            rows = slice(int(offsets[number]), int(offsets[number + 1]))
            return Edge(ids[number], labels[rows].copy(), scores[:, rows].copy())

        tail = edge(n_queries - 1) if n_queries > 1 else None
        inner = self.values(labels, scores, offsets[1:-1]) if n_queries > 2 else self.nothing()
        return Measured(data.n_docs, edge(0), ids[1:-1], inner, tail)

    def nothing(self) -> FloatArray:
        """Values of no queries."""
        return np.empty((len(self.models) * len(self.measures), 0))

    def values(self, labels: FloatArray, scores: AnyArray, offsets: AnyArray) -> FloatArray:
        """Values of the queries between these offsets, a row for every measure of every model."""
        rows = slice(int(offsets[0]), int(offsets[-1]))
        return np.concatenate([
            per_query(self.measures, labels[rows], of_model[rows], offsets - offsets[0], convention=self.convention,
                      n_threads=self.n_threads)
            for of_model in scores
        ])  # fmt: skip

    def joined(self, parts: Iterable[Measured]) -> Evaluated:
        """The evaluations of partitions that follow each other."""
        ids: list[Any] = []
        values: list[FloatArray] = [self.nothing()]
        n_docs, last = 0, None  # the query that may go on

        def close(edge: Edge | None) -> None:
            if edge is not None:
                ids.append(edge.id)
                values.append(self.values(edge.labels, edge.scores, np.array([0, len(edge.labels)])))

        for part in parts:
            n_docs += part.n_docs
            head = part.head
            if head is None:
                continue
            if last is not None and last.id == head.id:
                head = last.with_more(head)
            else:
                close(last)
            if part.tail is None:
                last = head
                continue
            close(head)
            ids += part.ids
            values.append(part.values)
            last = part.tail
        close(last)
        if not ids:
            raise DataError("there is no document to evaluate on")
        _refuse_twice(ids)
        rows = np.concatenate(values, axis=1)
        return Evaluated([self._evaluation(of_model) for of_model in np.split(rows, len(self.models))], n_docs)

    def _evaluation(self, rows: FloatArray) -> Evaluation:
        of_queries = dict(zip(map(str, self.measures), rows, strict=True))
        return Evaluation(self.convention, {name: mean(row) for name, row in of_queries.items()}, of_queries)


def _measured_part(part: Any, measuring: _Measuring) -> Measured:
    return measuring.measured(open_partition(part))


def _measured_frame(frame: Any, measuring: _Measuring, roles: dict[str, str], features: list[str]) -> Measured:
    if len(frame) == 0:
        return Measured(0, None, [], measuring.nothing(), None)
    return measuring.measured(frame_data(frame, roles, features))


def _refuse_twice(ids: list[Any]) -> None:
    seen: set[Any] = set()
    for one in ids:
        if one in seen:
            raise _apart(one)
        seen.add(one)


def _apart(query: Any) -> DataError:
    return DataError(f"the rows of query {query} stand apart: sort the data by query, so that they follow each other")
