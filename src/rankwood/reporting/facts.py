"""What a report is made of: plain numbers and texts, no models and no data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ALPHA = 0.05  # below, a difference is called significant


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; None where too few queries tell."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Difference(Estimate):
    """How much better than the baseline: p of the randomisation test, and corrected for all models and measures."""

    p: float | None = None
    p_holm: float | None = None

    @property
    def is_significant(self) -> bool:
        return self.p_holm is not None and self.p_holm < ALPHA


@dataclass(frozen=True)
class Timing:
    """Microseconds per document of one engine on one thread: the median of `n_calls`, each of `batch` documents."""

    us_per_doc: Estimate
    engine: str
    n_calls: int
    batch: int


@dataclass(frozen=True)
class Bins:
    """Bins of whole numbers that all models share: from `first` on, each `width` wide."""

    first: int
    width: int


@dataclass(frozen=True)
class Anatomy:
    """Shape of the trees. Weights and output ranges are of the trees `trees`: all, or as many as can be seen."""

    depths: Sequence[int]  # trees by depth, in bins
    leaves: Sequence[int]  # trees by number of leaves, in bins
    trees: Sequence[int]  # numbers from 1
    weights: Sequence[float]
    ranges: Sequence[float]  # weight times the difference between the largest and the smallest leaf value
    splits: Sequence[float]  # share of all splits, by column of the data
    gains: Sequence[float] | None  # share of all gain, if the model knows it


@dataclass(frozen=True)
class Curve:
    """A measure after each iteration; `iterations` count from 1 and may leave some out."""

    iterations: Sequence[int]
    values: Sequence[float | None]


@dataclass(frozen=True)
class ModelFacts:
    """One model. `quality` and `difference` are by measure; the baseline has no differences."""

    name: str
    n_trees: int
    n_nodes: int
    n_leaves: int
    mean_depth: float
    max_depth: int
    path_length: int
    n_features_used: int
    n_bytes: int  # of its file in rankwood's own format
    quality: Mapping[str, Estimate]
    difference: Mapping[str, Difference]
    timing: Timing
    speed_up: float | None  # over the baseline
    anatomy: Anatomy
    curves: Mapping[str, Mapping[str, Curve]] = field(default_factory=dict)  # by data set and measure
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Extreme:
    """A query on which two models differ much. Labels are those of the first documents as each model ranks them."""

    query: str
    n_docs: int
    labels: str  # how many documents have each label
    first: float
    second: float
    first_ranking: str
    second_ranking: str


@dataclass(frozen=True)
class Pair:
    """Two models, by number, query by query: `second` minus `first`.

    Differences are sorted; of many queries as many as can be seen, evenly spread. Counts and extremes are of all.
    """

    first: int
    second: int
    measure: str
    wins: int  # of the second
    ties: int
    losses: int
    difference: float | None
    p: float | None
    p_holm: float | None  # corrected for all pairs under this measure
    differences: Sequence[float]
    queries: Sequence[str]  # of the differences
    worst: Sequence[Extreme]  # for the second, the worst first
    best: Sequence[Extreme]  # for the second, the best first


@dataclass(frozen=True)
class ReportFacts:
    """All that a report shows."""

    title: str
    made: str  # date and time
    data: Mapping[str, Any]
    measures: Sequence[str]
    convention: str
    baseline: int
    models: Sequence[ModelFacts]
    pairs: Sequence[Pair]
    features: Sequence[str]
    depth_bins: Bins
    leaf_bins: Bins
    environment: Mapping[str, Any]

    @property
    def base(self) -> ModelFacts:
        return self.models[self.baseline]
