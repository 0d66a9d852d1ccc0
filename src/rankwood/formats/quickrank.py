"""QuickRank's XML models of trees.

`<ranker>` holds `<info>` and `<ensemble>`. Values are float32 and go left when they are at most the threshold, so a
missing one goes right. Features are numbered from 1; the model has as many as its splits need.
"""

from __future__ import annotations

from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError
from rankwood.formats.budget import UNLIMITED, Budget
from rankwood.formats.thresholds import at_most_of_float32
from rankwood.formats.xml_trees import SplitReader, read_xml


def is_quickrank(start: bytes) -> bool:
    return b"<ranker" in start[:4096]


def parse_quickrank(content: bytes, budget: Budget = UNLIMITED) -> Ensemble:
    reader = SplitReader()
    ranker: list[str] = []

    def end(name: str, text: str) -> None:
        if name == "type":
            ranker.append(text[:80])
        reader.end(name, text)

    read_xml(content.strip(), reader.start, end)
    if len(reader.ensembles) != 1:
        kind = ranker[0] if ranker else "no kind that is told"
        raise ModelError(f"the ranker ({kind}) has {len(reader.ensembles)} ensembles of trees, not one")
    forest = reader.builder.forest(at_most_of_float32)
    return forest.ensemble(
        source={"format": "quickrank", "ranker": ranker[0] if ranker else "", "n_features": "at least"},
        n_features=reader.builder.n_features(),
        tree_weights=reader.weights,
        budget=budget,
    )
