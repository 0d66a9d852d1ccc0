"""Queries with everything that can go wrong in them: ties, infinities, no documents, no relevant documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

WHOLE_LABELS = st.integers(0, 4).map(float)
MANY_LEVELS = st.integers(0, 60).map(float)
REAL_LABELS = st.floats(0.0, 4.0)
SPAM_LABELS = st.integers(-2, 4).map(float)
TIED_SCORES = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 2.0])
ANY_SCORES = st.floats(allow_nan=False) | st.sampled_from([np.inf, -np.inf, 0.0, -0.0])


@dataclass
class Rankings:
    """Queries one after the other."""

    y: np.ndarray
    scores: np.ndarray
    offsets: np.ndarray
    doc_ids: np.ndarray

    def queries(self):
        for begin, end in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield (
                self.y[begin:end].tolist(),
                self.scores[begin:end].tolist(),
                [str(doc_id) for doc_id in self.doc_ids[begin:end]],
            )


@st.composite
def rankings(draw, labels=None, scores=None, max_docs=12, max_queries=5, dtype=np.float64):
    labels = draw(st.sampled_from([WHOLE_LABELS, MANY_LEVELS, REAL_LABELS, SPAM_LABELS])) if labels is None else labels
    scores = draw(st.sampled_from([TIED_SCORES, ANY_SCORES])) if scores is None else scores
    sizes = draw(st.lists(st.integers(0, max_docs), min_size=0, max_size=max_queries))
    n = sum(sizes)
    with np.errstate(over="ignore"):
        drawn = np.array(draw(st.lists(scores, min_size=n, max_size=n)), dtype=np.float64).astype(dtype)
    ids = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
    return Rankings(
        y=np.array(draw(st.lists(labels, min_size=n, max_size=n)), dtype=np.float64),
        scores=drawn,
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        doc_ids=np.array(draw(st.lists(ids, min_size=n, max_size=n)), dtype=object),
    )
