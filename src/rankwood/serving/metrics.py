"""Counts and latencies of a server, in the text format of Prometheus.

All is counted in the thread of the event loop, so nothing is locked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rankwood._version import __version__
from rankwood.serving.served import Served

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # seconds
RECENT = 1024  # answers that the quantiles are of
QUANTILES = (0.5, 0.99)


@dataclass
class Latency:
    """Times of the answers of one model: a histogram of all, and the last ones."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds
        self.recent.append(seconds)

    def quantile(self, share: float) -> float:
        """The smallest of the last times that this share of them does not exceed."""
        times = sorted(self.recent)
        return times[max(0, -int(-share * len(times) // 1) - 1)]


class Metrics:
    """What `GET /metrics` tells."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # by model, "" if none was found, and status
        self.documents: Counter[str] = Counter()
        self.swaps: Counter[tuple[str, str]] = Counter()  # by model and outcome
        self.latency: dict[str, Latency] = {}
        self.under_way = 0

    def answered(self, model: str, status: int, seconds: float, n_documents: int) -> None:
        """Count an answer; time and documents count if there are scores in it."""
        self.requests[model, status] += 1
        if n_documents >= 0:
            self.documents[model] += n_documents
            self.latency.setdefault(model, Latency()).add(seconds)

    def text(self, models: Iterable[Served]) -> str:
        """All of it, as Prometheus reads it."""
        return "".join(f"{line}\n" for line in self._lines(list(models)))

    def _lines(self, models: list[Served]) -> Iterator[str]:
        yield from _head("rankwood_build_info", "gauge", "Version of rankwood.")
        yield _line("rankwood_build_info", {"version": __version__}, 1)
        yield from _head("rankwood_model_info", "gauge", "The models that are served.")
        for one in models:
            sizes = {"trees": one.model.n_trees, "leaves": one.model.n_leaves, "features": one.model.n_features}
            labels = {"model": one.name, "fingerprint": one.fingerprint} | {key: str(n) for key, n in sizes.items()}
            yield _line("rankwood_model_info", labels, 1)
        yield from _head("rankwood_model_loaded_timestamp_seconds", "gauge", "When the model was loaded.")
        for one in models:
            yield _line("rankwood_model_loaded_timestamp_seconds", {"model": one.name}, one.loaded)
        yield from _head(
            "rankwood_model_swaps_total", "counter", "Models that took the place of others, or were refused."
        )
        for one in models:
            for outcome in ("swapped", "refused"):
                labels = {"model": one.name, "outcome": outcome}
                yield _line("rankwood_model_swaps_total", labels, self.swaps[one.name, outcome])
        yield from _head("rankwood_requests_in_flight", "gauge", "Requests for scores or swaps that are under way.")
        yield _line("rankwood_requests_in_flight", {}, self.under_way)
        yield from _head("rankwood_requests_total", "counter", "Answers by model and status; no model: other paths.")
        for (model, status), count in sorted(self.requests.items()):
            yield _line("rankwood_requests_total", {"model": model, "status": str(status)}, count)
        yield from _head("rankwood_documents_total", "counter", "Documents scored.")
        for model, count in sorted(self.documents.items()):
            yield _line("rankwood_documents_total", {"model": model}, count)
        yield from self._latency_lines()

    def _latency_lines(self) -> Iterator[str]:
        name = "rankwood_request_duration_seconds"
        yield from _head(name, "histogram", "From the headers of a request to its scores, answered or ready to be.")
        for model, latency in sorted(self.latency.items()):
            below = 0
            for bound, count in zip((*BUCKETS, "+Inf"), latency.counts, strict=True):
                below += count
                yield _line(f"{name}_bucket", {"model": model, "le": str(bound)}, below)
            yield _line(f"{name}_sum", {"model": model}, latency.total)
            yield _line(f"{name}_count", {"model": model}, below)
        name = "rankwood_request_duration_recent_seconds"
        yield from _head(name, "gauge", f"Quantiles of the same, of the last {RECENT:,} answers.")
        for model, latency in sorted(self.latency.items()):
            for share in QUANTILES:
                yield _line(name, {"model": model, "quantile": str(share)}, latency.quantile(share))


def _head(name: str, kind: str, help: str) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: dict[str, str], value: float) -> str:
    """One sample. Values of labels need no escapes: names of models, digits and versions have nothing to escape."""
    inner = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{inner}}} {value!r}" if inner else f"{name} {value!r}"
