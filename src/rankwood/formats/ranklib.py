"""RankLib's models of trees: LambdaMART, MART and Random Forests.

A header of lines that begin with ##, then XML: one ensemble, or of a random forest one for each bag, whose mean is the
score. RankLib holds values in float32, goes left when a value is at most the threshold, and takes a missing one for 0.
It numbers features from 1 and does not say how many there are: the model has as many as its splits need.
"""

from __future__ import annotations

import re

import numpy as np

from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError, one_line
from rankwood.formats.budget import UNLIMITED, Budget
from rankwood.formats.thresholds import at_most_of_float32
from rankwood.formats.xml_trees import SplitReader, read_xml

HEADER_LINE = re.compile(rb"^##[^\n]*$", re.MULTILINE)
RANKERS = ("lambdamart", "mart", "random forests")


def is_ranklib(start: bytes) -> bool:
    return start.lstrip().startswith((b"##", b"<ensemble"))


def parse_ranklib(content: bytes, budget: Budget = UNLIMITED) -> Ensemble:
    header = HEADER_LINE.search(content)
    ranker = "" if header is None else header[0].decode(errors="replace").strip("# \r").lower()
    if ranker and ranker not in RANKERS:
        raise ModelError(f"this is RankLib's {one_line(ranker)}: only {', '.join(RANKERS)} are trees")
    reader = SplitReader()
    read_xml(b"<bags>" + HEADER_LINE.sub(b"", content).strip() + b"</bags>", reader.start, reader.end)
    if not reader.ensembles:
        raise ModelError("the file is damaged: there is no ensemble in it")
    forest = reader.builder.forest(at_most_of_float32)
    forest.missing_left = forest.threshold >= 0.0  # as RankLib holds it: -1e-50 is 0 there
    return forest.ensemble(
        source={"format": "ranklib", "ranker": ranker, "n_features": "at least"},
        n_features=reader.builder.n_features(),
        tree_weights=np.array(reader.weights) / len(reader.ensembles),
        budget=budget,
    )
