"""Rows query by query, and back in the order of the input."""

from __future__ import annotations

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray, IndexArray


class ByQuery:
    """What holds the documents of a data set query by query.

    data   the data set
    rows   row of `data` for every row here; None when they are the same
    """

    data: Dataset
    rows: IndexArray | None

    @property
    def n_docs(self) -> int:
        return self.data.n_docs

    def by_query(self, values: AnyArray) -> AnyArray:
        """Values of the data set's rows, in the order of the rows here."""
        return values if self.rows is None else np.ascontiguousarray(values[self.rows])

    def in_input_order(self, values: AnyArray) -> AnyArray:
        """Values of the rows here, in the order of the data set's rows."""
        if self.rows is None:
            return values
        back = np.empty_like(values)
        back[self.rows] = values
        return back
