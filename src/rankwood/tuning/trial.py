"""One trial: train, prune at several rates, measure and time. One training gives several points."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankwood.data.binning import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.ensemble import Ensemble
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluate import aligned_features, evaluate
from rankwood.evaluation.measures import Measure
from rankwood.pruning.speed import seconds_per_document
from rankwood.tuning.points import Point
from rankwood.tuning.space import SearchSpace

Latency = Callable[[Ensemble, Any], float]  # (model, rows) -> microseconds per document
OnShare = Callable[[float], None]  # share of a trial that is done

PRUNING_QUERIES = 1000  # that pruning looks at, at most; its models are measured on all
TIMED_SECONDS = 0.1  # spent on timing a model, at least
_TRAINING_SHARE = 0.7  # of a trial, for progress


@dataclass(frozen=True)
class MeasuredLatency:
    """Microseconds per document on one thread of the fastest engine, in batches of so many documents: a median."""

    batch: int
    seconds: float = TIMED_SECONDS

    def __call__(self, model: Ensemble, X: Any) -> float:
        return 1e6 * seconds_per_document(model, X, batch=self.batch, seconds=self.seconds)


@dataclass(frozen=True)
class Bench:
    """What every trial works on and is measured by."""

    train: BinnedDataset
    valid: Dataset
    space: SearchSpace
    rates: tuple[float, ...]
    measure: Measure
    convention: Convention
    latency: Latency
    seed: int
    n_threads: int | None

    def run(self, number: int, parameters: Mapping[str, Any], on_share: OnShare) -> list[tuple[Point, Ensemble]]:
        """The whole model of a training, and the best that pruning made of it at every rate."""
        whole = self._train(parameters, on_share)
        models = [(0.0, "whole", whole, self._worth(whole)), *self._prune(whole, on_share)]
        return [
            (
                Point(number, dict(parameters), rate, variant, model.n_trees, model.n_nodes, valid, self.time(model)),
                model,
            )
            for rate, variant, model, valid in models
        ]

    def time(self, model: Ensemble) -> float:
        return float(self.latency(model, aligned_features(model, self.valid)))

    def _train(self, parameters: Mapping[str, Any], on_share: OnShare) -> Ensemble:
        ranker = self.space.ranker(
            parameters,
            measure=self.measure,
            convention=self.convention,
            random_state=self.seed,
            n_jobs=self.n_threads,
        )

        def tell(env: Any) -> None:
            on_share(_TRAINING_SHARE * min(1.0, (env.iteration + 1) / env.end_iteration))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a bad choice of parameters shows in what it is worth
            ranker.fit(self.train, valid=self.valid, callbacks=[tell])
        model: Ensemble = ranker.ensemble_
        return model

    def _worth(self, model: Ensemble) -> float:
        found = evaluate(model, self.valid, self.measure, convention=self.convention, n_threads=self.n_threads)
        return found[str(self.measure)]

    def _prune(self, whole: Ensemble, on_share: OnShare) -> list[tuple[float, str, Ensemble, float]]:
        from rankwood.pruning.cleaver import cleaver

        if not self.rates or whole.n_trees < 2 or whole.n_nodes == 0:
            return []
        result = cleaver(
            whole,
            self.train.data,
            self.valid,
            measure=self.measure,
            convention=self.convention,
            rates=self.rates,
            max_queries=PRUNING_QUERIES,
            measure_speed=False,
            seed=self.seed,
            n_threads=self.n_threads,
            progress=lambda done, total: on_share(_TRAINING_SHARE + (1 - _TRAINING_SHARE) * done / total),
        )
        by_rate = [[row for row in result.rows[1:] if row.rate == rate] for rate in self.rates]
        best = [max(rows, key=lambda row: row.valid) for rows in by_rate]
        return [(row.rate, row.variant, row.ensemble, row.valid) for row in _of_other_sizes(best, whole.n_trees)]


def _of_other_sizes(rows: Sequence[Any], n_trees: int) -> list[Any]:
    """Small models have fewer sizes than there are rates."""
    seen, found = {n_trees}, []
    for row in rows:
        if row.n_trees not in seen:
            seen.add(row.n_trees)
            found.append(row)
    return found
