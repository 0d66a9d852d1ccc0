"""Statistics of ranking data, as papers print them of the data sets that they use."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankwood.data.dataset import Dataset

MOST_LISTED = 6  # labels that a table names one by one


@dataclass(frozen=True)
class Statistics:
    """Size, labels and gaps of a data set.

    Attributes
    ----------
    n_features, n_docs, n_queries : int
        Columns, rows, and queries with at least one document.
    docs_per_query : float
        Mean number of documents of a query.
    fewest_docs, most_docs : int
        Documents of the smallest and of the largest query.
    labels : tuple of float
        The different labels, ascending.
    relevant_per_query : float
        Mean number of documents of a query whose label is above 0.
    missing : float
        Share of the values that are missing (NaN).
    zero : float
        Share of the values that are 0: what a sparse file leaves out.
    constant_features : int
        Features that have one value, or none, in all documents.
    """

    n_features: int
    n_docs: int
    n_queries: int
    docs_per_query: float
    fewest_docs: int
    most_docs: int
    labels: tuple[float, ...]
    relevant_per_query: float
    missing: float
    zero: float
    constant_features: int

    @property
    def absent(self) -> float:
        """Share of the values that are 0 or missing: "% Features Missing" of Mohan et al. (2011), table 2."""
        return self.missing + self.zero

    @property
    def labels_text(self) -> str:
        """The labels in a few words: all of them, or how many there are between which two."""
        if len(self.labels) <= MOST_LISTED:
            return ", ".join(f"{label:g}" for label in self.labels)
        return f"{len(self.labels):,} from {self.labels[0]:g} to {self.labels[-1]:g}"

    def as_dict(self) -> dict[str, Any]:
        """All numbers by name, ready for JSON."""
        return {**asdict(self), "labels": list(self.labels), "absent": self.absent}


def statistics(data: Dataset) -> Statistics:
    """Count queries, documents, labels and gaps of a data set.

    Parameters
    ----------
    data : Dataset
        The data; it may be empty.

    Returns
    -------
    Statistics
        Means and shares of empty data are 0.

    Examples
    --------
    >>> import rankwood as rw
    >>> found = rw.statistics(rw.Dataset([[0.0, 1.0], [float("nan"), 1.0], [2.0, 1.0]], [0, 1, 2], group=[2, 1]))
    >>> found.docs_per_query, found.labels, found.relevant_per_query, found.constant_features
    (1.5, (0.0, 1.0, 2.0), 1.0, 1)
    """
    sizes = data.queries.sizes[data.queries.sizes > 0]
    n_queries, n_values = len(sizes), max(data.X.size, 1)
    n_missing = n_zero = n_constant = 0
    for column in data.X.T:  # one at a time: no copy as large as the data
        missing = np.isnan(column)
        n_missing += int(np.count_nonzero(missing))
        n_zero += int(np.count_nonzero(column == 0.0))
        values = column[~missing]
        n_constant += bool(len(values) == 0 or (values == values[0]).all())
    return Statistics(
        n_features=data.n_features,
        n_docs=data.n_docs,
        n_queries=n_queries,
        docs_per_query=data.n_docs / n_queries if n_queries else 0.0,
        fewest_docs=int(sizes.min(initial=data.n_docs)),
        most_docs=int(sizes.max(initial=0)),
        labels=tuple(np.unique(data.y).tolist()),
        relevant_per_query=float(np.count_nonzero(data.y > 0)) / n_queries if n_queries else 0.0,
        missing=n_missing / n_values,
        zero=n_zero / n_values,
        constant_features=n_constant,
    )
