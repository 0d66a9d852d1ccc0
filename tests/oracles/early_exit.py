"""Slow, obvious twin of scoring with early exit."""

from __future__ import annotations

import numpy as np


def score(partials, checkpoints, margins, top, qid):
    """Scores and trees evaluated, from the scores after each checkpoint and, last, after all trees.

    `partials[c]` are those of all documents after `checkpoints[c]` trees; `checkpoints` ends with all trees.
    """
    scores, trees = np.empty(len(qid)), np.empty(len(qid), dtype=np.int64)
    for query in dict.fromkeys(qid.tolist()):
        live, stopped = np.flatnonzero(qid == query), []
        for partial, margin, checkpoint in zip(partials, margins, checkpoints, strict=False):
            threshold = -np.inf
            if len(live) > top:
                threshold = np.sort(partial[live])[-top] - margin
            stop = live[partial[live] < threshold]
            stopped.append((stop, partial[stop], threshold, checkpoint))
            live = live[partial[live] >= threshold]
        scores[live], trees[live] = partials[-1][live], checkpoints[-1]
        above = list(live)  # those whose scores are known
        for stop, partial, threshold, checkpoint in reversed(stopped):
            if len(stop) == 0:
                continue
            lowest = scores[above].min()
            for document, p in zip(stop, partial, strict=True):
                lowered = p + (lowest - threshold) if lowest < threshold else p
                scores[document] = lowered if lowered < lowest else np.nextafter(lowest, -np.inf)
                trees[document] = checkpoint
            above += list(stop)
    return scores, trees
